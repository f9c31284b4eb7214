# SPDX-License-Identifier: Apache-2.0
"""What is ordered to run, by a user or by a signal of a deployment."""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.runs.targets import input_schema
from heat_plugins.runs.targets import targets
from heat_plugins.signals import body

TRIGGER, RUN, INPUT_VALUES = 'trigger', 'run', 'input_values'

_ID, _ACTION = 'id', 'action'
_ORDERED = (_ID, _ACTION, INPUT_VALUES, *run_records.LIMIT_NAMES)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SignalOrder:
    """What to run.

    :ivar inputs: what differs from the stack's own values; they may be
        secrets.
    :ivar limits: those that a signal asks for; None for the usual ones.
    :ivar id: that of the run, a UUID that the caller has made up; None for
        any. With the same one nothing starts twice.
    """

    action: str
    inputs: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
    limits: run_records.RunLimits | None = None
    id: str | None = None


def check(target: targets.Target, order: SignalOrder) -> None:
    """Check what is wanted.

    :raises errors.Refused: there is no such action, or the inputs do not
        fit.
    """
    target.tool(order.action)
    input_schema.values(target.declared, order.inputs, target.current)


def read(
    details: object,
    declared: abc.Iterable[abc.Mapping[str, Any]] = (),
) -> SignalOrder | None:
    """Return what a signal asks for; None if it is a server's result.

    It asks for a run if it is exactly ``{"trigger": "BACKUP",
    "input_values": {…}}``, of which the second may be left out, or exactly
    ``{"run": {"action": "BACKUP", …}}``, which may have limits and the ID of
    the run. An agent sends an exit status with its outputs, and so never that.
    Another program may signal for a server; so where the config has an output
    called ``trigger`` or ``run``, that is one.

    :param declared: the outputs of the config, maps with ``name``.
    :raises errors.Refused: it asks for a run that cannot be.
    """
    if not isinstance(details, dict) or not _asked(details, declared):
        return None
    if details.keys() == {RUN} and isinstance(details[RUN], dict):
        return _run(details[RUN])
    action, inputs = details.get(TRIGGER), details.get(INPUT_VALUES, {})
    if details.keys() - {TRIGGER, INPUT_VALUES}:
        return None
    if not isinstance(action, str) or not isinstance(inputs, dict):
        return None
    return SignalOrder(action=action, inputs=inputs)


def _run(ordered: abc.Mapping[str, Any]) -> SignalOrder:
    for name in ordered:
        if name not in _ORDERED:
            raise errors.Refused(
                f'a run has no key {bounds.shortened(str(name))}'
                + bounds.did_you_mean(str(name), _ORDERED)
            )
    action, inputs = ordered.get(_ACTION), ordered.get(INPUT_VALUES) or {}
    if not isinstance(action, str) or not isinstance(inputs, dict):
        raise errors.Refused(
            'a run needs "action", a text; "input_values" must be a map'
        )
    run_id = ordered.get(_ID)
    if run_id is not None and not ordering.is_uuid(run_id):
        raise errors.Refused(
            f'"{_ID}" of a run must be a UUID in lower case, with hyphens'
        )
    if run_id is not None and ordering.is_of_schedule(run_id):
        raise errors.Refused(
            f'"{_ID}" of a run must be another UUID: version 5 is that of '
            'schedules'
        )
    limits = run_records.RunLimits.asked(ordered)
    return SignalOrder(action=action, inputs=inputs, limits=limits, id=run_id)


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
    return {TRIGGER, RUN} & details.keys() - outputs
