# SPDX-License-Identifier: Apache-2.0
"""Runs in Heat's database: the `run_store.RunStore` of heat-engine.

A step begins with the UPDATE that compares the version, as MySQL reads all
that follows as of its first statement. It locks the targets that it changes,
and an answer locks its target, in the order of their numbers.
"""

from collections import abc
import contextlib
import dataclasses
import functools
import itertools
import json
import operator
import time
from typing import Any, ParamSpec, TypeVar

from heat.common import context as heat_context
from heat.common import crypt
from heat.common import exception
from heat.db import api as db_api
from oslo_config import cfg
from oslo_db import exception as db_exception
import sqlalchemy

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import stored
from heat_plugins.deployments import deliveries
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import run_tables
from heat_plugins.engine.database import schedule_rows
from heat_plugins.runs import ordering
from heat_plugins.runs import overview
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs import telling
from heat_plugins.signals import body
from heat_plugins.signals import watcher

_Given = ParamSpec('_Given')
_Result = TypeVar('_Result')
_Run = run_tables.RUN.c
_Target = run_tables.TARGET.c
_COUNT = sqlalchemy.func.count()
_Total = sqlalchemy.func.sum(_Run.targets)

# A target, and its run without what is encrypted, which may be long.
_BARE = (
    _Run.id,
    _Run.action,
    _Run.created_at,
    _Run.created_by,
    _Run.head,
    _Run.control,
    _Target.member,
    _Target.record,
)

_DAY = 24 * 3600

_IN_PROGRESS = _Run.ended_at.is_(None)

# When a run that a user has deleted has ended: it is the first to be removed.
_DELETED = 0
_IS_SHOWN = _IN_PROGRESS | (_Run.ended_at > _DELETED)

# Tries of a step whose keys were taken, and are free when they are read.
_TRIES = 3

# States of attempts that a server may be busy with, and of how many such to
# know.
_MAY_RUN = [
    each.value
    for each in (
        run_records.State.RUNNING,
        run_records.State.WAITING,
        run_records.State.CANCELLED,
        run_records.State.TIMED_OUT,
    )
]
_OTHERS = 20


# Targets whose runs a list may name, see `_has_target`.
_FEW = 500

# Rows that one statement deletes.
_BATCH = 1000

# Changes the rows of targets, each by values of its own.
_CHANGE = (
    sqlalchemy.update(run_tables.TARGET)
    .where(
        _Target.run_id == sqlalchemy.bindparam('of_run'),
        _Target.number == sqlalchemy.bindparam('of_number'),
    )
    .values(
        {
            name: sqlalchemy.bindparam(name)
            for name in (
                'attempt',
                'state',
                'row_id',
                'changed_at',
                'record',
                'revision',
                'live_key',
                'signature',
            )
        }
    )
)


def _in_database(
    method: abc.Callable[_Given, _Result],
) -> abc.Callable[_Given, _Result]:
    """Retry a transaction that is cut off, and translate other errors.

    Messages of the database quote inputs and outputs.
    """
    repeated = rows.retried(method)

    @functools.wraps(method)
    def call(*args: _Given.args, **values: _Given.kwargs) -> _Result:
        try:
            return repeated(*args, **values)
        except (db_exception.DBConnectionError, db_exception.DBDeadlock) as e:
            failure: errors.Error = rows.unavailable(e)
        except (db_exception.DBError, sqlalchemy.exc.SQLAlchemyError) as exc:
            failure = _failure(exc)
        except ValueError as exc:
            failure = errors.Unreadable(f'A run is unreadable: {exc}')
        raise failure

    return call


def _failure(exc: Exception) -> errors.Error:
    """Return an error that a statement has met as one for users."""
    with contextlib.suppress(Exception):
        if not run_tables.is_ready(db_api.get_engine()):
            return errors.ServiceError(
                "The tables of runs are not in Heat's database. An operator "
                f'must run "{run_tables.COMMAND}" on a host of heat-engine'
            )
    return errors.Unavailable(
        f"Heat's database refuses a statement: {type(exc).__name__}"
    )


