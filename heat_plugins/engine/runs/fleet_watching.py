# SPDX-License-Identifier: Apache-2.0
"""Advancing the operations that no other process advances.

The process that starts an operation may end: a command ends when its user
interrupts it, and a signal or workflow waits for nothing. While an operation
runs, Heat has a config of the group `fleet_requests.GROUP`, which names it and
its stacks. Each process with an engine polls for those, and takes an operation
over once its lease is no longer renewed. It acts with the credentials that are
stored with one of the stacks, and only in the project of the config.
"""

from collections import abc
import dataclasses
import datetime
import json
import threading
import time
from typing import Any

from heat.common import context as heat_context
from heat.db import api as db_api
from heat.db import models
from heat.engine import stack as parser
from heat.rpc import client as rpc_client
import sqlalchemy

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import pool as pools
from heat_plugins.clients import heat_swift
from heat_plugins.engine.database import own_heat
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import fleets

LOG = foreign.logger(__name__)

#: In whose name an engine advances an operation.
WHO = 'heat-engine'

# Operations that one process advances at a time, and how many of them for
# one project.
_MOST, _MOST_OF_PROJECT = 8, 4

# Configs that one look reads of a project, their bytes, and the stacks that
# are tried for one. Any user can create such configs.
_READ, _LENGTH, _STACKS = 50, 100_000, fleet_requests.STACKS

# Seconds between two steps, at first and while nothing happens.
_FIRST, _LONGEST = 1.0, 5.0

# Seconds after which what names no operation is a leftover.
_LEFTOVER = 600

_lock = threading.Lock()
# The project, by the ID of the config.
_advanced: dict[str, str] = {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Registered:
    """An operation as Heat knows it.

    :ivar config_id: the config that registers it.
    :ivar stacks: the IDs of the root stacks, as the config's creator wrote
        them; not checked.
    """

    config_id: str
    operation_id: str
    project_id: str
    stacks: tuple[str, ...]
    age: float


def registered(context: heat_context.RequestContext) -> list[Registered]:
    """Return the operations that go on, of all projects."""
    row = models.SoftwareConfig
    # The first of each project come first, so that none hides another's.
    rank = sqlalchemy.func.row_number().over(
        partition_by=row.tenant, order_by=row.created_at
    )
    with db_api.context_manager.reader.using(context):
        ranked = (
            context.session.query(
                row.id,
                row.name,
                row.tenant,
                row.config,
                row.created_at,
                rank.label('rank'),
            )
            .filter(row.group == fleet_requests.GROUP)
            .filter(sqlalchemy.func.length(row.config) <= _LENGTH)
            .subquery()
        )
        found = (
            context.session.query(ranked)
            .filter(ranked.c.rank <= _READ)
            .order_by(ranked.c.rank, ranked.c.created_at)
            .all()
        )
        return [one for each in found if (one := _registered(*each[:5]))]


def _registered(
    config_id: str, name: str, tenant: str, config: Any, created_at: Any
) -> Registered | None:
    try:
        stacks = json.loads(config['config'])['stacks']
        return Registered(
            config_id=config_id,
            operation_id=str(name),
            project_id=tenant,
            stacks=tuple(str(one) for one in stacks[:_STACKS]),
            age=_age(created_at),
        )
    except (KeyError, TypeError, ValueError):
        # Not ours: another program uses the same group.
        return None


def _age(created_at: datetime.datetime | None) -> float:
    if created_at is None:
        return 0.0
    # Heat's times are in UTC, and do not say so.
    now = datetime.datetime.now(datetime.UTC)
    return (now - created_at.replace(tzinfo=datetime.UTC)).total_seconds()


def look() -> list[str]:
    """Look once; return the operations that are taken over."""
    taken = []
    for one in registered(heat_context.get_admin_context()):
        with _lock:
            if one.config_id in _advanced or not _has_place(one.project_id):
                continue
            _advanced[one.config_id] = one.project_id
        led = None
        try:
            led = _led(one)
        except Exception as exc:
            LOG.info(
                'Cannot advance operation %(id)s now: %(error)s',
                {'id': one.operation_id, 'error': exc},
            )
        finally:
            if led is None:
                _leave(one)
        if led is not None:
            taken.append(one.operation_id)
            threading.Thread(
                target=_advance,
                args=(one, *led),
                name=f'operation {one.operation_id}',
                daemon=True,
            ).start()
    return taken


def _leave(one: Registered) -> None:
    with _lock:
        _advanced.pop(one.config_id, None)


def _has_place(project_id: str) -> bool:
    """Say whether this process can advance one more of a project."""
    own = [*_advanced.values()].count(project_id)
    return len(_advanced) < _MOST and own < _MOST_OF_PROJECT


def _led(one: Registered) -> tuple[advancing.Advancer, Any] | None:
    """Lead an operation; None if another process does, or it has ended.

    :returns: what advances it, and the stack whose credentials it has.
    """
    for stack_id in one.stacks:
        stack = _stack(stack_id, one.project_id)
        if stack is None:
            continue
        heat = own_heat.Heat(rpc_client.EngineClient(), stack.context)
        store = stack.clients.client(heat_swift.CLIENT_NAME)
        # Heat's contexts are not for several threads.
        door = fleets.Fleets.with_own_key(
            heat, store, who=WHO, pool=pools.Pool(workers=1)
        )
        try:
            advancer = door.advancer(one.operation_id)
            found = advancer.step()
        except errors.NotFound:
            if one.age > _LEFTOVER:
                heat.delete_config(one.config_id)
            return None
        if advancer.is_leading:
            return advancer, stack
        if found.ended and one.age > _LEFTOVER:
            heat.delete_config(one.config_id)
        return None
    return None


def _stack(stack_id: str, project_id: str) -> Any:
    """Load a stack of a project, with its stored credentials."""
    try:
        stack = parser.Stack.load(
            heat_context.get_admin_context(),
            stack_id=stack_id,
            use_stored_context=True,
        )
    except Exception as exc:
        LOG.debug('Stack %s cannot be loaded: %s', stack_id, exc)
        return None
    # Another project would find nothing, and take all for gone.
    is_ours = stack.tenant_id == stack.context.project_id == project_id
    return stack if is_ours else None


def _advance(
    one: Registered, advancer: advancing.Advancer, stack: Any
) -> None:
    """Advance an operation until it has ended.

    :param stack: kept so long, as Heat's clients refer to it weakly.
    """
    LOG.info('Advancing operation %s', one.operation_id)
    try:
        _step_on(advancer)
    except Exception as exc:
        LOG.warning(
            'Cannot advance operation %(id)s; it waits for the next scan '
            'or command: %(error)s',
            {'id': one.operation_id, 'error': exc},
        )
    finally:
        _leave(one)
    found = advancer.operation
    LOG.info(
        'Operation %(id)s is %(state)s: %(reason)s',
        {
            'id': found.id,
            'state': found.control.phase.value,
            'reason': found.control.reason,
        },
    )


def _step_on(
    advancer: advancing.Advancer,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> None:
    pause = _FIRST
    while advancer.is_leading:
        before = advancer.operation
        try:
            advancer.step()
        except errors.Unavailable as exc:
            LOG.info('Retrying operation %s: %s', before.id, exc)
        if not advancer.is_busy:
            is_news = advancer.operation.attempts != before.attempts
            pause = _FIRST if is_news else min(pause * 1.5, _LONGEST)
            sleep(pause)
