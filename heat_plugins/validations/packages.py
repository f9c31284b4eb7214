# SPDX-License-Identifier: Apache-2.0
"""Validations that an installed Python package has brought."""

from importlib import metadata
import pathlib

from heat_plugins import errors
from heat_plugins.content import sources
from heat_plugins.validations import catalogue

_WANTED = catalogue.FOLDERS | catalogue.PATHS.keys()
_SKIPPED = frozenset({'tests', '__pycache__'})


def content(name: str) -> sources.Content:
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
    found = sources.Gathering()
    for file in package.files or ():
        # What lies outside of site-packages is named by way of "..".
        parts = [part for part in file.parts if part != '..']
        if not _WANTED & set(parts[:-1]) or _SKIPPED & set(parts):
            continue
        place = pathlib.Path(str(file.locate()))
        if place.is_file():
            path = '/'.join(parts)
            found.check_size(path, place.stat().st_size)
            found.add(path, place.read_bytes())
    return found.files
