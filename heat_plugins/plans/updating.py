# SPDX-License-Identifier: Apache-2.0
"""Other files for a plan, by what is different."""

from collections import abc
import dataclasses

from heat_plugins.plans import environment as environments
from heat_plugins.plans import errors
from heat_plugins.plans import plan as plans
from heat_plugins.plans import pool as pools
from heat_plugins.plans import rendering
from heat_plugins.plans import sources
from heat_plugins.plans import storage
from heat_plugins.plans import texts


@dataclasses.dataclass(frozen=True, kw_only=True)
class Order:
    """What is to become different.

    :ivar delete: paths to take out.
    :ivar prune: whether to take out all that `content` lacks.
    """

    content: sources.Content
    delete: abc.Collection[str]
    prune: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """What has to be done for it."""

    write: sources.Content
    delete: frozenset[str]


def difference(
    plan: plans.Plan, container: storage.Container, order: Order
) -> Difference:
    """Work out what to write and what to delete.

    :raises errors.Invalid: the plan would lack its root template, or an
        environment that is enabled; or has not what is to be deleted, or
        would have it all the same.
    """
    gone = {texts.path(path, 'file to delete') for path in order.delete}
    unknown = sorted(gone - set(plan.entries))
    if unknown:
        raise errors.Invalid(
            f'Plan {plan.name} has no {", ".join(unknown)} to delete'
        )
    files = dict(order.content)
    if plan.rendered:
        files = _rendered(plan, container, order, gone)
    # What is enabled and set is the plan's own.
    files.pop(environments.PATH, None)
    staying = sorted(gone & set(files))
    if staying:
        raise errors.Invalid(
            f'{", ".join(staying)} cannot be deleted: the new files have it, '
            'or a template is rendered to it; take it out of those'
        )
    if order.prune:
        gone |= set(plan.entries) - set(files)
    gone.discard(environments.PATH)
    needed = {plan.environment.template, *plan.environment.enabled}
    if gone & needed:
        raise errors.Invalid(
            f'{", ".join(sorted(gone & needed))} cannot go: it is the root '
            'template, or enabled; disable it first'
        )
    return Difference(
        write=storage.changed(files, plan.entries), delete=frozenset(gone)
    )


def _rendered(
    plan: plans.Plan,
    container: storage.Container,
    order: Order,
    gone: abc.Collection[str],
) -> dict[str, bytes]:
    """Render anew, with what the plan has beside the new files."""
    base: sources.Content = {}
    if not order.prune:
        kept = set(plan.entries) - set(order.content) - set(gone)
        base = container.fetch(sorted(filter(rendering.takes_part, kept)))
    return dict(rendering.render({**base, **order.content}))


def carry_out(
    found: Difference,
    container: storage.Container,
    progress: pools.Progress | None,
) -> None:
    """Write first, so that what refers to new files finds them."""
    container.write(found.write, progress)
    container.delete(found.delete)
