# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan …``, over the fakes of the core."""

import io
import sys
import types

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

CHECKS = (('ram', validation_fakes.playbook('RAM', 'prep')),)


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


class PlanCase(base.FolderCase):
    """A test of commands on plans, of a cloud with Mistral.

    :ivar runner: what runs workflows and actions at Mistral.
    """

    def setUp(self):
        super().setUp()
        self.cloud = validation_fakes.Cloud()
        self.cloud.heat.answer = fake_heat.answer
        self.runner = Runner()
        self.has_mistral = True
        operations = plan_operations.PlanOperations(self.cloud.plans)
        for module, name, made in (
            (plan_common, 'operations', lambda manager: operations),
            (common, 'cloud', lambda manager: None),
            (mistral_api, 'is_there', lambda cloud: self.has_mistral),
            (mistral_plans, 'WorkflowExecutions', lambda cloud: self.runner),
            (
                plan_deploy,
                'time',
                types.SimpleNamespace(sleep=lambda s: self.sleep(s)),
            ),
        ):
            self.patch(module, name, made)
        self.cloud.plans.create('plan', fakes.content())
        self.ends_with = 'COMPLETE'

    def column(self, line, name):
        """Return a column of the table that a command shows."""
        return [row[name] for row in self.json(line)[1]]

    def sleep(self, seconds):
        """Let Heat be done as soon as somebody waits."""
        stack = self.cloud.heat.stacks['plan']
        if stack.in_progress:
            self.cloud.heat.become(
                'plan', f'{stack.action}_{self.ends_with}', reason='so it is'
            )


class FilesTest(PlanCase):
    def setUp(self):
        super().setUp()
        for path, content in fakes.content().items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def test_a_plan_is_created_of_a_directory_and_listed(self):
        code, found = self.json(
            f'create new --from {self.folder} --description "For me"'
        )
        self.assertEqual((0, 'For me'), (code, found['description']))
        self.assertEqual(['secret'], found['secrets'])
        self.assertEqual(['new', 'plan'], self.column('list', 'Name'))
        self.assertEqual((0, ''), self.run_command('delete new'))
        self.assertEqual(['plan'], self.column('list', 'Name'))

    def test_an_export_can_be_created_again(self):
        tarball = self.folder / 'plan.tar.gz'
        self.run_command(f'export plan {tarball} --secrets')
        self.assertEqual(0o600, tarball.stat().st_mode & 0o777)
        self.json(f'create new --from {tarball}')
        self.assertEqual(set(fakes.content()), set(self.cloud.objects('new')))
        # A folder that the plan has is part of the paths of a tarball.
        with (
            (self.folder / 'set.tar.gz').open('wb') as file,
            tarballs.writer(file) as add,
        ):
            add('environments/more.yaml', b'{}')
        self.json(f'set new --from {file.name}')
        self.assertIn('environments/more.yaml', self.cloud.objects('new'))
        # A failed export keeps the former file.
        tarball.write_text('the former one')
        self.refused(f'export nope {tarball}')
        self.assertEqual('the former one', tarball.read_text())
        self.assertEqual([], list(self.folder.glob('.plan-*')))

    def test_an_export_warns_of_the_values_that_it_leaves_out(self):
        log = self.useFixture(fixtures.FakeLogger())
        self.json('parameter set plan secret=geheim')
        self.cloud.plans.update(
            'plan', {'base.yaml': fakes.environment(secret='in-a-file')}
        )
        self.run_command(f'export plan {self.folder}/x.tar.gz')
        self.assertIn('Left out: secret, generated passwords (1).', log.output)
        self.assertIn('the secrets that they set: base.yaml', log.output)
        self.assertNotIn('in-a-file', log.output)

    def test_files_are_changed_and_removed(self):
        (self.folder / 'new.yaml').write_text('{}')
        (self.folder / 'environments/large.yaml').unlink()
        code, found = self.json(
            f'set plan --from {self.folder} --remove environments/large.yaml'
        )
        self.assertEqual((0, len(fakes.content())), (code, found['files']))
        self.assert_refused('set plan --prune', 'root.yaml')

    def test_a_missing_plan_is_an_error(self):
        lists = [
            f'{each} list' for each in ('capability', 'parameter', 'role')
        ]
        for command in (*lists, 'show', 'delete', 'deploy', 'status', 'diff'):
            self.assert_refused(f'{command} nope', 'no plan nope')


