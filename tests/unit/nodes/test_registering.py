# SPDX-License-Identifier: Apache-2.0
"""Files of nodes, as people write them, and what becomes of the nodes."""

import json
import pathlib
import re
import uuid

import pytest

from heat_plugins import errors
from heat_plugins.nodes import node
from heat_plugins.nodes import node_reading
from heat_plugins.nodes import registering
from heat_plugins.osc.nodes import node_commands
from tests.unit.nodes import fake_ironic

MAC = '52:54:00:00:00:01'
OTHER = '52:54:00:00:00:02'


def entry(number=1, **more):
    return {
        'name': f'node{number}',
        'pm_type': 'ipmi',
        'pm_addr': f'192.0.2.{number}',
        'pm_user': 'admin',
        'pm_password': 'hunter22',
        'mac': [f'52:54:00:00:00:{number:02}'],
        'cpu': '4',
        'capabilities': 'boot_mode:uefi',
        **more,
    }


@pytest.fixture
def ironic():
    return fake_ironic.Ironic()


def register(ironic, actions, *entries, **options):
    """Register nodes; return the results, or the only one."""
    registrar = registering.Registrar(ironic, wait=0)
    found = registrar.register(node_reading.read([*entries]), **options)
    assert ' '.join(one.action for one in found) == actions
    return found if found[1:] else found[0]


def test_a_node_gets_all_fields_of_the_file(ironic):
    found = register(ironic, 'created', entry(resource_class='gold'))
    row = ironic.row('node1')
    properties = {'cpus': '4', 'capabilities': 'boot_mode:uefi'}
    made = {'uuid': found.uuid, 'driver': 'ipmi', 'resource_class': 'gold'}
    assert (made | {'properties': properties}).items() <= row.items()
    assert row['driver_info']['ipmi_password'] == 'hunter22'
    assert ironic.macs('node1') == {MAC}
    # A password is always written.
    new = entry(pm_password='correct horse')
    assert 'horse' not in repr(register(ironic, 'unchanged', new))
    assert row['driver_info']['ipmi_password'] == 'correct horse'
    ironic.writes = 0
    first, _ = register(
        ironic,
        'updated created',
        entry(cpu=8, mac=[MAC, OTHER]),
        entry(3),
        dry_run=True,
    )
    assert first.changes == (f'port {OTHER}', 'properties/cpus: 4 -> 8')
    assert ironic.writes == 0


def test_other_fields_stay(ironic):
    properties = {'vendor': 'x', 'cpus': 4, 'capabilities': 'cpu_vt:true'}
    ironic.add('id-1', MAC, name='mine', driver='ipmi', properties=properties)
    assert register(ironic, 'updated', entry(name=None)).name == 'mine'
    # Numbers that Ironic has as text are no change.
    assert ironic.row('mine')['properties'] == {
        **properties,
        'capabilities': 'cpu_vt:true,boot_mode:uefi',
    }


def test_drivers(ironic):
    register(ironic, 'created', entry())
    found = register(ironic, 'updated', entry(pm_type='redfish'))
    assert 'driver: ipmi -> redfish' in found.changes
    assert ironic.row('node1')['driver'] == 'redfish'
    # A node keeps a driver that is no longer enabled.
    ironic.enabled.remove('redfish')
    register(ironic, 'unchanged', entry(pm_type='redfish'))
    wrong = entry(2, pm_type='snmp')
    found, _ = register(ironic, 'failed created', wrong, entry(4))
    assert 'No conductor for snmp' in found.reason
    assert 'snmp_password' in found.reason
    assert 'hunter22' not in repr(found)
    register(ironic, 'updated', entry())
    for action, key in ('updated', '00ff00ff'), ('unchanged', '11ee11ee'):
        more = {'ipmi_hex_kg_key': key}
        found = register(ironic, action, entry(driver_info=more))
        assert key[2:] not in repr(found)


def test_a_node_is_known_by_its_mac_address_its_uuid_or_its_bmc():
    mine, other = str(uuid.uuid4()), '52:54:00:99:99:99'
    settings = {'redfish_address': 'https://192.0.2.1'}
    for mac, info, more in (
        (MAC, {}, {'pm_addr': '198.51.100.7'}),
        (other, {}, {'uuid': mine.upper()}),
        (other, settings, {}),
    ):
        ironic = fake_ironic.Ironic()
        ironic.add(mine, mac, driver_info=info)
        assert register(ironic, 'updated', entry(**more)).uuid == mine
        assert MAC in ironic.macs(mine)
    # Another port is another BMC.
    more = {'pm_addr': '192.0.2.1', 'pm_port': '6230'}
    assert register(ironic, 'created', entry(2, **more)).uuid != mine
    new = str(uuid.uuid4())
    assert register(ironic, 'created', entry(3, uuid=new)).uuid == new


def test_an_entry_of_two_nodes_and_two_entries_of_one_are_refused(ironic):
    for more, said in (
        ({'pm_addr': '192.0.2.2', 'mac': [OTHER, MAC]}, 'MAC address'),
        ({'mac': [OTHER]}, 'BMC'),
        ({'name': 'node1'}, 'name'),
    ):
        second = entry(2, **{'pm_addr': '192.0.2.1', **more})
        both = entry(), second
        _, found = register(ironic, 'created failed', *both, dry_run=True)
        assert found.reason == f'Its {said} is that of node1'
    ironic.add('id-1', MAC, OTHER, name='one')
    _, found = register(ironic, 'updated failed', entry(1), entry(2))
    assert found.reason == 'Its node in Ironic is that of node1'
    ironic.add('id-2', name='two', driver_info={'ipmi_address': '192.0.2.7'})
    ironic.writes = 0
    found = register(ironic, 'failed', entry(pm_addr='192.0.2.7'))
    assert 'is of node1' in found.reason
    assert 'is of two' in found.reason
    assert ironic.writes == 0


