# SPDX-License-Identifier: Apache-2.0
"""``software deployment run logs``, and ``--follow``."""

from unittest import mock

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.signals import live
from tests.unit.engine import run_world
from tests.unit.osc import run_door

RUN = run_door.RUN


class LogsCase(run_door.RunCase):
    servers = 1

    def setUp(self):
        super().setUp()
        self.use(run_world.World(self.servers))
        self.world.answers = lambda server_id: None
        self.start()
        self.world.pass_time(2)

    def sends(self, *acts):
        """Let servers do one thing each time that somebody waits."""
        left = list(acts)
        self.meanwhile = lambda: left.pop(0)() if left else None

    def end(self, size, status=0, number=0, **which):
        """Let the output of a server end, and all of them answer."""
        self.ends(size, number, **which)
        self.world.answers = lambda server_id: status

    def logs(self, line=''):
        return self.run_command(f'run logs {RUN} {line}')


class OneTest(LogsCase):
    def test_what_is_there_is_shown(self):
        self.prints(b'one\ntwo')
        assert self.logs() == (0, 'one\ntwo')
        assert self.said() == ''
        # Also what is binary.
        self.prints(b'\0\x80\xff\x1b[31m')
        _, output = self.run_command(f'run logs {RUN}', encoding='latin-1')
        assert output == '\x00\x80ÿ\x1b[31m'
        # A part is left out.
        for number in range(7):
            offset = number * live.SLOT
            content = b'1 %d 2 3\n' % offset + b'x' * live.SLOT
            self.put(live.slot_name(offset, 2, 3), content)
        self.ends(7 * live.SLOT)
        _, output = self.logs()
        told = f'\n[{2 * live.SLOT} bytes omitted]\n'
        assert 5 * live.SLOT + len(told) == len(output)
        assert told in output

    def test_of_a_server_that_is_silent_it_is_said_meanwhile(self):
        said, began = [], self.world.now

        def wait():
            if self.world.now - began > 50 and not said:
                said.append(self.said())
                self.world.answers = lambda server_id: 0

        self.answered(deploy_stdout='a\n', deploy_stderr='b')
        self.meanwhile = wait
        assert self.logs('-f') == (0, 'a\nb')
        assert 'sends output only at the end' in said[0]
        assert self.said().count('only at the end') == 1

    def test_what_the_server_sends_after_a_cancel_is_shown(self):
        self.prints(b'half ')
        self.run_command(f'run cancel {RUN}')
        self.world.finish(run_id=RUN)
        self.sends(lambda: (self.prints(b'half rest'), self.ends(9)))
        assert self.logs() == (0, 'half rest')

    def test_a_store_that_fails_at_the_end_loses_nothing(self):
        def fail_parts(request):
            if '/runs/logs/' in request.url and failing:
                failing.pop()
                raise errors.Unavailable('503')

        failing = [1] * 5
        self.sends(
            lambda: self.prints(b'one\n'),
            lambda: (
                self.prints(b'one\ntwo\n'),
                self.end(8),
                setattr(self.cluster, 'before', fail_parts),
            ),
        )
        assert self.logs('-f') == (0, 'one\ntwo\n')
        assert 'complete after' in self.said()
        assert failing == []

    def test_a_retry_has_a_log_of_its_own(self):
        self.prints(b'first\n')
        self.end(6, 1)
        self.world.finish(run_id=RUN)
        self.world.answers = lambda server_id: None
        self.world.done.clear()
        self.run_command(f'run retry {RUN}')
        self.sends(
            lambda: self.prints(b'second\n', attempt=2),
            lambda: self.end(7, attempt=2),
        )
        assert self.logs('-f') == (0, 'second\n')


class ManyTest(LogsCase):
    servers = 3

    def test_a_line_has_the_name_of_its_server_one_alone_is_as_it_is(self):
        self.prints(b'one\ntwo')
        self.prints(b'three \x1b[2J\n', 1)
        code, output = self.logs()
        assert code == 0
        assert sorted(output.splitlines()) == [
            's0 deployment-0: one',
            's0 deployment-0: two',
            r's1 deployment-1: three \x1b[2J',
        ]
        assert self.logs('--target server-1') == (0, 'three \x1b[2J\n')
        self.assert_refused(f'run logs {RUN} --target 9', 'no target 9')

    def test_all_are_followed(self):
        self.sends(
            lambda: self.prints(b'one\n'),
            lambda: self.prints(b'two\n', 2),
            lambda: (self.end(4), self.end(4, number=2)),
        )
        lines = 's0 deployment-0: one\ns0 deployment-2: two\n'
        assert self.logs('-f') == (0, lines)
        assert 'sends output only at the end' not in self.said()

    def test_one_of_them_is_followed_to_its_own_end(self):
        def end():
            self.ends(4, 1)
            self.world.answers = {'server-1': 1}.get

        self.sends(lambda: self.prints(b'one\n', 1), end)
        assert self.logs('-f --target 1') == (common.FAILED, 'one\n')
        assert not self.client().show(RUN).ended

    def test_without_a_store_an_error_says_so(self):
        absent = errors.NoObjectStore('no object store')
        self.patch(common, 'store', mock.Mock(side_effect=absent))
        self.assert_refused(f'run logs {RUN}', 'no object store')
        # Nothing else needs it.
        for command in ('show', 'output', 'pause', 'cancel'):
            self.run_command(f'run {command} {RUN}')


def lines(*contents, name='shop db'):
    shown = []
    printer = following.Lines(
        lambda *said: shown.extend(map(foreign.line, said)), name
    )
    for content in contents:
        printer.show(content)
    printer.end()
    return shown


def test_a_long_line_is_wrapped_and_not_cut():
    text = ''.join(f'{number:05d}' for number in range(1999))
    sevens = [text[start : start + 7] for start in range(0, len(text), 7)]
    for parts in (
        [text + '\nnext'],
        [text[:1991], text[1991:], '\n', 'next'],
        [*sevens, '\nnext\n'],
    ):
        *shown, last = lines(*(part.encode() for part in parts))
        assert last == 'shop db: next'
        pieces = [one.removeprefix('shop db: ') for one in shown]
        assert text == ''.join(pieces)
        assert [len(x) for x in shown[:-1]] == [foreign.LINE] * 5
    # One that just fits is one line.
    fits = b'x' * (foreign.LINE - len('shop db: '))
    assert len(lines(fits + b'\n', fits, b'\n')) == 2


def test_what_grows_as_it_is_escaped_is_wrapped_too():
    shown = lines(b'\x1b' * 1500 + b'\n\n\x1b\n')
    text = ''.join(one.removeprefix('shop db: ') for one in shown[:-2])
    assert text == '\\x1b' * 1500
    assert shown[-2:] == ['shop db:', 'shop db: \\x1b']
    # A long name leaves room for the output.
    (shown,) = lines(b'x' * 1700, name='n' * 10_000)
    assert shown == f'{"n" * 199}…: {"x" * 1700}'
