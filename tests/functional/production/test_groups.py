# SPDX-License-Identifier: Apache-2.0
"""A group of fifty on two engines, of which one dies, and so does more."""

from collections.abc import Callable
import time
from typing import Any

import pytest

from tests.functional import base
from tests.functional.production import tables
from tests.functional.production import test_services
from tests.functional.production import waits

COUNT = 50


def _engines_die(cloud: Any, _: Callable[[], None]) -> None:
    # One of the two has the group.
    for engine in ('heat-engine-1', 'heat-engine-2'):
        cloud.kill(engine)
        cloud.start(engine)


def _database_is_away(cloud: Any, answer: Callable[[], None]) -> None:
    cloud.stop('mariadb')
    try:
        answer()
        time.sleep(test_services.OUTAGE)
    finally:
        cloud.start('mariadb')


@pytest.mark.parametrize('fault', [_engines_die, _database_is_away])
def test_each_server_of_a_group_runs_it_once(
    cloud: Any,
    stacks: base.Make,
    fault: Callable[[Any, Callable[[], None]], None],
) -> None:
    whole = base.group(COUNT, signal_transport='TEMP_URL_POLL')
    stack = stacks(whole)
    heat = tables.Tables(cloud)
    ran: dict[str, set[str]] = {}

    def waiting() -> list[tables.Row]:
        return [one for one in heat.look()[1] if one.status == 'IN_PROGRESS']

    def answer(rows: list[tables.Row]) -> None:
        for one in rows:
            ran.setdefault(one.name, set()).add(one.config_id)
            assert base.put(one.url, waits.body(one.name)) == 201

    base.until(lambda: len(waiting()) == COUNT, 120)
    first, *others = waiting()
    answer([first])
    fault(cloud, lambda: answer(others))

    def done() -> bool:
        # What was delivered again has another config.
        answer(
            [o for o in waiting() if o.config_id not in ran.get(o.name, ())]
        )
        return stack.status == 'CREATE_COMPLETE'

    base.until(done, 240)
    assert {len(configs) for configs in ran.values()} == {1}
    states = stack.resource('group', 'members')['attributes']['members']
    assert [one['status'] for one in states.values()] == ['COMPLETE'] * COUNT
    assert not waiting()
