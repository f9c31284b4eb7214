# SPDX-License-Identifier: Apache-2.0
"""What can be done with validations, on a machine that runs none."""

import functools
import gzip
import json
import time
from unittest import mock

import testtools

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins import pools
from heat_plugins.plans.deploy import deploying
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.validations import inventory
from heat_plugins.validations import validation_ledger as ledgers
from tests.unit.validations import fakes

SLOW = [fakes.began('wait')]
BAD = [fakes.result('failed', task='look', message='bad'), fakes.end('failed')]


def silent(run_id='my-run-0'):
    """Return a run whose process has said nothing but that it begins."""
    return ledgers.ValidationRun(id=run_id, source='x', started_at='2020')


class OperationsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = fakes.Cloud()
        self.machine = self.cloud.machine
        self.validations = self.cloud.validations
        self.ledger = self.validations.ledger
        self.make()

    def make(self):
        self.cloud.make()

    def run_all(self, **options):
        return self.validations.run('plan', **options)

    def states(self, run):
        return {
            one['validation']: str(one['state']) for one in run['outcomes']
        }

    def ids(self, plan=None):
        return [one['id'] for one in self.validations.results(plan)]

    def objects(self):
        return self.cloud.objects(f'{ledgers.CONTAINER}-project-1')

    def report(self, name, *news):
        self.machine.reports[f'validations/{name}.yaml'] = list(news)


class RunTest(OperationsTest):
    def test_one_source_must_be_named(self):
        for given in (
            {},
            {'plan': 'plan', 'package': 'p'},
            {'container': 'c'},
            {'object': 'o'},
        ):
            self.assertRaises(errors.Invalid, self.validations.list, **given)

    def test_only_the_folder_of_a_plan_is_read(self):
        playbook = {'playbooks/x.yaml': fakes.playbook('X')}
        self.cloud.plans.create('other', fakes.fakes.content(**playbook))
        listed = self.validations.list('other')
        self.assertEqual([], listed['validations'])
        said = self.assertRaises(
            errors.NotFound, self.validations.run, 'other'
        )
        self.assertIn('vars.metadata', str(said))
        self.run_all(validations=['dns'])
        content = self.machine.begun[0].setting.content
        self.assertIn('validations/roles/look/tasks/main.yaml', content)
        self.assertNotIn('root.yaml', content)

    def test_a_validation_that_fails_fails_the_run(self):
        self.report('ram', *BAD)
        run = self.run_all()
        self.assertEqual(
            {'cpu': 'PASSED', 'dns': 'PASSED', 'ram': 'FAILED'},
            self.states(run),
        )
        self.assertEqual(
            (False, '1 of 3 did not pass: ram: localhost: look: bad'),
            (run['success'], run['reason']),
        )
        self.machine.reports.clear()
        self.machine.broken = ('validations/ram.yaml',)
        run = self.run_all()
        self.assertEqual({'PASSED': 2, 'FAILED': 1}, run['summary'])
        self.assertIn('No space left', run['reason'])
        self.machine.broken = ()
        self.report('ram', fakes.end(''))
        self.assertIn('killed: out of memory', self.run_all()['reason'])

    def test_the_number_of_playbooks_at_once_is_limited(self):
        for most in (1, 2):
            seen = []
            self.machine.most = 0
            self.run_all(at_once=most, tell=seen.append)
            self.assertEqual(most, self.machine.most)
            first, last = seen[0].counts, seen[-1].counts
            self.assertEqual({'RUNNING': most, 'WAITING': 3 - most}, first)
            self.assertEqual({'PASSED': 3}, last)

    def test_a_wrong_order_is_refused_before_anything_begins(self):
        for kind, options in (
            (errors.Invalid, {'at_once': 0}),
            (errors.Invalid, {'at_once': 17}),
            (errors.Invalid, {'connection': 'docker'}),
            (errors.Invalid, {'secrets': {'other': 'hunter2'}}),
            (errors.Invalid, {'secrets': 'hunter2'}),
            (errors.Invalid, {'secrets': {'ssh_key': ['hunter2']}}),
            (errors.NotFound, {'stack': 'nope'}),
            *(
                (errors.Invalid, {'run_id': run_id})
                for run_id in ('../plan/x', 'short', 'a' * 65, 'my run 1')
            ),
        ):
            error = self.assertRaises(kind, self.run_all, **options)
            self.assertNotIn('hunter2', str(error))
        self.assertEqual([], self.machine.begun)
        self.assertIsNone(self.objects())

    def test_the_servers_are_those_of_the_plans_stack(self):
        self.cloud.heat.become('plan', 'CREATE_COMPLETE')
        web = {'path': ('web',), 'name': 'web', 'address': '10.0.0.1'}
        self.cloud.servers.found['plan'] = [plan_stacks.StackServer(**web)]
        self.assertEqual('plan', self.run_all(validations=['dns'])['stack'])
        [host] = self.machine.begun[-1].setting.hosts
        self.assertEqual(('web', '10.0.0.1'), (host.name, host.address))
        self.run_all(validations=['dns'], stack='')
        self.assertEqual(
            (inventory.LOCALHOST,), self.machine.begun[-1].setting.hosts
        )

    def test_secrets_reach_the_playbook_and_no_record(self):
        variables = {'password': 'hun"ter2', 'pin': 12345, 'on': True}
        key = '-----BEGIN KEY-----\nabcdefgh\n-----END KEY-----\n'
        texts = ('hun"ter2', 'hun\\"ter2', '12345', 'abcdefgh')
        self.report(
            'dns',
            *(fakes.result(message=f'is {text}') for text in texts),
            *({'stdout': f'is {text}'} for text in texts),
            fakes.end(),
        )
        run = self.run_all(
            validations=['dns'],
            variables={'size': 'large'},
            secrets={'variables': variables, 'ssh_key': key},
        )
        setting = self.machine.begun[0].setting
        self.assertEqual({'size': 'large', **variables}, setting.variables)
        self.assertEqual(key, setting.key)
        for secret in ('hun', '12345', 'abcdefgh'):
            self.assertNotIn(secret, json.dumps(run))
            self.assertNotIn(secret, repr(setting))
        found = self.validations.result(run['id'], 'dns')
        self.assertEqual(
            ['is ******'] * 4, [task['message'] for task in found['tasks']]
        )
        self.assertEqual('is ******\n' * 4, found['stdout'])


