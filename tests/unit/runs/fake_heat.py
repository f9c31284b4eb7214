# SPDX-License-Identifier: Apache-2.0
"""Heat in memory, for `orchestration.Orchestration` and for timelines.

It holds what a test has told it, gives ids of its own to what is made, and
refuses what no Heat would take: a config whose inputs agents cannot read, a
deployment of a config that is not there, an id of another project. What goes
wrong is asked for with ``failing``, by the name of a method.
"""

import dataclasses
import uuid

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import tokens
from heat_plugins.runs.start import targets
from heat_plugins.signals import signal_names
from heat_plugins.timeline import chart_reading

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
    """A Heat with the stacks of one project."""

    def __init__(self):
        self.stacks = {}
        self.members = {}
        self.templates = {}
        self.configs = {}
        self.rows = {}
        self.happened = []
        self.attributes = {}
        #: Stack id to its tags.
        self.tags = {}
        #: Method name to what it raises, until it is taken away.
        self.failing = {}
        self.asked = []
        #: Advances the operation of an ID, if an engine answers.
        self.engine = None
        #: The rows of which no server was told.
        self.untold = set()
        #: The servers that were told once more, of a deployment that is gone.
        self.told_again = []
        #: The deployments of resources that are there, by ID, with what an
        #: engine derives for each.
        self.put_aside = {}

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

    def withdraw(self, row_id):
        """Withdraw a deployment as an action that times out does."""
        row = self.rows.pop(row_id)
        self.put_aside[row_id] = row, self.configs.pop(row.config_id)

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
            )
        )
        self.templates[stack.id]['resources'][name] = {
            'type': kind,
            'properties': properties,
        }

    def add_config(self, name='db', group='component', **more):
        values = {
            'config': COMPONENT,
            'inputs': INPUTS,
            'outputs': [{'name': 'size', 'type': 'String'}],
            'options': {},
            **more,
        }
        config = heat_values.Config(
            id=new_id(), name=name, group=group, **values
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
        values = {'password': 'hunter2', 'level': '3', 'deploy_action': 'X'}
        inputs = [
            {'name': one['name'], 'value': one.get('default')}
            for one in source.inputs
            if one['name'] not in values
        ]
        inputs += [
            {'name': n, 'value': v, 'type': 'String'}
            for n, v in values.items()
        ]
        inputs.append({'name': 'deploy_password', 'value': 'of-the-server'})
        derived = self.add_config(
            name=name,
            group=source.group,
            config=source.config,
            inputs=inputs,
        )
        row = self._row(derived.id, server, 'CREATE', 'COMPLETE', '')
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
        first = self.add_deployment(stack, name, **more)
        group_id = signal_names.new_group_id()
        *others, mine = self.members[stack.id]
        self.members[stack.id] = [
            *others,
            dataclasses.replace(
                mine,
                type='OS::Heat::SoftwareDeploymentGroup',
                physical_id=group_id,
            ),
        ]
        del self.rows[first.id]
        rows, states = {}, {}
        for number, (key, server) in enumerate(servers.items()):
            # Heat has a config for each: its inputs say which server it is.
            config = dataclasses.replace(
                self.configs[first.config_id], id=new_id()
            )
            self.configs[config.id] = config
            row = dataclasses.replace(
                first,
                id=signal_names.id_in_group(group_id, f'{number + 1:012x}'),
                server_id=server,
                config_id=config.id,
            )
            self.rows[row.id] = rows[key] = row
            states[key] = {
                'server': server,
                'deployment': row.id,
                'config': row.config_id,
                'action': 'CREATE',
                'status': 'COMPLETE',
                'status_reason': '',
                'delivered_at': '2027-01-15T08:00:03Z',
                'ended_at': '2027-01-15T08:00:06Z',
            }
        self.attributes[name, 'members'] = states
        return rows

    def happens(self, stack, name, status, time, physical_id=''):
        """Let an event be listed."""
        self.happened.append(
            chart_reading.StackEvent(
                resource=name,
                stack_id=stack.id,
                physical_id=physical_id,
                status=status,
                reason='state changed',
                time=time,
            )
        )

    def delete_stack(self, stack):
        for one in self.members.pop(stack.id):
            self.rows.pop(one.physical_id, None)
        del self.stacks[stack.id]

    def given(self, server='server-1'):
        """Return the configs that a server is given, beyond CREATE's."""
        return [
            self.configs[row.config_id]
            for row in self.rows.values()
            if row.server_id == server and row.action != 'CREATE'
        ]

    # orchestration.Orchestration

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

    def create_config(self, draft):
        self._ask('create_config', draft.name)
        return self._add_config(draft, new_id())

    def _add_config(self, draft, config_id):
        assert isinstance(draft.name, str) and draft.name
        for one in draft.inputs:
            assert one['value'] is not None, f'{one["name"]} is null'
            assert one['type'], f'{one["name"]} has no type'
        names = [one['name'] for one in draft.inputs]
        assert len(set(names)) == len(names), 'an input comes twice'
        config = heat_values.Config(id=config_id, **vars(draft))
        self.configs[config.id] = config
        return config.id

    def recent_configs(self, suffix, since):
        self._ask('recent_configs', suffix)
        # It knows no times.
        return [
            each.id
            for each in reversed(self.configs.values())
            if each.name.endswith(suffix)
        ]

    def delete_config(self, config_id):
        self._ask('delete_config', config_id)
        in_use = [r for r in self.rows.values() if r.config_id == config_id]
        assert not in_use, 'Heat refuses to delete a config in use'
        self.configs.pop(config_id, None)

    def deployment(self, deployment_id):
        self._ask('deployment', deployment_id)
        return self._found(self.rows, deployment_id)

    def deployments(self, server_id):
        self._ask('deployments', server_id)
        return [r for r in self.rows.values() if r.server_id == server_id]

    def create_deployment(self, *, config_id, server_id, action, reason):
        self._ask('create_deployment', config_id)
        assert config_id in self.configs
        return self._row(
            config_id, server_id, action, 'IN_PROGRESS', reason
        ).id

    def tell(self, deployment):
        self._ask('tell', deployment.id)
        self.untold.discard(self._found(self.rows, deployment.id).id)

    def set_status(self, deployment_id, status):
        self._ask('set_status', deployment_id)
        row = self._found(self.rows, deployment_id)
        self.rows[row.id] = dataclasses.replace(row, status=status)
        if status == 'IN_PROGRESS' and self.engine is not None:
            self.engine(row.server_id)
            return tokens.ADVANCED.after(row.reason)
        return row.reason

    def server_configs(self, server_id):
        self._ask('server_configs', server_id)
        return [
            self.configs[row.config_id]
            for row in self.rows.values()
            if row.server_id == server_id
        ]

    def delete_deployment(self, deployment_id, server_id=None):
        self._ask('delete_deployment', deployment_id)
        if self.rows.pop(deployment_id, None) is None:
            self.told_again.append(server_id)

    def attribute(self, resource, name):
        self._ask('attribute', f'{resource.name} {name}')
        # Heat resolves what a type does not have to nothing.
        return self.attributes.get((resource.name, name))

    def signal(self, resource, details):
        self._ask('signal', f'{resource.name} {details}')
        self.signalled(resource, details)

    # chart_reading.StackHistory, as well

    def all_events(self, stack):
        self._ask('all_events', stack.id)
        assert stack.id in self.stacks
        return list(self.happened)

    # services.Batching, as an engine has it

    def refusals(self, order, members):
        self._ask('refusals', len(members))
        return {}

    def read(self, deployment_ids):
        self._ask('read', len(deployment_ids))
        return {
            row.id: heat_values.DeploymentRow(
                id=row.id,
                server_id=row.server_id,
                config=self.configs[row.config_id],
                action=row.action,
                status=row.status,
                reason=row.reason,
                outputs={},
                input_values={},
                reading_project=None,
            )
            for row in self.rows.values()
            if row.id in deployment_ids
        }

    def existing(self, deployment_ids):
        self._ask('existing', len(deployment_ids))
        return {*self.rows, *self.put_aside} & set(deployment_ids)

    def withdrawn(self, members, wanted):
        try:
            self._ask('withdrawn', len(members))
        except errors.Refused as exc:
            return {each.deployment_id: exc for each in members}
        return {
            member.deployment_id: targets.Target(
                **vars(member),
                config=config,
                config_id=row.config_id,
                declared=config.inputs,
            )
            for member in members
            if member.deployment_id in self.put_aside
            for row, config in [self.put_aside[member.deployment_id]]
        }

    def deliver(self, made):
        """Write all or nothing; then tell servers, and perhaps not all."""
        self._ask('deliver', len(made))
        for one in made:
            if one.config_id in self.configs or one.deployment_id in self.rows:
                raise errors.Unavailable('it is there already')
        for one in made:
            assert one.is_signalled
            self._row(
                self._add_config(one.draft, one.config_id),
                one.server_id,
                one.action,
                'IN_PROGRESS',
                one.reason,
                one.deployment_id,
            )
            self.untold.add(one.deployment_id)
        for one in made:
            self._ask('tell_of_run', one.deployment_id)
            self.untold.discard(one.deployment_id)

    def withdraw_runs(self, ended):
        """Delete rows, tell their servers, and delete their configs."""
        self._ask('withdraw_runs', len(ended))
        for one in ended:
            self.rows.pop(one.row_id, None)
        for one in ended:
            self._ask('delete_config', one.config_id)
            self.configs.pop(one.config_id, None)

    def _row(self, config_id, server_id, action, status, reason, row_id=None):
        row = heat_values.Deployment(
            id=row_id or new_id(),
            server_id=server_id,
            config_id=config_id,
            action=action,
            status=status,
            reason=reason,
        )
        self.rows[row.id] = row
        return row

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
