# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Workflow with a real Mistral, which may fail on order."""

import json
import subprocess
import urllib.parse
import urllib.request

import pytest
import yaml

from tests.functional import base
from tests.functional import mistral_proxy

MISTRAL = mistral_proxy.SERVICE
Fault = mistral_proxy.Fault

EXAMPLES = base.ROOT / 'contrib/examples/workflows'

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
            'workflow': {
                'type': 'OS::Mistral::Workflow',
                'properties': given,
            }
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
    """What the project has in Mistral, and how to let it fail."""

    def __init__(self, cloud, proxy):
        self.session = cloud.session('demo')
        self.failing = proxy.failing
        self.proxy = proxy

    def _rows(self, kind, path=''):
        answer = self.session.get(MISTRAL, f'/{path or kind}')
        assert answer.ok, answer
        return answer.json()[kind]

    def names(self):
        return {one['name'] for one in self._rows('workflows')}

    def executions(self):
        return self._rows('executions')

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
        books = [one['name'] for one in self._rows('workbooks')]
        executions = [one['id'] for one in self.executions()]
        return sorted([*self.names(), *actions, *books, *executions])


@pytest.fixture(scope='module')
def proxy(cloud):
    with mistral_proxy.standing_before(cloud) as found:
        yield found


@pytest.fixture
def mistral(cloud, proxy):
    return Mistral(cloud, proxy)


@pytest.fixture
def made(mistral, stacks):
    """Makes stacks and waits for them; in the end nothing is left."""
    before = mistral.left()
    found = []

    def make(*args, status='CREATE_COMPLETE', **options):
        stack = stacks(*args, **options)
        found.append(stack)
        stack.wait(status)
        return stack

    yield make
    for stack in found:
        stack.delete()
    for stack in found:
        stack.wait('DELETE_COMPLETE')
    assert mistral.left() == before


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
    data = b'' if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, method='POST', data=data)
    request.add_header('Content-Type', kind)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.status


# What the examples say ----------------------------------------------------


def test_definition_runs_by_signals_of_every_kind(cloud, made, mistral):
    stack = made(example('definition'))
    prefix = f'{stack.name}.workflow'
    assert stack.outputs['workflows'] == {
        'greet': f'{prefix}.greet',
        'compose': f'{prefix}.compose',
    }
    stack.signal('workflow', {'workflow': 'greet', 'description': 'why'})
    ran = finished(stack)
    assert ran['output'] == {'said': 'Hello, world'}
    assert ran['input'] == {'who': 'world'}
    assert ran['workflow_name'] == f'{prefix}.greet'
    assert signalled(stack)['execution_id'] == ran['id']
    said = f'Signal: execution {ran["id"]} of {prefix}.greet has begun'
    assert events(stack) == [('SIGNAL_COMPLETE', said)]
    # By the command.
    data = json.dumps({'input': {'who': 'you'}})
    arguments = ('resource', 'signal', stack.name, 'workflow')
    cloud.openstack('stack', *arguments, '--data', data)
    assert finished(stack, count=2)['output'] == {'said': 'Hello, you'}
    # By nothing but HTTP.
    url = stack.outputs['webhook']
    assert post(url, {'input': {'who': 'web'}}) == 200
    assert finished(stack, count=3)['output'] == {'said': 'Hello, web'}
    assert post(url) == 200
    assert finished(stack, count=4)['output'] == {'said': 'Hello, world'}
    subprocess.run(
        ['curl', '--noproxy', '*', '-sf', '-X', 'POST', url], check=True
    )
    assert finished(stack, count=5)['output'] == {'said': 'Hello, world'}
    # An execution that has vanished spoils nothing.
    mistral.session.delete(MISTRAL, f'/executions/{ran["id"]}')
    shown = stack.outputs['executions']
    assert len(shown) == 4
    assert [one['created_at'] for one in shown] == sorted(
        (one['created_at'] for one in shown), reverse=True
    )


def test_alarm_runs_a_workflow_with_what_aodh_says(made):
    content = example('alarm')
    content['resources']['alarm']['type'] = 'OS::Heat::None'
    stack = made(content)
    assert post(stack.outputs['alarm_url'], ALARM) == 200
    assert finished(stack)['output'] == {
        'said': 'cpu_high was ok and is alarm'
    }


def test_alarm_example_is_valid_but_for_aodh(mistral):
    answer = mistral.session.post(
        'orchestration', '/validate', {'template': example('alarm')}
    )
    assert answer.ok or 'aodh' in str(answer).lower(), answer


