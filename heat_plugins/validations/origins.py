# SPDX-License-Identifier: Apache-2.0
"""Where the playbooks of a run come from."""

import dataclasses
from importlib import metadata
import pathlib

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.content import sources
from heat_plugins.content import storage
from heat_plugins.content import tarballs
from heat_plugins.plans import plan_service
from heat_plugins.plans.content import plans as plan_values
from heat_plugins.validations import catalogue

#: Where playbooks and their roles lie in a plan.
FOLDER = 'validations/'

# What a package may bring of them.
_WANTED = catalogue.FOLDERS | catalogue.PATHS.keys()
_SKIPPED = frozenset({'tests', '__pycache__'})


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlaybookSource:
    """Where playbooks come from.

    :ivar name: for people, such as ``plan shop``.
    """

    name: str
    content: sources.Content = dataclasses.field(repr=False)
    plan: plan_values.Plan | None = None


def find(
    plans: plan_service.Plans,
    plan: str | None,
    container: str | None,
    object: str | None,
    package: str | None,
    *,
    complete: bool,
) -> PlaybookSource:
    """Return the files that one of the arguments names.

    :param complete: whether also what the playbooks of a plan need.
    :raises errors.Invalid: not exactly one of them does.
    :raises errors.NotFound: there is no such thing.
    """
    given = [name for name in (plan, container, package) if name]
    if len(given) != 1 or bool(container) != bool(object):
        raise errors.Invalid(
            'Give exactly one of: a plan, a package, or a container with '
            'an object'
        )
    if package:
        return PlaybookSource(
            name=f'package {package}', content=of_package(package)
        )
    if container and object:
        content = tarballs.from_object(plans.store, container, object)
        return PlaybookSource(name='an upload', content=content)
    loaded = plans.load(str(plan))
    wanted = [
        path
        for path in loaded.entries
        if path.startswith(FOLDER)
        and (complete or catalogue.is_playbook(path))
    ]
    files = storage.Container(plans.store, loaded.container, pools.Pool())
    return PlaybookSource(
        name=f'plan {plan}', content=files.fetch(wanted), plan=loaded
    )


def of_package(name: str) -> sources.Content:
    """Return the playbooks, roles and plugins of a package.

    :param name: of the distribution, such as ``validations-common``.
    :raises errors.NotFound: it is not installed here.
    """
    try:
        package = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError) as exc:
        raise errors.NotFound(
            f'Python package {name} is not installed on the machine that '
            'runs the playbooks; install it there'
        ) from exc
    gathering = sources.Gathering()
    for file in package.files or ():
        # What lies outside of site-packages is named by way of "..".
        parts = [part for part in file.parts if part != '..']
        if not _WANTED & set(parts[:-1]) or _SKIPPED & set(parts):
            continue
        place = pathlib.Path(str(file.locate()))
        if place.is_file():
            path = '/'.join(parts)
            gathering.check_size(path, place.stat().st_size)
            gathering.add(path, place.read_bytes())
    return gathering.files
