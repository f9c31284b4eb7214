# SPDX-License-Identifier: Apache-2.0
"""What the tests of workflows share: a look into the real Mistral."""

import json
import pathlib
from typing import Any

import yaml

from heat_plugins.mistral_actions import preinstalled
from tests.functional import base

MISTRAL = 'workflowv2'

EXAMPLES = base.ROOT / 'contrib/examples/workflows'

#: A pattern that fits every two seconds: the sixth field is for these.
OFTEN = '* * * * * */2'

#: A pattern for which no test waits.
YEARLY = '0 0 1 1 *'

#: What Aodh 20 POSTs to the URL of an alarm.
ALARM = {
    'severity': 'low',
    'alarm_name': 'cpu_high',
    'current': 'alarm',
    'alarm_id': '0ca2845e-c142-4d4b-a346-e495553628ce',
    'reason': 'Transition to alarm due to 1 samples outside threshold, most '
    'recent: 97.0',
    'reason_data': {
        'type': 'threshold',
        'disposition': 'outside',
        'count': 1,
        'most_recent': 97.0,
    },
    'previous': 'ok',
}

ECHO = """\
version: '2.0'
echo:
  input: [text: nothing]
  output: {said: <% $.said %>}
  tasks:
    say:
      action: std.echo output=<% $.text %>
      publish: {said: <% task().result %>}
"""

NOOP = 'tasks: {t: {action: std.noop}}'

#: Runs until it is told to end; then it calls another one.
SLOW = """\
slow:
  tasks:
    first: {action: std.noop, pause-before: true, on-success: [second]}
    second: {workflow: other}
"""


def template(definition=ECHO, **properties):
    given = {**properties}
    if definition is not None:
        given['definition'] = definition
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            'workflow': {'type': 'OS::Mistral::Workflow', 'properties': given}
        },
        'outputs': {
            name: {'value': {'get_attr': ['workflow', name]}}
            for name in (
                'available_workflows',
                'executions',
                'signals',
                'alarm_url',
                'data',
            )
        },
    }


def scheduled(month):
    """Return a template of a workflow and its trigger, as both know them."""
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            'workflow': {
                'type': 'OS::Mistral::Workflow',
                'properties': {
                    'type': 'direct',
                    'description': f'for month {month}',
                    'tasks': [{'name': 'task', 'action': 'std.noop'}],
                },
            },
            'trigger': {
                'type': 'OS::Mistral::CronTrigger',
                'properties': {
                    'pattern': f'0 0 1 {month} *',
                    'workflow': {'name': {'get_resource': 'workflow'}},
                },
            },
        },
    }


def example(name):
    content = yaml.safe_load((EXAMPLES / f'{name}.yaml').read_text())
    # To YAML it is a date.
    return {**content, 'heat_template_version': '2021-04-16'}


