# SPDX-License-Identifier: Apache-2.0
"""Software deployments as Heat's database has them.

Heat's own way to a deployment's row is an RPC for each look and each change,
and a change there overwrites whatever came before. Here many rows are read
at once, and a row is settled only while it is still the one that was waited
for, so that two engines cannot both finish a signal.
"""

from collections import abc
import contextlib
import dataclasses
from typing import Any, TypeVar

from heat.common import exception
from heat.db import api as db_api
from heat.db import models
from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exception
from oslo_utils import timeutils
import sqlalchemy
from sqlalchemy import orm

from heat_plugins import errors
from heat_plugins.engine import heat_types
from heat_plugins.signals import body
from heat_plugins.signals import group_ids
from heat_plugins.signals import watcher

IN_PROGRESS = 'IN_PROGRESS'

#: The reason of a deployment in progress whose server has reported.
BEGUN = 'The server has started the action'

# The same as releases before 0.2 have written it.
_BEGUN = (BEGUN, 'The server is at it')

#: The key in a resource's data that says which container its URLs lead to.
CONTAINER_KEY = 'heat_plugins_signal_container'

_Key = TypeVar('_Key')

# Databases limit how many values one statement may name.
_BATCH = 500


@dataclasses.dataclass(frozen=True, kw_only=True)
class Traversal:
    """What a stack does.

    :ivar id: another one for each thing that it does.
    """

    id: str | None
    action: str
    status: str


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


def traversals(
    context: heat_types.Context, stack_ids: abc.Collection[str]
) -> dict[str, Traversal]:
    """Read what stacks do now; those that are gone are left out."""
    stack = models.Stack
    columns = (stack.id, stack.current_traversal, stack.action, stack.status)
    return {
        row.id: Traversal(
            id=row.current_traversal, action=row.action, status=row.status
        )
        for row in _select(context, columns, stack_ids)
    }


def read(
    context: heat_types.Context, ids: abc.Collection[str]
) -> dict[str, watcher.Row]:
    """Read the rows of deployments; what is not there is left out."""
    deployment = models.SoftwareDeployment
    columns = (
        deployment.id,
        deployment.config_id,
        deployment.status,
        deployment.status_reason,
    )
    return {
        row.id: watcher.Row(
            config_id=row.config_id,
            in_progress=row.status == IN_PROGRESS,
            begun=row.status_reason in _BEGUN,
        )
        for row in _select(context, columns, ids)
    }


def _select(
    context: heat_types.Context,
    columns: abc.Sequence[Any],
    ids: abc.Collection[str],
) -> abc.Iterator[Any]:
    """Yield the rows with the ids; the first column is the one of those."""
    key = columns[0]
    with db_api.context_manager.reader.using(context) as session:
        for some in batches(ids):
            query = sqlalchemy.select(*columns).where(key.in_(some))
            yield from session.execute(query)


def batches(ids: abc.Collection[str]) -> abc.Iterator[list[str]]:
    """Yield as many ids at a time as one statement may name."""
    wanted = sorted(ids)
    for start in range(0, len(wanted), _BATCH):
        yield wanted[start : start + _BATCH]


def create(context: heat_types.Context, **values: object) -> None:
    """Write the row of a deployment; what is left out is empty."""
    with db_api.context_manager.writer.using(context) as session:
        session.execute(
            sqlalchemy.insert(models.SoftwareDeployment),
            {'created_at': timeutils.utcnow(), **values},
        )


def note_physical_id(
    context: heat_types.Context, number: int, physical_id: str | None
) -> None:
    """Write the physical id of a resource, whatever else changes there.

    :param number: of the resource, in the database.
    """
    row = models.Resource
    _write(
        context,
        sqlalchemy.update(row)
        .where(row.id == number)
        .values(physical_resource_id=physical_id),
    )


def settle(
    context: heat_types.Context,
    outcomes: abc.Mapping[watcher.Ticket, body.Outcome],
) -> set[watcher.Ticket]:
    """Write how deployments ended, if their rows do not say so already.

    One transaction writes all.

    :returns: those whose outcome counts.
    """
    # Else two engines that settle the same ones would conflict.
    tickets = sorted(outcomes, key=lambda each: each.deployment_id)
    met = _write(
        context,
        *(
            _settlement(each.deployment_id, each.config_id, outcomes[each])
            for each in tickets
        ),
    )
    return {
        ticket for ticket, count in zip(tickets, met, strict=True) if count
    }


def _settlement(
    deployment_id: str, config_id: str, outcome: body.Outcome
) -> sqlalchemy.Update:
    deployment = models.SoftwareDeployment
    return (
        sqlalchemy.update(deployment)
        .where(
            deployment.id == deployment_id,
            deployment.config_id == config_id,
            deployment.status == IN_PROGRESS,
        )
        .values(
            status=outcome.status,
            status_reason=outcome.reason,
            output_values=dict(outcome.outputs),
            updated_at=timeutils.utcnow(),
        )
    )


def begin(
    context: heat_types.Context, tickets: abc.Collection[watcher.Ticket]
) -> set[watcher.Ticket]:
    """Write that servers have started; return of which that is news.

    All in one transaction.
    """
    deployment = models.SoftwareDeployment
    return change_each(
        context,
        {
            each: sqlalchemy.update(deployment)
            .where(
                deployment.id == each.deployment_id,
                deployment.config_id == each.config_id,
                deployment.status == IN_PROGRESS,
                deployment.status_reason.not_in(_BEGUN),
            )
            .values(status_reason=BEGUN)
            for each in tickets
        },
    )


