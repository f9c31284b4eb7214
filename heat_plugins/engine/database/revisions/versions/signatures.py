# SPDX-License-Identifier: Apache-2.0
"""Add the signatures by which answers that come by heat-api-cfn are found.

A revision before this may have added the column already.
"""

from alembic import op
import sqlalchemy

from heat_plugins.engine.database import run_tables

revision = 'heat_plugins_3'
down_revision = 'heat_plugins_2'


def upgrade() -> None:
    there, table = sqlalchemy.inspect(op.get_bind()), run_tables.TARGET
    column = table.c.signature
    if column.name not in [e['name'] for e in there.get_columns(table.name)]:
        op.add_column(table.name, sqlalchemy.Column(column.name, column.type))
    known = [each['name'] for each in there.get_indexes(table.name)]
    for index in table.indexes:
        if column.name in index.columns and index.name not in known:
            index.create(op.get_bind())
