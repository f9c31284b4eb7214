# SPDX-License-Identifier: Apache-2.0
"""What is known of one run."""

from collections import abc
import dataclasses
import enum
import json
from typing import Any

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
    #: Of a run: another run of the action is in progress there.
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


def limited(
    outputs: abc.Mapping[str, Any], cut: abc.Mapping[str, int], limit: int
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return outputs of some bytes together, and how long those cut are.

    Of a longer one the end is kept, where errors are.
    """
    kept, lengths = {}, dict(cut)
    room = limit
    for name, value in outputs.items():
        size = len(name) + len(json.dumps(value))
        if size > room:
            text = value if isinstance(value, str) else json.dumps(value)
            lengths.setdefault(name, len(text))
            # A character may take six bytes, and a pair of them twelve.
            value = text[-(room // 12) :] if room >= 12 else ''
            size = len(name) + len(json.dumps(value))
        kept[name] = value
        room = max(0, room - size)
    return kept, lengths


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunAttempt:
    """What has become of a run; times are seconds since the epoch.

    :ivar state: None if nothing has started.
    :ivar row_id: the deployment that was made for this run.
    :ivar config_id: the config that was made for it.
    :ivar reported_at: when a report of the server was first seen.
    :ivar outputs: by name; of long ones the end.
    :ivar cut: how long they are, for those that are whole elsewhere.
    :ivar transport: how its server sends the result, if it was given it.
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
    transport: str | None = None

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
