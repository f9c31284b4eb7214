# SPDX-License-Identifier: Apache-2.0
"""Sending notices to webhooks, see `notifying`, apart from what runs.

Threads of their own send them, so that no receiver delays a run or a tick; a
few of each project at a time, so that one project takes few of the threads.
"""

from collections import abc
import contextlib
import dataclasses
import functools
import itertools
import math
import threading
import time
from typing import Any

from heat.common import context as heat_context
from heat.common import exception
from heat.objects import software_config as config_objects
from keystoneauth1 import exceptions
from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import metrics
from heat_plugins import tokens
from heat_plugins.clients import webhooks
from heat_plugins.engine import process
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.database import schedule_rows
from heat_plugins.runs import notifying
from heat_plugins.runs import summary
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import notice_orders
from heat_plugins.runs.records import record_names
from heat_plugins.timeline import kinds

LOG = foreign.logger(__name__)

#: The threads that send.
PLACES = process.Places(32, 2)

#: Requests, seconds and bytes to read how an operation has ended, and which
#: servers a notice names.
BUDGET = (400, 60.0, 64 * 1024 * 1024)

# Seconds for which the addresses of the cloud are remembered.
_REMEMBERED = 300.0

_UNKNOWN = "heat-engine cannot find out which addresses are the cloud's own"

_Event = notifying.NoticeEvent


@dataclasses.dataclass(frozen=True, kw_only=True)
class Receiver:
    """Where a user wants notices, as a template or command says.

    :raises errors.Invalid: it is invalid; the message quotes nothing.
    """

    url: str = dataclasses.field(repr=False)
    secret: str = dataclasses.field(repr=False)

    def __post_init__(self) -> None:
        notifying.check_secret(self.secret)
        _ = self.webhook

    @functools.cached_property
    def webhook(self) -> webhooks.Webhook:
        return webhooks.Webhook.parse(self.url)

    def check(self) -> None:
        """Refuse it if the operator does not permit it.

        :raises errors.Refused: the message names the option.
        """
        permitted().check(self.webhook)

    def send(
        self,
        notice: notifying.Notice,
        where: abc.Mapping[str, Any],
        stack: Any,
        opened: abc.Callable[[], fleets.Fleets],
        clock: abc.Callable[[], float],
    ) -> None:
        """Send a notice of an operation.

        :param where: its ID, and what is told of project, stack, schedule and
            operation; see `notifying.body`.
        :param stack: whose owner can read the catalogue.
        :param opened: returns the operations of its project.
        :raises errors.Error: it was not taken.
        """
        told: list[dict[str, str]] | None = []
        if notice.event in notifying.OF_SERVERS:
            told = servers(opened(), where['operation'], notice.event)
        due = {'due': summary.time(notice.tick)}
        body = notifying.body(notice, {**where, **due}, told)
        webhooks.send(
            self.webhook,
            permitted(),
            CLOUD.addresses(stack),
            notifying.headers(body, self.secret, clock()),
            body,
        )


def permitted() -> webhooks.Hosts:
    """Return the hosts that the operator permits."""
    return webhooks.Hosts(cfg.CONF.heat_plugins.notify_hosts)


def tell(
    row: schedule_rows.ScheduleRow,
    notice: notifying.Notice,
    opened: abc.Callable[[], tuple[Any, Any, fleets.Fleets]],
    clock: abc.Callable[[], float],
) -> None:
    """Send a notice of a schedule, and record how that went.

    :param opened: returns its stack, its resource, which does not keep the
        stack alive, and the operations of its project.
    """
    why = why_not(lambda: _send(row, notice, *opened(), clock))
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
            kind = kinds.EventKind.NOT_TOLD
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
    door: fleets.Fleets,
    clock: abc.Callable[[], float],
) -> None:
    receiver = resource.receiver()
    # What is refused costs no request.
    receiver.check()
    with resource.frozen_properties() as props:
        action = props[resource.ACTION]
    operation_id = record_names.id_of_tick(row.id, notice.tick)
    where = {
        'id': f'{operation_id}.{notice.event.value}',
        'project': row.project_id,
        'stack': {'id': row.stack_id, 'name': row.stack_name},
        'schedule': {'id': row.id, 'name': row.name},
        'operation': operation_id,
        'action': action,
    }
    receiver.send(notice, where, stack, lambda: door, clock)


