# SPDX-License-Identifier: Apache-2.0
"""Software deployments and their configs, as Heat's database has them.

Heat reads and changes each row by an RPC, and a change overwrites what another
engine has written meanwhile. This module reads many rows at once, changes what
belongs together in one transaction, and settles a row only while it still has
the awaited config, so that two engines cannot both settle one signal.

The rooms `resources` and `servers` read and write the other tables.
"""

from collections import abc
import contextlib
import datetime
import functools
from typing import Any, ParamSpec, TypeAlias, TypeVar

from heat.common import context as heat_context
from heat.common import exception
from heat.common.i18n import _
from heat.db import api as db_api
from heat.db import models
from heat.rpc import api as rpc_api
from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exception
from oslo_utils import timeutils
import sqlalchemy

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import tokens
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import fleets
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import own_heat
from heat_plugins.signals import body
from heat_plugins.signals import signal_names
from heat_plugins.signals import watcher

#: The key in a resource's data that says which container its URLs lead to.
CONTAINER_KEY = 'heat_plugins_signal_container'

_Key = TypeVar('_Key')
_Given = ParamSpec('_Given')
_Result = TypeVar('_Result')
_Config, _Deployment = models.SoftwareConfig, models.SoftwareDeployment

#: A deployment, when its config was made and when its status was written, in
#: UTC.
Dated: TypeAlias = tuple[
    heat_values.DeploymentRow, datetime.datetime, datetime.datetime
]

# Databases limit how many values one statement may name.
_BATCH = 500


def unavailable(exc: db_exception.DBError) -> errors.Unavailable:
    """Return an error of the database as one that a wait may retry."""
    return errors.Unavailable(
        f"Heat's database does not answer: {type(exc).__name__}"
    )


@contextlib.contextmanager
def unquoted() -> abc.Iterator[None]:
    """Replace an error of the database, or one that it has caused.

    Its message quotes the values of the statement: signed URLs, inputs, what
    servers have sent. Heat shows to users what a resource raises, and logs it
    with its causes.

    It serves as a decorator, too; not of a generator.

    :raises exception.Error: the database failed; the kind of error is named.
    """
    try:
        yield
    except db_exception.DBError as exc:
        # Where it failed may be known.
        failure = exception.Error(str(unavailable(exc)))
        raise failure.with_traceback(exc.__traceback__) from None
    except Exception as exc:
        _forget_causes(exc)
        raise


def _forget_causes(exc: BaseException) -> None:
    """Cut off errors of the database from what is logged with an error."""
    shown: BaseException | None = exc
    # Two may lead to each other.
    seen: set[int] = set()
    while shown is not None and id(shown) not in seen:
        seen.add(id(shown))
        cause = shown.__cause__
        if cause is None and not shown.__suppress_context__:
            cause = shown.__context__
        if isinstance(cause, db_exception.DBError):
            # That leaves no context to be shown, either.
            shown.__cause__ = cause = None
        shown = cause


# What the other rooms of the database build on


def select(context: heat_types.Context, query: Any) -> list[Any]:
    """Return the rows of a query."""
    with db_api.context_manager.reader.using(context) as session:
        return list(session.execute(query).all())


def select_in(
    context: heat_types.Context,
    query: Any,
    column: Any,
    values: abc.Collection[Any],
) -> abc.Iterator[Any]:
    """Yield the rows of a query that have one of some values in a column."""
    with db_api.context_manager.reader.using(context) as session:
        for some in batches(values):
            yield from session.execute(query.where(column.in_(some)))


def finds(context: heat_types.Context, query: sqlalchemy.Select[Any]) -> bool:
    """Say whether a query finds anything."""
    return bool(select(context, query.limit(1)))


def batches(ids: abc.Collection[Any]) -> abc.Iterator[list[Any]]:
    """Yield as many ids at a time as one statement may name."""
    wanted = sorted(ids)
    for start in range(0, len(wanted), _BATCH):
        yield wanted[start : start + _BATCH]


def change_each(
    context: heat_types.Context, statements: abc.Mapping[_Key, Any]
) -> set[_Key]:
    """Run statements as one transaction; return which have met one row."""
    met = write(context, *statements.values())
    return {
        key for key, count in zip(statements, met, strict=True) if count == 1
    }


