# SPDX-License-Identifier: Apache-2.0
"""The parameters of a plan, read from Heat's validation of it.

Heat answers with a tree: the parameters of the root template, and of each
nested template. There the values of environments replace defaults, so defaults
are read from the templates.
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
    """Return the parameters in Heat's answer, with secrets masked.

    A name that is secret in one template is hidden in all of them; its value
    is hidden under all names.

    :param answer: of `plan_stacks.Stacks.validate`.
    """
    names = secret_names(answer, resolved, environment)
    mask = masking.Mask(secrets(answer, environment, names))
    merged = answer.get('Environment') or {}
    registry = merged.get('resource_registry') or {}

    # Few templates are nested in many places.
    @functools.cache
    def declared(type_: str) -> abc.Mapping[str, Any]:
        path = str(registry.get(type_, type_))
        return parameters.declared(resolved.files.get(path, ''))

    def template(
        path: str,
        type_: str,
        given: abc.Mapping[str, Any],
        own: abc.Mapping[str, Any],
    ) -> parameters.TemplateParameters:
        below = given.get('NestedParameters') or {}
        about = str(given.get('Description') or '').strip()
        return parameters.TemplateParameters(
            path=path,
            type=type_,
            # Heat's text for a template without a description.
            description='' if about == 'No description' else about,
            parameters=tuple(
                _parameter(
                    name,
                    parameter,
                    (own.get(name) or {}).get('default'),
                    _origin(name, parameter, merged, environment, path),
                    None if name in names.secret else mask,
                )
                for name, parameter in (given.get('Parameters') or {}).items()
            ),
            nested=tuple(
                template(
                    f'{path}.{name}' if path else name,
                    nested.get('Type') or '',
                    nested,
                    declared(nested.get('Type') or ''),
                )
                for name, nested in below.items()
            ),
        )

    return template('', '', answer, parameters.declared(resolved.template))


def secret_names(
    answer: abc.Mapping[str, Any],
    resolved: references.Resolved,
    environment: environments.PlanEnvironment,
) -> secrecy.SecretNames:
    """Return the secret names, also of templates of the cloud."""
    return secrecy.SecretNames.of(
        resolved,
        environment,
        [answer.get('Parameters') or {}, *_nested(answer)],
    )


def _nested(
    answer: abc.Mapping[str, Any],
) -> abc.Iterator[abc.Mapping[str, Any]]:
    """Yield the parameters of each nested template."""
    for below in (answer.get('NestedParameters') or {}).values():
        yield below.get('Parameters') or {}
        yield from _nested(below)


def secrets(
    answer: abc.Mapping[str, Any],
    environment: environments.PlanEnvironment,
    names: secrecy.SecretNames,
) -> frozenset[str]:
    """Return the texts in values of secret parameters.

    Defaults of templates are not secret.
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
        values(answer.get('Environment') or {}),
        *handed_down,
    ):
        hidden.update(names.texts(values_))
    return frozenset(hidden)


def values(environment: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that an environment sets."""
    return {
        **(environment.get('parameter_defaults') or {}),
        **(environment.get('parameters') or {}),
    }


def _parameter(
    name: str,
    given: abc.Mapping[str, Any],
    default: Any,
    origin: parameters.Origin,
    mask: masking.Mask | None,
) -> parameters.Parameter:
    """Return a parameter; without a mask its whole value is hidden."""

    def shown(value: Any) -> Any:
        if mask is not None:
            return mask.value(value)
        return value if value in (None, '') else masking.MASK

    return parameters.Parameter(
        name=name,
        type=TYPES.get(given['Type'], str(given['Type']).lower()),
        label=given.get('Label') or '',
        description=given.get('Description') or '',
        default=shown(default),
        value=shown(given.get('Value', given.get('Default'))),
        origin=origin,
        hidden=mask is None,
        constraints={key: given[key] for key in CONSTRAINTS if key in given},
        tags=tuple(given.get('Tag') or ()),
    )


def _origin(
    name: str,
    given: abc.Mapping[str, Any],
    merged: abc.Mapping[str, Any],
    environment: environments.PlanEnvironment,
    path: str,
) -> parameters.Origin:
    """Return the origin of the value of a parameter."""
    if path and 'Value' in given:
        return parameters.Origin.PARENT
    if name in environment.parameter_defaults:
        return parameters.Origin.PLAN
    if name in environment.derived_parameters:
        return parameters.Origin.DERIVED
    set_ = values(merged)
    if name in set_:
        # An environment overrides a generated password.
        generated = environment.passwords.get(name)
        if generated is not None and set_[name] == generated:
            return parameters.Origin.GENERATED
        return parameters.Origin.ENVIRONMENT
    if 'Default' in given:
        return parameters.Origin.DEFAULT
    return parameters.Origin.MISSING


#: Heat's names for the types of HOT.
TYPES = {
    'String': 'string',
    'Number': 'number',
    'CommaDelimitedList': 'comma_delimited_list',
    'Json': 'json',
    'Boolean': 'boolean',
}

#: The types of HOT, with Heat's names.
HEATS_TYPES = {type_: name for name, type_ in TYPES.items()}

#: The keys of constraints in Heat's answer.
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
