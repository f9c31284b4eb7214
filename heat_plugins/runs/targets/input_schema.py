# SPDX-License-Identifier: Apache-2.0
"""Whether the inputs of a run fit what its config declares."""

from collections import abc
import contextlib
import json
import math
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.configs import config_checking
from heat_plugins.signals import body
from heat_plugins.signals import live

#: What Heat, its classes and we add to the inputs of a derived config.
RESERVED = body.REPORT_INPUTS | live.INPUTS | config_checking.RESERVED_INPUTS

_TRUE = ('true', 't', 'yes', 'y', 'on', '1')
_FALSE = ('false', 'f', 'no', 'n', 'off', '0')

_KINDS = {
    'Number': 'a number',
    'Boolean': 'true or false',
    'Json': 'a map or a list, in JSON',
    'CommaDelimitedList': 'a list, or a text with commas',
    'String': 'a text',
}


def values(
    declared: abc.Iterable[abc.Mapping[str, Any]],
    given: abc.Mapping[str, Any],
    current: abc.Mapping[str, Any],
) -> dict[str, Any]:
    """Return the values of the declared inputs for a run.

    :param declared: the inputs, maps with ``name`` and perhaps ``type`` and
        ``default``.
    :param given: what was asked for; a text where a person has typed it.
    :param current: the values that the stack gave its deployment.
    :raises errors.Refused: an input is unknown, of another type, or missing;
        all that is wrong is told at once, and never a value.
    """
    known = {
        str(each['name']): each
        for each in declared
        if each['name'] not in RESERVED
    }
    unknown = [name for name in given if name not in known]
    wrong = [_unknown(name, known) for name in unknown[: bounds.LISTED]]
    # These are only counted.
    wrong += unknown[bounds.LISTED :]
    result: dict[str, Any] = {}
    for name, each in known.items():
        if name in given:
            kind = str(each.get('type') or 'String')
            try:
                result[name] = converted(given[name], kind)
            except ValueError:
                wrong.append(
                    f'input "{bounds.shortened(name)}" must be '
                    f'{_KINDS.get(kind, kind)} ({kind})'
                )
            continue
        result[name] = current.get(name, each.get('default'))
        if result[name] is None:
            wrong.append(
                f'input "{bounds.shortened(name)}" has no value in the stack '
                'and no default; give it a value'
            )
    if wrong:
        raise errors.Refused(bounds.listed(wrong, between='; '))
    return result


def converted(value: Any, kind: str) -> Any:
    """Return a value as its type has it.

    :raises ValueError: it cannot be one.
    """
    if value is None:
        raise ValueError
    if kind == 'Number':
        return _number(value)
    if kind == 'Boolean':
        text = str(value).strip().lower()
        if text not in _TRUE + _FALSE:
            raise ValueError
        return text in _TRUE
    if kind == 'Json':
        parsed = bounds.read_json(value) if isinstance(value, str) else value
        if not isinstance(parsed, (dict, list)):
            raise ValueError
        # NaN and its like are no JSON, though Python reads them.
        json.dumps(parsed, allow_nan=False)
        return parsed
    if kind == 'CommaDelimitedList':
        if isinstance(value, str):
            return [part.strip() for part in value.split(',') if part.strip()]
        if not isinstance(value, list):
            raise ValueError
        return value
    if isinstance(value, (dict, list)):
        raise ValueError
    if isinstance(value, bool):
        return 'true' if value else 'false'
    return str(value)


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError
    if not isinstance(value, float):
        with contextlib.suppress(ValueError):
            return int(value)
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return number


def _unknown(name: str, known: abc.Collection[str]) -> str:
    names = bounds.listed(sorted(known)) or 'none'
    shown = bounds.shortened(name)
    return (
        f'there is no input "{shown}" (there are: {names})'
        + bounds.did_you_mean(name, known)
    )
