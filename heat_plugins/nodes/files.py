# SPDX-License-Identifier: Apache-2.0
"""Loading files of nodes, JSON or YAML."""

from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import yaml_reading

_NULL = 'tag:yaml.org,2002:null'
_BOOL = 'tag:yaml.org,2002:bool'
_MERGE = 'tag:yaml.org,2002:merge'


# Numbers stay text. YAML has sixty as a base, so to it 52:54:00:12:34:56 is a
# number; and 0123, as a password, one of base eight.
_RESOLVERS = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        # Nor is yes, no, on or off anything but a word.
        if tag in (_NULL, _MERGE) or (tag == _BOOL and first in 'tTfF')
    ]
    for first, resolvers in yaml_reading.Loader.yaml_implicit_resolvers.items()
}


class _PureLoader(yaml_reading.PureLoader):
    yaml_implicit_resolvers = _RESOLVERS


class _Loader(yaml_reading.Loader):
    yaml_implicit_resolvers = _RESOLVERS
    pure = _PureLoader


def load(text: str) -> Any:
    """Return what a file holds.

    :raises errors.Invalid: it is neither JSON nor YAML, or more than is
        read; passwords in it are not quoted.
    """
    if len(text) > yaml_reading.LARGEST:
        raise errors.Invalid(
            f'The file of nodes has more than {yaml_reading.LARGEST} '
            'characters; split it into several files'
        )
    try:
        return bounds.read_json(text)
    except ValueError:
        pass
    try:
        return yaml_reading.load(text, _Loader)
    except yaml_reading.UnreadableYAML as exc:
        raise errors.Invalid(
            f'The file of nodes is not JSON, and it {exc}'
        ) from None
