# SPDX-License-Identifier: Apache-2.0
"""Advancing the operations that no other process advances.

The process that starts an operation may end: a command ends when its user
interrupts it, and a signal or workflow waits for nothing. While an operation
runs, Heat has a config and a deployment of it, see `binding`, which name
the operation and its stacks, and prove its records. Each process with an
engine polls for those, and takes an operation over once its lease is no longer
renewed. It acts with the credentials that are stored with one of the stacks,
and only in the project of the config.
"""

import collections
from collections import abc
import contextlib
import dataclasses
import datetime
import random
import threading
import time
from typing import Any, TypeVar

from heat.common import context as heat_context
from heat.engine import stack as parser
from heat.rpc import client as rpc_client
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import metrics
from heat_plugins import pools
from heat_plugins import tokens
from heat_plugins.clients import heat_swift
from heat_plugins.engine import process
from heat_plugins.engine.database import in_process
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import scans
from heat_plugins.engine.runs import member_batches
from heat_plugins.engine.runs import notices
from heat_plugins.objectstore import lease
from heat_plugins.objectstore import wire
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.fleet.records import operation_records

LOG = foreign.logger(__name__)

#: In whose name an engine advances an operation.
WHO = 'heat-engine'

# Operations that one process leads, and how many of them for one project.
# While servers work, such an operation costs a thread that sleeps.
_MOST, _MOST_OF_PROJECT = 256, 200

# Those of them, and of a project, that may have more targets than this: it
# keeps what is known of each in memory.
_MOST_LARGE, _MOST_LARGE_OF_PROJECT, _TARGETS = 32, 4, 100

# Steps that a process, and one project in it, takes at a time; seconds after
# which a step that has not ended lets another one begin; and projects without
# operations whose turns are kept.
_STEPS, _STEPS_OF_PROJECT, _STEP_SECONDS, _IDLE_PROJECTS = 32, 4, 10.0, 50

# Operations that a process leads up to which each is polled as often as it
# wants; of more, each is polled less often.
_OFTEN = 32

# Configs that one look reads of a project, their bytes, and the stacks that
# are tried for one. Any user can create such configs.
_READ, _LENGTH, _STACKS = 50, binding.LENGTH, binding.STACKS

# Levels of lists and maps in such a config.
_DEPTH = 8

# Requests, seconds and bytes to find out whether a process leads an operation,
# and until this process does, with 10,000 targets that have 32 KiB each.
_LOOK = (50, 60.0, 32 * 1024 * 1024)
_LEAD = (2000, 300.0, 400 * 1024 * 1024)

# Seconds for all operations of a project in one scan, after which the scan
# begins with no other project, and how many stacks to load for an operation.
_SECONDS, _TRIED = 60.0, 3

# Seconds after which what names no operation is a leftover.
_LEFTOVER = 600

# The threads that draw projects from a scan, and the projects whose operations
# they look at now.
_THREADS = 16
_WORKERS = process.Places(_THREADS, _THREADS)
_PROJECTS = process.Places(_THREADS, 1)

# The operations that this process was asked to advance, and how often, and
# after how many seconds, it looks whether their leaders have released them.
_OFFERS = process.Places(2 * _THREADS, _THREADS)
_LOOKS, _LOOK_AGAIN = 20, 0.5

_Item = TypeVar('_Item')

#: Members of an operation whose results are read at the same time: what is
#: deleted of them then is deleted together.
AT_A_TIME = 16

# Seconds of the first delay, and of the longest: after what may pass by
# itself, and after anything else.
_FIRST_DELAY, _PASSING, _LONGEST_DELAY = 30.0, 300.0, 3600.0

