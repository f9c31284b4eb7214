# SPDX-License-Identifier: Apache-2.0
"""What Heat's own deployments do worse: the same tests, with both classes.

Each of these tests passes with our classes and fails with Heat's, strictly:
once Heat does better, its case here fails and can go.
"""

import datetime
import json

from heat.common import exception
from heat.engine.clients.os import swift as heats_swift
from oslo_utils import timeutils
from swiftclient import exceptions as swift_exceptions

from tests.unit import heat_fixture
from tests.unit.resources import deployments


class SwiftClient:
    """What Heat's classes call of a swiftclient connection, in memory.

    :ivar clock: what stamps objects; Swift's own, to the second.
    """

    url = f'http://swift.example.com:8080/v1/AUTH_{deployments.PROJECT}'

    def __init__(self):
        self.containers = {}
        self.failing = 0
        self.clock = timeutils.utcnow

    def _check(self, container=None, name=None):
        if self.failing:
            self.failing -= 1
            raise swift_exceptions.ClientException('no', http_status=503)
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

    def test_a_body_that_is_no_json_leaves_a_deployment_to_be_read(self):
        stack, _ = self.fails(deployments.template(), b'{"a": ')
        stack['deployment'].FnGetAtt('deploy_stdout')

    def test_a_passing_error_is_ridden_out(self):
        stack, task = self.waiting()
        self.break_swift(times=2)
        self.step(task, 5)
        self.send(self.handed[0])
        self.finish(task, 60)
        assert stack.status == 'COMPLETE'

    def test_no_output_of_the_former_action_remains(self):
        self.answer = {'answer': '1'}
        stack = self.created(deployments.template())
        self.answer = {'deploy_stdout': 'second'}
        self.update(stack, deployments.template(name='x'))
        again = self.heat.load(stack)
        assert again['deployment'].FnGetAtt('answer') is None

    def test_without_a_config_it_has_the_attributes_that_all_have(self):
        whole = deployments.template(actions=['SUSPEND'])
        del whole['resources']['deployment']['properties']['config']
        stack = self.created(whole)
        assert stack['deployment'].FnGetAtt('deploy_stdout') is None


class DoneBetterTest(Scenarios, deployments.DeploymentTestCase):
    def lag(self, seconds):
        """Ours looks at no clock but its own."""

    def break_swift(self, times):
        self.swift.fail(times, 503)

    def test_without_a_config_it_has_no_other_attributes(self):
        whole = deployments.template(actions=['SUSPEND'])
        del whole['resources']['deployment']['properties']['config']
        resource = self.created(whole)['deployment']
        assert resource.FnGetAtt('signal_transport') is None
        self.assertRaises(
            exception.InvalidTemplateAttribute, resource.FnGetAtt, 'answer'
        )


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

    def break_swift(self, times):
        self.client.failing = times

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
