# SPDX-License-Identifier: Apache-2.0
"""Turn Heat's events into bars, for a resource or a stack."""

from collections import abc
import dataclasses
import datetime

from heat_plugins.timeline import chart
from heat_plugins.timeline import kinds

_REFUSALS = (
    kinds.EventKind.NOT_TRIGGERED,
    kinds.EventKind.RESULT_REFUSED,
    kinds.EventKind.SIGNAL_FAILED,
)

ENDS = {
    'COMPLETE': chart.State.COMPLETE,
    'FAILED': chart.State.FAILED,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackEvent:
    """An event, as Heat lists it.

    :ivar stack_id: the stack that the resource stands in.
    :ivar status: action and status, such as ``CREATE_IN_PROGRESS``.
    :ivar time: seconds since the epoch.
    """

    resource: str
    stack_id: str
    physical_id: str
    status: str
    reason: str
    time: float

    @property
    def of_stack(self) -> bool:
        """Whether it is about a stack as a whole."""
        return self.physical_id == self.stack_id


def moment(text: str) -> float:
    """Return a time, given in ISO 8601; one without a zone is in UTC.

    :raises ValueError: it is invalid.
    """
    time = datetime.datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return time.timestamp()


def bars(
    events: abc.Iterable[StackEvent], ongoing: chart.State
) -> tuple[chart.Bar, ...]:
    """Return the bars of a resource's or a stack's events.

    :param events: its events, the oldest first. Heat deletes old ones, so the
        first may be an end.
    :param ongoing: the state of bars without an end.
    """
    done: list[chart.Bar] = []
    current: chart.Bar | None = None
    for event in events:
        action, _, status = event.status.partition('_')
        kind = kinds.of(event.reason)
        if current is not None and kind is kinds.EventKind.STARTED:
            current = dataclasses.replace(
                current,
                state=chart.State.RUNNING,
                working_since=event.time,
            )
        elif current is not None and kind is kinds.EventKind.UNKNOWN_HOOK:
            current = dataclasses.replace(current, hint=event.reason)
        elif action == 'SIGNAL':
            # The status of a signal's event is the resource's own.
            if kind in _REFUSALS:
                refused = _instant(event, action, chart.State.FAILED)
                done.append(dataclasses.replace(refused, aside=True))
        elif status == 'IN_PROGRESS':
            if current is not None and current.label == action:
                continue
            if current is not None:
                done.append(_superseded(current, event, action))
            current = chart.Bar(
                label=action, state=ongoing, start=event.time, end=None
            )
        elif status in ENDS:
            if current is not None and current.label != action:
                done.append(_superseded(current, event, action))
                current = None
            if current is None and done and _fails_again(done[-1], event):
                current = done.pop()
            begun = current or _instant(event, action, ongoing)
            done.append(
                dataclasses.replace(
                    begun,
                    state=ENDS[status],
                    end=event.time,
                    reason=event.reason,
                )
            )
            current = None
    if current is not None:
        done.append(current)
    return tuple(sorted(done, key=lambda bar: bar.start))


def _fails_again(bar: chart.Bar, event: StackEvent) -> bool:
    """Say whether an event repeats the failure of an action.

    Heat repeats a stack's failure for each resource that fails. CHECK is
    different: a resource that is marked as unhealthy has no start.
    """
    return (
        event.status == f'{bar.label}_FAILED' != 'CHECK_FAILED'
        and bar.state is chart.State.FAILED
        and not bar.aside
    )


def _instant(event: StackEvent, action: str, state: chart.State) -> chart.Bar:
    return chart.Bar(
        label=action,
        state=state,
        start=event.time,
        end=event.time,
        reason=event.reason,
    )


def _superseded(bar: chart.Bar, event: StackEvent, action: str) -> chart.Bar:
    """Return an action whose end has no event."""
    return dataclasses.replace(
        bar,
        state=chart.State.CANCELLED,
        end=event.time,
        reason=f'{action} interrupted it',
    )
