# SPDX-License-Identifier: Apache-2.0
"""``software deployment run logs``, and ``--follow``."""

import dataclasses
import threading
from urllib import parse

from heat_plugins import errors
from heat_plugins.osc.runs import run_output
from heat_plugins.signals import live
from tests.unit.osc import base


class LogsCase(base.CommandTestCase):
    def send(self, content, number=0, name=None):
        """Send a part of the output, as the server does."""
        url = parse.urlsplit(self.inputs()['deploy_log_url'])
        offset = number * live.SLOT
        name = name or live.slot_name(offset, 2, 3)
        if name != live.END:
            content = b'1 %d 2 3\n' % offset + content
        full = url._replace(path=url.path + name).geturl()
        self.assertEqual(201, self.cluster.put_signed(full, content))

    def sends(self, *acts):
        """Let the server do one thing each time that somebody waits."""
        left = list(acts)

        def sleep(seconds):
            self.now += seconds
            if left:
                left.pop(0)()

        self.sleep = sleep

    def end(self, size, **outputs):
        self.send(b'%d' % size, name=live.END)
        self.answer(**outputs)

    def logs(self, run, line=''):
        return self.run_command(f'run logs shop {run.id} {line}')


class RunLogsTest(LogsCase):
    def setUp(self):
        super().setUp()
        self.run_ = self.start()

    def test_what_is_there_is_shown(self):
        self.send(b'one\ntwo')
        self.assertEqual((0, 'one\ntwo'), self.logs(self.run_))
        self.assertEqual('', self.stderr.getvalue())

    def test_it_is_followed_to_the_end_of_the_run(self):
        self.sends(
            lambda: self.send(b''),
            lambda: self.send(b'one\n'),
            lambda: self.send(b'one\ntwo\n'),
            lambda: self.end(8),
        )
        self.assertEqual((0, 'one\ntwo\n'), self.logs(self.run_, '-f'))
        self.assertIn('complete after', self.stderr.getvalue())

    def test_its_exit_code_is_that_of_the_run(self):
        self.sends(
            lambda: self.send(b'no\n'),
            lambda: self.end(3, deploy_status_code=7),
        )
        self.assertEqual((3, 'no\n'), self.logs(self.run_, '-f'))

    def test_it_is_there_after_the_end(self):
        self.send(b'all of it')
        self.end(9)
        self.assertEqual((0, 'all of it'), self.logs(self.run_))
        self.assertEqual((0, 'all of it'), self.logs(self.run_, '-f'))

    def test_binary_is_written_as_it_is(self):
        self.send(b'\0\x80\xff\x1b[31m')
        _, output = self.run_command(
            f'run logs shop {self.run_.id}', encoding='latin-1'
        )
        self.assertEqual('\0\x80\xff\x1b[31m', output)

    def test_another_agent_reports_at_the_end_only(self):
        self.sends(lambda: self.answer(deploy_stdout='a\n', deploy_stderr='b'))
        self.assertEqual((0, 'a\nb'), self.logs(self.run_, '-f'))
        self.assertIn('sends output only at the end', self.stderr.getvalue())

    def test_of_a_server_that_is_silent_it_is_said_meanwhile(self):
        said = []
        began = self.now

        def sleep(seconds):
            self.now += seconds
            if self.now - began > 50 and not said:
                said.append(self.stderr.getvalue())
                self.answer()

        self.sleep = sleep
        self.logs(self.run_, '-f')
        self.assertIn('sends output only at the end', said[0])
        self.assertEqual(1, self.stderr.getvalue().count('only at the end'))

    def test_what_is_left_out_is_told(self):
        for number in range(7):
            self.send(b'x' * live.SLOT, number)
        self.end(7 * live.SLOT)
        _, output = self.logs(self.run_)
        told = f'\n[{2 * live.SLOT} bytes omitted]\n'
        self.assertEqual(5 * live.SLOT + len(told), len(output))
        self.assertIn(told, output)

    def test_what_the_server_sends_after_a_cancel_is_shown(self):
        self.send(b'half ')
        urls = self.inputs()
        run = self.runs.cancel('shop', self.run_.id)

        def rest():
            url = parse.urlsplit(urls['deploy_log_url'])
            for name, content in (
                ('000000', b'1 0 2 3\nhalf rest'),
                ('end', b'9'),
            ):
                full = url._replace(path=url.path + name).geturl()
                self.cluster.put_signed(full, content)

        self.sends(rest)
        self.assertEqual((0, 'half rest'), self.logs(run))

    def test_a_run_that_never_began_is_not_waited_for_long(self):
        run = self.runs.cancel('shop', self.run_.id)
        before = self.now
        self.assertEqual((0, ''), self.logs(run))
        self.assertLessEqual(self.now - before, 20)

    def test_a_store_that_fails_for_a_while_is_waited_for(self):
        self.sends(
            lambda: self.send(b'one\n'),
            lambda: self.cluster.fail(6),
            *[lambda: None] * 6,
            lambda: (self.send(b'one\ntwo\n'), self.end(8)),
        )
        self.assertEqual((0, 'one\ntwo\n'), self.logs(self.run_, '-f'))

    def test_a_store_that_fails_at_the_end_loses_nothing(self):
        def fail_parts(request):
            if '/runs/logs/' in request.url and failing:
                failing.pop()
                raise errors.Unavailable('503')

        failing = [1] * 5
        self.sends(
            lambda: self.send(b'one\n'),
            lambda: (
                self.send(b'one\ntwo\n'),
                self.end(8),
                setattr(self.cluster, 'before', fail_parts),
            ),
        )
        self.assertEqual((0, 'one\ntwo\n'), self.logs(self.run_, '-f'))
        self.assertEqual([], failing)