class RunRows:
    """The runs of all projects; see `run_store.RunStore`."""

    @_in_database
    def create(
        self,
        project_id: str,
        run: run_records.RunRecord,
        engine_id: str,
        *,
        tick: run_store.Tick | None = None,
    ) -> run_store.StoredRun:
        """Store a new run with its targets."""
        order = stored.dump(dataclasses.replace(run.order, members=()))
        targets = [
            {
                'run_id': run.id,
                'number': number,
                'project_id': project_id,
                'stack_id': member.stack_id,
                'stack_name': member.stack_name,
                'server_id': member.server_id,
                'server_name': member.server_name,
                'deployment_id': member.deployment_id,
                'revision': 0,
                'live_key': None,
                'signature': None,
                'member': stored.dump(member),
                **_of_attempt(attempt),
            }
            for number, (member, attempt) in enumerate(
                zip(run.order.members, run.attempts, strict=True)
            )
        ]
        try:
            with _writing() as session:
                if (
                    tick is not None
                    and not session.execute(
                        resources.replacing_datum(
                            tick.resource,
                            schedule_rows.KEY,
                            tick.before,
                            tick.after,
                        ),
                        execution_options={'synchronize_session': False},
                    ).rowcount
                ):
                    raise run_store.Stale(
                        f'Another process has changed schedule {tick.schedule}'
                    )
                session.execute(
                    sqlalchemy.insert(run_tables.RUN).values(
                        id=run.id,
                        project_id=project_id,
                        created_at=run.order.created_at,
                        created_by=run_store.user_of(run.order),
                        action=run.order.action,
                        targets=len(targets),
                        schedule_id=tick and tick.schedule,
                        due_at=tick and tick.due_at,
                        engine_id=engine_id,
                        version=0,
                        ordered=crypt.encrypt(json.dumps(order)),
                        **_of_run(run),
                    )
                )
                # One that is repeated has met its own ID before this.
                _check_room(session, project_id)
                if targets:
                    session.execute(
                        sqlalchemy.insert(run_tables.TARGET), targets
                    )
        except db_exception.DBDuplicateEntry:
            if tick is None:
                return _existing(project_id, run.order)
            query = sqlalchemy.select(_Run.id).where(
                _Run.schedule_id == tick.schedule, _Run.due_at == tick.due_at
            )
            if rows.finds(_admin(), query):
                raise errors.Exists(
                    'This time of the schedule has a run already'
                ) from None
            raise errors.Refused(
                f'The ID {run.id} is that of a run that another user started'
            ) from None
        except run_store.Stale:
            # The commit of this engine may have had no answer.
            with contextlib.suppress(errors.Exists):
                existing = _existing(project_id, run.order)
                if existing.engine_id == engine_id:
                    return existing
            raise
        return run_store.StoredRun(
            project_id=project_id,
            run=run,
            version=0,
            engine_id=engine_id,
            revisions=(0,) * len(targets),
        )

    @_in_database
    def load(
        self, run_id: str, project_id: str | None = None
    ) -> run_store.StoredRun:
        """Return a run with its targets."""
        with _reading() as session:
            return _find(session, run_id, project_id)

    @_in_database
    def heads(
        self, project_id: str, wanted: ordering.Query
    ) -> list[run_records.Head]:
        """Return a page of a project's runs, the newest first."""
        with _reading() as session:
            query = (
                sqlalchemy.select(
                    _Run.id, _Run.created_at, _Run.ended_at, _Run.head
                )
                .where(
                    _Run.project_id == project_id,
                    _IS_SHOWN,
                    *_conditions(session, wanted),
                )
                .order_by(_Run.created_at.desc(), _Run.id.desc())
                .limit(min(wanted.limit, run_store.PAGE))
            )
            if wanted.after is not None:
                last = session.execute(
                    sqlalchemy.select(_Run.created_at).where(
                        _Run.id == wanted.after, _Run.project_id == project_id
                    )
                ).first()
                if last is None:
                    raise errors.NotFound(f'There is no run {wanted.after}')
                query = query.where(
                    _Run.created_at <= last.created_at,
                    (_Run.created_at < last.created_at)
                    | (_Run.id < wanted.after),
                )
            listed = session.execute(query).all()
            # A head has the counts of the last step; answers come between.
            counts: dict[str, dict[str, int]] = {
                row.id: {} for row in listed if row.ended_at is None
            }
            by_state = (
                sqlalchemy.select(_Target.run_id, _Target.state, _COUNT)
                .where(_Target.run_id.in_(counts), _Target.state.is_not(None))
                .group_by(_Target.run_id, _Target.state)
            )
            for run_id, state, number in session.execute(by_state):
                counts[run_id][state] = number
        return [
            overview.recounted(_head(row), counts[row.id])
            if row.id in counts
            else _head(row)
            for row in listed
        ]

    @_in_database
    def latest(
        self, project_id: str, deployment_ids: abc.Collection[str], most: int
    ) -> abc.Mapping[str, list[run_records.RunRecord]]:
        """Return the last runs of each deployment."""
        newest = sqlalchemy.desc(_Run.created_at), sqlalchemy.desc(_Run.id)
        place = sqlalchemy.func.row_number().over(
            partition_by=_Target.deployment_id, order_by=newest
        )
        found: dict[str, list[run_records.RunRecord]] = {}
        with _reading() as session:
            for some in rows.batches(deployment_ids):
                # Without the records, which need not be sorted.
                ranked = (
                    sqlalchemy.select(
                        _Target.run_id, _Target.number, place.label('place')
                    )
                    .join(run_tables.RUN, _Run.id == _Target.run_id)
                    .where(
                        _Target.project_id == project_id,
                        _Target.deployment_id.in_(some),
                        _IS_SHOWN,
                    )
                    .subquery()
                )
                query = (
                    sqlalchemy.select(*_BARE)
                    .join_from(
                        run_tables.TARGET,
                        ranked,
                        (_Target.run_id == ranked.c.run_id)
                        & (_Target.number == ranked.c.number),
                    )
                    .join(run_tables.RUN, _Run.id == _Target.run_id)
                    .where(ranked.c.place <= most)
                    .order_by(*newest)
                )
                for row in session.execute(query):
                    run = _with_targets(row, _bare_order(row), [row])
                    (member,) = run.order.members
                    found.setdefault(member.deployment_id, []).append(run)
        return found

    @_in_database
    def on_server(
        self, project_id: str, server_id: str
    ) -> list[run_records.RunRecord]:
        """Return the runs that a server may have just now."""
        query = (
            sqlalchemy.select(*_BARE)
            .join_from(
                run_tables.TARGET, run_tables.RUN, _Run.id == _Target.run_id
            )
            .where(
                _Target.server_id == server_id,
                _Target.project_id == project_id,
                _Target.state.in_(_MAY_RUN),
                _IS_SHOWN,
            )
            .order_by(_Target.changed_at.desc())
            .limit(_OTHERS)
        )
        return [
            _with_targets(row, _bare_order(row), [row])
            for row in rows.select(_admin(), query)
        ]

    @_in_database
    def held_in(self, stack_id: str) -> abc.Mapping[str, abc.Set[str]]:
        """Return which deployments of a stack have runs on servers, by run."""
        query = sqlalchemy.select(_Target.run_id, _Target.deployment_id).where(
            _Target.stack_id == stack_id, _Target.row_id.is_not(None)
        )
        held: dict[str, set[str]] = {}
        for row in rows.select(_admin(), query):
            held.setdefault(row.run_id, set()).add(row.deployment_id)
        return held

    @_in_database
    def heads_of(
        self, projects: abc.Mapping[str, str]
    ) -> abc.Mapping[str, run_records.Head]:
        """Return some runs as a list has them, by ID."""
        query = sqlalchemy.select(
            _Run.id, _Run.project_id, _Run.created_at, _Run.head
        ).where(_IS_SHOWN)
        return {
            row.id: _head(row)
            for row in rows.select_in(_admin(), query, _Run.id, projects)
            if row.project_id == projects[row.id]
        }

    @_in_database
    def led_by(self, engine_id: str) -> abc.Mapping[str, int]:
        """Return the versions of the runs that an engine leads, by ID."""
        query = sqlalchemy.select(_Run.id, _Run.version).where(
            _IN_PROGRESS, _Run.engine_id == engine_id
        )
        return {row.id: row.version for row in rows.select(_admin(), query)}

    @_in_database
    def leaders(self) -> abc.Set[str]:
        """Return the engines that lead runs."""
        query = sqlalchemy.select(_Run.engine_id).distinct()
        query = query.where(_IN_PROGRESS)
        return {row.engine_id for row in rows.select(_admin(), query)}

    @_in_database
    def take_over(self, dead: str, engine_id: str, most: int) -> list[str]:
        """Let an engine lead runs of a dead one; return their IDs."""
        query = (
            sqlalchemy.select(_Run.id)
            .where(_IN_PROGRESS, _Run.engine_id == dead)
            .order_by(_Run.id)
            .limit(most)
        )
        theirs = _Run.id.in_([e.id for e in rows.select(_admin(), query)])
        with _writing() as session:
            session.execute(
                sqlalchemy.update(run_tables.RUN)
                .where(theirs, _Run.engine_id == dead)
                .values(engine_id=engine_id, version=_Run.version + 1)
            )
            taken = sqlalchemy.select(_Run.id).where(
                theirs, _Run.engine_id == engine_id
            )
            return list(session.execute(taken).scalars())

    @_in_database
    def with_notices(
        self, engine_id: str, now: float, most: int
    ) -> abc.Mapping[str, str]:
        """Return the runs with webhooks that are due, with projects."""
        is_theirs = _Run.notice_at <= now - run_store.NOTICE_LEAD
        query = (
            sqlalchemy.select(_Run.id, _Run.project_id)
            .where(
                _IS_SHOWN,
                _Run.notice_at <= now,
                is_theirs | (_Run.engine_id == engine_id),
            )
            .order_by(_Run.notice_at)
            .limit(most)
        )
        return {row.id: row.project_id for row in rows.select(_admin(), query)}

    @_in_database
    def step(
        self,
        before: run_store.StoredRun,
        after: run_records.RunRecord,
        step_id: str,
        *,
        given: abc.Mapping[int, deliveries.Delivery] | None = None,
        taken: abc.Collection[str] = (),
        engine_id: str | None = None,
    ) -> run_store.StoredRun:
        """Store a run's next step, if no engine has changed it since."""
        given = given or {}
        leader = engine_id or before.engine_id
        statement = (
            sqlalchemy.update(run_tables.RUN)
            .where(_Run.id == after.id, _Run.version == before.version)
            .values(
                version=before.version + 1,
                last_step=step_id,
                engine_id=leader,
                **_of_run(after),
            )
        )
        if after.ended and not before.run.ended:
            size = sqlalchemy.func.sum(sqlalchemy.func.length(_Target.record))
            query = sqlalchemy.select(size).where(_Target.run_id == after.id)
            statement = statement.values(output_bytes=query.scalar_subquery())
        for _ in range(_TRIES):
            try:
                with _writing() as session:
                    if not session.execute(statement).rowcount:
                        return _repeated(session, after.id, step_id)
                    revisions = _write_targets(session, before, after, given)
                    if given:
                        rows.write_deliveries(
                            session,
                            [(e, before.project_id) for e in given.values()],
                        )
                    rows.remove(session, before.project_id, taken)
                return dataclasses.replace(
                    before,
                    run=after,
                    version=before.version + 1,
                    engine_id=leader,
                    revisions=revisions,
                )
            except db_exception.DBDuplicateEntry:
                if holders := _holders(before, given):
                    raise run_store.KeysTaken(holders) from None
        raise errors.Unavailable(
            f'Other runs compete with run {after.id} for its targets'
        )

    @_in_database
    def answer(
        self,
        outcomes: abc.Mapping[run_store.TargetKey, run_records.Attempt],
    ) -> abc.Mapping[run_store.TargetKey, run_records.Attempt]:
        """Store servers' answers; return those that count."""
        counted: dict[run_store.TargetKey, run_records.Attempt] = {}
        # Else two engines with the same answers would conflict.
        keys = sorted(outcomes, key=dataclasses.astuple)
        with _writing() as session:
            for run_id, theirs in itertools.groupby(
                keys, lambda key: key.run_id
            ):
                some = {key: outcomes[key] for key in theirs}
                counted |= _answer(session, run_id, some)
        return counted

    @_in_database
    def awaiting(self, signature: str) -> run_store.Awaiting | None:
        """Return the target whose signal URL has a signature, if any."""
        query = (
            sqlalchemy.select(
                run_tables.RUN,
                _Target.number,
                _Target.member,
                _Target.record,
            )
            .join(run_tables.TARGET, _Run.id == _Target.run_id)
            .where(
                _Target.signature == run_store.signature_kept(signature),
                _IS_SHOWN,
            )
        )
        for row in rows.select(_admin(), query.limit(1)):
            order, _unreadable = _order(row)
            return run_store.Awaiting(
                project_id=row.project_id,
                run=_with_targets(row, order, [row]),
                number=row.number,
            )
        return None

    @_in_database
    def delete(self, project_id: str, run_id: str) -> None:
        """Hide an ended run; its rows go later."""
        is_run = (_Run.id == run_id) & (_Run.project_id == project_id)
        with _writing() as session:
            deleted = session.execute(
                sqlalchemy.update(run_tables.RUN)
                .where(is_run, _Run.ended_at > _DELETED)
                .values(ended_at=_DELETED, version=_Run.version + 1)
            )
            if deleted.rowcount:
                return
            is_there = session.execute(
                sqlalchemy.select(_Run.id).where(is_run, _IS_SHOWN)
            ).first()
        if is_there:
            raise errors.Refused(
                f'Run {run_id} has not ended; cancel it first'
            )
        raise errors.NotFound(f'There is no run {run_id}')

    @_in_database
    def remove(self, surplus: run_store.Surplus) -> None:
        """Delete some rows of a run that is hidden or too old."""
        with _writing() as session:
            deleted = session.execute(
                sqlalchemy.delete(run_tables.RUN).where(
                    _Run.id == surplus.run_id,
                    # A user may have retried it.
                    _Run.ended_at.is_not(None),
                )
            )
            if not deleted.rowcount:
                return
            is_its = _Target.run_id == surplus.run_id
            last = session.execute(
                sqlalchemy.select(sqlalchemy.func.max(_Target.number)).where(
                    is_its
                )
            ).scalar()
            for first in range(0, (last or 0) + 1, _BATCH):
                session.execute(
                    sqlalchemy.delete(run_tables.TARGET).where(
                        is_its,
                        _Target.number >= first,
                        _Target.number < first + _BATCH,
                    )
                )

    @_in_database
    def most_kept(self, most: int) -> dict[str, int]:
        """Return the projects with most targets, and how many each keeps."""
        query = (
            sqlalchemy.select(_Run.project_id, _Total)
            .group_by(_Run.project_id)
            .order_by(_Total.desc())
            .limit(most)
        )
        return {
            project_id: int(number)
            for project_id, number in rows.select(_admin(), query)
        }

    @_in_database
    def in_progress(self) -> dict[str, tuple[int, int]]:
        """Return how many runs are in progress, and the oldest, by state."""
        query = (
            sqlalchemy.select(
                _Run.state, _COUNT, sqlalchemy.func.min(_Run.created_at)
            )
            .where(_IN_PROGRESS)
            .group_by(_Run.state)
        )
        return {
            state: (number, created)
            for state, number, created in rows.select(_admin(), query)
        }

    @_in_database
    def surplus(self) -> list[run_store.Surplus]:
        """Return ended runs that go: too old, or too many in a project."""
        options, now = cfg.CONF.heat_plugins, time.time()
        oldest = now - options.runs_kept_days * _DAY
        most_bytes = options.run_outputs_kept * 2**20
        ended = (
            sqlalchemy.select(
                *(_Run.project_id, _Run.id, _Run.ended_at),
                *(_Run.targets, _Run.output_bytes),
            )
            .where(_Run.ended_at.is_not(None))
            .order_by(_Run.ended_at)
            .limit(run_store.PAGE)
        )
        size = sqlalchemy.func.sum(_Run.output_bytes)
        crowded = (
            sqlalchemy.select(_Run.project_id, _Total, size)
            .group_by(_Run.project_id)
            .having((_Total > options.run_targets_kept) | (size > most_bytes))
        )
        old = rows.select(_admin(), ended.where(_Run.ended_at < oldest))
        unwanted = {row.id: row.project_id for row in old}
        for project_id, targets, filled in rows.select(_admin(), crowded):
            excess = targets - options.run_targets_kept
            too_long = (filled or 0) - most_bytes
            theirs = ended.where(_Run.project_id == project_id)
            for row in rows.select(_admin(), theirs):
                # Its user can still read what it has printed.
                is_new = row.ended_at > now - _DAY
                if excess <= 0 and (too_long <= 0 or is_new):
                    break
                excess -= row.targets
                too_long -= row.output_bytes or 0
                unwanted[row.id] = project_id
        stacks = sqlalchemy.select(_Target.stack_id).distinct()
        return [
            run_store.Surplus(
                project_id=project_id,
                run_id=run_id,
                stack_ids=[
                    row.stack_id
                    for row in rows.select(
                        _admin(), stacks.where(_Target.run_id == run_id)
                    )
                ],
            )
            for run_id, project_id in unwanted.items()
        ]


