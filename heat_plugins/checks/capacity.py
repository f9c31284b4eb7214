# SPDX-License-Identifier: Apache-2.0
"""Whether the engines have threads enough for what waits.

In Heat a resource that is being worked on holds one thread of the engine's
process until it is done, and a deployment waits for its server all that
time. What comes when all threads are held waits in the message queue.
"""

from heat.common import context as heat_context
from heat.common import service_utils
from heat.objects import service as service_objects
from oslo_concurrency import processutils
from oslo_config import cfg
from oslo_messaging import opts as messaging_opts
from oslo_upgradecheck import upgradecheck

from heat_plugins.checks import report
from heat_plugins.engine.database import resources

#: The part of the threads whose use is worth a warning.
CROWDED = 0.75

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
    found = report.Report()
    pool = cfg.CONF.executor_thread_pool_size
    workers = _workers()
    found.good(
        f'A heat-engine of this heat.conf has {workers * pool} threads, one '
        'for each resource that is worked on or waits: num_engine_workers '
        f'is {workers}, executor_thread_pool_size {pool}.'
    )
    context = heat_context.get_admin_context()
    try:
        running = _running_workers(context)
        busy = resources.count_busy(context)
    except Exception as exc:
        # What a database says may hold its password.
        found.warn(
            'Cannot count the resources in progress, because the database '
            f'([database] connection) fails with {type(exc).__name__}.'
        )
        return found.result()
    room = (running or workers) * pool
    told = (
        f'Resources in progress: {busy}; threads of the workers that run, '
        f'on all hosts: {room}'
    )
    more = (
        'raise executor_thread_pool_size or num_engine_workers, or start '
        'heat-engine on more hosts.'
    )
    if not running:
        found.warn(
            'No heat-engine runs, or none has reported to the database '
            'recently.'
        )
    elif busy >= room:
        found.fail(f'{told}. Further resources must wait; {more}')
    elif busy >= CROWDED * room:
        found.warn(f'{told}; {more}')
    else:
        found.good(f'{told}.')
    return found.result()


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
