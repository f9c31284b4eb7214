# SPDX-License-Identifier: Apache-2.0
"""Ad-hoc actions: the definition that Mistral is given of one."""

from collections.abc import Mapping
import re
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins.mistral.definitions import definition_problems
from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import renaming

#: What Mistral's language lets an ad-hoc action have.
KEYS: Final = (
    'description',
    'tags',
    'base',
    'base-input',
    'input',
    'output',
)

# The base may be written with arguments: std.echo output="x".
_BASE_NAME: Final = re.compile(r'^\s*([\w.][^=(\s"]*)')


class AdhocError(ValueError):
    """A definition that is none of one ad-hoc action; says why."""


def read(text: str) -> dict[str, Any]:
    """Return what a definition says about its only action.

    :raises AdhocError: if there is not exactly one.
    """
    try:
        _, found = definition_reading.load(text)
    except definition_problems.DefinitionError as exc:
        raise AdhocError(f'the definition is not YAML: {exc}') from exc
    if not isinstance(found, Mapping):
        raise AdhocError('the definition must be a map.')
    actions = {k: v for k, v in found.items() if k != 'version'}
    if len(actions) != 1:
        raise AdhocError(
            f'the definition has {len(actions)} actions; a resource can hold '
            'only one.'
        )
    (spec,) = actions.values()
    if not isinstance(spec, Mapping):
        raise AdhocError('the action in the definition must be a map.')
    unknown = sorted(str(key) for key in spec.keys() - {*KEYS, 'name'})
    if unknown:
        raise AdhocError(
            f'an ad-hoc action has no key "{bounds.shortened(unknown[0])}"; '
            f'known keys: {", ".join(KEYS)}.'
        )
    if not spec.get('base'):
        raise AdhocError('the action in the definition needs a "base".')
    return {str(key): value for key, value in spec.items() if key != 'name'}


def write(name: str, spec: Mapping[str, Any]) -> str:
    """Return the definition of an action of that name."""
    wanted = {
        key: spec[key] for key in KEYS if spec.get(key) not in (None, '')
    }
    # The version first, so that mistralclient cannot take the text for a
    # file's name.
    return renaming.dump({'version': renaming.VERSION, name: wanted})


def base_name(spec: Mapping[str, Any]) -> str:
    """Return the name of the action that an ad-hoc action stands on."""
    found = _BASE_NAME.match(str(spec.get('base') or ''))
    return found[1] if found else ''
