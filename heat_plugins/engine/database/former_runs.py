# SPDX-License-Identifier: Apache-2.0
"""What Heat's tables say of runs that a former release has started.

That release kept runs in the object store. It gave servers deployments of
their own, and registered what it called operations by software configs.
"""

import dataclasses

from heat.db import models
import sqlalchemy

from heat_plugins.configs import actions
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import run_tables

#: The groups of the configs by which operations were registered.
REGISTERED = ('heat-plugins-bound-operation', 'heat-plugins-operation')

# The group of the config of a webhook.
_NOTICES = 'heat-plugins-notices'

_Config, _Deployment = models.SoftwareConfig, models.SoftwareDeployment
_COUNT = sqlalchemy.func.count()


@dataclasses.dataclass(frozen=True, kw_only=True)
class FormerRuns:
    """What there is, by project.

    :ivar running: how many servers have not answered.
    :ivar registered: how many operations have records.
    """

    running: dict[str, int]
    registered: dict[str, int]


def read(context: heat_types.Context, *, has_tables: bool) -> FormerRuns:
    """Return what a former release has left.

    :param has_tables: whether the tables of runs are there, which name the
        deployments of this release.
    """
    running = (
        sqlalchemy.select(_Deployment.tenant, _COUNT)
        .join(_Config, _Config.id == _Deployment.config_id)
        .where(
            _Deployment.status == 'IN_PROGRESS',
            _Deployment.action.not_in(actions.LIFECYCLE),
            _Config.group.not_in((*REGISTERED, _NOTICES)),
        )
        .group_by(_Deployment.tenant)
    )
    if has_tables:
        ours = sqlalchemy.select(run_tables.TARGET.c.number).where(
            run_tables.TARGET.c.row_id == _Deployment.id
        )
        running = running.where(~ours.exists())
    registered = (
        sqlalchemy.select(_Config.tenant, _COUNT)
        .where(_Config.group.in_(REGISTERED))
        .group_by(_Config.tenant)
    )
    return FormerRuns(
        running=_counted(context, running),
        registered=_counted(context, registered),
    )


def _counted(
    context: heat_types.Context, query: sqlalchemy.Select[tuple[str, int]]
) -> dict[str, int]:
    return dict(map(tuple, rows.select(context, query)))
