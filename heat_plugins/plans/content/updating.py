# SPDX-License-Identifier: Apache-2.0
"""Other files for a plan, by what is different."""

from collections import abc
import dataclasses

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.content import sources
from heat_plugins.content import storage
from heat_plugins.content import texts
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plan_checking
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import secrecy
from heat_plugins.plans.rendering import rendering


@dataclasses.dataclass(frozen=True, kw_only=True)
class UpdateOrder:
    """The changes that an update asks for.

    :ivar delete: paths to remove.
    :ivar prune: whether to remove all that `content` lacks.
    """

    content: sources.Content
    delete: abc.Collection[str]
    prune: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """The writes and deletions of an update.

    :ivar environment: plan-environment.yaml, with passwords for what the
        root template now asks for.
    """

    write: sources.Content
    delete: frozenset[str]
    environment: environments.PlanEnvironment


def difference(
    plan: plans.Plan,
    container: storage.Container,
    order: UpdateOrder,
    limits: rendering.RenderingLimits,
) -> Difference:
    """Work out what to write and what to delete.

    :raises errors.Invalid: the plan would lack its root template, or an
        environment that is enabled; or a path to delete is not in the plan,
        or among the new files.
    """
    gone = {texts.path(path, 'file to delete') for path in order.delete}
    unknown = sorted(gone - set(plan.entries))
    if unknown:
        raise errors.Invalid(
            f'Plan {plan.name} has no {bounds.listed(unknown)} to delete'
        )
    files = dict(order.content)
    if plan.rendered:
        made, former = _rendered(plan, container, order, gone, limits)
        files |= made
        if not order.prune:
            # Of roles, networks and templates that are no more.
            gone |= former - set(files)
    # What is enabled and set is the plan's own.
    files.pop(environments.PATH, None)
    staying = sorted(gone & set(files))
    if staying:
        raise errors.Invalid(
            f'Cannot delete {bounds.listed(staying)}: the new files contain '
            'it, or a template renders to it; remove it there'
        )
    if order.prune:
        gone |= set(plan.entries) - set(files)
    gone.discard(environments.PATH)
    needed = {plan.environment.template, *plan.environment.enabled}
    if gone & needed:
        raise errors.Invalid(
            f'{bounds.listed(sorted(gone & needed))} cannot be deleted: it '
            'is the root template, or enabled; disable it first'
        )
    changes = Difference(
        write=storage.changed(files, plan.entries),
        delete=frozenset(gone),
        environment=secrecy.with_passwords(plan.environment, files),
    )
    _check(changes, plan, container)
    return changes


def _check(
    changes: Difference, plan: plans.Plan, container: storage.Container
) -> None:
    """Refuse new files that later commands cannot use.

    What was wrong before is no reason: it may take several steps to mend it.
    """
    paths = set(plan.entries) - changes.delete | set(changes.write)

    try:
        plan_checking.check(
            changes.environment,
            paths,
            _fetch(container, paths, changes.write),
            rendered=plan.rendered,
        )
    except errors.BadFile as exc:
        if exc.path in changes.write:
            raise
    except errors.NotFound:
        # Of what is enabled a file was lost before.
        pass


def _rendered(
    plan: plans.Plan,
    container: storage.Container,
    order: UpdateOrder,
    gone: abc.Collection[str],
    limits: rendering.RenderingLimits,
) -> tuple[dict[str, bytes], set[str]]:
    """Render again, with the new files and the plan's others.

    :return: what is made, and the paths of what was made before.
    """
    made_before = set(rendering.targets(plan.entries, container.fetch))
    kept = set(plan.entries) - set(gone) - made_before
    if order.prune:
        kept = set()

    paths = kept | set(order.content)
    fetch = _fetch(container, paths, order.content)
    made = rendering.outputs(paths, fetch, limits)
    return made, made_before & set(plan.entries)


def _fetch(
    container: storage.Container,
    paths: abc.Container[str],
    new: sources.Content,
) -> references.Fetch:
    """Return what fetches new files, and of some paths the present ones."""

    def fetch(wanted: abc.Collection[str]) -> dict[str, bytes]:
        given = {path: new[path] for path in wanted if path in new}
        present = [path for path in wanted if path in paths]
        return container.fetch(sorted({*present} - {*given})) | given

    return fetch


def carry_out(
    changes: Difference,
    plan: plans.Plan,
    container: storage.Container,
    progress: pools.Progress | None,
) -> None:
    """Write first, so that what refers to new files finds them."""
    container.write(changes.write, progress)
    if changes.environment != plan.environment:
        text = changes.environment.to_text()
        container.write({environments.PATH: text.encode()})
    container.delete(changes.delete)
