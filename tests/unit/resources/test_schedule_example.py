# SPDX-License-Identifier: Apache-2.0
"""The example of schedules shows each property, and Heat takes it."""

import pathlib

import yaml

from heat_plugins.resources import software_schedule
from tests.unit.resources import test_software_schedule as base

EXAMPLE = pathlib.Path(__file__).parents[3] / 'contrib/examples/schedules.yaml'
TYPE = 'OS::Heat::SoftwareSchedule'


class ExampleTest(base.ScheduleCase):
    def setUp(self):
        super().setUp()
        self.given = {
            name: each['properties']
            for name, each in yaml.safe_load(EXAMPLE.read_text())[
                'resources'
            ].items()
            if each['type'] == TYPE
        }

    def test_each_property_has_an_example(self):
        used = {name for given in self.given.values() for name in given}
        schema = software_schedule.SoftwareSchedule.properties_schema
        self.assertEqual(set(schema), used)

    def test_each_schedule_is_created(self):
        for name, given in self.given.items():
            targets = {'targets': ['deployment']} if 'targets' in given else {}
            given = {'cron': None, **given, **targets}
            stack = self.heat.create(base.template(**given), name)
            self.assertEqual(0, self.get(stack, 'missed'))
        self.assertEqual('until the release', self.get(stack, 'paused'))
