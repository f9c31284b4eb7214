# SPDX-License-Identifier: Apache-2.0
"""Nested stacks in a row each, bars in lanes, and time on the axis."""

import itertools

import pytest

from heat_plugins.timeline import chart
from heat_plugins.timeline import scales
from tests.unit.timeline import base

NIGHT = 86400


def fold(*inside, own=None):
    own = own or base.row('group', base.bar('CREATE', 0, 9))
    return chart.fold(own, inside, base.NOON + 100)


def backup(name, *bars, what='BACKUP'):
    return base.row(name, *bars, kind=chart.RowKind.RUN, what=what)


def test_rows_say_how_many_resources_they_hide():
    create, ran = base.bar('CREATE', 1, 3), base.bar('BACKUP', 10, 5)
    one, two = base.row('one', create), base.row('two', create)
    ran, other = backup('one', ran), backup('one', ran, what='RELOAD')
    for inside, own, titles in (
        ([one, two], None, ['group (+2)']),
        # A resource counts once, whatever ran on it.
        ([one, ran], None, ['group (+1)', 'group BACKUP (+1)']),
        # Each action has a row; a nested stack without a bar has none itself.
        (
            [ran, other],
            base.row('group'),
            ['group BACKUP (+1)', 'group RELOAD (+1)'],
        ),
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
    places = ('a', 0, 10), ('b', 5, 10), ('c', 10, 5)
    first, second, third = (base.bar(*each) for each in places)
    lanes = base.row('x', third, second, first).lanes(base.NOON + 100)
    assert lanes == [[first, third], [second]]


def test_time_runs_from_left_to_right_without_gaps():
    scale = scales.Scale([(0, 10), (5, 60), (100_000, 100_030)])
    times = [0, 5, 10, 60, 50_000, 100_000, 100_030]
    positions = [scale.position(time) for time in times]
    assert positions == sorted(set(positions))
    for before, after in itertools.pairwise(scale.stretches):
        assert (before.end, before.right) == (after.start, after.left)
    assert scale.stretches[0].left == 0
    assert scale.stretches[-1].right == pytest.approx(1)


@pytest.mark.parametrize(
    ('spans', 'middle'),
    [([(0, 100)], 50), ([(0, 50), (60, 100)], 50), ([(7, 7)], 7)],
)
def test_short_pauses_stay_and_the_rest_is_drawn_to_scale(spans, middle):
    scale = scales.Scale(spans)
    assert scale.cuts == []
    assert scale.position(middle) == pytest.approx(0.5)


def test_a_long_pause_is_cut_short():
    (cut,) = scales.Scale([(0, 60), (NIGHT, NIGHT + 60)]).cuts
    assert 60 < cut.start < cut.end < NIGHT
    assert cut.right - cut.left == pytest.approx(0.05)
    # Many of them leave more than half of the axis to the bars.
    cuts = scales.Scale((n * NIGHT, n * NIGHT + 20) for n in range(100)).cuts
    assert len(cuts) == 99
    assert sum(cut.right - cut.left for cut in cuts) == pytest.approx(0.4)


def labels(*spans, characters=100):
    scale = scales.Scale(
        (base.NOON + start, base.NOON + end) for start, end in spans
    )
    return scale.labels(characters)


def test_a_day_stands_with_its_first_time():
    first, *others = [each.text for each in labels((0, 40))]
    assert first == '2027-01-15 12:00:00'
    assert {len(text) for text in others} == {8}
    assert len(others) > 1
    # Another day is shown without the year.
    both = labels((0, 40), (NIGHT, NIGHT + 40))
    _, second = [each.text for each in both if '-' in each.text]
    assert second.startswith('01-16 12:00:')
    month = [each.text for each in labels((0, 30 * NIGHT))]
    assert len(month) > 3
    assert all('-' in text for text in month)


@pytest.mark.parametrize('characters', [30, 60, 200])
def test_labels_do_not_overlap(characters):
    spans = [(n * NIGHT, n * NIGHT + 20 * n) for n in range(1, 9)]
    free = 0
    for label in labels(*spans, characters=characters):
        column = label.position * characters
        assert column >= free
        free = column + len(label.text) + 1
    assert 0 < free <= characters + 1
