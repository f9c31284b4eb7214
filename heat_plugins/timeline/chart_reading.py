# SPDX-License-Identifier: Apache-2.0
"""Read a stack's life from Heat's events, its workflows and its runs."""

import collections
from collections import abc
import contextlib
import dataclasses
import itertools
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.mistral import outcome
from heat_plugins.runs import run_records
from heat_plugins.runs.targets import stack_tree
from heat_plugins.signals import signal_names
from heat_plugins.timeline import chart

if TYPE_CHECKING:
    from heat_plugins.clients import runs as run_values

_REFUSALS = (
    heat_values.EventKind.NOT_TRIGGERED,
    heat_values.EventKind.NOT_TOLD,
    heat_values.EventKind.RESULT_REFUSED,
    heat_values.EventKind.SIGNAL_FAILED,
)

ENDS = {
    'COMPLETE': chart.State.COMPLETE,
    'FAILED': chart.State.FAILED,
}


def bars(
    events: abc.Iterable[heat_values.Event], ongoing: chart.State
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
        kind = heat_values.event_kind(event.reason)
        if current is not None and kind is heat_values.EventKind.STARTED:
            current = dataclasses.replace(
                current,
                state=chart.State.RUNNING,
                working_since=event.time,
            )
        elif (
            current is not None and kind is heat_values.EventKind.UNKNOWN_HOOK
        ):
            current = dataclasses.replace(current, hint=event.reason)
        elif action == 'SIGNAL':
            # The status of a signal's event is the resource's own.
            if kind in _REFUSALS:
                refused = chart.Bar(
                    label=action,
                    state=chart.State.FAILED,
                    start=event.time,
                    end=event.time,
                    reason=event.reason,
                    aside=True,
                )
                done.append(refused)
        elif status == 'IN_PROGRESS' or status in ENDS:
            if current is not None and current.label != action:
                interrupted = dataclasses.replace(
                    current,
                    state=chart.State.CANCELLED,
                    end=event.time,
                    reason=f'{action} interrupted it',
                )
                done.append(interrupted)
                current = None
            # Heat repeats a stack's failure for each resource that fails.
            # CHECK is different: a resource that is marked as unhealthy has
            # no start.
            is_repeated = (
                current is None
                and bool(done)
                and (
                    event.status
                    == f'{done[-1].label}_FAILED'
                    != 'CHECK_FAILED'
                    and done[-1].state is chart.State.FAILED
                    and not done[-1].aside
                )
            )
            if is_repeated:
                current = done.pop()
            elif current is None:
                current = chart.Bar(
                    label=action, state=ongoing, start=event.time, end=None
                )
            if current is not None and status in ENDS:
                ended = dataclasses.replace(
                    current,
                    state=ENDS[status],
                    end=event.time,
                    reason=event.reason,
                )
                done.append(ended)
                current = None
    if current is not None:
        done.append(current)
    return tuple(sorted(done, key=lambda bar: bar.start))


_DEPLOYMENTS = frozenset(
    f'OS::Heat::{name}'
    for name in (
        'SoftwareDeployment',
        'SoftwareDeploymentGroup',
        'SoftwareDeployments',
        'StructuredDeployment',
        'StructuredDeploymentGroup',
        'StructuredDeployments',
    )
)
_WORKFLOW = 'OS::Mistral::Workflow'
# An event of this one is the beginning, or the end, of an execution.
_EXECUTION = 'OS::Mistral::Execution'

# Mistral's other states are those of running executions.
_STATES = {
    'SUCCESS': chart.State.COMPLETE,
    'ERROR': chart.State.FAILED,
    'CANCELLED': chart.State.CANCELLED,
    'IDLE': chart.State.WAITING,
    'PAUSED': chart.State.WAITING,
}


# Lists runs; see `clients.runs.Runs.list`.
_List: TypeAlias = 'abc.Callable[..., abc.Iterator[run_values.Run]]'


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChartFilter:
    """The content of a chart.

    :ivar unfold: whether nested resources have rows of their own.
    :ivar everything: whether other resources than deployments and workflows
        have rows.
    :ivar since: leave out what ended before; seconds since the epoch.
    :ivar runs: the most runs, the newest.
    """

    unfold: bool = False
    everything: bool = False
    since: float | None = None
    runs: int = 200


def read(
    heat: stack_tree.Orchestration,
    list_runs: _List,
    name_or_id: str,
    wanted: ChartFilter,
    clock: abc.Callable[[], float] = time.time,
) -> chart.Chart:
    """Return the chart of a root stack, given any stack of it.

    :param heat: with the credentials of the user.
    :param list_runs: see `clients.runs.Runs.list`.
    :raises errors.NotFound: there is no such stack.
    """
    notes: list[str] = []
    stack = stack_tree.root(heat, name_or_id)
    listed: list[run_values.Run] = []
    try:
        newest = list_runs(stack=stack.id, targets=True, limit=wanted.runs)
        listed = list(itertools.islice(newest, wanted.runs))
    except errors.ServiceError as exc:
        notes.append(f'Cannot list the runs of its actions: {exc}')
    happened = heat.all_events(stack)
    places: list[stack_tree.Place] = []
    # The stack may be deleted; its events and runs remain.
    with contextlib.suppress(errors.NotFound):
        places = stack_tree.find(heat, stack)
    times = [event.time for event in happened]
    times += [
        heat_values.moment(run.ended_at or run.created_at) for run in listed
    ]
    # Other machines' clocks may be ahead of ours.
    now = max([clock(), *times])
    rows = _Rows(happened, wanted, now)
    for place in places:
        rows.add_place(place)
        # A workflow without an ID has no executions.
        resource = place.resource
        if resource.type == _WORKFLOW and resource.physical_id:
            try:
                executions = heat.attribute(resource, 'executions')
                rows.add_executions(place, executions or ())
            except errors.Error as exc:
                notes.append(
                    f'Cannot list the executions of {place.path}: {exc}'
                )
    for run in listed:
        for target in run.target_list:
            rows.add_run(run, target)
    return chart.Chart(
        stack=stack.name,
        status=stack.status,
        now=now,
        rows=[*rows.of_stack(stack), *rows.below()],
        notes=tuple(notes),
    )


class _Rows:
    """The rows of a chart, and how they are nested."""

    def __init__(
        self,
        happened: abc.Iterable[heat_values.Event],
        wanted: ChartFilter,
        now: float,
    ) -> None:
        self._wanted = wanted
        self._now = now
        self._events: dict[tuple[str, str], list[heat_values.Event]] = {}
        for event in happened:
            name = '' if event.of_stack else event.resource
            self._events.setdefault((event.stack_id, name), []).append(event)
        #: By the path of a resource; '' for the stack's own.
        self._own: dict[str, list[chart.ChartRow]] = collections.defaultdict(
            list
        )
        self._nested: dict[str, chart.ChartRow] = {}
        self._places: dict[str, stack_tree.Place] = {}
        #: Servers by their paths, and what users' scripts are called there.
        self._scripts: set[tuple[str, str]] = set()

    def of_stack(self, stack: heat_values.Stack) -> list[chart.ChartRow]:
        """Return the row of the stack itself."""
        happened = self._events.get((stack.id, ''), ())
        row = chart.ChartRow(
            kind=chart.RowKind.STACK,
            path='',
            name=stack.name,
            bars=self._lately(bars(happened, chart.State.RUNNING)),
        )
        return [row] if row.bars else []

    def add_place(self, place: stack_tree.Place) -> None:
        """Add Heat's actions on a resource."""
        resource = place.resource
        self._places[place.path] = place
        deployment = resource.type in _DEPLOYMENTS
        if member := place.member:
            # Heat has no events of a member; its last action is known.
            ended = member.ended_at
            bar = chart.Bar(
                label=member.action,
                state=ENDS.get(member.status, chart.State.WAITING),
                start=heat_values.moment(member.delivered_at),
                end=None if ended is None else heat_values.moment(ended),
                reason=member.reason,
            )
            self._add(chart.RowKind.DEPLOYMENT, place.path, '', bar)
            return
        happened = self._events.get((resource.stack_id, resource.name), ())
        ongoing = chart.State.WAITING if deployment else chart.State.RUNNING
        kind = chart.RowKind.RESOURCE
        if deployment:
            kind = chart.RowKind.DEPLOYMENT
        elif resource.nested_id:
            kind = chart.RowKind.NESTED
        elif resource.type == _EXECUTION:
            kind = chart.RowKind.EXECUTION
        row = chart.ChartRow(
            kind=kind,
            path=place.path,
            name=resource.name,
            bars=self._lately(bars(happened, ongoing)),
        )
        if resource.nested_id or signal_names.is_group(resource.physical_id):
            self._nested[place.path] = row
        elif (
            deployment
            or self._wanted.everything
            or resource.type == _EXECUTION
            # Such as a time that a schedule has missed.
            or any(bar.aside for bar in row.bars)
        ):
            self._own[place.path].append(row)

    def add_run(
        self, run: 'run_values.Run', target: 'run_values.Target'
    ) -> None:
        """Add the attempts on a target to the row of its action."""
        if run.script:
            self._scripts.add((target.resource, run.action))
        for attempt in target.attempts:
            state = chart.State(attempt['state'])
            begun, reported, ended = (
                None
                if attempt[each] is None
                else heat_values.moment(attempt[each])
                for each in ('started_at', 'reported_at', 'ended_at')
            )
            if begun is None or state is chart.State.SKIPPED:
                # Nothing has run.
                continue
            is_waiting = state in (chart.State.STARTING, chart.State.WAITING)
            reason = attempt['reason']
            if attempt['attempt'] == target.attempt:
                # It says what else keeps its server busy.
                reason = target.reason
            reason = reason or ('' if ended else run_records.UNANSWERED)
            is_held_up = is_waiting and reason != run_records.UNANSWERED
            explained = f'{reason} (run {run.id})'.lstrip()
            bar = chart.Bar(
                label=run.action,
                state=chart.State.WAITING if is_waiting else state,
                start=begun,
                end=ended,
                working_since=reported,
                reason=explained,
                hint=explained if is_held_up else '',
            )
            self._add(chart.RowKind.RUN, target.resource, run.action, bar)

    def add_executions(
        self,
        place: stack_tree.Place,
        executions: abc.Iterable[abc.Mapping[str, Any]],
    ) -> None:
        """Add the executions of a workflow."""
        for execution in executions:
            state = _STATES.get(str(execution['state']), chart.State.RUNNING)
            workflow = str(execution['workflow_name'])
            reason = str(execution['state'])
            if state is not chart.State.COMPLETE and (
                info := execution.get('state_info')
            ):
                reason = outcome.reason(reason, str(info))
            ended = heat_values.moment(str(execution['updated_at']))
            bar = chart.Bar(
                label=workflow,
                state=state,
                start=heat_values.moment(str(execution['created_at'])),
                end=ended if state.ended else None,
                reason=f'{reason} (execution {execution["id"]})',
            )
            self._add(chart.RowKind.EXECUTION, place.path, workflow, bar)

    def below(self, parent: str = '', depth: int = 0) -> list[chart.ChartRow]:
        """Return the rows of a stack's content, by their starts."""
        paths = [
            path
            for path in {**self._own, **self._nested}
            if getattr(self._places.get(path), 'parent', '') == parent
        ]
        blocks = [self._block(path, depth) for path in paths]
        # Those below are folded with the stack that they are in.
        if not depth and not self._wanted.unfold:
            # The users' scripts become one row for all servers.
            scripts = [
                row
                for row in itertools.chain(*blocks)
                if row.kind is chart.RowKind.RUN
                and (row.path, row.what) in self._scripts
            ]
            if len({row.path for row in scripts}) > 1:
                taken = set(map(id, scripts))
                servers = chart.ChartRow(
                    kind=chart.RowKind.RUN,
                    path='servers',
                    name='servers',
                    bars=(),
                )
                blocks = [
                    *(
                        [r for r in rows if id(r) not in taken]
                        for rows in blocks
                    ),
                    chart.fold(servers, scripts, self._now),
                ]
        return list(
            itertools.chain(
                *sorted(
                    filter(None, blocks),
                    key=lambda rows: (
                        min(
                            (bar.start for row in rows for bar in row.bars),
                            default=self._now,
                        ),
                        rows[0].path,
                    ),
                )
            )
        )

    def _block(self, path: str, depth: int) -> list[chart.ChartRow]:
        """Return the rows of a resource and, unfolded, of its content."""
        own = [
            dataclasses.replace(row, depth=depth)
            for row in self._own.get(path, ())
            if row.bars
        ]
        if path not in self._nested:
            return own
        nested = dataclasses.replace(self._nested[path], depth=depth)
        inside = self.below(path, depth + 1)
        if not inside:
            return [nested, *own] if self._wanted.everything else own
        if self._wanted.unfold:
            return [nested, *own, *inside]
        return [*chart.fold(nested, inside, self._now), *own]

    def _add(
        self, kind: chart.RowKind, path: str, what: str, bar: chart.Bar
    ) -> None:
        """Add a bar to a row of the chart."""
        if not self._lately((bar,)):
            return
        rows = self._own[path]
        for position, row in enumerate(rows):
            if (row.kind, row.what) == (kind, what):
                rows[position] = dataclasses.replace(
                    row, bars=(*row.bars, bar)
                )
                return
        # Its target may be deleted.
        place = self._places.get(path)
        name = path if place is None else place.resource.name
        rows.append(
            chart.ChartRow(
                kind=kind, path=path, name=name, what=what, bars=(bar,)
            )
        )

    def _lately(self, bars: tuple[chart.Bar, ...]) -> tuple[chart.Bar, ...]:
        """Return the bars that end after the asked-for beginning."""
        since = self._wanted.since
        if since is None:
            return bars
        return tuple(bar for bar in bars if bar.until(self._now) >= since)
