# SPDX-License-Identifier: Apache-2.0
"""The text that Mistral is given."""

import pytest

from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import renaming

NAMES = {'main': 's.r.main', 'sub': 's.r.sub'}

TEXT = """\
# What this is for.
version: 2.0
main:   # the first
  tasks:
    plain: {workflow: sub, on-success: [inline]}
    inline:
      workflow: sub x=<% $.sub %>  # sub
      input: {sub: sub}
    folded:
      workflow: >
        sub x='sub'
      on-error: [sub]
    quoted: {workflow: "sub x='ü'"}
    dynamic: {workflow: <% $.sub %>}
    foreign: {workflow: other.sub}
    sub: {action: std.echo output=sub}
'sub':
  tasks:
    again: {workflow: main}
"""


def calls(text: str, workflow: str) -> dict[str, str]:
    tasks = definition_reading.read(text).workflows[workflow].data['tasks']
    return {
        name: task['workflow']
        for name, task in tasks.items()
        if 'workflow' in task
    }


def test_calls_follow_the_names_and_nothing_else_changes():
    text = renaming.render(definition_reading.read(TEXT), NAMES)
    assert calls(text, 's.r.main') == {
        'plain': 's.r.sub',
        'inline': 's.r.sub x=<% $.sub %>',
        'folded': "s.r.sub x='sub'\n",
        'quoted': "s.r.sub x='ü'",
        'dynamic': '<% $.sub %>',
        'foreign': 'other.sub',
    }
    assert calls(text, 's.r.sub') == {'again': 's.r.main'}
    tasks = definition_reading.read(text).workflows['s.r.main'].data['tasks']
    assert tasks['inline']['input'] == {'sub': 'sub'}
    assert tasks['folded']['on-error'] == ['sub']
    assert tasks['sub'] == {'action': 'std.echo output=sub'}


def test_comments_stay():
    text = renaming.render(definition_reading.read(TEXT), NAMES)
    assert '"s.r.main":   # the first\n' in text
    assert "version: '2.0'" in text


def test_some_workflows_are_taken_alone():
    text = renaming.render(definition_reading.read(TEXT), NAMES, {'sub'})
    assert list(definition_reading.read(text).workflows) == ['s.r.sub']
    assert calls(text, 's.r.sub') == {'again': 's.r.main'}


@pytest.mark.parametrize(
    'text',
    [
        '{main: {tasks: {a: {workflow: sub}}}, sub: {tasks: {}}}',
        '? main\n: tasks: {a: {workflow: sub}}\n? sub\n: tasks: {}',
        'main: {tasks: {a: {workflow: sub}}}\nsub: {tasks: {}}\n...\n',
        '%YAML 1.1\n---\nmain: {tasks: {a: {workflow: sub}}}\n'
        'sub: {tasks: {}}',
        'main:\n  tasks:\n    a:\n      workflow: |-\n        sub\n'
        'sub: {tasks: {}}',
        'main:\r\n  tasks:\r\n    a: {workflow: sub}\r\nsub: {tasks: {}}\r\n',
    ],
)
def test_every_form_of_yaml_is_renamed(text):
    rendered = renaming.render(definition_reading.read(text), NAMES)
    found = definition_reading.read(rendered)
    assert list(found.workflows) == ['s.r.main', 's.r.sub']
    assert calls(rendered, 's.r.main') == {'a': 's.r.sub'}


BOOK = """\
# A workbook.
name: book
actions:
  shout: {base: std.echo}
workflows:
  main:
    tasks:
      short: {workflow: sub}
      full: {workflow: book.sub x=1}
      action: {action: book.shout output=1}
  sub: {tasks: {a: {action: shout}}}
"""


def test_workbook_gets_its_name_and_short_names_are_left_to_mistral():
    text = renaming.render_book(definition_reading.read(BOOK), 's.r')
    found = definition_reading.read(text)
    assert found.book == 's.r'
    assert found.data['version'] == '2.0'
    assert calls(text, 'main') == {'short': 'sub', 'full': 's.r.sub x=1'}
    action = found.workflows['main'].data['tasks']['action']
    assert action == {'action': 's.r.shout output=1'}


def test_workbook_without_a_name_gets_one():
    text = BOOK.replace('name: book\n', '')
    found = definition_reading.read(
        renaming.render_book(definition_reading.read(text), 's.r')
    )
    assert found.book == 's.r'


INPUTS = """\
main:
  # What it needs.
  input:
    - who
    - word: Hello   # usually
    - other
  tasks: {a: {workflow: sub}}  # calls
sub:
  input: [who]
  tasks: {}
none: {tasks: {}}
"""


def test_inputs_get_defaults_and_the_rest_stays():
    names = {name: f's.{name}' for name in ('main', 'sub', 'none')}
    given = {'who': ['ü', {'a': None}], 'word': '<% 1 %>', 'unknown': 1}
    text = renaming.render(
        definition_reading.read(INPUTS), names, defaults=given
    )
    found = definition_reading.read(text).workflows
    assert found['s.main'].inputs == {
        'who': given['who'],
        'word': '<% 1 %>',
        'other': definition_reading.REQUIRED,
    }
    assert found['s.sub'].inputs == {'who': given['who']}
    assert found['s.none'].inputs == {}
    assert '# What it needs.' in text
    assert '# calls' in text
    assert calls(text, 's.main') == {'a': 's.sub'}


@pytest.mark.parametrize(
    'inputs',
    ['[x]', '[x: 1]', '\n  - x', '\n    -\n      x: |\n        1', '["x", y]'],
)
def test_every_form_of_inputs_gets_defaults(inputs):
    text = f'w:\n  input: {inputs}\n  tasks: {{}}\n'
    rendered = renaming.render(
        definition_reading.read(text), {'w': 'v'}, None, {'x': 5}
    )
    found = definition_reading.read(rendered).workflows['v']
    assert found.inputs['x'] == 5
    assert found.data['tasks'] == {}


def test_workflows_of_a_workbook_get_defaults():
    text = BOOK.replace('  main:\n', '  main:\n    input: [x]\n')
    found = definition_reading.read(
        renaming.render_book(definition_reading.read(text), 's.r', {'x': 5})
    )
    assert found.workflows['main'].inputs == {'x': 5}
