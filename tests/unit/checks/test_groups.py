# SPDX-License-Identifier: Apache-2.0
"""Which stacks must change before Heat's own classes serve them again."""

from unittest import mock

from oslo_upgradecheck import upgradecheck

from heat_plugins.checks import groups
from heat_plugins.engine.database import resources
from heat_plugins.signals import group_ids
from tests.unit import heat_fixture

TEMPLATE = {
    'heat_template_version': '2021-04-16',
    'resources': {
        name: {'type': 'OS::Heat::Value', 'properties': {'value': 1}}
        for name in ('one', 'two')
    },
}


class SingleGroupsTest(heat_fixture.HeatTestCase):
    TYPES = {}

    def told(self):
        found = groups.single_groups()
        self.assertEqual(upgradecheck.Code.SUCCESS, found.code)
        return found.details

    def grouped(self, name):
        """Create a stack with two groups, as the database has them."""
        stack = self.heat.create(TEMPLATE, name=name)
        for each in stack.values():
            self.heat.change(each.id, physical_resource_id=group_ids.new())
        return stack

    def test_there_may_be_none(self):
        self.heat.create(TEMPLATE)
        self.assertIn('No stack has a group', self.told())

    def test_stacks_are_named_once_with_their_project_and_the_remedy(self):
        for name in ('web', 'shop'):
            self.grouped(name)
        gone = self.grouped('gone')
        self.heat.delete(gone)
        told = self.told()
        self.assertIn('2 stacks have groups', told)
        self.assertIn(f'Project {heat_fixture.PROJECT}: shop, web.', told)
        self.assertIn('software deployment group nest', told)

    def test_no_more_are_read_than_are_of_use(self):
        for name in ('web', 'shop', 'mail'):
            self.grouped(name)
        with mock.patch.object(groups, 'READ', 2):
            told = self.told()
        self.assertIn('More than 2 stacks', told)
        self.assertNotIn('web', told)

    def test_a_database_that_fails_is_a_warning(self):
        with mock.patch.object(
            resources, 'with_groups', side_effect=ValueError
        ):
            found = groups.single_groups()
        self.assertEqual(upgradecheck.Code.WARNING, found.code)
        self.assertIn('ValueError', found.details)
