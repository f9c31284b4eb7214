# SPDX-License-Identifier: Apache-2.0
"""Keeping the values of a plan out of what services say of it.

Heat quotes values in some of its refusals, those of passwords too.
"""

from collections import abc
import contextlib
import re
from typing import Any

from heat_plugins.plans import environment as environments
from heat_plugins.plans import errors
from heat_plugins.plans import parameters

# Shorter ones are found in many a word.
_SHORTEST = 4


def values(
    environment: environments.PlanEnvironment,
    hidden: abc.Collection[str] | None = None,
) -> frozenset[str]:
    """Return the texts of a plan that are not to be seen.

    :param hidden: the names of hidden parameters; None if nobody knows, and
        any text that was set may be one.
    """
    found = set(_texts(environment.passwords))
    for section in (
        environment.parameter_defaults,
        environment.derived_parameters,
    ):
        for name, value in section.items():
            if hidden is None or name in hidden:
                found.update(_texts(value))
    return frozenset(found)


@contextlib.contextmanager
def masking(secrets: abc.Collection[str]) -> abc.Iterator[None]:
    """Mask texts in what an error of Heat's says."""
    try:
        yield
    except errors.ServiceError as exc:
        raise type(exc)(masked(str(exc), secrets), exc.status) from None


def masked(text: str, secrets: abc.Collection[str]) -> str:
    """Return a text in which secrets are masked."""
    if not secrets:
        return text
    # The longest first, as one may be part of another.
    every = sorted(secrets, key=len, reverse=True)
    return re.sub('|'.join(map(re.escape, every)), parameters.MASK, text)


def _texts(value: Any) -> abc.Iterator[str]:
    if isinstance(value, str):
        if len(value) >= _SHORTEST:
            yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