def retried(
    call: abc.Callable[_Given, _Result],
) -> abc.Callable[_Given, _Result]:
    """Repeat a call that the database cuts off, four times at most.

    A node of a Galera cluster refuses what another one has just changed. No
    later call may bring what was lost so: hence the attempts.
    """

    @oslo_db_api.wrap_db_retry(  # type: ignore[untyped-decorator]
        max_retries=3,
        retry_interval=0.5,
        retry_on_deadlock=True,
        retry_on_disconnect=True,
    )
    @functools.wraps(call)
    def attempt(*args: _Given.args, **values: _Given.kwargs) -> _Result:
        try:
            return call(*args, **values)
        except (
            db_exception.DBConnectionError,
            db_exception.DBDeadlock,
        ) as exc:
            # What makes the attempts logs the last one, with what it quotes.
            raise type(exc)() from None

    repeated: abc.Callable[_Given, _Result] = attempt
    return repeated


@retried
def write(context: heat_types.Context, *statements: Any) -> list[int]:
    """Run statements as a transaction; return how many rows each has met."""
    options = {'synchronize_session': False}
    with db_api.context_manager.writer.using(context) as session:
        return [
            session.execute(each, execution_options=options).rowcount
            for each in statements
        ]


def says(column: Any, token: tokens.Token) -> Any:
    """Return the condition that a text has a token."""
    return sqlalchemy.or_(
        column.endswith(token.text, autoescape=True),
        *(
            column.startswith(start, autoescape=True)
            & column.endswith(end, autoescape=True)
            for start, end in token.former
        ),
    )


# Reading


def read(
    context: heat_types.Context, ids: abc.Collection[str]
) -> dict[str, watcher.WatchedRow]:
    """Read the rows of deployments; what is not there is left out."""
    query = sqlalchemy.select(
        _Deployment.id,
        _Deployment.config_id,
        _Deployment.status,
        _Deployment.status_reason,
    )
    return {
        row.id: watcher.WatchedRow(
            config_id=row.config_id,
            in_progress=row.status == heat_values.IN_PROGRESS,
            begun=tokens.STARTED.marks(row.status_reason),
        )
        for row in select_in(context, query, _Deployment.id, ids)
    }


_WITH_CONFIG = sqlalchemy.select(_Deployment, _Config).join(
    _Config, _Config.id == _Deployment.config_id
)


def visible(
    context: heat_types.Context, ids: abc.Collection[str]
) -> dict[str, heat_values.DeploymentRow]:
    """Read deployments that Heat lets the project see, by id."""
    query = _WITH_CONFIG
    if not context.is_admin:
        query = query.where(is_readable(context))
    pairs = select_in(context, query, _Deployment.id, ids)
    return {row.id: _row(row, config) for row, config in pairs}


def is_readable(context: heat_types.Context) -> Any:
    """Return the condition that Heat lets a project read deployments."""
    project_id = context.project_id
    return sqlalchemy.or_(
        _Deployment.tenant == project_id,
        _Deployment.stack_user_project_id == project_id,
    )


def of_group(context: heat_types.Context, group_id: str) -> list[Dated]:
    """Read the deployments of a group, in the order of delivery.

    :param group_id: may be that of a nested stack.
    """
    resource = models.Resource
    is_member = _Deployment.id.in_(
        sqlalchemy.select(resource.physical_resource_id).where(
            resource.stack_id == group_id
        )
    )
    if signal_names.is_group(group_id):
        is_member = _is_below(_Deployment.id, group_id)
    query = _WITH_CONFIG.where(is_member).order_by(_Config.created_at)
    return [
        (
            _row(row, config),
            config.created_at,
            row.updated_at or row.created_at,
        )
        for row, config in select(context, query)
    ]


def servers_of(
    context: heat_types.Context, ids: abc.Collection[str]
) -> dict[str, str]:
    """Return the servers of deployments of the project, by deployment."""
    query = sqlalchemy.select(_Deployment.id, _Deployment.server_id).where(
        _Deployment.tenant == context.project_id
    )
    return {
        row.id: row.server_id
        for row in select_in(context, query, _Deployment.id, ids)
    }


def configs(context: heat_types.Context, ids: abc.Collection[str]) -> set[str]:
    """Return which of some configs there are."""
    query = sqlalchemy.select(_Config.id)
    return {row.id for row in select_in(context, query, _Config.id, ids)}


def configs_of(
    context: heat_types.Context, server_ids: abc.Collection[str]
) -> dict[str, list[Any]]:
    """Return the configs that Heat has to tell servers, by their ids."""
    query = (
        sqlalchemy.select(_Deployment.server_id, _Config)
        .join(_Config, _Config.id == _Deployment.config_id)
        .where(is_readable(context))
        .order_by(_Deployment.created_at)
    )
    configs: dict[str, list[Any]] = {each: [] for each in server_ids}
    for server_id, config in select_in(
        context, query, _Deployment.server_id, configs.keys()
    ):
        configs[server_id].append(config)
    return configs


