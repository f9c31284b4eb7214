# SPDX-License-Identifier: Apache-2.0
"""The tree of errors, and how one travels through Mistral."""

import inspect
import re

import pytest

from heat_plugins import errors

KINDS = [
    one
    for one in vars(errors).values()
    if inspect.isclass(one) and issubclass(one, errors.Error)
]


def drawn():
    """Return the parent of each class as the docstring draws it."""
    found, above = {}, {}
    tree = errors.__doc__.partition('::\n')[2].partition('\n\nMistral')[0]
    for line in filter(str.strip, tree.split('\n')):
        indent, name = re.match(r'( *)(?:[x.-] )?(\w+)', line).groups()
        depth = len(indent)
        above = {place: one for place, one in above.items() if place < depth}
        found[name] = above[max(above)] if above else 'Exception'
        above[depth] = name
    return found


def test_the_tree_is_drawn_as_it_is():
    assert drawn() == {one.__name__: one.__base__.__name__ for one in KINDS}


# What is none of these is never read again.
CODED = [
    one for one in KINDS if 'code' in vars(one) and one is not errors.Error
]


@pytest.mark.parametrize('kind', CODED)
def test_an_error_with_a_code_survives_its_way_through_mistral(kind):
    again = errors.restore(errors.report(kind('why')))
    assert type(again) is kind
    assert str(again) == 'why'


def test_what_is_none_of_ours_is_an_error_of_a_service():
    found = errors.report(ValueError('why'))
    assert found == {'code': 'error', 'message': 'why'}
    assert type(errors.restore(found)) is errors.ServiceError
    assert type(errors.restore({'code': 'later'})) is errors.ServiceError
