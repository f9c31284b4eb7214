# SPDX-License-Identifier: Apache-2.0
"""Checks of heat-engine: its types, secret, threads, tables and policy.

A resource in progress holds one thread of heat-engine, and a deployment is in
progress until its server answers. When no thread is free, further requests
wait in the message queue.
"""

from collections import abc
import contextlib
import itertools
import platform
import sys

from heat.common import context as heat_context
from heat.common import exception
from heat.common import policy as heat_policy
from heat.db import api as db_api
from heat.engine import clients
from heat.engine import resources as heat_resources
from heat.engine import service
from oslo_concurrency import processutils
from oslo_config import cfg
from oslo_messaging import opts as messaging_opts
from oslo_upgradecheck import upgradecheck

from heat_plugins import bounds
from heat_plugins import config
from heat_plugins import errors
from heat_plugins import registry
from heat_plugins import wording
from heat_plugins.checks import cloud
from heat_plugins.clients import heat_mistral
from heat_plugins.clients import webhooks
from heat_plugins.engine import callers
from heat_plugins.engine import patches
from heat_plugins.engine import rescue
from heat_plugins.engine import signing
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import run_tables
from heat_plugins.engine.database import schedule_rows

#: Why no engine keeps schedules, and the remedy.
NO_SCANS = 'rescue_interval in [heat_plugins] is 0. Set it to 30, the default.'

#: The share of busy threads from which on the check warns.
CROWDED = 0.75

#: The most stacks to read, and the most projects to name.
READ, NAMED = 1000, 20

#: The most projects to name whose runs take room.
PROJECTS = 3

cfg.CONF.import_opt('num_engine_workers', 'heat.common.config')
# Otherwise it is registered only with the first server.
cfg.CONF.register_opts(
    opt
    for group, opts in messaging_opts.list_opts()
    for opt in opts
    if group is None and opt.name == 'executor_thread_pool_size'
)


@cloud.reported
def threads(report: cloud.CheckReport) -> None:
    """Check the number of threads against that of busy resources."""
    pool = cfg.CONF.executor_thread_pool_size
    # As many as heat.cmd.engine forks.
    workers = int(
        cfg.CONF.num_engine_workers or max(4, processutils.get_worker_count())
    )
    report.good(
        f'A heat-engine of this heat.conf has {workers * pool} threads, one '
        'for each resource that is worked on or waits: num_engine_workers '
        f'is {workers}, executor_thread_pool_size {pool}.'
    )
    context = heat_context.get_admin_context()
    try:
        running = len(rescue.reporting(context))
        busy = resources.count_busy(context)
    except Exception as exc:
        # The database's message may quote its password.
        report.warn(
            'Cannot count the resources in progress, because the database '
            f'([database] connection) fails with {type(exc).__name__}.'
        )
        return
    room = (running or workers) * pool
    usage = (
        f'Resources in progress: {busy}; threads of the workers that run, '
        f'on all hosts: {room}'
    )
    more = (
        'raise executor_thread_pool_size or num_engine_workers, or start '
        'heat-engine on more hosts.'
    )
    if not running:
        report.warn(
            'No heat-engine runs, or none has reported to the database '
            'recently.'
        )
    elif busy >= room:
        report.fail(f'{usage}. Further resources must wait; {more}')
    elif busy >= CROWDED * room:
        report.warn(f'{usage}; {more}')
    else:
        report.good(f'{usage}.')


def single_groups() -> upgradecheck.Result:
    """Name the stacks that have groups without nested stack, by project.

    Heat's own classes cannot serve such groups.
    """
    return _named_stacks(
        resources.with_groups,
        'which groups have no nested stack',
        'No stack has a group without nested stack.',
        "have groups without nested stack. Before you return to Heat's own "
        'classes or to a release before 0.2, run "openstack software '
        'deployment group nest" in each of these projects.',
    )


def waiting() -> upgradecheck.Result:
    """Name the stacks with deployments that wait, by project.

    Heat's own classes do not take the results of such deployments.
    """
    return _named_stacks(
        resources.with_waiting,
        'which deployments wait',
        'No deployment waits for its server.',
        'have deployments that wait for their servers. Before you return to '
        "Heat's own classes, wait until these are complete: there, a "
        'deployment that still waits stays in progress until the next update '
        'of its stack, which repeats it.',
    )


