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
            assert found.driver == driver
            assert found.driver_info == {
                f'{prefix}_address': '192.0.2.1',
                f'{prefix}_username': 'admin',
                f'{prefix}_password': 'hunter22',
                port: '/1',
            }
            assert f'``{driver}``' in PAGE.read_text()

    def test_an_old_driver_is_refused_with_the_present_ones(self):
        for old in ('pxe_ipmitool', 'pxe_ssh', 'iscsi_ilo', 'fake', 'drac'):
            reason = flaw(pm_type=old)
            assert f'no longer has driver {old}' in reason
            assert 'ipmi, redfish' in reason

    def test_any_other_driver_has_settings_as_in_ironic(self):
        settings = {'my_address': 'x'}
        found = good(pm_type=None, driver='my-kind', driver_info=settings)
        assert found.driver == 'my-kind'
        assert found.driver_info == settings

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
        assert found.properties == {
            'cpus': '4',
            'memory_mb': '8192',
            'local_gb': 40,
            'cpu_arch': 'x86_64',
            'root_device': device,
        }
        assert found.more == more
        assert found.driver_info['deploy_kernel'] == 'k'
        assert found.warnings == ('the key ipmi_terminal_port is unknown',)

    def test_mac_addresses_come_in_many_spellings(self):
        for given in (
            {'mac': [MAC.upper()]},
            {'mac': [MAC.replace(':', '-')]},
            {'mac': MAC},
            {'mac': None, 'ports': [{'address': MAC.upper()}]},
        ):
            assert good(**given).ports == ({'address': MAC},)
        more = {'address': MAC, 'physical_network': 'ctlplane'}
        assert good(ports=[more]).ports == (more,)

    def test_capabilities_have_two_forms(self):
        wanted = {'boot_mode': 'uefi', 'profile': 'compute'}
        for given in (wanted, 'boot_mode:uefi, profile:compute,'):
            assert good(capabilities=given).capabilities == wanted
        found = good(capabilities={'secure_boot': True})
        assert found.capabilities == {'secure_boot': 'true'}

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
            assert reason in flaw(**given)

    def test_a_password_is_in_no_representation(self):
        found = good()
        assert 'hunter22' not in repr(found)
        assert found.secrets == {'hunter22'}


class FileTest(testtools.TestCase):
    def test_an_invalid_entry_does_not_hold_up_the_others(self):
        found = node_reading.read({'nodes': ['x', entry(name='good'), {}]})
        assert [each.label for each in found] == [
            'number 1',
            'good',
            'number 3',
        ]
        assert [type(each) for each in found] == [
            node.Flaw,
            node.Wanted,
            node.Flaw,
        ]

    def test_a_file_without_a_list_is_refused(self):
        for found in (None, 'x', {'node': []}, {'nodes': {}}, []):
            self.assertRaises(errors.Invalid, node_reading.read, found)


class LoadTest(testtools.TestCase):
    def test_json_and_yaml_mean_the_same(self):
        wanted = {'nodes': [entry()]}
        assert node_commands.load_nodes(json.dumps(wanted)) == wanted
        text = f"""
            nodes:
              - pm_type: ipmi
                pm_addr: 192.0.2.1
                pm_user: admin
                pm_password: hunter22
                mac: ['{MAC}']
        """
        assert node_commands.load_nodes(text) == wanted

    def test_a_number_for_a_text_is_refused(self):
        for given in (
            '{pm_type: ipmi, mac: 52:54:00:12:34:56}',
            '{pm_type: ipmi, pm_password: 0123}',
        ):
            [found] = node_reading.read([node_commands.load_nodes(given)])
            assert 'into quotes' in found.reason
            assert '83' not in found.reason

    def test_an_unreadable_file_is_refused_and_not_quoted(self):
        for text, reason in (
            ('pm_password: hunter22\n\t- x: [', 'not JSON'),
            ('pm_password: *hunter22', 'found undefined alias'),
            ('a: !!int ""', 'holds an unreadable number'),
        ):
            error = self.assertRaises(
                errors.Invalid, node_commands.load_nodes, text
            )
            assert reason in str(error)
            assert 'hunter22' not in str(error)
            assert error.__cause__ is None


class DocumentedTest(testtools.TestCase):
    def test_the_example_is_a_node_of_which_all_is_understood(self):
        text = PAGE.read_text()
        (example,) = re.findall(r'code-block:: yaml\n\n((?: {4}.*\n)+)', text)
        (found,) = node_reading.read(node_commands.load_nodes(example))
        assert isinstance(found, node.Wanted), found
        assert found.warnings == ()
        assert found.properties['cpus'] == 16
        assert found.place == ('192.0.2.7', '', '/redfish/v1/Systems/1')


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
            assert node_reading.place(settings) == place, settings
