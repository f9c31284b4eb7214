# SPDX-License-Identifier: Apache-2.0
"""Showing, setting and unsetting the parameters of plans."""

from collections import abc
import contextlib
import copy
import dataclasses
import datetime
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.plans import plan_service
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import links
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import constraints
from heat_plugins.plans.parameters import heat_validation
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import patterns
from heat_plugins.plans.parameters import refusals
from heat_plugins.plans.parameters import secrecy

# What Heat answers to what is wrong with a content.
_BAD_REQUEST = 400

# Another form of what is kept takes another name.
_KEPT = 'parameters/3/'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shown:
    """The parameters of a plan, for one content of it.

    :ivar warnings: references that lead nowhere, a sentence each.
    """

    root: parameters.TemplateParameters
    warnings: tuple[str, ...] = ()


class Settings:
    """The parameters of the plans of a project."""

    def __init__(self, plans: plan_service.Plans) -> None:
        self._plans = plans
        self._stacks = plans.stacks

    def show(self, name: str, *, refresh: bool = False) -> Shown:
        """Return the parameters of a plan; nothing of the plan changes.

        What Heat has said is kept for as long as the content stays what it
        is.

        :param refresh: whether to ask Heat in any case, as after an upgrade.
        :raises errors.ServiceError: Heat does not take the plan.
        """
        return self.of(self._plans.load(name), refresh=refresh)

    def of(self, plan: plans.Plan, *, refresh: bool = False) -> Shown:
        """Return the parameters of a plan that has been loaded."""
        shown = None if refresh else self.kept(plan)
        if shown is None:
            if not refresh:
                self._raise_kept(plan)
            try:
                shown = self._ask(plan)
            except (errors.Refused, errors.ServiceError) as exc:
                self._keep_refusal(plan, exc)
                raise
            self._keep(plan, dataclasses.asdict(shown))
        # What changes although the content does not is not kept.
        return dataclasses.replace(
            shown, warnings=(*_shared(plan), *shown.warnings)
        )

    def kept(self, plan: plans.Plan) -> Shown | None:
        """Return what Heat has said of this content, if it was asked."""
        return self._plans.annex(plan).load(
            Shown, f'{_KEPT}{plan.content_hash}'
        )

    def update(
        self,
        name: str,
        values: abc.Mapping[str, Any],
        unset: abc.Collection[str] = (),
        *,
        role: str | None = None,
    ) -> Shown:
        """Set and unset parameters; all of them or none.

        :param values: by the parameter's name; with a name and a key with a
            dot between them, one entry of a map.
        :param unset: names, as those of `values`.
        :param role: do so for one role: ``Count`` stands for
            ``ComputeCount`` then, and other names for entries of
            ``ComputeParameters``.
        :raises errors.Invalid: there is no such parameter, a value does not
            fit, or one to unset was not set.
        :raises errors.ServiceError: Heat does not take the plan with it.
        """
        shown: list[Shown] = []

        def edit(
            environment: environments.PlanEnvironment,
        ) -> environments.PlanEnvironment:
            plan = self._plans.load(name)
            defaults = copy.deepcopy(dict(environment.parameter_defaults))
            for parameter in unset:
                _take_out(defaults, parameter, role)
            if values:
                if self.kept(plan) is None:
                    # What is wrong in any case is told before Heat is asked.
                    resolved = self._plans.resolve(plan)
                    names = secrecy.SecretNames.of(resolved, environment)
                    declared = _declared(resolved, names)
                    _put_in({}, declared, values, role)
                known = parameters.effective(self.of(plan).root)
                _put_in(defaults, known, values, role)
            edited = dataclasses.replace(
                environment, parameter_defaults=defaults
            )
            # Before it is written: Heat has to take the plan with it.
            shown.append(
                self._ask(dataclasses.replace(plan, environment=edited))
            )
            return edited

        plan = self._plans.change(name, edit)
        self._keep(plan, dataclasses.asdict(shown[-1]))
        return shown[-1]

    def _ask(self, plan: plans.Plan) -> Shown:
        resolved = self._plans.resolve(plan)
        with refusals.explained(self._stacks, plan, resolved):
            answer = self._stacks.validate(resolved)
        return Shown(
            root=heat_validation.read(answer, resolved, plan.environment),
            warnings=(
                *_missing(resolved),
                *refusals.warnings(self._stacks, plan, resolved),
            ),
        )

    def _keep_refusal(self, plan: plans.Plan, exc: errors.Error) -> None:
        """Keep a refusal that will be the same for the same content."""
        status = getattr(exc, 'status', None)
        if type(exc) is not errors.Refused and status != _BAD_REQUEST:
            return
        now = datetime.datetime.now(datetime.UTC)
        at = now.isoformat(timespec='seconds')
        self._keep(plan, {'refused': str(exc), 'status': status, 'at': at})

    def _raise_kept(self, plan: plans.Plan) -> None:
        """Repeat a refusal of the same content.

        :raises errors.Refused: there is one; or an `errors.ServiceError`.
        """
        kept = self._plans.annex(plan).find(f'{_KEPT}{plan.content_hash}')
        if not (isinstance(kept, dict) and 'refused' in kept):
            return
        message = (
            f'{kept["refused"]} (answer of {kept.get("at")}. To ask Heat '
            'again: openstack deployment plan parameter list --refresh '
            f'{plan.name})'
        )
        if kept.get('status') == _BAD_REQUEST:
            raise errors.ServiceError(message, _BAD_REQUEST)
        raise errors.Refused(message)

    def _keep(self, plan: plans.Plan, answer: abc.Mapping[str, Any]) -> None:
        annex = self._plans.annex(plan)
        name = f'{_KEPT}{plan.content_hash}'
        # Who may only read does without.
        with contextlib.suppress(errors.ServiceError):
            annex.write(name, answer)
            annex.delete(*{*annex.names('parameters/')} - {name})


