# SPDX-License-Identifier: Apache-2.0
"""Runs while engines die, stand still or lose their database."""

import contextlib
import functools
import os
import time

import pytest
import sqlalchemy

from tests.functional import base
from tests.functional import conftest as functional
from tests.functional import running
from tests.functional.production import conftest
from tests.functional.production import waits
from tests.unit import databases

#: Seconds; long enough for another engine to continue.
_OUTAGE = int(os.environ.get('OUTAGE', 30))


class _MariaDB:
    def __init__(self, cloud):
        self.stop = functools.partial(cloud.stop, 'mariadb')
        self.start = functools.partial(cloud.start, 'mariadb')


@pytest.fixture(scope='module', params=['MariaDB', 'PostgreSQL'])
def database(request, cloud):
    """Return the server of Heat's tables, which can be stopped and started."""
    if request.param == 'MariaDB':
        return _MariaDB(cloud)
    try:
        return databases.PostgreSQL()
    except databases.Missing as missing:
        pytest.skip(f'PostgreSQL is not here: {missing}')


@pytest.fixture(scope='module')
def engines(request, cloud, database):
    """A cloud with two engines on that server."""
    if not isinstance(database, databases.PostgreSQL):
        yield cloud
        return
    conf = f'{conftest.CONF}[database]\nconnection = {database.url}\n'
    for found in functional.clouds(request, 'postgresql', conf):
        with sqlalchemy.create_engine(database.url).connect() as connection:
            engines = sqlalchemy.text('SELECT count(*) FROM service')
            assert connection.scalar(engines) > 1
        yield found


@pytest.fixture
def stacks(engines):
    yield from functional.clean_stacks(engines)


def kill(cloud, _database):
    cloud.kill('heat-engine-1')


def freeze(cloud, _database):
    with cloud.frozen('heat-engine-1'):
        time.sleep(_OUTAGE)


def lose_database(_cloud, database):
    database.stop()
    time.sleep(_OUTAGE)
    database.start()


@pytest.mark.parametrize('fault', [kill, freeze, lose_database])
def test_a_run_continues_and_each_server_runs_it_once(
    engines, database, stacks, fault
):
    scripts = {'CREATE': '', 'BACKUP': 'true'}
    stack = stacks(
        base.software(
            deployments=waits.COUNT,
            config=running.component(scripts, {}),
            input_values={},
            signal_transport='NO_SIGNAL',
        )
    )
    stack.wait('CREATE_COMPLETE')
    user = running.client(engines)
    # Either engine may lead one of them.
    begun = [
        user.start('BACKUP', stacks=[stack.name], resources=[name])
        for name in waits.NAMES
    ]
    base.until(lambda: len(running.given(stack)) == waits.COUNT)
    given = running.configs(stack)
    ids = {config['id'] for config in given}
    fault(engines, database)
    for config in given:
        base.answer(config)
    seen = set(ids)

    def ended():
        # An engine that has just died may still be asked.
        with contextlib.suppress(base.NotShown, OSError):
            seen.update(one['id'] for one in running.configs(stack))
        return all(user.show(run.id).ended for run in begun)

    base.until(ended, 150)
    # No server was given anything again.
    assert seen == ids
    for run in begun:
        assert user.show(run.id).state == 'complete'
        (target,) = user.targets(run.id)
        assert target.attempt == 1
        user.delete(run.id)
    base.until(lambda: not running.given(stack))


def test_any_engine_takes_requests_and_none_starts_a_run_twice(
    engines, stacks
):
    stack = stacks(running.fleet(2)).created()
    user = running.client(engines)
    run = user.start(
        'BACKUP', stacks=[stack.name], limits={'max_concurrent': 1}
    )
    for _ in range(5):
        user.pause(run.id)
        assert user.show(run.id).state == 'paused'
        user.resume(run.id)
        again = user.start(
            'BACKUP',
            run_id=run.id,
            stacks=[stack.name],
            limits={'max_concurrent': 1},
        )
        assert again.created_at == run.created_at
    user.cancel(run.id)
    assert user.wait(run.id, 60).state == 'cancelled'
    user.delete(run.id)