class ChooseTest(PlanCase):
    def test_choices_are_listed_and_enabled(self):
        found = self.column('capability list plan', 'Environment')
        _, output = self.run_command('capability list plan -f csv')
        self.assertEqual(len(found) + 1, len(output.splitlines()))
        enabled = 'capability list plan --enabled'
        self.assertEqual(['base.yaml'], self.column(enabled, 'Environment'))
        backup, large = (f'environments/{n}.yaml' for n in ('backup', 'large'))
        line = f'capability set plan --enable {backup} --with-requirements'
        self.assertEqual(
            ['base.yaml', large, backup], self.column(line, 'Environment')
        )
        self.refused('capability set plan')

    def test_parameters_are_set_listed_and_unset(self):
        self.assertEqual(
            ['who'], self.column('parameter set plan who=a=b', 'Parameter')
        )
        _, (who, secret) = self.json('parameter list plan --long')
        self.assertEqual(
            ('a=b', 'plan', 'world'),
            (who['Value'], who['Origin'], who['Default']),
        )
        self.assertEqual(('******', True), (secret['Value'], secret['Hidden']))
        self.assertEqual([], self.json('parameter unset plan who')[1])
        self.refused('parameter set plan')

    def test_parameters_are_listed_by_template_and_by_role(self):
        template = fakes.content()['root.yaml'].replace(
            b'parameters:', b'parameters:\n  WebCount: {type: number}', 1
        )
        roles = b'[{name: Web}, {name: Db}]'
        files = {'root.yaml': template, 'roles_data.yaml': roles}
        self.cloud.plans.create('rolled', fakes.content(**files))
        _, [web] = self.json('parameter list rolled --role Web')
        self.assertEqual('WebCount', web['Name'])
        self.assertNotIn('Places', web)
        _, [web] = self.json('parameter list rolled --nested --role Web')
        self.assertEqual(['.'], web['Places'])
        self.assertNotIn('Default', web)
        self.assertEqual([], self.json('parameter list rolled --role Db')[1])
        names = self.column('role list rolled', 'Name')
        self.assertEqual(['Web', 'Db'], names)

    def test_parameters_are_set_from_a_file(self):
        file = self.folder / 'values.yaml'
        for text in ('who: moon', 'parameter_defaults: {who: moon}'):
            file.write_text(text)
            self.json(f'parameter set plan --file {file}')
            values = self.column('parameter list plan', 'Value')
            self.assertEqual('moon', values[0])
            self.json('parameter unset plan who')
        self.patch(sys, 'stdin', io.StringIO('who: sun'))
        self.json('parameter set plan --file -')
        self.assertEqual('sun', self.column('parameter list plan', 'Value')[0])
        file.write_text('')
        self.assert_refused(f'parameter set plan --file {file}', 'or --file')

    def test_a_value_is_not_in_the_log_of_debugging(self):
        parser = plan_choose.SetParameters(None, None).get_parser('openstack')
        parsed = parser.parse_args(['plan', 'who=geheim'])
        self.assertNotIn('geheim', repr(parsed))


