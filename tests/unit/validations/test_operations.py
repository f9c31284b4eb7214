# SPDX-License-Identifier: Apache-2.0
"""What can be done with validations, on a machine that runs none."""

import gzip
import json
import time
from unittest import mock

import testtools

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins import pools
from heat_plugins.plans.deploy import deploy_records
from heat_plugins.plans.deploy import deploying
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.validations import inventory
from heat_plugins.validations import validation_ledger as ledgers
from tests.unit.validations import fakes

SLOW = [fakes.began('wait')]
BAD = [fakes.result('failed', task='look', message='bad'), fakes.end('failed')]


class OperationsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = fakes.Cloud()
        self.machine = self.cloud.machine
        self.validations = self.cloud.validations

    def make(self, **more):
        self.cloud.make(**more)

    def run_all(self, **options):
        return self.validations.run('plan', **options)

    def states(self, run):
        return {
            one['validation']: str(one['state']) for one in run['outcomes']
        }

    def objects(self):
        return self.cloud.objects(f'{ledgers.CONTAINER}-project-1')

    def report(self, name, *news):
        self.machine.reports[f'validations/{name}.yaml'] = list(news)


class ListTest(OperationsTest):
    def test_a_template_that_looks_like_one_is_none(self):
        self.make(**{'playbooks/x.yaml': fakes.playbook('X')})
        ids = [
            one['id'] for one in self.validations.list('plan')['validations']
        ]
        self.assertNotIn('x', ids)

    def test_one_place_has_to_be_named(self):
        for given in (
            {},
            {'plan': 'plan', 'package': 'p'},
            {'container': 'c'},
            {'object': 'o'},
        ):
            self.assertRaises(errors.Invalid, self.validations.list, **given)


class RunTest(OperationsTest):
    def test_one_that_fails_fails_the_run_and_says_why(self):
        self.make()
        self.report('ram', *BAD)
        run = self.run_all()
        self.assertEqual(
            {'cpu': 'PASSED', 'dns': 'PASSED', 'ram': 'FAILED'},
            self.states(run),
        )
        self.assertEqual(False, run['success'])
        self.assertEqual(
            '1 of 3 did not pass: ram: localhost: look: bad', run['reason']
        )

    def test_no_more_at_once_than_asked_for(self):
        self.make()
        for most in (1, 2):
            self.machine.most = 0
            self.run_all(at_once=most)
            self.assertEqual(most, self.machine.most)

    def test_what_cannot_be_is_refused_before_anything_begins(self):
        self.make()
        for options in (
            {'at_once': 0},
            {'at_once': 100},
            {'connection': 'docker'},
            {'user': '{{ x }}'},
            {'secrets': {'other': 'hunter2'}},
            {'secrets': 'hunter2'},
            {'secrets': {'ssh_key': ['hunter2']}},
        ):
            error = self.assertRaises(errors.Invalid, self.run_all, **options)
            self.assertNotIn('hunter2', str(error))
        self.assertEqual([], self.machine.begun)
        self.assertIsNone(self.objects())

    def test_a_place_without_any_is_told(self):
        self.cloud.plans.create('bare', fakes.fakes.content())
        error = self.assertRaises(
            errors.NotFound, self.validations.run, 'bare'
        )
        self.assertIn('vars.metadata', str(error))

    def test_the_whole_folder_goes_along_and_nothing_else(self):
        self.make()
        self.run_all(validations=['dns'])
        [process] = self.machine.begun
        content = process.setting.content
        self.assertIn('validations/roles/look/tasks/main.yaml', content)
        self.assertNotIn('root.yaml', content)

    def test_it_is_for_the_servers_of_the_plans_stack(self):
        self.make()
        self.cloud.heat.become('plan', 'CREATE_COMPLETE')
        self.cloud.servers.found['plan'] = [
            plan_stacks.StackServer(
                path=('web',), name='web', address='10.0.0.1'
            )
        ]
        self.assertEqual('plan', self.run_all(validations=['dns'])['stack'])
        [host] = self.machine.begun[-1].setting.hosts
        self.assertEqual(('web', '10.0.0.1'), (host.name, host.address))
        self.run_all(validations=['dns'], stack='')
        self.assertEqual(
            (inventory.LOCALHOST,), self.machine.begun[-1].setting.hosts
        )

    def test_a_stack_that_is_not_there_is_an_error(self):
        self.make()
        self.assertRaises(errors.NotFound, self.run_all, stack='nope')

    def test_one_that_cannot_be_begun_fails_alone(self):
        self.make()
        self.machine.broken = ('validations/ram.yaml',)
        run = self.run_all()
        self.assertEqual('FAILED', self.states(run)['ram'])
        self.assertEqual({'PASSED': 2, 'FAILED': 1}, run['summary'])
        self.assertIn('No space left', run['reason'])

    def test_somebody_is_told_how_it_stands(self):
        self.make()
        seen = []
        self.run_all(tell=lambda run: seen.append(run.counts), at_once=1)
        self.assertEqual({'RUNNING': 1, 'WAITING': 2}, seen[0])
        self.assertEqual({'PASSED': 3}, seen[-1])


