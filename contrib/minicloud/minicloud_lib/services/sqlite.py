# SPDX-License-Identifier: Apache-2.0
"""SQLite under the many threads of a service.

oslo.db opens transactions that take the write lock with their first write.
Two of them that have read before fail each other at once, with no waiting.
Here a transaction takes the lock when it begins, and waits its turn. And new
rows do not get the numbers of deleted ones.
"""

import sqlite3
from typing import Any

from oslo_db.sqlalchemy import engines
import sqlalchemy
from sqlalchemy import event
from sqlalchemy import pool
from sqlalchemy import schema
from sqlalchemy.ext import compiler

from minicloud_lib.services import counters

_kept: list[sqlite3.Connection] = []


class Pool(pool.QueuePool):
    """Keeps some connections open; as many as are asked for may be.

    Without, oslo.db opens the file for each session and reads all of its
    schema, a sixth of what Keystone does.
    """

    def __init__(self, creator: Any, **options: Any) -> None:
        super().__init__(creator, pool_size=5, max_overflow=-1, **options)


# What oslo.db chooses for SQLite; it is SQLAlchemy's own, for all.
engines.pool.NullPool = Pool


def prepare(url: str) -> None:
    """Call once the tables are there.

    Migrations open transactions inside of others, which would wait for
    themselves.
    """
    event.listen(
        sqlalchemy.Engine, 'before_cursor_execute', _begin_now, retval=True
    )
    file = sqlalchemy.make_url(url).database
    if file is None:
        raise ValueError(f'{url} names no file')
    # Closing the file for the last time folds the write-ahead log into it.
    connection = sqlite3.connect(file, timeout=60, check_same_thread=False)
    connection.execute('PRAGMA journal_mode=WAL')
    connection.execute('SELECT count(*) FROM sqlite_master').fetchone()
    _kept.append(connection)


@compiler.compiles(schema.CreateTable, 'sqlite')  # type: ignore[misc]
def _number_once(
    create: schema.CreateTable, dialect: Any, **options: Any
) -> Any:
    """Let no new row have the number of one that was deleted.

    Elsewhere no database reuses them, and Heat counts on that: it deletes
    the stored attributes of a resource by a number that it remembers.
    """
    table = create.element
    key = list(table.primary_key)
    if len(key) == 1 and isinstance(key[0].type, sqlalchemy.Integer):
        table.dialect_options['sqlite']['autoincrement'] = True
    return dialect.visit_create_table(create, **options)


def _begin_now(
    conn: object,
    cursor: object,
    statement: str,
    parameters: object,
    context: object,
    executemany: bool,
) -> tuple[str, object]:
    if statement == 'BEGIN':
        return 'BEGIN IMMEDIATE', parameters
    counters.statements.add(statement.split(None, 1)[0].upper())
    return statement, parameters
