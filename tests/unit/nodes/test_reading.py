# SPDX-License-Identifier: Apache-2.0
"""Files of nodes, as people and programs write them."""

import json
import pathlib
import re

import testtools

from heat_plugins import errors
from heat_plugins.nodes import node
from heat_plugins.nodes import node_reading
from heat_plugins.osc.nodes import node_commands

MAC = '52:54:00:00:00:01'

PAGE = pathlib.Path(__file__).parents[3] / 'doc/source/nodes.rst'


def entry(**more):
    found = {
        'pm_type': 'ipmi',
        'pm_addr': '192.0.2.1',
        'pm_user': 'admin',
        'pm_password': 'hunter22',
        'mac': [MAC],
        **more,
    }
    return {name: value for name, value in found.items() if value is not None}


def one(**more):
    (found,) = node_reading.read([entry(**more)])
    return found


class EntryTest(testtools.TestCase):
    def good(self, **more):
        found = one(**more)
        self.assertIsInstance(found, node.Wanted, found)
        return found

    def flaw(self, **more):
        found = one(**more)
        self.assertIsInstance(found, node.Flaw, found)
        return found.reason

    def test_settings_are_named_as_the_driver_names_them(self):
        found = self.good(pm_port='6230')
        self.assertEqual('ipmi', found.driver)
        self.assertEqual(
            {
                'ipmi_address': '192.0.2.1',
                'ipmi_username': 'admin',
                'ipmi_password': 'hunter22',
                'ipmi_port': '6230',
            },
            found.driver_info,
        )

    def test_a_driver_of_old_is_told_with_those_there_are(self):
        for old in ('pxe_ipmitool', 'pxe_ssh', 'iscsi_ilo', 'fake', 'drac'):
            reason = self.flaw(pm_type=old)
            self.assertIn(f'no longer has driver {old}', reason)
            self.assertIn('ipmi, redfish', reason)

    def test_each_hardware_type_has_its_own_settings(self):
        for driver, wanted in (
            ('redfish', {'redfish_address', 'redfish_system_id'}),
            ('idrac', {'redfish_address', 'redfish_system_id'}),
            ('ilo', {'ilo_address', 'client_port'}),
            ('irmc', {'irmc_address', 'irmc_port'}),
            ('snmp', {'snmp_address', 'snmp_port'}),
            ('fake-hardware', {'fake_address', 'fake_port'}),
        ):
            found = self.good(
                pm_type=driver,
                pm_user=None,
                pm_password=None,
                pm_system_id='/1',
                pm_port='99',
            )
            self.assertEqual(wanted, found.driver_info.keys())

    def test_any_driver_goes_with_settings_as_ironic_has_them(self):
        found = self.good(
            pm_type=None, driver='my-kind', driver_info={'my_address': 'x'}
        )
        self.assertEqual('my-kind', found.driver)
        self.assertEqual({'my_address': 'x'}, found.driver_info)

    def test_properties_are_handed_on_as_they_are(self):
        found = self.good(cpu='4', memory='8192', disk=40, arch='x86_64')
        self.assertEqual(
            {
                'cpus': '4',
                'memory_mb': '8192',
                'local_gb': 40,
                'cpu_arch': 'x86_64',
            },
            found.properties,
        )

    def test_mac_addresses_come_in_many_spellings(self):
        for spelling in (
            '52:54:00:AA:BB:CC',
            '52-54-00-aa-bb-cc',
        ):
            found = self.good(mac=[spelling])
            self.assertEqual(('52:54:00:aa:bb:cc',), found.macs)

    def test_one_mac_address_needs_no_list(self):
        self.assertEqual((MAC,), self.good(mac=MAC).macs)

    def test_ports_may_say_more_than_their_address(self):
        found = self.good(
            mac=None,
            ports=[{'address': MAC.upper(), 'physical_network': 'ctlplane'}],
        )
        self.assertEqual(
            ({'address': MAC, 'physical_network': 'ctlplane'},), found.ports
        )

    def test_what_is_no_mac_address_is_told(self):
        for given in ('52:54', 52, {'colour': 'red'}):
            self.assertIn('is not a MAC address', self.flaw(mac=[given]))
            self.assertIn('is not a MAC address', self.flaw(ports=[given]))

    def test_both_forms_of_capabilities_are_read(self):
        wanted = {'boot_mode': 'uefi', 'profile': 'compute'}
        for given in (wanted, 'boot_mode:uefi, profile:compute,'):
            found = self.good(capabilities=given)
            self.assertEqual(wanted, found.capabilities)
        found = self.good(capabilities={'secure_boot': True})
        self.assertEqual({'secure_boot': 'true'}, found.capabilities)

    def test_other_capabilities_are_told(self):
        self.assertIn('name:value', self.flaw(capabilities='uefi'))
        self.assertIn('must be a map', self.flaw(capabilities=['a:b']))

    def test_hints_for_the_root_device_are_kept(self):
        found = self.good(root_device={'size': '100', 'name': '/dev/sda'})
        self.assertEqual(
            {'size': '100', 'name': '/dev/sda'},
            found.properties['root_device'],
        )

    def test_fields_of_ironics_own_are_handed_on(self):
        found = self.good(
            resource_class='gold',
            deploy_interface='direct',
            kernel_id='k',
            ipmi_terminal_port=8023,
        )
        self.assertEqual(
            {'resource_class': 'gold', 'deploy_interface': 'direct'},
            found.more,
        )
        self.assertEqual('k', found.driver_info['deploy_kernel'])
        self.assertEqual(
            ('the key ipmi_terminal_port is unknown',), found.warnings
        )

    def test_what_means_nothing_is_a_warning(self):
        found = self.good(_comment='rack 3', colour='red')
        self.assertEqual(('the key colour is unknown',), found.warnings)

    def test_a_node_that_nothing_tells_from_others_is_refused(self):
        self.assertIn(
            'uuid', self.flaw(pm_type='fake-hardware', pm_addr=None, mac=None)
        )

    def test_a_password_is_in_no_representation(self):
        found = self.good()
        self.assertNotIn('hunter22', repr(found))
        self.assertEqual({'hunter22'}, found.secrets)


