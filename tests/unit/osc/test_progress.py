# SPDX-License-Identifier: Apache-2.0
"""How a command gets on, on terminals of all kinds and in logs."""

import io
import os
import re
import time
from unittest import mock

import pytest
import testtools

from heat_plugins.osc import common
from heat_plugins.osc import progress
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.runs import summary
from tests.unit.osc import base


class DisplayTestCase(testtools.TestCase):
    """What a display writes to a stream as soon as it writes anything."""

    terminal, encoding, on_error = 'xterm', 'utf-8', 'strict'

    def setUp(self):
        super().setUp()
        given = {'TERM': self.terminal, 'COLUMNS': '100', 'NO_COLOR': '1'}
        self.enterContext(mock.patch.dict(os.environ, given))
        self.patch(progress.Display, 'delay', 0.0)
        self.patch(progress.Display, 'interval', 0.01)
        self.log = self.stream(False)
        self.screen = self.stream(True)

    def stream(self, terminal):
        found = io.TextIOWrapper(
            io.BytesIO(), self.encoding, self.on_error, write_through=True
        )
        found.isatty = lambda: terminal
        return found

    @staticmethod
    def text(stream):
        return stream.buffer.getvalue().decode(stream.encoding)

    def appears(self, stream, what):
        base.until(lambda: self.text(stream), what)


class DisplayTest(DisplayTestCase):
    def test_a_terminal_has_a_line_that_goes_again(self):
        with progress.Display('plan create', self.screen) as display:
            self.appears(self.screen, 'plan create')
            display.show('Making shop', 3, 9)
            self.appears(self.screen, '3 of 9 Making shop')
        assert '0:00:00' in self.text(self.screen)
        assert self.text(self.screen).endswith('\x1b[2K')
        assert '\n3 of 9' not in self.text(self.screen)
        # A quick command shows none.
        self.patch(progress.Display, 'delay', 3600)
        before = self.text(self.screen)
        with progress.Display('plan create', self.screen) as display:
            display.show('Making shop', 3, 9)
        assert self.text(self.screen) == before

    def test_a_log_has_a_line_from_time_to_time(self):
        with progress.Display('plan create', self.log) as display:
            self.appears(self.log, 'plan create: ')
            display.show('Making shop', 3, 9)
            self.appears(self.log, 'Making shop: 3 of 9: ')
        # A busy machine may have taken longer than no second.
        for line in ('plan create', 'Making shop: 3 of 9'):
            assert re.search(rf'{line}: [0-9]+ s\n', self.text(self.log))
        assert '\x1b' not in self.text(self.log)

    def test_a_log_that_nobody_takes_does_not_stop_the_command(self):
        with progress.Display('plan create', self.log) as display:
            self.appears(self.log, 'plan create')
            self.log.close()
            display.show('Making shop', 3, 9)

    def test_what_others_say_is_harmless_for_a_terminal(self):
        with progress.Display('run wait', self.screen) as display:
            display.show('a\x1b]0;b [red]c', since=time.time() - 3661)
            display.say('a\x1b[2Jb [red]c :smile:')
            self.appears(self.screen, ']0;b [red]c')
            # Time counts from its start; some seconds may pass until then.
            self.appears(self.screen, '1:01:')
        assert '[2Jb [red]c :smile:\n' in self.text(self.screen)
        for sequence in ('\x1b[2J', '\x1b]0'):
            assert sequence not in self.text(self.screen)


class DumbTest(DisplayTestCase):
    terminal = 'dumb'

    def test_a_terminal_that_cannot_move_its_cursor_has_lines(self):
        with progress.Display('plan create', self.screen):
            self.appears(self.screen, 'plan create: ')
        assert re.search('plan create: [0-9]+ s\n', self.text(self.screen))
        assert '\x1b' not in self.text(self.screen)


