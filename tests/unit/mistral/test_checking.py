# SPDX-License-Identifier: Apache-2.0
"""What is found without Mistral."""

import pytest

from heat_plugins.mistral.definitions import definition_checking
from heat_plugins.mistral.definitions import definition_reading


def found(text: str) -> list[str]:
    return [
        str(one)
        for one in definition_checking.check(definition_reading.read(text))
    ]


GOOD = """\
version: 2.0
main:
  input: [a]
  task-defaults:
    on-error: [clean]
    retry: {count: 1, delay: 1}
  tasks:
    one:
      with-items: [i in <% $.a %>, j in <% $.a %>]
      action: std.echo output=<% $.i %>
      publish-on-error: {x: 1}
      safe-rerun: true
      fail-on: <% false %>
      on-success:
        publish: {branch: {a: 1}}
        next: [two: <% $.a %>, fail msg="x"]
    two: {join: all, workflow: sub}
    clean: {action: std.noop}
back:
  type: reverse
  tasks:
    one: {action: std.noop, requires: two}
    two: {action: std.noop}
"""


def test_nothing_is_found_in_what_is_right():
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        (
            'version: 3\nw: {tasks: {a: {action: x}}}',
            'line 1: Mistral supports only version 2.0 of its language, not '
            '"3"',
        ),
        (
            'w: 5',
            'workflow "w", line 1: a workflow must be a map with "tasks:"',
        ),
        ('w: {type: direct}', 'workflow "w", line 1: it has no tasks'),
        (
            'w:\n  type: cyclic\n  tasks: {a: {action: x}}',
            'workflow "w", line 2: its type must be "direct" or "reverse", '
            'not "cyclic"',
        ),
        (
            'w:\n  tasks:\n    a: {}',
            'workflow "w", task "a", line 3: a task must be a map with an '
            '"action:" or "workflow:"',
        ),
        (
            'w:\n  tasks:\n    a:\n      action: x\n      join: every',
            'workflow "w", task "a", line 5: join must be "all", "one" or '
            "the number of tasks to wait for, not 'every'",
        ),
        (
            'w:\n  tasks:\n    a:\n      acton: x',
            'workflow "w", task "a", line 4: Mistral does not know "acton" '
            'here; did you mean "action"?',
        ),
        (
            'w:\n  tasks:\n    a:\n      action: x\n      on_error: [a]',
            'workflow "w", task "a", line 5: Mistral does not know '
            '"on_error" here; did you mean "on-error"?',
        ),
        (
            'w:\n  tasks:\n    a:\n      action: x\n      policies: {}',
            'workflow "w", task "a", line 5: Mistral does not know '
            '"policies" here: its entries stand in the task itself since '
            'version 2',
        ),
        (
            'w:\n  tasks:\n    a: {action: x, workflow: y}',
            'workflow "w", task "a", line 3: a task needs either an "action" '
            'or a "workflow"',
        ),
        (
            'w:\n  tasks:\n    one:\n      on-success:\n        - two\n'
            '        - tow: <% $.x %>\n    two: {action: x}',
            'workflow "w", task "one", line 6: on-success names the task '
            '"tow", which does not exist; did you mean "two"?',
        ),
        (
            'w:\n  task-defaults:\n    on-error: [gone]\n'
            '  tasks: {a: {action: x}}',
            'workflow "w", line 3: on-error names the task "gone", which '
            'does not exist',
        ),
        (
            'w:\n  type: reverse\n  tasks: {a: {action: x, requires: [b]}}',
            'workflow "w", task "a", line 3: requires names the task "b", '
            'which does not exist',
        ),
        (
            'w:\n  tasks: {a: {action: x, requires: [a]}}',
            'workflow "w", task "a", line 2: "requires" works only in a '
            'reverse workflow, and this one is direct',
        ),
        (
            'w:\n  type: reverse\n  tasks: {a: {action: x, join: all}}',
            'workflow "w", task "a", line 3: "join" works only in a direct '
            'workflow, and this one is reverse',
        ),
        (
            'name: b\nworkflows:\n  w:\n    tasks: {a: {action: 1, b: 2}}',
            'workflow "w", task "a", line 4: Mistral does not know "b" here',
        ),
    ],
)
def test_mistake_is_told_with_its_place(text, said):
    assert found(text) == [said]
