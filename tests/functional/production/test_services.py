# SPDX-License-Identifier: Apache-2.0
"""The broker, the database and Mistral go away; engines meet each other."""

from concurrent import futures
import contextlib
import threading
import time

from tests.functional import base
from tests.functional.production import waits

MISTRAL = 'workflowv2'

#: Long enough for the database to be missed by everybody.
OUTAGE = 15

WORKFLOW = """\
version: '2.0'
slow:
  output: {done: <% $.get(done) %>}
  tasks:
    first: {action: std.noop, wait-before: 10, on-success: second}
    second:
      action: std.echo output='fine'
      publish: {done: <% task().result %>}
"""


def test_a_broker_and_a_database_that_go_away_are_ridden_out(cloud, stacks):
    template = waits.template()
    stack = stacks(template)
    waits.all_wait(stack)
    cloud.restart('rabbitmq')
    # What was asked while it was away is answered with its time-out.
    with contextlib.suppress(TimeoutError, base.NotShown):
        stack.show()
    # Heat loses what an engine sends before the queue for it is back; a stack
    # then waits for ever, whichever classes it has.
    base.until(lambda: _is_made(stacks), 120)
    waits.answer(stack)
    stack.wait('CREATE_COMPLETE')
    expected = dict(zip(waits.NAMES, waits.NAMES, strict=True))
    assert waits.answers(stack) == expected
    stack.update(template, who='moon')
    waiting = waits.all_wait(stack, 'UPDATE')
    cloud.stop('mariadb')
    try:
        for name, deployment in waiting.items():
            deployment.answer(greeting=f'{name} again')
        time.sleep(OUTAGE)
    finally:
        cloud.start('mariadb')
    stack.wait('UPDATE_COMPLETE', 240)
    for name, deployment in waiting.items():
        assert stack.outputs[f'{name}_greeting'] == f'{name} again'
        # It was not handed out again: the same row, with the same config.
        assert stack.deployment(name).config == deployment.config


def _is_made(stacks):
    """Whether engines hand over to each other: two resources, in order."""
    value = {'type': 'OS::Heat::Value', 'properties': {'value': ''}}
    with contextlib.suppress(AssertionError, TimeoutError, base.NotShown):
        stack = stacks(
            {
                'heat_template_version': '2021-04-16',
                'resources': {
                    'first': value,
                    'second': {**value, 'depends_on': 'first'},
                },
            }
        )
        stack.wait('CREATE_COMPLETE', 15)
        return True
    return False


def test_of_signals_to_two_engines_at_once_one_counts(cloud, stacks):
    """Each is signalled by its URL, and twice through the API, at one time.

    What goes through the API is handled by whichever engine is free.
    """
    stack = stacks(waits.template())
    waiting = waits.all_wait(stack)
    barrier = threading.Barrier(3 * waits.COUNT, timeout=60)

    def by_url(name):
        barrier.wait()
        waiting[name].put(base.body(greeting='url'))

    def by_api(name):
        barrier.wait()
        stack.signal(name, {'greeting': 'api', 'deploy_stdout': 'api'})

    with futures.ThreadPoolExecutor(3 * waits.COUNT) as pool:
        for running in [
            pool.submit(way, name)
            for name in waits.NAMES
            for way in (by_url, by_api, by_api)
        ]:
            running.result()
    stack.wait('CREATE_COMPLETE', 120)
    first = stack.outputs
    for name in waits.NAMES:
        assert (first[f'{name}_greeting'], first[f'{name}_deploy_stdout']) in (
            ('url', None),
            ('api', 'api'),
        )
        ended = [
            one['resource_status']
            for one in stack.events(name)
            if not one['resource_status'].endswith('IN_PROGRESS')
        ]
        assert ended.count('CREATE_COMPLETE') == 1
        assert 'CREATE_FAILED' not in ended
    # What lost is not taken up by whoever looks next.
    time.sleep(2)
    assert stack.outputs == first


def test_a_mistral_that_dies_in_mid_run_is_waited_for(cloud, stacks):
    stack = stacks(
        {
            'heat_template_version': '2021-04-16',
            'resources': {
                'workflow': {
                    'type': 'OS::Mistral::Workflow',
                    'properties': {'definition': WORKFLOW},
                },
                'run': {
                    'type': 'OS::Mistral::Execution',
                    'properties': {'workflow': {'get_resource': 'workflow'}},
                },
            },
            'outputs': {'output': {'value': {'get_attr': ['run', 'output']}}},
        }
    )
    session = cloud.session()
    base.until(
        lambda: session.get(MISTRAL, '/executions').json()['executions']
    )
    cloud.kill('mistral')
    assert stack.status == 'CREATE_IN_PROGRESS'
    cloud.start('mistral')
    stack.wait('CREATE_COMPLETE', 240)
    assert stack.outputs['output'] == {'done': 'fine'}
