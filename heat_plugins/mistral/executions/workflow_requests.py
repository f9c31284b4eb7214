# SPDX-License-Identifier: Apache-2.0
"""Signals to a workflow: which one to run, and its input.

A signal is ``{"workflow": …, "input": {…}, "params": {…}, "description":
…}``, each of them optional, or its whole body is the input. Alarms and
webhooks send bodies of their own; other keys are ignored.

The log holds the results of the last signals, a bounded number of bounded
texts. Each has a key of its own: several engines handle signals at the same
time, and would overwrite a shared list.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import json
import secrets
import time
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins.mistral.definitions import definition_reading

KEYS: Final = ('workflow', 'input', 'params', 'description')


class RunError(ValueError):
    """A signal is refused; the message says why."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestedRun:
    """The workflow to run, and its input.

    :ivar workflow: its name in the definition.
    :ivar ignored: the unknown keys of the body.
    """

    workflow: str
    input: Mapping[str, Any]
    params: Mapping[str, Any]
    description: str = ''
    ignored: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkflowOffer:
    """What a resource offers to run.

    :ivar names: name in Mistral by name in the definition.
    :ivar inputs: the defaults for every run.
    :ivar body_is_input: the whole body of a signal is the input.
    :ivar default: the workflow for a signal that names none.
    """

    workflows: Mapping[str, definition_reading.DefinedWorkflow]
    names: Mapping[str, str]
    inputs: Mapping[str, Any]
    params: Mapping[str, Any]
    body_is_input: bool = False
    default: str | None = None


def asked(body: Any, offer: WorkflowOffer) -> RequestedRun:
    """Return the run that the body of a signal requests.

    :raises RunError: it cannot run.
    """
    # An empty body comes as None, '' or {}.
    body = {} if body is None or body == '' else body
    if not isinstance(body, Mapping):
        raise RunError(f'the body must be a map, not {_kind(body)}')
    if offer.body_is_input:
        body = {'input': body}
    for key in KEYS[1:3]:
        value = body.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise RunError(f'"{key}" must be a map, not {_kind(value)}')
    for key in (KEYS[0], KEYS[3]):
        value = body.get(key)
        if value is not None and not isinstance(value, str):
            raise RunError(f'"{key}" must be a text, not {_kind(value)}')
    workflow = _chosen(body.get('workflow'), offer)
    params = {**offer.params, **(body.get('params') or {})}
    if workflow.type == 'reverse' and not params.get('task_name'):
        raise RunError(
            f'the workflow "{workflow.name}" is reverse, so "params" must '
            'name its last task as "task_name"'
        )
    return RequestedRun(
        workflow=workflow.name,
        input=_input(workflow, offer.inputs, body.get('input') or {}),
        params=params,
        description=body.get('description') or '',
        ignored=tuple(sorted(str(key) for key in body.keys() - set(KEYS))),
    )


def _chosen(
    name: str | None, offer: WorkflowOffer
) -> definition_reading.DefinedWorkflow:
    workflows = offer.workflows
    name = name or offer.default
    if not name:
        if len(workflows) > 1:
            raise RunError(
                'there are several workflows, so "workflow" must name one '
                f'of {bounds.listed(workflows)}'
            )
        return next(iter(workflows.values()))
    for short, full in offer.names.items():
        if name in (short, full):
            return workflows[short]
    raise RunError(
        f'there is no workflow "{bounds.shortened(name)}", only '
        f'{bounds.listed(workflows)}'
    )


def _input(
    workflow: definition_reading.DefinedWorkflow,
    defaults: Mapping[str, Any],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    if unknown := sorted(str(key) for key in given.keys() - workflow.inputs):
        known = bounds.listed(workflow.inputs) or 'none'
        raise RunError(
            f'unknown input {bounds.listed(unknown)}: the workflow '
            f'"{workflow.name}" takes {known}'
        )
    merged = {
        key: value for key, value in defaults.items() if key in workflow.inputs
    }
    merged |= given
    if missing := [
        key
        for key, default in workflow.inputs.items()
        if default is definition_reading.REQUIRED and key not in merged
    ]:
        raise RunError(
            f'the workflow "{workflow.name}" needs the input '
            f'{bounds.listed(missing)}'
        )
    return merged


def _kind(value: Any) -> str:
    """Name a value's type in the sender's terms."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return 'a text'
    if isinstance(value, int | float):
        return 'a number'
    return 'a map' if isinstance(value, Mapping) else 'a list'


#: Number of signals that are remembered.
LOGGED: Final = 10

#: Characters of JSON that are kept of an error.
LOGGED_ERROR: Final = 15000

#: Ignored keys of a body that are kept, and characters of JSON of each.
LOGGED_IGNORED: Final = 50

_LOG_KEY: Final = 'signal.'


def log_key() -> str:
    """Return a new key; later ones sort after it."""
    return f'{_LOG_KEY}{time.time_ns():020d}.{secrets.token_hex(2)}'


def write_log(entry: Mapping[str, Any]) -> str:
    """Return an entry as text."""
    kept = dict(entry)
    if isinstance(error := kept.get('error'), str):
        kept['error'] = _kept(error, LOGGED_ERROR)
    ignored = kept.get('ignored') or []
    kept['ignored'] = [
        _kept(name, LOGGED_IGNORED) for name in ignored[:LOGGED_IGNORED]
    ]
    return json.dumps(kept)


def read_log(data: Mapping[str, str]) -> list[Any]:
    """Return the entries in a resource's data, the newest first."""
    return [json.loads(data[key]) for key in _newest_keys(data)[:LOGGED]]


def surplus_log(data: Iterable[str]) -> list[str]:
    """Return the keys of the entries to delete."""
    return _newest_keys(data)[LOGGED:]


def _kept(text: str, size: int) -> str:
    """Return the beginning of a text that fits a size as JSON.

    There a character may take as many as twelve.
    """
    short, length = bounds.shortened(text, size), size
    while (taken := len(json.dumps(short)) - 2) > size and length > 1:
        length = min(length - 1, length * size // taken)
        short = bounds.shortened(text, length)
    return short


def _newest_keys(data: Iterable[str]) -> list[str]:
    return sorted(key for key in data if key.startswith(_LOG_KEY))[::-1]
