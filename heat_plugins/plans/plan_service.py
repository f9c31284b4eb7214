# SPDX-License-Identifier: Apache-2.0
"""The plans of a project, for commands, actions and workflows."""

from collections import abc
import contextlib
import dataclasses
import time
from typing import Any, BinaryIO

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.content import sources
from heat_plugins.content import storage
from heat_plugins.content import tarballs
from heat_plugins.content import texts
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import stores
from heat_plugins.plans import plan_claims
from heat_plugins.plans.content import capabilities as capabilities_module
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plan_making
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references
from heat_plugins.plans.content import roles as roles_module
from heat_plugins.plans.content import selection
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.plans.parameters import secrecy
from heat_plugins.plans.rendering import rendering

# Levels of lists and maps in a record: more than in a text of a plan.
_DEPTH = 128

# Files of an export that are in memory at a time.
_CHUNK = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class LeftOut:
    """The secrets that a tarball lacks, and the files with other secrets.

    :ivar values: names of set parameters.
    :ivar passwords: the number of generated passwords.
    :ivar files: of the plan that set secrets; the tarball has them unchanged.
    """

    values: tuple[str, ...] = ()
    passwords: int = 0
    files: tuple[str, ...] = ()


class Plans:
    """The plans of a project.

    Each method may also raise the errors of the object store.

    :param registry: of the names of plans.
    :param limits: of the rendering of Jinja templates.
    :ivar clock: the time, in seconds since 1970.
    """

    def __init__(
        self,
        store: stores.ObjectStore,
        registry: plan_claims.Registry,
        stacks: plan_stacks.Stacks,
        *,
        pool: pools.Pool | None = None,
        limits: rendering.RenderingLimits | None = None,
        clock: abc.Callable[[], float] = time.time,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self.store = store
        self._claims = plan_claims.Claims(registry, clock=clock, sleep=sleep)
        self.stacks = stacks
        self.clock = clock
        self._pool = pool or pools.Pool()
        self._limits = limits or rendering.RenderingLimits()

    # Making and unmaking

    def create(
        self,
        name: str,
        content: sources.Content,
        *,
        template: str | None = None,
        description: str | None = None,
        render: bool = False,
        resume: bool = False,
        progress: pools.Progress | None = None,
    ) -> plans.Plan:
        """Create a plan; undo a creation that fails.

        :param content: the files by their paths; see `sources`.
        :param template: the root template, in place of the plan's own.
        :param description: in place of the plan's own.
        :param render: whether to render Jinja templates.
        :param resume: whether to resume a creation that was interrupted.
        :raises errors.Exists: the name is taken, or a container of it.
        :raises errors.PlanUnfinished: a plan of that name is being made.
        :raises errors.Invalid: the name or the content cannot be a plan's.
        """
        plans.check_name(name)
        prepared = plan_making.prepare(
            name,
            content,
            template=template,
            description=description,
            render=render,
            limits=self._limits,
        )
        plan_making.Maker(
            claims=self._claims,
            container=self._container(name),
            prepared=prepared,
            resume=resume,
            progress=progress,
        ).make()
        return self.load(name)

    def update(
        self,
        name: str,
        content: sources.Content,
        *,
        delete: abc.Collection[str] = (),
        prune: bool = False,
        progress: pools.Progress | None = None,
    ) -> plans.Plan:
        """Put files into a plan; enabled environments and parameters stay.

        The Jinja templates of a rendered plan are rendered again. After a
        failure in the middle, the same update completes the plan.

        :param prune: whether to remove all files that `content` lacks.
        :raises errors.Invalid: the plan would lack its root template, or an
            environment that is enabled.
        """
        with self.lock(name) as plan:
            plan_making.update(
                plan,
                self._container(name),
                content,
                self._limits,
                delete=delete,
                prune=prune,
                progress=progress,
            )
        return self.load(name)

    def delete(
        self, name: str, progress: pools.Progress | None = None
    ) -> None:
        """Delete a plan that has no stack, or the leftovers of a plan.

        :raises errors.NotFound: there is no such plan.
        :raises errors.PlanInUse: a stack of it exists, in whatever state.
        """
        plans.check_name(name)
        container = self._container(name)
        with self._claims.lock(name):
            mark = container.mark()
            claim = None
            with contextlib.suppress(errors.Exists):
                claim = self._claims.find(name)
            if mark is None and claim is None:
                raise errors.NotFound(f'There is no plan {name}')
            stack = self.stacks.find(name)
            if stack is not None:
                raise errors.PlanInUse(
                    f'Plan {name} has a stack ({stack.status}); delete that '
                    'first'
                )
            # A container without a mark belongs to another user.
            if mark is not None:
                container.make(
                    dataclasses.replace(mark, state=plans.PlanState.DELETING)
                )
                container.remove(progress)
            if claim is not None:
                self._claims.release(claim)

    def export(
        self, name: str, file: BinaryIO, *, secrets: bool = False
    ) -> LeftOut:
        """Write a plan as a tarball (gzip).

        :param secrets: whether to write generated passwords and the values
            of secret parameters, too.
        """
        plan, fetch = self.load(name), self._container(name).fetch
        environment, left_out = plan.environment, LeftOut()
        if not secrets:
            environment, left_out = _without_secrets(environment, fetch)
        text, paths = environment.to_text().encode(), sorted(plan.entries)
        with tarballs.writer(file) as add:
            for start in range(0, len(paths), _CHUNK):
                contents = fetch(paths[start : start + _CHUNK])
                for path, content in contents.items():
                    add(path, text if path == environments.PATH else content)
        return left_out

    # Looking

    def summaries(self) -> list[plans.Summary]:
        """Return a summary of each plan with its state, sorted by name."""
        summaries = self._claims.summaries()
        states = self._pool.each(
            lambda name: self._container(name).state(),
            [summary.name for summary in summaries],
        )
        return [
            dataclasses.replace(summary, state=state)
            for summary, state in zip(summaries, states, strict=True)
        ]

    def load(self, name: str) -> plans.Plan:
        """Return a plan.

        :raises errors.NotFound: there is none.
        :raises errors.PlanUnfinished: it is half made or half deleted.
        """
        plans.check_name(name)
        container = self._container(name)
        mark = container.mark()
        if mark is None:
            raise errors.NotFound(f'There is no plan {name}')
        if mark.state is not plans.PlanState.READY:
            raise errors.PlanUnfinished(
                f'Plan {name} is incomplete ({mark.state.value}); if that '
                'was interrupted, resume its creation, or delete it'
            )
        text = texts.decode(
            container.read(environments.PATH), environments.PATH
        )
        return plans.Plan(
            name=name,
            rendered=mark.rendered,
            environment=environments.PlanEnvironment.from_text(text),
            entries=container.entries(),
        )

    def read(self, plan: plans.Plan, path: str) -> str:
        """Return a text file of a plan, or raise `errors.NotFound`."""
        return texts.decode(self._container(plan.name).read(path), path)

    def capabilities(
        self, plan: plans.Plan
    ) -> capabilities_module.Capabilities:
        """Return the choices of a plan, and which are enabled."""
        path = capabilities_module.PATH
        text = self.read(plan, path) if path in plan.entries else None
        enabled = plan.environment.enabled
        return capabilities_module.read(text, plan.entries, enabled)

    def roles(self, plan: plans.Plan) -> tuple[roles_module.Role, ...]:
        """Return the roles of a plan's servers.

        They are those of roles_data.yaml; where there is none, the groups of
        the root template.
        """
        if roles_module.PATH in plan.entries:
            text = self.read(plan, roles_module.PATH)
            return roles_module.from_roles_data(text)
        path = plan.environment.template
        return roles_module.from_template(self.read(plan, path), path)

    def annex(self, plan: plans.Plan) -> json_records.Records:
        """Return the records next to the files of a plan.

        They are no part of the plan: no file of a plan has such a path, no
        export has them, and the hash of the content does not cover them.
        """
        return json_records.Records(
            self.store,
            plan.name,
            prefix=storage.OWN,
            depth=_DEPTH,
            packed=True,
        )

    def resolve(self, plan: plans.Plan) -> references.Resolved:
        """Return the content of a plan for Heat."""
        fetch = self._container(plan.name).fetch
        return references.resolve(plan.environment, fetch)

    # Changing

    @contextlib.contextmanager
    def lock(self, name: str) -> abc.Iterator[plans.Plan]:
        """Keep other callers from changing, deploying or deleting a plan.

        :raises errors.PlanBusy: another caller does so, for too long.
        """
        plans.check_name(name)
        with self._claims.lock(name):
            yield self.load(name)

    def select(
        self,
        name: str,
        choices: abc.Mapping[str, bool],
        *,
        requirements: bool = False,
    ) -> plans.Plan:
        """Enable and disable environments by their paths.

        :param requirements: whether to enable required environments, too.
        :raises errors.Invalid: see `selection.select`.
        """
        choices = {
            texts.path(path, 'environment'): wanted
            for path, wanted in choices.items()
        }
        with self.lock(name) as plan:
            environment = selection.select(
                plan.environment,
                self.capabilities(plan),
                choices,
                requirements=requirements,
            )
            # Check that the new ones are environments.
            walk = references.Walk(self._container(plan.name).fetch)
            for path in environment.enabled:
                if path not in plan.environment.enabled:
                    walk.want(path, references.LinkKind.ENVIRONMENT)
            walk.run()
            return self.write(plan, environment)

    def write(
        self, plan: plans.Plan, environment: environments.PlanEnvironment
    ) -> plans.Plan:
        """Write a plan's environment, if it has changed; under the lock."""
        if environment == plan.environment:
            return plan
        text = environment.to_text().encode()
        self._container(plan.name).write({environments.PATH: text})
        return dataclasses.replace(
            plan,
            environment=environment,
            entries={
                **plan.entries,
                environments.PATH: storage.entry(environments.PATH, text),
            },
        )

    def _container(self, name: str) -> plans.PlanContainer:
        """Return the container of a plan."""
        return plans.PlanContainer(self.store, name, self._pool)


def _without_secrets(
    plan: environments.PlanEnvironment, fetch: references.Fetch
) -> tuple[environments.PlanEnvironment, LeftOut]:
    """Return a plan's environment without secret values.

    The names of generated passwords stay, so that new ones are generated. The
    values of secret parameters, and of those that no template has, are left
    out; all values are where the templates are unreadable. Files stay.
    """
    names = secrecy.SecretNames(secret=frozenset(), known=frozenset())
    files: tuple[str, ...] = ()
    with contextlib.suppress(errors.Error):
        content = references.resolve(plan, fetch)
        names = secrecy.SecretNames.of(content, plan)
        files = tuple(
            dict.fromkeys(
                path
                for path, values in secrecy.set_in(content)
                if not path.startswith(f'{environments.PATH}#')
                and any(names.texts(values))
            )
        )
    left_out: set[str] = set()

    def shown(section: abc.Mapping[str, Any]) -> dict[str, Any]:
        hidden = {name for name in section if not names.may_be_seen(name)}
        left_out.update(map(str, hidden))
        return {k: v for k, v in section.items() if k not in hidden}

    def entry(given: environments.Entry) -> environments.Entry:
        if given.data is None:
            return given
        data = {
            name: shown(section)
            if name in secrecy.SECTIONS and isinstance(section, dict)
            else section
            for name, section in given.data.items()
        }
        return environments.Entry(data=data)

    exported = dataclasses.replace(
        plan,
        passwords=dict.fromkeys(plan.passwords),
        parameter_defaults=shown(plan.parameter_defaults),
        derived_parameters=shown(plan.derived_parameters),
        workflow_parameters=shown(plan.workflow_parameters),
        environments=tuple(map(entry, plan.environments)),
    )
    return exported, LeftOut(
        values=tuple(sorted(left_out)),
        passwords=sum(
            password is not None for password in plan.passwords.values()
        ),
        files=files,
    )
