# SPDX-License-Identifier: Apache-2.0
"""Heat in memory, for the protocols of `stack_tree` and for timelines."""

import dataclasses
import uuid

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.signals import signal_names

COMPONENT = {
    'configs': [
        {'actions': ['CREATE'], 'tool': 'script', 'config': '#!/bin/sh\n'},
        {'actions': ['BACKUP'], 'tool': 'script', 'config': '#!/bin/sh\n'},
        {'actions': ['FAIL/OVER'], 'tool': 'ansible', 'config': '- x'},
    ]
}
INPUTS = [
    {'name': 'database', 'type': 'String', 'default': 'shop'},
    {'name': 'level', 'type': 'Number', 'default': 3},
    {'name': 'password', 'type': 'String'},
    {'name': 'options', 'type': 'Json', 'default': {}},
]


def new_id():
    return str(uuid.uuid4())


class Heat:
    def __init__(self):
        self.stacks, self.members, self.templates = {}, {}, {}
        self.configs, self.rows, self.attributes = {}, {}, {}
        self.happened, self.asked = [], []
        #: Stack id to its tags.
        self.tags = {}
        #: Method name to what it raises, until it is taken away.
        self.failing = {}

    # What tests tell it

    def add_stack(self, name, parent=None, **parameters):
        stack = heat_values.Stack(
            id=new_id(),
            name=name,
            status='CREATE_COMPLETE',
            parent=parent,
            parameters=parameters,
        )
        self.stacks[stack.id] = stack
        self.members[stack.id] = []
        self.templates[stack.id] = {'resources': {}}
        return stack

    def add_resource(
        self, stack, name, kind, physical_id, nested=None, **properties
    ):
        self.members[stack.id].append(
            heat_values.Resource(
                name=name,
                type=kind,
                physical_id=physical_id,
                status='CREATE_COMPLETE',
                stack_id=stack.id,
                nested_id=nested,
                created_at='2026-12-01T08:00:00Z',
            )
        )
        self.templates[stack.id]['resources'][name] = {
            'type': kind,
            'properties': properties,
        }

    def add_config(self, name='db', group='component', **more):
        outputs = [{'name': 'size', 'type': 'String'}]
        values = {'config': COMPONENT, 'inputs': INPUTS, 'outputs': outputs}
        config = heat_values.Config(
            id=new_id(), name=name, group=group, **{**values, **more}
        )
        self.configs[config.id] = config
        return config

    def add_deployment(self, stack, name='db', server='server-1', **more):
        """Add a component, and a deployment of it as Heat makes one."""
        kind = more.pop('kind', 'OS::Heat::SoftwareDeployment')
        properties = more.pop('properties', {})
        source = self.add_config(**more)
        self.add_resource(
            stack, f'{name}_config', 'OS::Heat::SoftwareComponent', source.id
        )
        values = {one['name']: one.get('default') for one in source.inputs}
        values |= {'password': 'hunter2', 'level': '3', 'deploy_action': 'X'}
        inputs = [{'name': n, 'value': v} for n, v in values.items()]
        derived = self.add_config(
            name=name, group=source.group, config=source.config, inputs=inputs
        )
        row = heat_values.DeploymentRow(
            id=new_id(),
            server_id=server,
            config=derived,
            action='CREATE',
            status='COMPLETE',
            reason='',
            outputs={},
            input_values={},
            reading_project=None,
        )
        self.rows[row.id] = row
        self.add_resource(
            stack,
            name,
            kind,
            row.id,
            config={'get_resource': f'{name}_config'},
            **properties,
        )
        return row

    def add_group(self, stack, name, servers, **more):
        """Add a group that is one resource; return its members' rows."""
        kind = 'OS::Heat::SoftwareDeploymentGroup'
        first = self.add_deployment(stack, name, kind=kind, **more)
        group_id = signal_names.new_group_id()
        self.members[stack.id][-1] = dataclasses.replace(
            self.members[stack.id][-1], physical_id=group_id
        )
        del self.rows[first.id]
        rows, states = {}, {}
        for number, (key, server) in enumerate(servers.items()):
            # Heat has a config for each: its inputs say which server it is.
            config = dataclasses.replace(first.config, id=new_id())
            row = dataclasses.replace(
                first,
                id=signal_names.id_in_group(group_id, f'{number + 1:012x}'),
                server_id=server,
                config=config,
            )
            self.rows[row.id] = rows[key] = row
            states[key] = {
                'server': server,
                'deployment': row.id,
                'config': row.config.id,
                'action': 'CREATE',
                'status': 'COMPLETE',
                'status_reason': '',
                'delivered_at': '2027-01-15T08:00:03Z',
                'ended_at': '2027-01-15T08:00:06Z',
            }
        self.attributes[name, 'members'] = states
        return rows

    def happens(
        self, stack, name, status, time, physical_id='', reason='state changed'
    ):
        self.happened.append(
            heat_values.Event(
                id='e',
                resource=name,
                stack_id=stack.id,
                physical_id=physical_id,
                status=status,
                reason=reason,
                time=time,
            )
        )

    # orchestration.Orchestration, and Selecting

    def stack(self, name_or_id):
        self._ask('stack', name_or_id)
        for stack in self.stacks.values():
            if name_or_id in (stack.name, stack.id):
                return stack
        raise errors.NotFound(f'Heat has no stack {name_or_id}')

    def stack_names(self):
        self._ask('stack_names', '')
        return [one.name for one in self.stacks.values() if not one.parent]

    def stack_ids(self, tag=None):
        self._ask('stack_ids', tag)
        return [
            one.id
            for one in sorted(self.stacks.values(), key=lambda one: one.name)
            if not one.parent and tag in (None, *self.tags.get(one.id, ()))
        ]

    def template(self, stack):
        self._ask('template', stack.id)
        return self.templates[stack.id]

    def resources(self, stack):
        self._ask('resources', stack.id)
        found = list(self.members[stack.id])
        for one in self.members[stack.id]:
            if one.nested_id:
                found += self.resources(self.stacks[one.nested_id])
        return found

    def config(self, config_id):
        self._ask('config', config_id)
        return self._found(self.configs, config_id)

    def deployment(self, deployment_id):
        self._ask('deployment', deployment_id)
        return self._found(self.rows, deployment_id)

    def attribute(self, resource, name):
        self._ask('attribute', f'{resource.name} {name}')
        # Heat resolves what a type does not have to nothing.
        return self.attributes.get((resource.name, name))

    def signal(self, resource, details):
        self._ask('signal', f'{resource.name} {details}')
        self.signalled(resource, details)

    def all_events(self, stack):
        self._ask('all_events', stack.id)
        assert stack.id in self.stacks
        return list(self.happened)

    def _ask(self, method, what):
        self.asked.append(f'{method} {what}')
        failure = self.failing.get(method)
        if failure is not None:
            raise failure

    @staticmethod
    def _found(things, name):
        if name not in things:
            raise errors.NotFound(f'Heat has no {name}')
        return things[name]
