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
from heat_plugins import retrying
from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.osc.runs import start_commands
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import dispatch
from heat_plugins.runs.fleet import fleets
from tests.unit.osc import base
from tests.unit.runs.fleet import simulation

Run = start_commands.RunOperation

#: The first part of what a server prints, as it sends that.
PART = b'1 0 1 1\nbeginning\n'


class OperationCase(base.CommandCase):
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
        clock = types.SimpleNamespace(
            time=lambda: world.now,
            monotonic=lambda: world.now,
            sleep=world.sleep,
        )
        for module in (common, following):
            self.patch(module, 'time', clock)

    def run_it(self, line):
        return self.json(f'operation run BACKUP {line}')


class OperationTestCase(OperationCase):
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
        self.patch(dispatch, '_CHUNK', 1)
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
        self.patch(retrying, 'BUDGET', 0)
        self.assert_refused(line, '503')

    def test_a_wait_that_begins_in_an_outage_rides_it_out(self):
        for line in ('operation wait {}', 'operation output {} --follow'):
            _, shown = self.run_it('--stack s0')
            self.world.dark_until = self.world.now + 200
            code, _ = self.json(line.format(shown['id']))
            self.assertEqual(0, code)
            self.assertIn(
                'nothing is served. Retrying for 300 s', self.stderr.getvalue()
            )
            _, shown = self.json(f'operation show {shown["id"]}')
            self.assertEqual('complete', shown['state'])

    def test_an_outage_that_lasts_ends_the_wait(self):
        _, shown = self.run_it('--stack s0')
        began = self.world.now
        for line, seconds in (('', 300), ('--timeout 20', 20)):
            self.world.dark_until = self.world.now + 1000
            began = self.world.now
            line = f'operation wait {shown["id"]} {line}'
            self.assert_refused(line, 'nothing is served')
            self.assertEqual(seconds, self.world.now - began)
        # What does not wait says at once what is wrong.
        began = self.world.now
        for line in ('show', 'output'):
            line = f'operation {line} {shown["id"]}'
            self.assert_refused(line, 'nothing is served')
        self.assertEqual(began, self.world.now)

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

    def test_a_retry_is_followed(self):
        self.use(simulation.World(4, fail=[2]))
        _, shown = self.run_it('--stack s0 --wait')
        self.world.fail.clear()
        code, shown = self.json(f'operation retry {shown["id"]} --follow')
        self.assertEqual((0, 'complete'), (code, shown['state']))
        self.assertIn('s0 server2: n2', self.stderr.getvalue())

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

    def test_operations_of_a_deleted_stack_are_listed(self):
        self.run_it('--stack s0 --wait')
        stack = self.world.stacks[0]
        del self.world.heat.stacks[stack.id]
        for name in 's0', stack.id:
            _, listed = self.json(f'operation list --stack {name}')
            self.assertEqual(1, len(listed))
            line = f'operation list --stack {name} --state cancelled'
            self.assertEqual((0, []), self.json(line))

    def test_a_script_says_that_it_runs_on_servers(self):
        self.assert_refused(
            'operation run --stack s0 --resource db0 -- uptime',
            'There is no target for the script: a script runs on servers',
            'Stack s0: Its servers: server0, server2',
        )
        self.assert_refused(
            'operation run BACKUP --stack s0 --resource server0',
            'an action runs on deployments',
            'Its deployments: db0, db2',
        )

    def test_options_of_a_script_choose_no_targets(self):
        self.refused('operation run -- uptime --resource db0')
        self.assertIn(
            '--resource stands after "--", so it belongs to the script',
            self.stderr.getvalue(),
        )

    def test_a_wait_for_approval_says_how_to_approve(self):
        line = '--stack s0 --stack s1 --canary 1 --approve-after-canary'
        _, shown = self.run_it(line)
        operation = shown['id']
        line = f'operation wait {operation} --timeout 60'
        code, shown = self.json(line)
        self.assertEqual(common.STILL_RUNNING, code)
        resume = f'openstack software deployment operation resume {operation}'
        self.assertIn(resume, shown['reason'])
        said = self.stderr.getvalue()
        self.assertIn(f'the others: {resume}', said)
        stopped = said.partition('Stopped waiting; ')[2]
        commands = 'openstack software deployment operation'
        self.assertEqual(
            [
                'the operation is waiting-for-approval.',
                f'The canaries have succeeded. To start the others: {resume}',
                'Wait again, or cancel it:',
                f'  {commands} wait {operation}',
                f'  {commands} cancel {operation}',
            ],
            stopped.splitlines()[:5],
        )
        self.assertNotIn(f'{operation}.', said)

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
        self.patch(start_commands.sys, 'stdin', terminal)
        refusal = self.refused('operation run BACKUP --stack s0 --stack s1')
        self.assertEqual('Nothing was started', refusal)
        self.assertIn('Run BACKUP on these 12', self.stderr.getvalue())
        self.assertEqual([], self.world.given)
        self.assertEqual(0, self.run_it('--stack s0 --stack s1 --yes')[0])
        self.assertEqual(0, self.run_it('--stack s0 --stack s1')[0])

    def test_too_many_for_a_pipeline_are_refused(self):
        self.use(simulation.World(11, stacks=1))
        self.assert_refused(
            'operation run BACKUP --stack s0',
            'Run BACKUP on these 11 targets?',
            'give --yes',
        )
        code, _ = self.run_it('--stack s0 --dry-run')
        self.assertEqual(0, code)
        self.use(simulation.World(10, stacks=1))
        self.assertEqual(0, self.run_it('--stack s0')[0])

    def test_those_that_are_left_out_need_no_confirmation(self):
        self.use(simulation.World(10, stacks=1))
        for number in range(40):
            self.world.heat.add_deployment(
                self.world.stacks[0], f'a{number}', f's-{number}', config={}
            )
        self.assertEqual(0, self.run_it('--stack s0')[0])

    def test_a_question_says_what_differs(self):
        self.use(simulation.World(12, names=['s0']))
        self.patch(start_commands, '_SHOWN', 2)
        self.patch(start_commands.sys, 'stdin', base.Terminal())
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
        self.assert_refused('operation list --stack s2', 'no stack s2')
        stack = self.world.stacks[0].id
        _, listed = self.json(f'operation list --stack {stack}')
        self.assertEqual(1, len(listed))
        code, deleted = self.json(f'operation delete {shown["id"]} nope')
        self.assertEqual((1, [{'id': shown['id']}]), (code, deleted))
        self.assertIsNone(self.world.cluster.container(simulation.CONTAINER))
        for command in ('show', 'delete'):
            self.assert_refused(
                f'operation {command} {shown["id"]}', 'no operation'
            )

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

        def withdraw(row_id, *server):
            told.append('beginning' in self.stderr.getvalue())
            return delete(row_id, *server)

        self.world.heat.delete_deployment = withdraw
        self.json(f'operation output {shown["id"]} --follow')
        self.assertEqual([True, True], told)

    def test_output_is_shown_while_results_are_read(self):
        self.world.silent = {2}
        _, shown = self.run_it('--stack s0 --timeout 60')
        put, url = self.world.cluster.put_signed, self.log_url('server-2')
        put(url, PART)
        delete, told = self.world.heat.delete_deployment, []
        wait = following.futures.wait
        self.patch(
            following.futures,
            'wait',
            lambda steps, timeout: wait(steps, 0.01),
        )

        def withdraw(row_id, *server):
            if not told:
                put(url, PART.replace(b'beginning', b'beginning\nnext'))
                # For the next listing.
                self.world.now += 1
                end = time.monotonic() + 60
                while not told and time.monotonic() < end:
                    if 'next' in self.stderr.getvalue():
                        told.append(row_id)
                    time.sleep(0.01)
            return delete(row_id, *server)

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

    def page(self, line):
        """Return the page of an operation, and what the command shows."""
        folder = self.useFixture(fixtures.TempDir()).path
        line = f'--stack s0 --wait --output {folder}/r.html {line}'
        _, shown = self.run_it(line)
        with open(f'{folder}/r.html') as file:
            return file.read(), shown

    def test_what_stopped_an_operation_stands_on_its_page(self):
        self.use(simulation.World(6, stacks=1, fail=[0]))
        page, shown = self.page('--max-concurrent 1')
        self.assertEqual({'not-started': 5, 'failed': 1}, shown['counts'])
        self.assertIn('<p class="reason of-failed">More failures', page)
        self.assertIn('failed, 16% of 6 targets.', page)
        self.assertIn('is-not-started">not-started<', page)
        self.assertNotIn('pending<', page)

    def test_success_is_not_shown_in_the_colour_of_failures(self):
        self.use(simulation.World(1, stacks=1))
        page, _ = self.page('')
        self.assertIn('<p class="reason of-complete">It succeeded<', page)
        self.assertIn('100% of 1 target.', page)
        self.assertIn(
            '.reason.of-complete { border-color: var(--complete); }', page
        )

    def test_the_page_has_a_line_for_each_reason(self):
        self.use(simulation.World(6, stacks=1, fail=range(6)))
        page, _ = self.page('--max-errors 6')
        (listed,) = re.findall('<ul class="failures">(.*?)</ul>', page)
        self.assertEqual(1, listed.count('<li>'))
        self.assertIn('6 servers (s0 server0, s0 server1, s0 se', listed)

    def test_it_is_told_how_to_come_back_after_an_interruption(self):
        def sleep(seconds):
            raise KeyboardInterrupt

        self.patch(following.time, 'sleep', sleep)
        code, shown = self.run_it('--stack s0 --wait')
        self.assertEqual(common.INTERRUPTED, code)
        self.assertIn(f'operation wait {shown["id"]}', self.stderr.getvalue())

    def fail_each(self, world):
        """Let each server fail for a reason of its own."""

        def answer(row, wrong=world._answer):
            wrong(row)
            at, url, body = world.answers.pop()
            body['deploy_stderr'] = f'no space on disk of {row.server_id}'
            world.answers.append((at, url, body))

        world._answer = answer
        self.use(world)

    def test_failures_for_one_reason_are_one_line(self):
        self.use(simulation.World(50, fail=range(50)))
        line = 'operation run BACKUP --stack s0 --stack s1 --max-errors 50'
        _, shown = self.run_command(f'{line} --wait --yes')
        rows = [row for row in shown.splitlines() if 'exit status' in row]
        (row,) = rows
        self.assertIn(
            '50 servers (s0 server0, s0 server10, s0 server12, ', row
        )
        self.assertIn('and 47 more): failed: the exit status', row)
        self.assertLess(max(map(len, shown.splitlines())), 150)
        self.assertEqual(1, self.stderr.getvalue().count('exit status'))

    def test_failures_for_many_reasons_are_twenty_lines(self):
        self.fail_each(simulation.World(50, fail=range(50)))
        line = 'operation run BACKUP --stack s0 --stack s1 --max-errors 50'
        _, shown = self.run_command(f'{line} --wait --yes')
        said = self.stderr.getvalue()
        self.assertEqual(19, said.count('no space on disk'))
        (command,) = re.findall(
            '(?:more|Further failures): openstack software deployment (.*)',
            said,
        )
        self.assertEqual(20, shown.count('failed: the exit') + 1)
        self.assertIn('and 31 servers more: openstack software depl', shown)
        _, listed = self.json(command)
        self.assertEqual(50, len(listed))

    def test_results_are_shared_without_inputs_and_scripts(self):
        command = 'operation run --stack s0 --wait --input password=sesame'
        _, output = self.run_command(f'{command} -f json -- echo well')
        operation = json.loads(output)['id']
        _, shared = self.json(f'operation share {operation} --days 2')
        self.assertIn(
            f'openstack object save {shared["container"]} {operation}.html',
            self.stderr.getvalue(),
        )
        container = self.world.cluster.container(shared['container'])
        self.assertEqual('project-1:*', container.meta['x-container-read'])
        self.assertEqual(shared['objects'], sorted(container.objects))
        self.assertEqual({'172800'}, {*container.lifetimes.values()})
        for content in container.objects.values():
            self.assertIn(b'server2', content)
            self.assertIn(b'n2', content)
            for secret in b'sesame', b'password', b'echo well', b'temp_url':
                self.assertNotIn(secret, content)
        # Nobody else gets into the records.
        records = self.world.cluster.container(simulation.CONTAINER)
        self.assertNotIn('x-container-read', records.meta)
        self.json(f'operation delete {operation}')
        self.assertIsNone(self.world.cluster.container(shared['container']))

    def test_who_may_only_read_is_told_what_is_missing(self):
        self.world.cluster.fail(times=99, status=403, method='GET')
        self.assert_refused(
            'operation list',
            'needs a role in this project that the object store accepts',
            'a read ACL of the container',
            'openstack software deployment operation share',
        )

    def test_a_table_is_for_people(self):
        self.use(simulation.World(4, fail=[0]))
        _, shown = self.run_command('operation run BACKUP --stack s0 --wait')
        self.assertIn('server0: failed: the exit status', shown)
        self.assertNotIn('server-0', shown)
