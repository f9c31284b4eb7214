# SPDX-License-Identifier: Apache-2.0
"""Charts on a terminal."""

import re

from rich import cells
import testtools

from heat_plugins.timeline import plain_text
from tests.unit.timeline import base


def lines(found, width=80, glyphs=plain_text.BLOCKS):
    return [line.plain for line in plain_text.draw(found, width, glyphs)]


class TextTest(testtools.TestCase):
    def test_a_bar_is_where_and_as_long_as_its_time(self):
        found = base.stack(
            base.row('one', base.bar('CREATE', 0, 100)),
            base.row('two', base.bar('CREATE', 50, 25)),
        )
        _, _, one, two, *_ = lines(found)
        self.assertTrue(abs(one.count('█') / 4 - two.count('█')) <= 1)
        middle = one.index('█') + one.count('█') / 2
        self.assertTrue(abs(middle - two.index('█')) <= 1)

    def test_states_differ_without_colours(self):
        states = (
            *('waiting', 'running', 'complete'),
            *('failed', 'timed-out', 'cancelled', 'skipped'),
        )
        found = base.stack(
            *(base.row(one, base.bar('A', 0, 50, one)) for one in states)
        )
        for glyphs in (plain_text.BLOCKS, plain_text.ASCII):
            rows = lines(found, glyphs=glyphs)[2:-1]
            self.assertEqual(7, len(rows))
            bars = {row.split()[1][0] for row in rows}
            self.assertEqual(7, len(bars))

    def test_the_time_before_the_report_of_a_start_is_waiting(self):
        found = base.stack(
            base.row('x', base.bar('BACKUP', 0, 100, working_after=50))
        )
        row = lines(found)[2]
        self.assertTrue(re.search('░{9,}█{9,}', row), row)
        self.assertIn('░ waiting', lines(found)[3])

    def test_what_goes_on_ends_in_an_arrow(self):
        found = base.stack(
            base.row('x', base.bar('CREATE', 60, None, 'running'))
        )
        row = lines(found)[2]
        self.assertIn('▒▸', row)
        self.assertIn('CREATE running 40 s', row)

    def test_a_refused_signal_is_told_below_and_marks_nothing_as_failed(self):
        bad = base.bar('SIGNAL', 50, 0, 'failed', reason='no X', aside=True)
        found = base.stack(base.row('db', base.bar('CREATE', 0, 9), bad))
        shown = lines(found)
        self.assertIn('CREATE complete 9 s', shown[2])
        self.assertEqual('db SIGNAL failed: no X', shown[-1])

    def test_why_nothing_may_start_is_told_after_a_while(self):
        for now, told in ((59, False), (60, True)):
            found = base.stack(
                base.row(
                    'x', base.bar('CREATE', 0, None, 'waiting', hint='?')
                ),
                now=now,
            )
            said = 'x CREATE waiting: ?' in lines(found)
            self.assertEqual(told, said)

    def test_a_moment_is_seen(self):
        found = base.stack(
            base.row('long', base.bar('CREATE', 0, 10_000)),
            base.row('short', base.bar('CREATE', 5000, 0)),
        )
        self.assertEqual(1, lines(found)[3].count('█'))

    def test_no_line_is_wider_than_the_terminal(self):
        found = base.stack(
            base.row('ü日本' * 40, base.bar('CREATE', 0, 10)),
            base.row('x', base.bar('C' * 99, 86400, 10), what='y' * 99),
        )
        for width in (60, 80, 200):
            for line in lines(found, width):
                self.assertTrue(cells.cell_len(line) <= width, line)

    def test_a_name_cannot_do_anything_to_a_terminal(self):
        found = base.stack(
            base.row('\x1b[31m\n[b]\u202e', base.bar('CREATE', 0, 1)),
            stack='\x07',
        )
        shown = ''.join(lines(found))
        self.assertTrue(shown.isprintable())
        self.assertIn(r'\x1b[31m\n[b]\u202e', shown)

    def test_bars_that_overlap_have_a_line_each(self):
        found = base.stack(
            base.row('x', base.bar('A', 0, 50), base.bar('A', 20, 60))
        )
        _, _, first, second, _ = lines(found)
        self.assertTrue(first.startswith('x '))
        self.assertTrue(second.startswith('  '))

    def test_a_failure_comes_with_its_reason_unless_it_is_over(self):
        broken = base.bar('UPDATE', 0, 5, 'failed', reason='no space left')
        found = base.stack(
            base.row('db', broken),
            base.row('web', broken, base.bar('UPDATE', 9, 3)),
        )
        (said,) = (line for line in lines(found) if 'no space' in line)
        self.assertEqual('db UPDATE failed: no space left', said)

    def test_a_stack_without_events_says_so(self):
        self.assertEqual('No events are known.', lines(base.stack())[1])

    def test_what_could_not_be_read_is_noted(self):
        found = lines(base.stack(notes=('Mistral answered 503',)))
        self.assertEqual('Note: Mistral answered 503', found[-1])


class FittedTest(testtools.TestCase):
    def test_a_long_name_keeps_its_ends(self):
        self.assertEqual(
            'begi…-end', plain_text.fitted('beginning-the-end', 9)
        )

    def test_a_short_one_is_filled_up(self):
        self.assertEqual('ab  ', plain_text.fitted('ab', 4))