class StopTest(OperationsTest):
    """Runs with `dns` endless."""

    def setUp(self):
        super().setUp()
        self.report('dns', *SLOW)

    def after(self, seconds, act):
        """Let something happen once a run has lasted for a while."""

        def wait():
            if self.machine.now > 1000 + seconds:
                self.machine.while_waiting = lambda: None
                act()

        self.machine.while_waiting = wait

    def test_a_run_is_stopped_from_afar(self):
        stopped = []
        self.after(
            5, lambda: stopped.append(self.validations.stop(*self.ids()))
        )
        run = self.run_all(at_once=1)
        self.assertIsNone(stopped[0]['success'])
        self.assertEqual(('STOPPED', False), (run['state'], run['success']))
        self.assertEqual(
            {'cpu': 'PASSED', 'dns': 'STOPPED', 'ram': 'STOPPED'},
            self.states(run),
        )
        self.assertEqual([], self.machine.running)
        self.assertRaises(errors.NotFound, self.validations.stop, 'nope-nope')

    def test_a_run_ends_with_its_caller(self):
        def abandoned():
            # It continues while that is unknown.
            if self.machine.now < 1010:
                raise errors.Unavailable('no')
            return True

        self.assertEqual('STOPPED', self.run_all(abandoned=abandoned)['state'])
        self.assertEqual([], self.machine.running)
        self.assertLess(1010, self.machine.now)

    def test_nothing_is_left_when_the_object_store_denies_access(self):
        self.after(3, lambda: self.cloud.swift.fail(times=999, status=403))
        self.assertRaises(errors.Denied, self.run_all)
        self.assertEqual([], self.machine.running)

    def test_a_run_continues_while_the_object_store_is_out_of_order(self):
        self.report('dns', fakes.result(), fakes.end())
        self.validations.ledger = ledgers.Ledger(
            self.cloud.swift.store(), pools.Pool(wait=0)
        )

        def break_down():
            self.cloud.swift.heal()
            if self.machine.now < 1002:
                self.cloud.swift.fail(times=999, status=503, method='PUT')

        self.machine.while_waiting = break_down
        run = self.run_all(at_once=1)
        self.assertEqual('PASSED', run['state'])
        for name in ('cpu', 'dns', 'ram'):
            found = self.validations.result(run['id'], name)
            self.assertEqual(1, len(found['tasks']))

    def test_a_long_run_is_not_lost(self):
        seen = set()

        def look():
            [run] = self.validations.results()
            seen.add(str(run['state']))

        # The object store's time is the machine's here.
        self.cloud.swift.now = lambda: self.machine.now
        self.machine.while_waiting = look
        self.run_all(
            validations=['dns'], abandoned=lambda: self.machine.now > 1120
        )
        self.assertEqual({'RUNNING'}, seen)