class SecretsTest(OperationsTest):
    SECRETS = {
        'variables': {'password': 'hun"ter2', 'pin': 12345, 'on': True},
        'ssh_key': '-----BEGIN KEY-----\nabcdefgh\n-----END KEY-----\n',
    }

    def test_they_reach_the_playbook_and_no_record(self):
        self.make()
        run = self.run_all(
            validations=['dns'],
            variables={'size': 'large'},
            secrets=self.SECRETS,
        )
        [process] = self.machine.begun
        self.assertEqual(
            {'size': 'large', **self.SECRETS['variables']},
            process.setting.variables,
        )
        self.assertIn('abcdefgh', process.setting.key)
        for secret in ('hun', '12345', 'abcdefgh'):
            self.assertNotIn(secret, json.dumps(run))
            self.assertNotIn(secret, repr(process.setting))

    def test_they_are_masked_in_each_form(self):
        self.make()
        texts = ('hun"ter2', 'hun\\"ter2', '12345', 'abcdefgh')
        self.report(
            'dns',
            *(fakes.result(message=f'is {text}') for text in texts),
            *({'stdout': f'is {text}'} for text in texts),
            fakes.end(),
        )
        run = self.run_all(validations=['dns'], secrets=self.SECRETS)
        found = self.validations.result(run['id'], 'dns')
        self.assertEqual(
            ['is ******'] * 4, [task['message'] for task in found['tasks']]
        )
        self.assertEqual('is ******\n' * 4, found['stdout'])


class StopTest(OperationsTest):
    def begin(self, **options):
        """Run with `dns` endless; `when` is called once it waits."""
        self.make()
        self.report('dns', *SLOW)

    def test_a_run_is_stopped_from_afar(self):
        self.begin()

        def stop():
            if self.machine.now > 1005:
                self.machine.while_waiting = lambda: None
                [run] = self.validations.results()
                found = self.validations.stop(run['id'])
                self.assertIsNone(found['success'])

        self.machine.while_waiting = stop
        run = self.run_all(at_once=1)
        self.assertEqual(('STOPPED', False), (run['state'], run['success']))
        self.assertEqual(
            {'cpu': 'PASSED', 'dns': 'STOPPED', 'ram': 'STOPPED'},
            self.states(run),
        )
        self.assertEqual([], self.machine.running)

    def test_it_ends_with_whoever_waited_for_it(self):
        self.begin()
        run = self.run_all(abandoned=lambda: self.machine.now > 1010)
        self.assertEqual('STOPPED', run['state'])
        self.assertEqual([], self.machine.running)

    def test_it_goes_on_while_nobody_can_say_whether_to_stop(self):
        self.begin()

        def abandoned():
            if self.machine.now < 1010:
                raise errors.Unavailable('no')
            return True

        run = self.run_all(abandoned=abandoned)
        self.assertEqual('STOPPED', run['state'])
        self.assertLess(1010, self.machine.now)

    def test_nothing_is_left_when_the_object_store_lets_nobody_in(self):
        self.begin()

        def refuse():
            if self.machine.now > 1003:
                self.cloud.swift.fail(times=999, status=403)

        self.machine.while_waiting = refuse
        self.assertRaises(errors.Denied, self.run_all)
        self.assertEqual([], self.machine.running)

    def test_they_go_on_while_the_object_store_is_out_of_order(self):
        self.make()
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

    def test_one_that_is_not_there_is_an_error(self):
        self.assertRaises(
            errors.NotFound, self.validations.stop, '20260101T000000Z-abc'
        )


