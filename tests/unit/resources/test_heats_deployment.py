# SPDX-License-Identifier: Apache-2.0
"""Heat's own deployments: theirs work with ours, and back; what is better.

Each of the `Scenarios` passes with our classes and fails with Heat's,
strictly: once Heat does better, its case here fails and can go.
"""

import datetime
import json

from heat.engine import resource
from heat.engine.clients.os import swift as heats_swift
from heat.engine.resources.openstack.heat import software_deployment as base
from heat.engine.resources.openstack.heat import structured_config
from oslo_utils import timeutils
import pytest
from swiftclient import exceptions as swift_exceptions

from tests.unit import heat_fixture
from tests.unit.resources import deployments

HEATS = [
    base.SoftwareDeployment,
    base.SoftwareDeploymentGroup,
    base.SoftwareDeployments,
    structured_config.StructuredDeployment,
    structured_config.StructuredDeploymentGroup,
    structured_config.StructuredDeployments,
]
FIELDS = (
    'type',
    'default',
    'required',
    'implemented',
    'update_allowed',
    'immutable',
)


@pytest.mark.parametrize('heats', HEATS, ids=lambda heats: heats.__name__)
def test_what_a_template_says_of_heats_class_it_may_say_of_ours(heats):
    ours = deployments.OURS[f'OS::Heat::{heats.__name__}']
    theirs, schema = heats.properties_schema, ours.properties_schema
    # Only a group has these.
    is_group = 'servers' in schema
    assert set(schema) - set(theirs) == {
        'delivery_timeout',
        'signal_url_lifetime',
        'timeout',
        'trigger_by_servers',
        'trigger_url',
        *(['max_failures', 'members'] if is_group else ()),
    }
    different = {
        (key, field)
        for key in theirs
        for field in FIELDS
        if getattr(theirs[key], field) != getattr(schema[key], field)
    }
    # An update in place is what ours does better.
    assert different == {('signal_transport', 'update_allowed')}
    allowed, former = (
        set(each['signal_transport'].constraints[0].allowed)
        for each in (schema, theirs)
    )
    assert former <= allowed
    assert allowed - former == {'AUTO', 'TEMP_URL_POLL'}
    theirs, schema = heats.attributes_schema, ours.attributes_schema
    # Heat adds those of all types once one is made.
    for key in theirs.keys() - heats.base_attributes_schema:
        assert schema[key].type == theirs[key].type
    assert set(schema) - set(theirs) - {'show'} == {
        'signal_transport',
        'runs',
        'trigger_url',
        *(['members'] if is_group else ()),
    }
    # A template in the place of a type needs Heat's attributes alone.
    assert set(schema.copy()) == set(theirs)
    assert ours.support_status.to_dict() == heats.support_status.to_dict()


class WithdrawnTest(deployments.DeploymentTestCase):
    """An update was cancelled; then heat-plugins was removed."""

    def test_heats_own_class_delivers_replaces_and_deletes(self):
        inputs = [{'name': 'who', 'replace_on_change': True}]
        given = {'config': {'inputs': inputs}, 'input_values': {'who': 'a'}}
        stack = self.created(deployments.template(**given))
        changed = deployments.template(**given, name='changed')
        _, task = self.waiting(changed, 'UPDATE', stack)
        task.cancel()
        self.assert_withdrawn(stack, 'cancelled')
        (row,) = self.deployment_rows()

        def heats(name, **properties):
            """Return the deployment as Heat's own class has it."""
            other = self.heat.stack(
                deployments.template(
                    server=stack['server'].resource_id,
                    config=stack['config'].resource_id,
                    signal_transport='NO_SIGNAL',
                    **properties,
                ),
                name,
            )
            own = base.SoftwareDeployment(
                'deployment', other['deployment'].t, other
            )
            own.resource_id = row.id
            return own

        own = heats('other', input_values={'who': 'b'})
        self.assertRaises(
            resource.UpdateReplace, own.handle_update, own.t, None, {}
        )
        own = heats('same', input_values={'who': 'a'})
        own.handle_update(own.t, None, {})
        (config,) = self.in_metadata(stack)
        assert deployments.inputs(config)['deploy_action'] == 'UPDATE'
        assert row.config_id not in self.config_ids()
        # It deletes all of it.
        own._delete_resource()
        assert self.deployment_rows() == []


