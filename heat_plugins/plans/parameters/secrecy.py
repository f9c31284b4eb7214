# SPDX-License-Identifier: Apache-2.0
"""Keeping the secrets of a plan out of what is shown and said of it.

Secret is what a template hides, and what the plan generates. `SecretNames`
decides that for lists, differences, exports and messages alike. Heat quotes
values in some of its refusals, those of passwords too; and a template hands
the value of a hidden parameter down to others, under names that are not
hidden.

Passwords are generated here, each once: a service that has been given one
would not notice a new value, so what has a value keeps it.
"""

from collections import abc
import contextlib
import dataclasses
import secrets
import string
from typing import Any, Self

from heat_plugins import errors
from heat_plugins import masking
from heat_plugins.content import texts
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import parameters

#: Where an environment sets parameters.
SECTIONS = ('parameter_defaults', 'parameters')

_Values = abc.Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SecretNames:
    """Which parameters are secret.

    :ivar secret: those that a template hides, or that the plan has a
        password for.
    :ivar known: those that some template has.
    """

    secret: frozenset[str]
    known: frozenset[str]

    @classmethod
    def of(
        cls,
        content: references.Resolved,
        plan: environments.PlanEnvironment,
        others: abc.Iterable[abc.Mapping[str, _Values]] = (),
    ) -> Self:
        """Return what a plan and its templates say.

        :param others: parameters of templates that are not in the content.
        """
        templates = [content.template]
        templates += filter(references.is_template, content.files.values())
        secret = set(plan.passwords)
        known: set[str] = set()
        for declared in (*map(parameters.declared, templates), *others):
            known |= declared.keys()
            secret.update(
                name
                for name, declaration in declared.items()
                if parameters.is_hidden(declaration)
            )
        return cls(secret=frozenset(secret), known=frozenset(known))

    def may_be_seen(self, name: str) -> bool:
        """Say whether the value of a parameter that was set may be seen.

        Of one that no template has that is unknown.
        """
        return name in self.known and name not in self.secret

    def texts(self, values: _Values) -> abc.Iterator[str]:
        """Give the texts that must not be seen of what is set."""
        for name in self.secret & values.keys():
            yield from masking.texts(values[name])

    def without(self, values: _Values) -> dict[str, Any]:
        """Return what may be seen of what is set."""
        return {
            name: value
            for name, value in values.items()
            if self.may_be_seen(name)
        }


def set_in(
    content: references.Resolved,
) -> abc.Iterator[tuple[str, _Values]]:
    """Give what each environment of a content sets, by its path."""
    for path in content.environments:
        read = texts.mapping(content.files[path], path)
        for section in SECTIONS:
            values = read.get(section)
            if isinstance(values, dict):
                yield path, values


def of_content(
    content: references.Resolved, plan: environments.PlanEnvironment
) -> frozenset[str]:
    """Return the texts sent to Heat that must not be seen.

    Among them is what was set in the plan for parameters that no template
    has.
    """
    names = SecretNames.of(content, plan)
    secrets = set(masking.texts(plan.passwords))
    for path, values in set_in(content):
        secrets.update(names.texts(values))
        if path == references.SET:
            secrets.update(
                masking.texts(
                    [values[name] for name in values.keys() - names.known]
                )
            )
    return frozenset(secrets)


@contextlib.contextmanager
def guarding(
    content: references.Resolved, plan: environments.PlanEnvironment
) -> abc.Iterator[None]:
    """Mask the secrets of what is sent in what an error of Heat's says."""
    try:
        yield
    except errors.ServiceError as exc:
        mask = masking.Mask(of_content(content, plan))
        masked = type(exc)(mask.text(str(exc)), exc.status)
        masked.__dict__.update(exc.__dict__)
        raise masked from None


_LENGTH = 32

# Nothing that a shell, a URL or a configuration file would read otherwise.
_ALPHABET = string.ascii_letters + string.digits


def fill_passwords(
    plan: environments.PlanEnvironment, names: abc.Iterable[str] = ()
) -> environments.PlanEnvironment:
    """Give a value to passwords that have none; return the rest as it is.

    :param names: of parameters that need one, as well as those that the
        plan has among its passwords without a value.
    """
    passwords: dict[str, Any] = {**dict.fromkeys(names), **plan.passwords}
    for name, value in passwords.items():
        if value is None and name not in plan.parameter_defaults:
            letters = [secrets.choice(_ALPHABET) for _ in range(_LENGTH)]
            passwords[name] = ''.join(letters)
    return dataclasses.replace(plan, passwords=passwords)


def with_passwords(
    plan: environments.PlanEnvironment, files: abc.Mapping[str, bytes]
) -> environments.PlanEnvironment:
    """Generate what a root template among files asks for, and nothing sets.

    Parameters need a password that are hidden, are texts, and have neither a
    default nor constraints.
    """
    path = plan.template
    if path not in files:
        return plan
    declared = parameters.declared(texts.decode(files[path], path))
    return fill_passwords(
        plan,
        [
            name
            for name, parameter in declared.items()
            if parameter.get('type') == 'string'
            and parameter.get('hidden') in (True, 'true')
            and 'default' not in parameter
            and not parameter.get('constraints')
        ],
    )