class DeployTest(PlanCase):
    def assert_status(self, line, code, status):
        found_code, found = self.json(line)
        self.assertEqual((code, status), (found_code, found['status']))
        return found

    def test_it_waits_and_shows_the_status(self):
        found = self.assert_status('deploy plan', 0, 'CREATE_COMPLETE')
        self.assertTrue(found['current'])
        said = self.stderr.getvalue()
        self.assertIn('Stack plan: CREATE_IN_PROGRESS', said)

    def test_a_failure_is_an_exit_code(self):
        self.ends_with = 'FAILED'
        self.assert_status('deploy plan', common.FAILED, 'CREATE_FAILED')
        self.assert_status('deploy plan --no-wait', 0, 'UPDATE_IN_PROGRESS')
        self.assert_status(
            'status plan --wait', common.FAILED, 'UPDATE_FAILED'
        )
        self.assert_status('status plan', 0, 'UPDATE_FAILED')

    def test_a_preview_changes_nothing_and_a_refusal_is_an_error(self):
        code, found = self.json('deploy plan --validate-only')
        self.assertEqual((0, ['node']), (code, found['added']))
        self.assertEqual({}, self.cloud.heat.stacks)
        self.cloud.heat.become('plan', 'CREATE_COMPLETE')
        self.assert_refused('deploy plan', 'No plan created stack')

    def test_steps_run_one_after_the_other(self):
        steps = [{'action': 'a'}, {'action': 'b'}]
        fakes.change(self.cloud.plans, more={'post_deployment': steps})
        self.assertEqual(0, self.json('deploy plan')[0])
        self.assertEqual(
            [('a', 'plan plan'), ('b', 'plan plan')], self.runner.begun
        )
        with self.assertLogs('', 'WARNING') as logs:
            self.json('deploy plan --no-wait')
        self.assertIn('after a deployment will not run', logs.output[0])

    def test_an_interrupt_ends_the_waiting_alone(self):
        def interrupt(seconds):
            raise KeyboardInterrupt

        self.sleep = interrupt
        self.assert_status(
            'deploy plan', common.INTERRUPTED, 'CREATE_IN_PROGRESS'
        )
        self.assertIn('--cancel', self.stderr.getvalue())
        self.assert_status('deploy plan --cancel', 0, 'CREATE_FAILED')

    def test_a_difference_may_be_an_exit_code(self):
        self.json('deploy plan')
        content = self.cloud.plans.resolve(self.cloud.plans.load('plan'))
        environment = fake_heat.answer(content)['Environment']
        held = {'resources': {}}, environment, dict(content.files)
        self.cloud.heat.contents['plan'] = held
        code, [found] = self.json('diff plan --exit-code')
        self.assertEqual((common.FAILED, 'template'), (code, found['Kind']))
        _, [found] = self.json('diff plan --names-only')
        self.assertEqual({'Kind', 'Change', 'Name'}, set(found))
        template = texts.load(content.template, 'root.yaml')
        self.cloud.heat.contents['plan'] = (template, *held[1:])
        with self.assertLogs(level='WARNING') as said:
            self.assertEqual((0, []), self.json('diff plan --exit-code'))
        self.assertIn('No difference', said.output[0])


class RequiredTest(PlanCase):
    """A plan whose deployment needs the validations of the group prep."""

    def setUp(self):
        super().setUp()
        files = {f'validations/{name}.yaml': text for name, text in CHECKS}
        self.cloud.plans.update('plan', files)
        fakes.change(self.cloud.plans, more={'required_validations': ['prep']})

    def test_mistral_runs_them_before_it(self):
        self.runner.failing = ('validations.run',)
        self.assert_refused('deploy plan --no-wait', 'because')
        self.assertEqual([('validations.run', 'plan plan')], self.runner.begun)
        self.assertEqual({}, self.cloud.heat.stacks)

    def test_the_command_runs_them_where_there_is_no_mistral(self):
        self.has_mistral = False
        self.patch(
            validation_operations,
            'ValidationOperations',
            lambda plans: self.cloud.validations,
        )
        self.run_command('deploy plan --no-wait')
        self.assertEqual(1, len(self.cloud.machine.begun))
        self.assertIn('plan', self.cloud.heat.stacks)
