# SPDX-License-Identifier: Apache-2.0
"""Finding the place of what Mistral does not accept."""

from heat_plugins.mistral.definitions import definition_checking
from heat_plugins.mistral.definitions import definition_reading

TEXT = """\
version: '2.0'
good:
  tasks:
    a: {action: std.noop}
main:
  task-defaults: {timeout: 5}
  tasks:
    a: {action: std.noop, on-success: [b]}
    b: {action: std.noop, on-success: [c]}
    c:
      action: std.noop
      retry: {wrong: 1}
      on-success: [a]
    d: {action: std.noop, join: all}
"""

SCHEMA = (
    "Invalid DSL: {'wrong': 1} is not valid\n\nFailed validating 'oneOf' in "
    "schema['properties']['retry']:\n    {}\n\nOn instance['retry']:\n    {}"
)


class Mistral:
    def __init__(self, bad, said):
        self.bad, self.said, self.asked = bad, said, 0

    def __call__(self, text, workbook):
        self.asked += 1
        return self.said if self.bad(definition_reading.read(text)) else None


def tasks(definition):
    return [
        task
        for workflow in definition.workflows.values()
        for task in workflow.data['tasks'].values()
    ]


def located(text, mistral):
    found = definition_checking.locate(definition_reading.read(text), mistral)
    return [str(one) for one in found]


def test_nothing_is_found_in_what_mistral_accepts():
    mistral = Mistral(lambda _: False, '')
    assert located(TEXT, mistral) == []
    assert mistral.asked == 1


def test_task_is_found_by_asking_about_parts():
    mistral = Mistral(
        lambda found: any('retry' in one for one in tasks(found)), SCHEMA
    )
    assert located(TEXT, mistral) == [
        'workflow "main", task "c", line 12: Mistral says: retry: '
        "{'wrong': 1} is not valid"
    ]


def test_task_that_mistral_names_is_believed():
    mistral = Mistral(
        lambda found: 'main' in found.workflows,
        'Not enough inbound tasks [task_name=d, join=all]',
    )
    assert located(TEXT, mistral) == [
        'workflow "main", task "d", line 14: Mistral says: Not enough '
        'inbound tasks [task_name=d, join=all]'
    ]


def test_what_is_in_no_task_is_told_for_the_workflow():
    mistral = Mistral(
        lambda found: any(
            'task-defaults' in one.data for one in found.workflows.values()
        ),
        "Invalid DSL: no\n\nFailed validating\n\nOn instance['timeout']:",
    )
    assert located(TEXT, mistral) == [
        'workflow "main", line 5: Mistral says: timeout: no'
    ]


def test_what_is_in_no_workflow_is_told_as_it_is():
    mistral = Mistral(lambda found: found.workbook, 'x' * 1000)
    text = 'name: b\nworkflows:\n  w: {tasks: {a: {action: x}}}'
    (said,) = located(text, mistral)
    assert said.startswith('Mistral says: xxx')
    assert said.endswith('x…')
    assert len(said) < 350


def test_few_questions_are_asked_of_many_tasks():
    many = 'w:\n  tasks:\n' + ''.join(
        f'    t{number}: {{action: std.noop}}\n' for number in range(500)
    )
    mistral = Mistral(
        lambda found: any('fail-on' in one for one in tasks(found)),
        'no',
    )
    text = f'{many}    bad: {{action: x, fail-on: 1}}\n'
    assert located(text, mistral) == [
        'workflow "w", task "bad", line 503: Mistral says: fail-on: no'
    ]
    assert mistral.asked < 25


def test_key_is_found_with_what_it_depends_on():
    def bad(found):
        return any(
            'concurrency' in one and 'with-items' in one
            for one in tasks(found)
        )

    text = (
        'w:\n  tasks:\n    a:\n      wait-before: 1\n      action: x\n'
        '      concurrency: no\n      with-items: i in y\n'
    )
    assert located(text, Mistral(bad, 'no')) == [
        'workflow "w", task "a", line 6: Mistral says: concurrency: no'
    ]


def test_key_may_stay_unknown():
    mistral = Mistral(
        lambda found: any(len(one) > 2 for one in tasks(found)), 'no'
    )
    text = 'w: {tasks: {a: {action: x, wait-before: 1, wait-after: 2}}}'
    assert located(text, mistral) == [
        'workflow "w", task "a", line 1: Mistral says: no'
    ]
