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
from heat_plugins.configs import actions
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import fleets
from heat_plugins.engine import heat_types
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

# No session keeps objects of what statements change.
_UNSYNCHRONIZED = {'synchronize_session': False}


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
        shown: BaseException | None = exc
        while shown is not None:
            if isinstance(shown.__context__, db_exception.DBError):
                # The log then shows neither the cause nor the context.
                shown.__cause__ = None
            # Python lets no chain of contexts lead back to itself.
            shown = shown.__context__
        raise


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
    with db_api.context_manager.writer.using(context) as session:
        return [
            session.execute(each, execution_options=_UNSYNCHRONIZED).rowcount
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
    """Read the rows of deployments that exist, by ID."""
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
    """Read deployments of the project, by id; of any for administrators."""
    query = _WITH_CONFIG
    if not context.is_admin:
        query = query.where(_is_of_project(context))
    return {
        row.id: _row(row, config)
        for row, config in select_in(context, query, _Deployment.id, ids)
    }


def having(
    context: heat_types.Context, config_ids: abc.Collection[str]
) -> list[heat_values.DeploymentRow]:
    """Read the deployments, in any project, of the given configs."""
    return [
        _row(row, config)
        for row, config in select_in(
            context, _WITH_CONFIG, _Config.id, config_ids
        )
    ]


def _is_of_project(context: heat_types.Context) -> Any:
    """Return the condition that a deployment is the project's own.

    Heat's condition is met by one of another project, too, that names this
    one as the project of its stack's users. Nothing comes of such a row here.
    """
    return _Deployment.tenant == context.project_id


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
    query = _WITH_CONFIG.where(is_member, _is_of_project(context)).order_by(
        _Config.created_at
    )
    return [
        (
            _row(row, config),
            config.created_at,
            row.updated_at or row.created_at,
        )
        for row, config in select(context, query)
    ]


def own_count(context: heat_types.Context) -> int:
    """Return how many deployments the project has created."""
    query = (
        sqlalchemy.select(sqlalchemy.func.count())
        .select_from(_Deployment)
        .where(_is_of_project(context))
    )
    return int(select(context, query)[0][0])


def servers_of(
    context: heat_types.Context, ids: abc.Collection[str]
) -> dict[str, str]:
    """Return the servers of deployments of the project, by deployment."""
    query = sqlalchemy.select(_Deployment.id, _Deployment.server_id).where(
        _is_of_project(context)
    )
    return {
        row.id: row.server_id
        for row in select_in(context, query, _Deployment.id, ids)
    }


def configs_of(
    context: heat_types.Context, server_ids: abc.Collection[str]
) -> dict[str, list[Any]]:
    """Return the configs that servers of the project must run, by server."""
    query = (
        sqlalchemy.select(_Deployment.server_id, _Config)
        .join(_Config, _Config.id == _Deployment.config_id)
        .where(_is_of_project(context))
        .order_by(_Deployment.created_at)
    )
    configs: dict[str, list[Any]] = {each: [] for each in server_ids}
    for server_id, config in select_in(
        context, query, _Deployment.server_id, configs.keys()
    ):
        if config.group != actions.WITHDRAWN:
            configs[server_id].append(config)
    return configs


def _is_below(column: Any, group_id: str) -> Any:
    """Return the condition that something belongs to a group."""
    return column.startswith(
        signal_names.group_prefix(group_id), autoescape=True
    )


def _row(row: Any, config: Any) -> heat_values.DeploymentRow:
    """Return a row of Heat's table of deployments as a value."""
    return heat_values.DeploymentRow(
        id=row.id,
        server_id=row.server_id,
        config=stored_config(config),
        action=row.action,
        status=row.status,
        reason=row.status_reason,
        outputs=row.output_values or {},
        input_values=row.input_values or {},
        reading_project=row.stack_user_project_id,
    )


def stored_config(config: Any) -> heat_values.Config:
    """Return a config that Heat has stored, of its row or its object."""
    return heat_values.Config(
        id=config.id,
        name=config.name,
        group=config.group,
        config=config.config[rpc_api.SOFTWARE_CONFIG_CONFIG],
        inputs=config.config[rpc_api.SOFTWARE_CONFIG_INPUTS] or [],
        outputs=config.config[rpc_api.SOFTWARE_CONFIG_OUTPUTS] or [],
        options=config.config[rpc_api.SOFTWARE_CONFIG_OPTIONS] or {},
    )


# Writing


def change(
    context: heat_types.Context, deployment_id: str, **values: object
) -> None:
    """Change columns of a deployment's row.

    Heat's own update ignores empty values, and never changes which stack's
    users may read the row.
    """
    write(
        context,
        _change(
            _Deployment.id == deployment_id, _is_of_project(context), **values
        ),
    )


def _change(*conditions: Any, **values: object) -> sqlalchemy.Update:
    """Return the statement that changes deployments."""
    return sqlalchemy.update(_Deployment).where(*conditions).values(**values)


def settle(
    context: heat_types.Context,
    outcomes: abc.Mapping[watcher.Ticket, body.SignalOutcome],
) -> set[watcher.Ticket]:
    """Write how deployments ended, if their rows do not say so already.

    One transaction writes all.

    :returns: those whose outcome counts.
    """
    # Else two engines that settle the same ones would conflict.
    tickets = sorted(outcomes, key=lambda each: each.deployment_id)
    return change_each(
        context, {each: settling(each, outcomes[each]) for each in tickets}
    )


def settling(
    ticket: watcher.Ticket, outcome: body.SignalOutcome
) -> sqlalchemy.Update:
    """Return the statement that settles a row that is in progress."""
    return _change(
        *_is_waited_for(ticket),
        status=outcome.status,
        status_reason=outcome.reason,
        output_values=dict(outcome.outputs),
        updated_at=timeutils.utcnow(),
    )


def begin(
    context: heat_types.Context, tickets: abc.Collection[watcher.Ticket]
) -> set[watcher.Ticket]:
    """Write that servers have started; return of which that is news.

    All in one transaction.
    """
    return change_each(context, {each: beginning(each) for each in tickets})


def beginning(ticket: watcher.Ticket) -> sqlalchemy.Update:
    """Return the statement that says in a row that its server has started."""
    return _change(
        *_is_waited_for(ticket),
        ~says(_Deployment.status_reason, tokens.STARTED),
        status_reason=tokens.STARTED.after(
            'The server has started the action'
        ),
    )


def _is_waited_for(ticket: watcher.Ticket) -> tuple[Any, ...]:
    """Return the conditions that a deployment still waits with a config."""
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
    conditions = [
        _Deployment.status == heat_values.COMPLETE,
        _is_of_project(context),
    ]
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

    What is written already, by an attempt before, is written over. The
    configs that the deployments had before are deleted.

    :param made: with the ids of their projects.
    :returns: nothing that anybody waits for.
    """
    # Heat's database checks no permissions.
    context = heat_context.get_admin_context()
    with db_api.context_manager.writer.using(context) as session:
        write_deliveries(session, made)
    return ()


def write_deliveries(
    session: Any, made: abc.Collection[tuple[deliveries.Delivery, str]]
) -> None:
    """Write configs and deployments in a transaction; see `deliver`."""
    now = timeutils.utcnow()
    query = sqlalchemy.select(_Deployment.id, _Deployment.config_id)
    former = {
        row.id: row.config_id
        for some in batches({each.deployment_id for each, _ in made})
        for row in session.execute(query.where(_Deployment.id.in_(some)))
    }
    session.execute(
        sqlalchemy.insert(_Config),
        [
            {
                'id': each.config_id,
                'created_at': now,
                'tenant': project_id,
                **_content(each.draft),
            }
            for each, project_id in made
        ],
    )
    new = []
    for each, project_id in made:
        # The state of an action that begins, as Heat's own class has it.
        status, reason = (
            heat_values.COMPLETE,
            _('Not waiting for outputs signal'),
        )
        if each.is_signalled:
            status, reason = (
                heat_values.IN_PROGRESS,
                _('Deploy data available'),
            )
        values = {
            'tenant': project_id,
            'config_id': each.config_id,
            'server_id': each.server_id,
            'action': each.action,
            'input_values': each.input_values or {},
            'output_values': dict.fromkeys(body.STANDARD_OUTPUTS),
            'status': status,
            'status_reason': each.reason or reason,
            'stack_user_project_id': each.reading_project,
        }
        if each.deployment_id not in former:
            new.append({'id': each.deployment_id, 'created_at': now} | values)
            continue
        session.execute(
            _change(
                _Deployment.id == each.deployment_id, updated_at=now, **values
            )
        )
    if new:
        session.execute(sqlalchemy.insert(_Deployment), new)
    _delete_unused(session, set(former.values()))


def _delete_unused(session: Any, config_ids: abc.Collection[str]) -> None:
    """Delete configs that no deployment has."""
    for some in batches(config_ids):
        used = sqlalchemy.select(_Deployment.config_id).where(
            _Deployment.config_id.in_(some)
        )
        session.execute(
            sqlalchemy.delete(_Config).where(
                _Config.id.in_(some), _Config.id.not_in(used)
            ),
            execution_options=_UNSYNCHRONIZED,
        )


def rewrite(
    context: heat_types.Context,
    changed: abc.Mapping[str, heat_values.DerivedConfig],
) -> None:
    """Write other contents of configs, by ID, as one transaction."""
    write(
        context,
        *(
            sqlalchemy.update(_Config)
            .where(_Config.id == config_id)
            .values(**_content(draft))
            # Else two that write the same ones would conflict.
            for config_id, draft in sorted(changed.items())
        ),
    )


def _content(draft: heat_values.DerivedConfig) -> dict[str, Any]:
    """Return a config as Heat's table has it."""
    return {
        'group': draft.group,
        'name': draft.name,
        'config': {
            rpc_api.SOFTWARE_CONFIG_INPUTS: list(draft.inputs),
            rpc_api.SOFTWARE_CONFIG_OUTPUTS: list(draft.outputs),
            rpc_api.SOFTWARE_CONFIG_OPTIONS: dict(draft.options),
            rpc_api.SOFTWARE_CONFIG_CONFIG: draft.config,
        },
    }


@retried
def withdraw(
    context: heat_types.Context, withdrawals: abc.Sequence[fleets.Withdrawal]
) -> set[str]:
    """Take actions from their servers; fail those that come with a reason.

    Heat delivers what rows name, whatever their status. A row that fails
    keeps its server, as Heat's own classes never write that again. Its config
    gets a group for which agents have no hook: none of them runs it. A row
    without a reason gets its own ID for a server, and is deleted next.

    :returns: the ids of the deployments that have not ended meanwhile.
    """
    now = timeutils.utcnow()
    leaving = {w.deployment_id for w in withdrawals if w.reason is None}
    failed = set()
    with db_api.context_manager.writer.using(context) as session:
        for some in batches(leaving):
            change = _change(
                _Deployment.id.in_(some),
                _is_of_project(context),
                server_id=_Deployment.id,
            )
            session.execute(change, execution_options=_UNSYNCHRONIZED)
        # Else two that settle the same ones would conflict.
        for each in sorted(withdrawals, key=lambda each: each.deployment_id):
            if each.reason is None:
                continue
            change = _change(
                _Deployment.id == each.deployment_id,
                _is_of_project(context),
                _Deployment.config_id == each.config_id,
                _Deployment.status == heat_values.IN_PROGRESS,
                status=heat_values.FAILED,
                status_reason=each.reason,
                updated_at=now,
            )
            met = session.execute(change, execution_options=_UNSYNCHRONIZED)
            if met.rowcount:
                failed.add(each)
        for some in batches({each.config_id for each in failed}):
            hide = sqlalchemy.update(_Config).where(_Config.id.in_(some))
            session.execute(
                hide.values(group=actions.WITHDRAWN),
                execution_options=_UNSYNCHRONIZED,
            )
    return leaving.union(each.deployment_id for each in failed)


def delete_configs(
    context: heat_types.Context, ids: abc.Collection[str]
) -> None:
    """Delete configs of the project that no deployment has."""
    used = sqlalchemy.select(_Deployment.config_id).where(
        _Deployment.config_id == _Config.id
    )
    query = sqlalchemy.delete(_Config).where(
        ~used.exists(), _Config.tenant == context.project_id
    )
    write(context, *(query.where(_Config.id.in_(s)) for s in batches(ids)))


@retried
def erase(
    context: heat_types.Context, owner_id: str, ids: abc.Collection[str]
) -> None:
    """Delete rows, and the configs of their owner that no row has then.

    :param owner_id: of the deployment, or of the group.
    """
    with db_api.context_manager.writer.using(context) as session:
        below = sqlalchemy.select(_Config.id).where(
            _is_below(_Config.id, owner_id),
            _Config.tenant == context.project_id,
        )
        config_ids = set(session.execute(below).scalars())
        remove(session, context.project_id, ids, config_ids)


def remove(
    session: Any,
    project_id: str,
    ids: abc.Collection[str],
    config_ids: abc.Collection[str] = (),
) -> None:
    """Delete deployments of a project, in a transaction, and their configs.

    :param config_ids: others to delete. Those that a deployment has stay.
    """
    unused = set(config_ids)
    for some in batches(ids):
        theirs = _Deployment.id.in_(some) & (_Deployment.tenant == project_id)
        given = sqlalchemy.select(_Deployment.config_id).where(theirs)
        unused.update(session.execute(given).scalars())
        session.execute(
            sqlalchemy.delete(_Deployment).where(theirs),
            execution_options=_UNSYNCHRONIZED,
        )
    _delete_unused(session, unused)
