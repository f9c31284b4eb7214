# SPDX-License-Identifier: Apache-2.0
"""What becomes of the nodes of a file."""

import uuid

import testtools

from heat_plugins import errors
from heat_plugins.nodes import node_reading
from heat_plugins.nodes import registering
from tests.unit.nodes import fake_ironic

MAC = '52:54:00:00:00:01'
OTHER = '52:54:00:00:00:02'


def entry(number=1, **more):
    found = {
        'name': f'node{number}',
        'pm_type': 'ipmi',
        'pm_addr': f'192.0.2.{number}',
        'pm_password': 'hunter22',
        'mac': [f'52:54:00:00:00:{number:02}'],
        'cpu': '4',
        'capabilities': 'boot_mode:uefi',
        **more,
    }
    return {name: value for name, value in found.items() if value is not None}


class RegisteringCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.ironic = fake_ironic.Ironic()

    def register(self, *entries, **options):
        registrar = registering.Registrar(self.ironic, wait=0)
        return registrar.register(node_reading.read([*entries]), **options)

    def one(self, *entries, action=None, **options):
        (found,) = self.register(*entries, **options)
        assert found.action == (action or found.action)
        return found

    def assert_actions(self, actions, *entries, **options):
        found = self.register(*entries, **options)
        assert ' '.join(one.action for one in found) == actions
        return found


class RegisteringTest(RegisteringCase):
    def test_a_node_gets_all_fields_of_the_file(self):
        found = self.one(entry(resource_class='gold'), action='created')
        row = self.ironic.row('node1')
        assert row['uuid'] == found.uuid
        assert row['driver'] == 'ipmi'
        assert row['driver_info']['ipmi_password'] == 'hunter22'
        assert row['properties'] == {
            'cpus': '4',
            'capabilities': 'boot_mode:uefi',
        }
        assert row['resource_class'] == 'gold'
        assert self.ironic.macs('node1') == {MAC}

    def test_a_password_is_always_written(self):
        self.register(entry())
        new = entry(pm_password='correct horse')
        found = self.one(new, action='unchanged')
        row = self.ironic.row('node1')
        assert row['driver_info']['ipmi_password'] == 'correct horse'
        assert 'horse' not in repr(found)

    def test_a_dry_run_shows_all_changes_and_makes_none(self):
        self.register(entry())
        self.ironic.writes = 0
        first, _ = self.assert_actions(
            'updated created',
            entry(cpu=8, mac=[MAC, OTHER]),
            entry(3),
            dry_run=True,
        )
        assert first.changes == (f'port {OTHER}', 'properties/cpus: 4 -> 8')
        assert self.ironic.writes == 0

    def test_other_fields_stay(self):
        properties = {'vendor': 'x', 'cpus': 4, 'capabilities': 'cpu_vt:true'}
        self.ironic.add(
            'id-1', MAC, name='mine', driver='ipmi', properties=properties
        )
        assert self.one(entry(name=None)).name == 'mine'
        merged = 'cpu_vt:true,boot_mode:uefi'
        # Numbers that Ironic has as text are no change.
        assert self.ironic.row('mine')['properties'] == {
            'vendor': 'x',
            'cpus': 4,
            'capabilities': merged,
        }

    def test_drivers(self):
        self.register(entry())
        found = self.one(entry(pm_type='redfish'))
        assert 'driver: ipmi -> redfish' in found.changes
        assert self.ironic.row('node1')['driver'] == 'redfish'
        # A node keeps a driver that is no longer enabled.
        self.ironic.enabled.remove('redfish')
        self.assert_actions('unchanged', entry(pm_type='redfish'))
        found = self.assert_actions(
            'failed failed created',
            entry(2, pm_type='snmp'),
            entry(3, pm_type='x'),
            entry(4),
        )
        assert 'No conductor for snmp' in found[0].reason

    def test_no_message_holds_a_password_or_another_key_of_the_bmc(self):
        found = self.one(entry(pm_type='snmp'))
        assert 'snmp_password' in found.reason
        assert 'hunter22' not in repr(found)
        self.register(entry(driver_info={'ipmi_hex_kg_key': '00ff00ff'}))
        found = self.one(entry(driver_info={'ipmi_hex_kg_key': '11ee11ee'}))
        assert 'ff00ff' not in repr(found)
        assert 'ee11ee' not in repr(found)


