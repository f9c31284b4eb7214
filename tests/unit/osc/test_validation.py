# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan validation …``, over the fakes of the core."""

import json
from unittest import mock

from heat_plugins import errors
from heat_plugins.clients import mistral_plans
from heat_plugins.osc import common
from heat_plugins.osc.validations import validation_commands
from heat_plugins.validations import validation_ledger
from tests.unit.osc import base
from tests.unit.plans import fakes as plan_fakes
from tests.unit.validations import fakes

UPLOADS = 'heat-plugins-uploads-project-1'


class Executions:
    """Mistral, which does at once what it is asked for."""

    def __init__(self, validations):
        self.validations = validations
        self.started = []
        self.found = {}
        self.execution = self.found.get

    def start_workflow(self, name, arguments, description):
        arguments = json.loads(json.dumps(arguments))
        self.started.append(arguments)
        execution_id = f'execution-{len(self.started)}'
        try:
            run = self.validations.run(**arguments)
            state, output = 'SUCCESS', {'run': run}
        except errors.Error as exc:
            error = {'code': 'refused', 'message': str(exc)}
            state, output = 'ERROR', {'error': error}
        self.found[execution_id] = mistral_plans.WorkflowExecution(
            id=execution_id, state=state, output=output
        )
        return execution_id


class ValidationTest(base.FolderCase):
    def setUp(self):
        super().setUp()
        self.cloud = fakes.Cloud()
        self.machine = self.cloud.machine
        self.executions = Executions(self.cloud.validations)
        validations = self.cloud.validations
        services = (self.cloud.swift.store(), self.executions)
        for name, made in ('operations', validations), ('services', services):
            self.patch(validation_commands, name, lambda _, made=made: made)

    def run_here(self, line=''):
        return self.json(f'validation run plan --local {line}')

    def write(self, name, text):
        file = self.folder / name
        file.write_text(text)
        return file

    def report(self, name, *news):
        self.machine.reports[f'validations/{name}.yaml'] = list(news)

    def test_validations_of_a_plan_of_a_folder_and_of_a_group(self):
        self.write('a.yaml', fakes.playbook('A', 'x').decode())
        self.write('b.yaml', fakes.playbook('B').decode())
        _, found = self.json('validation list plan')
        assert found[0]['Groups'] == ['prep', 'size']
        _, found = self.json(f'validation list --from {self.folder} --group x')
        assert [one['Validation'] for one in found] == ['a']
        line = 'validation list --package p'
        self.assert_refused(line, 'package p is not installed')
        for line in ('', f'plan --from {self.folder}'):
            said = self.refused(f'validation list {line}')
            assert 'Give exactly one of' in said

    def test_failures_are_an_exit_code_and_harmless_for_a_terminal(self):
        for here in ('--local', ''):
            bad = fakes.result('failed', message='\x1b[2Jbad')
            self.report('ram', bad, fakes.end('failed'))
            line = f'validation run plan {here} --group prep'
            code, found = self.json(line)
            assert code == common.FAILED
            assert [one['State'] for one in found] == ['PASSED', 'FAILED']
            assert 'bad' in found[1]['Reason']
            assert 'ram: FAILED' in self.stderr.getvalue()
            _, output = self.run_command(line)
            assert '\x1b' not in output + self.stderr.getvalue()
            self.machine.reports.clear()
            assert self.json(line)[0] == 0

    def test_hosts_are_put_into_groups(self):
        groups = '--host-group undercloud --host-group web=localhost'
        self.run_here(f'--localhost {groups}')
        [host] = self.machine.begun[-1].setting.hosts
        assert host.groups == ('undercloud', 'web')

    def test_a_stop_or_an_interrupt_ends_local_playbooks(self):
        self.report('ram', fakes.began('wait'))

        def stop():
            if self.machine.now > 1003:
                self.machine.while_waiting = lambda: None
                [run] = self.cloud.validations.results()
                self.cloud.validations.stop(run['id'])

        def interrupt():
            if self.machine.now > 1023:
                raise KeyboardInterrupt

        self.machine.while_waiting = stop
        assert self.run_here()[0] == common.CANCELLED
        [run] = self.cloud.validations.results()
        said = self.refused(f'validation stop {run["id"]}')
        assert 'has ended: STOPPED' in said
        self.machine.while_waiting = interrupt
        assert self.run_here()[0] == common.INTERRUPTED
        assert self.machine.running == []
        assert 'were stopped' in self.stderr.getvalue()
        runs = self.cloud.validations.results()
        assert [run['state'] for run in runs] == ['STOPPED', 'STOPPED']
        said = self.refused('validation run plan --local --no-wait')
        assert 'cannot be used with --local' in said

    def test_secrets_come_from_files_and_mistral_keeps_none(self):
        secrets = self.write('secrets.yaml', 'password: hunter2')
        key = self.write('key', 'a key')
        given = f'--secrets {secrets} --ssh-key {key} --variable a=b'
        for here in ('--local', ''):
            self.json(f'validation run plan {here} {given} --validation dns')
            setting = self.machine.begun[-1].setting
            assert setting.variables == {'a': 'b', 'password': 'hunter2'}
            assert setting.key == 'a key'
        begun = json.dumps(self.executions.started)
        assert 'hunter2' not in begun
        assert 'a key' not in begun
        assert self.cloud.objects(UPLOADS) == {}

    def test_mistral_gets_files_and_its_errors_are_said(self):
        self.write('a.yaml', fakes.playbook('A').decode())
        code, found = self.json(f'validation run --from {self.folder}')
        assert (code, found[0]['Validation']) == (0, 'a')
        assert self.cloud.objects(UPLOADS) == {}
        # The fake has finished it before the first poll.
        assert self.json('validation run plan --no-wait')[0] == 0
        self.machine.absent = 'install it'
        self.assert_refused('validation run plan', 'install it')
        dead = mistral_plans.WorkflowExecution(
            id='e-1', state='ERROR', reason='Heartbeat was not heard'
        )

        def start(name, arguments, description):
            run = validation_ledger.ValidationRun(
                id=arguments['run_id'], source='', started_at='2026-11-21'
            )
            self.cloud.validations.ledger.begin(run)
            return 'e-1'

        self.executions.start_workflow = start
        ends = mock.Mock(side_effect=[KeyboardInterrupt, dead])
        self.executions.execution = ends
        code, _ = self.json('validation run plan')
        assert code == common.INTERRUPTED
        assert 'validation stop' in self.stderr.getvalue()
        self.assert_refused('validation run plan', 'e-1 of Mistral: Heartbeat')

    def test_runs_are_listed_and_shown_task_by_task_or_as_printed(self):
        result = fakes.result(host='a', task='ask', message='fine')
        self.report('dns', {'stdout': 'PLAY'}, result, fakes.end())
        self.run_here()
        [run_id] = [one['id'] for one in self.cloud.validations.results()]
        _, [found] = self.json('validation result list')
        shown = {'Run': run_id, 'Source': 'plan plan', 'State': 'PASSED'}
        assert (shown | {'Summary': {'PASSED': 3}}).items() <= found.items()
        self.cloud.plans.create('other', plan_fakes.content())
        with self.assertLogs('', 'WARNING') as logs:
            assert self.json('validation result list other') == (0, [])
        assert 'There are no recorded runs' in str(logs.output)
        code, found = self.json(f'validation result show {run_id}')
        assert (code, len(found)) == (0, 3)
        _, [found] = self.json(f'validation result show {run_id} dns')
        shown = {'Host': 'a', 'Task': 'ask', 'State': 'ok', 'Message': 'fine'}
        assert shown.items() <= found.items()
        line = f'validation result show {run_id} dns --stdout -f value'
        assert self.run_command(line)[1] == 'PLAY\n'
        for which in ('no-such-run', f'{run_id} ../run'):
            self.refused(f'validation result show {which}')
        for which in ('list', f'show {run_id}'):
            _, found = self.json(f'validation result {which}')
            assert isinstance(found[0]['Duration'], float)
            _, table = self.run_command(f'validation result {which}')
            self.assertRegex(table, r'\d s +\|')