def _is_below(column: Any, group_id: str) -> Any:
    """Return the condition that something belongs to a group."""
    return column.startswith(
        signal_names.group_prefix(group_id), autoescape=True
    )


def _row(row: Any, config: Any) -> heat_values.DeploymentRow:
    return heat_values.DeploymentRow(
        id=row.id,
        server_id=row.server_id,
        config=own_heat.config(config),
        action=row.action,
        status=row.status,
        reason=row.status_reason,
        outputs=row.output_values or {},
        input_values=row.input_values or {},
        reading_project=row.stack_user_project_id,
    )


# Writing


def create(context: heat_types.Context, **values: object) -> None:
    """Write the row of a deployment; what is left out is empty."""
    now = timeutils.utcnow()
    write(
        context,
        sqlalchemy.insert(_Deployment).values(created_at=now, **values),
    )


def change(
    context: heat_types.Context, deployment_id: str, **values: object
) -> None:
    """Change columns of a deployment's row.

    Heat's own update ignores empty values, and never changes which stack's
    users may read the row.
    """
    write(context, _change(_Deployment.id == deployment_id, **values))


def _change(*conditions: Any, **values: object) -> sqlalchemy.Update:
    return sqlalchemy.update(_Deployment).where(*conditions).values(**values)


def settle(
    context: heat_types.Context,
    outcomes: abc.Mapping[watcher.Ticket, body.SignalOutcome],
) -> set[watcher.Ticket]:
    """Write how deployments ended, if their rows do not say so already.

    One transaction writes all.

    :returns: those whose outcome counts.
    """
    now = timeutils.utcnow()
    # Else two engines that settle the same ones would conflict.
    tickets = sorted(outcomes, key=lambda each: each.deployment_id)
    return change_each(
        context,
        {
            each: _change(
                *_is_waited_for(each),
                status=outcomes[each].status,
                status_reason=outcomes[each].reason,
                output_values=dict(outcomes[each].outputs),
                updated_at=now,
            )
            for each in tickets
        },
    )


def begin(
    context: heat_types.Context, tickets: abc.Collection[watcher.Ticket]
) -> set[watcher.Ticket]:
    """Write that servers have started; return of which that is news.

    All in one transaction.
    """
    reason = tokens.STARTED.after('The server has started the action')
    is_news = ~says(_Deployment.status_reason, tokens.STARTED)
    return change_each(
        context,
        {
            each: _change(*_is_waited_for(each), is_news, status_reason=reason)
            for each in tickets
        },
    )


def _is_waited_for(ticket: watcher.Ticket) -> tuple[Any, ...]:
    return (
        _Deployment.id == ticket.deployment_id,
        _Deployment.config_id == ticket.config_id,
        _Deployment.status == heat_values.IN_PROGRESS,
    )


def mark_unhealthy(
    context: heat_types.Context,
    ids: abc.Collection[str],
    *,
    is_unhealthy: bool = True,
) -> None:
    """Mark deployments that a user or a check has found unhealthy, or unmark.

    Their rows say so until the next action is delivered. So a heat-engine
    that continues the update of a dead one knows which servers have not run
    it yet.

    :param ids: a group's means its members. Only complete ones are marked.
    """
    reason = _('No longer marked unhealthy')
    conditions = [_Deployment.status == heat_values.COMPLETE]
    if is_unhealthy:
        reason = tokens.UNHEALTHY.after(
            _('The next update of the stack runs it again')
        )
    else:
        conditions += [says(_Deployment.status_reason, tokens.UNHEALTHY)]
    write(
        context,
        *(
            _change(
                _is_below(_Deployment.id, each)
                if signal_names.is_group(each)
                else _Deployment.id == each,
                *conditions,
                status_reason=reason,
            )
            for each in ids
        ),
    )


def deliver(
    made: abc.Collection[tuple[deliveries.Delivery, str]],
) -> abc.Collection[str]:
    """Write configs and deployments as one transaction.

    What is written already, by an attempt before, is written over.

    :param made: with the ids of their projects.
    :returns: nothing that anybody waits for.
    """
    now = timeutils.utcnow()
    # Heat's database checks no permissions.
    context = heat_context.get_admin_context()
    with db_api.context_manager.writer.using(context) as session:
        there = {
            number
            for some in batches({each.deployment_id for each, _ in made})
            for number in session.execute(
                sqlalchemy.select(_Deployment.id).where(
                    _Deployment.id.in_(some)
                )
            ).scalars()
        }
        session.execute(
            sqlalchemy.insert(_Config),
            [
                {'created_at': now, 'tenant': project_id} | _config(each)
                for each, project_id in made
            ],
        )
        new = []
        for each, project_id in made:
            values = {'tenant': project_id} | _values(each)
            if each.deployment_id not in there:
                new.append(
                    {'id': each.deployment_id, 'created_at': now} | values
                )
                continue
            session.execute(
                _change(
                    _Deployment.id == each.deployment_id,
                    updated_at=now,
                    **values,
                )
            )
        if new:
            session.execute(sqlalchemy.insert(_Deployment), new)
    return ()