def schedules() -> upgradecheck.Result:
    """Name the stacks with schedules that did not start, by project."""
    if not cfg.CONF.heat_plugins.rescue_interval:
        return _named_stacks(
            schedule_rows.all_stacks,
            'which stacks have schedules',
            'No stack has a schedule.',
            f'have schedules that no engine keeps, as {NO_SCANS}',
            is_wrong=True,
        )
    return _named_stacks(
        schedule_rows.with_missed,
        'which schedules have missed a time',
        'No schedule has missed its last time, or a reason not to start.',
        'have schedules whose last time did not start, or whose next one '
        'cannot. The attribute "reason" of each says why; "openstack software '
        'deployment schedule list" shows them to users of the project.',
        is_wrong=True,
    )


@cloud.reported
def tables(report: cloud.CheckReport) -> None:
    """Check the tables of runs; name the projects that fill them most."""
    if not check_tables(report):
        return
    with contextlib.suppress(errors.Error):
        for project, number in run_rows.RunRows().most_kept(PROJECTS).items():
            report.good(
                f'Project {project} keeps {number} targets of runs; '
                'run_targets_kept is '
                f'{cfg.CONF.heat_plugins.run_targets_kept}.'
            )


def check_tables(report: cloud.CheckReport) -> bool:
    """Check whether the tables of runs are in Heat's database; say so."""
    remedy = (
        f'run "{run_tables.COMMAND}" with the [database] connection of a user '
        'who may create tables.'
    )
    try:
        is_ready = run_tables.is_ready(db_api.get_engine())
    except Exception as exc:
        # The database's message may quote its password.
        report.doubt(
            "Cannot read Heat's database ([database] connection): "
            f'{type(exc).__name__}.'
        )
        return False
    if is_ready:
        report.good("The tables of runs are in Heat's database.")
    elif cfg.CONF.heat_plugins.manage_tables:
        report.doubt(
            "The tables of runs are not in Heat's database. heat-engine makes "
            'them after its next start; if it logs a warning that it cannot, '
            f'{remedy}'
        )
    else:
        report.fail(
            "The tables of runs are not in Heat's database, and "
            f'[heat_plugins] manage_tables is false: {remedy}'
        )
    return is_ready


@cloud.reported
def runs_of_former_release(report: cloud.CheckReport) -> None:
    """Name the projects with runs and records that this release ignores."""
    try:
        former = run_tables.read(
            heat_context.get_admin_context(),
            has_tables=run_tables.is_ready(db_api.get_engine()),
        )
    except Exception as exc:
        # The database's message may quote its password.
        report.warn(
            "Cannot read Heat's database ([database] connection): "
            f'{type(exc).__name__}.'
        )
        return
    if former.running:
        number = sum(former.running.values())
        report.warn(
            'Runs of a former release have not ended on '
            f'{wording.counted(number, "server")} of projects '
            f'{bounds.listed(former.running)}. Let them end before you '
            'upgrade heat-engine: this release neither continues nor shows '
            'them.'
        )
    if former.registered:
        report.good(
            'The containers heat-plugins-operations of these projects hold '
            'old records, which nothing reads; delete them: '
            f'{bounds.listed(former.registered)}. So do the containers of '
            'stacks, in objects below runs/; these go with their stacks.'
        )
    if not former.running and not former.registered:
        report.good('A former release has left no run.')


@cloud.reported
def webhooks_permitted(report: cloud.CheckReport) -> None:
    """Name the entries of notify_hosts that permit nothing."""
    hosts = webhooks.Hosts(cfg.CONF.heat_plugins.notify_hosts)
    if hosts.invalid:
        report.warn(
            f'{webhooks.OPTION} has entries that permit nothing: '
            f'{bounds.listed(hosts.invalid)}. Each must be a host name, "*." '
            'and a domain, an address or a network; "http://" in front and a '
            'port at the end may be added, and no path.'
        )
    else:
        report.good(f'{webhooks.OPTION} has no invalid entry.')