def _admin() -> Any:
    """Return a context; Heat's database checks no permissions."""
    return heat_context.get_admin_context()


def _writing() -> Any:
    """Begin a transaction in Heat's database, across projects."""
    return db_api.context_manager.writer.using(_admin())


def _reading() -> Any:
    """Begin a transaction that reads, across projects."""
    return db_api.context_manager.reader.using(_admin())


# A run and its targets as rows


def _of_run(run: run_records.RunRecord) -> dict[str, Any]:
    """Return the columns of a run that a step writes."""
    head = overview.head(run)
    return {
        'state': run.control.phase.value,
        'ended_at': head.ended_at if run.ended else None,
        'head': stored.dump(head),
        'control': stored.dump(run.control),
        'notice_at': telling.due_at(run),
    }


def _of_attempt(attempt: run_records.Attempt) -> dict[str, Any]:
    """Return the columns of an attempt on a target."""
    return {
        'attempt': attempt.number,
        'state': attempt.state and attempt.state.value,
        'row_id': attempt.row_id,
        'changed_at': int(time.time()),
        'record': stored.dump(attempt),
    }


def _head(row: Any) -> run_records.Head:
    """Return a run as a list has it; one that says so if unreadable."""
    try:
        return stored.read(run_records.Head, row.head)
    except ValueError as exc:
        return run_records.Head(
            id=row.id,
            created_at=row.created_at,
            reason=f'Its row is unreadable: {exc}',
        )


