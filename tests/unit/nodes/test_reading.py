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


def good(**more):
    found = one(**more)
    assert isinstance(found, node.Wanted), found
    return found


def flaw(**more):
    found = one(**more)
    assert isinstance(found, node.Flaw), found
    return found.reason


class EntryTest(testtools.TestCase):
    def test_each_hardware_type_has_its_own_settings(self):
        for driver, prefix, port in (
            ('ipmi', 'ipmi', 'ipmi_port'),
            ('redfish', 'redfish', 'redfish_system_id'),
            ('idrac', 'redfish', 'redfish_system_id'),
            ('ilo', 'ilo', 'client_port'),
            ('irmc', 'irmc', 'irmc_port'),
            ('snmp', 'snmp', 'snmp_port'),
            ('fake-hardware', 'fake', 'fake_port'),
        ):
            found = good(pm_type=driver, pm_system_id='/1', pm_port='/1')
            self.assertEqual(driver, found.driver)
            self.assertEqual(
                {
                    f'{prefix}_address': '192.0.2.1',
                    f'{prefix}_username': 'admin',
                    f'{prefix}_password': 'hunter22',
                    port: '/1',
                },
                found.driver_info,
            )
            self.assertIn(f'``{driver}``', PAGE.read_text())

    def test_an_old_driver_is_refused_with_the_present_ones(self):
        for old in ('pxe_ipmitool', 'pxe_ssh', 'iscsi_ilo', 'fake', 'drac'):
            reason = flaw(pm_type=old)
            self.assertIn(f'no longer has driver {old}', reason)
            self.assertIn('ipmi, redfish', reason)

    def test_any_other_driver_has_settings_as_in_ironic(self):
        settings = {'my_address': 'x'}
        found = good(pm_type=None, driver='my-kind', driver_info=settings)
        self.assertEqual('my-kind', found.driver)
        self.assertEqual(settings, found.driver_info)

    def test_fields_are_translated_and_unknown_ones_are_warnings(self):
        device = {'size': '100', 'name': '/dev/sda'}
        more = {'resource_class': 'gold', 'deploy_interface': 'direct'}
        found = good(
            cpu='4',
            memory='8192',
            disk=40,
            arch='x86_64',
            root_device=device,
            kernel_id='k',
            ipmi_terminal_port=8023,
            _comment='rack 3',
            **more,
        )
        self.assertEqual(
            {
                'cpus': '4',
                'memory_mb': '8192',
                'local_gb': 40,
                'cpu_arch': 'x86_64',
                'root_device': device,
            },
            found.properties,
        )
        self.assertEqual(more, found.more)
        self.assertEqual('k', found.driver_info['deploy_kernel'])
        self.assertEqual(
            ('the key ipmi_terminal_port is unknown',), found.warnings
        )

    def test_mac_addresses_come_in_many_spellings(self):
        for given in (
            {'mac': [MAC.upper()]},
            {'mac': [MAC.replace(':', '-')]},
            {'mac': MAC},
            {'mac': None, 'ports': [{'address': MAC.upper()}]},
        ):
            self.assertEqual(({'address': MAC},), good(**given).ports)
        more = {'address': MAC, 'physical_network': 'ctlplane'}
        self.assertEqual((more,), good(ports=[more]).ports)

    def test_capabilities_have_two_forms(self):
        wanted = {'boot_mode': 'uefi', 'profile': 'compute'}
        for given in (wanted, 'boot_mode:uefi, profile:compute,'):
            self.assertEqual(wanted, good(capabilities=given).capabilities)
        found = good(capabilities={'secure_boot': True})
        self.assertEqual({'secure_boot': 'true'}, found.capabilities)

    def test_a_wrong_field_is_a_flaw(self):
        for given, reason in (
            ({'capabilities': 'uefi'}, 'name:value'),
            ({'capabilities': ['a:b']}, 'must be a map'),
            *(
                ({field: [value]}, 'is not a MAC address')
                for field in ('mac', 'ports')
                for value in ('52:54', 52, {'colour': 'red'})
            ),
            (
                {'pm_type': 'fake-hardware', 'pm_addr': None, 'mac': None},
                'uuid',
            ),
        ):
            self.assertIn(reason, flaw(**given))

    def test_a_password_is_in_no_representation(self):
        found = good()
        self.assertNotIn('hunter22', repr(found))
        self.assertEqual({'hunter22'}, found.secrets)


class FileTest(testtools.TestCase):
    def test_an_invalid_entry_does_not_hold_up_the_others(self):
        found = node_reading.read({'nodes': ['x', entry(name='good'), {}]})
        self.assertEqual(
            ['number 1', 'good', 'number 3'], [each.label for each in found]
        )
        self.assertEqual(
            [node.Flaw, node.Wanted, node.Flaw], [type(each) for each in found]
        )

    def test_a_file_without_a_list_is_refused(self):
        for found in (None, 'x', {'node': []}, {'nodes': {}}, []):
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

    def test_a_number_for_a_text_is_refused(self):
        for given in (
            '{pm_type: ipmi, mac: 52:54:00:12:34:56}',
            '{pm_type: ipmi, pm_password: 0123}',
        ):
            [found] = node_reading.read([node_commands.load_nodes(given)])
            self.assertIn('into quotes', found.reason)
            self.assertNotIn('83', found.reason)

    def test_an_unreadable_file_is_refused_and_not_quoted(self):
        for text, reason in (
            ('pm_password: hunter22\n\t- x: [', 'not JSON'),
            ('pm_password: *hunter22', 'found undefined alias'),
            ('a: !!int ""', 'holds an unreadable number'),
        ):
            error = self.assertRaises(
                errors.Invalid, node_commands.load_nodes, text
            )
            self.assertIn(reason, str(error))
            self.assertNotIn('hunter22', str(error))
            self.assertIsNone(error.__cause__)


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


class PlaceTest(testtools.TestCase):
    def test_a_bmc_has_one_place_in_all_spellings(self):
        for settings, place in (
            ({'ipmi_address': '192.0.2.1'}, ('192.0.2.1', '', '')),
            (
                {'ipmi_address': '192.0.2.1', 'ipmi_port': '623'},
                ('192.0.2.1', '', ''),
            ),
            ({'redfish_address': 'https://192.0.2.1'}, ('192.0.2.1', '', '')),
            (
                {'redfish_address': 'https://192.0.2.1:443/'},
                ('192.0.2.1', '', ''),
            ),
            (
                {'redfish_address': 'BMC:8000', 'redfish_system_id': '/1'},
                ('bmc', '8000', '/1'),
            ),
            ({'redfish_address': '2001:DB8::1'}, ('2001:db8::1', '', '')),
            (
                {'redfish_address': 'https://[2001:db8::1]'},
                ('2001:db8::1', '', ''),
            ),
            ({'ipmi_port': 1, 'x': 'y'}, None),
        ):
            self.assertEqual(place, node_reading.place(settings), settings)
