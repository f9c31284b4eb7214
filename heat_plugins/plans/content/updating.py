# SPDX-License-Identifier: Apache-2.0
"""Other files for a plan, by what is different."""

from collections import abc

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.content import sources
from heat_plugins.content import storage
from heat_plugins.content import texts
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plan_making
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import secrecy
from heat_plugins.plans.rendering import rendering


class PlanUpdate:
    """An update of a plan.

    :param content: the new files.
    """

    def __init__(
        self,
        plan: plans.Plan,
        container: storage.Container,
        content: sources.Content,
        limits: rendering.RenderingLimits,
    ) -> None:
        self._plan = plan
        self._container = container
        self._content = content
        self._limits = limits

    def carry_out(
        self,
        delete: abc.Collection[str],
        *,
        prune: bool,
        progress: pools.Progress | None,
    ) -> None:
        """Check what is written and deleted; then do it.

        :param delete: paths to remove.
        :param prune: whether to remove all that the new files lack.
        :raises errors.Invalid: a file cannot be used; a path to delete is
            not in the plan, or among the new files; or the plan would lack
            its root template, or an environment that is enabled.
        """
        files, gone = self._difference(delete, prune=prune)
        written = storage.changed(files, self._plan.entries)
        # With passwords for what the root template now asks for.
        environment = secrecy.with_passwords(self._plan.environment, files)
        paths = set(self._plan.entries) - gone | set(written)
        plan_making.check(environment, self._fetch(paths, written))
        # Write first, so that what refers to new files finds them.
        self._container.write(written, progress)
        if environment != self._plan.environment:
            text = environment.to_text()
            self._container.write({environments.PATH: text.encode()})
        self._container.delete(gone)

    def _difference(
        self, delete: abc.Collection[str], *, prune: bool
    ) -> tuple[dict[str, bytes], set[str]]:
        """Return the new files, rendered ones too, and the paths to delete."""
        plan = self._plan
        gone = {texts.path(path, 'file to delete') for path in delete}
        unknown = sorted(gone - set(plan.entries))
        if unknown:
            raise errors.Invalid(
                f'Plan {plan.name} has no {bounds.listed(unknown)} to delete'
            )
        files = dict(self._content)
        if plan.rendered:
            made, former = self._rendered(gone, prune=prune)
            files |= made
            if not prune:
                # Of roles, networks and templates that are no more.
                gone |= former - set(files)
        # What is enabled and set is the plan's own.
        files.pop(environments.PATH, None)
        staying = sorted(gone & set(files))
        if staying:
            raise errors.Invalid(
                f'Cannot delete {bounds.listed(staying)}: the new files '
                'contain it, or a template renders to it; remove it there'
            )
        if prune:
            gone |= set(plan.entries) - set(files)
        gone.discard(environments.PATH)
        return files, gone

    def _rendered(
        self, gone: abc.Collection[str], *, prune: bool
    ) -> tuple[dict[str, bytes], set[str]]:
        """Render again, with the new files and the plan's others.

        :return: what is made, and the paths of what was made before.
        """
        entries = set(self._plan.entries)
        made_before = set(rendering.targets(entries, self._container.fetch))
        kept = set() if prune else entries - set(gone) - made_before
        paths = kept | set(self._content)
        fetch = self._fetch(paths, self._content)
        made = rendering.outputs(paths, fetch, self._limits)
        return made, made_before & entries

    def _fetch(
        self, paths: abc.Container[str], new: sources.Content
    ) -> references.Fetch:
        """Return what fetches new files, and present ones of some paths."""

        def fetch(wanted: abc.Collection[str]) -> dict[str, bytes]:
            given = {path: new[path] for path in wanted if path in new}
            present = [path for path in wanted if path in paths]
            return self._container.fetch(sorted({*present} - {*given})) | given

        return fetch