class FileTest(testtools.TestCase):
    def test_an_entry_that_is_wrong_spoils_only_itself(self):
        found = node_reading.read({'nodes': ['x', entry(name='good'), {}]})
        self.assertEqual(
            ['number 1', 'good', 'number 3'], [each.label for each in found]
        )
        self.assertEqual(
            [node.Flaw, node.Wanted, node.Flaw], [type(each) for each in found]
        )

    def test_several_systems_may_share_an_address(self):
        found = node_reading.read(
            [
                entry(pm_type='redfish', pm_system_id=f'/{number}', mac=None)
                for number in range(2)
            ]
        )
        self.assertEqual([node.Wanted] * 2, [type(each) for each in found])

    def test_what_is_no_list_is_refused(self):
        for found in (None, 'x', {'node': []}, {'nodes': {}}):
            self.assertRaises(errors.Invalid, node_reading.read, found)


class LoadTest(testtools.TestCase):
    def test_json_and_yaml_mean_the_same(self):
        wanted = {'nodes': [entry()]}
        self.assertEqual(wanted, node_commands.load_nodes(json.dumps(wanted)))
        text = f"""
            nodes:
              - pm_type: ipmi
                pm_addr: 192.0.2.1
                pm_user: admin
                pm_password: hunter22
                mac: ['{MAC}']
        """
        self.assertEqual(wanted, node_commands.load_nodes(text))

    def test_what_yaml_makes_a_number_of_is_refused(self):
        for given in (
            '{pm_type: ipmi, mac: 52:54:00:12:34:56}',
            '{pm_type: ipmi, pm_password: 0123}',
        ):
            [found] = node_reading.read([node_commands.load_nodes(given)])
            self.assertIn('into quotes', found.reason)
            self.assertNotIn('83', found.reason)

    def test_what_is_neither_is_refused_and_not_quoted(self):
        error = self.assertRaises(
            errors.Invalid,
            node_commands.load_nodes,
            'pm_password: hunter22\n\t- x: [',
        )
        self.assertNotIn('hunter22', str(error))
        self.assertIsNone(error.__cause__)


class HostileTest(testtools.TestCase):
    def test_a_file_that_stands_for_too_much_is_refused(self):
        lines = ['a0: &a0 {k: 1}']
        for number in range(1, 12):
            former = ','.join([f'*a{number - 1}'] * 9)
            lines.append(f'a{number}: &a{number} {{<<: [{former}]}}')
        for text, reason in (
            ('\n'.join(lines), 'has aliases that stand for'),
            ('[' * 200, 'is nested more than 100 levels'),
            ('pm_password: *hunter22', 'found undefined alias'),
            ('a: !!int ""', 'holds an unreadable number'),
            (' ' * (2**24 + 1), 'more than 16777216 characters'),
        ):
            error = self.assertRaises(
                errors.Invalid, node_commands.load_nodes, text
            )
            self.assertIn(reason, str(error))
            self.assertNotIn('hunter22', str(error))


class DocumentedTest(testtools.TestCase):
    def test_the_example_is_a_node_of_which_all_is_understood(self):
        text = PAGE.read_text()
        (example,) = re.findall(r'code-block:: yaml\n\n((?: {4}.*\n)+)', text)
        (found,) = node_reading.read(node_commands.load_nodes(example))
        self.assertIsInstance(found, node.Wanted, found)
        self.assertEqual((), found.warnings)
        self.assertEqual(16, found.properties['cpus'])
        self.assertEqual(
            ('192.0.2.7', '', '/redfish/v1/Systems/1'), found.place
        )

    def test_every_driver_is_named(self):
        text = PAGE.read_text()
        for name in node_reading.DRIVERS:
            self.assertIn(f'``{name}``', text)


class PlaceTest(testtools.TestCase):
    def test_a_bmc_has_one_place_in_all_spellings(self):
        for settings in (
            {'ipmi_address': '192.0.2.1'},
            {'ipmi_address': '192.0.2.1', 'ipmi_port': '623'},
            {'redfish_address': 'https://192.0.2.1'},
            {'redfish_address': 'https://192.0.2.1:443/'},
        ):
            self.assertEqual(
                ('192.0.2.1', '', ''), node_reading.place(settings), settings
            )

    def test_ports_and_systems_part_places(self):
        self.assertEqual(
            ('bmc', '8000', '/1'),
            node_reading.place(
                {'redfish_address': 'BMC:8000', 'redfish_system_id': '/1'}
            ),
        )

    def test_an_address_of_ip_6_may_have_brackets(self):
        for address in ('2001:DB8::1', 'https://[2001:db8::1]'):
            self.assertEqual(
                ('2001:db8::1', '', ''),
                node_reading.place({'redfish_address': address}),
            )

    def test_no_address_is_no_place(self):
        self.assertIsNone(node_reading.place({'ipmi_port': 1, 'x': 'y'}))