class FollowTest(LogsCase):
    def follow(self, line):
        return self.run_command(f'trigger shop {line} --follow')

    def test_trigger_shows_it_on_standard_error(self):
        self.sends(
            lambda: self.send(b'half a li'),
            lambda: self.send(b'half a line\n\x1b[2Jrest'),
            lambda: self.end(20),
        )
        code, output = self.follow('db BACKUP -f json')
        self.assertEqual(0, code)
        self.assertNotIn('half a line', output)
        lines = self.stderr.getvalue().splitlines()
        self.assertEqual(
            ['half a line', r'\x1b[2Jrest'],
            [x for x in lines if 'Run' not in x],
        )
        # Before what became of the run.
        self.assertIn('complete after', lines[-1])

    def test_apply_and_rerun_follow_too(self):
        for line in ('trigger', 'apply', 'run rerun'):
            command, _ = base.typed(line)
            parser = command(None, None).get_parser('openstack')
            self.assertIn('--follow', parser.format_help())

    def test_a_limit_that_cannot_be_is_refused(self):
        for given in ('1', '1000000000000', 'x'):
            line = f'db BACKUP --log-limit {given}'
            self.assertRaises(SystemExit, self.follow, line)
        self.assertEqual([], self.heat.given('server-1'))

    def test_each_of_several_servers_is_told_the_limit(self):
        self.heat.add_deployment(self.stack, 'db2', server='server-2')
        for line, limit, servers in (
            ('db BACKUP --log-limit 200000', '200000', '1'),
            ('db db2 BACKUP --log-limit 200001', '200001', '12'),
            ('db db2 BACKUP', '10000000', '12'),
        ):
            self.run_command(f'trigger shop {line}')
            for server in servers:
                config = self.heat.given(f'server-{server}')[-1]
                given = base.base.values(config)
                self.assertEqual(limit, given['deploy_log_limit'])


class ManyOutputsTest(LogsCase):
    def test_the_outputs_of_servers_are_read_at_the_same_time(self):
        run = self.start()
        self.send(b'one\n')
        meeting = threading.Barrier(4)
        asked = []

        def meet(request):
            # The first request for each output waits for the others.
            if threading.get_ident() not in asked:
                asked.append(threading.get_ident())
                meeting.wait(base.PATIENCE)

        shown = []
        output = run_output.Output(
            self.runs, None, lambda run: run_output.Lines(self, f'{run.id}: ')
        )
        self.say = lambda *lines: shown.extend(lines)
        for number in range(4):
            name = f'other-{number}' if number else run.id
            output.add(dataclasses.replace(run, id=name))
        self.cluster.before = meet
        output.poll()
        self.assertEqual([f'{run.id}: one'], shown)


class CancelTest(base.CommandTestCase):
    def setUp(self):
        super().setUp()
        self.run_ = self.start()
        self.url = self.inputs()['deploy_signal_id']

    def cancel(self, line=''):
        return self.run_command(f'run cancel shop {self.run_.id} {line}')

    def test_wait_says_how_it_stopped(self):
        self.soon(lambda: self.put(self.url, {'deploy_stopped': 'by force'}))
        code, output = self.cancel('--wait')
        self.assertEqual(0, code)
        self.assertIn('stopped by force', output)
        self.assertIn('; stopped by force', self.stderr.getvalue())

    def test_wait_says_that_a_server_has_not_reacted(self):
        code, _ = self.cancel('--wait')
        self.assertEqual(6, code)
        self.assertIn('the server has not reacted', self.stderr.getvalue())
        self.assertIn('runs nothing else', self.stderr.getvalue())

    def test_many_are_cancelled_and_awaited_at_the_same_time(self):
        names = [self.run_.id]
        for number in range(3):
            self.heat.add_deployment(
                self.stack, f'db{number}', server=f'server-{number + 2}'
            )
            names.append(self.start(resource=f'db{number}').id)
        meeting = threading.Barrier(4)
        met = set()

        def meet(request):
            who = threading.get_ident()
            if request.method == 'PUT' and who not in met:
                met.add(who)
                meeting.wait(base.PATIENCE)

        self.cluster.before = meet
        code, _ = self.run_command('run cancel shop', *names, '--wait')
        self.assertEqual(6, code)
        self.assertEqual(
            names, [name for name in names if f'Run {name}' in self.said()]
        )

    def said(self):
        return self.stderr.getvalue()

    def test_without_wait_it_says_what_depends_on_the_server(self):
        code, _ = self.cancel()
        self.assertEqual(0, code)
