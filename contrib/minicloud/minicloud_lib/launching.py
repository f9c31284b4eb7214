# SPDX-License-Identifier: Apache-2.0
"""The command line and the environment that a service is started with."""

import getpass

from minicloud_lib import catalog
from minicloud_lib import configuration
from minicloud_lib import environment
from minicloud_lib import layout
from minicloud_lib import processes
from minicloud_lib.settings import Settings

_FILES = '{config_files}'


def spawn(
    instance: layout.Instance, settings: Settings, service: catalog.Service
) -> None:
    processes.spawn(
        _program(instance, settings, service)
        if service.program
        else _module(instance, service),
        pid_file=service.pid_file(instance),
        log=instance.log(service.log_name),
        env=_environment(instance, settings, service),
        folder=instance.data,
        version=configuration.version(instance, service),
    )


def _module(instance: layout.Instance, service: catalog.Service) -> list[str]:
    arguments = configuration.files_of(instance, service)
    if service.name == 'swift':
        arguments = [instance.conf]
    return [
        str(instance.home.python),
        '-m',
        service.module,
        *(str(argument) for argument in arguments),
    ]


def _program(
    instance: layout.Instance, settings: Settings, service: catalog.Service
) -> list[str]:
    places = _places(instance, settings)
    command: list[str] = []
    for part in service.program:
        if part == _FILES:
            for file in configuration.files_of(instance, service):
                command += ['--config-file', str(file)]
        else:
            command.append(part.format_map(places))
    return command


def _environment(
    instance: layout.Instance, settings: Settings, service: catalog.Service
) -> dict[str, str]:
    env = environment.clean(instance.home, instance.data)
    if service.ports:
        env['MINICLOUD_URL'] = settings.url(service.ports[0])
    # Heat's own classes cannot be told of an authority for Swift.
    trusts_all = service.trusts_all or not settings.plugin
    if settings.ca_file and trusts_all:
        env['REQUESTS_CA_BUNDLE'] = settings.ca_file
    if service.name == 'keystone':
        env['MINICLOUD_URL'] = settings.auth_url
        env['MINICLOUD_ADMIN'] = settings.secrets['admin']
    elif 'heat_cfn' in service.ports:
        env['MINICLOUD_CFN_URL'] = settings.url('heat_cfn')
        env['MINICLOUD_COUNTERS'] = str(instance.heat_counters)
        env['MINICLOUD_CLASSES'] = str(instance.heat_classes)
    if not service.program:
        env['PYTHONPATH'] = str(layout.SOURCE)
    places = _places(instance, settings)
    for name, value in service.env.items():
        env[name] = value.format_map(places)
    return env


def _places(
    instance: layout.Instance, settings: Settings
) -> dict[str, object]:
    """The names that braces in a command or variable may hold."""
    return {
        **settings.ports,
        'conf': instance.conf,
        'data': instance.data,
        'home': instance.home.path,
        'logs': instance.logs,
        'name': instance.name,
        'source': layout.SOURCE,
        'user': getpass.getuser(),
        'venv': instance.home.venv,
    }