def _find(
    session: Any, run_id: str, project_id: str | None = None
) -> run_store.StoredRun:
    """Read a run with its targets.

    :raises errors.NotFound: there is none, or not in this project.
    """
    row = session.execute(
        sqlalchemy.select(run_tables.RUN).where(_Run.id == run_id, _IS_SHOWN)
    ).first()
    if row is None or project_id not in (None, row.project_id):
        raise errors.NotFound(f'There is no run {run_id}')
    # After the run: a step between the two makes the next one stale.
    targets = session.execute(
        sqlalchemy.select(_Target.member, _Target.record, _Target.revision)
        .where(_Target.run_id == run_id)
        .order_by(_Target.number)
    ).all()
    order, unreadable = _order(row)
    return run_store.StoredRun(
        project_id=row.project_id,
        run=_with_targets(row, order, targets),
        version=row.version,
        engine_id=row.engine_id,
        revisions=tuple(each.revision for each in targets),
        unreadable=unreadable,
    )


def _with_targets(
    row: Any, order: run_records.RunOrder, targets: abc.Sequence[Any]
) -> run_records.RunRecord:
    """Return a run with targets, from their rows."""
    return run_records.RunRecord(
        order=dataclasses.replace(
            order,
            members=[
                stored.read(run_records.RunTarget, each.member)
                for each in targets
            ],
        ),
        control=stored.read(run_records.Control, row.control),
        attempts=tuple(
            stored.read(run_records.Attempt, each.record) for each in targets
        ),
    )


