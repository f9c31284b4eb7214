# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment action list`` and ``… trigger``."""

import argparse

import fixtures

from heat_plugins import errors
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc import progress
from heat_plugins.runs.start import orders
from tests.unit.osc import base


class ActionListTest(base.CommandTestCase):
    def test_actions_with_their_inputs(self):
        code, found = self.json('action list shop')
        self.assertEqual(0, code)
        self.assertEqual(
            ['BACKUP', 'FAIL/OVER'], [one['Action'] for one in found]
        )
        self.assertEqual(
            {
                'name': 'level',
                'type': 'Number',
                'default': 3,
                'description': None,
            },
            found[0]['Inputs'][1],
        )

    def test_a_stack_that_is_not_there_is_an_error(self):
        self.refused('action list of-another-project')


class TriggerCase(base.CommandTestCase):
    def trigger(self, line):
        return self.json(f'trigger shop {line}')


class TriggerTest(TriggerCase):
    def test_without_wait_it_says_at_once_what_it_has_started(self):
        code, (shown,) = self.trigger('db BACKUP --input level=7')
        self.assertEqual((0, 'waiting'), (code, shown['state']))
        self.assertIn(shown['id'], self.stderr.getvalue())
        self.assertEqual('7', self.inputs()['level'])

    def test_in_a_table_one_run_is_shown_with_all_there_is_of_it(self):
        self.soon(lambda: self.answer(size='1 GB') and None)
        _, output = self.run_command('trigger shop db BACKUP --wait')
        self.assertIn('size: 1 GB', output)

    def test_the_keys_are_those_of_every_command_that_prints_runs(self):
        _, (started,) = self.trigger('db BACKUP')
        wanted = ('shop', started['id'])
        _, (listed,) = self.json('run list shop')
        _, shown = self.json('run show', *wanted)
        _, (cancelled,) = self.json('run cancel', *wanted)
        _, (waited,) = self.json('run wait', *wanted)
        _, repeated = self.json('run rerun', *wanted)
        _, (deleted,) = self.json('run delete', *wanted)
        for found in (listed, shown, cancelled, waited, repeated, deleted):
            self.assertEqual(list(started), list(found))

    def test_wait_ends_with_the_outputs(self):
        self.soon(lambda: self.answer(size='1 GB') and None)
        code, (shown,) = self.trigger('db BACKUP --wait')
        self.assertEqual((0, 'complete'), (code, shown['state']))
        self.assertEqual('1 GB', shown['outputs']['size'])

    def test_a_run_that_times_out_has_a_code_of_its_own(self):
        code, (shown,) = self.trigger('db BACKUP --wait --timeout 5')
        self.assertEqual(
            (common.TIMED_OUT, 'timed-out'), (code, shown['state'])
        )

    def test_ctrl_c_stops_waiting_and_says_how_to_come_back(self):
        def interrupt():
            raise KeyboardInterrupt

        self.soon(interrupt)
        code, (shown,) = self.trigger('db BACKUP --wait')
        self.assertEqual((130, 'waiting'), (code, shown['state']))
        self.assertIn(
            f'openstack software deployment run wait shop {shown["id"]}',
            self.stderr.getvalue(),
        )
        self.assertEqual(1, len(self.heat.given()))

    def test_ctrl_c_before_anything_was_given_to_the_server_undoes_it(self):
        self.heat.failing = {'create_deployment': KeyboardInterrupt()}
        # The client makes exit code 130 of it.
        self.assertRaises(KeyboardInterrupt, self.trigger, 'db BACKUP --wait')
        self.assertEqual([], self.heat.given())
        self.assertEqual([], self.objects())

    def test_on_a_terminal_it_is_one_line(self):
        self.useFixture(fixtures.EnvironmentVariable('TERM', 'xterm'))
        self.patch(progress.Display, 'delay', 0.0)
        self.stderr = base.Terminal()

        def answer():
            base.until(self.stderr.getvalue, 'no start report')
            self.answer()

        self.soon(answer)
        self.trigger('db BACKUP --wait')
        self.assertIn('0:00:', self.stderr.getvalue())

    def test_secrets_are_never_printed(self):
        self.soon(lambda: self.answer() and None)
        line = 'trigger shop db BACKUP --wait --input password=s3cret'
        for form in ('json', 'yaml', 'csv', 'value', 'table'):
            for columns in ('', '-c inputs'):
                self.soon_done = False
                _, output = self.run_command(f'{line} -f {form} {columns}')
                self.assertNotIn('s3cret', output + self.stderr.getvalue())
            self.assertIn('password', output)
        command, words = base.typed(line)
        parser = command(None, None).get_parser('openstack')
        parsed = parser.parse_args(words)
        self.assertNotIn('s3cret', repr(parsed))

    def test_an_input_without_a_name_is_not_quoted(self):
        exc = self.assertRaises(
            argparse.ArgumentTypeError, command_line.Input, 's3cret'
        )
        self.assertNotIn('s3cret', str(exc))

    def test_inputs_from_a_file(self):
        path = self.useFixture(fixtures.TempDir()).join('inputs.yaml')
        with open(path, 'w', encoding='utf-8') as file:
            file.write('level: 8\noptions: {fast: true}\n')
        self.trigger(f'db BACKUP --inputs-file {path}')
        self.assertEqual('8', self.inputs()['level'])
        self.assertEqual({'fast': True}, self.inputs()['options'])

    def test_a_file_that_is_no_map_is_not_quoted(self):
        path = self.useFixture(fixtures.TempDir()).join('inputs.yaml')
        for content in ('- s3cret\n', 'a: [s3cret\n'):
            with open(path, 'w', encoding='utf-8') as file:
                file.write(content)
            line = f'trigger shop db BACKUP --inputs-file {path}'
            self.assertNotIn('s3cret', self.refused(line))

    def test_so_many_are_kept_as_the_caller_says(self):
        def ended(options=''):
            self.trigger(f'db BACKUP {options}')
            self.answer()
            self.now += 1
            _, found = self.json('run list shop')
            return len(found)

        kept = [ended('--keep-runs 2') for _ in range(4)]
        # The last one has ended after older ones were forgotten.
        self.assertEqual([1, 2, 3, 3], kept)
        self.useFixture(
            fixtures.EnvironmentVariable('HEAT_PLUGINS_KEEP_RUNS', '1')
        )
        self.assertEqual(2, ended())
        self.now += 3 * 86400
        self.assertEqual(1, ended('--keep-days 2'))

    def test_a_second_is_refused_and_the_first_is_named(self):
        _, (first,) = self.trigger('db BACKUP')
        self.assert_refused('trigger shop db BACKUP', first['id'])


