# SPDX-License-Identifier: Apache-2.0
"""Generated passwords: which parameters need one, and its value.

Each is generated once: a service that has been given one would not notice a
new value, so what has a value keeps it.
"""

from collections import abc
import dataclasses
import secrets
import string
from typing import Any

from heat_plugins import errors
from heat_plugins.content import texts
from heat_plugins.plans.content import plan_environment as environments
from heat_plugins.plans.parameters import patterns

_LENGTH = 32

# Nothing that a shell, a URL or a configuration file would read otherwise.
_ALPHABET = string.ascii_letters + string.digits


def wanted(template: str, where: str) -> tuple[str, ...]:
    """Return the parameters of a template that need a password.

    They are those that are hidden, are texts, and have no default. One that
    takes only certain texts is left to the user.
    """
    found = dict(texts.mapping(template, where))
    parameters = texts.section(found, 'parameters', where)
    tries = patterns.Tries()
    return tuple(
        str(name)
        for name, parameter in parameters.items()
        if isinstance(parameter, dict)
        and parameter.get('type') == 'string'
        and parameter.get('hidden') in (True, 'true')
        and 'default' not in parameter
        and _takes_any(parameter.get('constraints') or (), tries)
    )


def _takes_any(constraints: Any, tries: patterns.Tries) -> bool:
    """Say whether a password of ours is allowed, as far as can be told."""
    try:
        for one in constraints:
            length = one.get('length', {})
            if (
                'allowed_values' in one
                or 'custom_constraint' in one
                or int(length.get('max', _LENGTH)) < _LENGTH
                or int(length.get('min', _LENGTH)) > _LENGTH
                or not _matches(one.get('allowed_pattern', '.*'), tries)
            ):
                return False
    except (TypeError, ValueError, AttributeError):
        return False
    return True


def _matches(pattern: Any, tries: patterns.Tries) -> bool:
    try:
        return tries.matches(str(pattern), _generate())
    except errors.Invalid:
        return False


def fill(
    plan: environments.PlanEnvironment, names: abc.Iterable[str] = ()
) -> environments.PlanEnvironment:
    """Give a value to passwords that have none; return the rest as it is.

    :param names: of parameters that need one, as well as those that the
        plan has among its passwords without a value.
    """
    passwords: dict[str, Any] = dict(plan.passwords)
    for name in names:
        passwords.setdefault(name, None)
    for name, value in passwords.items():
        if value is None and name not in plan.parameter_defaults:
            passwords[name] = _generate()
    return dataclasses.replace(plan, passwords=passwords)


def withhold(
    plan: environments.PlanEnvironment,
) -> environments.PlanEnvironment:
    """Return it with the passwords' names alone."""
    return dataclasses.replace(plan, passwords=dict.fromkeys(plan.passwords))


def _generate() -> str:
    return ''.join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
