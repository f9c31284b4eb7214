# SPDX-License-Identifier: Apache-2.0
"""Keeping the secrets of a plan out of what is shown and said of it.

Heat quotes values in some of its refusals, those of passwords too; and a
template hands the value of a hidden parameter down to others, under names
that nobody hides.
"""

from collections import abc
import contextlib
import re
from typing import Any

from heat_plugins.plans import environment as environments
from heat_plugins.plans import errors
from heat_plugins.plans import links
from heat_plugins.plans import parameters
from heat_plugins.plans import references
from heat_plugins.plans import texts as texts_module

# Shorter ones are found in many a word.
_SHORTEST = 4

# In values such words are common: a user's name, which is a weak password as
# well, should not make every path illegible.
_SHORTEST_WITHIN = 8


def values(
    environment: environments.PlanEnvironment,
    hidden: abc.Collection[str],
) -> frozenset[str]:
    """Return the texts of a plan that are not to be seen.

    :param hidden: the names of hidden parameters.
    """
    found = set(texts(environment.passwords))
    for section in (
        environment.parameter_defaults,
        environment.derived_parameters,
    ):
        for name, value in section.items():
            if name in hidden:
                found.update(texts(value))
    return frozenset(found)


def of_content(content: references.Resolved) -> frozenset[str]:
    """Return the texts sent to Heat that are not to be seen.

    Those are what was generated, and what is set for parameters that some
    template hides, or for some that were set in the plan and that no template
    has: nobody can say that those may be seen.
    """
    hidden: set[str] = set()
    known: set[str] = set()
    for text in (content.template, *content.files.values()):
        if not links.is_template(text):
            continue
        for name, parameter in parameters.declared(text).items():
            known.add(name)
            marks = (parameter.get('hidden'), parameter.get('NoEcho'))
            if any(str(mark).lower() == 'true' for mark in marks):
                hidden.add(name)
    found: set[str] = set()
    for key in content.environments:
        read = texts_module.mapping(content.files[key], key)
        for section in ('parameter_defaults', 'parameters'):
            for name, value in (read.get(section) or {}).items():
                if (
                    name in hidden
                    or key == references.PASSWORDS
                    or (key == references.SET and name not in known)
                ):
                    found.update(texts(value))
    return frozenset(found)


def texts(value: Any) -> abc.Iterator[str]:
    """Give the texts and numbers of a value that are no common words."""
    if isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif (
        value is not None
        and not isinstance(value, bool)
        and len(str(value)) >= _SHORTEST
    ):
        yield str(value)


class Mask:
    """Masks secrets.

    :param secrets: the texts that are not to be seen.
    """

    def __init__(self, secrets: abc.Collection[str]) -> None:
        self._secrets = frozenset(secrets)
        self._anywhere = _pattern(secrets)
        self._within = _pattern(
            one for one in secrets if len(one) >= _SHORTEST_WITHIN
        )

    def text(self, said: str) -> str:
        """Return what somebody has said, without any of the secrets."""
        return self._anywhere.sub(parameters.MASK, said)

    def value(self, value: Any) -> Any:
        """Return a value of JSON without those that are secrets.

        Long ones are found within others as well, as in a URL.
        """
        if isinstance(value, dict):
            return {name: self.value(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self.value(one) for one in value]
        if str(value) in self._secrets:
            return parameters.MASK
        if isinstance(value, str):
            return self._within.sub(parameters.MASK, value)
        return value


@contextlib.contextmanager
def guarding(content: references.Resolved) -> abc.Iterator[None]:
    """Mask the secrets of what is sent in what an error of Heat's says."""
    try:
        yield
    except errors.ServiceError as exc:
        secrets = of_content(content)
        raise type(exc)(masked(str(exc), secrets), exc.status) from None


def masked(said: str, secrets: abc.Collection[str]) -> str:
    """Return what somebody has said, without any of the secrets."""
    return Mask(secrets).text(said)


def _pattern(secrets: abc.Iterable[str]) -> re.Pattern[str]:
    # The longest first, as one may be part of another.
    every = sorted(secrets, key=len, reverse=True)
    return re.compile('|'.join(map(re.escape, every)) or '(?!)')
