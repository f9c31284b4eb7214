# SPDX-License-Identifier: Apache-2.0
"""What can be done with validations, on a machine that runs none."""

import functools
import gzip
import json
import time
from unittest import mock

import pytest
import testtools

from heat_plugins import errors
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
        self.deployer = deploying.Deployer(self.cloud.plans)
        self.validations = self.cloud.validations
        self.ledger = self.validations.ledger

    def run_all(self, **options):
        return self.validations.run('plan', **options)

    def states(self, run):
        listed = run['outcomes']
        return {one['validation']: str(one['state']) for one in listed}

    def ids(self, plan=None):
        return [one['id'] for one in self.validations.results(plan)]

    def objects(self):
        return self.cloud.objects(f'{ledgers.CONTAINER}-project-1')

    def report(self, name, *news):
        self.machine.reports[f'validations/{name}.yaml'] = list(news)

    def test_one_source_is_named_and_of_a_plan_only_its_folder_read(self):
        for given in (
            {},
            {'plan': 'plan', 'package': 'p'},
            {'container': 'c'},
            {'object': 'o'},
        ):
            self.assertRaises(errors.Invalid, self.validations.list, **given)
        playbook = {'playbooks/x.yaml': fakes.playbook('X')}
        self.cloud.plans.create('other', fakes.fakes.content(**playbook))
        assert self.validations.list('other')['validations'] == []
        with pytest.raises(errors.NotFound, match=r'vars\.metadata'):
            self.validations.run('other')
        self.run_all(validations=['dns'])
        content = self.machine.begun[0].setting.content
        assert 'validations/roles/look/tasks/main.yaml' in content
        assert 'root.yaml' not in content

    def test_a_validation_that_fails_fails_the_run(self):
        self.report('ram', *BAD)
        run = self.run_all()
        states = {'cpu': 'PASSED', 'dns': 'PASSED', 'ram': 'FAILED'}
        assert self.states(run) == states
        said = '1 of 3 did not pass: ram: localhost: look: bad'
        assert (run['success'], run['reason']) == (False, said)
        self.machine.reports.clear()
        self.machine.broken = ('validations/ram.yaml',)
        run = self.run_all()
        assert run['summary'] == {'PASSED': 2, 'FAILED': 1}
        assert 'No space left' in run['reason']
        self.machine.broken = ()
        self.report('ram', fakes.end(''))
        assert 'killed: out of memory' in self.run_all()['reason']

    def test_the_number_of_playbooks_at_once_is_limited(self):
        seen = []
        self.run_all(at_once=2, tell=seen.append)
        assert self.machine.most == 2
        assert seen[0].counts == {'RUNNING': 2, 'WAITING': 1}
        assert seen[-1].counts == {'PASSED': 3}

    def test_a_wrong_order_is_refused_before_anything_begins(self):
        bad_ids = '../plan/x', 'short', 'a' * 65, 'my run 1'
        for options in (
            *({'at_once': number} for number in (0, 17)),
            {'connection': 'docker'},
            {'secrets': {'other': 'hunter2'}},
            {'secrets': 'hunter2'},
            {'secrets': {'ssh_key': ['hunter2']}},
            *({'run_id': run_id} for run_id in bad_ids),
        ):
            error = self.assertRaises(errors.Invalid, self.run_all, **options)
            assert 'hunter2' not in str(error)
        self.assertRaises(errors.NotFound, self.run_all, stack='nope')
        assert self.machine.begun == []
        assert self.objects() is None

    def test_the_servers_are_those_of_the_plans_stack(self):
        self.cloud.heat.become('plan', 'CREATE_COMPLETE')
        web = {'path': ('web',), 'name': 'web', 'address': '10.0.0.1'}
        self.cloud.servers.found['plan'] = [plan_stacks.StackServer(**web)]
        assert self.run_all(validations=['dns'])['stack'] == 'plan'
        [host] = self.machine.begun[-1].setting.hosts
        assert (host.name, host.address) == ('web', '10.0.0.1')
        self.run_all(validations=['dns'], stack='')
        assert self.machine.begun[-1].setting.hosts == (inventory.LOCALHOST,)

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
        assert setting.variables == {'size': 'large', **variables}
        assert setting.key == key
        for secret in ('hun', '12345', 'abcdefgh'):
            assert secret not in json.dumps(run)
            assert secret not in repr(setting)
        found = self.validations.result(run['id'], 'dns')
        messages = [task['message'] for task in found['tasks']]
        assert messages == ['is ******'] * 4
        assert found['stdout'] == 'is ******\n' * 4

    def after(self, seconds, act):
        """Let something happen once a run has lasted for a while."""
        start = self.machine.now

        def wait():
            if self.machine.now > start + seconds:
                self.machine.while_waiting = lambda: None
                act()

        self.machine.while_waiting = wait

    def test_a_run_is_stopped_from_afar(self):
        self.report('dns', *SLOW)
        stop, stopped = self.validations.stop, []
        self.after(5, lambda: stopped.append(stop(*self.ids())))
        run = self.run_all(at_once=1)
        assert stopped[0]['success'] is None
        assert (run['state'], run['success']) == ('STOPPED', False)
        states = {'cpu': 'PASSED', 'dns': 'STOPPED', 'ram': 'STOPPED'}
        assert self.states(run) == states
        assert self.machine.running == []
        self.assertRaises(errors.NotFound, self.validations.stop, 'nope-nope')

    def test_a_run_ends_with_its_caller(self):
        seen = set()

        def abandoned():
            # It continues while that is unknown, and is not lost.
            if self.machine.now < 1120:
                raise errors.Unavailable('no')
            return True

        def look():
            seen.update(str(e['state']) for e in self.validations.results())

        self.report('dns', *SLOW)
        # The object store's time is the machine's here.
        self.cloud.swift.now = lambda: self.machine.now
        self.machine.while_waiting = look
        run = self.run_all(validations=['dns'], abandoned=abandoned)
        assert run['state'] == 'STOPPED'
        assert seen == {'RUNNING'}
        assert self.machine.running == []
        assert self.machine.now > 1120

    def test_a_run_continues_while_the_object_store_is_out_of_order(self):
        self.validations.ledger = ledgers.Ledger(
            self.cloud.swift.store(), pools.Pool(wait=0)
        )

        def break_down():
            self.cloud.swift.heal()
            if self.machine.now < 1002:
                self.cloud.swift.fail(times=999, status=503, method='PUT')

        self.machine.while_waiting = break_down
        run = self.run_all(at_once=1)
        assert run['state'] == 'PASSED'
        for name in ('cpu', 'dns', 'ram'):
            found = self.validations.result(run['id'], name)
            assert len(found['tasks']) == 1
        # It ends when the object store denies access.
        self.report('dns', *SLOW)
        self.after(3, lambda: self.cloud.swift.fail(times=999, status=403))
        self.assertRaises(errors.Denied, self.run_all)
        assert self.machine.running == []

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
        assert self.ids() == kept
        assert self.ids('other') == ['my-run-4']
        self.ledger.tidy(kept=2)
        # A run in progress stays in any case.
        assert self.ids() == ['my-run-4', 'my-run-3', 'my-run-0']
        self.assertRaises(errors.Exists, self.run_all, run_id='my-run-4')
        # An interrupted deletion is finished the next time.
        self.cloud.swift.fail(times=9, status=503, method='DELETE')
        self.assertRaises(errors.Unavailable, self.ledger.tidy, kept=1)
        self.cloud.swift.heal()
        self.ledger.tidy(kept=1)
        assert not [name for name in self.objects() if '-3/' in name]
        # A long run does not delete itself.
        tidy = functools.partial(self.ledger.tidy, kept=1)
        self.patch(self.ledger, 'tidy', tidy)
        self.cloud.now -= 3600
        self.run_all(run_id='my-run-5')
        assert self.ids() == ['my-run-4', 'my-run-5', 'my-run-0']
        # The run counts, even if former ones cannot be deleted.
        refuse = mock.Mock(side_effect=errors.Unavailable('no', 503))
        self.patch(self.ledger, 'tidy', refuse)
        assert self.run_all()['state'] == 'PASSED'

    def test_an_unreadable_record_is_left_out_of_lists(self):
        run, other = self.run_all(), self.run_all()
        for content in (b'corrupt', gzip.compress(b'{"id": 7}')):
            self.objects()[f'{run["id"]}/run.json'] = content
            with pytest.raises(errors.Unreadable, match=run['id']):
                self.validations.result(run['id'])
            assert self.ids() == [other['id']]

    def require(self):
        """Let a deployment need the group prep: cpu and ram."""
        required = {'required_validations': ['prep']}
        fakes.fakes.change(self.cloud.plans, more=required)

    def refused(self):
        error = self.assertRaises(errors.Refused, self.deployer.start, 'plan')
        assert 'group prep have not passed' in str(error)
        assert self.cloud.heat.stacks == {}

    def test_until_all_of_them_have_passed_nothing_is_deployed(self):
        self.require()
        assert self.validations.required('plan') == {'groups': ['prep']}
        self.refused()
        self.run_all(validations=['cpu', 'dns'])
        self.refused()
        self.report('ram', *BAD)
        self.run_all(groups=['prep'])
        self.refused()
        self.machine.reports.clear()
        # They count for an hour, and for the plan as it is.
        self.run_all(groups=['prep'])
        self.cloud.now += 3600
        self.refused()
        self.run_all(groups=['prep'])
        self.cloud.plans.update('plan', {'scripts/run.sh': b'#!/bin/bash\n'})
        self.refused()
        self.run_all(groups=['prep'])
        self.cloud.now += 3599
        self.deployer.start('plan')

    def test_they_count_once_the_run_has_passed_whoever_dies_then(self):
        self.require()
        write = self.ledger.write

        def write_and_die(run):
            write(run)
            if run.state.ended:
                raise SystemExit

        self.patch(self.ledger, 'write', write_and_die)
        self.assertRaises(SystemExit, self.run_all, run_id='my-run-0')
        [run] = self.validations.results()
        assert run['state'] == 'PASSED'
        self.deployer.start('plan')

    # Of the steps of the workflow validations.run.
    state = None

    def step(self, **outcome):
        """Take a step as Mistral does; return it."""
        given = {'plan': 'plan', 'groups': ['prep'], 'run_id': None}
        step = self.validations.work(given, self.state, outcome or None)
        step = json.loads(json.dumps(step))
        self.state = step['state']
        return step

    def call(self, step):
        called = step['call']['kind'], step['call']['name']
        assert called == ('action', 'validations.run')
        return self.validations.run(**step['call']['input'])

    def test_it_ends_as_the_playbooks_do(self):
        step = self.step()
        run = self.call(step)
        ended = self.step(success=True)
        assert (ended['success'], ended['reason']) == (True, '')
        assert ended['output']['run'] == json.loads(json.dumps(run))
        # It does not begin again.
        self.assertRaises(errors.Exists, self.call, step)
        self.state = None
        self.report('ram', *BAD)
        run = self.call(self.step())
        ended = self.step(success=True)
        assert (ended['success'], ended['reason']) == (False, run['reason'])
        assert ended['output']['run']['state'] == 'FAILED'

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
            given = {'success': False, 'reason': 'no', 'code': code}
            raised = self.assertRaises(kind, self.step, **given)
            self.state = state
            assert not isinstance(raised, errors.Unavailable)
            assert str(raised) == 'no'
        # Its process died before it wrote anything.
        self.assertRaises(errors.NotFound, self.step, success=False)

    def test_a_run_whose_process_died_is_lost_and_not_repeated(self):
        step = self.step()
        run_id = step['call']['input']['run_id']
        self.ledger.begin(silent(run_id))
        # The process may be alive, so it is waited for.
        waits = self.step(success=False, reason='no heartbeat')
        assert (waits['call'], waits['success']) == (None, None)
        assert waits['next_look'] > 0
        assert waits['output']['run'] is None
        self.cloud.swift.now = lambda: time.time() + 101
        ended = self.step()
        assert (ended['call'], ended['success']) == (None, False)
        assert ended['output']['run']['state'] == 'LOST'
        assert 'has not reported for' in ended['reason']
        assert ': no heartbeat' in ended['reason']
        assert ended['output']['run']['reason'] == ended['reason']
        assert self.machine.begun == []
        self.assertRaises(errors.Exists, self.call, step)
        self.assertRaises(errors.Refused, self.validations.stop, run_id)
        # Nor once its record is deleted.
        self.objects().clear()
        self.assertRaises(errors.NotFound, self.step, success=True)
