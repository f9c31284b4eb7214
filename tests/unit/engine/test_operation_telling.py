# SPDX-License-Identifier: Apache-2.0
"""Engines tell webhooks of operations that commands have started."""

import dataclasses
import json
import logging
import types

import fixtures
from heat.engine import service_software_config
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import metrics
from heat_plugins.clients import webhooks
from heat_plugins.engine import process
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.database import scans
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.engine.runs import notices
from heat_plugins.engine.runs import operation_telling
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import notice_orders
from heat_plugins.runs.records import record_names
from tests.unit import heat_fixture
from tests.unit import threads
from tests.unit.runs.fleet import simulation

PROJECT = 'project-1'
HOUR = 3600
WANTED = notice_orders.NoticeOrder(
    to='https://hooks.example.com',
    url='https://hooks.example.com/p4th',
    secret='a s3cret of the team',
    waits=600,
)
Phase = operations.Phase


class TellingTest(heat_fixture.HeatTestCase):
    TYPES = {}

    def setUp(self):
        super().setUp()
        cfg.CONF.set_override('rescue_interval', 60, config.GROUP)
        hosts = ['hooks.example.com']
        cfg.CONF.set_override('notify_hosts', hosts, config.GROUP)
        service = service_software_config.SoftwareConfigService
        self.patch(
            service,
            'update_software_deployment',
            fleet_watching.answering(service.update_software_deployment),
        )
        self.patch(notices, 'PLACES', process.Places(32, 2))
        self.patch(fleet_watching, 'BACKOFF', fleet_watching.Backoff())
        self.patch(process, 'threading', threads.stand_in(lambda do: do()))
        self.patch(notices.CLOUD, 'addresses', lambda stack: frozenset())
        self.patch(webhooks, 'send', self.send)
        #: What came, and why it is not taken.
        self.sent, self.refuses = [], None
        self.patch(fleet_watching, 'first_stack', self.first_stack)
        self.patch(operation_telling, '_door', lambda row, stack: self.door)
        #: How the operation stands, and the requests for that.
        self.phase, self.asked = Phase.RUNNING, []
        self.door = types.SimpleNamespace(outline=self.outline, show=self.show)
        world = simulation.World(2)
        self.order = world.order()
        seal = world.tools().records.bind(self.order)
        context = heat_fixture.new_context(project_id=PROJECT)
        self.api = own_heat.OwnHeat(self.heat.rpc, context)
        self.begun = record_names.started_at(self.order.id)
        self.now = self.begun + 1
        notice_orders.watch(self.api, self.order, WANTED)
        self.registered = binding.register(self.api, self.order, seal)

    def send(self, webhook, hosts, own, headers, body):
        self.assertEqual('/p4th', webhook.target)
        self.sent.append(json.loads(body))
        if self.refuses is not None:
            raise self.refuses

    def first_stack(self, stack_ids, project_id):
        self.assertEqual(self.order.stack_ids, [*stack_ids])
        return types.SimpleNamespace(id=stack_ids[0], name='shop')

    def outline(self, operation_id):
        self.asked.append(operation_id)
        return operations.Operation.new(self.order).changed(
            phase=self.phase, ended_at=int(self.now)
        )

    def show(self, operation_id):
        attempt = {'state': operations.State.FAILED, 'reason': 's3cret'}
        return self.outline(operation_id).attempted({1: attempt})

    def end(self, phase):
        """Let the operation end; Heat's clock is another one."""
        self.phase = phase
        self.api.set_status(self.registered, binding.COMPLETE)

    def look(self, seconds=0):
        self.now += seconds
        operation_telling.look(lambda: self.now)

    def told(self):
        return [body['event'] for body in self.sent]

    def rows(self):
        return scans.notices(self.heat.context, 10)

    def test_a_failure_is_told_once_with_its_servers(self):
        self.look()
        self.assertEqual([], self.asked)
        self.end(Phase.FAILED)
        self.look()
        (body,) = self.sent
        self.assertEqual(
            (self.order.id, PROJECT, 'failure', 'shop'),
            (
                body['operation'],
                body['project'],
                body['event'],
                body['stack']['name'],
            ),
        )
        (server,) = body['servers']
        self.assertEqual(
            ('server1', 'failed'), (server['server'], server['state'])
        )
        self.assertNotIn('s3cret', str(body))
        # Nothing is left to read.
        self.assertEqual([], self.rows())
        self.look(HOUR)
        self.assertEqual(['failure'], self.told())

    def test_what_is_complete_at_once_is_not_told(self):
        self.end(Phase.COMPLETE)
        self.look()
        self.assertEqual([], self.sent)
        self.assertEqual([], self.rows())

    def test_a_retry_that_is_complete_is_told(self):
        self.end(Phase.FAILED)
        self.look()
        self.api.set_status(self.registered, binding.IN_PROGRESS)
        self.end(Phase.COMPLETE)
        self.look(60)
        self.assertEqual(['failure', 'recovery'], self.told())

    def test_what_waits_too_long_is_told_once(self):
        self.look()
        self.look(600)
        self.look(600)
        self.assertEqual(['waiting'], self.told())
        (server,) = self.sent[0]['servers']
        self.assertEqual('pending', server['state'])
        self.end(Phase.COMPLETE)
        self.look()
        self.assertEqual(['waiting', 'recovery'], self.told())

    def test_a_dead_receiver_is_given_up_in_an_hour(self):
        logger = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        counted = []
        self.addCleanup(metrics.install, {})
        failed = metrics.NOTIFICATIONS_FAILED
        metrics.install({(failed, ''): counted.append})
        self.refuses = errors.Unavailable('hooks.example.com is dead')
        self.end(Phase.TIMED_OUT)
        for _ in range(80):
            self.look(60)
        self.assertEqual(['timeout'] * 11, self.told())
        self.assertEqual(1, logger.output.count('Gave up a notice'))
        self.assertEqual([1], counted)
        self.assertNotIn('p4th', logger.output)
        self.assertEqual(
            'hooks.example.com is dead',
            notice_orders.error(self.api, self.order.id),
        )
        self.assertEqual([], self.rows())

    def test_a_dead_engine_has_a_successor(self):
        self.end(Phase.FAILED)
        later = []
        self.patch(process, 'threading', threads.stand_in(later.append))
        self.look()
        self.assertEqual([], self.sent)
        self.patch(notices, 'PLACES', process.Places(32, 2))
        self.patch(process, 'threading', threads.stand_in(lambda do: do()))
        self.look(31)
        self.assertEqual(['failure'], self.told())
        # The first one was only slow: another has recorded it since.
        later[0]()
        self.assertEqual(['failure'], self.told())

    def test_an_end_that_cannot_be_read_is_given_up(self):
        self.end(Phase.FAILED)
        (row,) = self.rows()

        def refuse(operation_id):
            raise errors.Denied('the trust is gone')

        self.door.outline = refuse
        self.now = row.changed_at.timestamp()
        self.look(60)
        self.assertEqual('', notice_orders.error(self.api, self.order.id))
        self.look(30 * HOUR)
        self.assertEqual(
            'the trust is gone', notice_orders.error(self.api, self.order.id)
        )
        self.assertEqual([], self.rows())

    def test_what_a_user_has_made_up_stops_no_other(self):
        for text in ('{}', '[' * 99, 'x'):
            config_id = self.api.create_config(
                dataclasses.replace(
                    self.api_config(), name=self.order.id, config=text
                )
            )
            self.api.create_deployment(
                config_id=config_id,
                server_id=self.order.id,
                action='NOTIFY',
                reason='x',
            )
        self.end(Phase.FAILED)
        self.look()
        self.assertEqual(['failure'], self.told())

    def api_config(self):
        return heat_values.DerivedConfig(
            name='',
            group=binding.NOTICES,
            config='',
            inputs=[],
            outputs=[],
            options={},
        )

    def test_it_goes_with_the_operation(self):
        binding.forget(self.api, self.order.id)
        self.assertEqual([], self.api.deployments(self.order.id))
        self.assertEqual('', notice_orders.error(self.api, self.order.id))

    def test_an_engine_refuses_hosts_that_are_not_permitted(self):
        for hosts, interval, said in (
            (['other.example.com'], 60, 'does not permit'),
            ([], 60, 'is empty'),
            (['hooks.example.com'], 0, 'no heat-engine answers'),
        ):
            cfg.CONF.set_override('notify_hosts', hosts, config.GROUP)
            cfg.CONF.set_override('rescue_interval', interval, config.GROUP)
            exc = self.assertRaises(
                errors.Refused,
                notice_orders.watch,
                self.api,
                dataclasses.replace(
                    self.order, id='20270115T080000Z-00000000'
                ),
                WANTED,
            )
            self.assertIn(said, str(exc))
            self.assertNotIn('[hp:', str(exc))
            self.assertEqual(
                [], self.api.deployments('20270115T080000Z-00000000')
            )
