# SPDX-License-Identifier: Apache-2.0
"""Signals to a workflow: which one to run, and its input.

A signal is ``{"workflow": …, "input": {…}, "params": {…}, "description":
…}``, each of them optional, or its whole body is the input. Alarms and
webhooks send bodies of their own; other keys are ignored.

The log holds the results of the last signals. Each has a key of its own:
several engines handle signals at the same time, and would overwrite a shared
list.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import json
import secrets
import time
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins.mistral import definitions

_KEYS: Final = frozenset({'workflow', 'input', 'params', 'description'})


class RunError(ValueError):
    """A signal is refused; the message says why."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestedRun:
    """The workflow to run, and its input.

    :ivar workflow: its name in Mistral.
    :ivar ignored: the unknown keys of the body.
    """

    workflow: str
    input: Mapping[str, Any]
    params: Mapping[str, Any]
    description: str
    ignored: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkflowOffer:
    """The workflows and inputs that a resource offers to run.

    :ivar names: name in Mistral by name in the definition.
    :ivar inputs: the defaults for every run.
    :ivar body_is_input: the whole body of a signal is the input.
    :ivar default: the workflow for a signal that names none.
    """

    workflows: Mapping[str, Mapping[str, Any]]
    names: Mapping[str, str]
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    body_is_input: bool = False
    default: str | None = None


def asked(body: Any, offer: WorkflowOffer) -> RequestedRun:
    """Return the run that the body of a signal requests.

    Mistral checks the input.

    :raises RunError: the body is invalid.
    """
    # An empty body comes as None, '' or {}.
    body = body or {}
    if not isinstance(body, Mapping):
        raise RunError('the body must be a map')
    if offer.body_is_input:
        body = {'input': body}
    for key in ('input', 'params'):
        if not isinstance(body.get(key) or {}, Mapping):
            raise RunError(f'"{key}" must be a map')
    name, names = body.get('workflow') or offer.default, offer.names
    if not name and len(names) == 1:
        name = next(iter(names))
    short = next((s for s, full in names.items() if name in (s, full)), None)
    if short is None:
        raise RunError(
            f'"workflow" must name one of {bounds.listed(names)}, not '
            f'"{bounds.shortened(str(name or ""))}"'
        )
    declared = definitions.inputs(offer.workflows.get(short, {}))
    given = {key: offer.inputs[key] for key in offer.inputs.keys() & declared}
    return RequestedRun(
        workflow=offer.names[short],
        input={**given, **(body.get('input') or {})},
        params={**offer.params, **(body.get('params') or {})},
        description=str(body.get('description') or ''),
        ignored=tuple(sorted(str(key) for key in body.keys() - _KEYS)),
    )


#: Number of signals that are remembered.
LOGGED: Final = 10

#: Characters of an error that are kept.
LOGGED_ERROR: Final = 2000

#: Ignored keys of a body that are kept.
LOGGED_IGNORED: Final = 50

_LOG_KEY: Final = 'signal.'


def write_log(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Return a new key, and an entry as text for Heat's database.

    Later keys sort after earlier ones.
    """
    error = entry['error']
    return (
        f'{_LOG_KEY}{time.time_ns():020d}.{secrets.token_hex(2)}',
        json.dumps(
            {
                **entry,
                'error': error and bounds.shortened(error, LOGGED_ERROR),
                'ignored': [
                    bounds.shortened(name, LOGGED_IGNORED)
                    for name in entry['ignored'][:LOGGED_IGNORED]
                ],
            }
        ),
    )


def read_log(data: Mapping[str, str]) -> list[Any]:
    """Return the entries in a resource's data, the newest first."""
    return [json.loads(data[key]) for key in _newest_keys(data)[:LOGGED]]


def surplus_log(data: Iterable[str]) -> list[str]:
    """Return the keys of the entries to delete."""
    return _newest_keys(data)[LOGGED:]


def _newest_keys(data: Iterable[str]) -> list[str]:
    """Return the keys of a workflow's log of signals, newest first."""
    return sorted(key for key in data if key.startswith(_LOG_KEY))[::-1]