def answer(
    context: heat_context.RequestContext, shown: abc.Mapping[str, Any]
) -> str | None:
    """Return what tells whether an engine sends the notices of an operation.

    :param shown: a deployment that was changed; None if it is for none.
    """
    is_asked = (shown['action'], shown['status']) == (
        notice_orders.ACTION,
        binding.IN_PROGRESS,
    )
    if not is_asked or not cfg.CONF.heat_plugins.rescue_interval:
        return None
    config = own_heat.config(
        config_objects.SoftwareConfig.get_by_id(context, shown['config_id'])
    )
    if config.group != binding.NOTICES:
        return None
    try:
        order = notice_orders.read(config.config)
        Receiver(url=order.url, secret=order.secret).check()
    except (errors.Refused, ValueError) as exc:
        return tokens.REFUSES.after(str(exc))
    return tokens.TELLS.after('heat-engine sends notices')


class CloudAddresses:
    """The addresses of the cloud's services, as this process has read them.

    :param clock: seconds, monotonic.
    """

    def __init__(
        self, clock: abc.Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        # Two that read at once would forget what one of them has learnt.
        self._lock = threading.Lock()
        self._catalogue: frozenset[str] = frozenset()
        # Of each host all that it ever had: an outage of the DNS, or one
        # answer of several, must not permit what was refused before.
        self._known: abc.Mapping[str, frozenset[webhooks.Address]] = {}
        self._read_at = -math.inf

    def addresses(self, stack: Any) -> frozenset[webhooks.Address]:
        """Return them, of heat.conf and of the catalogues that were read.

        Those count, too, if the stack's owner may no longer read it: to tell
        that is what a notice is for.

        :raises errors.Unavailable: they are not known.
        """
        with self._lock:
            now = self._clock()
            if not 0 <= now - self._read_at < _REMEMBERED:
                self._read(stack)
                self._read_at = now
            return frozenset(itertools.chain(*self._known.values()))

    def _read(self, stack: Any) -> None:
        with contextlib.suppress(
            exceptions.ClientException, exception.HeatException
        ):
            self._catalogue |= frozenset(_endpoints(stack))
        if not self._catalogue:
            raise errors.Unavailable(_UNKNOWN)
        urls = [*self._catalogue, *_configured(cfg.CONF)]
        hosts = {host for url in urls for host in webhooks.hosts_of(url)}
        self._known = {host: self._resolve(host) for host in sorted(hosts)}

    def _resolve(self, host: str) -> frozenset[webhooks.Address]:
        known = self._known.get(host, frozenset())
        try:
            return known.union(webhooks.resolve(host, None))
        except errors.Unavailable as exc:
            if known:
                return known
            # Users must not read the names of the operator's hosts.
            LOG.warning('%s of the cloud, so no notice is sent', exc)
            raise errors.Unavailable(_UNKNOWN) from None


CLOUD = CloudAddresses()


def _endpoints(stack: Any) -> list[str]:
    """Return the URLs of the catalogue of a stack's owner."""
    context = stack.context
    access = context.auth_plugin.get_access(context.keystone_session)
    services = access.service_catalog.get_endpoints_data()
    return [each.url for service in services.values() for each in service]


def _configured(values: abc.Mapping[str, Any]) -> abc.Iterator[str]:
    """Yield the URLs among options of heat.conf, and of its groups."""
    for name in values:
        with contextlib.suppress(cfg.Error):
            value = values[name]
            if isinstance(value, abc.Mapping):
                yield from _configured(value)
            elif isinstance(value, str) and '://' in value:
                yield value


def servers(
    door: fleets.Fleets, operation_id: str, event: _Event
) -> list[dict[str, str]] | None:
    """Return the servers that a notice is about; None if that is unknown."""
    try:
        operation = door.show(operation_id)
    except errors.Error:
        return None
    members = operation.failures
    if event is _Event.WAITING:
        members = [*operation.live, *operation.pending]
    return [_server(operation, member) for member in members]


def _server(operation: operations.Operation, member: int) -> dict[str, str]:
    target, state = operation.order.members[member], operation.attempts[member]
    return {
        'stack': target.stack_name,
        'resource': target.resource,
        'server': target.server_name or target.server_id,
        'state': state.state.value if state.state else 'pending',
    }
