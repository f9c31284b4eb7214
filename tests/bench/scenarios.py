# SPDX-License-Identifier: Apache-2.0
"""What is deployed: stacks whose deployments wait for signals.

The servers are a stack of their own, made once, so that a round measures
deployments and nothing else.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any

Template = dict[str, Any]

#: The kinds of a group: one resource, or members in a nested stack.
SINGLE, NESTED = 'single group of', 'group of'

#: A single group whose servers answer heat-api-cfn.
CFN = 'CFN_SIGNAL, group of'

#: The name under which both sides know TempURLs.
TRANSPORT = 'TEMP_URL_SIGNAL'

#: Where the servers read their metadata, each in an object.
CONTAINER = 'servers'

#: What each script would be, about as long as they are.
_SCRIPT = '#!/bin/sh\n' + '# one line of a script that does something\n' * 25


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scenario:
    """Some deployments, all of which wait at the same time.

    :ivar kind: the first part of its name in tables.
    :ivar count: the deployments, over all stacks.
    :ivar stacks: how many stacks they are spread over.
    :ivar one_server: whether all of them are for the same server.
    :ivar group: whether they are one group, in a stack nested in theirs.
    :ivar brief: whether a round has no update.
    :ivar single: whether the group is one resource, which only ours can be.
    :ivar transport: how servers answer.
    """

    kind: str
    count: int
    stacks: int = 1
    one_server: bool = False
    group: bool = False
    brief: bool = False
    single: bool = False
    transport: str = TRANSPORT

    @property
    def name(self) -> str:
        return f'{self.kind} {self.count}'

    @property
    def waiting(self) -> int:
        """How many resources wait at the same time."""
        return 1 if self.single else self.count

    def templates(self, servers: Sequence[str]) -> list[Template]:
        """Return the templates of the stacks, for servers of these ids."""
        chosen = list(servers[: self.count])
        if self.one_server:
            chosen = [servers[0]] * self.count
        size = self.count // self.stacks
        make = _group if self.group else _flat
        templates = [
            make(chosen[start : start + size])
            for start in range(0, self.count, size)
        ]
        if self.single:
            for each in templates:
                group = each['resources']['group']['properties']
                group['members'] = 'single'
                group['signal_transport'] = self.transport
        return templates


def flat(count: int) -> Scenario:
    return Scenario(kind='stack of', count=count)


def single(count: int) -> Scenario:
    return Scenario(kind=SINGLE, count=count, group=True, single=True)


#: Those that are not flat, by the name that the command line has for them.
OTHERS = {
    'stacks': Scenario(kind='20 stacks,', count=200, stacks=20),
    'server': Scenario(kind='one server,', count=50, one_server=True),
    # In its stack nothing needs anything, so with Heat's own each thing that
    # is done to it takes a second for each of them.
    'group': Scenario(kind=NESTED, count=200, group=True, brief=True),
    'single': single(200),
    'thousand': single(1000),
    'cfn': dataclasses.replace(single(200), kind=CFN, transport='CFN_SIGNAL'),
}


def servers(count: int, first: int = 0) -> Template:
    """Return a template of servers that read their metadata at a URL.

    :param first: the number of the first one's object.
    """
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            # Heat takes a second for each resource that needs no other.
            'begin': {'type': 'OS::Heat::Value', 'properties': {'value': ''}},
            **{
                f'server{number}': {
                    'type': 'OS::Heat::DeployedServer',
                    'depends_on': 'begin',
                    'properties': {
                        'software_config_transport': 'POLL_TEMP_URL',
                        'deployment_swift_data': {
                            'container': CONTAINER,
                            'object': f'{first + number}',
                        },
                    },
                }
                for number in range(count)
            },
        },
    }


def components(
    servers: Sequence[str], action: str, *, group: bool = False
) -> Template:
    """Return a template of deployments that have an action of their own."""
    template = _group(servers) if group else _flat(servers)
    template['resources']['config'] = {
        'type': 'OS::Heat::SoftwareComponent',
        'properties': {
            'inputs': [{'name': 'turn'}],
            'outputs': [{'name': 'result'}],
            'configs': [
                {'actions': [name], 'tool': 'script', 'config': _SCRIPT}
                for name in ('CREATE', action)
            ],
        },
    }
    return template


def _flat(servers: Sequence[str]) -> Template:
    deployments = {
        f'deployment{number}': {
            'type': 'OS::Heat::SoftwareDeployment',
            'properties': {**_PROPERTIES, 'server': server},
        }
        for number, server in enumerate(servers)
    }
    return _template(deployments)


def _group(servers: Sequence[str]) -> Template:
    return _template(
        {
            'group': {
                'type': 'OS::Heat::SoftwareDeploymentGroup',
                'properties': {
                    **_PROPERTIES,
                    'servers': {
                        f'n{number}': server
                        for number, server in enumerate(servers)
                    },
                },
            }
        }
    )


_PROPERTIES = {
    'config': {'get_resource': 'config'},
    'signal_transport': TRANSPORT,
    'input_values': {'turn': {'get_param': 'turn'}},
}


def _template(deployments: Template) -> Template:
    return {
        'heat_template_version': '2021-04-16',
        'parameters': {'turn': {'type': 'string', 'default': 'first'}},
        'resources': {
            'config': {
                'type': 'OS::Heat::SoftwareConfig',
                'properties': {
                    'group': 'script',
                    'inputs': [{'name': 'turn'}],
                    'outputs': [{'name': 'result'}],
                    'config': _SCRIPT,
                },
            },
            **deployments,
            # Deletion begins with what nothing needs, at one a second.
            'end': {
                'type': 'OS::Heat::Value',
                'properties': {'value': ''},
                'depends_on': list(deployments),
            },
        },
    }
