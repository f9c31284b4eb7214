# SPDX-License-Identifier: Apache-2.0
"""What is deployed: stacks whose deployments wait for signals.

The servers are a stack of their own, made once, so that a round measures
deployments and nothing else.
"""

import dataclasses
from typing import Any

Template = dict[str, Any]

#: The kinds: a stack of single deployments, and one of a group.
FLAT, SINGLE = 'stack of', 'single group of'

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
    """A stack of deployments, all of which wait at the same time.

    :ivar kind: the first part of its name in tables.
    :ivar transport: how servers answer.
    """

    kind: str
    count: int
    transport: str = TRANSPORT

    @property
    def name(self):
        return f'{self.kind} {self.count}'

    @property
    def waiting(self):
        """How many resources wait at the same time."""
        return self.count if self.kind == FLAT else 1

    def template(self, servers):
        """Return the template of the stack, for servers of these ids."""
        if self.kind == FLAT:
            return _flat(servers[: self.count])
        template = _group(servers[: self.count])
        properties = template['resources']['group']['properties']
        properties['signal_transport'] = self.transport
        return template


def flat(count):
    return Scenario(kind=FLAT, count=count)


#: Those that are not flat, by the name that the command line has for them;
#: Heat's own classes have none for them.
OTHERS = {
    'single': Scenario(kind=SINGLE, count=200),
    'thousand': Scenario(kind=SINGLE, count=1000),
    'cfn': Scenario(kind=CFN, count=200, transport='CFN_SIGNAL'),
}


def servers(count, first=0):
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


def components(servers, action, *, group=False):
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


def _flat(servers):
    deployments = {
        f'deployment{number}': {
            'type': 'OS::Heat::SoftwareDeployment',
            'properties': {**_PROPERTIES, 'server': server},
        }
        for number, server in enumerate(servers)
    }
    return _template(deployments)


def _group(servers):
    return _template(
        {
            'group': {
                'type': 'OS::Heat::SoftwareDeploymentGroup',
                'properties': {
                    **_PROPERTIES,
                    'members': 'single',
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


def _template(deployments):
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
