# SPDX-License-Identifier: Apache-2.0
"""Bring the services of an instance up and down."""

from collections.abc import Iterator, Sequence
import configparser
import contextlib
import pathlib
import shutil
import socket
import time

from minicloud_lib import agents
from minicloud_lib import catalog
from minicloud_lib import configuration
from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import identity
from minicloud_lib import launching
from minicloud_lib import layout
from minicloud_lib import output
from minicloud_lib import packages
from minicloud_lib import plugin
from minicloud_lib import ports
from minicloud_lib import processes
from minicloud_lib import rest
from minicloud_lib import settings as instance_settings
from minicloud_lib import venv
from minicloud_lib.production import certificates
from minicloud_lib.production import stores
from minicloud_lib.settings import Settings
from minicloud_lib.virtual import machine

#: A first start makes databases; on a busy machine that takes its time.
START_SECONDS = 120
STOP_SECONDS = 10


def up(
    instance: layout.Instance,
    *,
    plugin_path: str | None = None,
    extra_conf: Sequence[str] = (),
    executor_threads: int | None = None,
    profile: str | None = None,
    extras: Sequence[str] = (),
    omitted: Sequence[str] = (),
    rgw_url: str | None = None,
    implicit_tenants: bool | None = None,
) -> Settings:
    """Start services, and restart those whose configuration has changed.

    :param extras: what to start as well, from now on.
    :param omitted: what a new cloud never has.
    :param rgw_url: the form of the object store's URL, from now on; one of
        `instance_settings.RGW_URLS`.
    :param implicit_tenants: whether RGW gives each project containers of its
        own, from now on.
    """
    found = instance_settings.load(instance)
    profile = profile or (found.profile if found else 'small')
    packages.require(profile)
    _check(
        instance,
        found,
        profile,
        extras,
        omitted,
        bool(rgw_url) or implicit_tenants is not None,
    )
    extra = [_read_ini(name) for name in extra_conf]
    source = plugin.find(plugin_path)
    venv.ensure(instance.home)
    line = plugin.install(instance.home, source) if source else None
    add_packages(instance.home, profile, extras)
    with files.lock(instance.lock):
        settings = instance_settings.prepare(instance, profile)
        settings.extras = sorted({*settings.extras, *extras})
        settings.omitted = sorted({*settings.omitted, *omitted})
        settings.plugin = str(source) if source else None
        settings.plugin_dirs = line or plugin.NO_PLUGIN
        settings.plugin_version = plugin.digest(source) if source else ''
        if rgw_url and rgw_url != settings.rgw_url:
            settings.rgw_url = rgw_url
            # The same ports, but another endpoint.
            settings.registered = {}
        if implicit_tenants is not None:
            settings.implicit_tenants = implicit_tenants
        if executor_threads:
            settings.executor_threads = executor_threads
        if profile == 'production':
            settings.ca_file = str(certificates.authority(instance))
        settings.save(instance)
        configuration.write(instance, settings)
        _write_extra(instance, extra)
        with _all_or_nothing(instance) as started:
            _start_stages(instance, settings, started)
            _warm_up(settings)
            for name in settings.extras:
                catalog.EXTRAS[name].fill(settings)
    return settings


def _check(
    instance: layout.Instance,
    found: Settings | None,
    profile: str,
    extras: Sequence[str],
    omitted: Sequence[str],
    has_rgw_options: bool,
) -> None:
    """Refuse options that the profile or the instance cannot have."""
    if profile == 'production' and extras:
        raise errors.UsageError(
            f'--with {extras[0]} is for the profiles small and rgw',
            'Choose another --name, or no profile.',
        )
    if omitted and profile != 'small':
        raise errors.UsageError(
            f'--without {omitted[0]} is for the profile small',
            'Choose another --name, or no profile.',
        )
    if found and not set(omitted) <= set(found.omitted):
        raise errors.UsageError(
            f'the instance {instance.name} has {omitted[0]} in its catalogue',
            'Choose another --name, or forget this one: minicloud down '
            f'--purge --name {instance.name}',
        )
    if has_rgw_options and profile != 'rgw':
        raise errors.UsageError(
            f'the profile {profile} has no RGW to apply --rgw options to',
            'Use --store rgw, and another --name if this one has a profile.',
        )