def test_workbook_has_short_names_and_actions(made, mistral):
    stack = made(example('workbook'))
    stack.signal('book', {})
    assert finished(stack)['output'] == {'said': 'News!'}
    content = example('workbook')
    properties = content['resources']['book']['properties']
    text = properties['definition']
    properties['definition'] = text.replace("'!'", "'?'")
    stack.update(content)
    stack.wait('UPDATE_COMPLETE')
    stack.signal('book', {'input': {'text': 'Who'}})
    assert finished(stack, count=2)['output'] == {'said': 'Who?'}
    # A definition of another kind takes its place.
    properties['definition'] = ECHO
    del properties['default_workflow']
    stack.update(content)
    stack.wait('UPDATE_COMPLETE')
    assert mistral.names() & {
        f'{stack.name}.book.{one}' for one in ('echo', 'say', 'announce')
    } == {f'{stack.name}.book.echo'}


#: As one was written in 2014.
OLD = """\
test:
  type: direct
  tasks:
    hello:
      action: std.echo output='Hello'
      publish:
        result: $
"""


def test_definition_comes_from_a_file_and_is_run_by_the_clock(made, mistral):
    content = example('schedule')
    properties = content['resources']['workflow']['properties']
    file = EXAMPLES / properties['definition']['get_file']
    properties['definition'] = file.read_text()
    content['resources']['old'] = {
        'type': 'OS::Mistral::Workflow',
        'properties': {'definition': OLD},
    }
    stack = made(content)
    triggers = mistral.session.get(MISTRAL, '/cron_triggers').json()
    assert f'{stack.name}.workflow.create_vm' in {
        one['workflow_name'] for one in triggers['cron_triggers']
    }
    stack.signal('old', {})
    began = signalled(stack, 'old')
    assert began['workflow'] == f'{stack.name}.old.test'
    base.until(lambda: mistral.state(began['execution_id']) == 'SUCCESS')


# Life ---------------------------------------------------------------------


def test_update_changes_adds_and_drops_in_place(made, mistral):
    definition = f'{SLOW}other:\n  {NOOP}\nthird:\n  {NOOP}\n'
    stack = made(template(definition))
    prefix = f'{stack.name}.workflow'
    stack.signal('workflow', {'workflow': 'slow'})
    running = signalled(stack)['execution_id']
    base.until(lambda: mistral.state(running) == 'PAUSED')
    stack.update(template(ECHO))
    stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['available_workflows'] == {'echo': f'{prefix}.echo'}
    # What runs may yet call the others.
    assert f'{prefix}.other' in mistral.names()
    mistral.set_state(running, 'RUNNING')
    base.until(lambda: mistral.state(running) == 'SUCCESS')
    stack.signal('workflow', {'input': {'text': 'new'}})
    assert finished(stack, count=2)['output'] == {'said': 'new'}
    stack.update(template(ECHO, input={'text': 'default'}))
    stack.wait('UPDATE_COMPLETE')
    ours = {one for one in mistral.names() if one.startswith(prefix)}
    assert ours == {f'{prefix}.echo'}
    stack.signal('workflow', {})
    assert finished(stack, count=3)['output'] == {'said': 'default'}
    # What is missing is found, and made again.
    mistral.session.delete(MISTRAL, f'/workflows/{prefix}.echo')
    stack.action(check=None)
    stack.wait('CHECK_FAILED')
    assert f'{prefix}.echo' in stack.reason
    stack.update(template(ECHO, input={'text': 'default'}))
    stack.wait('UPDATE_COMPLETE')
    assert f'{prefix}.echo' in mistral.names()


def test_delete_ends_what_the_resource_began_and_nothing_else(made, mistral):
    definition = f'{SLOW}other:\n  {NOOP}\n'
    ended = made(template(definition, default_workflow='slow'))
    kept = made(
        template(
            definition,
            default_workflow='slow',
            executions_on_delete='leave',
        )
    )
    ids = {}
    for stack in (ended, kept):
        stack.signal('workflow', {})
        ids[stack] = signalled(stack)['execution_id']
        base.until(lambda one=stack: mistral.state(ids[one]) == 'PAUSED')
    theirs = mistral.run(f'{ended.name}.workflow.slow')
    base.until(lambda: mistral.state(theirs) == 'PAUSED')
    for stack in (ended, kept):
        stack.delete()
        stack.wait('DELETE_COMPLETE')
    assert mistral.state(ids[ended]) == 404
    assert mistral.state(ids[kept]) == 'PAUSED'
    assert mistral.state(theirs) == 'PAUSED'
    for one in (ids[kept], theirs):
        mistral.session.delete(MISTRAL, f'/executions/{one}?force=true')