def change(
    context: heat_types.Context, deployment_id: str, **values: object
) -> None:
    """Change columns of a deployment's row.

    Heat's own update ignores empty values, and never changes which stack's
    users may read the row.
    """
    deployment = models.SoftwareDeployment
    statement = (
        sqlalchemy.update(deployment)
        .where(deployment.id == deployment_id)
        .values(**values)
    )
    _write(context, statement)


def change_each(
    context: heat_types.Context, statements: abc.Mapping[_Key, Any]
) -> set[_Key]:
    """Run statements as one transaction; return which have met one row."""
    met = _write(context, *statements.values())
    return {
        key for key, count in zip(statements, met, strict=True) if count == 1
    }


@oslo_db_api.wrap_db_retry(  # type: ignore[untyped-decorator]
    max_retries=3,
    retry_interval=0.5,
    retry_on_deadlock=True,
    retry_on_disconnect=True,
)
def _write(
    context: heat_types.Context, *statements: sqlalchemy.Update
) -> list[int]:
    """Run statements as a transaction; return how many rows each has met.

    A node of a Galera cluster refuses what another one has just changed. No
    later call may bring a signal that was lost so: hence the attempts.
    """
    options = {'synchronize_session': False}
    try:
        with db_api.context_manager.writer.using(context) as session:
            return [
                session.execute(each, execution_options=options).rowcount
                for each in statements
            ]
    except (db_exception.DBConnectionError, db_exception.DBDeadlock) as exc:
        # What makes the attempts logs the last one, with what it quotes.
        raise type(exc)() from None


def container_in_use(
    context: heat_types.Context, root_stack_id: str, container: str
) -> bool:
    """Say whether a deployment of a root stack has a URL to a container.

    One of a root stack that is gone has none: Heat keeps the nested stacks
    of a stack that it has abandoned.
    """
    query = (
        sqlalchemy.select(models.ResourceData.id)
        .join(
            models.Resource,
            models.Resource.id == models.ResourceData.resource_id,
        )
        .join(models.Stack, models.Stack.id == models.Resource.root_stack_id)
        .where(
            models.Resource.root_stack_id == root_stack_id,
            models.Stack.deleted_at.is_(None),
            # What Heat calls complete is deleted a moment later.
            sqlalchemy.or_(
                models.Stack.action != 'DELETE',
                models.Stack.status != 'COMPLETE',
            ),
            models.ResourceData.key == CONTAINER_KEY,
            models.ResourceData.value == container,
        )
    )
    return _finds(context, query)


def has_deployments(context: heat_types.Context, root_stack_id: str) -> bool:
    """Say whether a root stack has deployments that servers were given."""
    query = (
        sqlalchemy.select(models.SoftwareDeployment.id)
        .join(models.Resource, is_of_resource())
        .where(models.Resource.root_stack_id == root_stack_id)
    )
    return _finds(context, query)


def is_of_resource() -> sqlalchemy.ColumnElement[bool]:
    """Return the condition that a deployment is a resource's.

    The resource's own, or that of a member if it is a group.
    """
    number = models.SoftwareDeployment.id
    physical_id = models.Resource.physical_resource_id
    kept = sqlalchemy.func.substr(number, 1, group_ids.KEPT)
    return sqlalchemy.or_(
        physical_id == number, physical_id == kept + group_ids.TAIL
    )


def data_of_later(
    context: heat_types.Context,
    stack_id: str,
    name: str,
    number: int,
    key: str,
) -> set[str]:
    """Return the data of resources that were created after one.

    These are the resources of its name, also those that are deleted.

    :param number: of the one, in the database.
    :param key: of the data; not secret.
    """
    data, row = models.ResourceData, models.Resource
    query = (
        sqlalchemy.select(data.value)
        .join(row, data.resource_id == row.id)
        .where(
            row.stack_id == stack_id,
            row.name == name,
            row.id > number,
            data.key == key,
        )
    )
    with db_api.context_manager.reader.using(context) as session:
        return set(session.execute(query).scalars())


def is_made_anew(
    template_id: object, *, stands: bool = False
) -> sqlalchemy.Exists:
    """Return the condition that a template has another one in its place.

    In the place of the resource that a statement asks for. Heat itself forgets
    whom it was replaced by as soon as a check of it begins, and whom another
    replaces once that has gone.

    :param template_id: a number, or the column that has it.
    :param stands: whether one that has failed does not count.
    """
    row, newer = models.Resource, orm.aliased(models.Resource)
    found = sqlalchemy.exists().where(
        newer.stack_id == row.stack_id,
        newer.name == row.name,
        newer.id > row.id,
        newer.current_template_id == template_id,
        newer.action != 'DELETE',
    )
    return found.where(newer.status != 'FAILED') if stands else found


def may_be_replaced(
    context: heat_types.Context, number: int, template_id: int
) -> bool:
    """Say whether a resource may be replaced for a template.

    It may not if an engine works on it, or if a replacement for that template
    exists already.

    :param number: of the resource, in the database.
    """
    row = models.Resource
    query = sqlalchemy.select(row.id).where(
        row.id == number,
        row.engine_id.is_(None),
        ~is_made_anew(template_id, stands=True),
    )
    return _finds(context, query)


def _finds(context: heat_types.Context, query: sqlalchemy.Select[Any]) -> bool:
    """Say whether a query finds anything."""
    with db_api.context_manager.reader.using(context) as session:
        return session.execute(query.limit(1)).first() is not None
