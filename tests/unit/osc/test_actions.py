# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment action list``."""

import uuid

from heat_plugins.osc import common
from tests.unit.engine import heat_door
from tests.unit.osc import base
from tests.unit.resources import deployments
from tests.unit.resources import test_deployment_triggers as triggers
from tests.unit.resources import test_group_as_one as groups

MORE = {'config': triggers.CONFIG}


class ActionListTest(base.CommandCase, heat_door.DoorCase):
    def setUp(self):
        super().setUp()
        self.patch(common, 'runs', lambda manager: self.runs)
        self.created(deployments.template(resources=MORE), name='shop')

    def test_actions_with_their_inputs(self):
        code, (found,) = self.json('action list shop')
        assert (code, found['Action'], found['Tool'], found['Resource']) == (
            0,
            'BACKUP',
            'script',
            'deployment',
        )
        assert found['Inputs'] == [
            {
                'name': 'level',
                'type': 'Number',
                'default': 3,
                'description': '',
            },
            {
                'name': 'password',
                'type': 'String',
                'default': 'none',
                'description': '',
            },
        ]
        _, found = self.json('action list shop --lifecycle')
        assert [one['Action'] for one in found] == [
            'CREATE',
            'UPDATE',
            'BACKUP',
        ]

    def test_servers_have_names_for_people(self):
        _, output = self.run_command('action list shop')
        assert '| server |' in output
        assert 'level: Number = 3' in output
        _, (found,) = self.json('action list shop')
        assert found['Server name'] == 'server'
        uuid.UUID(found['Server'])

    def test_those_of_a_resource_or_of_what_it_contains(self):
        self.created(groups.group('a', 'b', resources=MORE), name='web')
        for line, expected in (
            ('web', ['deployment.a', 'deployment.b']),
            ('web deployment', ['deployment.a', 'deployment.b']),
            ('web deployment.b', ['deployment.b']),
            ('web "*.a"', ['deployment.a']),
        ):
            _, found = self.json(f'action list {line}')
            assert expected == [one['Resource'] for one in found]

    def test_many_come_in_pages(self):
        self.created(groups.group(*'abc', resources=MORE), name='web')
        self.patch(heat_door.door, '_PAGE', 1)
        _, found = self.json('action list web')
        assert len(found) == 3

    def test_what_is_not_there_is_an_error(self):
        for line, said in (
            ('shpo', 'no stack shpo in this project; did you mean "shop"'),
            ('shop depl', 'Stack shop: Its deployments: deployment'),
            ('shop config', 'a resource must be one, or contain some'),
        ):
            self.assert_refused(f'action list {line}', said)

    def test_values_of_inputs_are_not_shown(self):
        whole = deployments.template(
            resources=MORE, input_values={'password': 's3cret'}
        )
        self.created(whole, name='other')
        assert 's3cret' not in str(self.json('action list other'))
