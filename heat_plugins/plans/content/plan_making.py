# SPDX-License-Identifier: Apache-2.0
"""The creation of a plan, which is complete or undone.

The name is claimed first, so that of two callers at once one is refused; then
come the container with its mark, the files, plan-environment.yaml, and last
the mark of a complete plan. A failed creation is undone. An interrupted one
can be resumed, which sends no file again.
"""

from collections import abc
import dataclasses

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.content import sources
from heat_plugins.content import storage
from heat_plugins.content import texts
from heat_plugins.plans import plan_claims
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references
from heat_plugins.plans.deploy import deploy_records
from heat_plugins.plans.parameters import secrecy
from heat_plugins.plans.rendering import rendering


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prepared:
    """The content of a future plan.

    :ivar files: without plan-environment.yaml.
    :ivar rendered: whether Jinja templates were rendered into it.
    """

    files: sources.Content
    environment: environments.PlanEnvironment
    rendered: bool


def prepare(
    name: str,
    content: sources.Content,
    *,
    template: str | None,
    description: str | None,
    render: bool,
    limits: rendering.RenderingLimits,
) -> Prepared:
    """Check the content of a plan, and generate its passwords.

    :raises errors.Invalid: the content is no complete plan.
    """
    remedy = ''
    if not render and rendering.is_due(content):
        remedy = (
            '. The plan has Jinja templates: render them with --render (in a '
            'workflow, render: true)'
        )
    files = dict(rendering.render(content, limits) if render else content)
    given = files.pop(environments.PATH, None)
    if template is not None:
        template = texts.path(template, 'root template')
    if given is not None:
        text = texts.decode(given, environments.PATH)
        environment = environments.PlanEnvironment.from_text(text, template)
    elif template is not None:
        environment = environments.PlanEnvironment(template=template)
    else:
        raise errors.Invalid(
            f'The plan has no {environments.PATH}; name the root template '
            f'(--template){remedy}'
        )
    if template is not None:
        environment = dataclasses.replace(environment, template=template)
    lacking = [
        path
        for path in (environment.template, *environment.enabled)
        if path not in files
    ]
    if lacking:
        raise errors.Invalid(
            'The plan lacks its root template or an environment that '
            f'{environments.PATH} enables: {bounds.listed(lacking)}{remedy}'
        )
    environment = dataclasses.replace(
        environment,
        name=name,
        description=environment.description
        if description is None
        else description,
    )
    check(
        environment,
        lambda paths: {path: files[path] for path in paths if path in files},
    )
    return Prepared(
        files=files,
        environment=secrecy.with_passwords(environment, files),
        rendered=render and rendering.is_due(content),
    )


def check(
    environment: environments.PlanEnvironment, fetch: references.Fetch
) -> None:
    """Check a plan's environment, and all files that Heat would get.

    :raises errors.Invalid: a file is invalid, the root template or an enabled
        environment is missing, or all are too large.
    """
    deploy_records.steps(environment)
    deploy_records.required(environment)
    references.check(environment, fetch)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Maker:
    """The creation of a prepared plan.

    :ivar container: of the future plan.
    :ivar resume: whether to resume an interrupted creation.
    """

    claims: plan_claims.Claims
    container: plans.PlanContainer
    prepared: Prepared
    resume: bool
    progress: pools.Progress | None

    def make(self) -> None:
        """Create the plan.

        :raises errors.Exists: the name or the container is taken.
        :raises errors.PlanUnfinished: another caller creates it, or died
            before the end.
        """
        claim = self._claim()
        try:
            # Another caller may create and mark it between the two requests.
            exists = self.container.exists()
            mark = self.container.mark()
            begun = mark is not None and mark.state is plans.PlanState.CREATING
            if exists and not begun:
                raise errors.Exists(
                    f'Container {claim.name} exists already, and is not a '
                    'plan; choose another name'
                )
            self._mark(plans.PlanState.CREATING)
        except BaseException:
            with self.claims.lock(claim.name):
                self.claims.release(claim)
            raise
        try:
            files = self.prepared.files
            entries = self.container.entries()
            written = storage.changed(files, entries)
            self.container.write(written, self.progress)
            others = set(entries) - set(files) - {environments.PATH}
            self.container.delete(others)
            text = self.prepared.environment.to_text()
            self.container.write({environments.PATH: text.encode()})
            with self.claims.lock(claim.name):
                if not self.claims.has(claim):
                    raise errors.Exists(
                        f'Another caller has resumed the creation of plan '
                        f'{claim.name}, or has deleted it'
                    )
                self._mark(plans.PlanState.READY)
        except BaseException as exc:
            self._undo(claim, exc)
            raise

    def _claim(self) -> plan_claims.Claim:
        """Take the name of the plan, or that of an interrupted creation."""
        environment = self.prepared.environment
        wanted = environment.name, environment.description
        claim = self.claims.take(*wanted)
        if claim is None:
            former = self.claims.find(environment.name)
            self._refuse_taken(former)
            with self.claims.lock(environment.name):
                # Of two callers that resume, the first has replaced the claim.
                if former is not None and self.claims.has(former):
                    self._refuse_taken(former)
                    self.claims.release(former)
                    claim = self.claims.take(*wanted)
        if claim is None:
            raise errors.Exists(
                f'Another caller is already creating plan {environment.name}'
            )
        return claim

    def _refuse_taken(self, claim: plan_claims.Claim | None) -> None:
        """Raise an error unless the creation can be resumed."""
        name = self.prepared.environment.name
        mark = self.container.mark()
        if mark is not None and mark.state is plans.PlanState.READY:
            raise errors.Exists(
                f'Plan {name} exists already; update it, or choose another '
                'name'
            )
        if mark is not None and mark.state is plans.PlanState.DELETING:
            raise errors.PlanUnfinished(
                f'Plan {name} is being deleted; if that was interrupted, '
                'delete it again'
            )
        if not self.resume:
            since = f' since {claim.since}' if claim else ''
            raise errors.PlanUnfinished(
                f'Plan {name} is being created{since}; if that was '
                'interrupted, resume it or delete it'
            )

    def _mark(self, state: plans.PlanState) -> None:
        """Write down in the plan's container how far making it is."""
        self.container.make(
            plans.Mark(state=state, rendered=self.prepared.rendered)
        )

    def _undo(self, claim: plan_claims.Claim, exc: BaseException) -> None:
        """Delete the leftovers of a failed creation."""
        try:
            with self.claims.lock(claim.name):
                # Without the claim, they belong to another caller.
                if self.claims.has(claim):
                    self.container.remove()
                    self.claims.release(claim)
        except errors.Error as undoing:
            exc.add_note(
                f'Cannot undo the incomplete creation of plan {claim.name}: '
                f'{undoing}; delete the plan, or resume its creation'
            )