def test_one_template_makes_many_stacks_with_names_that_fit(made, mistral):
    content = template()
    resources = content['resources']
    odd = 'a (very) odd=name, ' * 13
    resources[odd] = resources['workflow']
    resources['named'] = {
        'type': 'OS::Mistral::Workflow',
        'properties': {'definition': ECHO, 'name': 'kept'},
    }
    content['outputs']['reference'] = {'value': {'get_resource': 'named'}}
    content['outputs']['odd'] = {'value': {'get_resource': odd}}
    first = made(content, name='n' * 200)
    resources['named']['properties']['name'] = 'other'
    made(content)
    assert first.outputs['reference'] == 'kept'
    odd_name = first.outputs['odd']
    assert len(odd_name) == 255
    assert {odd_name, 'kept', 'other'} <= mistral.names()
    quoted = urllib.parse.quote(odd)
    first.signal(quoted, {})
    assert signalled(first, quoted)['workflow'] == odd_name


def test_structured_form_knows_what_mistral_knows(made):
    stack = made(
        template(
            None,
            type='direct',
            input={'items': [1, 2, 3], 'word': 'x'},
            output={'items': '<% $.items %>', 'caught': '<% $.caught %>'},
            task_defaults={'safe_rerun': 'true'},
            tasks=[
                {
                    'name': 'each',
                    'with_items': ['i in <% $.items %>', 'j in <% $.items %>'],
                    'action': 'std.echo output=<% $.i + $.j %>',
                    'concurrency': 2,
                    'publish': {'items': '<% task().result %>'},
                    'on_success': ['fails'],
                },
                {
                    'name': 'fails',
                    'action': 'std.fail',
                    'retry': {
                        'count': 2,
                        'delay': 0,
                        'break_on': '<% $.word = x %>',
                    },
                    'publish_on_error': {'caught': 'yes'},
                    'on_error': 'last',
                },
                {
                    'name': 'last',
                    'join': 'all',
                    'action': 'std.noop',
                    'safe_rerun': True,
                    'fail_on': '<% false %>',
                },
            ],
        )
    )
    stack.signal('workflow', {})
    ran = finished(stack)
    assert ran['state'] == 'SUCCESS', ran
    assert ran['output'] == {'items': [2, 4, 6], 'caught': 'yes'}
    name = stack.resource('workflow')['physical_resource_id']
    assert stack.outputs['available_workflows'] == {name: name}
    assert stack.outputs['data']['name'] == name


# What is refused ----------------------------------------------------------


@pytest.mark.parametrize(
    ('definition', 'said'),
    [
        ('version: "2.0"\nw: [', 'line 2: this is not valid YAML'),
        (
            'w:\n  tasks:\n    a:\n      action: std.noop\n'
            '      on-success: [gone]',
            'workflow "w", task "a", line 5: on-success names the task "gone"',
        ),
        (
            f'w:\n  {NOOP}\nw:\n  {NOOP}',
            'line 3: the workflow "w" is there twice, also on line 1',
        ),
        (
            'w:\n  tasks:\n    a: {action: std.noop}\n    b:\n'
            '      action: std.echo\n      input: {output: <% nope( %>}',
            'workflow "w", task "b", line 4: Mistral says: Parse error',
        ),
        (
            'w:\n  tasks:\n    a:\n      action: std.noop\n'
            '      retry: {cnt: 3}',
            'workflow "w", task "a", line 5: Mistral says: retry',
        ),
    ],
)
def test_bad_definition_is_refused_with_its_place(mistral, definition, said):
    assert said in refusal(mistral, template(definition))


def test_both_forms_or_neither_are_refused(mistral):
    tasks = [{'name': 't', 'action': 'std.noop'}]
    for properties in (
        {'definition': ECHO, 'type': 'direct', 'tasks': tasks},
        {'definition': None},
        {'definition': None, 'type': 'direct'},
    ):
        assert '"definition"' in refusal(mistral, template(**properties))


def test_get_resource_of_several_is_refused(mistral):
    content = template(f'a:\n  {NOOP}\nb:\n  {NOOP}')
    content['outputs']['x'] = {'value': {'get_resource': 'workflow'}}
    said = refusal(mistral, content)
    assert '{get_attr: [workflow, available_workflows, a]}' in said


