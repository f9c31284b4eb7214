# SPDX-License-Identifier: Apache-2.0
"""Two tables of our own in Heat's database: runs and their targets.

heat-engine makes and upgrades them after its start, in a thread, if its
database user and the option ``manage_tables`` permit that; else ``python -m
heat_plugins tables`` does. Revisions only add, and change nothing that is
there, so that engines of two releases can work at once.

Columns of their own have only what a statement compares. All other values are
JSON. Every text is ASCII, as MySQL's utf8mb3 has no emoji, and PostgreSQL no
NUL.
"""

import dataclasses
import functools
import json
import time
from typing import Any

from alembic import command
from alembic import config as alembic_config
from alembic import migration
from alembic import script
from alembic import util as alembic_util
from heat.db import api as db_api
from heat.db import models
from oslo_config import cfg
from oslo_db import exception as db_exception
import sqlalchemy
from sqlalchemy import types
from sqlalchemy.dialects import mysql

from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins.configs import actions
from heat_plugins.engine import heat_types
from heat_plugins.engine import process
from heat_plugins.engine.database import rows

LOG = foreign.logger(__name__)

#: The table that names the revision; Heat's own is ``alembic_version``.
VERSIONS = 'heat_plugins_version'

#: How an operator makes the tables.
COMMAND = 'python -m heat_plugins tables'

METADATA = sqlalchemy.MetaData()

# Seconds for which a statement may wait for a lock of a table.
_LOCK_WAITS = {
    'mysql': 'SET SESSION lock_wait_timeout = 10',
    'mariadb': 'SET SESSION lock_wait_timeout = 10',
    'postgresql': "SET lock_timeout = '10s'",
}

# Seconds until the second try of an upgrade, as others may do the same.
_PAUSE = 1.0

# Seconds after which to see whether an operator has made the tables.
_RETRY = 30


class Json(types.TypeDecorator[Any]):
    """A value in JSON's types, of up to 4 GiB."""

    impl = types.Text().with_variant(mysql.LONGTEXT(), 'mysql', 'mariadb')
    cache_ok = True

    def process_bind_param(
        self, value: Any, dialect: sqlalchemy.Dialect
    ) -> str:
        return json.dumps(value)

    def process_result_value(
        self, value: str | None, dialect: sqlalchemy.Dialect
    ) -> Any:
        return None if value is None else json.loads(value)


class Name(types.TypeDecorator[str]):
    """A text to search by; escaped, and cut where it is longer.

    MySQL would take names for the same that differ in case.
    """

    impl: types.TypeEngine[Any] | type[types.TypeEngine[Any]] = types.String
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length
        ascii_only = mysql.VARCHAR(
            length, charset='ascii', collation='ascii_bin'
        )
        self.impl = types.String(length).with_variant(
            ascii_only, 'mysql', 'mariadb'
        )

    def process_bind_param(
        self, value: str | None, dialect: sqlalchemy.Dialect
    ) -> str | None:
        if value is None:
            return None
        return value.encode('unicode_escape').decode('ascii')[: self.length]


_column = functools.partial(sqlalchemy.Column[Any], nullable=False)


#: A run. Times are seconds since the epoch. ``ended_at`` is NULL while it is
#: in progress, and 0 if a user has deleted it; ``ordered`` is encrypted.
#: ``notice_at`` is when its webhook must be told something, or NULL;
#: ``output_bytes`` is how long the records of its targets were at its end.
RUN = sqlalchemy.Table(
    'heat_plugins_run',
    METADATA,
    _column('id', Name(64), primary_key=True),
    _column('project_id', Name(64)),
    _column('created_at', types.BigInteger),
    _column('ended_at', types.BigInteger, nullable=True),
    _column('created_by', Name(255)),
    _column('action', Name(255)),
    _column('state', Name(32)),
    _column('targets', types.Integer),
    _column('schedule_id', Name(64), nullable=True),
    _column('due_at', types.BigInteger, nullable=True),
    _column('engine_id', Name(64)),
    _column('version', types.Integer),
    _column('last_step', Name(64), nullable=True),
    _column('head', Json()),
    _column('control', Json()),
    _column('ordered', Json()),
    _column('notice_at', types.BigInteger, nullable=True),
    _column('output_bytes', types.BigInteger, nullable=True),
    sqlalchemy.Index(
        'heat_plugins_run_listed', 'project_id', 'created_at', 'id'
    ),
    sqlalchemy.Index('heat_plugins_run_led', 'ended_at', 'engine_id'),
    sqlalchemy.Index('heat_plugins_run_notice', 'notice_at'),
    sqlalchemy.UniqueConstraint(
        'schedule_id', 'due_at', name='heat_plugins_run_tick'
    ),
)

