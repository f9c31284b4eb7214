# SPDX-License-Identifier: Apache-2.0
"""Reading and settling deployments in Heat's database."""

from heat_plugins.engine import rows
from heat_plugins.signals import body
from tests.unit.resources import deployments

DONE = body.Outcome(status='COMPLETE', reason='yes', outputs={'a': 1})


class RowsTest(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        self.stack, self.task = self.waiting()
        (self.row,) = self.deployment_rows()

    def settle(self, config_id=None):
        return rows.settle(
            self.heat.context,
            self.row.id,
            config_id or self.row.config_id,
            DONE,
        )

    def test_many_are_read_at_once_and_those_that_are_gone_left_out(self):
        ids = {f'{number}' for number in range(1200)} | {self.row.id}
        with self.counting_queries() as statements:
            found = rows.read(self.heat.context, ids)
        self.assertEqual({self.row.id}, set(found))
        self.assertEqual(self.row.config_id, found[self.row.id].config_id)
        self.assertTrue(found[self.row.id].in_progress)
        self.assertEqual(3, len(statements), statements)

    def test_none_is_no_query(self):
        with self.counting_queries() as statements:
            self.assertEqual({}, rows.read(self.heat.context, ()))
        self.assertEqual([], statements)

    def test_one_is_settled_once(self):
        self.assertTrue(self.settle())
        self.assertFalse(self.settle())
        (row,) = self.deployment_rows()
        self.assertEqual(
            ('COMPLETE', 'yes', {'a': 1}),
            (row.status, row.status_reason, row.output_values),
        )
        self.assertIsNotNone(row.updated_at)
        found = rows.read(self.heat.context, {row.id})
        self.assertFalse(found[row.id].in_progress)

    def test_one_of_another_action_is_not(self):
        self.assertFalse(self.settle('another config'))
        (row,) = self.deployment_rows()
        self.assertEqual('IN_PROGRESS', row.status)

    def test_a_container_is_in_use_while_a_resource_says_so(self):
        resource = self.stack['deployment']
        container = resource.data()[rows.CONTAINER_KEY]

        def in_use(root=self.stack.id, name=container):
            return rows.container_in_use(self.heat.context, root, name)

        self.assertTrue(in_use())
        self.assertFalse(in_use(root='another'))
        self.assertFalse(in_use(name='another'))
        resource.data_delete(rows.CONTAINER_KEY)
        self.assertFalse(in_use())
