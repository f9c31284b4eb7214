# SPDX-License-Identifier: Apache-2.0
"""A run as it is recorded: its order, its targets and their attempts.

Times are seconds since the epoch.
"""

from collections import abc
import dataclasses
import enum
import json
import re
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import masking
from heat_plugins.runs import notifying

#: The reason of a run that waits for its server.
UNANSWERED = 'The server has not answered yet'

#: Seconds for a run whose deployment has no time limit.
DEFAULT_TIMEOUT = 3600

#: How much of an output a record holds: its end, where errors are told.
TAIL = 4096


class State(enum.StrEnum):
    """The state of an attempt, in words for people."""

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
        return self in _ENDS


_ENDS = (
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
    """A target of a run.

    :ivar stack_id: the root stack.
    :ivar resource: the path of the deployment's resource in that stack, or of
        the server's.
    :ivar deployment_id: the stack's deployment, whose config is run; the
        server, for a config of the user's own.
    :ivar server_name: the path of the server's resource; None if the stack
        has none.
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


#: What a run does with a target on which the action runs already: it
#: leaves the target out, or waits for the end of that run.
SKIP, WAIT = 'skip', 'wait'

_SHARE = re.compile(r'([0-9]{1,6})(%?)')


@dataclasses.dataclass(frozen=True)
class Share:
    """A number of targets, or a percentage of all."""

    number: int
    is_percent: bool = False

    @classmethod
    def parse(cls, text: str) -> 'Share':
        """Read ``10`` or ``10%``.

        :raises ValueError: it is neither.
        """
        match = _SHARE.fullmatch(text.strip())
        if match is None or (match[2] and int(match[1]) > 100):
            raise ValueError(
                f'{text!r} must be a number, such as 10, or a percentage '
                'from 0% to 100%'
            )
        return cls(int(match[1]), bool(match[2]))

    def of(self, total: int) -> int:
        """Return the number of targets, rounded down."""
        return self.number * total // 100 if self.is_percent else self.number

    def __str__(self) -> str:
        return f'{self.number}%' if self.is_percent else str(self.number)


#: The default number of concurrent runs.
CONCURRENT = Share(50)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunLimits:
    """The limits of a run; times are in seconds.

    :ivar max_concurrent: the most runs at a time; at least one.
    :ivar max_errors: the most failures; one more, and nothing else starts.
    :ivar canary: how many targets come first; all of them must succeed.
    :ivar approve_after_canary: whether a user must resume it after those.
    :ivar pause: between two batches. Without one there are no batches: a
        run starts as soon as another one has ended.
    :ivar timeout: for each run; None: as long as its deployment says.
    :ivar delivery_timeout: until a server must have reported, if it does.
    :ivar deadline: for the whole; None: no limit.
    :ivar cut_off: after which no run starts; those in progress continue.
        None: no limit.
    :ivar if_running: `SKIP` or `WAIT`.
    """

    max_concurrent: Share = CONCURRENT
    max_errors: Share = Share(0)
    canary: int = 0
    approve_after_canary: bool = False
    pause: int = 0
    timeout: int | None = None
    delivery_timeout: int | None = None
    deadline: int | None = None
    cut_off: int | None = None
    if_running: str = SKIP

    def concurrent(self, total: int) -> int:
        """Return the most runs at a time."""
        return max(1, self.max_concurrent.of(total))

    def shown(self) -> dict[str, Any]:
        """Return them in JSON's types."""
        return {
            **dataclasses.asdict(self),
            'max_concurrent': str(self.max_concurrent),
            'max_errors': str(self.max_errors),
        }

    @classmethod
    def asked(cls, values: abc.Mapping[str, Any]) -> 'RunLimits':
        """Return the limits that a caller asks for; numbers may be texts.

        It also reads what `shown` returns.

        :raises errors.Refused: a value is no limit.
        """
        limits: dict[str, Any] = {
            k: v for k, v in values.items() if k in LIMIT_NAMES
        }
        try:
            for name in ('max_concurrent', 'max_errors'):
                if name in limits:
                    limits[name] = Share.parse(str(limits[name]))
        except ValueError as exc:
            raise errors.Refused(str(exc)) from exc
        if limits.get('max_concurrent') in (Share(0), Share(0, True)):
            raise errors.Refused('"max_concurrent" must be at least 1')
        for name, least in _LEAST.items():
            value = limits.get(name, least)
            # YAQL and templates make texts of numbers.
            number = bounds.number(value) if isinstance(value, str) else None
            if number is not None:
                limits[name] = value = number
            if value is None and least:
                continue
            # A bool is an int, too.
            if type(value) is not int or not least <= value < 2**31:
                raise errors.Refused(
                    f'{name} must be a number, at least {least}'
                )
        if not isinstance(limits.get('approve_after_canary', False), bool):
            raise errors.Refused('approve_after_canary must be true or false')
        if limits.get('if_running', SKIP) not in (SKIP, WAIT):
            raise errors.Refused(f'if_running must be {SKIP} or {WAIT}')
        return cls(**limits)


#: What limits there are.
LIMIT_NAMES = tuple(field.name for field in dataclasses.fields(RunLimits))

# Limits that are numbers, and the least of each.
_LEAST = {
    'canary': 0,
    'pause': 0,
    'timeout': 1,
    'delivery_timeout': 1,
    'deadline': 1,
    'cut_off': 1,
}


class Phase(enum.Enum):
    """The state of a run."""

    RUNNING = 'running'
    #: A user has paused it; what runs continues, nothing else starts.
    PAUSED = 'paused'
    #: The canaries have succeeded; a user must resume it.
    APPROVAL = 'waiting-for-approval'
    #: Nothing else starts, and some runs have not ended.
    STOPPING = 'stopping'
    COMPLETE = 'complete'
    FAILED = 'failed'
    TIMED_OUT = 'timed-out'
    CANCELLED = 'cancelled'

    @property
    def ended(self) -> bool:
        return self in _ENDED


_ENDED = (Phase.COMPLETE, Phase.FAILED, Phase.TIMED_OUT, Phase.CANCELLED)


class Stop(enum.Enum):
    """The reason why no further target of a run starts."""

    ERRORS = 'errors'
    CANARY = 'canary'
    DEADLINE = 'deadline'
    CUT_OFF = 'cut-off'
    CANCELLED = 'cancelled'


#: The most targets of a run.
MOST = 10_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Head:
    """The row of a run in a list.

    :ivar state: None if the row is unreadable; then `reason` says why, and
        all but the ID and the time of creation is empty.
    :ivar counts: how many targets are in which state; zeros are left out.
    :ivar script: the first line of a script of the user's own.
    """

    id: str
    action: str = ''
    state: Phase | None = None
    reason: str = ''
    stacks: abc.Sequence[str] = ()
    stack_ids: abc.Sequence[str] = ()
    targets: int = 0
    counts: abc.Mapping[str, int] = dataclasses.field(default_factory=dict)
    created_at: int
    created_by: str = ''
    ended_at: int | None = None
    script: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """A request of a user to a run in progress.

    :ivar do: what to do; see `deciding`.
    :ivar who: the user's name.
    :ivar only: the run to cancel or to delete; of a retry, on which targets: a
        state, or the name of a server or resource; None for all that have not
        succeeded.
    :ivar request: its ID, which the caller has made up. A request of the same
        ID changes nothing again.
    """

    do: str
    who: str
    only: str | None = None
    request: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked(Request):
    """A request that a run has followed."""

    at: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attempt:
    """The last attempt on a member; times are seconds since the epoch.

    :ivar state: None if nothing has started.
    :ivar row_id: the deployment that was made for it.
    :ivar config_id: the config that was made for it.
    :ivar reported_at: when a report of the server was first seen.
    :ivar outputs: by name; of long ones the end.
    :ivar cut: how long they are, for those that are whole elsewhere.
    :ivar cancelled_by: of a former one, who has cancelled the run.
    :ivar transport: how its server sends the result, if it was given it.
    :ivar number: how many attempts have started.
    :ivar round: the round that it belongs to.
    :ivar gone: whether the member left the run with its stack.
    :ivar wait_until: when to check again whether another run has ended; None
        if there is none.
    :ivar former: the last attempts before this one.
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
    number: int = 0
    round: int = 0
    gone: bool = False
    wait_until: int | None = None
    former: tuple['Attempt', ...] = dataclasses.field(default=(), repr=False)

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

    @property
    def is_run(self) -> bool:
        """Whether there is a run of it to show."""
        return self.state not in (None, State.SKIPPED)

    @property
    def every(self) -> 'list[Attempt]':
        """This attempt and those before it, the first one first."""
        return [*self.former, self]

    @property
    def is_live(self) -> bool:
        return self.state is not None and not self.state.ended

    @property
    def counts(self) -> bool:
        """Whether its end says something about the action."""
        return not self.gone and self.state is not State.SKIPPED


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOrder:
    """The order of a user; it never changes.

    :ivar inputs: what differs from the stacks' own values. They may be
        secrets: never to be shown.
    :ivar config: a config of the user's own, in JSON's types; None for an
        action of the stacks' deployments.
    :ivar targets: how the members were chosen, for people.
    :ivar log_limit: the bytes of what each member prints that are kept; None
        for what is usual with that number of members.
    :ivar notify: the scheme and host of a webhook that is told of its end;
        empty for none.
    :ivar webhook: that webhook with its secrets, in the JSON types of
        `notifying.NoticeOrder`: never to be shown. None for no webhook.
    """

    id: str
    action: str
    limits: RunLimits
    members: abc.Sequence[RunTarget]
    created_at: int
    created_by: str
    targets: str = ''
    inputs: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
    config: abc.Mapping[str, Any] | None = dataclasses.field(
        default=None, repr=False
    )
    log_limit: int | None = None
    notify: str = ''
    webhook: abc.Mapping[str, Any] | None = dataclasses.field(
        default=None, repr=False
    )

    @property
    def script(self) -> str:
        """The script of the user's own, without inputs."""
        config = (self.config or {}).get('config') or ''
        shown = config if isinstance(config, str) else json.dumps(config)
        return str(masking.Mask(masking.texts(self.inputs)).value(shown))

    @property
    def stacks(self) -> list[str]:
        """The names of the root stacks."""
        return list(
            dict.fromkeys(member.stack_name for member in self.members)
        )

    @property
    def stack_ids(self) -> list[str]:
        return list(dict.fromkeys(member.stack_id for member in self.members))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Control:
    """The state of a run that holds for all members.

    :ivar round: 0, and one more for each retry.
    :ivar began_at: when the round began.
    :ivar paused_by: who has paused it; None if it is not paused.
    :ivar approved: whether a user has resumed it after the canaries.
    :ivar stopped: why nothing else starts.
    :ivar stopped_before: why nothing else started before the deadline passed;
        None if it was the deadline that stopped it.
    :ivar stopped_by: who has cancelled it.
    :ivar asked: what users have asked for last, with who and when.
    :ivar notices: what its webhook was told; see `telling`.
    """

    began_at: int
    phase: Phase = Phase.RUNNING
    reason: str = ''
    round: int = 0
    ended_at: int | None = None
    paused_by: str | None = None
    approved: bool = False
    stopped: Stop | None = None
    stopped_before: Stop | None = None
    stopped_by: str | None = None
    asked: tuple[Asked, ...] = ()
    notices: notifying.NoticeBook = dataclasses.field(
        default_factory=notifying.NoticeBook
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunRecord:
    """An order and its state."""

    order: RunOrder
    control: Control
    attempts: tuple[Attempt, ...]

    @classmethod
    def new(cls, order: RunOrder) -> 'RunRecord':
        """Return the record of a run that has just been ordered."""
        return cls(
            order=order,
            control=Control(began_at=order.created_at),
            attempts=(Attempt(),) * len(order.members),
        )

    @property
    def id(self) -> str:
        return self.order.id

    @property
    def ended(self) -> bool:
        return self.control.phase.ended

    @property
    def live(self) -> list[int]:
        """The members on which something runs."""
        return [
            n for n, attempt in enumerate(self.attempts) if attempt.is_live
        ]

    @property
    def pending(self) -> list[int]:
        """The members that this round has not begun with.

        What a retry leaves alone is of a former round.
        """
        return [
            n
            for n, attempt in enumerate(self.attempts)
            if attempt.state is None and attempt.round == self.control.round
        ]

    @property
    def failures(self) -> list[int]:
        return [
            n
            for n, attempt in enumerate(self.attempts)
            if attempt.state in (State.FAILED, State.TIMED_OUT)
        ]

    def count(self, state: State | None) -> int:
        return sum(attempt.state is state for attempt in self.attempts)

    def run_id(self, member: int) -> str:
        """Return the ID of the last attempt on a member."""
        return f'{self.id}.{member}.{self.attempts[member].number}'

    def running(self, run_id: str) -> int | None:
        """Return the member of a run; None if that is not in progress."""
        return next((n for n in self.live if self.run_id(n) == run_id), None)

    def timeout(self, member: int) -> int:
        """Return how many seconds a run may take."""
        return (
            self.order.limits.timeout
            or self.order.members[member].timeout
            or DEFAULT_TIMEOUT
        )

    def overdue(self, member: int, now: float) -> tuple[int, str] | None:
        """Return when the time of an attempt was over, and why.

        None if it is not.
        """
        attempt, seconds = self.attempts[member], self.timeout(member)
        delivery = self.delivery_timeout(member)
        began = attempt.started_at or 0
        if now >= began + seconds:
            return began + seconds, f'There was no result within {seconds} s'
        report = began + (delivery or seconds)
        if attempt.reported_at is None and now >= report:
            return report, (
                f'The server did not report within {delivery} s that it '
                'started'
            )
        return None

    def at_attempt(self, number: int) -> 'RunRecord':
        """Return it with the attempts of that number alone."""
        kept = [
            [each for each in last.every if each.number == number]
            for last in self.attempts
        ]
        return self.attempted(
            {
                n: vars(attempts[0] if attempts else Attempt())
                for n, attempts in enumerate(kept)
            }
        )

    def delivery_timeout(self, member: int) -> int | None:
        return (
            self.order.limits.delivery_timeout
            or self.order.members[member].delivery_timeout
        )

    def changed(self, **values: Any) -> 'RunRecord':
        """Return it with another control."""
        return dataclasses.replace(
            self, control=dataclasses.replace(self.control, **values)
        )

    def attempted(
        self, changes: abc.Mapping[int, abc.Mapping[str, Any]]
    ) -> 'RunRecord':
        """Return it with other attempts.

        :param changes: what changes of them, by member.
        """
        if not changes:
            return self
        attempts = list(self.attempts)
        for member, values in changes.items():
            attempts[member] = dataclasses.replace(attempts[member], **values)
        return dataclasses.replace(self, attempts=tuple(attempts))