def _bare_order(row: Any) -> run_records.RunOrder:
    """Return an order without targets and without its encrypted part.

    Columns to search by are escaped and cut, so what its head says counts.
    """
    head = _head(row)
    return run_records.RunOrder(
        id=row.id,
        action=head.action or row.action,
        limits=run_records.RunLimits(),
        members=(),
        created_at=row.created_at,
        created_by=head.created_by or row.created_by,
    )


def _order(row: Any) -> tuple[run_records.RunOrder, str]:
    """Return the order of a run without its targets, and why not all of it."""
    try:
        text = crypt.decrypt(*row.ordered)
    except exception.InvalidEncryptionKey:
        return _bare_order(row), (
            'Its order cannot be decrypted: auth_encryption_key has been '
            'changed in heat.conf'
        )
    return stored.read(run_records.RunOrder, json.loads(text)), ''


# Creating


def _check_room(session: Any, project_id: str) -> None:
    """Check that runs in progress of a project have not too many targets.

    :raises errors.Refused: they have.
    """
    most = cfg.CONF.heat_plugins.run_targets_kept
    query = sqlalchemy.select(_Total).where(
        _IN_PROGRESS, _Run.project_id == project_id
    )
    present = session.execute(query).scalar() or 0
    if present > most:
        raise errors.Refused(
            f'With this one, runs in progress of this project would have '
            f'{present} targets. At most {most} are permitted '
            '(run_targets_kept in heat.conf). Wait until some have ended'
        )


