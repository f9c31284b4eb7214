# SPDX-License-Identifier: Apache-2.0
"""Scans for runs of dead engines, and for those that are no longer kept."""

from collections import abc
import time

from heat.common import context as heat_context
from heat.db import api as db_api

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.engine import process
from heat_plugins.engine import rescue
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import run_tables
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_fleet
from heat_plugins.runs import run_store

LOG = foreign.logger(__name__)

#: Seconds between two scans for runs of dead engines, and for those that are
#: no longer kept.
RESCUE, RETENTION_INTERVAL = 10.0, 600.0


def rescue_runs(
    sleep: abc.Callable[[float], None] = time.sleep,
) -> abc.Callable[[], None]:
    """Return what leads runs of dead engines, once there may be any.

    A warning of `run_tables` says where the tables are missing.
    """
    await_tables(sleep)

    def look() -> None:
        for leader in leading.leaders():
            take_over(leader, run_rows.RunRows())

    return look


def await_tables(sleep: abc.Callable[[float], None] = time.sleep) -> None:
    """Wait until the tables of runs are there."""
    while not _has_tables():
        sleep(RESCUE)


def _has_tables() -> bool:
    try:
        return run_tables.is_ready(db_api.get_engine())
    except Exception as exc:
        LOG.debug('Cannot look for the tables: %s', foreign.brief(exc))
        return False


def take_over(leader: leading.Leader, store: run_store.RunStore) -> None:
    """Let a leader resume the runs of engines that have died."""
    others = {*store.leaders()} - {leader.engine_id}
    context = heat_context.get_admin_context()
    for dead in rescue.dead_engines(context, others):
        taken = store.take_over(str(dead), leader.engine_id, run_store.PAGE)
        if taken:
            LOG.warning(
                'heat-engine resumes %(number)d runs of engine '
                '%(engine)s, which has died',
                {'number': len(taken), 'engine': dead},
            )
            leader.wake(*taken)
    # A user may have retried a run of this engine.
    leader.wake()


def remove_surplus(store: run_store.RunStore) -> None:
    """Remove runs that users have deleted, or that are no longer kept.

    Their objects go first. While the object store is away, both wait.
    """
    away: set[str] = set()
    while found := [e for e in store.surplus() if e.project_id not in away]:
        for each in found:
            if each.project_id in away:
                continue
            try:
                run_fleet.clear(each)
            except errors.Unavailable as exc:
                away.add(each.project_id)
                LOG.info(
                    'Cannot delete the objects of run %(id)s; retrying: '
                    '%(error)s',
                    {'id': each.run_id, 'error': exc},
                )
            else:
                store.remove(each)


def forget_surplus(clock: abc.Callable[[], float] = time.time) -> None:
    """Do so in Heat's database, if its tables are there.

    The engines that live take turns, as a list of all projects costs much.
    """
    alive = rescue.reporting(heat_context.get_admin_context())
    for leader in leading.leaders():
        engines = sorted({*alive, leader.engine_id})
        turn = int(clock() // RETENTION_INTERVAL) % len(engines)
        if engines[turn] == leader.engine_id and _has_tables():
            remove_surplus(run_rows.RunRows())


RETENTION = process.Scan(
    name='heat-plugins-run-retention',
    wanted='runs that are no longer kept',
    begin=lambda: forget_surplus,
    interval=RETENTION_INTERVAL,
)

SCAN = process.Scan(
    name='heat-plugins-run-rescue',
    wanted='runs of dead engines',
    begin=rescue_runs,
    interval=RESCUE,
)
