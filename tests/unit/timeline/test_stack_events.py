# SPDX-License-Identifier: Apache-2.0
"""Events of Heat as bars."""

import re

import pytest

from heat_plugins import heat_values
from heat_plugins.timeline import chart
from heat_plugins.timeline import chart_reading

WAITING = chart.State.WAITING
Kind = heat_values.EventKind


def event(status, time, reason='', physical_id='p'):
    return heat_values.Event(
        id='e',
        resource='db',
        stack_id='s',
        physical_id=physical_id,
        status=status,
        reason=reason,
        time=time,
    )


def bars(*events):
    return chart_reading.bars([event(*each) for each in events], WAITING)


SIGNS = {'>': 'IN_PROGRESS', '+': 'COMPLETE', '-': 'FAILED'}


@pytest.mark.parametrize(
    ('events', 'expected'),
    [
        # An action lasts from its beginning to its end.
        (
            'CREATE>1 CREATE+5 UPDATE>10 UPDATE-12',
            'CREATE complete 1 5, UPDATE failed 10 12',
        ),
        # A second beginning changes nothing.
        ('DELETE>1 DELETE>3', 'DELETE waiting 1 None'),
        # Heat has deleted the beginning.
        ('CREATE+7', 'CREATE complete 7 7'),
        # A stack fails for each of its resources that does.
        ('CREATE>1 CREATE-5 CREATE-9', 'CREATE failed 1 9'),
        # A resource may be marked as unhealthy again.
        ('CHECK-5 CHECK-9', 'CHECK failed 5 5, CHECK failed 9 9'),
        # Another action interrupts one.
        (
            'CREATE>1 DELETE>4 DELETE+6',
            'CREATE cancelled 1 4, DELETE complete 4 6',
        ),
        ('CREATE>1 CHECK-4', 'CREATE cancelled 1 4, CHECK failed 4 4'),
    ],
)
def test_events_become_bars(events, expected):
    found = bars(
        *(
            (f'{action}_{SIGNS[sign]}', int(time))
            for action, sign, time in re.findall(r'(\w+)([>+-])(\d+)', events)
        )
    )
    assert expected == ', '.join(
        f'{bar.label} {bar.state.value} {bar.start} {bar.end}' for bar in found
    )


def test_the_reason_is_that_of_the_end_and_a_signal_shows_if_refused():
    begin = 'CREATE_IN_PROGRESS', 1, 'state changed'
    (bar,) = bars(begin, ('CREATE_FAILED', 2, 'no space left'))
    assert bar.reason == 'no space left'
    (bar,) = bars(
        ('SIGNAL_COMPLETE', 1, 'Signal: deployment succeeded'),
        ('SIGNAL_FAILED', 2, 'Signal: deployment failed'),
        ('SIGNAL_FAILED', 3, 'Not triggered: no action BACKPU'),
    )
    assert (bar.label, bar.state.value, bar.start) == ('SIGNAL', 'failed', 3)


def test_the_report_of_a_server_ends_the_waiting():
    reason = 'Started: CREATE on server web'
    for report in (
        ('CREATE_IN_PROGRESS', 3, reason),
        ('SIGNAL_IN_PROGRESS', 3, f'Signal: {reason}'),
    ):
        (bar,) = bars(('CREATE_IN_PROGRESS', 1), report)
        assert bar.state is chart.State.RUNNING
        assert (bar.start, bar.working_since, bar.end) == (1, 3, None)


@pytest.mark.parametrize(
    'kind', [Kind.NOT_TRIGGERED, Kind.RESULT_REFUSED, Kind.SIGNAL_FAILED]
)
def test_a_refused_signal_is_no_state_of_its_resource(kind):
    refused = heat_values.event_reason(kind, 'no')
    both = bars(('CREATE_COMPLETE', 1), ('SIGNAL_FAILED', 3, refused))
    row = chart.ChartRow(
        kind=chart.RowKind.DEPLOYMENT, path='db', name='db', bars=both
    )
    assert (len(both), row.last.state) == (2, chart.State.COMPLETE)
    drawn = chart.Chart(stack='s', status='', now=9, rows=[row])
    assert drawn.counts() == {chart.State.COMPLETE: 1}


def test_an_unknown_hook_is_a_hint_until_something_starts():
    hint = heat_values.event_reason(Kind.UNKNOWN_HOOK, '"scirpt" is none')
    happened = [('CREATE_IN_PROGRESS', 1), ('CREATE_IN_PROGRESS', 2, hint)]
    (bar,) = bars(*happened)
    assert (bar.explanation(10), bar.explanation(100)) == ('', hint)
    happened.append(('CREATE_IN_PROGRESS', 3, 'Started: CREATE on x'))
    (bar,) = bars(*happened)
    assert bar.explanation(100) == ''


@pytest.mark.parametrize('kind', Kind)
def test_each_kind_of_event_is_read_as_it_was_written_and_no_other(kind):
    reason = heat_values.event_reason(kind, 'why')
    long = heat_values.event_reason(kind, 'x' * 999)
    for each in (reason, long, f'Signal: {reason}'):
        assert heat_values.event_kind(each) is kind
        assert len(each) <= heat_values.EVENT_LIMIT
    for reason in ('', 'state changed', 'Not triggered', 'x Started: y'):
        assert heat_values.event_kind(reason) is None


def test_times_are_utc_unless_they_have_a_zone():
    for time in '08:00:00Z', '08:00:00', '09:00:00+01:00':
        for text in f'2027-01-15T{time}', f'2027-01-15 {time}':
            assert heat_values.moment(text) == 1_800_000_000
