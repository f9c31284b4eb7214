# SPDX-License-Identifier: Apache-2.0
"""Choose the targets of a run, and say why others are left out."""

from collections import abc
import dataclasses
import fnmatch
import hashlib
import json
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.configs import actions
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.runs.targets import stack_tree
from heat_plugins.runs.targets import targets

# Characters that make a name a pattern.
_WILD = frozenset('*?[')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chosen:
    """The targets, in their order.

    :ivar left_out: deployments that are none, as a dry run shows them.
    :ivar variants: for each target, what tells the configs apart that run.
    :ivar unmet: the names of resources, not patterns, without a target.
    """

    targets: abc.Sequence[targets.Target]
    left_out: abc.Sequence[dict[str, Any]] = ()
    variants: abc.Sequence[str] = ()
    description: str = ''
    unmet: abc.Sequence[str] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of a dry run: the targets, then those left out."""
        chosen = [
            {
                'stack': target.stack_name,
                'resource': target.resource,
                'server': target.server_name or target.server_id,
                'is_target': True,
                'variant': variant,
                'reason': '',
            }
            for target, variant in zip(
                self.targets, self.variants, strict=True
            )
        ]
        return [*chosen, *self.left_out]


@dataclasses.dataclass(kw_only=True)
class _Found:
    """The matches in stacks.

    :ivar offered: the actions of their deployments.
    :ivar named: stacks and paths of the resources that each name stands for.
    """

    chosen: list[targets.Target] = dataclasses.field(default_factory=list)
    left_out: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    offered: set[str] = dataclasses.field(default_factory=set)
    named: dict[str, set[tuple[str, str]]] = dataclasses.field(
        default_factory=dict
    )


class Chooser:
    """Finds the targets of runs."""

    def __init__(self, heat: stack_tree.Selecting) -> None:
        self._heat = heat

    def choose(
        self,
        wanted: ordering.Start,
        config: heat_values.Config | None = None,
    ) -> Chosen:
        """Return the targets.

        :param config: a config of the user's own; then the targets are
            servers.
        :raises errors.NotFound: there is no such stack, or no target.
        :raises errors.Refused: nothing is named, there are too many, or the
            inputs do not fit.
        """
        stacks = self._stacks(wanted)
        matches = _Found()
        for stack in stacks:
            self._find(stack, wanted, config, matches)
        chosen = matches.chosen
        if not chosen:
            action = wanted.action if config is None else None
            offered = sorted(matches.offered)
            if action and offered and action not in offered:
                raise errors.NotFound(
                    f'No deployment of {wanted.shown()} has an action '
                    f'{bounds.shortened(action)}; there are: '
                    f'{bounds.listed(offered)}'
                    + bounds.did_you_mean(action, offered)
                )
            reason = ''
            if matches.left_out:
                first = matches.left_out[0]
                place = f'{first["stack"]} {first["resource"]}'
                reason = f': {place}: {first["reason"]}'
            elif stacks and wanted.resources:
                reason = f': {self._hint(action, stacks[0])}'
            what = action or 'the script'
            raise errors.NotFound(
                f'There is no target for {what} in {wanted.shown()}{reason}'
            )
        if len(chosen) > run_records.MOST:
            raise errors.Refused(
                f'{len(chosen)} targets are more than a run may have '
                f'({run_records.MOST}); name fewer stacks'
            )
        for each in chosen:
            try:
                each.check(wanted.action, wanted.inputs)
            except errors.Refused as exc:
                raise errors.Refused(f'{each.label}: {exc}') from exc
        paths = {
            path
            for target in chosen
            for path in (
                (target.stack_id, each)
                for each in stack_tree.lineage(target.resource)
            )
        }
        return Chosen(
            targets=chosen,
            left_out=matches.left_out,
            variants=[_variant(each, wanted.action) for each in chosen],
            description=wanted.shown(),
            unmet=[
                name
                for name in wanted.resources
                if _WILD.isdisjoint(name)
                and paths.isdisjoint(matches.named.get(name, ()))
            ],
        )

    def deployments(self, wanted: ordering.Wanted) -> list[targets.Target]:
        """Return the deployments that servers have, whatever can run there.

        :raises errors.NotFound: there is no such stack, or no deployment.
        """
        stacks = self._stacks(wanted)
        deployments = [
            target
            for stack in stacks
            for target in targets.matching(
                self._heat,
                stack,
                lambda place: bool(
                    _met(wanted, place) or not wanted.resources
                ),
            )
        ]
        if not deployments and stacks and wanted.resources:
            raise errors.NotFound(self._hint('an action', stacks[0]))
        return deployments

    def _stacks(self, wanted: ordering.Wanted) -> list[heat_values.Stack]:
        """Return the stacks that an order names, by name, ID or tag."""
        names = list(wanted.stacks)
        narrowed = wanted.resources or wanted.metadata
        if narrowed and not (wanted.stacks or wanted.tags):
            names += self._heat.stack_ids()
        for tag in wanted.tags:
            tagged = self._heat.stack_ids(tag)
            if not tagged:
                raise errors.NotFound(f'No stack has the tag {tag}')
            names += tagged
        if not names:
            raise errors.Refused(
                'No targets are selected: name stacks, tags, resources or '
                "servers' metadata"
            )
        roots = [stack_tree.root(self._heat, each) for each in names]
        return list(
            {each.id: each for each in roots if not each.gone}.values()
        )

    def _find(
        self,
        stack: heat_values.Stack,
        wanted: ordering.Start,
        config: heat_values.Config | None,
        matches: _Found,
    ) -> None:
        """Add the targets of a stack."""

        def is_wanted(place: stack_tree.Place) -> bool:
            """Say whether a deployment meets a pattern of the order."""
            met = _met(wanted, place)
            for each in met:
                matches.named.setdefault(each, set()).add(
                    (stack.id, place.path)
                )
            return bool(met) or not wanted.resources

        has_metadata = self._has_metadata(stack, wanted.metadata)
        for target in targets.matching(self._heat, stack, is_wanted, config):
            reason = None
            if not has_metadata(target.server_id):
                reason = 'its server has other metadata'
            elif config is None:
                matches.offered.update(target.offered)
                if wanted.action in actions.LIFECYCLE:
                    reason = f'only Heat runs {wanted.action}'
                elif wanted.action not in target.offered:
                    reason = (
                        f'it has no action {bounds.shortened(wanted.action)} '
                        f'(it has: {bounds.listed(target.offered) or "none"})'
                    )
            if reason is None:
                matches.chosen.append(target)
                continue
            matches.left_out.append(
                {
                    'stack': stack.name,
                    'resource': target.resource,
                    'server': '',
                    'is_target': False,
                    'variant': '',
                    'reason': reason,
                }
            )

    def _has_metadata(
        self, stack: heat_values.Stack, wanted: abc.Mapping[str, str]
    ) -> abc.Callable[[str], bool]:
        """Return a test whether a server has the wanted metadata."""
        if not wanted:
            return lambda server_id: True
        places = stack_tree.find(self._heat, stack)
        named = targets.TemplateSources(self._heat, places)
        servers = {
            place.resource.physical_id: place.resource for place in places
        }

        def has(server_id: str) -> bool:
            """Say whether a server has the wanted metadata."""
            resource = servers.get(server_id)
            if resource is None:
                return False
            there = named.metadata_of(resource)
            is_lacking = any(name not in there for name in wanted)
            if is_lacking and resource.type == 'OS::Nova::Server':
                shown = self._heat.attribute(resource, 'show') or {}
                metadata = shown.get('metadata') or {}
                there = {
                    **{str(k): str(v) for k, v in metadata.items()},
                    **there,
                }
            return all(there.get(n) == value for n, value in wanted.items())

        return has

    def _hint(self, action: str | None, stack: heat_values.Stack) -> str:
        """Say which resources may be named."""
        what, kind, lacks = 'an action', 'deployments', 'software deployments'
        types: tuple[str, ...] = stack_tree.DEPLOYMENTS
        if action is None:
            what, kind, lacks = 'a script', 'servers', 'servers'
            types = stack_tree.SERVERS
        paths = [
            place.path
            for place in stack_tree.find(self._heat, stack)
            if place.resource.type in types
        ]
        offer = f'Its {kind}: {bounds.listed(paths)}'
        return (
            f'{what} runs on {kind}, so a resource must be one, or contain '
            f'some. Stack {stack.name}: '
            + (offer if paths else f'It has no {lacks}')
        )


def _met(wanted: ordering.Wanted, place: stack_tree.Place) -> list[str]:
    """Return the resources that a place is, as they are named in an order."""
    names = place.path, place.resource.physical_id
    return [
        each
        for each in wanted.resources
        if each in names
        or (not _WILD.isdisjoint(each) and fnmatch.fnmatchcase(names[0], each))
    ]


def _variant(target: targets.Target, action: str) -> str:
    """Return a digest that is equal for targets with the same config."""
    config = target.config.config
    entries = config.get('configs') if isinstance(config, dict) else None
    if isinstance(entries, list):
        config = [
            entry
            for entry in entries
            if isinstance(entry, dict) and action in entry.get('actions', ())
        ][:1]
    text = json.dumps(
        [target.config.group, config], sort_keys=True, default=str
    )
    return hashlib.sha256(text.encode()).hexdigest()[:8]
