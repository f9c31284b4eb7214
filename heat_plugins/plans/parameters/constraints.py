# SPDX-License-Identifier: Apache-2.0
"""Whether a value fits a parameter.

Heat's validation of a template does not look at values; it would find out in
the middle of a deployment. What only a service knows, such as whether there
is a flavor of that name (a custom constraint), is left to Heat.
"""

from collections import abc
import decimal
import json
from typing import Any, NoReturn

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.content import texts
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import patterns

# As Heat reads them.
_TRUE = ('t', 'true', 'on', 'y', 'yes', '1')
_FALSE = ('f', 'false', 'off', 'n', 'no', '0')

# The most of a number, but the first one: those of the largest float.
_DIGITS = 308


def fitted(
    value: Any, wanted: parameters.Effective, tries: patterns.Tries
) -> Any:
    """Return a value as its parameter's type has it, if it fits.

    :param value: the value, or a text that stands for it.
    :raises errors.Invalid: it does not; says why, and names a value only if
        it is not hidden.
    """
    value = _converted(value, wanted.parameter)
    for parameter in (wanted.parameter, *wanted.others):
        wrong = _wrong(value, parameter, tries)
        if wrong:
            description = parameter.constraints.get('ConstraintDescription')
            _refuse(
                value,
                parameter,
                f'{wrong} ({description})' if description else wrong,
            )
    return value


def _converted(value: Any, parameter: parameters.Parameter) -> Any:
    if value is None:
        _refuse(value, parameter, 'it is null; unset the parameter instead')
    convert = _CONVERTERS.get(parameter.type)
    if convert is None:
        return value
    try:
        return convert(value)
    except (ValueError, TypeError, ArithmeticError, errors.Invalid):
        _refuse(value, parameter, f'it is not a {parameter.type}')


def _refuse(
    value: Any, parameter: parameters.Parameter, reason: str
) -> NoReturn:
    shown = 'a hidden value' if parameter.hidden else repr(value)
    raise errors.Invalid(
        f'{shown:.200} cannot be the value of {parameter.name}: {reason}'
    )


def _string(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if not isinstance(value, str):
        raise TypeError
    return value


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, int | float):
        return value
    number = decimal.Decimal(value)
    # To write out the digits of 1e999999999 takes for ever.
    if not number.is_finite() or number.adjusted() > _DIGITS:
        raise ValueError
    return int(number) if number == number.to_integral() else float(number)


def _boolean(value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in (*_TRUE, *_FALSE):
        raise ValueError
    return word in _TRUE


def _json(value: Any) -> Any:
    if isinstance(value, str):
        value = texts.load(value, 'the value')
    if not isinstance(value, dict | list):
        raise TypeError
    return value


def _list(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise TypeError
    return [_string(member) for member in value]


_CONVERTERS: dict[str, abc.Callable[[Any], Any]] = {
    'string': _string,
    'number': _number,
    'boolean': _boolean,
    'json': _json,
    'comma_delimited_list': _list,
}


def _wrong(
    value: Any, parameter: parameters.Parameter, tries: patterns.Tries
) -> str | None:
    """Say what is wrong with a value, if anything is."""
    limits = parameter.constraints
    if parameter.type == 'number':
        return _wrong_number(value, limits)
    members = value
    if parameter.type == 'comma_delimited_list' and isinstance(value, str):
        members = (
            [member.strip() for member in value.split(',')] if value else []
        )
    if 'AllowedValues' in limits:
        allowed = limits['AllowedValues']
        each = members if isinstance(members, list) else [members]
        if not set(map(str, each)) <= set(map(str, allowed)):
            return f'allowed values: {_listed(allowed)}'
    pattern = limits.get('AllowedPattern')
    # All of it has to match, as Heat has it.
    if pattern and not tries.matches(str(pattern), str(value)):
        return f'it does not match {pattern}'
    if 'MinLength' in limits and len(members) < int(limits['MinLength']):
        return f'its length is below {limits["MinLength"]}'
    if 'MaxLength' in limits and len(members) > int(limits['MaxLength']):
        return f'its length is above {limits["MaxLength"]}'
    return None


def _wrong_number(value: Any, limits: abc.Mapping[str, Any]) -> str | None:
    if 'MinValue' in limits and value < float(limits['MinValue']):
        return f'it is below {limits["MinValue"]}'
    if 'MaxValue' in limits and value > float(limits['MaxValue']):
        return f'it is above {limits["MaxValue"]}'
    if 'Step' in limits:
        step, offset = int(limits['Step']), int(limits.get('Offset') or 0)
        if (value - offset) % step:
            return f'it is not {offset} and a multiple of {step}'
    if 'AllowedValues' in limits:
        allowed = limits['AllowedValues']
        if value not in [_number(number) for number in allowed]:
            return f'allowed values: {_listed(allowed)}'
    return None


def _listed(allowed: abc.Collection[Any]) -> str:
    return bounds.listed(
        [bounds.shortened(str(allowed_value)) for allowed_value in allowed]
    )