def _existing(
    project_id: str, order: run_records.RunOrder
) -> run_store.StoredRun:
    """Return the run that an order has made before.

    :raises errors.Exists: another order has its ID, or it was deleted.
    """
    try:
        with _reading() as session:
            there = _find(session, order.id)
    except errors.NotFound as exc:
        raise errors.Exists(f'Run {order.id} was deleted') from exc
    if there.project_id != project_id or not run_store.is_same_order(
        there.run.order, order
    ):
        raise errors.Exists(f'The ID {order.id} is that of another run')
    return there


# Listing


def _conditions(session: Any, wanted: ordering.Query) -> abc.Iterator[Any]:
    """Yield the conditions of a list."""
    for column, compare, value in (
        (_Run.id, operator.eq, wanted.run),
        (_Run.action, operator.eq, wanted.action),
        (_Run.created_by, operator.eq, wanted.who),
        (_Run.schedule_id, operator.eq, wanted.schedule),
        (_Run.created_at, operator.ge, wanted.since),
        (_Run.created_at, operator.le, wanted.until),
        (_Run.version, operator.gt, wanted.newer_than),
    ):
        if value is not None:
            yield compare(column, value)
    if wanted.state:
        yield _Run.state.in_(wanted.state)
    for name, *columns in (
        (wanted.stack, _Target.stack_id, _Target.stack_name),
        (wanted.server, _Target.server_id, _Target.server_name),
    ):
        if name is not None:
            yield sqlalchemy.or_(
                *(_has_target(session, each == name) for each in columns)
            )


