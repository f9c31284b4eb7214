# SPDX-License-Identifier: Apache-2.0
"""Engines that die, or are restarted, while deployments wait."""

import pytest

from tests.functional import base
from tests.functional.production import waits


@pytest.mark.parametrize(
    'killed',
    [
        pytest.param(['heat-engine-1'], id='one of two'),
        pytest.param(['heat-engine-1', 'heat-engine-2'], id='all'),
    ],
)
def test_deployments_of_a_killed_engine_go_on(cloud, stacks, killed):
    stack = stacks(waits.template())
    before = waits.all_wait(stack)
    for engine in killed:
        cloud.kill(engine)
    if len(killed) == 2:
        cloud.start('heat')
    waits.answer(stack)
    stack.wait('CREATE_COMPLETE')
    assert waits.answers(stack) == dict(
        zip(waits.NAMES, waits.NAMES, strict=True)
    )
    # What a dead engine had handed out counts no more, and is not there.
    configs = {one['id'] for one in stack.metadata()}
    after = {name: stack.deployment(name) for name in waits.NAMES}
    repeated = [
        name for name in waits.NAMES if before[name].id != after[name].id
    ]
    assert len(killed) == 1 or repeated == waits.NAMES
    for name in repeated:
        assert before[name].config['id'] not in configs
        before[name].put(waits.body('late'))
    assert waits.answers(stack) == dict(
        zip(waits.NAMES, waits.NAMES, strict=True)
    )


def test_a_second_engine_that_is_killed_fails_the_stack_with_its_reason(
    cloud, stacks
):
    template = waits.template()
    stack = stacks(template)
    before = waits.all_wait(stack)
    cloud.kill('heat')
    cloud.start('heat')
    base.until(
        lambda: all(
            (found := stack.deployment(name)) and found.id != before[name].id
            for name in waits.NAMES
        ),
        180,
    )
    waits.all_wait(stack)
    cloud.kill('heat')
    cloud.start('heat')
    # Heat repeats what was lost once in what a stack does, and no more.
    stack.wait('CREATE_FAILED', 180)
    assert 'has died' in stack.reason
    stack.update(template)
    waits.answer(stack)
    stack.wait('UPDATE_COMPLETE')
    assert waits.answers(stack) == dict(
        zip(waits.NAMES, waits.NAMES, strict=True)
    )


def test_an_update_of_a_killed_engine_is_repeated_as_an_update(cloud, stacks):
    template = waits.template()
    stack = stacks(template)
    waits.answer(stack)
    stack.wait('CREATE_COMPLETE')
    ids = {name: stack.deployment(name).id for name in waits.NAMES}
    stack.update(template, who='moon')
    waits.all_wait(stack, 'UPDATE')
    cloud.kill('heat-engine-2')
    waits.answer(stack)
    stack.wait('UPDATE_COMPLETE')
    for name in waits.NAMES:
        assert stack.deployment(name).id == ids[name]
        assert stack.deployment(name).action == 'UPDATE'


def test_a_delete_of_a_killed_engine_goes_on(cloud, stacks):
    stack = stacks(waits.template(actions=['CREATE', 'DELETE']))
    waits.answer(stack)
    stack.wait('CREATE_COMPLETE')
    stack.delete()
    base.until(
        lambda: any(
            (found := waits.current(stack, name)) and found.action == 'DELETE'
            for name in waits.NAMES
        )
    )
    cloud.kill('heat-engine-1')
    waits.answer(stack)
    stack.wait('DELETE_COMPLETE')
