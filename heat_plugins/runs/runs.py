# SPDX-License-Identifier: Apache-2.0
"""What is known of one run."""

from collections import abc
import dataclasses
import enum
import json
from typing import Any

from heat_plugins import stored
from heat_plugins.runs.records import record_names
from heat_plugins.signals import body

#: The reason of a run that waits for its server.
UNANSWERED = 'The server has not answered yet'

#: Seconds for a run whose deployment has no time limit.
DEFAULT_TIMEOUT = 3600

#: How much of an output a record holds: its end, where errors are told.
TAIL = 4096


class State(enum.StrEnum):
    """What a run is doing, as a person would tell it."""

    #: It is being made; the server has not been given anything yet.
    STARTING = 'starting'
    #: The server was given it and has not answered. An agent that knows
    #: nothing of progress keeps silent until the end.
    WAITING = 'waiting'
    #: The server has reported that it has started the action.
    RUNNING = 'running'
    COMPLETE = 'complete'
    FAILED = 'failed'
    TIMED_OUT = 'timed-out'
    CANCELLED = 'cancelled'
    #: Of an operation: another run of the action is in progress there.
    SKIPPED = 'skipped'

    @property
    def ended(self) -> bool:
        return self in _ENDED


_ENDED = (
    State.COMPLETE,
    State.FAILED,
    State.TIMED_OUT,
    State.CANCELLED,
    State.SKIPPED,
)


#: The ends that a server's result makes.
REPORTED = (State.COMPLETE, State.FAILED)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Late:
    """A result that came after its run had ended, and no longer counts."""

    at: int
    status: str
    reason: str
    outputs: abc.Mapping[str, Any] = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunTarget:
    """What a run is on.

    :ivar stack_id: the root stack.
    :ivar resource: the path of the deployment's resource in that stack, or of
        the server's.
    :ivar deployment_id: the stack's deployment, whose config is run; the
        server, for a config of the user's own.
    :ivar server_name: the path of the server's resource; None if the stack
        has none, or an earlier release wrote the record.
    :ivar unknown_hook: the hook that it needs, if servers are not known to
        have one of that name.
    :ivar name: the own name of the resource; None if it is the last part of
        the path.
    :ivar source_id: the template's config, which has the types of the
        inputs; None if it cannot be told.
    :ivar timeout: seconds that an action of it may take; None if the template
        does not say.
    :ivar delivery_timeout: seconds until its server must have reported; None
        if it need not.
    """

    stack_id: str
    stack_name: str
    resource: str
    deployment_id: str
    server_id: str
    server_name: str | None = None
    unknown_hook: str | None = None
    name: str | None = None
    source_id: str | None = None
    timeout: int | None = None
    delivery_timeout: int | None = None

    @property
    def resource_name(self) -> str:
        """The own name of the resource."""
        return self.name or self.resource.rpartition('.')[2]

    @property
    def label(self) -> str:
        """The name that people know it by: resource names, and no ID."""
        return f'{self.stack_name} {self.resource}'


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunAttempt:
    """What has become of a run; times are seconds since the epoch.

    :ivar state: None if nothing has started.
    :ivar row_id: the deployment that was made for this run.
    :ivar config_id: the config that was made for it.
    :ivar reported_at: when a report of the server was first seen.
    :ivar outputs: by name; of long ones the end.
    :ivar cut: how long they are, for those that are whole elsewhere.
    """

    state: State | None = None
    reason: str = ''
    started_at: int | None = None
    reported_at: int | None = None
    ended_at: int | None = None
    row_id: str | None = None
    config_id: str | None = None
    outputs: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
    cut: abc.Mapping[str, int] = dataclasses.field(default_factory=dict)
    cancelled_by: str | None = None
    late: Late | None = None

    @property
    def is_unanswered(self) -> bool:
        """Whether it has ended without its server, which may go on."""
        ends = (State.CANCELLED, State.TIMED_OUT)
        return self.state in ends and self.late is None

    @property
    def duration(self) -> int | None:
        """The seconds that it has taken; None if it has not ended."""
        if self.ended_at is None or self.started_at is None:
            return None
        return self.ended_at - self.started_at


def overdue(
    attempt: RunAttempt,
    timeout: int,
    delivery_timeout: int | None,
    now: float,
) -> tuple[int, str] | None:
    """Return when the time of a run was over, and why; None if it is not."""
    began = attempt.started_at or 0
    if now >= began + timeout:
        return began + timeout, f'There was no result within {timeout} s'
    report = began + (delivery_timeout or timeout)
    if attempt.reported_at is None and now >= report:
        return report, (
            f'The server did not report within {delivery_timeout} s that it '
            'started'
        )
    return None


def shared(kind: type, value: Any) -> dict[str, Any]:
    """Return the fields that a value has of a class which it extends."""
    return {
        field.name: getattr(value, field.name)
        for field in dataclasses.fields(kind)
    }


def begun(attempt: RunAttempt, now: float) -> dict[str, Any]:
    """Return what changes of an attempt as its server reports its start."""
    return {
        'state': State.RUNNING,
        'reason': 'The server has started the action',
        'reported_at': attempt.reported_at or int(now),
    }


def cancelled(attempt: RunAttempt, who: str) -> str:
    """Return why an attempt ends that a user cancels."""
    begun = attempt.state is State.RUNNING
    return f'Cancelled by {who}' + (
        ' after the server had begun' if begun else ''
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run(RunTarget, RunAttempt):
    """A run.

    :ivar inputs: what was asked for beyond the stack's own values. They may
        be secrets: never to be shown.
    :ivar declared: the outputs that the config declares.
    :ivar hidden: the names of the inputs whose values are masked in what the
        server sends.
    :ivar repeats: the run that this one repeats.
    :ivar standalone: whether it runs a config that is not the stack's.
    :ivar guarded: whether an engine ends it when its deployment goes. Then
        it may go on while the deployment's row is withdrawn.
    """

    id: str
    action: str
    # Else the defaults of what this extends would hold.
    state: State = dataclasses.field()
    reason: str = dataclasses.field()
    started_at: int = dataclasses.field()
    started_by: str
    timeout: int = dataclasses.field()
    inputs: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
    declared: abc.Sequence[abc.Mapping[str, Any]] = ()
    hidden: abc.Sequence[str] = ()
    progress: float | None = None
    message: str | None = None
    repeats: str | None = None
    standalone: bool = False
    guarded: bool = False

    @property
    def key(self) -> record_names.Key:
        return record_names.Key(
            run_id=self.id,
            deployment_id=self.deployment_id,
            action=self.action,
        )

    @property
    def operation(self) -> str | None:
        """The operation that it is a run of; None for a single run."""
        return record_names.operation_of(self.id)

    @property
    def ended(self) -> bool:
        return self.state.ended

    @property
    def deadline(self) -> int:
        return self.started_at + self.timeout

    @property
    def signal(self) -> str:
        """The object that is its result."""
        return self.key.signal

    @property
    def progress_signal(self) -> str:
        return body.report_name(self.signal)

    @classmethod
    def read(cls, values: Any) -> 'Run':
        """Read a record; what a later release has added is left out.

        :raises ValueError: it is none.
        """
        json.dumps(values, allow_nan=False)
        run = stored.read(cls, values)
        if not all(isinstance(each.get('name'), str) for each in run.declared):
            raise ValueError('an output has no name')
        return run
