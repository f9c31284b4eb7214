# SPDX-License-Identifier: Apache-2.0
"""How many threads there are told to be, and how many are in use."""

import uuid

from heat.common import context
from heat.db import api as db_api
from heat.objects import service as service_objects
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_upgradecheck import upgradecheck

from heat_plugins.checks import capacity
from tests.unit import heat_fixture

Code = upgradecheck.Code

TEMPLATE = {
    'heat_template_version': '2021-04-16',
    'resources': {
        f'value{number}': {
            'type': 'OS::Heat::Value',
            'properties': {'value': 1},
        }
        for number in range(4)
    },
}


class ThreadsTest(heat_fixture.HeatTestCase):
    TYPES = {}

    def setUp(self):
        super().setUp()
        self.conf = self.useFixture(config_fixture.Config(cfg.CONF))
        self.conf.config(executor_thread_pool_size=2, num_engine_workers=3)
        self.context = context.get_admin_context()

    def engines(self, count):
        """Let so many workers have reported."""
        for _ in range(count):
            engine_id = str(uuid.uuid4())
            service_objects.Service.create(
                self.context,
                {
                    'host': 'host',
                    'hostname': 'host',
                    'binary': 'heat-engine',
                    'engine_id': engine_id,
                    'topic': 'engine',
                    'report_interval': 60,
                },
            )

    def busy(self, count, stack_status='IN_PROGRESS'):
        """Let so many resources be in progress."""
        stack = self.heat.create(TEMPLATE)
        db_api.stack_update(self.context, stack.id, {'status': stack_status})
        for resource in list(stack.values())[:count]:
            db_api.resource_update(
                self.context,
                resource.id,
                {'status': 'IN_PROGRESS'},
                resource._atomic_key,
            )

    def assert_told(self, code, text):
        found = capacity.threads()
        self.assertIn(text, found.details)
        self.assertEqual(code, found.code)

    def test_room_to_spare_is_well(self):
        self.engines(3)
        self.busy(1)
        self.assert_told(Code.SUCCESS, 'Resources in progress: 1; ')
        self.assert_told(Code.SUCCESS, 'has 6 threads')
        self.assert_told(Code.SUCCESS, 'on all hosts: 6')

    def test_three_quarters_in_use_are_a_warning(self):
        self.engines(2)
        self.busy(3)
        self.assert_told(Code.WARNING, 'raise executor_thread_pool_size')

    def test_all_in_use_are_a_failure(self):
        self.engines(2)
        self.busy(4)
        self.assert_told(Code.FAILURE, 'Further resources must wait')

    def test_what_a_killed_engine_left_does_not_count(self):
        self.engines(2)
        self.busy(4, stack_status='FAILED')
        self.assert_told(Code.SUCCESS, 'Resources in progress: 0; ')

    def test_no_engine_that_reports_is_a_warning(self):
        self.assert_told(Code.WARNING, 'No heat-engine runs')

    def test_workers_that_nobody_configured_are_as_many_as_heat_forks(self):
        self.conf.config(num_engine_workers=None)
        self.patch(capacity.processutils, 'get_worker_count', lambda: 7)
        self.assert_told(Code.WARNING, 'has 14 threads')
        self.patch(capacity.processutils, 'get_worker_count', lambda: 2)
        self.assert_told(Code.WARNING, 'has 8 threads')
