# SPDX-License-Identifier: Apache-2.0
"""The picture of a schedule's week."""

from heat_plugins.clients import runs
from heat_plugins.runs import summary
from heat_plugins.runs.schedules import schedules
from heat_plugins.timeline import plain_text
from heat_plugins.timeline import schedule_week
from heat_plugins.timeline import svg
from tests import pages

#: Friday, 2027-01-15T08:00:00Z
NOW = 1_800_000_000
DAY = 86400
#: 02:30 in Berlin of that day.
TONIGHT = NOW - 8 * 3600 + 5400

NIGHTLY = schedules.Schedule(
    cron='30 2 * * *',
    timezone='Europe/Berlin',
    exclude=('sun',),
    cut_off=7200,
    key='nightly',
)


def run(days, state, minutes, late=0):
    time = TONIGHT + days * DAY
    return runs.Run(
        id=schedules.run_id('nightly', time + late),
        action='BACKUP',
        state=state,
        reason='2 of 3 failed' if state == 'failed' else '',
        created_at=summary.time(time + late),
        ended_at=summary.time(time + minutes * 60) if minutes else None,
    )


RAN = [run(-3, 'complete', 20), run(-2, 'failed', 30), run(0, 'stopping', 0)]


def week(schedule=NIGHTLY, ran=RAN):
    return schedule_week.week('shop', 'nightly', schedule, ran, NOW)


def test_what_was_late_is_red_and_what_may_still_start_is_not():
    late = plain_text.draw(week(), 120)[4]
    assert {span.style for span in late.spans} >= {'red'}
    early = schedule_week.week('shop', 'nightly', NIGHTLY, [], TONIGHT + 60)
    assert early.rows[3].bars[0].word == schedule_week.NEXT


def test_times_before_the_schedule_existed_are_not_missed():
    chart = schedule_week.week('shop', 'nightly', NIGHTLY, [], NOW, TONIGHT)
    assert [len(row.bars) for row in chart.rows] == [0, 0, 0, 1, 1, 0, 1]
    assert chart.rows[3].bars[0].word == 'not started within'


def test_the_page_shows_this_picture():
    lines = [each.plain for each in plain_text.draw(week(), 110)]
    text = pages.read('schedules')
    assert ''.join(f'   {line}\n' for line in lines) in text


def test_times_are_local_ones_of_the_schedule():
    assert '01-14 03:00' in plain_text.draw(week(), 200)[1].plain
    drawing = svg.draw(week())
    assert '02:30 next, within for 2 h' in drawing
    assert 'Drawn at 2027-01-15 08:00:00 UTC' in drawing


def test_what_is_frequent_is_drawn_up_to_a_limit():
    often = schedules.Schedule(cron='* * * * *', key='nightly')
    chart = week(often, [])
    assert len(chart.bars) == 500
    assert chart.notes == ['Only the first 500 times of the week are drawn']
    once = schedules.Schedule(at='2027-03-01T02:00', key='nightly')
    assert week(once, []).bars == []
