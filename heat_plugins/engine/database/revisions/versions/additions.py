# SPDX-License-Identifier: Apache-2.0
"""Add the columns and indexes that the tables lack.

Where the first revision has just made the tables, or another engine has done
this meanwhile, nothing is lacking.
"""

from alembic import op
import sqlalchemy

from heat_plugins.engine.database import run_tables

revision = 'heat_plugins_2'
down_revision = 'heat_plugins_1'


def upgrade() -> None:
    there = sqlalchemy.inspect(op.get_bind())
    for table in run_tables.METADATA.sorted_tables:
        columns = [each['name'] for each in there.get_columns(table.name)]
        for column in table.columns:
            if column.name not in columns:
                op.add_column(
                    table.name,
                    sqlalchemy.Column(column.name, column.type),
                )
        indexes = [each['name'] for each in there.get_indexes(table.name)]
        for index in table.indexes:
            if index.name not in indexes:
                index.create(op.get_bind())
