# SPDX-License-Identifier: Apache-2.0
"""Add the tables of runs and their targets.

Several engines may upgrade at once, and MySQL commits each statement: a table
that exists counts as made.
"""

from alembic import op

from heat_plugins.engine.database import run_tables

revision = 'heat_plugins_1'
down_revision = None


def upgrade() -> None:
    run_tables.METADATA.create_all(op.get_bind())
