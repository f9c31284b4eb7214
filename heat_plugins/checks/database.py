# SPDX-License-Identifier: Apache-2.0
"""Checks that read Heat's database: threads, and groups of this package.

A resource in progress holds one thread of heat-engine, and a deployment is in
progress until its server answers. When no thread is free, further requests
wait in the message queue.
"""

import itertools

from heat.common import context as heat_context
from heat.common import service_utils
from heat.objects import service as service_objects
from oslo_concurrency import processutils
from oslo_config import cfg
from oslo_messaging import opts as messaging_opts
from oslo_upgradecheck import upgradecheck

from heat_plugins import bounds
from heat_plugins.checks import check_report
from heat_plugins.engine.database import resources

#: The share of busy threads from which on the check warns.
CROWDED = 0.75

#: The most stacks to read, and the most projects to name.
READ, NAMED = 1000, 20

_REMEDY = (
    "Before you return to Heat's own classes or to a release before 0.2, run "
    '"openstack software deployment group nest" in each of these projects.'
)

cfg.CONF.import_opt('num_engine_workers', 'heat.common.config')
# Otherwise it is registered only with the first server.
cfg.CONF.register_opts(
    opt
    for group, opts in messaging_opts.list_opts()
    for opt in opts
    if group is None and opt.name == 'executor_thread_pool_size'
)


def threads() -> upgradecheck.Result:
    """Check the number of threads against that of busy resources."""
    report = check_report.CheckReport()
    pool = cfg.CONF.executor_thread_pool_size
    workers = _workers()
    report.good(
        f'A heat-engine of this heat.conf has {workers * pool} threads, one '
        'for each resource that is worked on or waits: num_engine_workers '
        f'is {workers}, executor_thread_pool_size {pool}.'
    )
    context = heat_context.get_admin_context()
    try:
        running = _running_workers(context)
        busy = resources.count_busy(context)
    except Exception as exc:
        # The database's message may quote its password.
        report.warn(
            'Cannot count the resources in progress, because the database '
            f'([database] connection) fails with {type(exc).__name__}.'
        )
        return report.result()
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
    return report.result()


def _workers() -> int:
    """Return how many processes heat-engine forks; as in heat.cmd.engine."""
    configured = cfg.CONF.num_engine_workers
    return int(configured or max(4, processutils.get_worker_count()))


def _running_workers(context: object) -> int:
    """Return how many processes of heat-engine have reported recently."""
    rows = service_objects.Service.get_all(context)
    return sum(
        service_utils.format_service(row)[service_utils.SERVICE_STATUS] == 'up'
        for row in rows
    )


def single_groups() -> upgradecheck.Result:
    """Name the stacks that have groups without nested stack, by project.

    Heat's own classes cannot serve such groups.
    """
    report = check_report.CheckReport()
    try:
        context = heat_context.get_admin_context()
        stacks = resources.with_groups(context, READ + 1)
    except Exception as exc:
        # The database's message may quote its password.
        report.warn(
            'Cannot read which groups have no nested stack, because the '
            f'database ([database] connection) fails with '
            f'{type(exc).__name__}.'
        )
        return report.result()
    if not stacks:
        report.good('No stack has a group without nested stack.')
        return report.result()
    number = f'{len(stacks)} stacks'
    if len(stacks) > READ:
        number = f'More than {READ} stacks'
    report.good(f'{number} have groups without nested stack. {_REMEDY}')
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
    return report.result()
