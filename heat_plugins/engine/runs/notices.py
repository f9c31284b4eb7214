# SPDX-License-Identifier: Apache-2.0
"""Sending notices to webhooks, see `notifying`, apart from what runs.

Threads of their own send them, so that no receiver delays a run or a tick; a
few of each project at a time, so that one project takes few of the threads.
"""

from collections import abc
import contextlib
import time
from typing import Any
import uuid

from heat.common import context as heat_context
from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import metrics
from heat_plugins.clients import webhooks
from heat_plugins.engine import process
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_scans
from heat_plugins.runs import notifying
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs import summary
from heat_plugins.runs import telling
from heat_plugins.runs.schedules import schedules

LOG = foreign.logger(__name__)

#: The threads that send.
PLACES = process.Places(32, 2)

#: Seconds between two scans for runs that have something to tell.
INTERVAL = 2.0

# Runs that one scan tells of, and tries to record that a notice was sent.
_MOST, _TRIES = 200, 5

_Event = notifying.NoticeEvent


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
    webhook, hosts = webhooks.Webhook.parse(url), permitted()
    # What is refused costs no request.
    hosts.check(webhook)
    due = {'due': summary.time(notice.tick)}
    about = servers(read, notice.event)
    body = notifying.body(notice, {**where, **due}, about)
    webhooks.send(webhook, hosts, notifying.headers(body, secret, now), body)


def permitted() -> webhooks.Hosts:
    """Return the hosts that the operator permits."""
    return webhooks.Hosts(cfg.CONF.heat_plugins.notify_hosts)


def tell(
    row: schedule_rows.ScheduleRow,
    notice: notifying.Notice,
    opened: abc.Callable[[], tuple[Any, Any]],
    read: abc.Callable[[str], run_records.RunRecord],
    clock: abc.Callable[[], float],
) -> None:
    """Send a notice of a schedule, and record how that went.

    :param opened: returns its stack, and its resource, which does not keep
        the stack alive.
    :param read: returns a run.
    """
    why = why_not(lambda: _send(row, notice, *opened(), read, clock))
    context, now = heat_context.get_admin_context(), clock()
    # What is not recorded is repeated.
    with contextlib.suppress(Exception):
        is_changed = schedule_rows.change(
            context, row.number, lambda kept: kept.told(notice, why, now)
        )
        if why and is_changed:
            sender = f'schedule {row.name} of stack {row.stack_id}'
            log_given_up(sender, notice.event.value, why)
            said = f'{notice.event.value}: {why}'
            kind = heat_values.EventKind.NOT_TOLD
            schedule_rows.add_event(context, row, said, kind)


def log_given_up(sender: str, what: str, why: str) -> None:
    """Log and count a notice that was given up."""
    metrics.count(metrics.NOTIFICATIONS_FAILED)
    LOG.warning(
        'Gave up a notice of %(sender)s (%(what)s): %(why)s',
        {'sender': sender, 'what': what, 'why': why},
    )


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


def _send(
    row: schedule_rows.ScheduleRow,
    notice: notifying.Notice,
    stack: Any,
    resource: Any,
    read: abc.Callable[[str], run_records.RunRecord],
    clock: abc.Callable[[], float],
) -> None:
    with resource.frozen_properties() as props:
        action = props[resource.ACTION]
    run_id = schedules.run_id(row.id, notice.tick)
    where = {
        'id': f'{run_id}.{notice.event.value}',
        'project': row.project_id,
        'stack': {'id': row.stack_id, 'name': row.stack_name},
        'schedule': {'id': row.id, 'name': row.name},
        'run': run_id,
        'action': action,
    }
    receiver = resource.receiver()
    send(notice, where, lambda: read(run_id), clock(), **receiver)


def servers(
    read: abc.Callable[[], run_records.RunRecord], event: _Event
) -> list[dict[str, str]] | None:
    """Return the servers that a notice is about; None if that is unknown.

    :param read: returns the run.
    """
    if event not in notifying.OF_SERVERS:
        return []
    try:
        run = read()
    except errors.Error:
        return None
    members = run.failures
    if event is _Event.WAITING:
        members = [*run.live, *run.pending]
    return [_server(run, member) for member in members]


def _server(run: run_records.RunRecord, member: int) -> dict[str, str]:
    target, state = run.order.members[member], run.attempts[member]
    return {
        'stack': target.stack_name,
        'resource': target.resource,
        'server': target.server_name or target.server_id,
        'state': state.state.value if state.state else 'pending',
    }


class Teller:
    """Tells webhooks of runs, for one engine."""

    def __init__(
        self,
        engine_id: str,
        store: run_store.RunStore,
        clock: abc.Callable[[], float] = time.time,
    ) -> None:
        self._engine_id = engine_id
        self._store = store
        self._clock = clock

    def look(self) -> None:
        """Tell what is due, each run in a thread."""
        due = self._store.with_notices(self._engine_id, self._clock(), _MOST)
        for run_id, project_id in due.items():
            if PLACES.take(run_id, project_id):
                name = f'notice of run {run_id}'
                PLACES.run(run_id, name, self._try_to_tell, run_id)

    def _try_to_tell(self, run_id: str) -> None:
        try:
            self._tell(run_id)
        except (run_store.Stale, errors.NotFound):
            # Another process tells it, or a user has deleted it.
            return
        except errors.Error as exc:
            LOG.info(
                'Cannot tell of run %(id)s; retrying: %(error)s',
                {'id': run_id, 'error': foreign.brief(exc)},
            )

    def _tell(self, run_id: str) -> None:
        """Record the notices of a run, and send the first of them."""
        before, now = self._store.load(run_id), self._clock()
        due = telling.due_at(before.run)
        if due is not None and due > now:
            return
        after, notice = telling.tried(telling.noted(before.run, now), now)
        run = self._store.step(before, after, str(uuid.uuid4()))
        order = telling.wanted(after)
        if notice is None or order is None:
            return
        why = why_not(lambda: self._send(run, order, notice))
        for left in reversed(range(_TRIES)):
            told = telling.told(run.run, notice, why, self._clock())
            if told == run.run:
                return
            try:
                self._store.step(run, told, str(uuid.uuid4()))
            except run_store.Stale:
                if not left:
                    raise
                run = self._store.load(run_id)
                continue
            if why:
                log_given_up(f'run {run_id}', notice.event, why)
            return

    def _send(
        self,
        stored: run_store.StoredRun,
        order: notifying.NoticeOrder,
        notice: notifying.Notice,
    ) -> None:
        run, first = stored.run, stored.run.order.members[:1]
        where = {
            'id': f'{run.id}.{notice.event.value}.{notice.tick}',
            'project': stored.project_id,
            'stack': {
                'id': ''.join(each.stack_id for each in first),
                'name': ''.join(each.stack_name for each in first),
            },
            'run': run.id,
            'action': run.order.action,
        }
        send(
            notice,
            where,
            lambda: run,
            self._clock(),
            url=order.url,
            secret=order.secret,
        )


def begin() -> abc.Callable[[], None] | None:
    """Return what tells webhooks, once the tables are there.

    None if the operator permits no host.
    """
    if not cfg.CONF.heat_plugins.notify_hosts:
        return None
    run_scans.await_tables()

    def look() -> None:
        for leader in leading.leaders():
            Teller(leader.engine_id, run_rows.RunRows()).look()

    return look


SCAN = process.Scan(
    name='heat-plugins-notices',
    wanted='runs that have something to tell',
    begin=begin,
    interval=INTERVAL,
    option=None,
)
