# SPDX-License-Identifier: Apache-2.0
"""A group of fifty on two engines, which die one after the other."""

from tests.functional import base
from tests.functional.production import tables
from tests.functional.production import waits

COUNT = 50


def test_each_server_of_a_group_runs_it_once(cloud, stacks):
    whole = base.group(COUNT, signal_transport='TEMP_URL_POLL')
    stack = stacks(whole)
    heat = tables.Tables(cloud)
    ran: dict[str, set[str]] = {}

    def waiting():
        return [one for one in heat.look()[1] if one.status == 'IN_PROGRESS']

    def answer(rows):
        for one in rows:
            ran.setdefault(one.name, set()).add(one.config_id)
            assert base.put(one.url, waits.body(one.name)) == 201

    base.until(lambda: len(waiting()) == COUNT, 120)
    answer(waiting()[:1])
    # One of the two has the group.
    for engine in ('heat-engine-1', 'heat-engine-2'):
        cloud.kill(engine)
        cloud.start(engine)

    def done():
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
