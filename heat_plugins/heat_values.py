# SPDX-License-Identifier: Apache-2.0
"""Values of Heat: stacks, resources, configs and deployments.

All rooms use these, wherever they were read: by REST, in heat-engine, or from
its database.
"""

from collections import abc
import dataclasses
import datetime
import enum
from typing import Any

from heat_plugins import bounds
from heat_plugins import masking
from heat_plugins import tokens
from heat_plugins.configs import actions
from heat_plugins.configs import hidden_inputs
from heat_plugins.signals import body

#: The input of a derived config that names the signal transport.
TRANSPORT_INPUT = 'deploy_signal_transport'

#: Names of transports that are no transport of their own: the first usable
#: one, and a synonym of TEMP_URL_POLL.
AUTO, TEMP_URL_SIGNAL = 'AUTO', 'TEMP_URL_SIGNAL'
TEMP_URL_POLL, NO_SIGNAL = 'TEMP_URL_POLL', 'NO_SIGNAL'
CFN_SIGNAL = 'CFN_SIGNAL'

#: The statuses of a deployment that engines write.
COMPLETE, FAILED, IN_PROGRESS = 'COMPLETE', 'FAILED', 'IN_PROGRESS'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack.

    :ivar status: such as ``CREATE_FAILED``.
    :ivar parent: the id of the stack that it is nested in.
    :ivar parameters: their values; hidden ones are masked.
    :ivar changed_at: when its last action began, in ISO 8601.
    """

    id: str
    name: str
    status: str
    parent: str | None = None
    parameters: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
    reason: str = ''
    tags: tuple[str, ...] = ()
    changed_at: str = ''

    @property
    def gone(self) -> bool:
        """Whether it is deleted, or on its way there."""
        return self.status.startswith('DELETE')

    @property
    def action(self) -> str:
        return self.status.partition('_')[0]

    @property
    def deploys(self) -> bool:
        """Whether its last action was to create or update it."""
        return self.action in ('CREATE', 'UPDATE')

    @property
    def is_deploying(self) -> bool:
        """Whether Heat creates or updates it, or has just agreed to."""
        return self.action == 'INIT' or (self.deploys and self.in_progress)

    @property
    def in_progress(self) -> bool:
        return self.status.endswith('_IN_PROGRESS')

    @property
    def failed(self) -> bool:
        return self.status.endswith('_FAILED')


#: The most characters of an event's reason that Heat's database holds.
EVENT_LIMIT = 255


class EventKind(enum.Enum):
    """A kind of our events, by the name that its reason begins with.

    Heat's events have no field for it, so there are reasons such as ``Not
    triggered: there is no action BACKPU``. The rest is for people alone.
    """

    #: A server has reported that it runs what it was given.
    STARTED = 'Started'
    #: How far the members of a group are.
    PROGRESS = 'Progress'
    #: A signal to a deployment, or to a schedule, had no effect.
    NOT_TRIGGERED = 'Not triggered'
    #: A webhook did not take what a schedule had to tell.
    NOT_TOLD = 'Not told'
    #: The sender of a result lacks the permission.
    RESULT_REFUSED = 'Result refused'
    #: A result of an action that no engine waits for: a server has sent
    #: it twice, or has run the action again.
    RESULT_IGNORED = 'Result ignored'
    #: A signal to a workflow had no effect.
    SIGNAL_FAILED = 'Signal failed'
    #: heat-agents have no hook for what a server was given.
    UNKNOWN_HOOK = 'Unknown hook'


def event_reason(kind: EventKind, text: str) -> str:
    """Return the reason of an event; a long one ends in …."""
    return bounds.shortened(f'{kind.value}: {text}', EVENT_LIMIT)


def event_kind(reason: str) -> EventKind | None:
    """Return the kind of an event; None for those that Heat writes itself."""
    # Heat writes that before the reason of a signal.
    start = reason.removeprefix('Signal: ')
    return next(
        (kind for kind in EventKind if start.startswith(f'{kind.value}: ')),
        None,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Event:
    """Something that has happened to a resource, or to a stack.

    :ivar resource: its name; for a stack, the stack's.
    :ivar stack_id: the stack that the resource stands in.
    :ivar status: action and status, such as ``CREATE_IN_PROGRESS``.
    :ivar time: seconds since the epoch.
    """

    id: str
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

    @property
    def place(self) -> str:
        """The stack and the name of its resource, as one key."""
        return f'{self.stack_id}/{self.resource}'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource of a stack or of one nested in it.

    :ivar stack_id: the stack that it stands in.
    :ivar nested_id: the stack that it is.
    :ivar created_at: for `moment`; empty where heat-engine asks itself.
    """

    name: str
    type: str
    physical_id: str
    status: str
    stack_id: str
    nested_id: str | None = None
    created_at: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerResource:
    """A resource that stands for a server: that has its ID as physical one.

    :ivar number: of the resource, in the database.
    :ivar stack_id: of the stack that has the resource.
    :ivar root_stack_id: of the stack that has the resource.
    :ivar version: changes with the metadata.
    :ivar put_url: where its server reads the metadata, if that is the object
        store.
    :ivar has_queue: whether its server gets configs through Zaqar.
    :ivar is_itself: whether the id is the resource's own, which only
        Heat knows: that of an OS::Heat::DeployedServer.
    :ivar is_deleting: whether Heat deletes the server.
    """

    name: str
    stack_id: str
    stack_name: str
    root_stack_id: str
    metadata: abc.Mapping[str, Any]
    number: int = 0
    version: int | None = None
    put_url: str | None = dataclasses.field(default=None, repr=False)
    has_queue: bool = False
    is_itself: bool = False
    is_deleting: bool = False

    @property
    def next_version(self) -> int:
        """The version after a change of the metadata."""
        return (self.version or 0) + 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Server:
    """A server of the project.

    :ivar resources: in the order of their creation; none if no stack has it,
        and perhaps several: anybody can give the id to a resource of his own
        as ``external_id``.
    """

    id: str
    resources: tuple[ServerResource, ...]

    @property
    def has_queue(self) -> bool:
        return any(each.has_queue for each in self.resources)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DerivedConfig:
    """The content of a software config, such as a server gets for an action.

    :ivar config: what its author wrote.
    """

    name: str | None = None
    group: str | None
    config: Any
    inputs: abc.Sequence[abc.Mapping[str, Any]] = dataclasses.field(
        default=(), repr=False
    )
    outputs: abc.Sequence[abc.Mapping[str, Any]]
    options: abc.Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def is_withdrawn(self) -> bool:
        """Whether it was withdrawn from its server, which must not run it."""
        return self.group == actions.WITHDRAWN

    def tool(self, action: str) -> str | None:
        """Return the name of the hook that runs it for an action."""
        return actions.hook_for(self.group, self.config, action)

    def runs(self, action: str, listed: abc.Collection[str]) -> bool:
        """Say whether a server runs anything for an action.

        :param listed: the actions that the deployment lists; a component
            says for itself what it serves.
        """
        if self.group == actions.COMPONENT:
            return actions.serves(self.group, self.config, action)
        return action in listed

    @property
    def given_timeout(self) -> Any:
        """Seconds in which a server must answer; None if it is not told."""
        return next(
            (
                each.get('value')
                for each in self.inputs
                if each['name'] == body.TIMEOUT_INPUT
            ),
            None,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(DerivedConfig):
    """A software config that Heat stores."""

    id: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeploymentRow:
    """A deployment as Heat stores it, with the config of its last action.

    :ivar reading_project: the project whose stack users may read it, if any.
    """

    id: str
    server_id: str
    config: Config
    action: str
    status: str
    reason: str | None
    outputs: abc.Mapping[str, Any] = dataclasses.field(repr=False)
    input_values: abc.Mapping[str, Any] = dataclasses.field(repr=False)
    reading_project: str | None

    @property
    def in_progress(self) -> bool:
        """Whether its action has not ended."""
        return self.status == IN_PROGRESS

    @property
    def is_withdrawn(self) -> bool:
        """Whether its server no longer has the action.

        Release 0.1 gave the row another server for that.
        """
        server_id = self.inputs.get('deploy_server_id', self.server_id)
        return self.config.is_withdrawn or server_id != self.server_id

    @property
    def is_replaced(self) -> bool:
        """Whether another deployment has repeated its CREATE on its server."""
        return tokens.REPLACED.marks(self.reason)

    @property
    def is_unhealthy(self) -> bool:
        """Whether the next update must run it again."""
        return tokens.UNHEALTHY.marks(self.reason)

    @property
    def has_started(self) -> bool:
        """Whether its server has reported that it runs the action."""
        return tokens.STARTED.marks(self.reason)

    @property
    def outcome(self) -> body.SignalOutcome:
        """How its action has ended."""
        return body.SignalOutcome(
            status=self.status, reason=self.reason or '', outputs=self.outputs
        )

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs that the server was given, by name."""
        return {each['name']: each.get('value') for each in self.config.inputs}

    @property
    def transport(self) -> str | None:
        """How the server was told to signal, as the config says it."""
        return self.inputs.get(TRANSPORT_INPUT)

    @property
    def is_heats(self) -> bool:
        """Whether a result lies where only Heat's own class looks for it.

        There the result of one action may be taken for that of another. What
        our classes derive never says TEMP_URL_SIGNAL.
        """
        return self.transport == TEMP_URL_SIGNAL

    @property
    def is_awaitable(self) -> bool:
        """Whether a result of its action may still come to us."""
        return self.in_progress and not self.is_heats

    @property
    def is_signalled(self) -> bool:
        """Whether a signal ends the action."""
        return self.transport != NO_SIGNAL

    @property
    def mask(self) -> masking.Mask:
        """The mask of the hidden parts of its inputs."""
        return hidden_inputs.mask(self.config.inputs, self.config.options)


def canonical(transport: str) -> str:
    """Return the name of a transport; a template may use a synonym."""
    return TEMP_URL_POLL if transport == TEMP_URL_SIGNAL else transport


def moment(text: str) -> float:
    """Return a time, given in ISO 8601; one without a zone is in UTC.

    :raises ValueError: it is invalid.
    """
    time = datetime.datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=datetime.UTC)
    return time.timestamp()
