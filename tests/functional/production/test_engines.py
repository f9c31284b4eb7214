# SPDX-License-Identifier: Apache-2.0
"""Engines that die, or are restarted, while deployments wait."""

from tests.functional import base
from tests.functional.production import waits


def test_deployments_and_a_delete_of_a_killed_engine_go_on(cloud, stacks):
    stack = stacks(waits.template(actions=['CREATE', 'DELETE']))
    before = waits.all_wait(stack)
    cloud.kill('heat-engine-1')
    waits.answer(stack)
    stack.wait('CREATE_COMPLETE')
    assert waits.answers(stack) == dict(
        zip(waits.NAMES, waits.NAMES, strict=True)
    )
    # What a dead engine had delivered runs once.
    for name in waits.NAMES:
        assert stack.deployment(name).config == before[name].config
    cloud.start('heat')
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


def test_deployments_go_on_however_often_their_engines_are_killed(
    cloud, stacks
):
    template = waits.template(actions=['CREATE', 'UPDATE', 'DELETE'])
    stack = stacks(template)
    before = waits.all_wait(stack)
    for _ in range(3):
        cloud.kill('heat')
        cloud.start('heat')
    # The servers have it, and run it once.
    ids = {one.config['id'] for one in before.values()}
    assert {one['id'] for one in stack.metadata()} == ids
    waits.answer(stack)
    stack.wait('CREATE_COMPLETE')
    assert waits.answers(stack) == dict(
        zip(waits.NAMES, waits.NAMES, strict=True)
    )
    # Nor does what goes undo anything there, which nobody would answer.
    stack.update(template, who='moon')
    waits.answer(stack)
    stack.wait('UPDATE_COMPLETE')
    assert len(stack.metadata()) == waits.COUNT
    stack.delete()
    waits.answer(stack)
    stack.wait('DELETE_COMPLETE')