def _has_target(session: Any, condition: Any) -> Any:
    """Return the condition that a run has such a target.

    If few targets are such, it names their runs: else all runs of the project
    would be read to find those of a server that has few, or none. MariaDB
    would read such targets of all runs first, for EXISTS.
    """
    query = sqlalchemy.select(_Target.run_id).where(condition)
    few = session.execute(query.limit(_FEW)).scalars().all()
    if len(few) < _FEW:
        return _Run.id.in_({*few})
    first = query.where(_Target.run_id == _Run.id).limit(1)
    return first.scalar_subquery().is_not(None)


# Steps and answers


def _repeated(session: Any, run_id: str, step_id: str) -> run_store.StoredRun:
    """Return a run if its last step is this one.

    :raises run_store.Stale: it is another.
    """
    query = sqlalchemy.select(_Run.last_step).where(
        _Run.id == run_id, _IS_SHOWN
    )
    last = session.execute(query).first()
    if last is not None and last.last_step != step_id:
        raise run_store.Stale(f'Another process has changed run {run_id}')
    return _find(session, run_id)


def _key(
    run: run_records.RunRecord, project_id: str, number: int
) -> str | None:
    """Return the live key of a target; None for a script of the user's."""
    if run.order.config is not None:
        return None
    return run_store.live_key(
        project_id, run.order.members[number].deployment_id, run.order.action
    )