_SHOW = '"openstack software deployment operation show" in that project'
_REMEDIES: abc.Mapping[type[errors.Error], str] = {
    # Its message names the remedy.
    errors.Unreadable: '',
    errors.OverBudget: 'If it stays so, delete the operation with "openstack '
    'software deployment operation delete --force" in that project',
    errors.Unavailable: 'Check the object store, Heat and Keystone',
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Delay:
    until: float = 0.0
    failures: int = 0
    is_warned: bool = False


class Backoff:
    """Operations that an engine leaves alone for a while, since they failed.

    Their records are unreadable, cost too much, or cannot be reached. Each
    gets one warning, which names the remedy, and after each failure a longer
    delay. Safe for threads; it remembers those that `keep` was given last.
    """

    def __init__(
        self, clock: abc.Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._delays: dict[str, _Delay] = {}

    @property
    def count(self) -> int:
        """How many operations have failed here since they were advanced."""
        return len(self._delays)

    def is_delayed(self, key: str) -> bool:
        """Say whether an operation is left alone now."""
        with self._lock:
            delay = self._delays.get(key)
            return delay is not None and self._clock() < delay.until

    def add(self, entry: 'Registered', exc: Exception | None = None) -> None:
        """Leave an operation alone; warn of its first failure.

        :param exc: the failure; None if there is no such operation.
        """
        passing = isinstance(exc, errors.Error) and exc.may_pass
        longest = _PASSING if passing else _LONGEST_DELAY
        key = entry.config_id
        with self._lock:
            before = self._delays.get(key) or _Delay()
            seconds = min(
                _FIRST_DELAY * 2.0 ** min(before.failures, 10), longest
            )
            self._delays[key] = _Delay(
                until=self._clock() + seconds,
                failures=before.failures + 1,
                is_warned=exc is not None or before.is_warned,
            )
        if exc is not None and not before.is_warned:
            kind = '' if isinstance(exc, errors.Error) else type(exc).__name__
            LOG.warning(
                'Cannot advance operation %(id)s of project %(project)s; '
                'retrying after %(seconds).0f s, then less often, and '
                'others first: %(error)s. %(remedy)s',
                {
                    'id': entry.operation_id,
                    'project': entry.project_id,
                    'seconds': seconds,
                    'error': ': '.join(filter(None, (kind, str(exc)))),
                    'remedy': _remedy(exc),
                },
            )

    def forget(self, key: str) -> None:
        """Let an operation that is advanced again fail with a new warning."""
        with self._lock:
            self._delays.pop(key, None)

    def keep(self, keys: abc.Set[str]) -> None:
        """Forget all operations but some."""
        with self._lock:
            self._delays = {
                key: delay
                for key, delay in self._delays.items()
                if key in keys
            }


def _remedy(exc: Exception) -> str:
    return next(
        (text for kind, text in _REMEDIES.items() if isinstance(exc, kind)),
        f'See {_SHOW}',
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Registered:
    """An operation as Heat knows it.

    :ivar config_id: the config that registers it.
    :ivar row_id: the deployment that does; None for a former release's.
    :ivar seal: what proves its records.
    :ivar stacks: the IDs of the root stacks, as the config's creator wrote
        them; not checked.
    """

    config_id: str
    operation_id: str
    project_id: str
    stacks: tuple[str, ...]
    age: float
    seal: binding.Seal
    row_id: str | None = None

    @property
    def place(self) -> str:
        """What has a place among those that this process advances."""
        return self.row_id or self.config_id


def registered(
    context: heat_context.RequestContext, operation_id: str | None = None
) -> list[Registered]:
    """Return the operations that go on, of all projects.

    :param operation_id: the only one that is wanted; None for all.
    """
    found = scans.operations(context, operation_id, most=_READ, length=_LENGTH)
    return [entry for each in found if (entry := _registered(*each[:6]))]


def _registered(
    config_id: str,
    name: str,
    tenant: str,
    config: Any,
    created_at: Any,
    row_id: str | None,
) -> Registered | None:
    try:
        text = config['config']
        if not layout.is_operation_id(str(name)):
            return None
        stacks = bounds.read_json(text, depth=_DEPTH)['stacks']
        seal: binding.Seal = binding.Former(operation_id=str(name))
        if row_id is not None:
            seal = binding.Binding.parse(str(name), text)
        return Registered(
            config_id=config_id,
            operation_id=str(name),
            project_id=tenant,
            stacks=tuple(str(each) for each in stacks[:_STACKS]),
            age=_age(created_at),
            seal=seal,
            row_id=row_id,
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


#: What this process advances, and the operations that it leaves alone.
ADVANCED = process.Places(_MOST, _MOST_OF_PROJECT)
LARGE = process.Places(_MOST_LARGE, _MOST_LARGE_OF_PROJECT)
BACKOFF = Backoff()

#: What this process remembers of the operations there are.
REACHES = operation_records.Reaches()

# The turns of all steps, and of those of each project.
_TURNS = process.Turns(_STEP_SECONDS, places=_STEPS)
_TURNS_OF_PROJECTS: process.Shared[str, process.Turns] = process.Shared(
    lambda project_id: process.Turns(_STEP_SECONDS, places=_STEPS_OF_PROJECT),
    lambda turns: turns.is_idle,
    _IDLE_PROJECTS,
)

#: Starts with each engine.
SCAN = process.Scan(
    name='heat-plugins-operations',
    wanted='operations that no process advances',
    begin=lambda: look,
)


def look() -> None:
    """Scan once, several projects at a time."""
    projects: dict[str, list[Registered]] = {}
    context = heat_context.get_admin_context()
    scans.delete_unregistered(context, _LEFTOVER)
    entries = registered(context)
    for each in entries:
        projects.setdefault(each.project_id, []).append(each)
    BACKOFF.keep({each.config_id for each in entries})
    waiting = collections.deque(shuffled(projects.items()))
    for worker in map(str, range(min(_THREADS, len(waiting)))):
        # One of the last scan may be busy.
        if _WORKERS.take(worker, SCAN.name):
            _WORKERS.run(worker, SCAN.name, _draw, waiting)


def _draw(waiting: collections.deque[tuple[str, list[Registered]]]) -> None:
    """Look at projects, one after another, until a scan's time is over."""
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        try:
            project_id, entries = waiting.popleft()
        except IndexError:
            return
        if _PROJECTS.take(project_id, project_id):
            try:
                _look_at(shuffled(entries))
            finally:
                _PROJECTS.leave(project_id)


def look_for(
    operation_id: str, sleep: abc.Callable[[float], None] = time.sleep
) -> None:
    """Take over an operation once its leader has released it.

    The next scan looks for what is not released within some seconds.
    """
    context = heat_context.get_admin_context()
    for _ in range(_LOOKS):
        # Anybody may have registered others of that name.
        known = registered(context, operation_id)
        due = [e for e in known if not BACKOFF.is_delayed(e.config_id)]
        taken = [take_over(each) for each in due]
        if any(taken) or (known and not due):
            return
        sleep(_LOOK_AGAIN)


def answering(update: abc.Callable[..., Any]) -> abc.Callable[..., Any]:
    """Return what tells that this engine advances an operation.

    A process that has an operation asks for it by the status of the
    deployment that registers the operation; see `binding.offer`.
    """

    def update_software_deployment(
        service: Any, cnxt: Any, deployment_id: str, *args: Any, **more: Any
    ) -> Any:
        shown = update(service, cnxt, deployment_id, *args, **more)
        operation_id = str(shown['server_id'])
        if notice_reason := notices.answer(cnxt, shown):
            return {**shown, 'status_reason': notice_reason}
        if (
            shown['status'] == binding.IN_PROGRESS
            and layout.is_operation_id(operation_id)
            and cfg.CONF.heat_plugins.rescue_interval
            and look_soon(operation_id, cnxt.project_id)
        ):
            reason = tokens.ADVANCED.after('heat-engine advances it')
            return {**shown, 'status_reason': reason}
        return shown

    return update_software_deployment


def look_soon(operation_id: str, project_id: str) -> bool:
    """Look for an operation in a thread; False if there is no place.

    The next scan looks for what has none.
    """
    if _OFFERS.take(operation_id, project_id):
        _OFFERS.run(operation_id, SCAN.name, look_for, operation_id)
        return True
    # It may be offered twice: as a retry is followed, and with its release.
    return _OFFERS.has(operation_id)


def shuffled(items: abc.Iterable[_Item]) -> list[_Item]:
    """Return items in another order each time, so that none is always last.

    Not a secret.
    """
    shuffled = list(items)
    random.shuffle(shuffled)  # nosec B311
    return shuffled


def _look_at(entries: abc.Iterable[Registered]) -> None:
    """Take over operations of one project, one after another."""
    until = time.monotonic() + _SECONDS
    for each in entries:
        if time.monotonic() > until:
            # The others have their turn in the next scan.
            return
        if not BACKOFF.is_delayed(each.config_id):
            take_over(each)


def take_over(entry: Registered) -> bool:
    """Advance an operation in a thread; False if another process does."""
    if not ADVANCED.take(entry.place, entry.project_id):
        return False
    takeover = None
    try:
        takeover = _prepare(entry)
    except Exception as exc:
        BACKOFF.add(entry, exc)
    finally:
        if takeover is None:
            ADVANCED.leave(entry.place)
    if takeover is not None:
        ADVANCED.run(
            entry.place,
            f'operation {entry.operation_id}',
            _advance,
            takeover,
        )
    return takeover is not None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Takeover:
    """What it takes to advance an operation that no process leads.

    :ivar stack: has the credentials; Heat's clients refer to it weakly.
    :ivar budget: for all requests until this process leads it.
    """

    entry: Registered
    stack: Any
    heat: own_heat.OwnHeat
    door: fleets.Fleets
    budget: wire.Budget


def _prepare(entry: Registered) -> _Takeover | None:
    """Return what advances an operation; None if a process leads it.

    :raises errors.Error: its records are unreadable or cost too much, or a
        service does not answer.
    """
    stack = first_stack(entry.stacks, entry.project_id)
    rpc = in_process.Client(rpc_client.EngineClient)
    heat = own_heat.OwnHeat(rpc, stack.context)
    what = f'operation {entry.operation_id}'
    look = door(stack, budget_of(what, _LOOK), workers=AT_A_TIME)
    if look.is_led(entry.operation_id):
        BACKOFF.forget(entry.config_id)
        return None
    budget = budget_of(what, _LEAD)
    return _Takeover(
        entry=entry,
        stack=stack,
        heat=heat,
        door=door(stack, budget, workers=AT_A_TIME),
        budget=budget,
    )


def budget_of(what: str, limits: tuple[int, float, int]) -> wire.Budget:
    """Return a budget.

    :param limits: requests, seconds and bytes.
    """
    requests, seconds, size = limits
    return wire.Budget(what, requests=requests, seconds=seconds, size=size)


def door(
    stack: Any, budget: wire.Budget, *, who: str = WHO, workers: int = 1
) -> fleets.Fleets:
    """Return the way to the operations of a stack's project.

    :param stack: has the credentials; the caller keeps it as long.
    :param workers: requests at a time. Heat's contexts are not for several
        threads, but for advancing.
    """
    rpc = in_process.Client(rpc_client.EngineClient)
    return fleets.Fleets.with_own_key(
        own_heat.OwnHeat(rpc, stack.context),
        stack.clients.client(heat_swift.CLIENT_NAME).within(budget),
        who=who,
        pool=pools.Pool(workers=workers),
        batches=member_batches.MemberBatches(stack.context),
        reaches=REACHES,
    )


def first_stack(stack_ids: abc.Sequence[str], project_id: str) -> Any:
    """Load the first stack of an operation that has credentials.

    :raises errors.Error: none of the first few has.
    """
    # Anybody may write the ID of a stack into a config.
    own = resources.of_project(
        heat_context.get_admin_context(), stack_ids, project_id
    )
    for stack_id in own[:_TRIED]:
        stack = load_stack(stack_id, project_id)
        if stack is not None:
            return stack
    raise errors.Error(
        'heat-engine finds no stack of the operation whose stored credentials '
        'it can use; advance it with "openstack software deployment '
        'operation wait" as a user of the project'
    )


def load_stack(stack_id: str, project_id: str) -> Any:
    """Load a stack of a project, with its stored credentials.

    None if it has none that serve.

    :raises errors.Unavailable: the database does not answer.
    """
    try:
        stack = parser.Stack.load(
            heat_context.get_admin_context(),
            stack_id=stack_id,
            use_stored_context=True,
        )
    except db_exception.DBError as exc:
        raise rows.unavailable(exc) from None
    except Exception as exc:
        LOG.debug('Stack %s cannot be loaded: %s', stack_id, exc)
        return None
    # Another project would find nothing, and take all for gone.
    is_ours = stack.tenant_id == stack.context.project_id == project_id
    return stack if is_ours else None


def keep(advancer: advancing.Advancer, project_id: str, stack: Any) -> bool:
    """Advance in a thread what this process has created, and leads.

    :param stack: has the credentials; Heat's clients refer to it weakly.
    :returns: False if there is no place, or it has many targets: `look_for`
        takes it over once it is released.
    """
    operation = advancer.operation
    # No scan asks who leads it.
    key = operation.control.registered or operation.id
    is_large = len(operation.attempts) > _TARGETS
    if is_large or not ADVANCED.take(key, project_id):
        return False
    name = f'operation {operation.id}'
    ADVANCED.run(key, name, _advance_kept, advancer, project_id, stack)
    return True


def _advance_kept(
    advancer: advancing.Advancer, project_id: str, stack: Any
) -> None:
    """Advance an operation; after a failure the next scan takes it over."""
    try:
        _step_on(advancer, project_id)
    except Exception as exc:
        LOG.warning(
            'Cannot advance operation %(id)s; the next scan retries: '
            '%(error)s',
            {'id': advancer.operation.id, 'error': foreign.brief(exc)},
        )
        advancer.release()
    _count_end(advancer.operation)


def _advance(takeover: _Takeover) -> None:
    """Lead an operation, and advance it until it has ended."""
    entry = takeover.entry
    advancer = None
    try:
        with _turn(entry.project_id):
            advancer = _led(takeover)
        if advancer is None:
            return
        LOG.info('Advancing operation %s', entry.operation_id)
        BACKOFF.forget(entry.config_id)
        _step_on(advancer, entry.project_id)
    except Exception as exc:
        BACKOFF.add(entry, exc)
    finally:
        LARGE.leave(entry.config_id)
    if advancer is not None:
        _count_end(advancer.operation)


def _count_end(operation: operations.Operation) -> None:
    """Log and count how an operation stands that is advanced no longer."""
    # Another process may advance what has not ended.
    metrics.count(metrics.OPERATIONS, operation.control.phase.value)
    LOG.info(
        'Operation %(id)s is %(state)s: %(reason)s',
        {
            'id': operation.id,
            'state': operation.control.phase.value,
            'reason': operation.control.reason,
        },
    )


def _led(takeover: _Takeover) -> advancing.Advancer | None:
    """Lead an operation; None if another process does, or it has ended."""
    entry = takeover.entry
    try:
        advancer = takeover.door.recorded(entry.seal)
        is_large = len(advancer.operation.attempts) > _TARGETS
        if is_large and not LARGE.take(entry.config_id, entry.project_id):
            # The next scan retries.
            return None
        if advancer.lead():
            # Its members may need any number of requests.
            takeover.budget.lift()
            advancer.step()
            return advancer
    except errors.NotFound:
        if entry.age > _LEFTOVER:
            _forget(takeover)
        # It may be recorded just now.
        BACKOFF.add(entry)
        return None
    if advancer.operation.ended and entry.age > _LEFTOVER:
        advancer.take_out()
    return None


def _forget(takeover: _Takeover) -> None:
    """Delete what there is of an operation that was not recorded."""
    takeover.door.forget(takeover.entry.operation_id)
    if takeover.entry.row_id is None:
        takeover.heat.delete_config(takeover.entry.config_id)


@contextlib.contextmanager
def _turn(project_id: str) -> abc.Iterator[None]:
    """Wait until a step of a project may begin."""
    with _TURNS_OF_PROJECTS.get(project_id).turn(), _TURNS.turn():
        yield


def _step_on(
    advancer: advancing.Advancer,
    project_id: str,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> None:
    while advancer.is_leading:
        try:
            with _turn(project_id):
                advancer.step()
        except errors.Unavailable as exc:
            LOG.info('Retrying operation %s: %s', advancer.operation.id, exc)
        often = max(1.0, len(ADVANCED) / _OFTEN)
        # It has to renew its lease in time.
        sleep(min(advancer.pause * often, lease.EXPIRY / 3))