class ResultsTest(OperationsTest):
    def test_runs_are_listed_the_latest_first_and_only_some_are_kept(self):
        self.ledger.begin(silent())
        for number in range(1, 4):
            self.cloud.now += 60
            self.run_all(run_id=f'my-run-{number}')
        files = {'validations/a.yaml': fakes.playbook('A')}
        self.cloud.plans.create('other', fakes.fakes.content(**files))
        self.cloud.now += 60
        self.validations.run('other', run_id='my-run-4')
        kept = [f'my-run-{number}' for number in (4, 3, 2, 1, 0)]
        self.assertEqual(kept, self.ids())
        self.assertEqual(['my-run-4'], self.ids('other'))
        self.ledger.tidy(kept=2)
        # A run in progress stays in any case.
        self.assertEqual(['my-run-4', 'my-run-3', 'my-run-0'], self.ids())
        self.assertRaises(errors.Exists, self.run_all, run_id='my-run-4')

    def test_a_long_run_does_not_delete_itself(self):
        tidy = functools.partial(self.ledger.tidy, kept=1)
        self.patch(self.ledger, 'tidy', tidy)
        self.run_all(run_id='my-run-1')
        self.cloud.now -= 3600
        self.run_all(run_id='my-run-0')
        self.assertEqual(['my-run-1', 'my-run-0'], self.ids())

    def test_an_interrupted_deletion_is_finished_the_next_time(self):
        self.run_all(run_id='my-run-1')
        left = []

        def break_off(request):
            if request.method == 'DELETE':
                left.append(request)
                if len(left) == 2:
                    self.cloud.swift.fail(times=1, status=503)

        self.cloud.swift.before = break_off
        self.assertRaises(errors.Unavailable, self.ledger.tidy, kept=0)
        self.assertNotEqual({}, self.objects())
        self.ledger.tidy(kept=0)
        self.assertEqual({}, self.objects())
        refuse = mock.Mock(side_effect=errors.Unavailable('no', 503))
        self.patch(self.ledger, 'tidy', refuse)
        self.assertEqual('PASSED', self.run_all()['state'])

    def test_an_unreadable_record_is_left_out_of_lists(self):
        run, other = self.run_all(), self.run_all()
        for content in (b'corrupt', gzip.compress(b'{"id": 7}')):
            self.objects()[f'{run["id"]}/run.json'] = content
            error = self.assertRaises(
                errors.Unreadable, self.validations.result, run['id']
            )
            self.assertIn(f'{run["id"]}/run.json', str(error))
            self.assertEqual([other['id']], self.ids())


class RequiredTest(OperationsTest):
    """A plan whose deployment needs the group prep: cpu and ram."""

    def setUp(self):
        super().setUp()
        self.deployer = deploying.Deployer(self.cloud.plans)

    def make(self):
        self.cloud.make(
            **{
                'plan-environment.yaml': (
                    b'template: root.yaml\n'
                    b'environments: [{path: base.yaml}]\n'
                    b'required_validations: [prep]\n'
                )
            }
        )

    def refused(self):
        error = self.assertRaises(errors.Refused, self.deployer.start, 'plan')
        self.assertIn('group prep have not passed', str(error))
        self.assertEqual({}, self.cloud.heat.stacks)

    def test_they_are_named(self):
        self.assertEqual(
            {'groups': ['prep']}, self.validations.required('plan')
        )
        self.cloud.plans.create('bare', fakes.fakes.content())
        self.assertEqual({'groups': []}, self.validations.required('bare'))

    def test_until_all_of_them_have_passed_nothing_is_deployed(self):
        self.refused()
        self.run_all(validations=['cpu', 'dns'])
        self.refused()
        self.report('ram', *BAD)
        self.run_all(groups=['prep'])
        self.refused()
        self.machine.reports.clear()
        self.run_all(groups=['prep'])
        self.deployer.start('plan')

    def test_they_count_for_the_plan_as_it_is_and_for_an_hour(self):
        self.run_all()
        self.cloud.now += 3601
        self.refused()
        self.run_all()
        self.cloud.plans.update('plan', {'scripts/run.sh': b'#!/bin/bash\n'})
        self.refused()

    def test_they_count_once_the_run_has_passed_whoever_dies_then(self):
        write = self.ledger.write

        def write_and_die(run):
            write(run)
            if run.state.ended:
                raise SystemExit

        self.patch(self.ledger, 'write', write_and_die)
        self.assertRaises(SystemExit, self.run_all, run_id='my-run-0')
        [run] = self.validations.results()
        self.assertEqual('PASSED', run['state'])
        self.deployer.start('plan')

    def test_a_section_of_another_shape_is_refused(self):
        many = str([f'group{number}' for number in range(101)])
        for value in ('prep', '[1]', '{a: b}', '[""]', many):
            text = f'template: root.yaml\nrequired_validations: {value}\n'
            path = 'plan-environment.yaml'
            given = fakes.fakes.content(**{path: text.encode()})
            self.assertRaises(
                errors.Invalid, self.cloud.plans.create, 'other', given
            )
            self.cloud.write_past_checks(path, text.encode())
            for call in (
                self.validations.required,
                self.validations.run,
                self.deployer.start,
            ):
                self.assertRaises(errors.Invalid, call, 'plan')
        self.assertEqual([], self.machine.begun)