class Mistral:
    """What the project has in Mistral, as a user of its API has it.

    Of the executions only those that are newer than this object: the
    project is that of other tests as well.
    """

    def __init__(self, session: base.minicloud_client.Session) -> None:
        self.session = session
        self._older = {one['id'] for one in self._rows('executions')}

    def start(
        self,
        workflow: str,
        namespace: str = '',
        execution: str = '',
        **given: Any,
    ) -> str:
        body = {
            'workflow_name': workflow,
            'workflow_namespace': namespace,
            'input': given,
            **({'id': execution} if execution else {}),
        }
        answer = self.session.post(MISTRAL, '/executions', body)
        assert answer.ok, answer
        return str(answer.json()['id'])

    def show(self, execution: str) -> base.Template:
        answer = self.session.get(MISTRAL, f'/executions/{execution}')
        assert answer.ok, answer
        found = dict(answer.json())
        return {**found, 'output': json.loads(found['output'] or '{}')}

    def end(self, execution: str) -> base.Template:
        """Wait until an execution has ended; return it."""

        def ended() -> base.Template | None:
            found = self.show(execution)
            going = found['state'] in ('IDLE', 'RUNNING', 'DELAYED')
            return None if going else found

        found: base.Template = base.until(ended, 150)
        return found

    def run(self, workflow: str, **given: Any) -> base.Template:
        return self.end(self.start(workflow, **given))

    def action(self, action: str, **given: Any) -> Any:
        """Run an action by itself; return its result."""
        body = {
            'name': action,
            'input': json.dumps(given),
            'params': json.dumps({'save_result': True}),
        }
        answer = self.session.post(MISTRAL, '/action_executions', body)
        assert answer.ok, answer
        place = f'/action_executions/{answer.json()["id"]}'

        def ended() -> base.Template | None:
            found = self.session.get(MISTRAL, place).json()
            return None if found['state'] == 'RUNNING' else dict(found)

        return json.loads(base.until(ended)['output'])['result']

    def hasten(self, *names: str, seconds: int) -> str:
        """Publish workflows of ours with a short time limit for their steps.

        :return: the namespace that they are in.
        """
        for path in preinstalled.paths():
            file = pathlib.Path(path)
            if file.stem in names:
                text = file.read_text()
                text = text.replace('+ 240', f'+ {seconds}')
                publish(self.session, text, 'namespace=hastened')
        return 'hastened'

    def _rows(self, kind):
        answer = self.session.get(MISTRAL, f'/{kind}')
        assert answer.ok, answer
        return answer.json()[kind]

    def names(self, kind='workflows'):
        return {one['name'] for one in self._rows(kind)}

    def executions(self):
        found = self._rows('executions')
        return [one for one in found if one['id'] not in self._older]

    def states(self):
        """Return the state of each execution, by its id."""
        return {one['id']: one['state'] for one in self.executions()}

    def triggers(self):
        return self._rows('cron_triggers')

    def definitions(self, stack):
        """Return the text of each workflow of a stack, by its name."""
        return {
            one['name']: one['definition']
            for one in self._rows('workflows')
            if one['name'].startswith(f'{stack.name}.')
        }

    def state(self, execution_id):
        answer = self.session.get(MISTRAL, f'/executions/{execution_id}')
        return answer.json()['state'] if answer.ok else answer.status

    def set_state(self, execution_id, state):
        path = f'/executions/{execution_id}'
        assert self.session.put(MISTRAL, path, {'state': state}).ok

    def left(self):
        """Return all that a test may leave behind."""
        found = [
            one['name']
            for kind in (
                'workbooks',
                'cron_triggers',
                'environments',
                'actions',
            )
            for one in self._rows(kind)
            if not one.get('is_system')
        ]
        executions = [one['id'] for one in self.executions()]
        return sorted([*self.names(), *found, *executions])


def publish(session, text, query=''):
    """Create workflows of a text; those of a namespace may be there."""
    answer = session.post(
        MISTRAL,
        f'/workflows?{query}',
        text.encode(),
        headers={'Content-Type': 'text/plain'},
    )
    assert answer.ok or (query and answer.status == 409), answer


def signalled(stack, resource='workflow', count=1):
    """Wait for what has become of so many signals; the newest."""

    def there():
        shown = stack.resource(resource, 'signals')['attributes']['signals']
        return shown if len(shown) >= count else None

    return base.until(there)[0]


def finished(stack, output='executions', count=1):
    """Wait until so many executions have finished; the newest."""

    def there():
        found = stack.outputs[output]
        if len(found) < count or found[0]['state'] in ('RUNNING', 'IDLE'):
            return None
        return found

    return base.until(there)[0]


def events(stack, resource='workflow'):
    return [
        (one['resource_status'], one['resource_status_reason'])
        for one in stack.events(resource)
        if one['resource_status'].startswith('SIGNAL')
    ]


def post(url, body=b''):
    """POST JSON to a URL as any program would; the HTTP status."""
    status = base.post(url, body)
    assert status < 400, status
    return status
