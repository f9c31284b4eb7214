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
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import secrecy


def read(
    answer: abc.Mapping[str, Any],
    resolved: references.Resolved,
    environment: environments.PlanEnvironment,
) -> parameters.TemplateParameters:
    """Make of Heat's answer what can be shown.

    A name that is secret in one template is hidden in all of them; and its
    value, under whatever name it is handed down.

    :param answer: of `plan_stacks.Stacks.validate`.
    """
    return _Reader(answer, resolved, environment).root()


def secret_names(
    answer: abc.Mapping[str, Any],
    resolved: references.Resolved,
    environment: environments.PlanEnvironment,
) -> secrecy.SecretNames:
    """Return which parameters are secret, also of the cloud's templates."""
    return secrecy.SecretNames.of(
        resolved,
        environment,
        [answer.get('Parameters') or {}, *_nested(answer)],
    )


def _nested(
    answer: abc.Mapping[str, Any],
) -> abc.Iterator[abc.Mapping[str, Any]]:
    """Give the parameters of each nested template."""
    for below in (answer.get('NestedParameters') or {}).values():
        yield below.get('Parameters') or {}
        yield from _nested(below)


def secrets(
    answer: abc.Mapping[str, Any],
    environment: environments.PlanEnvironment,
    names: secrecy.SecretNames,
) -> frozenset[str]:
    """Return the texts that secret parameters have.

    A template's defaults are known to all who can read the template.
    """
    handed_down = (
        {
            name: parameter['Value']
            for name, parameter in nested.items()
            if 'Value' in parameter
        }
        for nested in _nested(answer)
    )
    hidden = set(masking.texts(environment.passwords))
    for values_ in (
        environment.parameter_defaults,
        environment.derived_parameters,
        _merged(answer),
        *handed_down,
    ):
        hidden.update(names.texts(values_))
    return frozenset(hidden)


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
        self._names = secret_names(answer, resolved, environment)
        secret = secrets(answer, environment, self._names)
        self._mask = masking.Mask(secret)
        self._set = _merged(answer)
        merged = answer.get('Environment') or {}
        self._registry = merged.get('resource_registry') or {}
        # The same few templates stand in many places.
        self._own = functools.cache(self._own_parameters)

    def root(self) -> parameters.TemplateParameters:
        own = parameters.declared(self._resolved.template)
        return self._template('', '', self._answer, own)

    def _template(
        self,
        path: str,
        type_: str,
        template: abc.Mapping[str, Any],
        own: abc.Mapping[str, Any],
    ) -> parameters.TemplateParameters:
        below = template.get('NestedParameters') or {}
        return parameters.TemplateParameters(
            path=path,
            type=type_,
            description=_description(template),
            parameters=tuple(
                self._parameter(
                    name, parameter, own.get(name) or {}, bool(path)
                )
                for name, parameter in (
                    template.get('Parameters') or {}
                ).items()
            ),
            nested=tuple(
                self._template(
                    f'{path}.{name}' if path else name,
                    template_below.get('Type') or '',
                    template_below,
                    self._own(template_below.get('Type') or ''),
                )
                for name, template_below in below.items()
            ),
        )

    def _parameter(
        self,
        name: str,
        given: abc.Mapping[str, Any],
        own: abc.Mapping[str, Any],
        nested: bool,
    ) -> parameters.Parameter:
        hidden = name in self._names.secret
        shown = _masked if hidden else self._mask.value
        default = own.get('default')
        value = given.get('Value', given.get('Default'))
        return parameters.Parameter(
            name=name,
            type=TYPES.get(given['Type'], str(given['Type']).lower()),
            label=given.get('Label') or '',
            description=given.get('Description') or '',
            default=shown(default),
            value=shown(value),
            origin=self._origin(name, given, nested),
            hidden=hidden,
            constraints={
                key: given[key] for key in CONSTRAINTS if key in given
            },
            tags=tuple(given.get('Tag') or ()),
        )

    def _origin(
        self, name: str, given: abc.Mapping[str, Any], nested: bool
    ) -> parameters.Origin:
        if nested and 'Value' in given:
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
        if 'Default' in given:
            return parameters.Origin.DEFAULT
        return parameters.Origin.MISSING

    def _own_parameters(self, type_: str) -> abc.Mapping[str, Any]:
        """Return what the template behind a resource type declares."""
        path = str(self._registry.get(type_, type_))
        return parameters.declared(self._resolved.files.get(path, ''))


#: Heat's names for the types of HOT.
TYPES = {
    'String': 'string',
    'Number': 'number',
    'CommaDelimitedList': 'comma_delimited_list',
    'Json': 'json',
    'Boolean': 'boolean',
}

#: The same the other way round.
HEATS_TYPES = {type_: name for name, type_ in TYPES.items()}

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


def _description(template: abc.Mapping[str, Any]) -> str:
    # What Heat says of a template that says nothing.
    description = str(template.get('Description') or '').strip()
    return '' if description == 'No description' else description


def _masked(value: Any) -> Any:
    return value if value in (None, '') else masking.MASK
