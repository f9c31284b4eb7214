# SPDX-License-Identifier: Apache-2.0
"""How definitions are read."""

import pytest

from heat_plugins.mistral.definitions import definition_reading

TWO = """\
version: '2.0'
main:
  type: direct
  input: [needed, usual: 5, {nothing: null}]
  tasks:
    one: {workflow: sub x=1}
sub:
  type: reverse
  tasks:
    other: {action: std.noop}
"""

BOOK = """\
version: '2.0'
name: book
actions:
  shout: {base: std.echo}
workflows:
  main:
    tasks: {one: {action: shout}}
"""


def refused(text: str) -> str:
    with pytest.raises(definition_reading.DefinitionError) as caught:
        definition_reading.read(text)
    return str(caught.value)


def test_workflows_come_in_the_order_of_the_text():
    found = definition_reading.read(TWO)
    assert list(found.workflows) == ['main', 'sub']
    assert not found.workbook
    assert [one.type for one in found.workflows.values()] == [
        'direct',
        'reverse',
    ]


def test_inputs_are_required_or_have_defaults():
    assert definition_reading.read(TWO).workflows['main'].inputs == {
        'needed': definition_reading.REQUIRED,
        'usual': 5,
        'nothing': None,
    }


def test_workbook_is_told_from_workflows():
    found = definition_reading.read(BOOK)
    assert found.workbook
    assert found.book == 'book'
    assert list(found.workflows) == ['main']
    assert found.actions == ('shout',)


def test_workflow_may_be_called_workflows():
    found = definition_reading.read(
        'workflows:\n  tasks: {a: {action: std.noop}}'
    )
    assert not found.workbook
    assert list(found.workflows) == ['workflows']


def test_lines_are_those_of_the_text():
    found = definition_reading.read(TWO)
    assert found.line(('main', 'tasks', 'one')) == 6
    assert found.line(('main', 'tasks', 'one', 'no', 'such')) == 6
    assert found.line(('nowhere',)) is None


def test_anchors_are_text_as_they_are_for_mistral():
    found = definition_reading.read(
        'a: {tasks: {b: {action: *x, target: @y}}}'
    )
    assert found.data['a']['tasks']['b'] == {'action': '*x', 'target': '@y'}


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('a: [', 'line 1: this is not valid YAML'),
        ('version: 2.0\n  create_vm:\n    type: direct', 'line 2: '),
        # What follows are Python's words, and the YAML library's.
        ('a: 2021-02-31', 'this is not valid YAML: day'),
        ('a: \x00', 'this is not valid YAML: '),
        ('a: 1\n---\nb: 2', 'line 2: this is not valid YAML'),
        ('? [a]\n: b', 'line 1: this is not valid YAML'),
        ('a: !!python/object:os.x {}', 'line 1: this is not valid YAML: '),
        ('{' * 3000, 'nested too deeply'),
        ('', 'not a map of workflows'),
        ('- 5', 'not a map of workflows'),
        ("version: '2.0'", 'the definition has no workflow'),
        ('yes: {}', 'line 1: "yes" is not a text in YAML'),
        ('name: b\nworkflows: {}', 'the workbook has no workflows'),
        ('a: 1\na: 2', 'line 2: the workflow "a" appears twice, also on '),
        ('w: {tasks: {a: {}, a: {}}}', 'the task "a" appears twice'),
        ('workflows: {w: {}, w: {}}', 'the workflow "w" appears twice'),
        ('w: {tasks: {a: {x: 1, x: 2}}}', 'the key "x" appears twice'),
    ],
)
def test_unreadable_is_refused_with_a_reason(text, said):
    assert said in refused(text)


def test_many_problems_are_counted():
    text = 'w:\n' + '  a: 1\n' * 20
    assert refused(text).endswith('and 9 more')


@pytest.mark.parametrize(
    ('command', 'name'),
    [
        ('sub', 'sub'),
        ('sub x=1 y=<% $.z %>', 'sub'),
        ('my.sub-flow x=1', 'my.sub-flow'),
        ('<% $.name %>', None),
        ('{{ _.name }} x=1', None),
        ('sub.<% $.name %>', None),
        ('', None),
        (5, None),
    ],
)
def test_called_workflow_is_the_first_word(command, name):
    assert definition_reading.called(command) == name


@pytest.mark.parametrize(
    ('clause', 'names'),
    [
        ('a', ['a']),
        (['a', {'b': '<% $.x %>'}], ['a', 'b']),
        ({'b': '<% $.x %>'}, ['b']),
        ({'publish': {'branch': {'x': 1}}, 'next': ['a']}, ['a']),
        (['fail msg="no"', 'succeed', 'fail(msg="x")', 'noop'], []),
        (None, []),
        (5, []),
    ],
)
def test_targets_of_a_clause_are_found_in_every_form(clause, names):
    assert [name for name, _ in definition_reading.targets(clause)] == names
