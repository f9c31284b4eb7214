# SPDX-License-Identifier: Apache-2.0
"""Nested stacks in a row each, and bars in lanes."""

from heat_plugins.timeline import chart
from tests.unit.timeline import base

RUN = chart.RowKind.RUN


def fold(*inside, own=None):
    own = own or base.row('group', base.bar('CREATE', 0, 9))
    return chart.fold(own, inside, base.NOON + 100)


def backup(name, *bars, what='BACKUP'):
    return base.row(name, *bars, kind=RUN, what=what)


def test_rows_say_how_many_resources_they_hide():
    create, ran = base.bar('CREATE', 1, 3), base.bar('BACKUP', 10, 5)
    one, two = base.row('one', create), base.row('two', create)
    for inside, own, titles in (
        ([one, two], None, ['group (+2)']),
        # A resource counts once, whatever ran on it.
        ([one, backup('one', ran)], None, ['group (+1)', 'group BACKUP (+1)']),
        # Each action has a row.
        (
            [backup('one', ran), backup('one', ran, what='RELOAD')],
            None,
            ['group (+1)', 'group BACKUP (+1)', 'group RELOAD (+1)'],
        ),
        # A nested stack without a bar has no row itself.
        ([backup('one', ran)], base.row('group'), ['group BACKUP (+1)']),
    ):
        rows = fold(*inside, own=own)
        assert [row.title for row in rows] == titles
    (row,) = fold(one)
    assert row.bars[0].end - row.bars[0].start == 9


def test_runs_at_one_time_become_one_bar():
    _, row = fold(
        backup('one', base.bar('BACKUP', 10, 5)),
        backup('two', base.bar('BACKUP', 12, 5, 'failed')),
        backup('three', base.bar('BACKUP', 30, 5)),
    )
    first, second = row.bars
    assert (first.label, second.label) == ('2 x BACKUP', 'BACKUP')
    assert first.reason == '1 complete, 1 failed'
    assert first.state is chart.State.FAILED
    assert first.end - first.start == 7


def test_a_bar_lasts_as_long_as_one_run():
    for one, two, state in (
        (('BACKUP', 10, 5, 'failed'), ('BACKUP', 10, None, 'waiting'), 'wa'),
        (('BACKUP', 10, None, 'running'), ('BACKUP', 50, 5), 'ru'),
    ):
        _, row = fold(
            backup('one', base.bar(*one)), backup('two', base.bar(*two))
        )
        (bar,) = row.bars
        assert (bar.end, bar.state.value[:2]) == (None, state)


def test_bars_that_overlap_are_in_different_lanes():
    first, second, third = (
        base.bar('a', 0, 10),
        base.bar('b', 5, 10),
        base.bar('c', 10, 5),
    )
    lanes = base.row('x', third, second, first).lanes(base.NOON + 100)
    assert lanes == [[first, third], [second]]
