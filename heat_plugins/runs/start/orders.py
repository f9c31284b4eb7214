# SPDX-License-Identifier: Apache-2.0
"""What is ordered to run, by a user or by a signal of a deployment."""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.start import schema
from heat_plugins.runs.start import targets
from heat_plugins.signals import body

TRIGGER, OPERATE, INPUT_VALUES = 'trigger', 'operate', 'input_values'

_ACTION = 'action'
_ORDERED = (_ACTION, INPUT_VALUES, *operations.LIMIT_NAMES)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOrder:
    """What to run.

    :ivar inputs: what differs from the stack's own values; they may be
        secrets.
    :ivar timeout: seconds for the whole of it; None: as many as the
        deployment has, or `runs.DEFAULT_TIMEOUT`.
    :ivar delivery_timeout: seconds until the server must have reported, for
        those that do; None: as many as the deployment has.
    :ivar repeats: the id of the run that is repeated.
    :ivar limits: those of an operation that a signal asks for.
    """

    action: str
    inputs: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
    timeout: int | None = None
    delivery_timeout: int | None = None
    repeats: str | None = None
    limits: operations.OperationLimits | None = None


def check(target: targets.Target, order: RunOrder) -> None:
    """Check what is wanted.

    :raises errors.Refused: there is no such action, or the inputs do not
        fit.
    """
    target.tool(order.action)
    schema.values(target.declared, order.inputs, target.current)


def read(
    details: object,
    declared: abc.Iterable[abc.Mapping[str, Any]] = (),
) -> RunOrder | None:
    """Return what a signal asks for; None if it is a server's result.

    It asks for a run if it is exactly ``{"trigger": "BACKUP",
    "input_values": {…}}``, of which the second may be left out; and for an
    operation if it is exactly ``{"operate": {"action": "BACKUP", …}}``. An
    agent sends an exit status with its outputs, and so never that. Another
    program may signal for a server; so where the config has an output called
    ``trigger`` or ``operate``, that is one.

    :param declared: the outputs of the config, maps with ``name``.
    :raises errors.Refused: it asks for an operation that cannot be.
    """
    if not isinstance(details, dict) or not _asked(details, declared):
        return None
    if details.keys() == {OPERATE} and isinstance(details[OPERATE], dict):
        return _operation(details[OPERATE])
    action, inputs = details.get(TRIGGER), details.get(INPUT_VALUES, {})
    if details.keys() - {TRIGGER, INPUT_VALUES}:
        return None
    if not isinstance(action, str) or not isinstance(inputs, dict):
        return None
    return RunOrder(action=action, inputs=inputs)


def _operation(ordered: abc.Mapping[str, Any]) -> RunOrder:
    for name in ordered:
        if name not in _ORDERED:
            raise errors.Refused(
                f'an operation has no key {bounds.shortened(str(name))}'
                + bounds.did_you_mean(str(name), _ORDERED)
            )
    action, inputs = ordered.get(_ACTION), ordered.get(INPUT_VALUES) or {}
    if not isinstance(action, str) or not isinstance(inputs, dict):
        raise errors.Refused(
            'an operation needs "action", a text; "input_values" must be a map'
        )
    limits = operations.OperationLimits.asked(ordered)
    return RunOrder(action=action, inputs=inputs, limits=limits)


def looks_like_one(details: object) -> bool:
    """Say whether who sent a signal may have meant a trigger."""
    return isinstance(details, dict) and bool(_asked(details, ()))


def cannot_be_result(
    details: object, declared: abc.Iterable[abc.Mapping[str, Any]]
) -> bool:
    """Say whether who sent a signal must have meant a trigger.

    Such as one with a misspelt key: it must not end what a server does.

    :param declared: the outputs of the config, maps with ``name``.
    """
    return (
        isinstance(details, dict)
        and body.STATUS_CODE not in details
        and bool(_asked(details, declared))
    )


def _asked(
    details: abc.Mapping[str, Any],
    declared: abc.Iterable[abc.Mapping[str, Any]],
) -> set[str]:
    """Return by which of the keys a signal may ask for something."""
    outputs = {output['name'] for output in declared}
    return {TRIGGER, OPERATE} & details.keys() - outputs
