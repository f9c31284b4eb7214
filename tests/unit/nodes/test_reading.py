# SPDX-License-Identifier: Apache-2.0
"""Files of nodes, as people and programs write them."""

import json
import pathlib
import re

import pytest

from heat_plugins import errors
from heat_plugins.nodes import node
from heat_plugins.nodes import node_reading
from heat_plugins.osc.nodes import node_commands

MAC = '52:54:00:00:00:01'

PAGE = (
    pathlib.Path(__file__).parents[3].joinpath('doc/source/nodes.rst')
).read_text()


def one(**more):
    entry = {
        'pm_type': 'ipmi',
        'pm_addr': '192.0.2.1',
        'pm_user': 'admin',
        'pm_password': 'hunter22',
        'mac': [MAC],
        **more,
    }
    (found,) = node_reading.read([entry])
    return found


@pytest.mark.parametrize(
    ('driver', 'prefix', 'port'),
    [
        ('ipmi', 'ipmi', 'ipmi_port'),
        ('redfish', 'redfish', 'redfish_system_id'),
        ('idrac', 'redfish', 'redfish_system_id'),
        ('ilo', 'ilo', 'client_port'),
        ('irmc', 'irmc', 'irmc_port'),
        ('snmp', 'snmp', 'snmp_port'),
        ('fake-hardware', 'fake', 'fake_port'),
    ],
)
def test_each_hardware_type_has_its_own_settings(driver, prefix, port):
    found = one(pm_type=driver, pm_system_id='/1', pm_port='/1')
    assert found.driver == driver
    assert found.driver_info == {
        f'{prefix}_address': '192.0.2.1',
        f'{prefix}_username': 'admin',
        f'{prefix}_password': 'hunter22',
        port: '/1',
    }
    assert found.secrets == {'hunter22'}
    assert 'hunter22' not in repr(found)
    assert f'``{driver}``' in PAGE


def test_fields_are_translated_and_unknown_ones_are_warnings():
    device = {'size': '100', 'name': '/dev/sda'}
    more = {'resource_class': 'gold', 'deploy_interface': 'direct'}
    found = one(
        pm_type=None,
        driver='my-kind',
        driver_info={'my_address': 'x'},
        cpu='4',
        memory='8192',
        disk=40,
        arch='x86_64',
        root_device=device,
        kernel_id='k',
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
    assert found.driver == 'my-kind'
    assert found.driver_info == {'my_address': 'x', 'deploy_kernel': 'k'}
    assert found.more == more
    unknown = ('pm_addr', 'pm_user', 'pm_password')
    assert found.warnings == tuple(f'the key {n} is unknown' for n in unknown)


def test_mac_addresses_and_capabilities_have_several_spellings():
    for given in (
        {'mac': [MAC.upper()]},
        {'mac': MAC.replace(':', '-')},
        {'mac': None, 'ports': [{'address': MAC.upper()}]},
    ):
        assert one(**given).ports == ({'address': MAC},)
    card = {'address': MAC, 'physical_network': 'ctlplane'}
    assert one(ports=[card]).ports == (card,)
    wanted = {'boot_mode': 'uefi', 'secure_boot': 'true'}
    for given in (
        {'boot_mode': 'uefi', 'secure_boot': True},
        'boot_mode:uefi, secure_boot:true,',
    ):
        assert one(capabilities=given).capabilities == wanted


def test_an_invalid_entry_is_a_flaw_and_does_not_hold_up_the_others():
    for given, reason in (
        ({'capabilities': 'uefi'}, 'name:value'),
        ({'capabilities': ['a:b']}, 'must be a map'),
        ({'mac': ['52:54']}, 'is not a MAC address'),
        ({'ports': [{'colour': 'red'}]}, 'is not a MAC address'),
        ({'properties': 1}, 'properties must be a map'),
        # YAML reads these as numbers.
        ({'mac': 11222333}, 'into quotes'),
        ({'pm_password': 83}, 'pm_password must be a text; put it into'),
        ({'pm_addr': None, 'mac': None}, 'uuid'),
        *(
            ({'pm_type': old}, f'no longer has driver {old}; use one of ipmi')
            for old in ('pxe_ipmitool', 'iscsi_ilo', 'fake', 'drac')
        ),
    ):
        found = one(**given)
        assert isinstance(found, node.Flaw), given
        assert reason in found.reason
        assert '83' not in found.reason
    uuid = {'uuid': 'A', 'pm_type': 'ipmi'}
    found = node_reading.read({'nodes': ['x', uuid, {}]})
    assert [each.label for each in found] == ['number 1', 'A', 'number 3']
    kinds = [node.Flaw, node.Wanted, node.Flaw]
    assert [type(each) for each in found] == kinds
    for content in (None, 'x', {'node': []}, {'nodes': {}}, []):
        with pytest.raises(errors.Invalid):
            node_reading.read(content)


def test_json_and_yaml_mean_the_same_and_no_message_quotes_a_file():
    wanted = {'nodes': [{'pm_type': 'ipmi', 'mac': [MAC]}]}
    text = f'nodes:\n  - pm_type: ipmi\n    mac: ["{MAC}"]\n'
    # JSON may have tabs.
    for given in (json.dumps(wanted, indent='\t'), text):
        assert node_commands.load_nodes(given) == wanted
    for text, reason in (
        ('pm_password: hunter22\n\t- x: [', 'not JSON'),
        ('pm_password: *hunter22', 'found undefined alias'),
        ('a: !!int ""', 'holds an unreadable number'),
    ):
        with pytest.raises(errors.Invalid, match=reason) as caught:
            node_commands.load_nodes(text)
        assert 'hunter22' not in str(caught.value)
        assert caught.value.__cause__ is None


def test_the_documented_example_is_a_node_of_which_all_is_understood():
    (example,) = re.findall(r'code-block:: yaml\n\n((?: {4}.*\n)+)', PAGE)
    (found,) = node_reading.read(node_commands.load_nodes(example))
    assert isinstance(found, node.Wanted), found
    assert found.warnings == ()
    assert found.properties['cpus'] == 16
    assert found.place == ('192.0.2.7', '', '/redfish/v1/Systems/1')


@pytest.mark.parametrize(
    ('settings', 'place'),
    [
        ({'ipmi_address': '192.0.2.1', 'ipmi_port': '623'}, ('', '')),
        ({'redfish_address': 'https://192.0.2.1:443/'}, ('', '')),
        (
            {'redfish_address': '192.0.2.1:8000', 'redfish_system_id': '/1'},
            ('8000', '/1'),
        ),
    ],
)
def test_a_bmc_has_one_place_in_all_spellings(settings, place):
    assert node_reading.place(settings) == ('192.0.2.1', *place)
    for address in ('2001:DB8::1', 'https://[2001:db8::1]'):
        found = node_reading.place({'redfish_address': address})
        assert found == ('2001:db8::1', '', '')
    assert node_reading.place({'ipmi_port': 1, 'x': 'y'}) is None
