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
        secret = {'password': 's3cret'}
        whole = deployments.template(resources=MORE, input_values=secret)
        self.created(whole, name='shop')

    def test_actions_with_their_inputs(self):
        code, (found,) = self.json('action list shop')
        row = code, found['Action'], found['Tool'], found['Resource']
        assert row == (0, 'BACKUP', 'script', 'deployment')
        assert 's3cret' not in str(found)
        assert [
            (each['name'], each['type'], each['default'])
            for each in found['Inputs']
        ] == [('level', 'Number', 3), ('password', 'String', 'none')]
        _, found = self.json('action list shop --lifecycle')
        actions = [one['Action'] for one in found]
        assert actions == ['CREATE', 'UPDATE', 'BACKUP']

    def test_those_of_a_resource_come_in_pages_with_servers_names(self):
        self.created(groups.group(*'abc', resources=MORE), name='web')
        self.patch(heat_door.door, '_PAGE', 1)
        for line, expected in (('web', 'abc'), ('web "*.a"', 'a')):
            _, found = self.json(f'action list {line}')
            names = [f'deployment.{each}' for each in expected]
            assert [each['Resource'] for each in found] == names
            uuid.UUID(found[0]['Server'])
        _, output = self.run_command('action list shop')
        assert '| server |' in output
        assert 'level: Number = 3' in output
        self.assert_refused('action list shpo', 'did you mean "shop"')