class MatchingTest(RegisteringCase):
    def test_a_node_is_known_by_its_mac_address_its_uuid_or_its_bmc(self):
        mine, other = str(uuid.uuid4()), '52:54:00:99:99:99'
        settings = {'redfish_address': 'https://192.0.2.1'}
        for mac, settings_there, more in (
            (MAC, {}, {'pm_addr': '198.51.100.7'}),
            (other, {}, {'uuid': mine.upper()}),
            (other, settings, {}),
        ):
            self.ironic = fake_ironic.Ironic()
            self.ironic.add(mine, mac, driver_info=settings_there)
            assert self.one(entry(**more)).uuid == mine
            assert MAC in self.ironic.macs(mine)
        # Another port is another BMC.
        found = self.one(entry(2, pm_addr='192.0.2.1', pm_port='6230'))
        assert found.uuid != mine

    def test_an_entry_may_have_the_uuid_of_a_new_node(self):
        mine = str(uuid.uuid4())
        assert self.one(entry(uuid=mine)).uuid == mine
        assert self.ironic.row(mine)['name'] == 'node1'

    def test_an_entry_that_matches_two_nodes_is_refused(self):
        self.ironic.add('id-1', MAC, name='one')
        bmc = {'ipmi_address': '192.0.2.1'}
        self.ironic.add('id-2', name='two', driver_info=bmc)
        found = self.one(entry(), action='failed')
        assert 'is of one' in found.reason
        assert 'is of two' in found.reason
        assert self.ironic.writes == 0

    def test_two_entries_of_one_machine_are_refused(self):
        for more, said in (
            ({'pm_addr': '192.0.2.2', 'mac': [OTHER, MAC]}, 'MAC address'),
            ({'mac': [OTHER]}, 'BMC'),
            ({'name': 'node1'}, 'name'),
        ):
            second = entry(2, **{'pm_addr': '192.0.2.1', **more})
            _, found = self.register(entry(), second, dry_run=True)
            assert found.reason == f'Its {said} is that of node1'
        self.ironic.add('id-1', MAC, OTHER)
        _, found = self.assert_actions('updated failed', entry(1), entry(2))
        assert found.reason == 'Its node in Ironic is that of node1'

    def test_a_bmc_of_several_nodes_identifies_none_of_them(self):
        for number in (1, 2):
            self.ironic.add(
                f'id-{number}',
                f'52:54:00:00:00:0{number}',
                driver_info={'ipmi_address': '192.0.2.1'},
            )
        assert self.one(entry()).uuid == 'id-1'


class InterruptedTest(RegisteringCase):
    def test_an_interrupted_registration_is_finished(self):
        for place in ('192.0.2.1', None):
            given = entry(pm_addr=place, pm_type='fake-hardware')
            self.ironic = fake_ironic.Ironic()
            self.ironic.failing['create_port'] = [KeyboardInterrupt()]
            self.assertRaises(KeyboardInterrupt, self.register, given)
            self.ironic.forget_ports()
            self.one(given, action='updated')
            assert self.ironic.macs('node1') == {MAC}

    def test_a_request_whose_answer_was_lost_is_no_failure(self):
        self.ironic.failing = {
            'create_node': [errors.Unavailable('lost')],
            'create_port': [errors.Unavailable('lost')],
            'nodes': [errors.Unavailable('503')],
            'ports': [errors.Unavailable('503')],
        }
        self.assert_actions('created', entry())
        assert self.ironic.macs('node1') == {MAC}

    def test_a_locked_node_is_retried(self):
        self.register(entry())
        self.ironic.failing['update_node'] = [errors.NodeLocked('locked')] * 3
        self.assert_actions('updated', entry(cpu=9))
        assert self.ironic.row('node1')['properties']['cpus'] == 9

    def test_an_ironic_that_stays_away_is_reported_for_each_node(self):
        self.register(entry())
        self.ironic.failing['update_node'] = [errors.Unavailable('503')] * 99
        found = self.one(entry(cpu=9), action='failed')
        assert found.reason == '503'


class RemovingTest(RegisteringCase):
    def setUp(self):
        super().setUp()
        self.ironic.add('spare', '52:54:00:00:00:99', name='spare')

    def test_a_dry_run_removes_nothing(self):
        self.assert_actions(
            'created removed', entry(), remove=True, dry_run=True
        )
        assert self.ironic.row('spare')['name'] == 'spare'

    def test_a_node_in_use_is_never_removed(self):
        for field, value, said in (
            ('provision_state', 'active', 'it is active'),
            ('provision_state', 'inspect wait', 'it is inspect wait'),
            ('instance_uuid', 'vm-1', 'instance vm-1 is on it'),
        ):
            self.ironic.row('spare')[field] = value
            _, found = self.register(entry(), remove=True)
            assert (found.action, found.reason) == ('kept', said)

    def test_none_is_removed_while_an_entry_is_invalid(self):
        *_, found = self.assert_actions(
            'created failed kept',
            entry(),
            entry(2, pm_type='pxe_x'),
            remove=True,
        )
        assert 'an invalid entry' in found.reason

    def test_errors_of_ironic(self):
        for error, action in (
            (errors.Refused('it is used'), 'failed'),
            (errors.NotFound('gone'), 'removed'),
        ):
            self.ironic.failing['delete_node'] = [error]
            *_, found = self.register(entry(), remove=True)
            assert found.action == action
