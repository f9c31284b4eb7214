# SPDX-License-Identifier: Apache-2.0
"""The workflows that Mistral installs, and the actions that they call."""

from importlib import metadata
import inspect
import pathlib
import re

import testtools
import yaml

from heat_plugins.mistral import definitions
from heat_plugins.mistral_actions import preinstalled

_OURS = 'software_deployment.'


def workflows():
    """Return the installed workflows by name, as an entry point gives them."""
    (point,) = metadata.entry_points(
        group='mistral.preinstalled_workflows', name='heat_plugins'
    )
    found = {}
    for path in point.load()():
        with open(path, encoding='utf-8') as file:
            found[pathlib.Path(path).stem] = file.read()
    return found


class PreinstalledTest(testtools.TestCase):
    def test_each_file_holds_the_workflow_of_its_name(self):
        found = workflows()
        self.assertIn('software_deployment.trigger', found)
        for name, text in found.items():
            self.assertEqual([name], list(definitions.read(text)))

    def test_what_fails_is_handled_by_on_error_alone(self):
        """What on-complete handles fails the workflow in the end."""
        for name, text in workflows().items():
            for task in yaml.safe_load(text)[name]['tasks'].values():
                self.assertNotIn('on-complete', task, name)

    def test_each_short_task_of_a_loop_has_a_time_limit(self):
        """What a time limit continues has the user's token."""
        for name in ('heat_plugins.job', 'plan.configure'):
            tasks = yaml.safe_load(workflows()[name])[name]['tasks']
            for task, spec in tasks.items():
                if 'workflow' not in spec and task != 'run_action':
                    self.assertIn('timeout', spec, task)
                    self.assertIn('on-error', spec, task)

    def test_all_that_is_there_is_installed(self):
        folder = pathlib.Path(preinstalled.__file__).parent / 'workflows'
        self.assertEqual(
            {path.stem for path in folder.iterdir()}, set(workflows())
        )

    def given(self, task_input, inputs):
        """Return the arguments of an action; inputs are its workflow's."""
        if not isinstance(task_input, str):
            return task_input
        if 'execution().input' not in task_input or 'given =>' in task_input:
            # <% dict(name => ..., name => ...) %>
            return dict.fromkeys(re.findall(r'(\w+) =>', task_input))
        names = {n if isinstance(n, str) else next(iter(n)) for n in inputs}
        deleted = re.findall(r'delete\((\w+)\)', task_input)
        return dict.fromkeys(names - {*deleted})

    def test_the_actions_they_call_take_what_they_are_given(self):
        actions = {
            point.name: point
            for point in metadata.entry_points(group='mistral.actions')
            # Mistral's own cannot be loaded without the rest of it.
            if point.value.startswith('heat_plugins.')
        }
        called = set()
        for text in workflows().values():
            (workflow,) = [
                one
                for name, one in yaml.safe_load(text).items()
                if name != 'version'
            ]
            for task in workflow['tasks'].values():
                if task.get('workflow') == 'heat_plugins.job':
                    task = task['input']
                if point := actions.get(task.get('action')):
                    called.add(point.name)
                    given = self.given(task['input'], workflow['input'])
                    inspect.signature(point.load()).bind(**given)
        ours = {name for name in actions if name.startswith(_OURS)}
        self.assertEqual(set(), ours - called)
