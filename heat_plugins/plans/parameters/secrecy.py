# SPDX-License-Identifier: Apache-2.0
"""Keeping the secrets of a plan out of lists, messages and exports.

Hidden parameters of templates and generated passwords are secret: see
`SecretNames`. Heat quotes values in some of its refusals, passwords too; and a
template may pass the value of a hidden parameter down under a name that is not
hidden.

Passwords are generated here, each once: a service with a password does not
notice a new one, so a parameter with a value keeps it.
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
    """The names of the parameters that are secret.

    :ivar secret: parameters that a template hides, or for which the plan has a
        password.
    :ivar known: parameters of any template.
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
        """Collect the names from a plan and its templates.

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
        """Return whether the value of a parameter may be shown.

        A parameter that no template has may be secret.
        """
        return name in self.known and name not in self.secret

    def texts(self, values: _Values) -> abc.Iterator[str]:
        """Yield the secret texts among the values of parameters."""
        for name in self.secret & values.keys():
            yield from masking.texts(values[name])


def set_in(
    content: references.Resolved,
) -> abc.Iterator[tuple[str, _Values]]:
    """Yield the path of each environment, with the parameters that it sets."""
    for path in content.environments:
        read = texts.mapping(content.files[path], path)
        for section in SECTIONS:
            values = read.get(section)
            if isinstance(values, dict):
                yield path, values


def of_content(
    content: references.Resolved, plan: environments.PlanEnvironment
) -> frozenset[str]:
    """Return the secret texts among those sent to Heat.

    Values set in the plan for parameters that no template has are secret, too.
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
    """Mask the secrets of a content in errors of Heat."""
    try:
        yield
    except errors.ServiceError as exc:
        mask = masking.Mask(of_content(content, plan))
        masked = type(exc)(mask.text(str(exc)), exc.status)
        masked.__dict__.update(exc.__dict__)
        raise masked from None


_LENGTH = 32

# No character is special in a shell, a URL or a configuration file.
_ALPHABET = string.ascii_letters + string.digits


def with_passwords(
    plan: environments.PlanEnvironment, files: abc.Mapping[str, bytes]
) -> environments.PlanEnvironment:
    """Generate the passwords that a plan or its root template needs.

    The root template needs one for each hidden parameter of type string that
    has neither a default nor constraints.

    :param files: the root template may be among them.
    """
    template = texts.decode(files.get(plan.template, b''), plan.template)
    passwords: dict[str, Any] = {
        name: None
        for name, parameter in parameters.declared(template).items()
        if parameter.get('type') == 'string'
        and parameter.get('hidden') in (True, 'true')
        and 'default' not in parameter
        and not parameter.get('constraints')
    }
    passwords |= plan.passwords
    for name, value in passwords.items():
        if value is None and name not in plan.parameter_defaults:
            letters = [secrets.choice(_ALPHABET) for _ in range(_LENGTH)]
            passwords[name] = ''.join(letters)
    return dataclasses.replace(plan, passwords=passwords)