def test_a_bmc_of_several_nodes_identifies_none_of_them(ironic):
    for number in (1, 2):
        ironic.add(
            f'id-{number}',
            f'52:54:00:00:00:0{number}',
            driver_info={'ipmi_address': '192.0.2.1'},
        )
    assert register(ironic, 'updated', entry()).uuid == 'id-1'


@pytest.mark.parametrize('place', ['192.0.2.1', None])
def test_an_interrupted_registration_is_finished(ironic, place):
    given = entry(pm_addr=place, pm_type='fake-hardware')
    ironic.failing['create_port'] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        register(ironic, '', given)
    ironic.forget_ports()
    register(ironic, 'updated', given)
    assert ironic.macs('node1') == {MAC}


def test_what_passes_is_retried(ironic):
    # Their answers get lost.
    for method in ('create_node', 'create_port', 'nodes', 'ports'):
        ironic.failing[method] = [errors.Unavailable('lost')]
    register(ironic, 'created', entry())
    assert ironic.macs('node1') == {MAC}
    ironic.failing['update_node'] = [errors.NodeLocked('locked')] * 3
    register(ironic, 'updated', entry(cpu=9))
    assert ironic.row('node1')['properties']['cpus'] == 9
    ironic.failing['update_node'] = [errors.Unavailable('503')] * 99
    assert register(ironic, 'failed', entry(cpu=7)).reason == '503'


def test_a_node_is_removed_on_request_unless_it_is_in_use(ironic):
    ironic.add('spare', '52:54:00:00:00:99', name='spare')
    row = ironic.row('spare')
    options = {'remove': True, 'dry_run': True}
    register(ironic, 'created removed', entry(), **options)
    assert ironic.row('spare') == row
    *_, found = register(
        ironic,
        'created failed kept',
        entry(),
        entry(2, pm_type='pxe_x'),
        remove=True,
    )
    assert 'an invalid entry' in found.reason
    for state, instance, said in (
        ('active', None, 'it is active'),
        ('inspect wait', None, 'it is inspect wait'),
        ('manageable', 'vm-1', 'instance vm-1 is on it'),
    ):
        row.update(provision_state=state, instance_uuid=instance)
        _, found = register(ironic, 'unchanged kept', entry(), remove=True)
        assert found.reason == said
    row['instance_uuid'] = None
    for error, action in (
        ([errors.Refused('it is used')], 'failed'),
        ([errors.NotFound('gone')], 'removed'),
        ([], 'removed'),
    ):
        ironic.failing['delete_node'] = error
        register(ironic, f'unchanged {action}', entry(), remove=True)
    assert 'spare' not in ironic.named()


PAGE = (
    pathlib.Path(__file__).parents[3].joinpath('doc/source/nodes.rst')
).read_text()


def one(**more):
    (found,) = node_reading.read([entry(**more)])
    return found


@pytest.mark.parametrize(
    ('driver', 'prefix', 'port'),
    [
        *((name, name, f'{name}_port') for name in ('ipmi', 'irmc', 'snmp')),
        *((n, 'redfish', 'redfish_system_id') for n in ('redfish', 'idrac')),
        ('ilo', 'ilo', 'client_port'),
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
    assert node.is_secret(f'{prefix}_password')
    assert 'hunter22' not in repr(found)
    assert f'``{driver}``' in PAGE


def test_fields_are_translated_and_unknown_ones_are_warnings():
    device = {'size': '100', 'name': '/dev/sda'}
    more = {'resource_class': 'gold', 'deploy_interface': 'direct'}
    sizes = {'cpu': '4', 'memory': '8192', 'disk': 40, 'arch': 'x86_64'}
    found = one(
        **{'pm_type': None, 'driver': 'my-kind', 'kernel_id': 'k'},
        driver_info={'my_address': 'x'},
        root_device=device,
        _comment='rack 3',
        **sizes,
        **more,
    )
    names = 'cpus', 'memory_mb', 'local_gb', 'cpu_arch'
    sizes = dict(zip(names, sizes.values(), strict=True))
    assert found.properties == {**sizes, 'root_device': device}
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


def test_a_bmc_has_one_place_in_all_spellings():
    system = {'redfish_system_id': '/1'}
    for settings, place in (
        ({'ipmi_address': '192.0.2.1', 'ipmi_port': '623'}, ('', '')),
        ({'redfish_address': 'https://192.0.2.1:443/'}, ('', '')),
        ({'redfish_address': '192.0.2.1:8000', **system}, ('8000', '/1')),
    ):
        assert node_reading.place(settings) == ('192.0.2.1', *place)
    for address in ('2001:DB8::1', 'https://[2001:db8::1]'):
        found = node_reading.place({'redfish_address': address})
        assert found == ('2001:db8::1', '', '')
    assert node_reading.place({'ipmi_port': 1, 'x': 'y'}) is None
