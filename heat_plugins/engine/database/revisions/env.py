# SPDX-License-Identifier: Apache-2.0
"""The script that alembic runs to upgrade tables; see `run_tables`."""

from alembic import context

from heat_plugins.engine.database import run_tables

context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=run_tables.METADATA,
    version_table=run_tables.VERSIONS,
)
with context.begin_transaction():
    context.run_migrations()
