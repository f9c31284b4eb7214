# SPDX-License-Identifier: Apache-2.0
"""Making a plan's content out of what was given."""

import dataclasses

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.content import sources
from heat_plugins.content import texts
from heat_plugins.plans.content import capabilities
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plan_checking
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

    Passwords that it needs are generated. What later commands need of the
    files is checked, so that none of them finds out.

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
    environment = _environment(files, given, template, remedy)
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
    root = texts.decode(files[environment.template], environment.template)
    environment = dataclasses.replace(
        environment,
        name=name,
        description=environment.description
        if description is None
        else description,
    )
    rendered = render and rendering.is_due(content)
    plan_checking.check(
        environment,
        files.keys(),
        lambda paths: {path: files[path] for path in paths if path in files},
        rendered=rendered,
    )
    return Prepared(
        files=files,
        environment=secrecy.fill_passwords(
            environment, secrecy.passwords_wanted(root, environment.template)
        ),
        rendered=rendered,
    )


def _environment(
    files: sources.Content,
    given: bytes | None,
    template: str | None,
    remedy: str,
) -> environments.PlanEnvironment:
    """Read plan-environment.yaml, or put together what it would say."""
    if template is not None:
        template = texts.path(template, 'root template')
    if given is not None:
        text = texts.decode(given, environments.PATH)
        environment = environments.PlanEnvironment.from_text(text, template)
        if template is not None:
            environment = dataclasses.replace(environment, template=template)
        return environment
    root = capabilities.Root()
    if capabilities.PATH in files:
        text = texts.decode(files[capabilities.PATH], capabilities.PATH)
        root = capabilities.root(text)
    template = template or root.template
    if template is None:
        raise errors.Invalid(
            f'The plan has no {environments.PATH}; name the root template '
            f'(--template){remedy}'
        )
    entries: tuple[environments.Entry, ...] = ()
    if root.environment is not None:
        entries = (environments.Entry(path=root.environment),)
    return environments.PlanEnvironment(
        template=template, environments=entries
    )