def _config(made: deliveries.Delivery) -> dict[str, Any]:
    draft = made.draft
    return {
        'id': made.config_id,
        'group': draft.group,
        'name': draft.name,
        'config': {
            rpc_api.SOFTWARE_CONFIG_INPUTS: list(draft.inputs),
            rpc_api.SOFTWARE_CONFIG_OUTPUTS: list(draft.outputs),
            rpc_api.SOFTWARE_CONFIG_OPTIONS: dict(draft.options),
            rpc_api.SOFTWARE_CONFIG_CONFIG: draft.config,
        },
    }


def _values(made: deliveries.Delivery) -> dict[str, Any]:
    """Return the state of an action that begins, as Heat's own class does."""
    status, reason = heat_values.COMPLETE, _('Not waiting for outputs signal')
    if made.is_signalled:
        status, reason = heat_values.IN_PROGRESS, _('Deploy data available')
    return {
        'config_id': made.config_id,
        'server_id': made.server_id,
        'action': made.action,
        'input_values': made.input_values or {},
        'output_values': dict.fromkeys(body.STANDARD_OUTPUTS),
        'status': status,
        'status_reason': made.reason or reason,
        'stack_user_project_id': made.reading_project,
    }


def detach(
    context: heat_types.Context,
    group_id: str,
    withdrawals: abc.Sequence[fleets.Withdrawal],
) -> set[str]:
    """Take rows from their servers; fail those that come with a reason.

    Such a row is kept by the group itself: Heat writes to a server's
    metadata what the rows with its id name.

    :returns: the ids of the deployments that have not ended meanwhile.
    """
    leaving = [w.deployment_id for w in withdrawals if w.reason is None]
    write(
        context,
        *(
            _change(_Deployment.id.in_(some), server_id=group_id)
            for some in batches(leaving)
        ),
    )
    now = timeutils.utcnow()
    failed = change_each(
        context,
        {
            each.deployment_id: _change(
                _Deployment.id == each.deployment_id,
                _Deployment.config_id == each.config_id,
                _Deployment.status == heat_values.IN_PROGRESS,
                server_id=group_id,
                status=heat_values.FAILED,
                status_reason=each.reason,
                updated_at=now,
            )
            # Else two that settle the same ones would conflict.
            for each in sorted(
                withdrawals, key=lambda each: each.deployment_id
            )
            if each.reason is not None
        },
    )
    return failed.union(leaving)


def delete(context: heat_types.Context, ids: abc.Collection[str]) -> list[Any]:
    """Delete deployments, as far as Heat lets the project see them.

    :returns: rows with ``id``, ``server_id``, and ``reading_project``, whose
        stack users could read it, if any.
    """
    query = sqlalchemy.select(
        _Deployment.id,
        _Deployment.server_id,
        _Deployment.stack_user_project_id.label('reading_project'),
    )
    if not context.is_admin:
        query = query.where(is_readable(context))
    there = list(select_in(context, query, _Deployment.id, ids))
    write(
        context,
        *(
            sqlalchemy.delete(_Deployment).where(_Deployment.id.in_(some))
            for some in batches({each.id for each in there})
        ),
    )
    return there


def delete_configs(
    context: heat_types.Context, ids: abc.Collection[str]
) -> set[str]:
    """Delete configs of the project that no deployment has; return those."""
    there = configs(context, ids)
    used = sqlalchemy.select(_Deployment.config_id).where(
        _Deployment.config_id == _Config.id
    )
    query = sqlalchemy.delete(_Config).where(~used.exists())
    if not context.is_admin:
        query = query.where(_Config.tenant == context.project_id)
    write(context, *(query.where(_Config.id.in_(s)) for s in batches(there)))
    return there - configs(context, there)


def erase(
    context: heat_types.Context, group_id: str, ids: abc.Collection[str] = ()
) -> None:
    """Delete rows of a group, and the configs that no row has then."""
    used = sqlalchemy.select(_Deployment.config_id).where(
        _is_below(_Deployment.id, group_id)
    )
    write(
        context,
        *(
            sqlalchemy.delete(_Deployment).where(_Deployment.id.in_(some))
            for some in batches(ids)
        ),
        sqlalchemy.delete(_Config).where(
            _is_below(_Config.id, group_id), _Config.id.not_in(used)
        ),
    )