def add_packages(
    home: layout.Home, profile: str | None, extras: Sequence[str]
) -> None:
    """Install what the profile and the extras need of PyPI."""
    if profile == 'production':
        venv.add(home, profile)
    for name in extras:
        if install := catalog.EXTRAS[name].install:
            install(home)
        else:
            venv.add(home, name)


def _chosen(
    instance: layout.Instance, settings: Settings
) -> list[catalog.Service]:
    """Return the services that the settings ask for, or that run."""
    added = {
        name
        for extra in settings.extras
        for name in catalog.EXTRAS[extra].services
    }
    return [
        service
        for service in catalog.services(settings.profile).values()
        if service.name not in settings.omitted
        and (
            not service.on_demand
            or service.name in added
            or service.process(instance)
        )
    ]


def _start_stages(
    instance: layout.Instance,
    settings: Settings,
    started: list[catalog.Service],
) -> None:
    """Start stage 0, 1 and 2, with what each of them needs before.

    :param started: what this starts is added to it.
    """
    services = _chosen(instance, settings)
    stages = [[one for one in services if one.stage == n] for n in range(3)]
    is_production = settings.profile == 'production'
    if is_production:
        stores.prepare(instance)
    _start_stage(instance, settings, stages[0], started)
    for service in stages[0]:
        _wait(instance, settings, service, started)
    if is_production:
        stores.fill(instance, settings)
    _start_stage(instance, settings, stages[1], started)
    keystone = catalog.find(settings.profile, 'keystone')[0]
    _wait(instance, settings, keystone, started)
    if settings.registered != settings.offered:
        identity.set_up(settings)
        settings.registered = settings.offered
        settings.save(instance)
    _start_stage(instance, settings, stages[2], started)
    for service in [*stages[1], *stages[2]]:
        _wait(instance, settings, service, started)


def _start_stage(
    instance: layout.Instance,
    settings: Settings,
    services: Sequence[catalog.Service],
    started: list[catalog.Service],
) -> None:
    for service in services:
        version = configuration.version(instance, service)
        running = service.process(instance)
        if running and running.version == version:
            continue
        if running:
            output.say(f'{service.name}: configuration has changed')
            running.stop(STOP_SECONDS)
        started.append(service)
        launching.spawn(instance, settings, service)


def down(instance: layout.Instance, *, purge: bool = False) -> None:
    """Stop all that runs; with purge forget all that it held."""
    with files.lock(instance.lock):
        found = instance_settings.load(instance)
        services = catalog.services(found.profile if found else 'small')
        # What others stand on goes last, or they would not end in time.
        clean: dict[str, bool] = {}
        for stage in (2, 1, 0):
            clean |= processes.stop_all(
                [
                    service.pid_file(instance)
                    for service in reversed(services.values())
                    if service.stage == stage
                ],
                STOP_SECONDS,
            )
            if stage == 2:
                # Nova is gone, which starts some.
                agents.stop_all(instance)
                machine.kill_all(instance)
        for name in [name for name, ended in clean.items() if not ended]:
            output.say(
                f'{name}: killed, because it did not end within '
                f'{STOP_SECONDS} s'
            )
        if purge:
            shutil.rmtree(instance.path, ignore_errors=True)


def start(instance: layout.Instance, name: str) -> None:
    """Start a service, or a group, as the last ``up`` had it."""
    settings = instance_settings.require(instance)
    services = catalog.find(settings.profile, name)
    with files.lock(instance.lock):
        services = [
            service
            for service in services
            if not service.process(instance)
            and not (service.on_demand and service.name != name)
        ]
        with _all_or_nothing(instance) as started:
            for service in services:
                started.append(service)
                launching.spawn(instance, settings, service)
            for service in services:
                _wait(instance, settings, service, started)


