# SPDX-License-Identifier: Apache-2.0
"""Showing, setting and unsetting the parameters of plans."""

from collections import abc
import contextlib
import copy
import dataclasses
from typing import Any, Final
import uuid

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import masking
from heat_plugins.content import texts
from heat_plugins.plans import plan_service
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import heat_validation
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import secrecy

# The number is the version of the format.
_KEPT = 'parameters/4/'

# Heat's status for an invalid content.
_BAD_REQUEST: Final = 400

# Types whose values a user may write as a text of YAML.
_WRITTEN: Final = ('number', 'boolean', 'json')

# Constraints that a CFN template cannot express, and those that ask another
# service, such as for flavors.
_LEFT_TO_HEAT: Final = ('Step', 'Offset', 'CustomConstraint')

# Heat's error where a project has reached its quota of stacks, which Heat
# checks before it reads a preview.
_QUOTA: Final = 'RequestLimitExceeded'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shown:
    """The parameters of a plan, for one content of it.

    :ivar warnings: a sentence for each reference to a missing file.
    """

    root: parameters.TemplateParameters
    warnings: tuple[str, ...] = ()


def show(
    service: plan_service.Plans, plan: plans.Plan, *, refresh: bool = False
) -> Shown:
    """Return the parameters of a plan.

    Heat's answer is kept until the content changes.

    :param refresh: whether to ask Heat in any case, as after an upgrade.
    :raises errors.ServiceError: Heat refuses the plan.
    """
    shown = None
    if not refresh:
        shown = service.annex(plan).load(Shown, f'{_KEPT}{plan.content_hash}')
    if shown is None:
        shown = _ask(service, plan)
        _keep(service, plan, shown)
    return shown


def update(
    service: plan_service.Plans,
    name: str,
    values: abc.Mapping[str, Any],
    unset: abc.Collection[str] = (),
    *,
    role: str | None = None,
) -> plans.Plan:
    """Set and unset parameters of a plan; all of them or none.

    :param values: by the parameter's name; with a name and a key with a dot
        between them, one entry of a map.
    :param unset: names, as those of `values`.
    :param role: such as Compute: ``Count`` then means ``ComputeCount``, and
        other names are entries of ``ComputeParameters``.
    :raises errors.Invalid: a parameter does not exist, Heat refuses a value,
        or a parameter to unset was not set.
    :raises errors.ServiceError: Heat refuses the plan with the values.
    """
    with service.lock(name) as plan:
        defaults = copy.deepcopy(dict(plan.environment.parameter_defaults))
        for parameter in unset:
            _take_out(defaults, parameter, role)
        if values:
            known = parameters.effective(show(service, plan).root)
            changed = _put_in(defaults, known, values, role)
            _check(service, {key: defaults[key] for key in changed}, known)
        environment = dataclasses.replace(
            plan.environment, parameter_defaults=defaults
        )
        # Heat must accept the plan before it is written.
        shown = _ask(
            service, dataclasses.replace(plan, environment=environment)
        )
        plan = service.write(plan, environment)
    _keep(service, plan, shown)
    return plan


def _check(
    service: plan_service.Plans,
    values: abc.Mapping[str, Any],
    known: abc.Mapping[str, parameters.Effective],
) -> None:
    """Let Heat check values, by a template that has only parameters.

    Heat's validation of a plan does not check values; a deployment would fail
    in the middle. Values are not checked where a project has reached its quota
    of stacks.

    :raises errors.Invalid: Heat refuses a value.
    """
    declared = {}
    for name in values:
        parameter, _ = known[name]
        declared[name] = {
            'Type': heat_validation.HEATS_TYPES.get(parameter.type),
            **{
                constraint: limit
                for constraint, limit in parameter.constraints.items()
                if constraint not in _LEFT_TO_HEAT
            },
        }
    template = {
        'HeatTemplateFormatVersion': '2012-12-12',
        'Parameters': declared,
    }
    content = references.Resolved(
        template=texts.dump(template),
        environments=(references.SET,),
        files={references.SET: texts.dump({'parameters': dict(values)})},
    )
    probe = f'heat-plugins-{uuid.uuid4()}'
    try:
        service.stacks.preview(probe, content)
    except errors.ServiceError as exc:
        if exc.kind == _QUOTA:
            return
        if exc.status != _BAD_REQUEST:
            raise
        hidden = [
            value for name, value in values.items() if known[name][0].hidden
        ]
        reason = masking.Mask(masking.texts(hidden)).text(str(exc))
        # The name of the stack in the preview means nothing to users.
        raise errors.Invalid(reason.rpartition(f'{probe}: ')[2]) from None


