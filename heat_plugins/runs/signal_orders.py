# SPDX-License-Identifier: Apache-2.0
"""What is ordered to run, by a user or by a signal of a deployment."""

from collections import abc
from typing import Any
import uuid

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


def check(target: targets.Target, order: ordering.Start) -> None:
    """Check what is wanted.

    :raises errors.Refused: there is no such action, or the inputs do not
        fit.
    """
    target.tool(order.action)
    input_schema.values(target.declared, order.inputs, target.current)


def read(
    details: object,
    declared: abc.Iterable[abc.Mapping[str, Any]] = (),
) -> ordering.Start | None:
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
    is_known = not details.keys() - {TRIGGER, INPUT_VALUES}
    if is_known and isinstance(action, str) and isinstance(inputs, dict):
        run_id = str(uuid.uuid4())
        return ordering.Start(run=run_id, action=action, inputs=inputs)
    return None


def _run(ordered: abc.Mapping[str, Any]) -> ordering.Start:
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
    if run_id is None:
        run_id = str(uuid.uuid4())
    ordering.check_id(run_id, f'"{_ID}" of a run')
    limits = {
        name: value
        for name, value in ordered.items()
        if name in run_records.LIMIT_NAMES
    }
    run_records.RunLimits.asked(limits)
    return ordering.Start(
        run=run_id, action=action, inputs=inputs, limits=limits
    )


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