class SeveralTest(TriggerCase):
    def setUp(self):
        super().setUp()
        self.heat.add_deployment(self.stack, 'web', 'server-2')

    def test_all_that_have_the_action(self):
        self.heat.add_deployment(
            self.stack, 'plain', group='script', config='#!/bin/sh'
        )
        code, shown = self.trigger('--all BACKUP')
        self.assertEqual(0, code)
        self.assertEqual(['db', 'web'], [one['resource'] for one in shown])

    def test_an_action_that_none_has_is_told_from_one_that_is_like_it(self):
        self.assert_refused(
            'trigger shop --all BAKCUP', 'did you mean "BACKUP"?'
        )

    def test_nothing_is_started_if_one_of_them_has_no_such_action(self):
        self.heat.add_deployment(
            self.stack, 'plain', group='script', config='#!/bin/sh'
        )
        self.refused('trigger shop db plain BACKUP')
        self.assertEqual([], self.heat.given())

    def test_they_are_runs_of_one_operation(self):
        _, shown = self.trigger('--all BACKUP')
        (operation,) = {one['operation'] for one in shown}
        self.assertIn(f'Operation {operation}', self.stderr.getvalue())
        single = self.start('FAIL/OVER')
        _, listed = self.json('run list shop')
        self.assertEqual(
            {single.id: None, **{one['id']: operation for one in shown}},
            {one['id']: one['operation'] for one in listed},
        )
        _, found = self.json(f'run show shop {operation[-8:]}.1.1')
        self.assertEqual('web', found['resource'])

    def answer_on(self, server):
        inputs = base.base.values(self.heat.given(server)[-1])
        self.put(inputs['deploy_signal_id'], {'deploy_status_code': 0})

    def stopped(self, number, then):
        """Let a server say that it has stopped, as the command waits."""
        inputs = base.base.values(self.heat.given(f'server-{number}')[-1])
        self.put(inputs['deploy_progress_url'], {})
        result = {'deploy_stopped': 'when told', 'deploy_status_code': 143}

        def sleep(seconds):
            self.now += seconds
            if not self.heat.given(f'server-{number}'):
                self.put(inputs['deploy_signal_id'], result)

        self.sleep = sleep
        return then()

    def test_a_run_of_an_operation_is_cancelled_by_its_id(self):
        _, shown = self.trigger('--all BACKUP')
        run = shown[0]['id']
        code, (cancelled,) = self.stopped(
            1, lambda: self.json(f'run cancel shop {run} --wait')
        )
        self.assertEqual((0, 'cancelled'), (code, cancelled['state']))
        self.assertEqual(
            'Cancelled by ann after the server had begun; stopped',
            cancelled['reason'],
        )
        self.assertEqual('failed', cancelled['late_result']['status'])
        self.assertEqual([], self.heat.given('server-1'))
        self.assertNotEqual([], self.heat.given('server-2'))
        self.assert_refused(f'run cancel shop {run}', 'has ended: cancelled')
        self.answer_on('server-2')
        code, found = self.json(f'operation wait {run.partition(".")[0]}')
        self.assertEqual(
            (common.CANCELLED, '1 cancelled'), (code, found['reason'])
        )

    def test_the_runs_of_a_cancelled_operation_say_that_they_stopped(self):
        _, shown = self.trigger('--all BACKUP')
        operation = shown[0]['operation']
        # It is known that the server has started it.
        self.put(
            base.base.values(self.heat.given('server-1')[-1])[
                'deploy_progress_url'
            ],
            {},
        )
        self.json(f'operation pause {operation}')
        code, _ = self.stopped(
            1, lambda: self.json(f'operation cancel {operation} --wait')
        )
        self.assertEqual(0, code)
        self.assertIn('; stopped', self.stderr.getvalue())
        _, run = self.json(f'run show shop {operation}.0.1')
        self.assertEqual('failed', run['late_result']['status'])

    def test_a_result_that_comes_late_is_kept_with_its_attempt(self):
        _, shown = self.trigger('--all BACKUP --timeout 60 --max-concurrent 1')
        operation = shown[0]['operation']
        url = self.inputs()['deploy_signal_id']
        advancer = self.fleets().advancer(operation)
        self.now += 61
        advancer.step()
        self.put(url, {'deploy_stdout': 'at last', 'deploy_status_code': 0})
        self.now += 2
        attempt = advancer.step().attempts[0]
        self.assertEqual('timed-out', attempt.state)
        self.assertEqual('complete', attempt.late.status)
        self.assertEqual('at last', attempt.late.outputs['deploy_stdout'])
        # It is recorded.
        advancer.release()
        found = self.fleets().show(operation)
        self.assertEqual(attempt, found.attempts[0])
        self.answer_on('server-2')
        self.json(f'operation wait {operation}')
        self.json(f'operation retry {operation}')
        found = self.fleets().show(operation)
        self.assertIsNone(found.attempts[0].late)
        self.assertEqual('complete', found.attempts[0].every[0].late.status)

    def test_a_run_of_an_operation_is_waited_for_by_its_id(self):
        _, shown = self.trigger('--all BACKUP')
        run = shown[0]['id']

        def sleep(seconds):
            self.now += seconds
            if self.heat.given('server-1'):
                self.answer_on('server-1')
            advancer = self.fleets().advancer(shown[0]['operation'])
            advancer.step()
            advancer.release()

        self.sleep = sleep
        code, (waited,) = self.json(f'run wait shop {run}')
        self.assertEqual((0, 'complete'), (code, waited['state']))

    def test_a_run_whose_deployment_is_deleted_says_so(self):
        _, shown = self.trigger('--all BACKUP')
        run = shown[0]['id']
        (target,) = self.runs.find('shop', 'db')
        self.heat.delete_deployment(target.deployment_id)
        _, found = self.json(f'run show shop {run}')
        self.assertEqual(
            'Deployment db of stack shop was deleted or withdrawn from its '
            'server',
            found['reason'],
        )

    def test_the_runs_of_all_stacks_are_listed_together(self):
        other = self.heat.add_stack('till')
        self.heat.add_deployment(other, 'db', 'server-3')
        _, shown = self.trigger('--all BACKUP')
        self.now += 10
        (target,) = self.runs.find('till', 'db')
        single = self.runs.start(target, orders.RunOrder(action='BACKUP'))
        _, listed = self.json('run list')
        self.assertEqual(
            [('till', single.id), *(('shop', one['id']) for one in shown)],
            [(one['stack'], one['id']) for one in listed],
        )
        _, listed = self.json('run list --server server-2')
        self.assertEqual(['web'], [one['resource'] for one in listed])
        _, listed = self.json('run list --server server-2 --server server-3')
        self.assertEqual(
            [('till', 'db'), ('shop', 'web')],
            [(one['stack'], one['resource']) for one in listed],
        )
        self.assertEqual([], self.json('run list --action FAIL/OVER')[1])
        self.assertIn('Started by', self.run_command('run list')[1])

    def test_a_run_of_an_operation_is_deleted_by_its_id(self):
        _, shown = self.trigger('--all BACKUP --timeout 60')
        run, other = shown[0]['id'], shown[1]['id']
        operation = shown[0]['operation']
        self.assert_refused(f'run delete shop {run}', 'cancel it first')
        self.put(
            self.inputs()['deploy_signal_id'],
            {'deploy_stdout': 'x' * 9000, 'deploy_status_code': 1},
        )
        self.answer_on('server-2')
        self.json(f'operation wait {operation}')
        _, (deleted,) = self.json(f'run delete shop {run}')
        self.assertEqual((run, 'failed'), (deleted['id'], deleted['state']))
        self.assertIn('no run', self.refused(f'run show shop {run}'))
        self.assertIn('no run', self.refused(f'run delete shop {run}'))
        _, listed = self.json('run list shop')
        self.assertEqual([other], [one['id'] for one in listed])
        container = 'heat-plugins-operations-project-1'
        names = self.cluster.container(container).objects
        self.assertEqual([], [name for name in names if '/outputs/' in name])
        # How it ended still counts for the operation, and who deleted it.
        _, found = self.json(f'operation show {operation}')
        self.assertEqual({'complete': 1, 'failed': 1}, found['counts'])
        (request,) = found['requests']
        self.assertEqual(
            ('delete-run', 'ann', run),
            (request['do'], request['who'], request['only']),
        )
        _, output = self.run_command(f'operation show {operation}')
        self.assertIn(f'delete-run {run} by ann', output)

    def test_a_former_attempt_is_deleted_by_its_id(self):
        _, shown = self.trigger('--all BACKUP --timeout 60')
        operation = shown[0]['operation']
        self.now += 61
        self.json(f'operation wait {operation}')
        self.json(f'operation retry {operation} --only server-1')
        self.json(f'run delete shop {operation}.0.1')
        self.assertIn('no run', self.refused(f'run show shop {operation}.0.1'))
        _, run = self.json(f'run show shop {operation}.0.2')
        self.assertEqual('waiting', run['state'])
        # Its number is not given again.
        _, listed = self.json('run list shop')
        self.assertEqual(
            {f'{operation}.0.2', f'{operation}.1.1'},
            {one['id'] for one in listed},
        )

    def test_all_runs_of_a_stack_are_those_without_operation(self):
        self.trigger('--all BACKUP')
        code, waited = self.json('run wait shop')
        self.assertEqual((0, []), (code, waited))
        code, deleted = self.json('run delete shop --all')
        self.assertEqual((0, []), (code, deleted))

    def test_one_that_heat_refuses_does_not_keep_the_others(self):
        create = self.heat.create_deployment

        def create_deployment(*, server_id, **more):
            if server_id == 'server-1':
                raise errors.ServiceError('Heat is full')
            return create(server_id=server_id, **more)

        self.heat.create_deployment = create_deployment

        def sleep(seconds):
            self.now += seconds
            for config in self.heat.given('server-2'):
                url = base.base.values(config)['deploy_signal_id']
                self.put(url, {'deploy_stdout': 'x'})

        self.sleep = sleep
        code, shown = self.trigger('--all BACKUP --follow')
        self.assertEqual(common.FAILED, code)
        self.assertEqual(
            [('db', 'failed'), ('web', 'complete')],
            [(one['resource'], one['state']) for one in shown],
        )
        self.assertIn('Heat is full', shown[0]['reason'])
        self.assertIn('shop web: x\n', self.stderr.getvalue())

    def test_so_many_at_a_time(self):
        at_once = []
        answered = set()

        def sleep(seconds):
            self.now += seconds
            given = self.heat.given() + self.heat.given('server-2')
            at_once.append(len(given))
            for config in given:
                if config.id not in answered:
                    self.put(base.base.values(config)['deploy_signal_id'], {})
                answered.add(config.id)

        self.sleep = sleep
        code, shown = self.trigger('--all BACKUP --wait --max-concurrent 1')
        self.assertEqual(0, code)
        self.assertEqual(['complete'] * 2, [one['state'] for one in shown])
        self.assertEqual(1, max(at_once))

    def test_what_is_skipped_is_listed(self):
        single = self.start('BACKUP')
        code, shown = self.trigger('--all BACKUP')
        self.assertEqual(0, code)
        self.assertEqual(
            [('db', 'skipped'), ('web', 'waiting')],
            [(one['resource'], one['state']) for one in shown],
        )
        self.assertIn(single.id, shown[0]['reason'])

    def test_what_runs_everywhere_is_refused_like_a_single_one(self):
        for resource in ('db', 'web'):
            self.start('BACKUP', resource=resource)
        for more in ('', '--wait'):
            code, shown = self.trigger(f'db web BACKUP {more}')
            self.assertEqual(1, code)
            self.assertEqual(['skipped'] * 2, [one['state'] for one in shown])
            self.now += 1
        _, listed = self.json('operation list')
        self.assertEqual(
            {('failed', 'BACKUP already runs on 2')},
            {(one['state'], one['reason']) for one in listed},
        )

    def test_what_to_run_it_on_has_to_be_said(self):
        for line in ('BACKUP', 'db BACKUP --all'):
            self.refused(f'trigger shop {line}')
