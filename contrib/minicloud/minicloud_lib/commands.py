# SPDX-License-Identifier: Apache-2.0
"""The commands and their output."""

import argparse
from collections.abc import Mapping, Sequence
import json
import os
import pathlib
import shlex
import time
from typing import Any

from minicloud_lib import agents
from minicloud_lib import catalog
from minicloud_lib import cloud
from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import output
from minicloud_lib import packages
from minicloud_lib import settings
from minicloud_lib import venv


def install(options: argparse.Namespace) -> None:
    profile = _profile(options)
    packages.install(profile)
    if options.browser:
        packages.install('browser')
    venv.ensure(options.instance.home)
    cloud.add_packages(options.instance.home, profile, options.extras)


def _profile(options: argparse.Namespace) -> str | None:
    profile: str | None = options.profile
    return profile or catalog.STORES.get(options.store)


def up(options: argparse.Namespace) -> None:
    begun = time.monotonic()
    instance = options.instance
    found = cloud.up(
        instance,
        plugin_path=options.plugin,
        extra_conf=options.conf,
        executor_threads=options.executor_threads,
        profile=_profile(options),
        extras=options.extras,
        omitted=options.omitted,
        rgw_url=options.rgw_url,
        implicit_tenants=options.rgw_implicit_tenants,
    )
    output.say(
        f'{instance.name} is up after {time.monotonic() - begun:.1f} s: '
        f'Keystone at {found.auth_url}, Heat with '
        + (f'the plugin from {found.plugin}' if found.plugin else 'no plugin')
        + '.'
    )


def down(options: argparse.Namespace) -> None:
    cloud.down(options.instance, purge=options.purge)


def status(options: argparse.Namespace) -> int:
    """Exit code 3 unless all of the services run."""
    instance = options.instance
    found = settings.require(instance)
    services = [
        {
            **service.about(instance),
            'url': found.url(service.ports[0]) if service.ports else '',
            'log': str(instance.log(service.log_name)),
        }
        for service in catalog.services(found.profile).values()
        if service.process(instance)
        or not (service.on_demand or service.name in found.omitted)
    ]
    all_agents = [agent.about() for agent in agents.known(instance)]
    if options.format == 'json':
        print(
            json.dumps(
                {
                    'instance': instance.name,
                    'folder': str(instance.path),
                    'auth_url': found.auth_url,
                    'plugin': found.plugin,
                    'plugin_dirs': found.plugin_dirs,
                    'services': services,
                    'agents': all_agents,
                },
                indent=2,
            )
        )
    else:
        print(f'instance  {instance.name}')
        print(f'folder    {instance.path}')
        print(f'keystone  {found.auth_url}')
        print(f'plugin    {found.plugin or "none"}')
        for row in services:
            state = 'down'
            if row['running']:
                state = (
                    f'pid {row["pid"]}, {row["rss_bytes"] >> 20} MB, '
                    f'{row["cpu_seconds"]:.1f} s of CPU'
                )
            print(f'{row["name"]:16} {row["url"]:24} {state}')
        for agent in all_agents:
            state = f'pid {agent["pid"]}' if agent['running'] else 'stopped'
            print(f'agent     {agent["name"]}  {state}')
    return 0 if all(row['running'] for row in services) else 3


def env(options: argparse.Namespace) -> None:
    """Shell code, or a JSON object of the same variables."""
    instance = options.instance
    found = settings.require(instance)
    variables = {
        **found.user_env(options.user),
        'MINICLOUD_HOME': str(instance.home.path),
        'MINICLOUD_NAME': instance.name,
        # For heat-plugins-status.
        'MINICLOUD_HEAT_CONF': str(instance.conf / 'heat.conf'),
    }
    if options.format == 'json':
        print(json.dumps(variables, indent=2))
        return
    for name in sorted(os.environ):
        # What another cloud left in this shell would be mixed in.
        if name.startswith('OS_') and name not in variables:
            print(f'unset {name};')
    for name, value in variables.items():
        print(f'export {name}={shlex.quote(value)};')
    programs = shlex.quote(str(instance.home.bin))
    # Once only, however often it is evaluated.
    print(f'case ":$PATH:" in *:{programs}:*) ;; *)')
    print(f'  export PATH={programs}:"$PATH";; esac;')


def logs(options: argparse.Namespace) -> None:
    instance = options.instance
    if options.service is None:
        for path in sorted(instance.logs.glob('*')):
            print(path)
        return
    follow(instance.log(options.service), options.lines, options.follow)


def follow(path: pathlib.Path, lines: int, forever: bool) -> None:
    """Show the end of a file; then what is added, until interrupted."""
    if not path.exists():
        raise errors.UsageError(f'there is no log {path} yet')
    if forever:
        command = ['tail', '-n', str(lines), '-F', str(path)]
        # Needs no shell; the user's PATH says which tail.
        os.execvp('tail', command)  # noqa: S606, S607 # nosec B606 B607
    print(files.tail(path, lines))


def show(found: Sequence[Mapping[str, Any]], form: str) -> None:
    """Print a list of agents or of servers."""
    if form == 'json':
        print(json.dumps(found, indent=2))
        return
    for one in found:
        state = f'pid {one["pid"]}' if one['running'] else 'stopped'
        place = f'{one.get("resource")} of stack {one.get("stack")}'
        print(f'{one["name"]:16} {state:12} {one.get("server") or place}')


def start(options: argparse.Namespace) -> None:
    cloud.start(options.instance, options.service)


def stop(options: argparse.Namespace) -> None:
    settings.require(options.instance)
    cloud.stop(options.instance, options.service)


def restart(options: argparse.Namespace) -> None:
    stop(options)
    start(options)


def kill(options: argparse.Namespace) -> None:
    settings.require(options.instance)
    cloud.kill(options.instance, options.service)
