# SPDX-License-Identifier: Apache-2.0
"""Ironic in memory, with its rules of what may be done when."""

import copy
import threading

from heat_plugins import errors
from heat_plugins.nodes import moves
from heat_plugins.nodes import node

_BEGINS = {
    'manage': 'verifying',
    'inspect': 'inspecting',
    'provide': 'cleaning',
}
_ENDS = {
    'verifying': ('manageable', 'enroll'),
    'inspecting': ('manageable', 'inspect failed'),
    'inspect wait': ('manageable', 'inspect failed'),
    'cleaning': ('available', 'clean failed'),
}


INVENTORY = {
    'inventory': {
        'cpu': {'count': 4, 'architecture': 'x86_64'},
        'memory': {'physical_mb': 8192},
        'disks': [{'name': '/dev/sda', 'size': 40 << 30}, {'size': None}],
        'interfaces': [{'mac_address': '52:54:00:00:00:01'}, {'name': 'lo'}],
        'system_vendor': {'product_name': 'KVM'},
    },
    'plugin_data': {},
}


class Ironic:
    """Nodes, as `node.Baremetal` has them.

    :ivar enabled: the hardware types that are enabled.
    :ivar failing: method name to errors that it raises, one for each call.
    :ivar sent: (name, verb) of each change of state.
    :ivar writes: how often anything was changed.
    """

    def __init__(self):
        self.enabled = {'fake-hardware', 'ipmi', 'redfish'}
        self.failing = {}
        self.sent = []
        self.writes = 0
        self.inventories = {}
        self._rows = {}
        self._ports = {}
        self._lock = threading.Lock()

    # For tests

    def add(self, uuid, *macs, **fields):
        self._rows[uuid] = {
            'uuid': uuid,
            'name': None,
            'driver': 'fake-hardware',
            'driver_info': {},
            'properties': {},
            'provision_state': 'enroll',
            'last_error': None,
            'instance_uuid': None,
            **fields,
        }
        self._ports.update(dict.fromkeys(macs, uuid))

    def populate(self, **states):
        """Let it have nodes, by their names, each in a state."""
        for name, state in states.items():
            self.add(f'id-{name}', name=name, provision_state=state)

    def named(self):
        rows = self._rows.values()
        return {row['name']: row['provision_state'] for row in rows}

    def row(self, name):
        named = {row['name']: row for row in self._rows.values()}
        return (named | self._rows)[name]

    def macs(self, name):
        uuid = self.row(name)['uuid']
        return {mac for mac, owner in self._ports.items() if owner == uuid}

    def forget_ports(self):
        self._ports.clear()

    def finish(self, name, error=None):
        row = self.row(name)
        good, bad = _ENDS[row['provision_state']]
        row['provision_state'] = bad if error else good
        row['last_error'] = error

    def finish_all(self, wrong):
        """Let all that happens to nodes end; some fail, by their names."""
        for name, state in self.named().items():
            if state in _BEGINS.values():
                self.finish(name, wrong.get(name))
                self.inventories[self.row(name)['uuid']] = INVENTORY

    # What nodes ask for

    def nodes(self):
        self._fail('nodes')
        return [self._node(row) for row in self._rows.values()]

    states = nodes

    def ports(self):
        self._fail('ports')
        return dict(self._ports)

    def create_node(self, fields):
        with self._lock:
            if fields['driver'] not in self.enabled:
                raise errors.Refused(
                    f'No conductor for {fields["driver"]}: {fields!r}'
                )
            taken = {*self._rows, *self.named()} - {None}
            if fields['uuid'] in taken or fields.get('name') in taken:
                raise errors.Conflict('A node like it already exists')
            self.writes += 1
            self.add(**copy.deepcopy(dict(fields)))
        self._fail('create_node')

    def update_node(self, uuid, patch, *, reset_interfaces=False):
        self._fail('update_node')
        row = self._rows[uuid]
        for one in patch:
            if one['path'] == '/driver' and one['value'] not in self.enabled:
                raise errors.Refused(f'No conductor for {one["value"]}')
        for one in patch:
            assert one['op'] == 'add', one
            _, *path, last = one['path'].split('/')
            place = row
            for name in path:
                place = place[name]
            if last == 'driver':
                assert reset_interfaces
            self.writes += 1
            place[last.replace('~1', '/').replace('~0', '~')] = one['value']

    def delete_node(self, uuid):
        self._fail('delete_node')
        row = self._rows[uuid]
        assert row['instance_uuid'] is None
        assert row['provision_state'] in moves.IDLE
        self.writes += 1
        del self._rows[uuid]

    def create_port(self, uuid, fields):
        assert uuid in self._rows
        with self._lock:
            if fields['address'] in self._ports:
                raise errors.Conflict('A port with this MAC already exists')
            self.writes += 1
            self._ports[fields['address']] = uuid
        self._fail('create_port')

    def set_state(self, uuid, verb):
        self._fail('set_state')
        row = self._rows[uuid]
        state = row['provision_state']
        if verb == 'abort':
            if state not in ('inspect wait', 'clean wait'):
                raise errors.Refused(f'Cannot abort while {state}')
            self.finish(uuid, 'Inspection was aborted by request.')
        elif state not in moves.BY_VERB[verb].ready:
            raise errors.Refused(f'Cannot {verb} while {state}')
        else:
            row['provision_state'] = _BEGINS[verb]
            row['last_error'] = None
        self.sent.append((row['name'] or uuid, verb))

    def inventory(self, uuid):
        self._fail('inventory')
        if uuid not in self.inventories:
            raise errors.NotFound(f'No inventory of {uuid}')
        return self.inventories[uuid]

    def _fail(self, method):
        if self.failing.get(method):
            raise self.failing[method].pop(0)

    @staticmethod
    def _node(row):
        shown = copy.deepcopy(row)
        for name in shown['driver_info']:
            if 'password' in name:
                shown['driver_info'][name] = '******'
        return node.Node(uuid=row['uuid'], fields=shown)
