# SPDX-License-Identifier: Apache-2.0
"""Resources that complete together, in a sync point of Heat's.

Heat's own code writes them into one row, from a thread for each: as it does,
and with the turns that deployments of heat-plugins take. Each measurement is
a process of its own, as what take_turns does cannot be undone::

    python -m tests.bench.completing 200 turns
"""

from collections.abc import Callable
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

from tests.functional import base

COUNTS = (100, 200)

#: What is measured: as Heat does it, and with turns.
WAYS = ('heat', 'turns')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """How a number of them completed.

    :ivar seconds: until the last has.
    :ivar writes: attempts to write the row; the count, if none is wasted.
    :ivar cpu: seconds.
    :ivar failures: the kinds of errors that ended threads.
    """

    count: int
    way: str
    seconds: float
    writes: int
    cpu: float
    failures: list[str]


def measure(say: Callable[[str], None]) -> list[Measured]:
    """Measure all ways with all counts."""
    found = []
    for count in COUNTS:
        for way in WAYS:
            command = [sys.executable, '-m', __name__, f'{count}', way]
            done = subprocess.run(
                command, cwd=base.ROOT, capture_output=True, check=True
            )
            one = Measured(**json.loads(done.stdout.splitlines()[-1]))
            say(f'{count}, {way}: {one.seconds:.1f} s, {one.writes} writes')
            found.append(one)
    return found


def _main(count: int, way: str) -> None:
    with tempfile.TemporaryDirectory(prefix='bench-') as folder:
        found = _measure(count, way, pathlib.Path(folder, 'heat.sqlite'))
    print(json.dumps(dataclasses.asdict(found)))


def _measure(count: int, way: str, database: pathlib.Path) -> Measured:
    # These read the configuration as they are imported.
    from heat.common import context
    from heat.engine import check_resource
    from heat.engine import sync_point

    from heat_plugins.engine import patches

    _prepare(database)
    writes, failures = [], []
    write = sync_point.update_input_data

    def counted(*args: Any, **kwargs: Any) -> Any:
        writes.append(args)
        return write(*args, **kwargs)

    sync_point.update_input_data = counted

    def propagate(checker: object, context: Any, number: int, *_: Any) -> None:
        sync_point.sync(
            context,
            'stack',
            'traversal',
            True,
            lambda *_: None,
            {(each, True) for each in range(count)},
            {(number, True): {'id': number, 'name': f'deployment{number}'}},
        )

    if way == 'turns':
        propagate = patches.in_turn(propagate)
        sync_point._str_unpack_tuple = patches.remembering(
            sync_point._str_unpack_tuple
        )
    check_resource.CheckResource._initiate_propagate_resource = propagate
    together = threading.Barrier(count + 1)

    def complete(number: int) -> None:
        own = context.RequestContext(is_admin=True)
        together.wait()
        try:
            check_resource.CheckResource._initiate_propagate_resource(
                None, own, number, 'traversal', True, _Deployment(), _Stack()
            )
        except Exception as error:
            failures.append(type(error).__name__)

    threads = [
        threading.Thread(target=complete, args=(number,))
        for number in range(count)
    ]
    for thread in threads:
        thread.start()
    together.wait()
    begun, cpu = time.monotonic(), time.process_time()
    for thread in threads:
        thread.join()
    return Measured(
        count=count,
        way=way,
        seconds=time.monotonic() - begun,
        writes=len(writes),
        cpu=time.process_time() - cpu,
        failures=failures,
    )


class _Stack:
    id = 'stack'


class _Deployment:
    @staticmethod
    def type() -> str:
        return 'OS::Heat::SoftwareDeployment'


def _prepare(database: pathlib.Path) -> None:
    """Make a database with one sync point, like that of the mini cloud."""
    from heat.db import api as db_api
    from heat.db import models
    from oslo_config import cfg
    import sqlalchemy

    cfg.CONF([], project='heat', default_config_files=[])
    cfg.CONF.set_override('connection', f'sqlite:///{database}', 'database')
    engine = db_api.get_engine()

    @sqlalchemy.event.listens_for(engine, 'connect')
    def prepare(connection: Any, _: object) -> None:
        for pragma in ('journal_mode=WAL', 'synchronous=OFF'):
            connection.execute(f'PRAGMA {pragma}')

    models.BASE.metadata.create_all(engine)
    values = {
        'entity_id': 'stack',
        'traversal_id': 'traversal',
        'is_update': True,
        'stack_id': 'stack',
        'atomic_key': 0,
        'input_data': {},
    }
    with engine.begin() as connection:
        connection.execute(sqlalchemy.insert(models.SyncPoint), values)


if __name__ == '__main__':
    _main(int(sys.argv[1]), sys.argv[2])
