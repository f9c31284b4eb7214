# SPDX-License-Identifier: Apache-2.0
"""Whatever a server sends, and whatever a config declares."""

import contextlib
import json

import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import errors
from heat_plugins.runs import ordering
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedule_signals
from heat_plugins.runs.schedules import schedules
from heat_plugins.signals import body
from tests.unit.bad_input import anything

#: What Heat's database holds of a deployment's reason.
REASON = 255

SECRET = 'hunter2-correct-horse'

declared = st.lists(
    st.fixed_dictionaries(
        {'name': anything.plain_text}, optional={'error_output': st.booleans()}
    ),
    max_size=5,
)

signal = st.one_of(
    anything.json_map,
    anything.map_of(
        deploy_stdout=anything.json_value,
        deploy_stderr=anything.json_value,
        deploy_status_code=anything.scalar,
        trigger=anything.json_value,
        input_values=anything.json_value,
    ),
)


@hypothesis.given(anything.body)
def test_a_body_is_a_map_that_can_be_written_or_is_refused(content):
    with contextlib.suppress(errors.BadSignal):
        found = body.parse(content)
        assert isinstance(found, dict)
        assert json.loads(json.dumps(found, allow_nan=False)) == found
        json.dumps(found, ensure_ascii=False).encode('utf-8')


@st.composite
def answered(draw):
    """Return a signal, and outputs declared that it has values for."""
    details = draw(signal)
    names = [each for each in details or () if isinstance(details, dict)]
    given = [{'name': name, 'error_output': True} for name in names]
    return details, [*draw(declared), *given]


def failing(*names):
    declared = [{'name': name, 'error_output': True} for name in names]
    return dict.fromkeys(names, 'x'), declared


@hypothesis.given(answered())
@hypothesis.example(failing('a' * 300))
@hypothesis.example(failing('\U0001f4a3'))
@hypothesis.example(failing(*(f'output{n}' for n in range(100))))
def test_every_signal_has_an_outcome_that_the_database_holds(both):
    details, declared = both
    try:
        details = body.as_map(details)
    except errors.BadSignal:
        return
    outcome = body.outcome(details, declared)
    assert outcome.status in (body.COMPLETE, body.FAILED)
    assert outcome.reason
    assert len(outcome.reason) <= REASON
    # MariaDB's tables of Heat know no more of Unicode than this.
    assert outcome.reason.isprintable()
    assert max(outcome.reason) <= '\uffff'
    json.dumps(dict(outcome.outputs), allow_nan=False)


NAMES = 'deploy_stdout', 'deploy_stderr', 'deploy_status_code', 'trouble'


@hypothesis.given(anything.json_map, st.sampled_from(NAMES))
def test_no_outcome_quotes_what_a_server_has_sent(details, name):
    hypothesis.assume(SECRET not in json.dumps(details))
    given = {**details, name: [SECRET] if name == 'trouble' else SECRET}
    said = body.outcome(given, [{'name': 'trouble', 'error_output': True}])
    assert SECRET not in said.reason
    content = json.dumps(given).encode()
    for broken in (content[:-1], content + b'\xff', b'[' + content + b']'):
        with pytest.raises(errors.BadSignal) as caught:
            body.parse(broken)
        assert SECRET not in body.failure(str(caught.value)).reason


@hypothesis.given(signal, declared)
def test_what_may_be_a_trigger_is_one_or_is_none(details, declared):
    found = ordering.read_signal(details, declared)
    if found is not None:
        assert ordering.looks_like_one(details)
        assert isinstance(found.action, str)
        assert isinstance(found.inputs, dict)
        if found.inputs:
            assert str(found.inputs) not in repr(found)
    elif ordering.cannot_be_result(details, declared):
        assert ordering.looks_like_one(details)


@hypothesis.given(
    anything.json_value
    | anything.map_of(
        do=anything.json_value | st.sampled_from(['pause', 'resume', 'run']),
        note=anything.json_value | st.text(max_size=2000),
    )
)
def test_a_signal_to_a_schedule_is_followed_or_refused(details):
    now = 1_800_000_000
    kept = schedule_deciding.KeptSchedule(
        schedule=schedules.Schedule(cron='@daily'),
        record=schedule_deciding.ScheduleRecord(since=now),
    )
    with contextlib.suppress(errors.Refused):
        text = schedule_signals.read(details).follow(kept, now).text()
        # MySQL's text has 64 KiB.
        assert len(text) < 15_000
        assert schedule_deciding.KeptSchedule.read(text)
