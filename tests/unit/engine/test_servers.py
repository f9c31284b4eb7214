# SPDX-License-Identifier: Apache-2.0
"""What people are told that a server is called."""

from oslo_db import exception as db_exception

from heat_plugins import heat_values
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import servers
from tests.unit import heat_fixture

TEMPLATE = {'heat_template_version': '2021-04-16', 'resources': {}}


class PathTest(heat_fixture.HeatTestCase):
    TYPES = {}

    def setUp(self):
        super().setUp()
        self.root = self.stack('root')
        group = self.stack('group', self.root, 'tier')
        self.member = self.stack('member', group, '0')

    def stack(self, name, above=None, resource=None):
        return self.heat.stack(
            TEMPLATE,
            name,
            owner_id=None if above is None else above.id,
            parent_resource=resource,
        )

    def path(self, *stands, root=None):
        server = heat_values.Server(
            id='id-of-it',
            resources=tuple(
                heat_values.ServerResource(
                    name='box',
                    stack_id=stack.id,
                    stack_name=stack.name,
                    root_stack_id=root_id,
                    metadata={},
                    has_queue=False,
                )
                for stack, root_id in stands
            ),
        )
        return servers.path(self.heat.context, server, root or self.root.id)

    def test_it_is_the_path_of_its_resource(self):
        self.assertEqual('box', self.path((self.root, self.root.id)))
        self.assertEqual('tier.0.box', self.path((self.member, self.root.id)))

    def test_a_resource_of_another_stack_does_not_count(self):
        other = self.stack('other')
        self.assertEqual('id-of-it', self.path((other, other.id)))
        self.assertEqual(
            'tier.0.box',
            self.path((other, other.id), (self.member, self.root.id)),
        )

    def test_without_the_database_it_is_its_id(self):
        def fails(context, stack_id):
            raise db_exception.DBConnectionError

        self.patch(resources, 'above', fails)
        self.assertEqual('id-of-it', self.path((self.root, self.root.id)))
