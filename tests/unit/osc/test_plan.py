# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan …``, over the fakes of the core."""

import csv
import io
import pathlib
import sys
import tempfile
import types

import fixtures
import yaml

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


class PlanCase(base.CommandCase):
    """A test of commands on plans, of a cloud with Mistral.

    :ivar folder: an empty one.
    :ivar runner: what runs workflows and actions at Mistral.
    """

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
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

    def test_a_plan_of_a_directory(self):
        code, found = self.json(
            f'create new --from {self.folder} --description "For me"'
        )
        self.assertEqual((0, 'For me'), (code, found['description']))
        self.assertEqual(['secret'], found['secrets'])
        _, listed = self.json('list')
        self.assertEqual(['new', 'plan'], [one['Name'] for one in listed])

    def test_a_plan_of_what_was_exported_is_the_same(self):
        tarball = str(self.folder / 'plan.tar.gz')
        self.run_command(f'export plan {tarball} --secrets')
        mode = pathlib.Path(tarball).stat().st_mode
        self.assertEqual(0o600, mode & 0o777)
        self.json(f'create new --from {tarball}')
        plans = self.cloud.plans
        self.assertEqual(
            set(plans.load('plan').entries), set(plans.load('new').entries)
        )

    def test_an_export_that_fails_leaves_what_was_there(self):
        tarball = self.folder / 'plan.tar.gz'
        tarball.write_text('the former one')
        self.refused(f'export nope {tarball}')
        self.assertEqual('the former one', tarball.read_text())
        self.assertEqual([], list(self.folder.glob('.plan-*')))

    def test_an_export_says_which_values_it_leaves_out(self):
        log = self.useFixture(fixtures.FakeLogger())
        self.json('parameter set plan secret=geheim')
        self.cloud.plans.update(
            'plan', {'base.yaml': fakes.environment(secret='in-a-file')}
        )
        self.run_command(f'export plan {self.folder}/x.tar.gz')
        self.assertIn('Left out: secret, generated passwords (1).', log.output)
        self.assertIn('the secrets that they set: base.yaml', log.output)
        self.assertNotIn('in-a-file', log.output)

    def test_files_are_changed_and_taken_out(self):
        (self.folder / 'new.yaml').write_text('{}')
        (self.folder / 'environments/large.yaml').unlink()
        code, found = self.json(
            f'set plan --from {self.folder} --remove environments/large.yaml'
        )
        self.assertEqual((0, len(fakes.content())), (code, found['files']))

    def packed(self, **files):
        path = self.folder / 'some.tar.gz'
        with path.open('wb') as file, tarballs.writer(file) as add:
            for name, content in files.items():
                add(name, content)
        return str(path)

    def test_a_folder_around_all_files_is_left_out_as_it_was_first(self):
        files = {f'x-1.0/{k}': v for k, v in fakes.content().items()}
        for command in ('create', 'set'):
            self.json(f'{command} new --from {self.packed(**files)}')
            self.assertEqual(
                set(fakes.content()), set(self.cloud.objects('new'))
            )
        # One that the plan has is part of the paths.
        tarball = self.packed(**{'environments/more.yaml': b'{}'})
        self.json(f'set new --from {tarball}')
        self.assertIn('environments/more.yaml', self.cloud.objects('new'))

    def test_nothing_of_what_is_needed_is_pruned(self):
        self.assert_refused('set plan --prune', 'root.yaml')

    def test_a_plan_without_a_stack_is_deleted_in_silence(self):
        self.assertEqual((0, ''), self.run_command('delete plan'))
        self.assertIsNone(self.cloud.objects())

    def test_a_plan_that_is_not_there_is_an_error(self):
        for command in (
            'show',
            'delete',
            'capability list',
            'parameter list',
            'role list',
            'deploy',
            'status',
            'diff',
        ):
            self.assert_refused(f'{command} nope', 'no plan nope')