@cloud.reported
def _named_stacks(
    report: cloud.CheckReport,
    read: abc.Callable[
        [heat_context.RequestContext, int], abc.Sequence[tuple[str, str]]
    ],
    what: str,
    none: str,
    remedy: str,
    *,
    is_wrong: bool = False,
) -> None:
    """Name stacks by project, with their finding and the remedy.

    :param read: returns at most a number of projects and names, sorted.
    :param is_wrong: whether such stacks are worth a warning.
    """
    try:
        stacks = read(heat_context.get_admin_context(), READ + 1)
    except Exception as exc:
        # The database's message may quote its password.
        report.warn(
            f'Cannot read {what}, because the database '
            f'([database] connection) fails with {type(exc).__name__}.'
        )
        return
    if not stacks:
        report.good(none)
        return
    number = wording.counted(len(stacks), 'stack')
    if len(stacks) == 1:
        remedy = remedy.replace('have ', 'has ', 1)
    elif len(stacks) > READ:
        number = f'More than {READ} stacks'
    tell = report.warn if is_wrong else report.good
    tell(f'{number} {remedy}')
    projects = [
        (project, bounds.listed(name for _, name in rows))
        for project, rows in itertools.groupby(
            stacks[:READ], lambda row: row[0]
        )
    ]
    for project, names in projects[:NAMED]:
        report.good(f'Project {project}: {names}.')
    if len(projects) > NAMED:
        report.good(f'And {len(projects) - NAMED} more projects.')


CLIENTS = (config.SWIFT_CLIENT, heat_mistral.CLIENT_NAME)

# What orders runs, and gives servers scripts.
_OF_RUNS = ('software_configs:create', 'software_deployments:create')

# What shows what servers are given, with the URLs for their results.
_OF_READING = (
    'software_configs:show',
    'software_deployments:index',
    'software_deployments:show',
    'software_deployments:metadata',
    'resource:metadata',
    'stacks:show_output',
)

#: The fewest characters of a secret that cannot be guessed.
SECRET_LENGTH = 16

#: The Python versions, from the first to before the last, whose parser may
#: fail in one thread while another one parses: CPython's gh-106905.
FRAGILE = ((3, 11), (3, 12, 2))


@cloud.reported
def resource_types(report: cloud.CheckReport) -> None:
    """Check that each of our resource types is served by our class.

    It loads all plugins, as heat-engine does when it starts.
    """
    offer = registry.examine(cfg.CONF)
    try:
        origins = _origins(offer.classes)
    except Exception as exc:
        # One plugin that cannot be imported keeps heat-engine from starting.
        report.fail(
            'heat-engine cannot start, because loading its plugins fails '
            f'with {type(exc).__name__}: {exc}'
        )
        return
    if ours := origins.pop(None, None):
        report.good(f'heat-plugins serves {len(ours)} resource types.')
        for origin, names in origins.items():
            report.fail(
                f'{", ".join(names)}: served by {origin}, not by '
                'heat-plugins; check plugin_dirs, and the files in '
                'environment_dir.'
            )
    else:
        report.fail(
            'heat-engine does not load heat-plugins: plugin_dirs in the '
            '[DEFAULT] section of heat.conf must name its directory; "python '
            '-m heat_plugins" prints the line.'
        )
    disabled = set(cfg.CONF.heat_plugins.disabled_resource_types)
    for types, reason in offer.left_out.items():
        say = report.fail if disabled.isdisjoint(types) else report.warn
        say(f'{", ".join(types)}: left to Heat, because {reason}.')
    # Heat asks stevedore's manager for a client by its name.
    known = clients._mgr.names()  # noqa: SLF001
    if missing := sorted(set(CLIENTS) - set(known)):
        report.fail(
            f'Heat finds no client {" and ".join(missing)}; install '
            'heat-plugins again in the environment of heat-engine.'
        )


def check_served(report: cloud.CheckReport, names: abc.Iterable[str]) -> None:
    """Report whether our classes serve all of these resource types.

    :raises cfg.Error: an option of heat.conf is invalid.
    """
    try:
        origins = _origins(registry.examine(cfg.CONF).classes)
    except cfg.Error:
        raise
    except Exception as exc:
        report.fail(
            'heat-engine cannot load its plugins '
            f'({type(exc).__name__}: {exc}).'
        )
        return
    if not set(names).issubset(origins.get(None, ())):
        report.fail(
            'heat-engine does not load the resource types of heat-plugins for '
            'it; "Resource types" of "heat-plugins-status upgrade check" says '
            'why.'
        )


