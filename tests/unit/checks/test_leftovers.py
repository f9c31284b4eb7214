# SPDX-License-Identifier: Apache-2.0
"""What Heat leaves of deleted servers is told from what servers still read."""

import json
import uuid

from heat.common import short_id
from heat.db import api as db_api
from heat.db import models
from oslo_upgradecheck import upgradecheck
import sqlalchemy

from heat_plugins import errors
from heat_plugins.checks import leftovers
from heat_plugins.checks import object_store
from heat_plugins.clients import nova
from tests.unit import fake_swift
from tests.unit import heat_fixture

TEMPLATE = {'heat_template_version': '2021-04-16', 'resources': {}}


class LeftoversTest(heat_fixture.HeatTestCase):
    def setUp(self):
        super().setUp()
        self.cluster = fake_swift.Cluster()
        project = heat_fixture.PROJECT
        self.store = self.cluster.store(project)
        self.patch(
            object_store,
            'connect',
            lambda session: self.cluster.transport(project),
        )
        self.servers = {}
        self.patch(nova, 'servers', lambda cloud: self.servers)
        # Those that Nova does not list, though it has them.
        self.hidden = set()
        self.patch(
            nova,
            'is_there',
            lambda cloud, each: each in self.servers or each in self.hidden,
        )
        self.stack = self.heat.stack(TEMPLATE, name='web')
        self.server, self.resource = new_id(), new_id()
        self.container = self.name_of('web')
        self.object = self.write(self.container)
        self.first = self.note(self.stack)

    def name_of(self, stack_name, resource=None):
        tail = short_id.get_id(resource or self.resource)
        return f'{stack_name}-server-{tail}'

    def write(self, container, body=None):
        """Write an object as Heat does; return its name."""
        name = str(uuid.uuid4())
        url = f'{self.store.url}/{container}/{name}?temp_url_sig=a'
        metadata = {'os-collect-config': {'request': {'metadata_url': url}}}
        self.store.put_container(container, {})
        self.store.put_object(
            container, name, body or json.dumps(metadata).encode()
        )
        return name

    def note(self, stack, server=None, resource=None):
        """Write the events of a server that Heat creates; return the first."""
        name = self.name_of(stack.name, resource)
        if len(name) > 53:
            name = f'{name[:2]}-{name[-50:]}'
        first = self.tell(stack, name)
        self.tell(stack, server or self.server)
        return first

    def tell(self, stack, physical_id, action='CREATE'):
        """Write an event of a server."""
        return db_api.event_create(
            self.heat.context,
            {
                'stack_id': stack.id,
                'resource_name': 'server',
                'resource_action': action,
                'physical_resource_id': physical_id,
            },
        ).id

    def drop(self, number):
        """Drop an event, as Heat does with more than max_events_per_stack."""
        with db_api.context_manager.writer.using(self.heat.context) as session:
            session.execute(
                sqlalchemy.delete(models.Event).where(
                    models.Event.id == number
                )
            )

    def have(self, server, resource, name='server'):
        """Let Heat have a server; return the number of its resource."""
        row = db_api.resource_create(
            self.heat.context,
            {
                'name': name,
                'stack_id': self.stack.id,
                'physical_resource_id': server,
                'uuid': resource,
                'action': 'CREATE',
                'status': 'COMPLETE',
            },
        )
        return row.id

    def found(self):
        """Return the doubts of what is found, by container."""
        return {
            each.container: each.doubt
            for each in leftovers.find(heat_session())
        }

    def test_what_nothing_knows_but_the_events_is_certain(self):
        self.assertEqual({self.container: ''}, self.found())
        (leftover,) = leftovers.find(heat_session())
        leftovers.remove(heat_session(), leftover)
        self.assertIsNone(
            self.cluster.container(self.container, heat_fixture.PROJECT)
        )
        self.assertEqual({}, self.found())
        leftovers.remove(heat_session(), leftover)

    def test_so_is_a_server_of_a_deleted_stack(self):
        db_api.stack_delete(self.heat.context, self.stack.id)
        self.assertEqual({self.container: ''}, self.found())

    def test_so_is_one_with_a_long_name(self):
        stack = self.heat.stack(TEMPLATE, name='w' * 60)
        self.note(stack)
        name = f'ww-{self.name_of("w" * 60)[-50:]}'
        self.write(name)
        self.assertEqual({self.container: '', name: ''}, self.found())

    def test_so_is_the_former_one_of_a_server_that_was_replaced(self):
        newer, resource = new_id(), new_id()
        self.have(newer, resource)
        self.note(self.stack, newer, resource)
        self.servers[newer] = self.name_of('web', resource)
        self.tell(self.stack, self.server, 'DELETE')
        self.tell(self.stack, self.container, 'DELETE')
        self.assertEqual({self.container: ''}, self.found())

    def test_so_is_one_that_was_created_at_the_second_attempt(self):
        second = new_id()
        self.note(self.stack, second)
        self.assertEqual({self.container: ''}, self.found())
        self.hidden = {self.server}
        self.assertIn('still has', self.found()[self.container])
        self.hidden = {second}
        self.assertIn('still has', self.found()[self.container])

    def test_a_later_stack_of_the_same_name_proves_nothing(self):
        purged = self.name_of('web', new_id())
        self.write(purged)
        db_api.stack_delete(self.heat.context, self.stack.id)
        later = self.heat.stack(TEMPLATE, name='web')
        for server in (new_id(), self.resource):
            self.note(later, server)
        self.assertIn('has no event', self.found()[purged])

    def test_a_name_alone_proves_nothing(self):
        resource = new_id()
        name = self.name_of('web', resource)
        self.write(name)
        self.tell(self.stack, name)
        self.assertIn('has no event', self.found()[name])
        # Nor the server of what replaced it, or of what it has replaced.
        self.note(self.stack, new_id(), new_id())
        self.tell(self.stack, self.server, 'DELETE')
        self.assertIn('has no event', self.found()[name])

    def test_after_its_first_event_is_dropped_it_is_not_certain(self):
        self.assertEqual('', self.found()[self.container])
        self.drop(self.first)
        self.assertIn('has no event', self.found()[self.container])

    def test_a_server_that_was_retained_is_not_certain(self):
        for servers, hidden in (
            ({self.server: 'its-property'}, set()),
            ({}, {self.server}),
        ):
            self.servers, self.hidden = servers, hidden
            self.assertIn('still has', self.found()[self.container])

    def test_nor_is_one_that_another_resource_has_by_external_id(self):
        self.hidden = {self.server}
        for name in ('other', 'server'):
            self.have(self.server, new_id(), name)
            self.assertIn('still has', self.found()[self.container])

    def test_a_server_that_heat_has_is_none(self):
        number = self.have(self.server, self.resource)
        self.assertEqual({}, self.found())
        # Its name may be the user's choice.
        db_api.resource_delete(self.heat.context, number)
        number = self.have('other', new_id())
        db_api.resource_data_set(
            self.heat.context, number, 'metadata_object_name', self.object
        )
        self.assertEqual({}, self.found())

    def test_a_server_that_nova_has_is_not_certain(self):
        for server, name in (
            (self.server, 'named'),
            (new_id(), self.container),
        ):
            self.servers = {server: name}
            self.assertIn(
                f'still has server {server}', self.found()[self.container]
            )

    def test_without_nova_nothing_is_certain(self):
        def fail(cloud):
            raise errors.ServiceError('The catalogue has no Nova')

        self.patch(nova, 'servers', fail)
        self.assertIn('has no Nova', self.found()[self.container])

    def test_a_machine_that_is_no_server_of_nova_is_not_certain(self):
        self.note(self.stack, self.resource)
        self.assertIn('DeployedServer', self.found()[self.container])

    def test_heat_itself_writes_such_events(self):
        server = {
            'type': 'OS::Heat::DeployedServer',
            'properties': {'software_config_transport': 'POLL_SERVER_HEAT'},
        }
        stack = self.heat.create(
            {**TEMPLATE, 'resources': {'server': server}}, name='real'
        )
        name = stack['server'].physical_resource_name()
        self.write(name)
        self.assertNotIn(name, self.found())
        self.heat.delete(stack)
        self.assertIn('DeployedServer', self.found()[name])

    def test_one_of_which_heat_knows_nothing_is_not_certain(self):
        name = self.name_of('unknown')
        self.write(name)
        self.assertIn('has no event', self.found()[name])
        # Nor one of another project's stack.
        db_api.stack_update(
            self.heat.context, self.stack.id, {'tenant': 'other'}
        )
        self.assertIn('has no event', self.found()[self.container])

    def test_what_holds_anything_else_is_none_of_a_server(self):
        other = self.container.replace('web', 'two')
        for body in (
            b'{}',
            b'[]',
            b'no JSON',
            b'{"os-collect-config": {"request": {"metadata_url": "/a/b"}}}',
            b'{"os-collect-config": {"request": {"metadata_url": "http://["}}}',
        ):
            self.write(self.container, body)
            self.write(other, body)
            self.assertEqual({}, self.found())
            for name in (self.container, other):
                for entry in self.store.list_objects(name, ''):
                    if entry.name != self.object:
                        self.store.delete_object(name, entry.name)
        self.assertEqual({self.container: ''}, self.found())
        self.write('my-own-things')
        self.assertEqual({self.container: ''}, self.found())

    def test_what_arrives_meanwhile_keeps_the_container(self):
        (leftover,) = leftovers.find(heat_session())
        self.store.put_object(self.container, 'mine', b'')
        self.assertRaises(
            errors.Conflict, leftovers.remove, heat_session(), leftover
        )

    def test_the_check_warns_of_what_is_certain(self):
        result = leftovers.check(heat_session())
        self.assertEqual(upgradecheck.Code.WARNING, result.code)
        self.assertIn(self.container, result.details)
        self.servers[self.server] = 'there'
        result = leftovers.check(heat_session())
        self.assertEqual(upgradecheck.Code.SUCCESS, result.code)
        self.assertIn('Of 1 container it', result.details)
        self.store.delete_object(self.container, self.object)
        self.assertIn('left none', leftovers.check(heat_session()).details)

    def test_the_check_says_what_it_cannot_read(self):
        self.cluster.fail(status=403)
        result = leftovers.check(heat_session())
        self.assertEqual(upgradecheck.Code.SUCCESS, result.code)
        self.assertIn('Not checked', result.details)
        self.patch(leftovers.heat_context, 'get_admin_context', lambda: None)
        result = leftovers.check(heat_session())
        self.assertIn('[database] connection', result.details)


def new_id():
    return str(uuid.uuid4())


def heat_session():
    """Stands for a session; nothing here asks it."""
    return None
