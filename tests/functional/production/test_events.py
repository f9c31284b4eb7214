# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::EventTrigger, with events as a service of the cloud sends."""

import contextlib
import json
import urllib.parse

from oslo_config import cfg
from oslo_context import context
import oslo_messaging
import pytest

from tests.functional import base

MISTRAL = 'workflowv2'

EXAMPLE = base.ROOT / 'contrib/examples/workflows/event.yaml'

EVENT = 'compute.instance.create.end'


class Serializer(oslo_messaging.NoOpSerializer):
    """Sends a context as services do, Nova among them."""

    def serialize_context(self, ctxt):
        return {**ctxt.to_dict(), 'user_id': ctxt.user_id}


@pytest.fixture(scope='module')
def events(cloud):
    """Mistral's event engine, and a service that tells of events."""
    cloud.start('mistral-event-engine')
    found = json.loads((cloud.path / 'instance.json').read_text())
    password = urllib.parse.quote(found['secrets']['broker'], safe='')
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    oslo_messaging.set_transport_defaults('nova')
    transport = oslo_messaging.get_notification_transport(
        conf,
        f'rabbit://minicloud:{password}@127.0.0.1:{found["ports"]["rabbitmq"]}/',
    )
    notifier = oslo_messaging.Notifier(
        transport,
        publisher_id='compute.host',
        driver='messagingv2',
        serializer=Serializer(),
        topics=['notifications'],
    )

    def send(event=EVENT, project_id=None):
        request = context.RequestContext(
            user_id='somebody',
            project_id=project_id or cloud.session().project_id,
        )
        notifier.info(request, event, {'instance_id': 'a server'})

    yield send
    transport.cleanup()
    cloud.stop('mistral-event-engine')


def triggers(cloud):
    answer = cloud.session().get(MISTRAL, '/event_triggers')
    return answer.json()['event_triggers']


def executions(stack):
    """Return the executions that events have begun and that have ended."""
    return [
        one
        for one in stack.outputs['executions'] or ()
        if one['state'] == 'SUCCESS'
    ]


def send_until(true, send):
    """Send events until a function returns something true; how many.

    Mistral changes how it listens with each trigger that comes, changes or
    goes, and loses what comes meanwhile.
    """
    for count in range(1, 13):
        send()
        with contextlib.suppress(AssertionError):
            base.until(true, 10)
            return count
    raise AssertionError('Mistral took no event')


def test_the_example_runs_on_each_event_of_its_project(cloud, stacks, events):
    template = EXAMPLE.read_text()
    stack = stacks(template).created()
    (trigger,) = triggers(cloud)
    assert trigger['event'] == EVENT

    def send():
        events(project_id='f' * 32)
        events('compute.instance.delete.end')
        events()

    count = send_until(lambda: executions(stack), send)
    runs = executions(stack)
    # Those of others have begun nothing.
    assert len(runs) <= count
    assert [run['output'] for run in runs] == [
        {'said': 'Hello from compute.host'}
    ] * len(runs)
    assert stack.resource('trigger')['physical_resource_id'] == trigger['id']
    # Another event is another trigger; what is not said stays.
    stack.updated(template, event='compute.instance.delete.end')
    (other,) = triggers(cloud)
    assert other['id'] != trigger['id']
    send_until(
        lambda: len(executions(stack)) > len(runs),
        lambda: events('compute.instance.delete.end'),
    )
    stack.remove()
    assert triggers(cloud) == []
    # What events have begun belongs to the workflow, and goes with it.
    found = cloud.session().get(MISTRAL, '/executions').json()['executions']
    assert not [one for one in found if trigger['id'] in one['description']]