#: A target of a run, and the last attempt on it. ``revision`` is one more with
#: each change, ``changed_at`` is when. By ``signature`` the answer of a server
#: is found that comes by heat-api-cfn; it is a hash of that of its URL.
TARGET = sqlalchemy.Table(
    'heat_plugins_run_target',
    METADATA,
    _column('run_id', Name(64), primary_key=True),
    _column('number', types.Integer, primary_key=True),
    _column('project_id', Name(64)),
    _column('stack_id', Name(64)),
    _column('stack_name', Name(255)),
    _column('server_id', Name(255)),
    _column('server_name', Name(255), nullable=True),
    _column('deployment_id', Name(255)),
    _column('attempt', types.Integer),
    _column('state', Name(32), nullable=True),
    _column('row_id', Name(64), nullable=True),
    _column('live_key', Name(64), nullable=True),
    _column('signature', Name(64), nullable=True),
    _column('revision', types.Integer),
    _column('changed_at', types.BigInteger),
    _column('member', Json()),
    _column('record', Json()),
    sqlalchemy.Index('heat_plugins_target_state', 'run_id', 'state'),
    sqlalchemy.Index('heat_plugins_target_stack', 'stack_id', 'run_id'),
    sqlalchemy.Index('heat_plugins_target_stack_name', 'stack_name', 'run_id'),
    sqlalchemy.Index(
        'heat_plugins_target_server', 'server_id', 'state', 'run_id'
    ),
    sqlalchemy.Index(
        'heat_plugins_target_server_name', 'server_name', 'run_id'
    ),
    sqlalchemy.Index('heat_plugins_target_row', 'row_id'),
    sqlalchemy.Index('heat_plugins_target_signature', 'signature'),
    sqlalchemy.Index('heat_plugins_target_deployment', 'deployment_id'),
    sqlalchemy.UniqueConstraint('live_key', name='heat_plugins_target_live'),
)


def is_ready(engine: sqlalchemy.Engine) -> bool:
    """Say whether the tables are as this release needs them, or later."""
    with engine.connect() as connection:
        present = _revisions(connection)
    # A later release has added to what this one knows.
    return bool(present - _known()) or present == {*_script().get_heads()}


@functools.cache
def revision() -> str:
    """Return the revision that this release needs."""
    return ', '.join(_script().get_heads())


def upgrade(engine: sqlalchemy.Engine) -> None:
    """Make or upgrade the tables.

    Several processes may do so at once: those that fail find it done.
    """
    passing = (
        db_exception.DBError,
        sqlalchemy.exc.SQLAlchemyError,
        # Another process has written the revision meanwhile.
        alembic_util.CommandError,
    )
    retrying.insist(
        _upgrade, engine, on=passing, wait=_PAUSE, sleep=time.sleep
    )


def _upgrade(engine: sqlalchemy.Engine) -> None:
    """Make the tables, or bring them up to date, under alembic's lock."""
    with engine.connect() as connection:
        if wait := _LOCK_WAITS.get(engine.dialect.name):
            connection.execute(sqlalchemy.text(wait))
            # So that the pool does not keep one with that limit.
            connection.detach()
            connection.commit()
        if _revisions(connection) - _known():
            return
        config = _config()
        config.attributes['connection'] = connection
        command.upgrade(config, 'head')
        connection.commit()


def _revisions(connection: sqlalchemy.Connection) -> set[str]:
    """Return the revision that the tables have, if any."""
    context = migration.MigrationContext.configure(
        connection, opts={'version_table': VERSIONS}
    )
    return {*context.get_current_heads()}


def _known() -> set[str]:
    """Return the revisions of the tables that this release knows."""
    return {each.revision for each in _script().walk_revisions()}


def _script() -> script.ScriptDirectory:
    return script.ScriptDirectory.from_config(_config())


def _config() -> alembic_config.Config:
    config = alembic_config.Config()
    config.set_main_option(
        'script_location', 'heat_plugins.engine.database:revisions'
    )
    return config


def _prepare() -> None:
    """Make or upgrade the tables; wait until they are there."""
    is_known = False
    while True:
        reason = '[heat_plugins] manage_tables is false'
        try:
            engine = db_api.get_engine()
            if is_ready(engine):
                return
            if cfg.CONF.heat_plugins.manage_tables:
                upgrade(engine)
                LOG.info("The tables of runs are in Heat's database")
                return
        except Exception as exc:
            # Its message may quote a password.
            reason = type(exc).__name__
        if not is_known:
            LOG.warning(
                "Cannot make the tables of runs in Heat's database: "
                '%(reason)s. Until they are there, heat-engine starts no run. '
                'To make them, run "%(command)s" with the [database] '
                'connection of a user who may create tables',
                {'reason': reason, 'command': COMMAND},
            )
        is_known = True
        time.sleep(_RETRY)


SCAN = process.Scan(
    name='heat-plugins-tables',
    wanted='the tables of runs',
    begin=_prepare,
    option=None,
)


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
    """Return the leftovers of a former release.

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
        ours = sqlalchemy.select(TARGET.c.number).where(
            TARGET.c.row_id == _Deployment.id
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
    """Return the numbers that a query has, by name."""
    return dict(map(tuple, rows.select(context, query)))
