# SPDX-License-Identifier: Apache-2.0
"""The names of workflows."""

import re

import pytest

from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import definition_records

ONE = definition_reading.read('main: {tasks: {a: {action: std.noop}}}')
TWO = definition_reading.read(
    'main: {tasks: {a: {action: std.noop}}}\n'
    'sub: {tasks: {a: {action: std.noop}}}'
)
BOOK = definition_reading.read(
    'name: book\nactions: {a-long-name: {base: std.noop}}\n'
    'workflows: {main: {tasks: {a: {action: std.noop}}}}'
)


def test_name_tells_stack_resource_and_workflow():
    assert definition_records.workflow_names(TWO, 'stack', 'resource') == {
        'main': 'stack.resource.main',
        'sub': 'stack.resource.sub',
    }


def test_explicit_name_is_kept_for_an_only_workflow():
    assert definition_records.workflow_names(ONE, 's', 'r', 'my name') == {
        'main': 'my name'
    }


def test_explicit_name_begins_the_names_of_several():
    assert definition_records.workflow_names(TWO, 's', 'r', 'mine') == {
        'main': 'mine.main',
        'sub': 'mine.sub',
    }


def test_workbook_has_the_name_that_its_members_begin_with():
    assert definition_records.book_name(BOOK, 's', 'r') == 's.r'
    assert definition_records.workflow_names(BOOK, 's', 'r') == {
        'main': 's.r.main'
    }


@pytest.mark.parametrize('definition', [ONE, TWO, BOOK])
@pytest.mark.parametrize('resource', ['r' * 250, 'a (b) = c, d', 'ü/?%#'])
def test_names_fit_mistral_and_stay_different(definition, resource):
    names = definition_records.workflow_names(definition, 's' * 250, resource)
    other = definition_records.workflow_names(
        definition, 's' * 250, resource + '!'
    )
    found = [*names.values(), *other.values()]
    assert len(set(found)) == 2 * len(names)
    assert all(re.fullmatch(r'[\w.-]{1,255}', name) for name in found)


def test_longest_member_of_a_workbook_fits():
    book = definition_records.book_name(BOOK, 's' * 250, 'r' * 250)
    assert len(f'{book}.a-long-name') == definition_records.NAME_LIMIT