class ChooseTest(PlanCase):
    def test_what_can_be_chosen_is_listed_in_every_format(self):
        _, found = self.json('capability list plan')
        base = next(one for one in found if one['Environment'] == 'base.yaml')
        self.assertTrue(base['Enabled'])
        _, output = self.run_command('capability list plan -f csv')
        rows = list(csv.DictReader(io.StringIO(output)))
        self.assertEqual(len(found), len(rows))
        _, found = self.json('capability list plan --enabled')
        self.assertEqual(['base.yaml'], [one['Environment'] for one in found])

    def test_environments_are_enabled_with_what_they_require(self):
        backup, large = (f'environments/{n}.yaml' for n in ('backup', 'large'))
        _, found = self.json(
            f'capability set plan --enable {backup} --with-requirements'
        )
        self.assertEqual(
            ['base.yaml', large, backup], [one['Environment'] for one in found]
        )

    def test_parameters_are_set_listed_and_taken_back(self):
        _, found = self.json('parameter set plan who=a=b')
        self.assertEqual([{'Parameter': 'who'}], found)
        _, listed = self.json('parameter list plan --long')
        who, secret = listed
        self.assertEqual(('a=b', 'plan'), (who['Value'], who['Origin']))
        self.assertEqual('world', who['Default'])
        self.assertEqual(('******', True), (secret['Value'], secret['Hidden']))
        _, found = self.json('parameter unset plan who')
        self.assertEqual([], found)
        self.refused('parameter set plan')
        self.refused('capability set plan')

    def test_parameters_are_listed_by_template_and_by_role(self):
        template = fakes.content()['root.yaml'].replace(
            b'parameters:', b'parameters:\n  WebCount: {type: number}', 1
        )
        roles = b'[{name: Web}, {name: Db}]'
        self.cloud.plans.create(
            'rolled',
            fakes.content(**{'root.yaml': template, 'roles_data.yaml': roles}),
        )
        _, listed = self.json('parameter list rolled --role Web')
        self.assertEqual(['WebCount'], [one['Name'] for one in listed])
        self.assertNotIn('Places', listed[0])
        _, listed = self.json('parameter list rolled --nested --role Web')
        self.assertEqual(['.'], listed[0]['Places'])
        self.assertNotIn('Default', listed[0])
        self.assertEqual([], self.json('parameter list rolled --role Db')[1])
        _, listed = self.json('role list rolled')
        self.assertEqual(['Web', 'Db'], [one['Name'] for one in listed])

    def test_parameters_are_set_from_a_file(self):
        file = self.folder / 'values.yaml'
        for text in ('who: moon', 'parameter_defaults: {who: moon}'):
            file.write_text(text)
            self.json(f'parameter set plan --file {file}')
            who, _ = self.json('parameter list plan')[1]
            self.assertEqual('moon', who['Value'])
            self.json('parameter unset plan who')
        self.patch(sys, 'stdin', io.StringIO('who: sun'))
        self.json('parameter set plan --file -')
        self.assertEqual(
            'sun', self.json('parameter list plan')[1][0]['Value']
        )
        file.write_text('')
        self.assert_refused(f'parameter set plan --file {file}', 'or --file')

    def test_a_value_is_not_in_what_debugging_logs(self):
        parser = plan_choose.SetParameters(None, None).get_parser('openstack')
        parsed = parser.parse_args(['plan', 'who=geheim'])
        self.assertNotIn('geheim', repr(parsed))


class DeployTest(PlanCase):
    def plan_with_steps(self):
        fakes.change(
            self.cloud.plans,
            more={'post_deployment': [{'action': 'a'}, {'action': 'b'}]},
        )

    def test_it_waits_and_shows_how_it_stands(self):
        code, found = self.json('deploy plan')
        self.assertEqual((0, 'CREATE_COMPLETE'), (code, found['status']))
        self.assertTrue(found['current'])
        said = self.stderr.getvalue()
        self.assertIn('Stack plan: CREATE_IN_PROGRESS', said)

    def test_a_failure_is_one(self):
        self.ends_with = 'FAILED'
        code, found = self.json('deploy plan')
        self.assertEqual(
            (common.FAILED, 'CREATE_FAILED'), (code, found['status'])
        )
        self.json('deploy plan --no-wait')
        for line, wanted in (
            ('status plan --wait', common.FAILED),
            ('status plan', 0),
        ):
            self.assertEqual(wanted, self.json(line)[0])

    def test_what_was_not_begun_is_an_error(self):
        self.cloud.heat.become('plan', 'CREATE_COMPLETE')
        self.assert_refused('deploy plan', 'No plan created stack')

    def test_steps_run_one_after_the_other(self):
        self.plan_with_steps()
        code, _ = self.json('deploy plan')
        self.assertEqual(0, code)
        self.assertEqual(
            [('a', 'plan plan'), ('b', 'plan plan')],
            self.runner.begun,
        )

    def test_it_need_not_wait(self):
        code, found = self.json('deploy plan --no-wait')
        self.assertEqual((0, 'CREATE_IN_PROGRESS'), (code, found['status']))

    def test_an_interrupt_ends_the_waiting_alone(self):
        def interrupt(seconds):
            raise KeyboardInterrupt

        self.sleep = interrupt
        code, found = self.json('deploy plan')
        self.assertEqual(
            (common.INTERRUPTED, 'CREATE_IN_PROGRESS'), (code, found['status'])
        )
        self.assertIn('--cancel', self.stderr.getvalue())

    def test_a_preview_changes_nothing(self):
        code, found = self.json('deploy plan --validate-only')
        self.assertEqual((0, ['node']), (code, found['added']))
        self.assertEqual({}, self.cloud.heat.stacks)

    def test_it_can_be_cancelled(self):
        self.json('deploy plan --no-wait')
        _, found = self.json('deploy plan --cancel')
        self.assertEqual('CREATE_FAILED', found['status'])

    def test_a_difference_may_be_an_exit_code(self):
        self.json('deploy plan')
        content = self.cloud.plans.resolve(self.cloud.plans.load('plan'))
        template = {'resources': {}}
        self.cloud.heat.contents['plan'] = (
            template,
            fake_heat.answer(content)['Environment'],
            dict(content.files),
        )
        code, found = self.json('diff plan --exit-code')
        self.assertEqual(
            (common.FAILED, ['template']),
            (code, [one['Kind'] for one in found]),
        )
        _, output = self.run_command('diff plan -f yaml')
        self.assertEqual('template', yaml.safe_load(output)[0]['Kind'])
        _, found = self.json('diff plan --names-only')
        self.assertEqual({'Kind', 'Change', 'Name'}, set(found[0]))
        self.cloud.heat.contents['plan'] = (
            texts.load(content.template, 'root.yaml'),
            fake_heat.answer(content)['Environment'],
            dict(content.files),
        )
        with self.assertLogs(level='WARNING') as said:
            code, found = self.json('diff plan --exit-code')
        self.assertEqual((0, []), (code, found))
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
