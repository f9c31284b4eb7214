# SPDX-License-Identifier: Apache-2.0
"""``software deployment run logs``, and ``--follow``."""

import dataclasses
import threading
import tracemalloc
from urllib import parse

import testtools

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.osc.runs import following
from heat_plugins.runs.records import record_names
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

    def test_half_a_surrogate_pair_in_an_output_is_shown_as_its_escape(self):
        # As another user may have written the record.
        outputs = {'deploy_stdout': 'half \udcff a pair\n'}
        self.patch(type(self.runs), 'outputs', lambda *_: outputs)
        self.sends(self.answer)
        shown = self.logs(self.run_, '-f')
        self.assertEqual((0, 'half \\udcff a pair\n'), shown)

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

    def test_a_wait_that_begins_in_an_outage_rides_it_out(self):
        run = self.run_
        for line in ('run wait', 'run show --watch', 'run logs -f'):
            run = self.start() if run.ended else run
            self.cluster.fail(20)
            self.sends(*[lambda: None] * 30, self.answer)
            code, _ = self.run_command(f'{line} shop {run.id}')
            self.assertEqual(0, code)
            self.assertIn('. Retrying for 300 s', self.stderr.getvalue())
            self.stderr.truncate(0)
            run = self.show(run)
        self.cluster.fail(1000)
        # What does not wait says at once what is wrong.
        began = self.now
        self.assert_refused(f'run logs shop {run.id}', '503')
        self.assertEqual(began, self.now)

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
        self.heat.add_deployment(self.stack, 'db3', server='server-3')
        # No action twice on a server at a time.
        for line, limit, servers in (
            ('db3 BACKUP --log-limit 200000', '200000', '3'),
            ('db db2 BACKUP --log-limit 200001', '200001', '12'),
            ('db db2 FAIL/OVER', '10000000', '12'),
        ):
            self.run_command(f'trigger shop {line}')
            for server in servers:
                config = self.heat.given(f'server-{server}')[-1]
                given = base.base.values(config)
                self.assertEqual(limit, given['deploy_log_limit'])


class ManyOutputsTest(LogsCase):
    def test_the_outputs_of_servers_are_read_at_the_same_time(self):
        run = self.start()
        meeting = threading.Barrier(4)

        def meet(request):
            # One listing tells of all; what it names is fetched together.
            if request.method == 'GET' and 'prefix=' not in request.url:
                meeting.wait(base.PATIENCE)

        shown = []
        output = following.Output(
            self.runs, None, lambda run: following.Lines(self, run.id)
        )
        self.say = lambda *lines: shown.extend(lines)
        for number in range(4):
            name = f'other-{number}'
            output.add(dataclasses.replace(run, id=name))
            self.cluster.store().put_object(
                self.records.container,
                f'{record_names.log_folder(name)}000000',
                b'1 0 2 3\none\n',
            )
        self.cluster.before = meet
        output.poll()
        self.assertEqual(
            [f'other-{number}: one' for number in range(4)], shown
        )

    def test_the_outputs_of_many_servers_have_little_memory_together(self):
        run = self.start()
        output = following.Output(
            self.runs, None, lambda run: following.Lines(self, run.id)
        )
        self.say = lambda *lines: None
        store = self.cluster.store()
        content = b'x' * live.SLOT
        for number in range(8):
            run = dataclasses.replace(run, id=f'other-{number}')
            output.add(run)
            # The first part is missing.
            for place in range(1, 40):
                store.put_object(
                    self.records.container,
                    f'{record_names.log_folder(run.id)}{place:06d}',
                    b'1 %d 40 1\n' % (place * live.SLOT) + content,
                )
        self.patch(following, '_ROOM', 16 * live.SLOT)
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        output.poll()
        # All of it is 20 MB.
        self.assertLess(tracemalloc.get_traced_memory()[1], 4_000_000)


class LinesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.shown = []

    def lines(self, *contents, name='shop db'):
        lines = following.Lines(self, name)
        for content in contents:
            lines.show(content)
        lines.end()
        return self.shown

    def say(self, *lines):
        # As the display shows them.
        self.shown += [foreign.line(one) for one in lines]

    def test_a_long_line_is_wrapped_and_not_cut(self):
        text = ''.join(f'{number:05d}' for number in range(1999))
        for parts in (
            [text + '\nnext'],
            [text, '\nnext'],
            [text[:1991], text[1991:], '\n', 'next'],
            [text[start : start + 7] for start in range(0, len(text), 7)]
            + ['\nnext\n'],
        ):
            self.shown = []
            *shown, last = self.lines(*(part.encode() for part in parts))
            self.assertEqual('shop db: next', last)
            pieces = [one.removeprefix('shop db: ') for one in shown]
            self.assertEqual(text, ''.join(pieces))
            self.assertEqual([foreign.LINE] * 5, [len(x) for x in shown[:-1]])

    def test_a_line_that_just_fits_is_one_line(self):
        text = b'x' * (foreign.LINE - len('shop db: '))
        self.assertEqual(2, len(self.lines(text + b'\n', text, b'\n')))
        self.assertEqual(4, len(self.lines(text, b'\n', text + b'\n')))

    def test_what_grows_as_it_is_escaped_is_wrapped_too(self):
        shown = self.lines(b'\x1b' * 1500 + b'\n\n\x1b\n')
        text = ''.join(one.removeprefix('shop db: ') for one in shown[:-2])
        self.assertEqual('\\x1b' * 1500, text)
        self.assertEqual(['shop db:', 'shop db: \\x1b'], shown[-2:])

    def test_a_long_name_leaves_room_for_the_output(self):
        (shown,) = self.lines(b'x' * 1700, name='n' * 10_000)
        self.assertEqual(f'{"n" * 199}…: {"x" * 1700}', shown)


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
