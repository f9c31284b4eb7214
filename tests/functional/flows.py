# SPDX-License-Identifier: Apache-2.0
"""What the tests of workflows share: a look into the real Mistral."""

import yaml

from tests.functional import base
from tests.functional import mistral_proxy

MISTRAL = mistral_proxy.SERVICE

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


def example(name):
    content = yaml.safe_load((EXAMPLES / f'{name}.yaml').read_text())
    # To YAML it is a date.
    return {**content, 'heat_template_version': '2021-04-16'}


class Mistral:
    """What the project has in Mistral, and how to let it fail.

    Of the executions only those that are newer than this object: the
    project is that of other tests as well.
    """

    def __init__(self, cloud, proxy):
        self.session = cloud.session('demo')
        self.failing = proxy.failing
        self._older = {one['id'] for one in self._rows('executions')}

    def _rows(self, kind, path=''):
        answer = self.session.get(MISTRAL, f'/{path or kind}')
        assert answer.ok, answer
        return answer.json()[kind]

    def names(self):
        return {one['name'] for one in self._rows('workflows')}

    def executions(self):
        return [
            one
            for one in self._rows('executions')
            if one['id'] not in self._older
        ]

    def states(self):
        """Return the state of each execution, by its id."""
        return {one['id']: one['state'] for one in self.executions()}

    def triggers(self):
        return self._rows('cron_triggers')

    def actions(self):
        """Return the ad-hoc actions of stacks."""
        return [
            one
            for one in self._rows('actions')
            if one['name'].startswith('stack')
        ]

    def environments(self):
        return self._rows('environments')

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
        answer = self.session.put(
            MISTRAL, f'/executions/{execution_id}', {'state': state}
        )
        assert answer.ok, answer

    def make(self, text, query='', session=None):
        answer = (session or self.session).post(
            MISTRAL,
            f'/workflows?{query}',
            text.encode(),
            headers={'Content-Type': 'text/plain'},
        )
        assert answer.ok, answer

    def run(self, name):
        answer = self.session.post(
            MISTRAL, '/executions', {'workflow_name': name}
        )
        assert answer.ok, answer
        return answer.json()['id']

    def left(self):
        """Return all that a test may leave behind."""
        actions = [
            one['name']
            for one in self._rows('actions')
            if not one['is_system']
        ]
        others = [
            one['name']
            for kind in ('workbooks', 'cron_triggers', 'environments')
            for one in self._rows(kind)
        ]
        executions = [one['id'] for one in self.executions()]
        return sorted([*self.names(), *actions, *others, *executions])


def refusal(mistral, content):
    """Return why Heat does not take a template."""
    body = {'stack_name': 'refused', 'template': content}
    answer = mistral.session.post('orchestration', '/stacks', body)
    assert answer.status == 400, answer
    return answer.json()['error']['message']


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


def post(url, body=None, kind='application/json'):
    """POST to a URL as any program would; the HTTP status."""
    answer = base.rest.send(
        'POST',
        url,
        body=b'' if body is None else body,
        headers={'Content-Type': kind},
    )
    assert answer.ok, answer
    return answer.status
