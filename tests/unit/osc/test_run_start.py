# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment run start``, and its older names."""

import json

from cliff import commandmanager
import fixtures

from heat_plugins.osc import common
from heat_plugins.osc.runs import start_commands
from tests.unit.osc import base


class StartCase(base.CommandTestCase):
    def setUp(self):
        super().setUp()
        self.patch(common, 'orchestration', lambda manager: self.heat)
        self.heat.add_resource(
            self.stack, 'server', 'OS::Heat::DeployedServer', 'server-1'
        )

    def begin(self, line):
        return self.json(f'run start {line}')

    def keys(self, line):
        return [*self.json(line)[1]]


class OneTest(StartCase):
    def setUp(self):
        super().setUp()
        self.heat.tags[self.stack.id] = ['t']

    def test_one_target_gets_a_run(self):
        self.soon(lambda: self.answer(size='1 GB') and None)
        code, shown = self.begin(
            'BACKUP --stack shop --resource db --input level=7 --wait'
        )
        self.assertEqual((0, 'complete'), (code, shown['state']))
        self.assertEqual('1 GB', shown['outputs']['size'])
        self.assertIsNone(shown['operation'])
        self.assertEqual(self.keys(f'run show shop {shown["id"]}'), [*shown])

    def test_a_run_that_fails_has_the_code_of_a_trigger(self):
        self.soon(lambda: self.answer(deploy_status_code=1) and None)
        code, shown = self.begin('BACKUP --stack shop --resource db --wait')
        self.assertEqual((common.FAILED, 'failed'), (code, shown['state']))

    def test_whoever_stops_waiting_learns_how_to_come_back(self):
        def interrupt():
            raise KeyboardInterrupt

        self.soon(interrupt)
        code, shown = self.begin('BACKUP --stack-tag t --wait')
        self.assertEqual(130, code)
        self.assertIn(
            f'openstack software deployment run wait shop {shown["id"]}',
            self.stderr.getvalue(),
        )

    def test_what_runs_already_is_refused(self):
        first = self.start('BACKUP')
        self.assert_refused('run start BACKUP --stack shop', first.id)

    def test_limits_of_operations_make_one(self):
        page = self.useFixture(fixtures.TempDir()).join('run.html')
        for more in '--deadline 60', '--if-running wait', f'--output {page}':
            code, shown = self.begin(f'BACKUP --stack shop {more}')
            self.assertEqual((0, 1), (code, shown['targets']))
            self.json(f'operation cancel {shown["id"]}')
            self.now += 1


class SeveralTest(StartCase):
    def setUp(self):
        super().setUp()
        self.heat.add_deployment(self.stack, 'web', 'server-2')

    def test_several_targets_are_an_operation(self):
        code, shown = self.begin('BACKUP --stack shop --max-concurrent 1')
        self.assertEqual((0, 2), (code, shown['targets']))
        self.assertEqual({'waiting': 1, 'pending': 1}, shown['counts'])
        self.assertEqual(self.keys(f'operation show {shown["id"]}'), [*shown])

    def engine_that_starts_later(self):
        """Let an engine lead what it is offered, and start runs later."""
        engines = []

        def ask(operation_id):
            engines.append(self.fleets().advancer(operation_id))

        def sleep(seconds):
            self.now += seconds
            for each in engines:
                each.step() if each.is_leading else each.lead()

        self.heat.engine, self.sleep = ask, sleep

    def test_what_an_engine_starts_is_shown(self):
        self.engine_that_starts_later()
        code, shown = self.begin('BACKUP --stack shop')
        self.assertEqual((0, {'waiting': 2}), (code, shown['counts']))
        self.assertIn('heat-engine advances', self.stderr.getvalue())

    def test_what_becomes_of_a_canary_is_not_shown_without_wait(self):
        self.engine_that_starts_later()
        _, shown = self.begin(
            'BACKUP --stack shop --canary 1 --approve-after-canary'
        )
        self.assertEqual({'waiting': 1, 'pending': 1}, shown['counts'])
        *_, last = self.stderr.getvalue().splitlines()
        self.assertIn('heat-engine advances', last)

    def test_an_engine_starts_no_more_than_the_limit_before_that(self):
        self.engine_that_starts_later()
        began = self.now
        _, shown = self.begin('BACKUP --stack shop --max-concurrent 1')
        self.assertEqual({'waiting': 1, 'pending': 1}, shown['counts'])
        self.assertLess(self.now - began, 40)

    def test_an_engine_that_starts_nothing_keeps_no_command(self):
        engines = []
        self.heat.engine = lambda operation_id: engines.append(
            self.fleets().advancer(operation_id)
        )

        def sleep(seconds):
            self.now += seconds
            for each in engines:
                each.lead()

        self.sleep = sleep
        began = self.now
        _, shown = self.begin('BACKUP --stack shop')
        self.assertEqual(2, shown['targets'])
        self.assertLess(self.now - began, 120)

    def test_what_an_engine_skips_everywhere_is_refused(self):
        for resource in 'db', 'web':
            self.start('BACKUP', resource=resource)
        self.engine_that_starts_later()
        code, shown = self.begin('BACKUP --stack shop')
        self.assertEqual((1, {'skipped': 2}), (code, shown['counts']))

    def test_targets_are_listed_before(self):
        _, listed = self.begin('BACKUP --stack shop --dry-run')
        self.assertEqual(['db', 'web'], [one['resource'] for one in listed])
        self.assertEqual([], self.heat.given())

    def test_what_runs_everywhere_is_refused_like_a_single_run(self):
        for resource in 'db', 'web':
            self.start('BACKUP', resource=resource)
        code, shown = self.begin('BACKUP --stack shop')
        self.assertEqual((1, {'skipped': 2}), (code, shown['counts']))
        self.now += 1
        # The older name ends as its operation does.
        code, shown = self.json('operation run BACKUP --stack shop')
        self.assertEqual((0, 'failed'), (code, shown['state']))