class ResultsTest(OperationsTest):
    def test_runs_are_listed_the_latest_first(self):
        self.make()
        first = self.run_all(validations=['dns'])
        self.cloud.now += 60
        second = self.run_all(validations=['ram'])
        self.cloud.plans.create(
            'other',
            fakes.fakes.content(**{'validations/a.yaml': fakes.playbook('A')}),
        )
        self.cloud.now += 60
        other = self.validations.run('other')
        ids = [one['id'] for one in self.validations.results()]
        self.assertEqual([other['id'], second['id'], first['id']], ids)
        ids = [one['id'] for one in self.validations.results('other')]
        self.assertEqual([other['id']], ids)

    def test_an_id_serves_once(self):
        self.make()
        self.run_all(run_id='my-run-1')
        self.assertRaises(errors.Exists, self.run_all, run_id='my-run-1')

    def test_what_is_no_id_is_refused(self):
        self.make()
        for run_id in ('../plan/x', 'short', 'a' * 65, 'my run 1'):
            self.assertRaises(errors.Invalid, self.run_all, run_id=run_id)
        self.assertEqual([], self.machine.begun)

    def test_only_the_last_runs_are_kept(self):
        self.make()
        for number in range(4):
            self.cloud.now += 60
            self.run_all(run_id=f'my-run-{number}')
        self.validations.ledger.tidy(kept=2)
        self.assertEqual(
            ['my-run-3', 'my-run-2'],
            [one['id'] for one in self.validations.results()],
        )
        self.assertEqual(8, len(self.objects()))

    def test_a_long_run_does_not_forget_itself(self):
        self.make()
        self.patch(
            self.validations.ledger.tidy.__func__, '__defaults__', (1, '')
        )
        self.run_all(run_id='my-run-1')
        self.cloud.now -= 3600
        self.run_all(run_id='my-run-0')
        self.assertEqual(
            ['my-run-1', 'my-run-0'],
            [one['id'] for one in self.validations.results()],
        )

    def test_what_broke_off_while_one_was_forgotten_goes_the_next_time(self):
        self.make()
        self.run_all(run_id='my-run-1')
        left = []

        def break_off(request):
            if request.method == 'DELETE':
                left.append(request)
                if len(left) == 2:
                    self.cloud.swift.fail(times=1, status=503)

        self.cloud.swift.before = break_off
        ledger = self.validations.ledger
        self.assertRaises(errors.Unavailable, ledger.tidy, kept=0)
        self.assertNotEqual({}, self.objects())
        ledger.tidy(kept=0)
        self.assertEqual({}, self.objects())

    def test_former_runs_that_cannot_be_forgotten_spoil_no_new_one(self):
        self.make()

        def refuse(**given):
            raise errors.Unavailable('no', 503)

        self.patch(self.validations.ledger, 'tidy', refuse)
        self.assertEqual('PASSED', self.run_all()['state'])

    def test_a_run_that_goes_on_is_kept(self):
        self.make()
        run = ledgers.ValidationRun(
            id='my-run-0', source='x', started_at='2020-01-01T00:00:00Z'
        )
        self.validations.ledger.begin(run)
        self.run_all()
        self.validations.ledger.tidy(kept=0)
        self.assertEqual(
            ['my-run-0'], [one['id'] for one in self.validations.results()]
        )

    def test_one_that_nobody_runs_any_more_is_lost(self):
        run = ledgers.ValidationRun(
            id='my-run-0', source='x', started_at='2020-01-01T00:00:00Z'
        )
        self.validations.ledger.begin(run)
        self.assertEqual(
            'RUNNING', self.validations.result('my-run-0')['state']
        )
        self.cloud.swift.now = lambda: time.time() + 101
        found = self.validations.result('my-run-0')
        self.assertEqual(('LOST', False), (found['state'], found['success']))

    def test_who_cannot_see_the_record_yet_does_not_run_it(self):
        """An earlier candidate has not written anything."""
        run = ledgers.ValidationRun(
            id='my-run-0', source='x', started_at='2020'
        )
        ledger = self.validations.ledger
        self.patch(ledger._records, 'create', lambda name, value: False)
        self.assertRaises(errors.Exists, ledger.begin, run)
        self.assertRaises(errors.NotFound, ledger.find, 'my-run-0')

    def test_one_that_lasts_is_not_lost(self):
        self.make()
        self.report('dns', *SLOW)
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

    def test_an_unreadable_record_is_told(self):
        self.make()
        run = self.run_all()
        for content in (b'corrupt', gzip.compress(b'{"id": 7}')):
            self.objects()[f'{run["id"]}/run.json'] = content
            error = self.assertRaises(
                errors.Unreadable, self.validations.result, run['id']
            )
            self.assertIn(f'{run["id"]}/run.json', str(error))

    def test_an_unreadable_record_does_not_keep_others_from_the_list(self):
        self.make()
        first, second = self.run_all(), self.run_all()
        self.objects()[f'{first["id"]}/run.json'] = gzip.compress(b'{}')
        listed = [one['id'] for one in self.validations.results()]
        self.assertEqual([second['id']], listed)


