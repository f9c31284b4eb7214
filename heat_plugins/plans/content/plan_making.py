# SPDX-License-Identifier: Apache-2.0
"""The beginning of a plan, which is there in full or not at all.

The name is claimed first, so that of two at once one is told; then come the
container with its mark, the files, plan-environment.yaml, and last the mark
that says that all is there. What fails is undone. What is interrupted can be
resumed: files that are there are not sent again.
"""

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
from heat_plugins.plans.deploy import steps
from heat_plugins.plans.parameters import secrecy
from heat_plugins.plans.rendering import rendering


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prepared:
    """The content of a plan to be.

    :ivar files: without plan-environment.yaml.
    :ivar rendered: whether there were Jinja templates, and they were
        rendered.
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
    """Check the content of a plan before any of it is stored.

    Passwords that it needs are generated.

    :raises errors.Invalid: it is not enough for a plan.
    """
    remedy = ''
    if not render and rendering.is_due(content):
        remedy = (
            '. The plan has Jinja templates: render them with --render (in a '
            'workflow, render: true)'
        )
    files = dict(rendering.render(content, limits) if render else content)
    given = files.pop(environments.PATH, None)
    environment = _environment(given, template, remedy)
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
    """Check a plan's environment, what it enables, and what that refers to.

    :raises errors.Invalid: a file cannot be used, the root template or an
        enabled environment is not there, or it is all too large.
    """
    steps.read(environment)
    deploy_records.read(environment)
    references.check(environment, fetch)


def _environment(
    given: bytes | None,
    template: str | None,
    remedy: str,
) -> environments.PlanEnvironment:
    """Read plan-environment.yaml, or make one of the root template."""
    if template is not None:
        template = texts.path(template, 'root template')
    if given is not None:
        text = texts.decode(given, environments.PATH)
        environment = environments.PlanEnvironment.from_text(text, template)
        if template is not None:
            environment = dataclasses.replace(environment, template=template)
        return environment
    if template is None:
        raise errors.Invalid(
            f'The plan has no {environments.PATH}; name the root template '
            f'(--template){remedy}'
        )
    return environments.PlanEnvironment(template=template)


class Maker:
    """Makes a plan of what was prepared.

    :param container: the plan's, to be made.
    :param resume: whether to resume the creation that a caller interrupted.
    """

    def __init__(
        self,
        claims: plan_claims.Claims,
        locks: plan_claims.Locks,
        container: plans.PlanContainer,
        prepared: Prepared,
        *,
        resume: bool,
        progress: pools.Progress | None,
    ) -> None:
        self._claims = claims
        self._locks = locks
        self._container = container
        self._prepared = prepared
        self._name = prepared.environment.name
        self._resumes = resume
        self._progress = progress
        text = prepared.environment.to_text()
        self._last = {environments.PATH: text.encode()}

    def make(self) -> None:
        """Make it.

        :raises errors.Exists: the name or the container is taken.
        :raises errors.PlanUnfinished: another caller is making it, or died
            before its end.
        """
        claim = self._claim()
        try:
            self._open()
        except BaseException:
            with self._locks.lock(claim.name):
                self._claims.release(claim)
            raise
        try:
            self._fill()
            self._finish(claim)
        except BaseException as exc:
            self._undo(claim, exc)
            raise

    def _claim(self) -> plan_claims.Claim:
        claim = self._take()
        if claim is None:
            former = self._claims.find(self._name)
            self._refuse_taken()
            with self._locks.lock(self._name):
                # Of two who resume, the first has made the next claim.
                if former is not None and self._claims.has(former):
                    self._refuse_taken()
                    self._claims.release(former)
                    claim = self._take()
        if claim is None:
            raise errors.Exists(
                f'Another caller is already creating plan {self._name}'
            )
        return claim

    def _take(self) -> plan_claims.Claim | None:
        description = self._prepared.environment.description
        return self._claims.take(self._name, description)

    def _refuse_taken(self) -> None:
        name = self._name
        mark = self._container.mark()
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
        if not self._resumes:
            claim = self._claims.find(name)
            since = f' since {claim.since}' if claim else ''
            raise errors.PlanUnfinished(
                f'Plan {name} is being created{since}; if that was '
                'interrupted, resume it or delete it'
            )

    def _open(self) -> None:
        """Make a container of the plan's own, with its mark."""
        # Another may make it, with its mark, between the two.
        exists = self._container.exists()
        mark = self._container.mark()
        begun = mark is not None and mark.state is plans.PlanState.CREATING
        if exists and not begun:
            raise errors.Exists(
                f'Container {self._name} exists already, and is not a plan; '
                'choose another name'
            )
        self._mark(plans.PlanState.CREATING)

    def _fill(self) -> None:
        entries = self._container.entries()
        files = storage.changed(self._prepared.files, entries)
        self._container.write(files, self._progress)
        surplus = set(entries) - set(self._prepared.files) - set(self._last)
        self._container.delete(surplus)
        self._container.write(self._last)

    def _finish(self, claim: plan_claims.Claim) -> None:
        with self._locks.lock(claim.name):
            if not self._claims.has(claim):
                raise errors.Exists(
                    f'Another caller has resumed the creation of plan '
                    f'{claim.name}, or has deleted it'
                )
            self._mark(plans.PlanState.READY)

    def _mark(self, state: plans.PlanState) -> None:
        self._container.make(
            plans.Mark(state=state, rendered=self._prepared.rendered)
        )

    def _undo(self, claim: plan_claims.Claim, exc: BaseException) -> None:
        """Leave nothing that stands in the way of another attempt."""
        try:
            with self._locks.lock(claim.name):
                if not self._claims.has(claim):
                    # It now belongs to another caller.
                    return
                self._container.remove()
                self._claims.release(claim)
        except errors.Error as undoing:
            exc.add_note(
                f'Cannot undo the incomplete creation of plan {claim.name}: '
                f'{undoing}; delete the plan, or resume its creation'
            )
