# SPDX-License-Identifier: Apache-2.0
"""Which targets an operation has, which it leaves out, and why."""

from collections import abc
import dataclasses
import fnmatch
import hashlib
import json

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins.configs import actions
from heat_plugins.runs import orchestration
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.start import orders
from heat_plugins.runs.start import stack_tree
from heat_plugins.runs.start import targets

# Characters that make a name a pattern.
_WILD = frozenset('*?[')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which targets a user wants.

    :ivar stacks: names or ids; without one, and without a tag, all stacks of
        the project.
    :ivar tags: stacks that bear any of them.
    :ivar resources: paths, or patterns of such: ``*``, ``?`` and ``[…]``; a
        resource that holds others stands for those.
    :ivar metadata: what a server's metadata must have, all of it.
    """

    stacks: abc.Sequence[str] = ()
    tags: abc.Sequence[str] = ()
    resources: abc.Sequence[str] = ()
    metadata: abc.Mapping[str, str] = dataclasses.field(default_factory=dict)

    def shown(self) -> str:
        """Return it for people."""
        parts = [f'stack {each}' for each in self.stacks]
        parts += [f'stack tag {each}' for each in self.tags]
        parts += [f'resource {each}' for each in self.resources]
        parts += [
            f'server metadata {name}={value}'
            for name, value in self.metadata.items()
        ]
        return ', '.join(parts)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A deployment that was looked at and is no target."""

    stack: str
    resource: str
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chosen:
    """The targets, in their order.

    :ivar variants: for each target, what tells the configs apart that run.
    :ivar unmet: the names of resources, not patterns, without a target.
    """

    targets: abc.Sequence[targets.Target]
    left_out: abc.Sequence[LeftOut] = ()
    variants: abc.Sequence[str] = ()
    description: str = ''
    unmet: abc.Sequence[str] = ()

    def needs_operation(self, limits: operations.OperationLimits) -> bool:
        """Say whether a single run will not do: the one rule for that.

        Several targets need an operation, and so do limits that only an
        operation keeps.
        """
        return (
            len(self.targets) != 1
            or limits.deadline is not None
            or limits.if_running == operations.WAIT
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Part:
    """What one stack has.

    :ivar named: the paths of the resources that each name stands for.
    """

    targets: list[targets.Target]
    left_out: list[LeftOut]
    offered: set[str]
    named: dict[str, set[str]]

    def met(self) -> set[str]:
        """Return the names that have a target."""
        paths = {
            path
            for target in self.targets
            for path in stack_tree.lineage(target.resource)
        }
        return {name for name, found in self.named.items() if found & paths}


class Chooser:
    """Finds the targets of operations."""

    def __init__(
        self, heat: orchestration.Orchestration, pool: pools.Pool
    ) -> None:
        self._heat = heat
        self._pool = pool

    def choose(
        self,
        wanted: Wanted,
        order: orders.RunOrder,
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
        finder = targets.Finder(self._heat, self._pool.shared(len(stacks)))
        parts = self._pool.each(
            lambda stack: self._part(
                finder, stack, wanted, order.action, config
            ),
            stacks,
        )
        chosen = [each for part in parts for each in part.targets]
        left_out = [each for part in parts for each in part.left_out]
        if not chosen:
            action = order.action if config is None else None
            self._refuse(wanted, action, parts, stacks)
        if len(chosen) > operations.MOST:
            raise errors.Refused(
                f'{len(chosen)} targets are more than an operation may have '
                f'({operations.MOST}); name fewer stacks'
            )
        for each in chosen:
            try:
                orders.check(each, order)
            except errors.Refused as exc:
                raise errors.Refused(f'{each.label}: {exc}') from exc
        return Chosen(
            targets=chosen,
            left_out=left_out,
            variants=[_variant(each, order.action) for each in chosen],
            description=wanted.shown(),
            unmet=_unmet(wanted, parts),
        )

    def _stacks(self, wanted: Wanted) -> list[heat_values.Stack]:
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
        root = targets.Finder(self._heat).root
        stacks = self._pool.each(root, names)
        return list(
            {each.id: each for each in stacks if not each.gone}.values()
        )

    def _part(
        self,
        finder: targets.Finder,
        stack: heat_values.Stack,
        wanted: Wanted,
        action: str,
        config: heat_values.Config | None,
    ) -> _Part:
        part = _Part(targets=[], left_out=[], offered=set(), named={})

        def is_wanted(place: stack_tree.Place) -> bool:
            met = [each for each in wanted.resources if _matches(place, each)]
            for each in met:
                part.named.setdefault(each, set()).add(place.path)
            return bool(met) or not wanted.resources

        has_metadata = self._has_metadata(stack, wanted.metadata)
        for target in finder.matching(stack, is_wanted, config):
            reason = None
            if not has_metadata(target.server_id):
                reason = 'its server has other metadata'
            elif config is None:
                reason = _refusal(target, action)
                part.offered.update(target.offered)
            if reason is None:
                part.targets.append(target)
            else:
                part.left_out.append(
                    LeftOut(
                        stack=stack.name,
                        resource=target.resource,
                        reason=reason,
                    )
                )
        return part

    def _has_metadata(
        self, stack: heat_values.Stack, wanted: abc.Mapping[str, str]
    ) -> abc.Callable[[str], bool]:
        """Return what says whether a server has the metadata."""
        if not wanted:
            return lambda server_id: True
        named = targets.TemplateSources(self._heat)
        servers = {
            place.resource.physical_id: place.resource
            for place in stack_tree.find(self._heat, stack)
        }

        def has(server_id: str) -> bool:
            resource = servers.get(server_id)
            if resource is None:
                return False
            there = named.metadata_of(resource)
            if any(name not in there for name in wanted):
                there = {**self._nova_metadata(resource), **there}
            return all(there.get(n) == value for n, value in wanted.items())

        return has

    def _nova_metadata(self, resource: heat_values.Resource) -> dict[str, str]:
        if resource.type != 'OS::Nova::Server':
            return {}
        shown = self._heat.attribute(resource, 'show')
        metadata = shown.get('metadata') if isinstance(shown, dict) else None
        if not isinstance(metadata, dict):
            return {}
        return {str(name): str(value) for name, value in metadata.items()}

    def _refuse(
        self,
        wanted: Wanted,
        action: str | None,
        parts: abc.Sequence[_Part],
        stacks: abc.Sequence[heat_values.Stack],
    ) -> None:
        """Say why there is no target.

        :param action: None for a config of the user's own.
        """
        offered = sorted(set().union(*(part.offered for part in parts)))
        left_out = [left for part in parts for left in part.left_out]
        if action and offered and action not in offered:
            raise errors.NotFound(
                f'No deployment of {wanted.shown()} has an action '
                f'{bounds.shortened(action)}; there are: '
                f'{bounds.listed(offered)}'
                + bounds.did_you_mean(action, offered)
            )
        reason = ''
        if left_out:
            first = left_out[0]
            reason = f': {first.stack} {first.resource}: {first.reason}'
        elif stacks and wanted.resources:
            reason = f': {self._hint(action, stacks[0])}'
        what = action or 'the script'
        raise errors.NotFound(f'There is no target for {what}{reason}')

    def _hint(self, action: str | None, stack: heat_values.Stack) -> str:
        """Say which resources may be named."""
        places = stack_tree.find(self._heat, stack)
        what, kind = 'an action', 'deployments'
        offer = stack_tree.offer_deployments(places)
        if action is None:
            what, kind = 'a script', 'servers'
            offer = stack_tree.offer_servers(places)
        return (
            f'{what} runs on {kind}, so a resource must be one, or contain '
            f'some. Stack {stack.name}: {offer}'
        )


def _unmet(wanted: Wanted, parts: abc.Iterable[_Part]) -> list[str]:
    met = set().union(*(part.met() for part in parts))
    return [
        name
        for name in wanted.resources
        if _WILD.isdisjoint(name) and name not in met
    ]


def _matches(place: stack_tree.Place, wanted: str) -> bool:
    if _WILD.isdisjoint(wanted):
        return wanted in (place.path, place.resource.physical_id)
    return fnmatch.fnmatchcase(place.path, wanted)


def _refusal(target: targets.Target, action: str) -> str | None:
    """Say why a deployment does not have an action; None if it does."""
    if action in target.offered:
        return None
    if action in actions.LIFECYCLE:
        return f'only Heat runs {action}'
    offered = bounds.listed(target.offered) or 'none'
    return f'it has no action {bounds.shortened(action)} (it has: {offered})'


def _variant(target: targets.Target, action: str) -> str:
    """Return what is the same for targets that run the same."""
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