def stop(instance: layout.Instance, name: str) -> None:
    services = catalog.find(instance_settings.require(instance).profile, name)
    with files.lock(instance.lock):
        processes.stop_all(
            [service.pid_file(instance) for service in services], STOP_SECONDS
        )


def kill(instance: layout.Instance, name: str) -> None:
    """SIGKILL, as the kernel's OOM killer does."""
    services = catalog.find(instance_settings.require(instance).profile, name)
    with files.lock(instance.lock):
        running = {one: one.process(instance) for one in services}
        if not any(running.values()):
            raise errors.NotRunningError(f'{name} is not running')
        for service, process in running.items():
            if process:
                process.kill()
            service.pid_file(instance).unlink(missing_ok=True)


@contextlib.contextmanager
def _all_or_nothing(
    instance: layout.Instance,
) -> Iterator[list[catalog.Service]]:
    """Stop what is in the list if the block does not come to its end."""
    started: list[catalog.Service] = []
    try:
        yield started
    except BaseException:
        # Not to be left half done by a second Ctrl-C.
        processes.stop_all(
            [service.pid_file(instance) for service in started], 3
        )
        raise


def _wait(
    instance: layout.Instance,
    settings: Settings,
    service: catalog.Service,
    started: Sequence[catalog.Service],
) -> None:
    """Wait until a service answers, as long as all that were started live."""
    if not service.ports:
        return
    url = settings.url(service.ports[0]) + service.health
    deadline = time.monotonic() + START_SECONDS
    while not (
        _answers(url) if service.health else _listens(settings, service)
    ):
        for one in started:
            if not one.process(instance):
                raise _failure(instance, one, 'ended while starting')
        if time.monotonic() > deadline:
            reason = f'did not answer at {url} within {START_SECONDS} s'
            raise _failure(instance, service, reason)
        time.sleep(0.05)


def _failure(
    instance: layout.Instance, service: catalog.Service, reason: str
) -> errors.MinicloudError:
    """An error that shows what the service had to say."""
    log = instance.log(service.log_name)
    return errors.MinicloudError(
        f'{service.name} {reason}. The end of its log:\n\n'
        + files.tail(log, 15)
        + '\n',
        f'The whole log is {log}. The services that this command started are '
        'stopped again.',
    )


def _answers(url: str) -> bool:
    try:
        return rest.send('GET', url, timeout=5).ok
    except OSError:
        return False


def _listens(settings: Settings, service: catalog.Service) -> bool:
    address = (ports.ADDRESS, settings.ports[service.ports[0]])
    try:
        socket.create_connection(address, timeout=5).close()
    except OSError:
        return False
    return True


def _warm_up(settings: Settings) -> None:
    """One request to each service, so that it builds what it builds late.

    Several requests at once would each find those parts half built.
    """
    rest.trust(settings.ca_file)
    demo = identity.Client(settings.auth_url, 'demo', settings.secrets['demo'])
    for name, service_type, path in (
        ('heat', 'orchestration', '/stacks'),
        ('swift', 'object-store', ''),
        ('mistral', 'workflowv2', '/workflows?limit=1'),
    ):
        if name in settings.omitted:
            continue
        url = demo.endpoint(service_type) + path
        answer = rest.send('GET', url, token=demo.token)
        if not answer.ok:
            raise errors.MinicloudError(
                f'{service_type} answered to GET {url}: {answer}',
                'See minicloud logs.',
            )


def _read_ini(name: str) -> str:
    path = pathlib.Path(name).expanduser()
    try:
        text = path.read_text(encoding='utf-8')
        configparser.RawConfigParser(strict=False).read_string(text, name)
    except OSError as error:
        raise errors.UsageError(f'--conf: {error}') from error
    except (configparser.Error, UnicodeDecodeError) as error:
        raise errors.UsageError(f'--conf: not an ini file: {error}') from error
    return text


def _write_extra(instance: layout.Instance, texts: Sequence[str]) -> None:
    for old in instance.conf.glob('heat-extra-*.conf'):
        old.unlink()
    for number, text in enumerate(texts):
        files.write(instance.conf / f'heat-extra-{number:02}.conf', text)
