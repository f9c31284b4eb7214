# SPDX-License-Identifier: Apache-2.0
"""Software deployments as Heat's database has them.

Heat's own way to a deployment's row is an RPC for each look and each change,
and a change there overwrites whatever came before. Here many rows are read
at once, and a row is settled only while it is still the one that was waited
for, so that two engines cannot both finish a signal.
"""

from collections import abc
import dataclasses

from heat.db import api as db_api
from heat.db import models
from oslo_utils import timeutils
import sqlalchemy

from heat_plugins.signals import body
from heat_plugins.signals import watcher

IN_PROGRESS = 'IN_PROGRESS'

#: The key in a resource's data that says which container its URLs lead to.
CONTAINER_KEY = 'heat_plugins_signal_container'

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


def traversal(context, stack_id: str) -> Traversal | None:
    """Read what a stack does now; None if there is no such stack."""
    stack = models.Stack
    query = sqlalchemy.select(
        stack.current_traversal, stack.action, stack.status
    ).where(stack.id == stack_id)
    with db_api.context_manager.reader.using(context) as session:
        row = session.execute(query).first()
    if row is None:
        return None
    return Traversal(
        id=row.current_traversal, action=row.action, status=row.status
    )


def read(context, ids: abc.Collection[str]) -> dict[str, watcher.Row]:
    """Read the rows of deployments; what is not there is left out."""
    wanted = sorted(ids)
    deployment = models.SoftwareDeployment
    found = {}
    with db_api.context_manager.reader.using(context) as session:
        for start in range(0, len(wanted), _BATCH):
            query = sqlalchemy.select(
                deployment.id, deployment.config_id, deployment.status
            ).where(deployment.id.in_(wanted[start : start + _BATCH]))
            for row in session.execute(query):
                found[row.id] = watcher.Row(
                    config_id=row.config_id,
                    in_progress=row.status == IN_PROGRESS,
                )
    return found


def settle(
    context, deployment_id: str, config_id: str, outcome: body.Outcome
) -> bool:
    """Write how a deployment ended, if nobody has before.

    :returns: whether this is the outcome that counts.
    """
    deployment = models.SoftwareDeployment
    statement = (
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
        .execution_options(synchronize_session=False)
    )
    with db_api.context_manager.writer.using(context) as session:
        return session.execute(statement).rowcount == 1


def let_read(context, deployment_id: str, project_id: str | None) -> None:
    """Set whose stack users may read a deployment, beside its own project.

    Heat's own update leaves that as it was when the row was made.
    """
    deployment = models.SoftwareDeployment
    statement = (
        sqlalchemy.update(deployment)
        .where(deployment.id == deployment_id)
        .values(stack_user_project_id=project_id)
        .execution_options(synchronize_session=False)
    )
    with db_api.context_manager.writer.using(context) as session:
        session.execute(statement)


def container_in_use(context, root_stack_id: str, container: str) -> bool:
    """Say whether a deployment of a root stack has a URL to a container."""
    query = (
        sqlalchemy.select(models.ResourceData.id)
        .join(
            models.Resource,
            models.Resource.id == models.ResourceData.resource_id,
        )
        .where(
            models.Resource.root_stack_id == root_stack_id,
            models.ResourceData.key == CONTAINER_KEY,
            models.ResourceData.value == container,
        )
        .limit(1)
    )
    with db_api.context_manager.reader.using(context) as session:
        return session.execute(query).first() is not None
