# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan …``, over the fakes of the core."""

import io
import sys
import types
from unittest import mock

import fixtures

from heat_plugins import jobs
from heat_plugins.clients import mistral_api
from heat_plugins.clients import mistral_plans
from heat_plugins.content import tarballs
from heat_plugins.content import texts
from heat_plugins.osc import common
from heat_plugins.osc.plans import plan_choose
from heat_plugins.osc.plans import plan_common
from heat_plugins.osc.plans import plan_deploy
from heat_plugins.plans import plan_operations
from heat_plugins.validations import validation_operations
from tests.unit.osc import base
from tests.unit.plans import fake_heat
from tests.unit.plans import fakes
from tests.unit.validations import fakes as validation_fakes

ENVIRONMENT = 'Environment'


class Runner:
    """Runs steps; those that are named fail."""

    def __init__(self):
        self.failing = ()
        self.begun = []

    def start(self, step, description):
        self.begun.append((step.name, description))
        return step.name

    def look(self, step, execution_id):
        success = execution_id not in self.failing
        return jobs.CallOutcome(success=success, reason='because')


class PlanTest(base.FolderCase):
    def setUp(self):
        super().setUp()
        self.cloud = validation_fakes.Cloud()
        self.runner = Runner()
        self.has_mistral = True
        operations = plan_operations.PlanOperations(self.cloud.plans)
        clock = types.SimpleNamespace(sleep=lambda s: self.sleep(s))
        for module, name, made in (
            (plan_common, 'operations', lambda manager: operations),
            (common, 'cloud', lambda manager: None),
            (mistral_api, 'is_there', lambda cloud: self.has_mistral),
            (mistral_plans, 'WorkflowExecutions', lambda cloud: self.runner),
            (plan_deploy, 'time', clock),
        ):
            self.patch(module, name, made)
        self.ends_with = 'COMPLETE'

    def column(self, line, name):
        return [row[name] for row in self.json(line)[1]]

    def sleep(self, seconds):
        """Let Heat be done as soon as somebody waits."""
        stack = self.cloud.heat.stacks['plan']
        if stack.in_progress:
            self.cloud.heat.become(
                'plan', f'{stack.action}_{self.ends_with}', reason='so it is'
            )

    def test_a_plan_is_created_listed_changed_and_deleted(self):
        for path, content in fakes.content().items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        line = f'create new --from {self.folder} --description "For me"'
        code, found = self.json(line)
        assert (code, found['description']) == (0, 'For me')
        assert found['secrets'] == ['secret']
        assert self.column('list', 'Name') == ['new', 'plan']
        (self.folder / 'new.yaml').write_text('{}')
        large = 'environments/large.yaml'
        (self.folder / large).unlink()
        line = f'set new --from {self.folder} --remove {large}'
        code, found = self.json(line)
        assert (code, found['files']) == (0, len(fakes.content()))
        self.assert_refused('set new --prune', 'root.yaml')
        assert self.run_command('delete new') == (0, '')
        assert self.column('list', 'Name') == ['plan']

    def test_an_export_can_be_created_again(self):
        tarball = self.folder / 'plan.tar.gz'
        self.run_command(f'export plan {tarball} --secrets')
        assert tarball.stat().st_mode & 0o777 == 0o600
        self.json(f'create new --from {tarball}')
        assert set(self.cloud.objects('new')) == set(self.cloud.objects())
        # A folder that the plan has is part of the paths of a tarball.
        more = self.folder / 'set.tar.gz'
        with more.open('wb') as file, tarballs.writer(file) as add:
            add('environments/more.yaml', b'{}')
        self.json(f'set new --from {more}')
        assert 'environments/more.yaml' in self.cloud.objects('new')
        # A failed export keeps the former file.
        tarball.write_text('the former one')
        self.refused(f'export nope {tarball}')
        assert tarball.read_text() == 'the former one'
        assert list(self.folder.glob('.plan-*')) == []

    def test_an_export_warns_of_the_values_that_it_leaves_out(self):
        log = self.useFixture(fixtures.FakeLogger())
        self.json('parameter set plan secret=geheim')
        self.cloud.plans.update(
            'plan', {'base.yaml': fakes.environment(secret='in-a-file')}
        )
        self.run_command(f'export plan {self.folder}/x.tar.gz')
        assert 'Left out: secret, generated passwords (1).' in log.output
        assert 'the secrets that they set: base.yaml' in log.output
        assert 'in-a-file' not in log.output

    def test_a_missing_plan_is_an_error(self):
        lists = 'capability list', 'parameter list', 'role list'
        for command in (*lists, 'show', 'delete', 'deploy', 'status', 'diff'):
            self.assert_refused(f'{command} nope', 'no plan nope')

    def test_choices_are_listed_and_enabled(self):
        assert 'base.yaml' in self.column('capability list plan', ENVIRONMENT)
        enabled = 'capability list plan --enabled'
        assert self.column(enabled, ENVIRONMENT) == ['base.yaml']
        backup, large = (f'environments/{n}.yaml' for n in ('backup', 'large'))
        line = f'capability set plan --enable {backup} --with-requirements'
        assert self.column(line, ENVIRONMENT) == ['base.yaml', large, backup]
        self.refused('capability set plan')

    def test_parameters_are_set_listed_and_unset(self):
        line = 'parameter set plan who=a=b'
        assert self.column(line, 'Parameter') == ['who']
        _, (who, secret) = self.json('parameter list plan --long')
        names = ('Value', 'Origin', 'Default')
        assert [who[name] for name in names] == ['a=b', 'plan', 'world']
        assert (secret['Value'], secret['Hidden']) == ('******', True)
        assert self.json('parameter unset plan who')[1] == []
        self.refused('parameter set plan')
        # No value is in the log of debugging.
        parser = plan_choose.SetParameters(None, None).get_parser('openstack')
        parsed = parser.parse_args(['plan', 'who=geheim'])
        assert 'geheim' not in repr(parsed)
        file = self.folder / 'values.yaml'
        file.write_text('parameter_defaults: {who: sun}')
        self.patch(sys, 'stdin', io.StringIO('who: star'))
        for place, value in ((file, 'sun'), ('-', 'star')):
            self.json(f'parameter set plan --file {place}')
            assert self.column('parameter list plan', 'Value')[0] == value
        file.write_text('')
        self.assert_refused(f'parameter set plan --file {file}', 'or --file')

    def test_parameters_are_listed_by_template_and_by_role(self):
        template = fakes.content()['root.yaml'].replace(
            b'parameters:', b'parameters:\n  WebCount: {type: number}', 1
        )
        roles = b'[{name: Web}, {name: Db}]'
        files = {'root.yaml': template, 'roles_data.yaml': roles}
        self.cloud.plans.create('rolled', fakes.content(**files))
        line = 'parameter list rolled --role'
        assert self.column(f'{line} Web', 'Name') == ['WebCount']
        assert self.column(f'{line} Web --nested', 'Places') == [['.']]
        assert self.column(f'{line} Db', 'Name') == []
        assert self.column('role list rolled', 'Name') == ['Web', 'Db']

    def assert_status(self, line, code, status):
        found_code, found = self.json(line)
        assert (found_code, found['status']) == (code, status)
        return found

    def test_it_waits_and_an_interrupt_ends_the_waiting_alone(self):
        wait = self.sleep
        self.sleep = mock.Mock(side_effect=KeyboardInterrupt)
        line, code = 'deploy plan', common.INTERRUPTED
        self.assert_status(line, code, 'CREATE_IN_PROGRESS')
        assert '--cancel' in self.stderr.getvalue()
        self.assert_status('deploy plan --cancel', 0, 'CREATE_FAILED')
        self.sleep = wait
        found = self.assert_status('deploy plan', 0, 'UPDATE_COMPLETE')
        assert found['current']
        assert 'Stack plan: UPDATE_IN_PROGRESS' in self.stderr.getvalue()

    def test_a_failure_is_an_exit_code(self):
        self.ends_with = 'FAILED'
        self.assert_status('deploy plan', common.FAILED, 'CREATE_FAILED')
        self.assert_status('deploy plan --no-wait', 0, 'UPDATE_IN_PROGRESS')
        line = 'status plan --wait'
        self.assert_status(line, common.FAILED, 'UPDATE_FAILED')
        self.assert_status('status plan', 0, 'UPDATE_FAILED')

    def test_a_preview_changes_nothing_and_a_refusal_is_an_error(self):
        code, found = self.json('deploy plan --validate-only')
        assert (code, found['added']) == (0, ['node'])
        assert self.cloud.heat.stacks == {}
        self.cloud.heat.become('plan', 'CREATE_COMPLETE')
        self.assert_refused('deploy plan', 'No plan created stack')

    def test_steps_run_one_after_the_other(self):
        steps = [{'action': 'a'}, {'action': 'b'}]
        fakes.change(self.cloud.plans, more={'post_deployment': steps})
        assert self.json('deploy plan')[0] == 0
        assert self.runner.begun == [('a', 'plan plan'), ('b', 'plan plan')]
        with self.assertLogs('', 'WARNING') as logs:
            self.json('deploy plan --no-wait')
        assert 'after a deployment will not run' in logs.output[0]

    def test_a_difference_may_be_an_exit_code(self):
        self.json('deploy plan')
        content = self.cloud.plans.resolve(self.cloud.plans.load('plan'))
        environment = fake_heat.answer(content)['Environment']
        held = {'resources': {}}, environment, dict(content.files)
        self.cloud.heat.contents['plan'] = held
        code, [found] = self.json('diff plan --exit-code')
        assert (code, found['Kind']) == (common.FAILED, 'template')
        _, [found] = self.json('diff plan --names-only')
        assert set(found) == {'Kind', 'Change', 'Name'}
        template = texts.load(content.template, 'root.yaml')
        self.cloud.heat.contents['plan'] = (template, *held[1:])
        with self.assertLogs(level='WARNING') as said:
            assert self.json('diff plan --exit-code') == (0, [])
        assert 'No difference' in said.output[0]

    def test_mistral_or_the_command_runs_required_validations_before_it(self):
        fakes.change(self.cloud.plans, more={'required_validations': ['prep']})
        self.runner.failing = ('validations.run',)
        self.assert_refused('deploy plan --no-wait', 'because')
        assert self.runner.begun == [('validations.run', 'plan plan')]
        assert self.cloud.heat.stacks == {}
        self.has_mistral = False
        self.patch(
            validation_operations,
            'ValidationOperations',
            lambda plans: self.cloud.validations,
        )
        self.run_command('deploy plan --no-wait')
        assert len(self.cloud.machine.begun) == 2
        assert 'plan' in self.cloud.heat.stacks