class SwiftClient:
    """What Heat's classes call of a swiftclient connection, in memory.

    :ivar clock: what stamps objects; Swift's own, to the second.
    """

    url = f'http://swift.example.com:8080/v1/AUTH_{deployments.PROJECT}'

    def __init__(self):
        self.containers = {}
        self.clock = timeutils.utcnow

    def _check(self, container=None, name=None):
        there = self.containers.get(container)
        if there is None or (name is not None and name not in there):
            raise swift_exceptions.ClientException('no', http_status=404)

    def head_account(self):
        return {'x-account-meta-temp-url-key': 'key'}

    def put_container(self, container):
        self.containers.setdefault(container, {})

    def put_object(self, container, name, body):
        modified = self.clock().replace(microsecond=0)
        self.containers[container][name] = (
            body if isinstance(body, bytes) else body.encode(),
            modified.strftime('%a, %d %b %Y %H:%M:%S GMT'),
        )

    def head_object(self, container, name):
        self._check(container, name)
        return {'last-modified': self.containers[container][name][1]}

    def get_object(self, container, name):
        self._check(container, name)
        body, modified = self.containers[container][name]
        return {'last-modified': modified}, body

    def get_container(self, container):
        self._check(container)
        names = sorted(self.containers[container])
        return {}, [{'name': name} for name in names]

    def head_container(self, container):
        self._check(container)
        count = len(self.containers[container])
        return {'x-container-object-count': str(count)}

    def delete_object(self, container, name):
        self._check(container, name)
        del self.containers[container][name]

    def delete_container(self, container):
        self._check(container)
        del self.containers[container]


class Scenarios:
    """What holds of a deployment, whoever its class is from."""

    def test_an_update_waits_for_its_own_signal(self):
        stack = self.created()
        self.answer = None
        task = self.heat.begin(stack, 'UPDATE', deployments.template(name='x'))
        self.step(task, 9)
        # A server may well send its former result once more.
        self.send(self.handed[0], {'answer': 'old'})
        assert not self.step(task, 60)
        self.send(self.handed[1], {'answer': 'new'})
        self.finish(task)
        assert stack['deployment'].FnGetAtt('answer') == 'new'

    def test_no_signal_is_lost_to_a_clock_that_lags(self):
        stack = self.created()
        self.lag(seconds=30)
        self.update(stack, deployments.template(name='x'))


class DoneBetterTest(Scenarios, deployments.DeploymentTestCase):
    def lag(self, seconds):
        """Ours looks at no clock but its own."""


@heat_fixture.fails_with_heats(Scenarios)
class HeatsOwnTest(Scenarios, deployments.DeploymentTestCase):
    TYPES = {}

    def setUp(self):
        super().setUp()
        self.client = SwiftClient()
        self.patch(self.heat, 'PATIENCE', 100)
        # Ahead of the engine's, so that it gets to see signals at all.
        self.lag(seconds=-5)
        self.heat.auth.endpoints['object-store'] = self.client.url
        self.patch(
            heats_swift.SwiftClientPlugin,
            '_create',
            lambda plugin, version=None: self.client,
        )

    def lag(self, seconds):
        self.client.clock = lambda: (
            timeutils.utcnow() - datetime.timedelta(seconds=seconds)
        )

    def send(self, config, answer=None):
        given = deployments.inputs(config)
        if 'deploy_signal_id' not in given:
            return None
        if not isinstance(answer, bytes):
            answer = json.dumps(answer or {}).encode()
        *_, container, name = (
            given['deploy_signal_id'].split('?')[0].split('/')
        )
        self.client.put_object(container, name, answer)
        return 201

    def test_what_plays_swift_here_is_good_enough(self):
        self.answer = {'answer': '42'}
        stack = self.created()
        assert stack['deployment'].FnGetAtt('answer') == '42'
        self.delete(stack)
        assert self.client.containers == {}
