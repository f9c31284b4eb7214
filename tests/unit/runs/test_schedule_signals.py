# SPDX-License-Identifier: Apache-2.0
"""Signals to a schedule, and schedules of a former release."""

import json

import pytest

from heat_plugins import errors
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedule_signals
from heat_plugins.runs.schedules import schedules

NOW = 1_800_000_000
DAY = 86400


def kept(paused=False, **record):
    return schedule_deciding.KeptSchedule(
        schedule=schedules.Schedule(cron='@daily', paused=paused),
        record=schedule_deciding.ScheduleRecord(since=NOW, **record),
    )


def follow(known, now=NOW, **details):
    return schedule_signals.read(details).follow(known, now)


@pytest.mark.parametrize(
    ('details', 'said'),
    [
        *(
            (details, r'\{"do": "pause", "note": "…"\}')
            for details in (
                *(None, [], 'pause', {}, {'do': 'stop'}, {'do': ['run']}),
                *({'do': 'run', 'at': 3}, {'do': {'run': 1}, 'note': 'x'}),
            )
        ),
        *(
            ({'do': 'pause', 'note': note}, 'at most 1000 characters')
            for note in (3, 'x' * 1001, ['x'])
        ),
        ({'do': 'run', 'note': 'x'}, 'goes with "pause"'),
        ({'do': 'backfill', 'from': '2027-01-01'}, 'needs "from" and "to"'),
    ],
)
def test_a_bad_signal_is_refused_with_an_example(details, said):
    with pytest.raises(errors.Refused, match=said):
        schedule_signals.read(details)


def test_it_is_paused_with_a_note_and_resumed():
    paused = follow(kept(), do='pause', note='x' * 1000)
    assert paused.why_paused == 'x' * 1000
    assert follow(kept(), do='pause').why_paused == 'a signal paused it'
    # What was due meanwhile neither starts nor was missed.
    after = follow(paused, NOW + 3 * DAY, do='resume').record
    assert (after.since, after.paused) == (NOW + 3 * DAY, '')
    assert (after.running, after.missed, after.signals) == (None, 0, 2)


def test_what_the_template_pauses_an_update_resumes():
    with pytest.raises(errors.Refused, match='the template pauses'):
        follow(kept(paused=True), do='resume')
    assert follow(kept(paused=True), do='pause', note='b').why_paused == 'b'


def test_it_runs_now_also_while_it_is_paused():
    known = follow(kept(paused=True), do='run')
    assert (known.record.running, known.record.forced) == (NOW, True)
    with pytest.raises(errors.Refused, match='has not ended'):
        follow(known, do='run')


@pytest.mark.parametrize(
    ('record', 'goes_on'),
    [
        # Runs of that release end without the schedule.
        ({'running': NOW, 'created': True}, None),
        ({'running': NOW, 'acted': NOW - 10}, None),
        # No engine has begun with it.
        ({'running': NOW}, NOW),
    ],
)
def test_a_schedule_of_a_former_release_goes_on_where_it_was(record, goes_on):
    given = {'last': NOW, 'outcome': 'complete', 'create_until': NOW + 9}
    known = kept(missed=3, **record, **given).with_record(paused='a release')
    former = json.loads(known.text())
    text = json.dumps({**former, 'version': 1})
    found = schedule_deciding.KeptSchedule.read(text).record
    assert (found.running, found.created) == (goes_on, False)
    assert (found.last, found.outcome) == (None, '')
    assert (found.paused, found.missed) == ('a release', 3)


@pytest.mark.parametrize('text', ['{}', '[]', 'x', '{"version": 3}'])
def test_an_unreadable_schedule_is_an_error(text):
    with pytest.raises(ValueError):  # noqa: PT011
        schedule_deciding.KeptSchedule.read(text)
