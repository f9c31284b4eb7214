# SPDX-License-Identifier: Apache-2.0
"""The door to plans, for commands, actions and workflows alike."""

from collections import abc
import contextlib
from typing import BinaryIO

from heat_plugins.plans import capabilities as capabilities_module
from heat_plugins.plans import environment as environments
from heat_plugins.plans import plan as plans
from heat_plugins.plans import protocols
from heat_plugins.plans import references
from heat_plugins.plans import roles as roles_module
from heat_plugins.signals import store as store_module

#: Told (done, all) of uploads, fetches and deletions, in any thread.
Progress = abc.Callable[[int, int], None]


class Plans:
    """The plans of a project.

    :param store: the project's object store.
    :param registry: who has which name.
    :param stacks: the way to Heat.
    """

    def __init__(
        self,
        store: store_module.ObjectStore,
        registry: protocols.Registry,
        stacks: protocols.Stacks,
    ) -> None:
        self._store = store
        self._registry = registry
        self._stacks = stacks

    # Making and unmaking

    def create(
        self,
        name: str,
        content: abc.Mapping[str, bytes],
        *,
        template: str | None = None,
        description: str | None = None,
        render: bool = False,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> plans.Plan:
        """Make a plan; what was made of it is undone if that fails.

        :param content: the files by their paths; see `sources`.
        :param template: the root template where the plan names none.
        :param render: whether to render Jinja templates.
        :param resume: whether to go on where somebody has broken off.
        """
        raise NotImplementedError

    def update(
        self,
        name: str,
        content: abc.Mapping[str, bytes],
        *,
        delete: abc.Collection[str] = (),
        prune: bool = False,
        progress: Progress | None = None,
    ) -> plans.Plan:
        """Put files into a plan; what is enabled and set in it stays.

        :param delete: paths to take out.
        :param prune: whether to take out all that `content` lacks.
        """
        raise NotImplementedError

    def delete(self, name: str, progress: Progress | None = None) -> None:
        """Delete a plan that has no stack."""
        raise NotImplementedError

    def export(
        self, name: str, file: BinaryIO, *, secrets: bool = False
    ) -> None:
        """Write a plan as a tarball (gzip)."""
        raise NotImplementedError

    # Looking

    def summaries(self) -> list[plans.Summary]:
        """Return the plans by name, from the registry alone."""
        raise NotImplementedError

    def load(self, name: str) -> plans.Plan:
        """Return a plan.

        :raises errors.NotFound: there is none.
        :raises errors.Unfinished: it is half made or half deleted.
        """
        raise NotImplementedError

    def read(self, plan: plans.Plan, path: str) -> str:
        """Return a text file of a plan."""
        raise NotImplementedError

    def capabilities(
        self, plan: plans.Plan
    ) -> capabilities_module.Capabilities:
        """Return what can be chosen in a plan, and what is."""
        raise NotImplementedError

    def roles(self, plan: plans.Plan) -> list[roles_module.Role]:
        """Return the roles of a plan's servers."""
        raise NotImplementedError

    def resolve(
        self, plan: plans.Plan, progress: Progress | None = None
    ) -> references.Resolved:
        """Return what to send to Heat for a plan."""
        raise NotImplementedError

    # Changing

    @contextlib.contextmanager
    def lock(self, name: str) -> abc.Iterator[plans.Plan]:
        """Keep all others from changing, deploying or deleting a plan.

        :raises errors.Busy: somebody else does so, for too long.
        """
        raise NotImplementedError
        yield

    def change(
        self,
        name: str,
        edit: abc.Callable[
            [environments.PlanEnvironment], environments.PlanEnvironment
        ],
    ) -> plans.Plan:
        """Change plan-environment.yaml under the lock.

        Nothing is written if `edit` raises, or changes nothing.
        """
        raise NotImplementedError

    def select(
        self,
        name: str,
        choices: abc.Mapping[str, bool],
        *,
        requirements: bool = False,
    ) -> plans.Plan:
        """Enable and disable environments by their paths.

        :param requirements: whether to enable what is required, too.
        """
        raise NotImplementedError

    def generate_secrets(
        self, name: str, parameters: abc.Collection[str]
    ) -> tuple[str, ...]:
        """Generate passwords for parameters that have none in the plan.

        :return: the names of those that are new; never their values.
        """
        raise NotImplementedError
