# SPDX-License-Identifier: Apache-2.0
"""The parameters of a plan, read from Heat's validation of it.

Heat answers with a tree: the parameters of the root template, and of each
template nested in it. What an environment sets takes the place of a default
there, so the templates are asked for their own.
"""

from collections import abc
import functools
from typing import Any

from heat_plugins import masking
from heat_plugins.plans.content import plan_environment as environments
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import secrecy


def read(
    answer: abc.Mapping[str, Any],
    resolved: references.Resolved,
    environment: environments.PlanEnvironment,
) -> parameters.Template:
    """Make of Heat's answer what can be shown.

    A name that one template hides is hidden in all of them; and its value,
    under whatever name it is handed down.

    :param answer: of `orchestration.Stacks.validate`.
    """
    return _Reader(answer, resolved, environment).root()


def hidden_names(
    answer: abc.Mapping[str, Any],
    environment: environments.PlanEnvironment,
) -> frozenset[str]:
    """Return the names of passwords and of what some template hides."""
    return _hidden(answer) | environment.passwords.keys()


def _hidden(answer: abc.Mapping[str, Any]) -> frozenset[str]:
    own = {
        name
        for name, found in (answer.get('Parameters') or {}).items()
        if parameters.is_hidden(found)
    }
    below = (answer.get('NestedParameters') or {}).values()
    return frozenset(own).union(*map(_hidden, below))


def secrets(
    answer: abc.Mapping[str, Any],
    environment: environments.PlanEnvironment,
) -> frozenset[str]:
    """Return the texts that hidden parameters and passwords have.

    A template's defaults are known to all who can read the template.
    """
    hidden = hidden_names(answer, environment)
    found = set(secrecy.values(environment, hidden))
    for name, value in _merged(answer).items():
        if name in hidden:
            found.update(masking.texts(value))
    return frozenset(found.union(*_handed_down(answer, hidden)))


def _handed_down(
    answer: abc.Mapping[str, Any], hidden: abc.Collection[str]
) -> abc.Iterator[abc.Iterable[str]]:
    for one in (answer.get('NestedParameters') or {}).values():
        for name, found in (one.get('Parameters') or {}).items():
            if name in hidden and 'Value' in found:
                yield masking.texts(found['Value'])
        yield from _handed_down(one, hidden)


def _merged(answer: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return what the environments set, as Heat has merged them."""
    return values(answer.get('Environment') or {})


def values(environment: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return what an environment sets, by the parameters' names."""
    return {
        **(environment.get('parameter_defaults') or {}),
        **(environment.get('parameters') or {}),
    }


class _Reader:
    def __init__(
        self,
        answer: abc.Mapping[str, Any],
        resolved: references.Resolved,
        environment: environments.PlanEnvironment,
    ) -> None:
        self._answer = answer
        self._resolved = resolved
        self._environment = environment
        self._hidden = hidden_names(answer, environment)
        self._mask = masking.Mask(secrets(answer, environment))
        self._set = _merged(answer)
        merged = answer.get('Environment') or {}
        self._registry = merged.get('resource_registry') or {}
        # The same few templates stand in many places.
        self._own = functools.cache(self._own_parameters)

    def root(self) -> parameters.Template:
        own = parameters.declared(self._resolved.template)
        return self._template('', '', self._answer, own)

    def _template(
        self,
        path: str,
        type_: str,
        found: abc.Mapping[str, Any],
        own: abc.Mapping[str, Any],
    ) -> parameters.Template:
        below = found.get('NestedParameters') or {}
        return parameters.Template(
            path=path,
            type=type_,
            description=_description(found),
            parameters=tuple(
                self._parameter(name, one, own.get(name) or {}, bool(path))
                for name, one in (found.get('Parameters') or {}).items()
            ),
            nested=tuple(
                self._template(
                    f'{path}.{name}' if path else name,
                    one.get('Type') or '',
                    one,
                    self._own(one.get('Type') or ''),
                )
                for name, one in below.items()
            ),
        )

    def _parameter(
        self,
        name: str,
        found: abc.Mapping[str, Any],
        own: abc.Mapping[str, Any],
        nested: bool,
    ) -> parameters.Parameter:
        hidden = name in self._hidden
        default = own.get('default', own.get('Default'))
        value = found.get('Value', found.get('Default'))
        return parameters.Parameter(
            name=name,
            type=TYPES.get(found['Type'], str(found['Type']).lower()),
            label=found.get('Label') or '',
            description=found.get('Description') or '',
            default=_masked(default) if hidden else self._mask.value(default),
            value=_masked(value) if hidden else self._mask.value(value),
            origin=self._origin(name, found, nested),
            hidden=hidden,
            constraints={
                key: found[key] for key in CONSTRAINTS if key in found
            },
            tags=tuple(found.get('Tag') or ()),
        )

    def _origin(
        self, name: str, found: abc.Mapping[str, Any], nested: bool
    ) -> parameters.Origin:
        if nested and 'Value' in found:
            return parameters.Origin.PARENT
        if name in self._environment.parameter_defaults:
            return parameters.Origin.PLAN
        if name in self._environment.derived_parameters:
            return parameters.Origin.DERIVED
        if name in self._set:
            # An environment goes over what was generated.
            generated = self._environment.passwords.get(name)
            if generated is not None and self._set[name] == generated:
                return parameters.Origin.GENERATED
            return parameters.Origin.ENVIRONMENT
        if 'Default' in found:
            return parameters.Origin.DEFAULT
        return parameters.Origin.MISSING

    def _own_parameters(self, type_: str) -> abc.Mapping[str, Any]:
        """Return what the template behind a resource type declares."""
        key: Any = type_
        # Names may stand for names; a circle ends somewhere.
        for _ in range(10):
            if not isinstance(key, str):
                break
            if key in self._resolved.files:
                return parameters.declared(self._resolved.files[key])
            key = self._registry.get(key)
        return {}


#: Heat's names for the types of HOT.
TYPES = {
    'String': 'string',
    'Number': 'number',
    'CommaDelimitedList': 'comma_delimited_list',
    'Json': 'json',
    'Boolean': 'boolean',
}

#: What limits a value, by Heat's names.
CONSTRAINTS = (
    'AllowedValues',
    'AllowedPattern',
    'MinLength',
    'MaxLength',
    'MinValue',
    'MaxValue',
    'Step',
    'Offset',
    'CustomConstraint',
    'ConstraintDescription',
)


def _description(found: abc.Mapping[str, Any]) -> str:
    # What Heat says of a template that says nothing.
    said = str(found.get('Description') or '').strip()
    return '' if said == 'No description' else said


def _masked(value: Any) -> Any:
    return value if value in (None, '') else masking.MASK
