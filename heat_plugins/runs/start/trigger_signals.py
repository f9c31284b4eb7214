# SPDX-License-Identifier: Apache-2.0
"""What asks for a run, among the signals that a deployment is sent."""

from collections import abc
import dataclasses
from typing import Any, TypeGuard

from heat_plugins.signals import body

TRIGGER, INPUT_VALUES = 'trigger', 'input_values'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trigger:
    """What a signal asks for.

    :ivar inputs: what differs from the stack's own values; they may be
        secrets.
    """

    action: str
    inputs: abc.Mapping[str, Any] = dataclasses.field(repr=False)


def read(
    details: object,
    declared: abc.Iterable[abc.Mapping[str, Any]] = (),
) -> Trigger | None:
    """Return what a signal asks for; None if it is a server's result.

    To be a trigger it must be exactly ``{"trigger": "BACKUP",
    "input_values": {…}}``, of which the second may be left out. An agent
    sends an exit status beside its outputs, and so never that. A server may
    be signalled for by something else; so where the config has an output
    called ``trigger``, nothing is a trigger.

    :param declared: the outputs of the config, maps with ``name``.
    """
    if not looks_like_one(details) or _is_output(declared):
        return None
    action, inputs = details[TRIGGER], details.get(INPUT_VALUES, {})
    if details.keys() - {TRIGGER, INPUT_VALUES}:
        return None
    if not isinstance(action, str) or not isinstance(inputs, dict):
        return None
    return Trigger(action=action, inputs=inputs)


def looks_like_one(details: object) -> TypeGuard[dict[str, Any]]:
    """Say whether who sent a signal may have meant a trigger."""
    return isinstance(details, dict) and TRIGGER in details


def cannot_be_result(
    details: object, declared: abc.Iterable[abc.Mapping[str, Any]]
) -> bool:
    """Say whether who sent a signal must have meant a trigger.

    Such as one with a misspelt key: it must not end what a server does.

    :param declared: the outputs of the config, maps with ``name``.
    """
    return (
        isinstance(details, dict)
        and TRIGGER in details
        and body.STATUS_CODE not in details
        and not _is_output(declared)
    )


def _is_output(declared: abc.Iterable[abc.Mapping[str, Any]]) -> bool:
    return any(output['name'] == TRIGGER for output in declared)
