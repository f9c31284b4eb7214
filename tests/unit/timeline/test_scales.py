# SPDX-License-Identifier: Apache-2.0
"""Time on the axis."""

import itertools

import pytest

from heat_plugins.timeline import scales
from tests.unit.timeline import base

NIGHT = 86400


def test_time_runs_from_left_to_right_without_gaps():
    scale = scales.Scale([(0, 10), (5, 60), (100_000, 100_030)])
    times = [0, 5, 10, 60, 50_000, 100_000, 100_030]
    positions = [scale.position(time) for time in times]
    assert positions == sorted(set(positions))
    assert positions[0] >= 0
    assert positions[-1] <= 1
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