def test_taken_names_are_refused_and_left_alone(cloud, made, mistral):
    mistral.make(f'mine:\n  {NOOP}\nversion: "2.0"')
    admin = cloud.session('admin')
    public = f'version: "2.0"\nall.public:\n  {NOOP}'
    mistral.make(public, 'scope=public', admin)
    try:
        for name, said in (
            ('mine', 'it is not ours'),
            ('all.public', 'a public workflow "all.public"'),
        ):
            stack = made(template(name=name), status='CREATE_FAILED')
            assert said in stack.reason
            stack.delete()
            stack.wait('DELETE_COMPLETE')
        assert {'mine', 'all.public'} <= mistral.names()
    finally:
        mistral.session.delete(MISTRAL, '/workflows/mine')
        admin.delete(MISTRAL, '/workflows/all.public')


def test_bad_signals_leave_events_and_the_reason(made):
    stack = made(template('w:\n  input: [needed]\n  ' + NOOP))
    bodies = [
        ({'input': {'x' * 300: 1}}, 'unknown input xxx'),
        ({'input': [1]}, '"input" must be a map, and is a list'),
        ({'params': 'x'}, '"params" must be a map'),
        ({'workflow': 'gone'}, 'there is no workflow "gone"'),
        ({}, 'needs the input needed'),
        # Heat drops what is no map before anybody sees it.
        ([1], 'needs the input needed'),
        ('text', 'needs the input needed'),
    ]
    for number, (body, said) in enumerate(bodies, 1):
        stack.signal('workflow', body)
        result = signalled(stack, count=number)
        assert said in result['error']
        assert result['execution_id'] is None
    reasons = [reason for _, reason in events(stack)]
    assert len(reasons) == len(bodies)
    assert all(len(reason) <= 255 for reason in reasons)
    assert stack.outputs['executions'] == []


def test_huge_output_fails_the_run_and_says_why(made):
    definition = ECHO.replace('<% $.text %>', "<% 'x' * 1200000 %>")
    stack = made(template(definition))
    stack.signal('workflow', {})
    ran = finished(stack)
    assert ran['state'] == 'ERROR'
    assert 'limit' in ran['state_info'].lower()
    assert len(json.dumps(stack.outputs)) < 2000000


# Mistral away -------------------------------------------------------------


def test_passing_errors_of_mistral_are_ridden_out(made, mistral):
    done = True
    with mistral.failing(
        Fault('GET', '/workflows', 1),
        Fault('POST', '/workflows\\?', 1, done),
        Fault('POST', '/executions', 1, done),
    ):
        stack = made(template())
        stack.signal('workflow', {})
        assert signalled(stack)['error'] is None
    assert finished(stack)['state'] == 'SUCCESS'
    assert len(stack.outputs['executions']) == 1
    with mistral.failing(
        Fault('PUT', '/workflows', 1, done),
        Fault('POST', '/workflows\\?', 1, done),
    ):
        stack.update(template(f'{ECHO}more:\n  {NOOP}\n'))
        stack.wait('UPDATE_COMPLETE')
    with mistral.failing(
        Fault('GET', '/executions', 1),
        Fault('DELETE', '/executions', 1, done),
        Fault('DELETE', '/workflows', 1, done),
    ):
        stack.delete()
        stack.wait('DELETE_COMPLETE')


def test_mistral_that_stays_away_leaves_nothing_half_made(made, mistral):
    with mistral.failing(Fault('POST', '/workflows\\?', 99)):
        stack = made(template(), status='CREATE_FAILED')
    assert 'Mistral answers 503' in stack.reason
    assert f'{stack.name}.workflow.echo' not in mistral.names()
    # The same resource gets what it lacks, under the same name.
    stack.update(template())
    stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['available_workflows'] == {
        'echo': f'{stack.name}.workflow.echo'
    }
    stack.signal('workflow', {})
    assert finished(stack)['state'] == 'SUCCESS'
    with mistral.failing(
        Fault('PUT', '/workflows', 99), Fault('POST', '/executions', 99)
    ):
        stack.signal('workflow', {})
        stack.update(template(f'{ECHO}more:\n  {NOOP}\n'))
        failed = signalled(stack, count=2)
        stack.wait('UPDATE_FAILED')
    assert f'{stack.name}.workflow.more' not in mistral.names()
    assert failed['error'].startswith('Mistral answers 503')
    assert ('SIGNAL_FAILED', f'Signal failed: {failed["error"]}') in events(
        stack
    )
