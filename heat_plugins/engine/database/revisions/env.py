# SPDX-License-Identifier: Apache-2.0
"""What alembic runs to upgrade our tables; see `run_tables.upgrade`."""

from alembic import context

from heat_plugins.engine.database import run_tables

context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=run_tables.METADATA,
    version_table=run_tables.VERSIONS,
)
with context.begin_transaction():
    context.run_migrations()
