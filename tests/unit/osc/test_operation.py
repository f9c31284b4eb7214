# SPDX-License-Identifier: Apache-2.0
import base64
import hashlib
import json
import os
import re
import time
import types
from unittest import mock

import fixtures

from heat_plugins import errors
from heat_plugins.osc import common
from heat_plugins.osc.runs import operation_following
from heat_plugins.osc.runs import operation_progress
from heat_plugins.osc.runs import operation_run
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import giving
from tests.unit.osc import base
from tests.unit.runs.fleet import simulation

Run = operation_run.RunOperation

#: The first part of what a server prints, as it sends that.
PART = b'1 0 1 1\nbeginning\n'


class OperationTestCase(base.CommandCase):
    def setUp(self):
        super().setUp()
        self.use(simulation.World(4))

    def use(self, world):
        self.world = world
        self.patch(
            common,
            'fleets',
            lambda manager: fleets.Fleets(world.heat, world.tools()),
        )
        self.patch(common, 'orchestration', lambda manager: world.heat)
        self.patch(common, 'service', world.service)
        self.patch(
            operation_following,
            'time',
            types.SimpleNamespace(
                time=lambda: world.now,
                monotonic=lambda: world.now,
                sleep=world.sleep,
            ),
        )

    def run_it(self, line):
        return self.json(f'operation run BACKUP {line}')

    def test_it_runs_over_stacks(self):
        code, shown = self.run_it('--stack s0 --stack s1 --wait')
        self.assertEqual(0, code)
        self.assertEqual('complete', shown['state'])
        self.assertEqual({'complete': 4}, shown['counts'])
        self.assertEqual(['s0', 's1'], shown['stacks'])
        self.assertEqual(4, len(self.world.executed))
        said = self.stderr.getvalue()
        self.assertIn('BACKUP on 4 targets, at most 50 at a time', said)
        self.assertIn('4 of 4 done: 4 complete', said)

    def test_it_goes_on_without_the_command(self):
        code, shown = self.run_it('--stack s0 --stack s1 --max-concurrent 1')
        self.assertEqual(0, code)
        self.assertEqual({'pending': 3, 'waiting': 1}, shown['counts'])
        self.assertIn('operation wait', self.stderr.getvalue())
        code, shown = self.json(f'operation wait {shown["id"][-8:]}')
        self.assertEqual((0, 'complete'), (code, shown['state']))

    def test_what_is_started_at_once_is_started_without_a_pause(self):
        self.patch(giving, '_CHUNK', 1)
        _, shown = self.run_it('--stack s0 --stack s1')
        self.assertEqual({'waiting': 4}, shown['counts'])
        _, shown = self.run_it('--stack s0 --stack s1 --wait')
        _, found = self.json(f'operation output {shown["id"]}')
        self.assertEqual(1, len({one['started_at'] for one in found}))

    def test_a_wait_has_its_time(self):
        self.world.silent = {0, 2}
        _, shown = self.run_it('--stack s0')
        began = self.world.now
        line = f'operation wait {shown["id"]} --timeout 12'
        self.assertEqual(common.STILL_RUNNING, self.json(line)[0])
        self.assertIn('Stopped waiting', self.stderr.getvalue())
        self.assertTrue(12 <= self.world.now - began <= 13)

    def test_a_wait_rides_out_an_outage(self):
        _, shown = self.run_it('--stack s0')
        step, left = advancing.Advancer.step, [errors.Unavailable('503')] * 2
        self.patch(
            advancing.Advancer,
            'step',
            lambda advancer: (
                mock.Mock(side_effect=left.pop())() if left else step(advancer)
            ),
        )
        line = f'operation wait {shown["id"]}'
        code, shown = self.json(line)
        self.assertEqual((0, 'complete'), (code, shown['state']))
        left.append(errors.Unavailable('503'))
        self.patch(operation_following, '_BUDGET', -1)
        self.assert_refused(line, '503')

    def test_it_stops_at_failures_and_says_which(self):
        self.use(simulation.World(4, fail=[2]))
        code, shown = self.run_it('--resource db* --max-concurrent 1 --wait')
        self.assertEqual(common.FAILED, code)
        (failure,) = shown['failures']
        self.assertEqual('server2', failure['server_name'])
        self.assertIn('s0 server2: failed', self.stderr.getvalue())
        code, shown = self.json(f'operation retry {shown["id"]} --wait')
        self.assertEqual(common.FAILED, code)
        self.world.fail.clear()
        _, shown = self.json(f'operation retry {shown["id"]}')
        self.assertEqual('running', shown['state'])
        code, shown = self.json(f'operation wait {shown["id"]}')
        self.assertEqual((0, 'complete'), (code, shown['state']))
        self.assertEqual(6, len(self.world.executed))

    def test_targets_are_chosen_by_tag_and_metadata(self):
        self.world.heat.tags[self.world.stacks[0].id] = ['production']
        code, shown = self.run_it(
            '--stack-tag production --server-metadata role=web --dry-run'
        )
        self.assertEqual(0, code)
        self.assertEqual(
            ['db0', 'db2'],
            [one['resource'] for one in shown if one['is_target']],
        )
        self.assert_refused(
            'operation run BACKUP --stack s0 --server-metadata role=none',
            'its server has other metadata',
        )

    def test_a_command_runs_on_servers(self):
        code, output = self.run_command(
            'operation run --stack s0 --wait -f json -- uptime -p'
        )
        shown = json.loads(output)
        self.assertEqual((0, 'APPLY'), (code, shown['action']))
        self.assertEqual(2, shown['targets'])
        self.assertEqual(2, len(self.world.executed))

    def test_a_script_is_started_by_whoever_comes_after(self):
        _, output = self.run_command(
            'operation run --stack s0 --max-concurrent 1 -f json -- uptime'
        )
        operation = json.loads(output)['id']
        code, shown = self.json(f'operation wait {operation}')
        self.assertEqual((0, {'complete': 2}), (code, shown['counts']))

    def test_it_is_named_though_a_service_is_out_of_order(self):
        def step(advancer):
            raise errors.Unavailable('Heat is out of order')

        self.patch(advancing.Advancer, 'step', step)
        code, shown = self.run_it('--stack s0')
        self.assertEqual((0, {'pending': 2}), (code, shown['counts']))
        said = self.stderr.getvalue()
        self.assertIn('Heat is out of order', said)
        self.assertIn(f'operation wait {shown["id"]}', said)

    def test_an_unknown_action_is_refused_with_the_known_ones(self):
        self.assert_refused(
            'operation run BAKCUP --stack s0',
            'did you mean "BACKUP"?',
            'FAIL/OVER',
        )

    def test_nothing_named_is_refused(self):
        self.assert_refused(
            'operation run BACKUP --stack s0 --approve-after-canary',
            '--approve-after-canary needs --canary',
        )
        self.assert_refused('operation run BACKUP', 'name stacks')
        self.assert_refused('operation run --stack s0', 'Name an action')

    def test_many_targets_are_confirmed(self):
        self.use(simulation.World(12))
        self.assert_refused(
            'operation run BACKUP --stack s0 --stack s1', 'give --yes'
        )
        terminal = base.Terminal('n\nyes\n')
        self.patch(operation_run.sys, 'stdin', terminal)
        refusal = self.refused('operation run BACKUP --stack s0 --stack s1')
        self.assertEqual('Nothing was started', refusal)
        self.assertIn('Run BACKUP on these 12', self.stderr.getvalue())
        self.assertEqual([], self.world.given)
        self.assertEqual(0, self.run_it('--stack s0 --stack s1 --yes')[0])
        self.assertEqual(0, self.run_it('--stack s0 --stack s1')[0])

    def test_a_question_says_what_differs(self):
        self.use(simulation.World(12, names=['s0']))
        self.patch(operation_run, '_SHOWN', 2)
        self.patch(operation_run.sys, 'stdin', base.Terminal())
        stack, heat = self.world.stacks[0], self.world.heat
        heat.add_deployment(stack, 'other', 'server-99')
        heat.add_deployment(stack, 'lacks', 'server-98', config={})
        self.refused('operation run BACKUP --stack s0')
        said = self.stderr.getvalue()
        self.assertIn('  s0 server1\n  and 11 more; --dry-run', said)
        self.assertIn('They run 2 different configs for BACKUP', said)
        self.assertIn('left out: s0 lacks: it has no action BACKUP', said)

    def test_it_is_paused_resumed_and_cancelled(self):
        _, shown = self.run_it('--stack s0 --stack s1 --max-concurrent 1')
        operation = shown['id']
        _, shown = self.json(f'operation pause {operation}')
        self.assertEqual('paused', shown['state'])
        _, shown = self.json(f'operation resume {operation}')
        self.assertEqual('running', shown['state'])
        self.assert_refused(f'operation resume {operation}', 'not paused')
        _, shown = self.json(f'operation cancel {operation}')
        self.assertEqual('cancelled', shown['state'])
        self.assertEqual([], self.world.given)
        self.assert_refused(f'operation pause {operation}', 'has ended')

    def test_operations_are_listed_and_deleted(self):
        _, shown = self.run_it('--stack s0 --wait')
        _, listed = self.json('operation list --stack s0')
        self.assertEqual([shown['id']], [one['id'] for one in listed])
        _, listed = self.json('operation list --stack s1')
        self.assertEqual([], listed)
        code, deleted = self.json(f'operation delete {shown["id"]} nope')
        self.assertEqual((1, [{'id': shown['id']}]), (code, deleted))
        self.assertIsNone(self.world.cluster.container(simulation.CONTAINER))
        for command in ('show', 'delete'):
            self.assert_refused(
                f'operation {command} {shown["id"]}', 'no operation'
            )

    def test_outputs_are_shown_and_written(self):
        _, shown = self.run_it('--stack s0 --wait')
        folder = self.useFixture(fixtures.TempDir()).path
        _, found = self.json(
            f'operation output {shown["id"]} --output-dir {folder}'
        )
        self.assertEqual(
            ['n0', 'n2'], [one['outputs']['deploy_stdout'] for one in found]
        )
        with open(f'{folder}/s0/db2/deploy_stdout') as file:
            self.assertEqual('n2', file.read())

    def test_one_that_has_not_started_has_no_outputs(self):
        _, shown = self.run_it('--stack s0 --max-concurrent 1')
        folder = self.useFixture(fixtures.TempDir()).path
        self.json(f'operation output {shown["id"]} --output-dir {folder}')
        self.assertEqual([], os.listdir(f'{folder}/s0/db2'))

    def test_output_is_followed_with_the_names_of_servers(self):
        _, shown = self.run_it('--stack s0')
        operation = shown['id']
        self.world.cluster.seen.clear()
        code, _ = self.json(f'operation output {operation} --follow')
        self.assertEqual(0, code)
        said = self.stderr.getvalue()
        self.assertIn('s0 server0: n0\n', said)
        self.assertIn('s0 server2: n2\n', said)
        self.assertNotIn('sends output only at the end', said)

    def log_url(self, server):
        """Return where a server sends the first part of its output."""
        (row,) = [one for one in self.world.given if one.server_id == server]
        (url,) = [
            one['value']
            for one in self.world.heat.configs[row.config_id].inputs
            if one['name'] == 'deploy_log_url'
        ]
        return url.replace('?', '000000?')

    def test_output_is_shown_before_the_results_of_others_are_read(self):
        self.world.silent = {2}
        _, shown = self.run_it('--stack s0 --timeout 60')
        url = self.log_url('server-2')
        put = self.world.cluster.put_signed

        def put_both(*result):
            put(url, PART)
            return put(*result)

        self.world.cluster.put_signed = put_both
        delete, told = self.world.heat.delete_deployment, []

        def withdraw(row_id):
            told.append('beginning' in self.stderr.getvalue())
            return delete(row_id)

        self.world.heat.delete_deployment = withdraw
        self.json(f'operation output {shown["id"]} --follow')
        self.assertEqual([True, True], told)

    def test_output_is_shown_while_results_are_read(self):
        self.world.silent = {2}
        _, shown = self.run_it('--stack s0 --timeout 60')
        put, url = self.world.cluster.put_signed, self.log_url('server-2')
        put(url, PART)
        delete, told = self.world.heat.delete_deployment, []
        wait = operation_following.futures.wait
        self.patch(
            operation_following.futures,
            'wait',
            lambda steps, timeout: wait(steps, 0.01),
        )

        def withdraw(row_id):
            if not told:
                put(url, PART.replace(b'beginning', b'beginning\nnext'))
                # For the next listing.
                self.world.now += 1
                end = time.monotonic() + 60
                while not told and time.monotonic() < end:
                    if 'next' in self.stderr.getvalue():
                        told.append(row_id)
                    time.sleep(0.01)
            return delete(row_id)

        self.world.heat.delete_deployment = withdraw
        self.json(f'operation output {shown["id"]} --follow')
        self.assertEqual(1, len(told))

    def test_output_comes_while_the_servers_work(self):
        self.world.silent = {0, 2}
        _, shown = self.run_it('--stack s0 --timeout 60')
        put = self.world.cluster.put_signed
        self.assertEqual(201, put(self.log_url('server-2'), PART))
        self.world.cluster.seen.clear()
        code, _ = self.json(
            f'operation output {shown["id"]} --follow --server server2'
        )
        self.assertEqual(common.TIMED_OUT, code)
        self.assertIn('s0 server2: beginning\n', self.stderr.getvalue())
        seen = [
            one
            for one in self.world.cluster.seen
            if 'operations/logs/' in one.query.get('prefix', '')
        ]
        # One listing a second, however many servers there are.
        self.assertLessEqual(len(seen), 80)

    def test_the_page_holds_no_secret_and_no_script_of_a_server(self):
        folder = self.useFixture(fixtures.TempDir()).path
        self.world.stdout = '<script>alert(1)</script>'
        given = f'--input password=sesame --output {folder}/run.html'
        self.run_it(f'--stack s0 --wait {given}')
        with open(f'{folder}/run.html') as file:
            page = file.read()
        self.assertNotIn('sesame', page)
        self.assertNotIn('<script>alert', page)
        self.assertIn('&lt;script&gt;alert(1)', page)
        self.assertNotIn('http-equiv="refresh"', page)
        self.assertIn('<svg', page)
        # A browser runs what has this hash, and nothing else.
        (policy,) = re.findall(r"script-src '([^;]*)'", page)
        (script,) = re.findall('<script>(.*?)</script>', page, re.DOTALL)
        digest = hashlib.sha256(script.encode()).digest()
        self.assertEqual(f'sha256-{base64.b64encode(digest).decode()}', policy)
        self.assertNotIn('onsubmit', page)

    def test_a_link_that_another_user_has_put_there_is_not_written_to(self):
        folder = self.useFixture(fixtures.TempDir()).path
        with open(f'{folder}/mine', 'w') as file:
            file.write('kept')
        os.symlink('mine', f'{folder}/.run.html.new')
        self.run_it(f'--stack s0 --wait --output {folder}/run.html')
        with open(f'{folder}/mine') as file:
            self.assertEqual('kept', file.read())
        with open(f'{folder}/run.html') as file:
            self.assertIn('<svg', file.read())

    def test_failures_come_first_on_the_page(self):
        folder = self.useFixture(fixtures.TempDir()).path
        self.use(simulation.World(6, stacks=1, fail=[4]))
        self.run_it(f'--stack s0 --wait --output {folder}/r.html')
        with open(f'{folder}/r.html') as file:
            rows = file.read().partition('<tbody>')[2]
        self.assertLess(rows.index('server4'), rows.index('server0'))

    def test_it_is_told_how_to_come_back_after_an_interruption(self):
        def sleep(seconds):
            raise KeyboardInterrupt

        self.patch(operation_following.time, 'sleep', sleep)
        code, shown = self.run_it('--stack s0 --wait')
        self.assertEqual(common.INTERRUPTED, code)
        self.assertIn(f'operation wait {shown["id"]}', self.stderr.getvalue())

    def test_of_many_failures_some_are_named(self):
        self.use(simulation.World(2, fail=[0, 1]))
        self.patch(operation_progress, '_NAMED', 1)
        self.run_it('--stack s0 --stack s1 --wait')
        self.assertEqual(1, self.stderr.getvalue().count(': failed after '))

    def test_a_table_is_for_people(self):
        self.use(simulation.World(4, fail=[0]))
        _, shown = self.run_command('operation run BACKUP --stack s0 --wait')
        self.assertIn('server0: failed: the exit status', shown)
        self.assertNotIn('server-0', shown)