def _origins(
    classes: abc.Mapping[str, type],
) -> dict[str | None, list[str]]:
    """Return our types by their server: None for this package, else a name."""
    known = heat_resources.global_env().registry
    origins: dict[str | None, list[str]] = {}
    for name, ours in sorted(classes.items()):
        try:
            served = known.get_resource_info(name).value
        except exception.EntityNotFound:
            served = 'no plugin'
        origin = None
        if served is not ours:
            # Where it is no class, it is the name of a template.
            origin = getattr(served, '__module__', None) or str(served)
        origins.setdefault(origin, []).append(name)
    return origins


@cloud.reported
def replaced(report: cloud.CheckReport) -> None:
    """Check which replacements of parts of Heat are in force.

    A heat-engine that starts now with these packages has the same.
    """
    for patch in patches.needed(registry.examine(cfg.CONF).classes.keys()):
        try:
            patch.probe()
        except patches.Unfit as exc:
            report.warn(f'{exc}, so {patch.without}.')
        else:
            report.good(f'{patch.name} is replaced: {patch.purpose}.')


@cloud.reported
def secret(report: cloud.CheckReport) -> None:
    """Check the secret from which the keys of TempURLs are derived."""
    name = (
        '[heat_plugins] temp_url_secret'
        if cfg.CONF.heat_plugins.temp_url_secret
        else '[DEFAULT] auth_encryption_key'
    )
    value = signing.temp_url_secret()
    remedy = (
        'set [heat_plugins] temp_url_secret to a long random text, the same '
        'for every heat-engine.'
    )
    if value is None:
        report.fail(
            'auth_encryption_key has the default value, which is public in '
            f"Heat's source; {remedy} Set auth_encryption_key, too: Heat "
            'encrypts passwords with it.'
        )
    elif len(value) < SECRET_LENGTH:
        report.warn(f'{name} has only {len(value)} characters; {remedy}')
    else:
        report.good(f'TempURL keys are derived from {name}.')


@cloud.reported
def policy(report: cloud.CheckReport) -> None:
    """Check the rights of users with only the role reader in Heat's policy."""
    enforcer = heat_policy.Enforcer().enforcer
    reader = {'roles': ['reader'], 'project_id': 'x', 'is_admin': False}
    target = {'project_id': 'x'}

    def permitted(names: abc.Iterable[str]) -> list[str]:
        return [
            name
            for name in names
            if enforcer.authorize(name, target, reader, do_raise=False)
        ]

    if wide := permitted((callers.POLICY, *_OF_RUNS)):
        report.warn(
            f'The policy of Heat permits users with only the role reader: '
            f'{", ".join(wide)}. So they can start actions on servers. '
            'Remove these rules from the policy file of Heat, and set '
            '[oslo_policy] enforce_new_defaults = true in heat.conf.'
        )
    else:
        report.good(
            'Users with only the role reader start no actions: heat-engine '
            f'asks the policy {callers.POLICY} about each signal, although '
            'resource:signal permits them to send some.'
        )
    if readable := permitted(_OF_READING):
        report.good(
            'They can read what servers are given, with the URLs that accept '
            f'results: {", ".join(readable)}. If readers are strangers, add '
            'the policy lines of the installation page.'
        )


@cloud.reported
def python(report: cloud.CheckReport) -> None:
    """Check whether stacks may fail at random with this Python."""
    version = platform.python_version()
    # Those of Heat 24 share one of Python's.
    if not hasattr(service, 'ThreadGroup'):
        report.good(
            f'Python {version}: this Heat has green threads, of which only '
            'one parses at a time.'
        )
        return
    if not FRAGILE[0] <= sys.version_info < FRAGILE[1]:
        report.good(f'Python {version} parses in several threads at a time.')
        return
    defect = (
        f'On Python {version}, stacks of many resources may fail at random '
        'with "SystemError: AST constructor recursion depth mismatch" '
        '(CPython gh-106905)'
    )
    remedy = 'run heat-engine on Python 3.12.2 or later.'
    if patches.is_fit('heat.engine.sync_point._str_unpack_tuple'):
        report.good(
            f"{defect}. heat-plugins serializes Heat's most frequent parsing; "
            f'to be safe, {remedy}'
        )
    else:
        report.warn(f'{defect}; {remedy}')
