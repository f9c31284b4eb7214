# SPDX-License-Identifier: Apache-2.0
"""The names of signals in the object store.

One container for each root stack; in it one object for each deployment and
derived config, so that the signal of one action cannot pass for another's.
"""

from heat_plugins.signals import group_ids

SIGNALS = 'signals/'


def container(root_stack_id: str) -> str:
    """Return the name of a root stack's container.

    Where container names are shared by all projects (Ceph without implicit
    tenants) the id keeps them apart.
    """
    return f'heat-plugins-{root_stack_id}'


def folder(deployment_id: str) -> str:
    """Return the prefix of all signals of a deployment, or of a group."""
    return f'{SIGNALS}{group_ids.owner(deployment_id)}'


def signal(deployment_id: str, config_id: str) -> str:
    """Return the name of the object for the result of a derived config."""
    return f'{folder(deployment_id)}{config_id}'