def _write_targets(
    session: Any,
    before: run_store.StoredRun,
    after: run_records.RunRecord,
    given: abc.Mapping[int, deliveries.Delivery],
) -> tuple[int, ...]:
    """Write the targets that a step changes; return all their revisions.

    :raises run_store.Stale: a server has answered since.
    """
    changed = [
        number
        for number, attempt in enumerate(after.attempts)
        if number in given or attempt != before.run.attempts[number]
    ]
    locked = _locked(session, after.id, changed)
    revisions, values = list(before.revisions), []
    for number in changed:
        attempt, row = after.attempts[number], locked[number]
        if row.revision != revisions[number]:
            raise run_store.Stale(
                f'Target {number} of run {after.id} has got an answer'
            )
        revisions[number] += 1
        key, signature = row.live_key, row.signature
        if number in given:
            key = _key(after, before.project_id, number)
            signature = run_store.signature_of(given[number])
        values.append(_change(row, attempt, key, signature))
    if values:
        session.execute(_CHANGE, values)
    return tuple(revisions)


def _locked(
    session: Any, run_id: str, numbers: abc.Collection[int]
) -> dict[int, Any]:
    """Lock targets of a run; return their rows by number."""
    query = (
        sqlalchemy.select(run_tables.TARGET)
        .where(_Target.run_id == run_id)
        .order_by(_Target.number)
        .with_for_update()
    )
    return {
        row.number: row
        for some in rows.batches(numbers)
        for row in session.execute(query.where(_Target.number.in_(some)))
    }


def _change(
    row: Any,
    attempt: run_records.Attempt,
    key: str | None,
    signature: str | None,
) -> dict[str, Any]:
    """Return the values that `_CHANGE` writes into a row.

    :param key: the live key, while the attempt is in progress.
    """
    return {
        'of_run': row.run_id,
        'of_number': row.number,
        'revision': row.revision + 1,
        'live_key': key if attempt.is_live else None,
        'signature': signature,
        **_of_attempt(attempt),
    }


def _holders(
    before: run_store.StoredRun, given: abc.Collection[int]
) -> dict[int, str]:
    """Return the runs that have keys of targets, by number of the target."""
    numbers = {
        _key(before.run, before.project_id, each): each for each in given
    }
    query = sqlalchemy.select(_Target.live_key, _Target.run_id)
    return {
        numbers[row.live_key]: row.run_id
        for row in rows.select_in(
            _admin(), query, _Target.live_key, numbers.keys() - {None}
        )
    }


def _answer(
    session: Any,
    run_id: str,
    outcomes: abc.Mapping[run_store.TargetKey, run_records.Attempt],
) -> dict[run_store.TargetKey, run_records.Attempt]:
    """Store the answers of servers of a run; return those that count."""
    limit = cfg.CONF.heat_plugins.run_output_limit
    numbers = {key.number for key in outcomes}
    # SQLite refuses a write after a read if another process has written.
    session.execute(
        sqlalchemy.update(run_tables.TARGET)
        .where(_Target.run_id == run_id, _Target.number == min(numbers))
        .values(revision=_Target.revision)
    )
    locked = _locked(session, run_id, numbers)
    counted: dict[run_store.TargetKey, run_records.Attempt] = {}
    values = []
    for key in outcomes:
        row = locked.get(key.number)
        if row is None or row.attempt != key.attempt:
            continue
        before = stored.read(run_records.Attempt, row.record)
        after = run_store.answered(before, outcomes[key], limit)
        if after is None:
            continue
        counted[key] = after
        if after is before:
            continue
        values.append(_change(row, after, row.live_key, row.signature))
        if before.is_live and after.row_id and after.config_id:
            session.execute(
                _settling(after),
                execution_options={'synchronize_session': False},
            )
    if values:
        session.execute(_CHANGE, values)
    return counted


def _settling(attempt: run_records.Attempt) -> sqlalchemy.Update:
    """Return the statement that writes an answer into Heat's own row."""
    ticket = watcher.Ticket(
        deployment_id=str(attempt.row_id),
        config_id=str(attempt.config_id),
        object_name=None,
    )
    if attempt.is_live:
        return rows.beginning(ticket)
    is_complete = attempt.state is run_records.State.COMPLETE
    return rows.settling(
        ticket,
        body.SignalOutcome(
            status=heat_values.COMPLETE if is_complete else heat_values.FAILED,
            reason=attempt.reason,
            outputs=attempt.outputs,
        ),
    )
