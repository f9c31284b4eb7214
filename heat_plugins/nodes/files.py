# SPDX-License-Identifier: Apache-2.0
"""Loading files of nodes, JSON or YAML."""

import json
from typing import Any

import yaml

from heat_plugins.plans import errors

_NULL = 'tag:yaml.org,2002:null'
_BOOL = 'tag:yaml.org,2002:bool'
_MERGE = 'tag:yaml.org,2002:merge'


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Leaves numbers as text.

    YAML has sixty as a base, so to it ``52:54:00:12:34:56`` is a number; and
    0123, as a password, one of base eight.
    """


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        # Nor is yes, no, on or off anything but a word.
        if tag in (_NULL, _MERGE) or (tag == _BOOL and first in 'tTfF')
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load(text: str) -> Any:
    """Return what a file holds.

    :raises errors.Invalid: it is neither JSON nor YAML; passwords in it are
        not quoted.
    """
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        # A subclass of SafeLoader: makes nothing but plain values.
        return yaml.load(text, _Loader)  # noqa: S506 # nosec B506
    except yaml.YAMLError:
        raise errors.Invalid(
            'The file of nodes is neither JSON nor YAML'
        ) from None