def _declared(
    resolved: references.Resolved, names: secrecy.SecretNames
) -> dict[str, parameters.Effective]:
    """Return the parameters that the plan's templates declare, by name.

    One that several of them declare with different types has none.
    """
    known: dict[str, parameters.Effective] = {}
    nested = filter(links.is_template, resolved.files.values())
    for text in (resolved.template, *nested):
        for name, declaration in parameters.declared(text).items():
            type_ = str(declaration.get('type', declaration.get('Type')))
            type_ = heat_validation.TYPES.get(type_, type_.lower())
            if name in known and known[name].parameter.type != type_:
                type_ = ''
            known[name] = parameters.Effective(
                parameter=parameters.Parameter(
                    name=name, type=type_, hidden=name in names.secret
                )
            )
    return known


def warnings(
    resolved: references.Resolved, plan: plans.Plan
) -> tuple[str, ...]:
    """Say what is no error, a sentence each."""
    return (*_shared(plan), *_missing(resolved))


def _missing(resolved: references.Resolved) -> tuple[str, ...]:
    return bounds.few(
        [
            f'{link.by} refers to {link.path}, which the plan does not have'
            for link in resolved.missing
        ]
    )


def _shared(plan: plans.Plan) -> tuple[str, ...]:
    if not plan.shared:
        return ()
    return (
        f'Container {plan.container} is shared: its access control lists let '
        "others read or write the plan's templates and passwords",
    )


def _put_in(
    defaults: dict[str, Any],
    known: abc.Mapping[str, parameters.Effective],
    values: abc.Mapping[str, Any],
    role: str | None,
) -> None:
    """Set values; each parameter has to fit with all that is set in it."""
    tries = patterns.Tries()
    maps: dict[str, dict[str, Any]] = {}
    for given, value in values.items():
        name, key = _place(known, given, role)
        if key is None:
            maps.pop(name, None)
            defaults[name] = constraints.fitted(value, known[name], tries)
            continue
        if name not in maps:
            current = defaults.get(name)
            maps[name] = dict(current) if isinstance(current, dict) else {}
        maps[name][key] = value
    for name, value in maps.items():
        defaults[name] = constraints.fitted(value, known[name], tries)


def _place(
    known: abc.Mapping[str, parameters.Effective],
    given: str,
    role: str | None,
) -> tuple[str, str | None]:
    """Return the parameter that a name means, and a key in it, if any."""
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
    return name in known and known[name].parameter.type == 'json'


def _take_out(defaults: dict[str, Any], given: str, role: str | None) -> None:
    # What was set may have been taken from the templates since, so only
    # what is set says what a name means.
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