def update(
    plan: plans.Plan,
    container: storage.Container,
    content: sources.Content,
    limits: rendering.RenderingLimits,
    *,
    delete: abc.Collection[str],
    prune: bool,
    progress: pools.Progress | None,
) -> None:
    """Check the new and deleted files of a plan; then change it.

    :param content: the new files.
    :param delete: paths to remove.
    :param prune: whether to remove all other files.
    :raises errors.Invalid: a file cannot be used; a path to delete is not in
        the plan, or among the new files; or the plan would lack its root
        template, or an environment that is enabled.
    """
    removed = {texts.path(path, 'file to delete') for path in delete}
    files, gone = _difference(
        plan, container, content, limits, removed, prune=prune
    )
    written = storage.changed(files, plan.entries)
    # The new root template may need more passwords.
    environment = secrecy.with_passwords(plan.environment, files)
    paths = set(plan.entries) - gone | set(written)
    check(environment, _over(container, paths, written))
    # Write first: other files may refer to new ones.
    container.write(written, progress)
    if environment != plan.environment:
        text = environment.to_text()
        container.write({environments.PATH: text.encode()})
    container.delete(gone)


def _difference(
    plan: plans.Plan,
    container: storage.Container,
    content: sources.Content,
    limits: rendering.RenderingLimits,
    removed: abc.Set[str],
    *,
    prune: bool,
) -> tuple[dict[str, bytes], set[str]]:
    """Return the new files, rendered ones too, and the paths to delete."""
    entries = set(plan.entries)
    unknown = sorted(removed - entries)
    if unknown:
        raise errors.Invalid(
            f'Plan {plan.name} has no {bounds.listed(unknown)} to delete'
        )
    files, gone = dict(content), set(removed)
    if plan.rendered:
        former = set(rendering.targets(entries, container.fetch))
        kept = set() if prune else entries - gone - former
        paths = kept | set(content)
        files |= rendering.outputs(
            paths, _over(container, paths, content), limits
        )
        if not prune:
            # Files rendered for former roles, networks and templates.
            gone |= former & entries - set(files)
    # The plan keeps its own environment.
    files.pop(environments.PATH, None)
    staying = sorted(gone & set(files))
    if staying:
        raise errors.Invalid(
            f'Cannot delete {bounds.listed(staying)}: the new files contain '
            'it, or a template renders to it; remove it there'
        )
    if prune:
        gone |= entries - set(files)
    return files, gone - {environments.PATH}


def _over(
    container: storage.Container,
    paths: abc.Container[str],
    new: abc.Mapping[str, bytes],
) -> references.Fetch:
    """Return a function that fetches new files, and old ones of some paths."""

    def fetch(wanted: abc.Collection[str]) -> dict[str, bytes]:
        given = {path: new[path] for path in wanted if path in new}
        present = [path for path in wanted if path in paths]
        return container.fetch(sorted({*present} - {*given})) | given

    return fetch