def _ask(service: plan_service.Plans, plan: plans.Plan) -> Shown:
    """Ask Heat for the parameters of a plan."""
    resolved = service.resolve(plan)
    with secrecy.guarding(resolved, plan.environment):
        answer = service.stacks.validate(resolved)
    return Shown(
        root=heat_validation.read(answer, resolved, plan.environment),
        warnings=resolved.warnings,
    )


def _keep(service: plan_service.Plans, plan: plans.Plan, shown: Shown) -> None:
    """Keep what Heat says of a plan for the next question."""
    annex, name = service.annex(plan), f'{_KEPT}{plan.content_hash}'
    # A reader of the project cannot keep it.
    with contextlib.suppress(errors.ServiceError):
        annex.write(name, dataclasses.asdict(shown))
        annex.delete(*{*annex.names('parameters/')} - {name})


def _put_in(
    defaults: dict[str, Any],
    known: abc.Mapping[str, parameters.Effective],
    values: abc.Mapping[str, Any],
    role: str | None,
) -> dict[str, None]:
    """Set values; return the names of the parameters that are set."""
    changed: dict[str, None] = {}
    for given, value in values.items():
        name, key = _place(known, given, role)
        changed[name] = None
        if key is not None:
            current = defaults.get(name)
            entries = dict(current) if isinstance(current, dict) else {}
            defaults[name] = {**entries, key: value}
            continue
        if isinstance(value, str) and known[name][0].type in _WRITTEN:
            value = texts.load(value, f'the value of {name}')
        defaults[name] = value
    return changed


def _place(
    known: abc.Mapping[str, parameters.Effective],
    given: str,
    role: str | None,
) -> tuple[str, str | None]:
    """Return the parameter of a name, and the key of a map, if any.

    For role Compute, ``ntp`` is an entry of ``ComputeParameters``.
    """
    if role is not None:
        if f'{role}{given}' in known:
            return f'{role}{given}', None
        if _is_map(known, f'{role}Parameters'):
            return f'{role}Parameters', given
        raise errors.Invalid(
            f'Role {role} has no parameter {given}: the plan has neither '
            f'{role}{given} nor {role}Parameters'
        )
    if given in known:
        return given, None
    head, dot, key = given.partition('.')
    if dot and _is_map(known, head):
        return head, key
    hint = bounds.did_you_mean(given, known)
    raise errors.Invalid(
        f'The plan has no parameter {bounds.shortened(given)}{hint}'
    )


def _is_map(known: abc.Mapping[str, parameters.Effective], name: str) -> bool:
    """Say whether a parameter is a map."""
    return name in known and known[name][0].type == 'json'


def _take_out(defaults: dict[str, Any], given: str, role: str | None) -> None:
    """Remove a set parameter, or one entry of a map.

    The templates may no longer have it, so only the set values are searched.
    """
    head, _, key = given.partition('.')
    places: list[tuple[str, str]] = [(given, ''), (head, key)]
    if role is not None:
        places = [(f'{role}{given}', ''), (f'{role}Parameters', given)]
    for parameter, entry in places:
        value = defaults.get(parameter)
        if not entry and parameter in defaults:
            del defaults[parameter]
            return
        if entry and isinstance(value, dict) and entry in value:
            del value[entry]
            if not value:
                del defaults[parameter]
            return
    of_role = f' for role {role}' if role else ''
    raise errors.Invalid(f'{given} is not set in the plan{of_role}')