class RequiredTest(OperationsTest):
    """A plan whose deployment needs the group prep: cpu and ram."""

    def setUp(self):
        super().setUp()
        self.make(
            **{
                'plan-environment.yaml': (
                    b'template: root.yaml\n'
                    b'environments: [{path: base.yaml}]\n'
                    b'required_validations: [prep]\n'
                )
            }
        )
        self.deployer = deploying.Deployer(self.cloud.plans)

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

    def test_without_them_nothing_is_deployed(self):
        self.refused()

    def test_one_that_fails_refuses_it(self):
        self.report('ram', *BAD)
        self.run_all(groups=['prep'])
        self.refused()

    def test_a_part_of_them_is_not_enough(self):
        self.run_all(validations=['cpu', 'dns'])
        self.refused()

    def test_after_a_change_of_the_plan_they_count_no_more(self):
        self.run_all()
        self.cloud.plans.update('plan', {'scripts/run.sh': b'#!/bin/bash\n'})
        self.refused()

    def test_after_an_hour_they_count_no_more(self):
        self.run_all()
        self.cloud.now += 3601
        self.refused()

    def test_a_record_without_its_time_counts_as_none(self):
        self.run_all()
        plan = self.cloud.plans.load('plan')
        annex = self.cloud.plans.annex(plan)
        for at in ('soon', [], None):
            deploy_records.record(annex, plan.content_hash, 'prep', at)
            self.refused()

    def test_they_count_once_the_run_has_passed_whoever_dies_then(self):
        write = self.validations.ledger.write

        def write_and_die(run):
            write(run)
            if run.state.ended:
                raise SystemExit

        self.patch(self.validations.ledger, 'write', write_and_die)
        self.assertRaises(SystemExit, self.run_all, run_id='my-run-0')
        [run] = self.validations.results()
        self.assertEqual('PASSED', run['state'])
        self.deployer.start('plan')

    def test_a_plan_that_names_them_wrongly_is_told_before_they_run(self):
        self.patch(
            deploy_records,
            'required',
            mock.Mock(side_effect=errors.Invalid('must be a list')),
        )
        self.assertRaises(errors.Invalid, self.run_all)
        self.assertEqual([], self.machine.begun)
        self.assertIsNone(self.objects())

    def test_a_section_of_another_shape_is_refused(self):
        many = str([f'group{number}' for number in range(101)])
        for value in ('prep', '[1]', '{a: b}', '[""]', many):
            text = f'template: root.yaml\nrequired_validations: {value}\n'
            given = fakes.fakes.content(
                **{'plan-environment.yaml': text.encode()}
            )
            self.assertRaises(
                errors.Invalid, self.cloud.plans.create, 'other', given
            )
            self.cloud.write_past_checks(
                'plan-environment.yaml', text.encode()
            )
            self.assertRaises(
                errors.Invalid, self.validations.required, 'plan'
            )
            self.assertRaises(errors.Invalid, self.deployer.start, 'plan')


