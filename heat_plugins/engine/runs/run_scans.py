# SPDX-License-Identifier: Apache-2.0
"""Scans for runs of dead engines, those to delete, and notices to send.

Threads of their own send notices, see `notifying`, so that no receiver delays
a run or a tick; a few of each project at a time, so that one project takes few
of the threads.
"""

from collections import abc
import contextlib
import functools
import time
from typing import Any, TypeAlias
import uuid

from heat.common import context as heat_context
from heat.db import api as db_api
from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import metrics
from heat_plugins.clients import webhooks
from heat_plugins.engine import process
from heat_plugins.engine import rescue
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import run_tables
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_fleet
from heat_plugins.runs import notifying
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs import summary
from heat_plugins.runs import telling

LOG = foreign.logger(__name__)

#: Seconds between two scans for runs of dead engines, and for those that are
#: no longer kept.
RESCUE, RETENTION_INTERVAL = 10.0, 600.0

#: The threads that send notices.
PLACES = process.Places(32, 2)

# Seconds between two scans for runs that have something to tell, the most runs
# of one, and tries to record that a notice was sent.
_INTERVAL, _MOST, _TRIES = 2.0, 200, 5

_Look: TypeAlias = abc.Callable[[leading.Leader, run_store.RunStore], None]


def begin(
    look: _Look, sleep: abc.Callable[[float], None] = time.sleep
) -> abc.Callable[[], None]:
    """Return a scan for the leader, once there are tables of runs.

    A warning of `run_tables` says where they are missing.
    """
    while True:
        with contextlib.suppress(Exception):
            if run_tables.is_ready(db_api.get_engine()):
                break
        sleep(RESCUE)

    def look_once() -> None:
        for leader in leading.leaders:
            look(leader, run_rows.RunRows())

    return look_once


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


def remove_surplus(
    leader: leading.Leader,
    store: run_store.RunStore,
    clock: abc.Callable[[], float] = time.time,
) -> None:
    """Remove runs that users have deleted, or that are no longer kept.

    The engines that live take turns, as a list of all projects costs much.
    Objects go first. While the object store is away, both wait.
    """
    alive = rescue.reporting(heat_context.get_admin_context())
    engines = sorted({*alive, leader.engine_id})
    turn = int(clock() // RETENTION_INTERVAL) % len(engines)
    if engines[turn] != leader.engine_id:
        return
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


# Notices


def tell(
    leader: leading.Leader,
    store: run_store.RunStore,
    clock: abc.Callable[[], float] = time.time,
) -> None:
    """Send the due notices, those of each run in a thread."""
    due = store.with_notices(leader.engine_id, clock(), _MOST)
    for run_id, project_id in due.items():
        if PLACES.take(run_id, project_id):
            PLACES.run(
                run_id,
                f'notice of run {run_id}',
                _try_to_tell,
                store,
                run_id,
                clock,
            )


def _try_to_tell(
    store: run_store.RunStore, run_id: str, clock: abc.Callable[[], float]
) -> None:
    """Tell a run's webhook; a failure is logged and retried."""
    try:
        _tell(store, run_id, clock)
    except (run_store.Stale, errors.NotFound):
        # Another process tells it, or a user has deleted it.
        return
    except errors.Error as exc:
        LOG.info(
            'Cannot tell of run %(id)s; retrying: %(error)s',
            {'id': run_id, 'error': foreign.brief(exc)},
        )


def _tell(
    store: run_store.RunStore, run_id: str, clock: abc.Callable[[], float]
) -> None:
    """Record the notices of a run, and send the first of them."""
    before, now = store.load(run_id), clock()
    due = telling.due_at(before.run)
    if due is not None and due > now:
        return
    after, notice = telling.tried(telling.noted(before.run, now), now)
    stored = store.step(before, after, str(uuid.uuid4()))
    order = telling.wanted(after)
    if notice is None or order is None:
        return
    first = after.order.members[:1]
    where = {
        'id': f'{run_id}.{notice.event.value}.{notice.tick}',
        'project': stored.project_id,
        'stack': {
            'id': ''.join(each.stack_id for each in first),
            'name': ''.join(each.stack_name for each in first),
        },
        'run': run_id,
        'action': after.order.action,
    }
    why = why_not(
        lambda: send(
            notice,
            where,
            lambda: after,
            clock(),
            url=order.url,
            secret=order.secret,
        )
    )
    for _ in range(_TRIES):
        told = stored.run.changed(
            notices=stored.run.control.notices.told(notice, why, clock())
        )
        if told == stored.run:
            return
        with contextlib.suppress(run_store.Stale):
            store.step(stored, told, str(uuid.uuid4()))
            if why:
                log_given_up(f'run {run_id}', notice.event, why)
            return
        stored = store.load(run_id)


def send(
    notice: notifying.Notice,
    where: abc.Mapping[str, Any],
    read: abc.Callable[[], run_records.RunRecord],
    now: float,
    *,
    url: str,
    secret: str,
) -> None:
    """Send a notice to a webhook.

    :param where: its ID, and what is told of project, stack, schedule and
        run; see `notifying.body`.
    :param read: returns the run.
    :raises errors.Error: the operator does not permit the webhook, or it has
        not taken the notice. The message quotes no URL.
    """
    webhook = webhooks.Webhook.parse(url)
    hosts = webhooks.Hosts(cfg.CONF.heat_plugins.notify_hosts)
    # What is refused costs no request.
    hosts.check(webhook)
    servers: list[dict[str, str]] | None = []
    if notice.event in notifying.OF_SERVERS:
        try:
            servers = telling.servers(read(), notice.event)
        except errors.Error:
            servers = None
    body = notifying.body(
        notice, {**where, 'due': summary.time(notice.tick)}, servers
    )
    webhooks.send(webhook, hosts, notifying.headers(body, secret, now), body)


def why_not(send: abc.Callable[[], object]) -> str:
    """Send a notice; return why that failed, or an empty text."""
    try:
        send()
    except errors.Error as exc:
        why = bounds.shortened(str(exc), bounds.PART)
    except Exception as exc:
        # It may quote the URL.
        why = type(exc).__name__
    else:
        return ''
    LOG.info('Cannot send a notice; retrying for an hour: %s', why)
    return why


def log_given_up(sender: str, what: str, why: str) -> None:
    """Log and count a notice that was given up."""
    metrics.count(metrics.NOTIFICATIONS_FAILED)
    LOG.warning(
        'Gave up a notice of %(sender)s (%(what)s): %(why)s',
        {'sender': sender, 'what': what, 'why': why},
    )


RETENTION = process.Scan(
    name='heat-plugins-run-retention',
    wanted='runs that are no longer kept',
    begin=functools.partial(begin, remove_surplus),
    interval=RETENTION_INTERVAL,
)

SCAN = process.Scan(
    name='heat-plugins-run-rescue',
    wanted='runs of dead engines',
    begin=functools.partial(begin, take_over),
    interval=RESCUE,
)

#: Nothing is told if the operator permits no host.
NOTICES = process.Scan(
    name='heat-plugins-notices',
    wanted='runs that have something to tell',
    begin=functools.partial(begin, tell),
    interval=_INTERVAL,
    option='notify_hosts',
)
