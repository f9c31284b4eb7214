# SPDX-License-Identifier: Apache-2.0
"""The examples of schedules show each property, and Heat takes them."""

import pathlib

from oslo_config import cfg
import yaml

from heat_plugins import config
from heat_plugins.resources import software_schedule
from tests.unit.resources import test_software_schedule as base

ROOT = pathlib.Path(__file__).parents[3] / 'contrib/examples'
EXAMPLES = (ROOT / 'schedules.yaml', ROOT / 'notices/schedule.yaml')
TYPE = 'OS::Heat::SoftwareSchedule'


class ExampleTest(base.ScheduleCase):
    def setUp(self):
        super().setUp()
        hosts = ['hooks.example.com']
        cfg.CONF.set_override('notify_hosts', hosts, config.GROUP)
        self.given = [
            each['properties']
            for example in EXAMPLES
            for each in yaml.safe_load(example.read_text())[
                'resources'
            ].values()
            if each['type'] == TYPE
        ]

    def test_each_property_has_an_example(self):
        used = {name for given in self.given for name in given}
        schema = software_schedule.SoftwareSchedule.properties_schema
        assert used == set(schema)

    def test_each_schedule_is_created(self):
        paused = []
        for number, given in enumerate(self.given):
            targets = {'targets': ['deployment']} if 'targets' in given else {}
            given = {'cron': None, **given, **targets}
            if 'notify' in given:
                given['notify'] |= {
                    'url': 'https://hooks.example.com/p4th',
                    'secret': 'a secret that is long',
                }
            stack = self.heat.create(base.template(**given), f's{number}')
            assert self.get(stack, 'missed') == 0
            paused.append(self.get(stack, 'paused'))
        assert paused == ['', 'until the release', '']