class WorkTest(OperationsTest):
    """The steps of the workflow validations.run."""

    GIVEN = {'plan': 'plan', 'groups': ['prep'], 'run_id': None}

    def setUp(self):
        super().setUp()
        self.make()
        self.state = None

    def step(self, **outcome):
        """Take a step as Mistral does; return it."""
        step = json.loads(
            json.dumps(
                self.validations.work(self.GIVEN, self.state, outcome or None)
            )
        )
        self.state = step['state']
        return step

    def call(self, step):
        """Run the call of a step."""
        self.assertEqual(
            (jobs.CallKind.ACTION, 'validations.run'),
            (step['call']['kind'], step['call']['name']),
        )
        return self.validations.run(**step['call']['input'])

    def die(self, step):
        """Begin the call of a step in a process that dies; it is silent."""
        given = step['call']['input']['run_id']
        run = ledgers.ValidationRun(id=given, source='x', started_at='2020')
        self.validations.ledger.begin(run)
        self.cloud.swift.now = lambda: time.time() + 101

    def test_it_ends_as_the_playbooks_do(self):
        run = self.call(self.step())
        ended = self.step(success=True)
        self.assertEqual((True, ''), (ended['success'], ended['reason']))
        self.assertEqual(json.loads(json.dumps(run)), ended['output']['run'])

    def test_one_that_does_not_pass_says_why(self):
        self.report('ram', *BAD)
        run = self.call(self.step())
        ended = self.step(success=True)
        self.assertEqual(
            (False, run['reason']), (ended['success'], ended['reason'])
        )
        self.assertEqual('FAILED', ended['output']['run']['state'])

    def test_what_the_action_refuses_is_its_error(self):
        self.step()
        for code, kind in (
            ('refused', errors.Refused),
            # A job would ride these out, and ask for the same outcome.
            ('unavailable', errors.ServiceError),
            ('busy', errors.ServiceError),
        ):
            raised = self.assertRaises(
                kind, self.step, success=False, reason='no', code=code
            )
            self.assertNotIsInstance(raised, errors.Unavailable)
            self.assertEqual('no', str(raised))

    def test_a_run_whose_process_died_is_lost_and_not_repeated(self):
        step = self.step()
        self.die(step)
        ended = self.step(success=False, reason='no heartbeat')
        self.assertEqual((None, False), (ended['call'], ended['success']))
        self.assertEqual('LOST', ended['output']['run']['state'])
        self.assertIn('has not reported for', ended['reason'])
        self.assertIn(': no heartbeat', ended['reason'])
        self.assertEqual([], self.machine.begun)
        run_id = step['call']['input']['run_id']
        self.assertRaises(errors.Exists, self.call, step)
        self.assertRaises(errors.Refused, self.validations.stop, run_id)

    def test_why_its_process_died_before_it_wrote_anything_is_told(self):
        self.step()
        state = self.state
        self.assertRaises(errors.NotFound, self.step, success=False)
        self.state = state
        raised = self.assertRaises(
            errors.ServiceError, self.step, success=False, reason='no memory'
        )
        self.assertEqual('no memory', str(raised))

    def test_one_that_has_ended_and_is_forgotten_is_not_repeated(self):
        self.call(self.step())
        self.validations.ledger.tidy(kept=0)
        self.assertRaises(errors.NotFound, self.step, success=True)

    def test_nor_is_one_that_is_forgotten_between_two_polls(self):
        step = self.step()
        self.die(step)
        self.cloud.swift.now = time.time
        self.assertIsNone(self.step(success=False)['call'])
        self.objects().clear()
        self.assertRaises(errors.NotFound, self.step)

    def test_its_end_is_read_once(self):
        self.call(self.step())
        find = self.validations.ledger.find

        def forget(run_id):
            run = find(run_id)
            self.objects().clear()
            return run

        self.patch(self.validations.ledger, 'find', forget)
        self.assertEqual(
            'PASSED', self.step(success=True)['output']['run']['state']
        )

    def test_why_its_process_died_is_told_at_the_end(self):
        step = self.step()
        self.die(step)
        self.cloud.swift.now = time.time
        self.step(success=False, reason='no memory')
        self.cloud.swift.now = lambda: time.time() + 101
        ended = self.step()
        self.assertEqual('LOST', ended['output']['run']['state'])
        self.assertIn(': no memory', ended['reason'])
        self.assertEqual(ended['reason'], ended['output']['run']['reason'])

    def test_a_process_that_is_alive_is_waited_for(self):
        self.die(self.step())
        self.cloud.swift.now = time.time
        waits = self.step(success=False)
        self.assertEqual((None, None), (waits['call'], waits['success']))
        self.assertGreater(waits['next_look'], 0)
        self.assertIsNone(waits['output']['run'])

    def test_an_id_that_is_taken_is_refused(self):
        self.step()
        refused = {'success': False, 'reason': 'exists', 'code': 'exists'}
        self.assertRaises(errors.Exists, self.step, **refused)

    def test_a_run_that_has_ended_is_not_begun_again(self):
        step = self.step()
        self.call(step)
        self.assertRaises(errors.Exists, self.call, step)
