# SPDX-License-Identifier: Apache-2.0
"""Deliveries: what a server is given for an action; and why one fails."""

from collections import abc
import dataclasses
import enum
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import masking
from heat_plugins import wording
from heat_plugins.configs import actions
from heat_plugins.configs import hidden_inputs
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import signal_names
from heat_plugins.signals import watcher

# The input with the URL that a result is sent to.
URL_INPUT = 'deploy_signal_id'


class AnswersBy(enum.Enum):
    """How the answer of a server comes."""

    OBJECT = 'an object, for which the watcher polls'
    ROW = 'the row, which a signal of the resource settles'
    QUEUE = 'a queue, which the transport reads'
    NONE = 'no answer'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """The name of one answer, which a server sends once.

    :ivar object_name: of the object in the store that it would be.
    :ivar query: the parameters of the signed URL that it would be POSTed to.
    """

    object_name: str
    query: abc.Mapping[str, str]

    @classmethod
    def of_deployment(cls, deployment_id: str, config_id: str) -> 'Answer':
        """Return the name of the answer to a derived config."""
        return cls(
            object_name=signal_names.signal(deployment_id, config_id),
            query={'config': config_id},
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signalling:
    """How one action is signalled.

    :ivar transport: its name, as the config says it.
    :ivar answers_by: how the answer comes.
    :ivar object_name: where the signal will lie, for TEMP_URL_POLL.
    :ivar verb: of the request to the URL.
    :ivar url: to send it to, without credentials; it is a secret.
    :ivar credentials: those of the deployment's user, for Heat's and Zaqar's
        APIs.
    :ivar queue_id: of the Zaqar queue.
    :ivar report_name: where a report that the server has started would lie,
        for TEMP_URL_POLL.
    :ivar report_url: the TempURL for that.
    :ivar control_url: the TempURL of the object that tells the server to
        stop, for TEMP_URL_POLL.
    :ivar signer: what has signed them.
    :ivar timeout: in how many seconds the server has to answer.
    """

    transport: str
    answers_by: AnswersBy = AnswersBy.OBJECT
    object_name: str | None = None
    verb: str = 'PUT'
    url: str | None = dataclasses.field(default=None, repr=False)
    credentials: abc.Mapping[str, Any] | None = dataclasses.field(
        default=None, repr=False
    )
    queue_id: str | None = None
    report_name: str | None = None
    report_url: str | None = dataclasses.field(default=None, repr=False)
    control_url: str | None = dataclasses.field(default=None, repr=False)
    signer: keys.Signer | None = None
    timeout: int | None = None

    @property
    def takes_reports(self) -> bool:
        """Whether a report may come as a signal of the resource."""
        return self.answers_by is AnswersBy.ROW

    def of_before(self, row: heat_values.DeploymentRow) -> 'Signalling':
        """Return how a server answers that was given its URL before.

        The key that has signed it may have been changed since.
        """
        url = row.inputs.get(URL_INPUT)
        if self.signer is None or self.object_name is None or not url:
            return self
        return dataclasses.replace(
            self, signer=self.signer.behind(self.object_name, str(url))
        )


#: The signalling of an action for which nothing was created yet.
NOTHING = Signalling(
    transport=heat_values.NO_SIGNAL, answers_by=AnswersBy.NONE
)


class Terms:
    """The properties that hold for all actions of a deployment.

    Each is resolved as late as possible: what a deleted deployment does not
    need may no longer exist.

    :param properties: of the deployment, by name.
    """

    def __init__(self, properties: abc.Mapping[str, Any]) -> None:
        self._properties = properties

    @property
    def server_id(self) -> str:
        """The id of its server."""
        return str(self._properties['server'])

    @property
    def actions(self) -> abc.Collection[str]:
        """Those that it lists; a component has its own."""
        return tuple(self._properties['actions'])

    @property
    def transport(self) -> str:
        """The canonical name."""
        return heat_values.canonical(self._properties['signal_transport'])

    @property
    def timeout(self) -> int | None:
        """Seconds that one may take; None where the stack's time counts."""
        return self._properties.get('timeout')

    @property
    def delivery_timeout(self) -> int | None:
        """Seconds until the server must have reported; None: never."""
        return self._properties.get('delivery_timeout')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Work:
    """An action that servers run."""

    action: str
    source: heat_values.DerivedConfig
    terms: Terms

    def unknown_hook(self, known: abc.Collection[str]) -> str | None:
        """Return the hook that runs it, if servers may lack that."""
        tool = self.source.tool(self.action) or ''
        return None if actions.is_known_hook(tool, known) else tool

    @property
    def is_repeatable(self) -> bool:
        """Whether a server may run it a second time."""
        tool = self.source.tool(self.action) or ''
        return (
            self.terms.transport == heat_values.AUTO
            or actions.hook_file(tool) in actions.REPEATABLE_HOOKS
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Delivery:
    """A config for a server, ready to be written.

    :ivar config_id: the id that the derived config gets.
    :ivar draft: the derived config, in the form that agents can take.
    :ivar input_values: what Heat's API shows as those of the deployment.
    :ivar reading_project: see
        `heat_values.DeploymentRow`.
    :ivar before: what the server was given before; None if nothing.
    :ivar reason: what the row says; None for the words of Heat's own class.
    :ivar secrets: texts to mask in the reason of a failure.
    """

    deployment_id: str
    server_id: str
    config_id: str
    action: str
    draft: heat_values.DerivedConfig
    input_values: abc.Mapping[str, Any] | None = dataclasses.field(repr=False)
    signalling: Signalling
    reading_project: str | None
    before: heat_values.DeploymentRow | None
    reason: str | None = None
    secrets: abc.Collection[str] = dataclasses.field(default=(), repr=False)

    @property
    def mask(self) -> masking.Mask:
        """The mask for the hidden parts of the inputs."""
        return hidden_inputs.mask(self.draft.inputs, self.draft.options)

    @property
    def ticket(self) -> watcher.Ticket:
        """The ticket that the watcher polls for."""
        return watcher.Ticket(
            deployment_id=self.deployment_id,
            config_id=self.config_id,
            object_name=self.signalling.object_name,
            report_name=self.signalling.report_name,
        )

    @property
    def is_signalled(self) -> bool:
        """Whether a signal ends the action."""
        return self.signalling.answers_by is not AnswersBy.NONE

    @property
    def is_queued(self) -> bool:
        """Whether the transport reads the answer from a queue."""
        return self.signalling.answers_by is AnswersBy.QUEUE


# The most reasons of failed members that the reason of a group has.
_REASONS = 3


#: Why an action ends that no engine waits for.
ENGINE_DIED = 'The engine that waited for the server has died'


class ActionFailed(errors.Failed):
    """An action has failed; the message says why."""


class NoAnswer(ActionFailed):
    """No answer could come back from a server, so it is given nothing."""


class Unusable(errors.Failed):
    """A transport cannot be used here; the message says why.

    :param why: a message, or the error of a service.
    """

    def __init__(self, why: str | errors.ServiceError) -> None:
        super().__init__(str(why))
        self._is_outage = isinstance(why, errors.Unavailable)

    @property
    def may_pass(self) -> bool:
        return self._is_outage


@dataclasses.dataclass(frozen=True, kw_only=True)
class Failure:
    """Why one member has failed.

    :ivar is_result: whether the server says so.
    """

    reason: str
    is_result: bool = False

    @classmethod
    def of(cls, outcome: body.SignalOutcome) -> 'Failure | None':
        """Return why an action that has ended failed; None if it has not."""
        if outcome.status == heat_values.COMPLETE:
            return None
        if outcome.status == heat_values.FAILED:
            return cls(reason=outcome.reason, is_result=True)
        # Heat's API lets its users write any status there.
        return cls(
            reason=f'Another client of Heat has set the status '
            f'{outcome.status}, which is neither COMPLETE nor FAILED'
        )


#: Sums up why members fail, by key: of how many, and how many of them have
#: not answered.
Summary = abc.Callable[[abc.Mapping[str, Failure], int, int], str]


def of_one(
    failed: abc.Mapping[str, Failure], number: int = 1, waiting: int = 0
) -> str:
    """Say why a deployment on a single server has failed."""
    (failure,) = failed.values()
    if failure.is_result:
        return f'Deployment to server failed: {failure.reason}'
    return failure.reason


def of_group(
    failed: abc.Mapping[str, Failure], number: int, waiting: int = 0
) -> str:
    """Say which members of a group have failed, and why.

    :param failed: by key; at least one.
    :param number: how many there are.
    :param waiting: how many have not answered.
    """
    reasons = wording.lines(
        (
            wording.Fault(name=key, reason=failure.reason)
            for key, failure in sorted(failed.items())
        ),
        'see the attribute "members"',
        noun='member',
        limit=_REASONS,
    )
    text = (
        f'{len(failed)} of {wording.counted(number, "member")} failed. '
        + '; '.join(reasons)
    )
    if waiting:
        text += (
            f'. {waiting} have not answered; the next update waits for them'
        )
    return text


def skipped(reasons: abc.Mapping[str, str], number: int) -> str:
    """Say which members did not run DELETE, and why.

    :param reasons: by key; at least one.
    :param number: how many members there are.
    """
    key, why = next(iter(reasons.items()))
    if number == 1:
        return f'DELETE was not run: {why}'
    return f'{len(reasons)} members did not run DELETE. {key}: {why}'


def server_gone(server_id: str) -> str:
    """Return the reason for a server that no longer exists."""
    return f'Server {server_id} no longer exists'


def not_reported(
    work: Work, server: str, limit: float, unknown_hook: str | None
) -> str:
    """Return the failure of an action that its server has not started.

    :param limit: the seconds that it had for that.
    """
    return (
        f'Server {server} has not reported within {limit:.0f} s (property '
        f'"delivery_timeout") that it has started {work.action}. It is off '
        'or unreachable, or its image has no heat-config-supervisor'
        f'{_about(unknown_hook)}'
    )


def not_signalled(
    delivery: Delivery,
    server: str,
    limit: float,
    unknown_hook: str | None,
    *,
    has_begun: bool,
) -> str:
    """Return the failure of an action that has timed out.

    :param limit: the seconds that it had.
    """
    about = '' if has_begun else _about(unknown_hook)
    return (
        f'Server {server} has not signalled {delivery.action} within '
        f'{limit:.0f} s (property "timeout"){about}. '
        + body.explained(delivery.config_id, started=has_begun)
    )


def _about(unknown_hook: str | None) -> str:
    """Return the note that an action never started, for its reason."""
    if unknown_hook is None:
        return ''
    return f'; heat-agents have no hook "{foreign.line(unknown_hook, 40)}"'