class AsciiTest(DisplayTestCase):
    # As Python makes its standard error.
    encoding, on_error = 'ascii', 'backslashreplace'

    def test_nothing_raises_and_a_bar_is_ascii(self):
        for stream in (self.screen, self.log):
            with progress.Display('pläne … ━', stream) as display:
                display.say('größer')
                display.show('pläne … ━', 1, 2)
                self.appears(stream, '1 of 2')
            assert 'gr\\xf6\\xdfer\n' in self.text(stream)
        bar = self.text(self.screen).replace('pl\\xe4ne \\u2026 \\u2501', '')
        assert '\\u' not in bar


class DeploymentTest(DisplayTestCase):
    def test_counts_on_a_terminal_and_lines_elsewhere_each_failure_once(self):
        self.patch(progress.Display, 'interval', 3600)
        failed = {'failures': ('a FAILED: [b]no[/b]',), 'done': 3}
        now = {'status': 'CREATE_IN_PROGRESS', **failed}
        found = plan_stacks.StackProgress(**now)
        for stream in self.screen, self.log:
            with progress.Display('deploy', stream) as display:
                show = progress.DeploymentProgress(display, 'shop')
                for _ in range(2):
                    show.warn(['beware'])
                    show.note('CREATE')
                show.changed(found)
                show.changed(found)
                if stream is self.screen:
                    self.appears(stream, '3 resources')
        assert self.text(self.log).splitlines() == [
            *('Warning: beware', 'Plan shop: CREATE', 'a FAILED: [b]no[/b]'),
            'Stack shop: CREATE_IN_PROGRESS',
        ]


class ValidationsTest(DisplayTestCase):
    def run_of(self, *states):
        more = {'seconds': 2.0, 'reason': '', 'under_way': 'ask'}
        names = zip('ab', states, strict=True)
        outcomes = [{'validation': n, 'state': s, **more} for n, s in names]
        return {'id': 'my-run-1', 'outcomes': outcomes}

    def test_each_change_is_a_line_once_and_on_a_terminal_it_is_live(self):
        self.patch(progress.Display, 'interval', 3600)
        with progress.Display('run', self.log) as display:
            show = progress.Validations(display)
            for first in ('RUNNING', 'WAITING', 'RUNNING'):
                show.changed(self.run_of(first, 'WAITING'))
            show.changed(self.run_of('PASSED', 'RUNNING'))
        assert self.text(self.log).splitlines() == [
            *('Run my-run-1', 'a: started', 'a: PASSED after 2 s'),
            'b: started',
        ]
        with progress.Display('run', self.screen) as display:
            now = self.run_of('RUNNING', 'PASSED')
            progress.Validations(display).changed(now)
            self.appears(self.screen, '1 of 2 a ask')


class SilenceTest(base.CommandCase):
    def test_a_command_that_takes_long_says_so(self):
        self.patch(progress.Display, 'interval', 0.01)
        stderr = self.stderr

        class Slow(common.Report):
            """Take long."""

            def take_action(self, parsed_args):
                base.until(stderr.getvalue, 'parameter list: 0')
                return ('a',), [(1,)]

        _, output = self.run_command(
            Slow, '-f', 'value', name='parameter list'
        )
        assert output == '1\n'

    def test_the_line_goes_before_the_output_comes(self):
        stop = mock.Mock()
        self.patch(progress.Display, 'stop', stop)

        class Quick(common.Report):
            """Take no time."""

            def take_action(self, parsed_args):
                return ('a',), ((stop.call_count,) for _ in 'a')

        _, output = self.run_command(Quick, '-f', 'value')
        assert output == '1\n'


@pytest.mark.parametrize(
    ('seconds', 'spelled'),
    [
        *((None, ''), (2.0, '2 s'), (0.25, '0.2 s'), (59, '59 s')),
        *((60, '1 min'), (61.7, '1 min 2 s'), (3600, '1 h')),
        *((3661, '1 h 1 min'), (90000, '1 d 1 h')),
    ],
)
def test_durations_have_two_units_at_most(seconds, spelled):
    assert summary.spell(seconds) == spelled
