# SPDX-License-Identifier: Apache-2.0
"""Why an action of a deployment fails, in the words that Heat shows.

Heat begins the reason of a resource with the name of the class.
"""

from collections import abc
import dataclasses

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import wording
from heat_plugins.deployments import deliveries
from heat_plugins.signals import body

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
    total = wording.counted(number, 'member')
    text = f'{len(failed)} of {total} failed. {"; ".join(reasons)}'
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


def cancelled(action: str, servers: str) -> ActionFailed:
    """Return the failure of an action that the stack has cancelled.

    :param servers: those that it went to.
    """
    return ActionFailed(f'{action} was cancelled before {servers} answered')


def withdrawn(action: str) -> Failure:
    """Return the failure of a deployment that another process withdrew."""
    return Failure(
        reason='Another process withdrew the deployment while it waited for '
        f'the signal of {action}'
    )


def not_reported(
    work: deliveries.Work, server: str, limit: float, unknown_hook: str | None
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
    delivery: deliveries.Delivery,
    server: str,
    limit: float,
    unknown_hook: str | None,
    *,
    has_begun: bool,
) -> str:
    """Return the failure of an action whose time is up.

    :param limit: the seconds that it had.
    """
    about = '' if has_begun else _about(unknown_hook)
    return (
        f'Server {server} has not signalled {delivery.action} within '
        f'{limit:.0f} s (property "timeout"){about}. '
        + body.explained(delivery.config_id, started=has_begun)
    )


def not_delivered(
    action: str, servers: str, limit: float, error: Exception
) -> NoAnswer:
    """Return the failure of an action that could not be delivered in time.

    :param limit: the seconds that servers had to answer.
    """
    return NoAnswer(
        f'heat-engine could not deliver {action} to {servers} within '
        f'{limit:.0f} s (property "timeout"): {error}'
    )


def outage(
    action: str, seconds: float, error: Exception, *, is_delivered: bool
) -> ActionFailed:
    """Return the failure of an action that a failing service has blocked."""
    return (ActionFailed if is_delivered else NoAnswer)(
        f'heat-engine could not deliver {action} or poll its signal '
        f'for {int(seconds)} s: {error}'
    )


def key_changed(work: deliveries.Work, servers: str, *, repeats: bool) -> str:
    """Return what is told once signed URLs no longer work.

    :param servers: those that have them.
    :param repeats: whether they are given others.
    """
    then = (
        'heat-engine delivers the action again, with new URLs'
        if repeats
        else 'Set the former key as X-Account-Meta-Temp-URL-Key-2, or cancel '
        'the action and repeat it'
    )
    return (
        f"The account's TempURL key was changed; {servers} can no longer "
        f'send the result of {work.action}. {then}'
    )


def _about(unknown_hook: str | None) -> str:
    """Return what to add to the reason of an action that never started."""
    if unknown_hook is None:
        return ''
    return f'; heat-agents have no hook "{foreign.line(unknown_hook, 40)}"'