class WorkTest(OperationsTest):
    """The steps of the workflow validations.run."""

    GIVEN = {'plan': 'plan', 'groups': ['prep'], 'run_id': None}

    def setUp(self):
        super().setUp()
        self.state = None

    def step(self, **outcome):
        """Take a step as Mistral does; return it."""
        step = self.validations.work(self.GIVEN, self.state, outcome or None)
        step = json.loads(json.dumps(step))
        self.state = step['state']
        return step

    def call(self, step):
        """Run the call of a step."""
        self.assertEqual(
            (jobs.CallKind.ACTION, 'validations.run'),
            (step['call']['kind'], step['call']['name']),
        )
        return self.validations.run(**step['call']['input'])

    def test_it_ends_as_the_playbooks_do(self):
        step = self.step()
        run = self.call(step)
        ended = self.step(success=True)
        self.assertEqual((True, ''), (ended['success'], ended['reason']))
        self.assertEqual(json.loads(json.dumps(run)), ended['output']['run'])
        # It does not begin again.
        self.assertRaises(errors.Exists, self.call, step)

    def test_one_that_does_not_pass_says_why(self):
        self.report('ram', *BAD)
        run = self.call(self.step())
        ended = self.step(success=True)
        self.assertEqual(
            (False, run['reason']), (ended['success'], ended['reason'])
        )
        self.assertEqual('FAILED', ended['output']['run']['state'])

    def test_an_error_of_the_action_is_that_of_the_workflow(self):
        self.step()
        for code, kind in (
            ('refused', errors.Refused),
            ('exists', errors.Exists),
            # A job would retry after these, with the same outcome.
            ('unavailable', errors.ServiceError),
            ('busy', errors.ServiceError),
            ('', errors.ServiceError),
        ):
            state = self.state
            raised = self.assertRaises(
                kind, self.step, success=False, reason='no', code=code
            )
            self.state = state
            self.assertNotIsInstance(raised, errors.Unavailable)
            self.assertEqual('no', str(raised))
        # Its process died before it wrote anything.
        self.assertRaises(errors.NotFound, self.step, success=False)

    def test_a_run_whose_process_died_is_lost_and_not_repeated(self):
        step = self.step()
        run_id = step['call']['input']['run_id']
        self.ledger.begin(silent(run_id))
        # The process may be alive, so it is waited for.
        waits = self.step(success=False, reason='no heartbeat')
        self.assertEqual((None, None), (waits['call'], waits['success']))
        self.assertGreater(waits['next_look'], 0)
        self.assertIsNone(waits['output']['run'])
        self.cloud.swift.now = lambda: time.time() + 101
        ended = self.step()
        self.assertEqual((None, False), (ended['call'], ended['success']))
        self.assertEqual('LOST', ended['output']['run']['state'])
        self.assertIn('has not reported for', ended['reason'])
        self.assertIn(': no heartbeat', ended['reason'])
        self.assertEqual(ended['reason'], ended['output']['run']['reason'])
        self.assertEqual([], self.machine.begun)
        self.assertRaises(errors.Exists, self.call, step)
        self.assertRaises(errors.Refused, self.validations.stop, run_id)
        # Nor once its record is deleted.
        self.objects().clear()
        self.assertRaises(errors.NotFound, self.step, success=True)

    def test_its_end_is_read_once(self):
        self.call(self.step())
        find = self.ledger.find

        def forget(run_id):
            run = find(run_id)
            self.objects().clear()
            return run

        self.patch(self.ledger, 'find', forget)
        run = self.step(success=True)['output']['run']
        self.assertEqual('PASSED', run['state'])
