# SPDX-License-Identifier: Apache-2.0
"""What heat-engine reads of servers, and of a stack for a run."""

from unittest import mock

from heat.common import exception
from heat.engine import environment
from heat.engine import stack as heat_stack
from heat.engine import template
from oslo_db import exception as db_exception
import pytest

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import servers
from heat_plugins.engine.database import stack_reading
from tests.unit import heat_fixture

TEMPLATE = {'heat_template_version': '2021-04-16', 'resources': {}}


def part(**values):
    given = {
        **{'name': 'box', 'stack_id': 's1', 'stack_name': 'servers'},
        **{'root_stack_id': 's1', 'metadata': {}, 'has_queue': False},
    }
    return heat_values.ServerResource(**{**given, **values})


def stand(*parts, **values):
    """Return a server that one resource stands for, or several."""
    parts = parts or (part(**values),)
    return heat_values.Server(id='id-of-it', resources=parts)


class PathTest(heat_fixture.HeatTestCase):
    def stack(self, name, above=None, resource=None):
        owner = None if above is None else above.id
        given = {'owner_id': owner, 'parent_resource': resource}
        return self.heat.stack(TEMPLATE, name, **given)

    def test_it_is_the_path_of_its_resource_below_the_root_stack(self):
        root, other = self.stack('root'), self.stack('other')
        member = self.stack('member', self.stack('group', root, 'tier'), '0')

        def path(*stands):
            parts = [
                part(stack_id=stack.id, root_stack_id=above.id)
                for stack, above in stands
            ]
            server = stand(*parts)
            return servers.path(self.heat.context, server, root.id)

        for stands, expected in (
            ([(root, root)], 'box'),
            ([(member, root)], 'tier.0.box'),
            # A resource of another stack does not count.
            ([(other, other)], 'id-of-it'),
            ([(other, other), (member, root)], 'tier.0.box'),
        ):
            assert path(*stands) == expected

        def fails(context, stack_id):
            raise db_exception.DBConnectionError

        # Without the database it is its ID.
        self.patch(resources, 'above', fails)
        assert path((root, root)) == 'id-of-it'


@pytest.mark.parametrize(
    ('policy', 'root', 'said'),
    [
        ('ANY', 'other', None),
        ('SAME_STACK', 's1', None),
        ('SAME_STACK', 'other', 'accepts only deployments of its own stack'),
        ('same_stack', 's1', 'box of stack servers has an invalid'),
    ],
)
def test_a_server_takes_what_its_policy_permits(policy, root, said):
    found = stand(metadata={'deployment_policy': policy})
    why = servers.refusal(found, root)
    assert why is None if said is None else said in why


GONE = exception.EntityNotFound(entity='Server', name='x')


@pytest.mark.parametrize(
    ('server', 'nova', 'expected'),
    [
        # Only Heat knows of a deployed server.
        (stand(is_itself=True), GONE, True),
        (stand(is_deleting=True), None, False),
        (stand(), None, True),
        (stand(), GONE, False),
        # Another error says nothing.
        (stand(), exception.Error('503'), True),
        (stand(), 'no such service', True),
        (
            heat_values.Server(id='strange', resources=()),
            'no such service',
            False,
        ),
    ],
)
def test_nova_is_asked_for_what_heat_does_not_know(server, nova, expected):
    plugin = mock.Mock()
    plugin.does_endpoint_exist.return_value = nova != 'no such service'
    plugin.get_server.side_effect = nova
    deployment = mock.Mock()
    deployment.client_plugin.return_value = plugin
    found = servers.Servers(deployment, 's1').is_there(server)
    assert found == expected


class ParametersTest(heat_fixture.HeatTestCase):
    def test_a_value_comes_from_the_environment_else_from_the_template(self):
        declared = {'type': 'string', 'default': 'template'}
        whole = {
            'heat_template_version': '2021-04-16',
            'parameters': {'a': declared, 'b': declared, 'c': declared},
        }
        given = {'parameters': {'a': 'given'}}
        given['parameter_defaults'] = {'a': 'default', 'b': 'default'}
        stack = heat_stack.Stack(
            self.heat.context,
            'web',
            template.Template(whole, env=environment.Environment(given)),
        )
        stack.store()
        read = stack_reading.ProjectStacks(self.heat.context).stack('web')
        assert read.parameters == {
            'a': 'given',
            'b': 'default',
            'c': 'template',
        }


@pytest.mark.parametrize(
    ('error', 'kind', 'said'),
    [
        (exception.Error('SQL'), errors.ServiceError, 'read 4f: Error'),
        (
            db_exception.DBError('SQL'),
            errors.Unavailable,
            'read 4f now: DBError',
        ),
        # A limit of the project is told with its remedy.
        (
            exception.RequestLimitExceeded(message='Delete some.'),
            errors.ServiceError,
            'Delete some.',
        ),
    ],
)
def test_a_failure_names_what_was_to_be_done_and_no_values(error, kind, said):
    with pytest.raises(kind) as raised, stack_reading.translated('read 4f'):
        raise error
    assert said in str(raised.value)
    assert 'SQL' not in str(raised.value)