class ScriptTest(StartCase):
    def setUp(self):
        super().setUp()
        self.path = self.useFixture(fixtures.TempDir()).join('fix.sh')
        with open(self.path, 'w', encoding='utf-8') as file:
            file.write('#!/bin/sh\n')

    def test_a_script_on_one_server_is_a_run(self):
        self.soon(lambda: self.answer(size='3') and None)
        code, shown = self.begin(
            f'--stack shop --resource server --config-file {self.path} '
            '--script-output size --wait'
        )
        self.assertEqual((0, 'APPLY'), (code, shown['action']))
        self.assertEqual('3', shown['outputs']['size'])
        (given,) = self.json('run list shop')[1]
        self.assertEqual(shown['id'], given['id'])

    def test_an_action_beside_it_names_it_in_the_records(self):
        config = self.heat.add_config(name='own')
        _, shown = self.begin(
            f'BACKUP --stack shop --resource server --config {config.id} '
            '--input password=x'
        )
        self.assertEqual('BACKUP', shown['action'])
        self.assertEqual('x', self.inputs()['password'])

    def test_a_command_after_two_dashes(self):
        _, output = self.run_command(
            'run start --stack shop -f json -- uptime -p'
        )
        self.assertEqual('server', json.loads(output)['resource'])
        (config,) = self.heat.given()
        self.assertEqual('#!/bin/sh\nexec uptime -p\n', config.config)

    def test_a_server_of_a_type_of_the_stacks_environment_is_one(self):
        self.heat.add_resource(self.stack, 'own', 'My::Server', 'server-3')
        self.assert_refused(
            f'run start --stack shop --resource own --config-file {self.path}',
            'a script runs on servers',
        )
        self.heat.attributes['own', 'os_collect_config'] = {}
        _, shown = self.begin(
            f'--stack shop --resource own --config-file {self.path}'
        )
        self.assertEqual('own', shown['resource'])

    def test_what_to_run_has_to_be_said_once(self):
        for line in (
            '--stack shop',
            'BACKUP --stack shop -- uptime',
            f'--stack shop --config-file {self.path} -- uptime',
        ):
            self.assert_refused(f'run start {line}', 'Name an action')


class NamesTest(base.testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.manager = commandmanager.CommandManager('no.such.namespace')
        for name in base.commands():
            self.manager.add_command(name.replace('_', ' '), None)

    def matched(self, line):
        _, name, arguments = self.manager.find_command(line.split())
        return name, arguments

    def test_the_older_names_are_the_same_code(self):
        for name in (
            'software_deployment_trigger',
            'software_deployment_apply',
            'software_deployment_operation_run',
        ):
            command = base.command(name)
            self.assertIs(
                start_commands.StartRun.take_action, command.take_action
            )
            self.assertIs(start_commands.StartRun.arguments, command.arguments)
            described = ' '.join(command.__doc__.split())
            self.assertIn('"software deployment run start"', described)

    def test_it_hides_no_command_and_none_hides_it(self):
        prefix = 'software deployment run'
        for verb in 'list', 'show', 'wait', 'delete', 'start':
            # As a stack, or as an action.
            for line in f'{prefix} {verb} list', f'{prefix} start {verb}':
                name = ' '.join(line.split()[:4])
                self.assertEqual((name, line.split()[4:]), self.matched(line))
        self.assertEqual(
            (f'{prefix} start', ['--stack', 'list']),
            self.matched(f'{prefix} start --stack list'),
        )

    def test_without_its_verb_a_name_could_be_taken_for_another(self):
        # cliff completes verbs: so the command needs one.
        for stack in 'list', 'w', 'd':
            name, arguments = self.matched(
                f'software deployment run {stack} BACKUP'
            )
            self.assertEqual(
                (f'software deployment run {stack}', ['BACKUP']),
                (name, arguments),
            )
