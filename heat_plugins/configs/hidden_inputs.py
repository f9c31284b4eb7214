# SPDX-License-Identifier: Apache-2.0
"""The places of secrets in the inputs of a config.

Only heat-engine knows the values of a stack's hidden parameters. When it
delivers a config to a server it marks, in the config's options, the places of
such values in the inputs: alone, in a list, or within a text that
``str_replace`` has made. The reader of the server's answer (an engine, a
command, a workflow) masks those parts of the inputs in it. The values
themselves are not stored again.
"""

from collections import abc
from typing import Any

from heat_plugins import masking

#: The option of a derived config: by the input's name, places as lists of
#: the number of the leaf (see `masking.leaves`), start and end.
OPTION = 'heat_plugins_hidden'

# The inputs with passwords of Heat's own, for its transports.
_ALWAYS = frozenset({'deploy_password'})

# The most places that are marked in an input; of more all of it is hidden.
_MOST = 100

_Inputs = abc.Iterable[abc.Mapping[str, Any]]
_Places = list[list[int]]


def marked(
    options: abc.Mapping[str, Any] | None,
    inputs: _Inputs,
    secrets: abc.Collection[str],
) -> dict[str, Any]:
    """Return the options of a config, with the marks of its inputs.

    If the search would take too long, all of the inputs are hidden.
    """
    inputs = list(inputs)
    values = [declaration.get('value') for declaration in inputs]
    is_sought = masking.work(values, len(secrets)) <= masking.MOST_WORK
    kept = dict(options or {})
    kept.pop(OPTION, None)
    marks = {}
    for declaration in inputs:
        value = declaration.get('value')
        places = _places(value, secrets) if is_sought else _whole(value)
        if places:
            marks[str(declaration['name'])] = places
    return {**kept, OPTION: marks} if marks else kept


def changed(
    options: abc.Mapping[str, Any],
    before: abc.Mapping[str, Any],
    inputs: _Inputs,
) -> dict[str, Any]:
    """Return the options of a config that gets other values.

    A value that replaces one with a mark is hidden as a whole.

    :param before: the values that the marks are of, by name.
    """
    marks = dict(_marks(options))
    for declaration in inputs:
        name, value = str(declaration['name']), declaration.get('value')
        if name in marks and value != before.get(name):
            marks[name] = _whole(value)
    kept = {k: v for k, v in options.items() if k != OPTION}
    return {**kept, OPTION: marks} if marks else kept


def mask(
    inputs: _Inputs | None, options: abc.Mapping[str, Any] | None
) -> masking.Mask:
    """Return the mask for the hidden parts of a config's inputs."""
    marks = _marks(options)
    secrets: set[str] = set()
    for declaration in inputs or ():
        name, value = str(declaration['name']), declaration.get('value')
        if name in _ALWAYS:
            secrets.update(masking.texts(value))
        elif name in marks:
            secrets.update(_parts(value, marks[name]))
    return masking.Mask(
        secret for secret in secrets if len(secret) >= masking.SHORTEST
    )


def _marks(options: abc.Mapping[str, Any] | None) -> abc.Mapping[str, Any]:
    """Return where a config's options say that secrets are."""
    marks = (options or {}).get(OPTION)
    return marks if isinstance(marks, abc.Mapping) else {}


def _places(value: Any, secrets: abc.Collection[str]) -> _Places:
    """Return where secrets stand in a value."""
    places: _Places = []
    for number, leaf in enumerate(masking.leaves(value)):
        for secret in secrets:
            start = leaf.find(secret)
            while start >= 0:
                end = start + len(secret)
                places.append([number, start, end])
                if len(places) > _MOST:
                    return _whole(value)
                start = leaf.find(secret, end)
    return sorted(places)


def _whole(value: Any) -> _Places:
    """Return the places of all of a value."""
    return [
        [number, 0, len(leaf)]
        for number, leaf in enumerate(masking.leaves(value))
    ]


def _parts(value: Any, places: Any) -> abc.Iterator[str]:
    """Yield the parts of a value at some places."""
    leaves = list(masking.leaves(value))
    try:
        for number, start, end in places:
            yield leaves[number][start:end]
    except (IndexError, TypeError, ValueError):
        # A user has written other marks there: all of it is hidden.
        yield from leaves
