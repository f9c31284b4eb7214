# SPDX-License-Identifier: Apache-2.0
"""Servers of a stack, and what they leave behind where one can see it."""

import pathlib
import subprocess
import sys
from typing import Any

from tests.functional import base

# `base` has put it on the path.
from minicloud_lib import agents  # isort: skip

# In place of SSH: a shell on a machine, whose agents are installed outside of
# its tree.
_SSH = """
trap 'echo "Failed: $BASH_COMMAND" >&2' ERR
chroot() {{ shift; "$@"; }}
export -f chroot
ssh() {{
    test "$1" = root@machine
    PATH={agents}:$PATH DESTDIR={machine} bash -euc "$2"
}}
"""


def type_script(script, folder, env, machine=None):
    """Type what a page has, in a shell; return what it prints.

    :param machine: the tree that its commands reach by SSH.
    """
    if machine:
        agents = pathlib.Path(sys.executable).parent
        script = _SSH.format(agents=agents, machine=machine) + script
    done = subprocess.run(
        ['bash', '-eo', 'pipefail', '-c', script],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def agent(cloud, stack, server='server', **options):
    """Return the real agent of a server, switched off."""
    name = f'{stack.name}-{server}'
    return cloud.agent(name, stack=stack.name, resource=server, **options)


def machine(cloud: base.Cloud, name: str) -> base.minicloud_client.Agent:
    """Return an agent that nobody has told which server it is."""
    nobody = {'stack': None, 'resource': None, 'supervised': False}
    agents.Agent(cloud._instance, name).set_up({}, nobody, interval=1)
    return cloud.agent(name)


def has_run(agent: base.minicloud_client.Agent) -> set[str]:
    """Return the ids of the configs that a server has run."""
    return {
        path.stem
        for path in (agent.path / 'var/deployed').glob('*.json')
        if not path.stem.endswith('.notify')
    }


def signals(cloud: base.Cloud, stack: base.Stack) -> list[dict[str, Any]]:
    """Return the requests to Swift that bore signals of a stack.

    What heat-engine writes next to them is for servers to read.
    """
    return [
        request
        for request in cloud.swift_requests(
            method='PUT', path=f'.*{stack.container}/signals/.*'
        )
        if not request['path'].endswith('.control')
    ]
