# SPDX-License-Identifier: Apache-2.0
"""Resources that complete together, in a sync point of Heat's.

Heat's own code writes them into one row, from a thread for each: as it does,
and with the turns that deployments of heat-plugins take.
"""

import collections
from concurrent import futures
import pathlib
import tempfile
import threading
import time
import types
from unittest import mock

COUNTS = (100, 200)


def measure(say):
    """Measure both ways with all counts; return a table of them."""
    table = [['', 'seconds', 'writes', 'CPU seconds', 'failures']]
    with tempfile.TemporaryDirectory(prefix='bench-') as folder:
        database = _database(pathlib.Path(folder, 'heat.sqlite'))
        for count in COUNTS:
            for way in ('as Heat does it', 'with turns'):
                _prepare(database)
                cells = _measure(count, way == 'with turns')
                table.append([f'{count}, {way}', *cells])
                say(f'{table[-1]}')
    return table


def _measure(count, in_turns):
    """Let resources complete; return the cells of the table."""
    # These read the configuration as they are imported.
    from heat.common import context
    from heat.engine import sync_point

    from heat_plugins.engine import patches

    def propagate(checker, context, number, *_):
        sync_point.sync(
            context,
            'stack',
            'traversal',
            True,
            lambda *_: None,
            {(each, True) for each in range(count)},
            {(number, True): {'id': number, 'name': f'deployment{number}'}},
        )

    unpack = sync_point._str_unpack_tuple
    if in_turns:
        propagate = patches.in_turn(propagate)
        unpack = patches.remembering(unpack)
    stack = types.SimpleNamespace(id='stack')
    deployment = types.SimpleNamespace(
        type=lambda: 'OS::Heat::SoftwareDeployment'
    )
    together = threading.Barrier(count + 1)

    def complete(number):
        own = context.RequestContext(is_admin=True)
        together.wait()
        propagate(None, own, number, 'traversal', True, deployment, stack)

    write = mock.Mock(side_effect=sync_point.update_input_data)
    with (
        mock.patch.multiple(
            sync_point, _str_unpack_tuple=unpack, update_input_data=write
        ),
        futures.ThreadPoolExecutor(count) as pool,
    ):
        ends = [pool.submit(complete, number) for number in range(count)]
        together.wait()
        begun, cpu = time.monotonic(), time.process_time()
        futures.wait(ends)
        seconds, cpu = time.monotonic() - begun, time.process_time() - cpu
    failures = collections.Counter(
        type(each.exception()).__name__ for each in ends if each.exception()
    )
    return [
        f'{seconds:.2f}',
        # As many as resources, if none is wasted.
        f'{write.call_count}',
        f'{cpu:.2f}',
        f'{failures.total()} {", ".join(sorted(failures))}'.rstrip(),
    ]


def _database(file):
    """Make a database like that of the mini cloud."""
    from heat.db import api as db_api
    from heat.db import models
    from oslo_config import cfg
    import sqlalchemy

    cfg.CONF([], project='heat', default_config_files=[])
    cfg.CONF.set_override('connection', f'sqlite:///{file}', 'database')
    engine = db_api.get_engine()

    @sqlalchemy.event.listens_for(engine, 'connect')
    def prepare(connection, _):
        for pragma in ('journal_mode=WAL', 'synchronous=OFF'):
            connection.execute(f'PRAGMA {pragma}')

    models.BASE.metadata.create_all(engine)
    return engine


def _prepare(database):
    """Let a database have one sync point."""
    from heat.db import models
    import sqlalchemy

    values = {
        **dict.fromkeys(('entity_id', 'stack_id'), 'stack'),
        'traversal_id': 'traversal',
        'is_update': True,
        'atomic_key': 0,
        'input_data': {},
    }
    with database.begin() as connection:
        connection.execute(sqlalchemy.delete(models.SyncPoint))
        connection.execute(sqlalchemy.insert(models.SyncPoint), values)
