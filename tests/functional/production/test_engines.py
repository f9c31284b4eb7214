# SPDX-License-Identifier: Apache-2.0
"""Engines that die, or are restarted, while deployments wait."""

import contextlib

import pytest

from tests.functional import base
from tests.functional.production import waits


def test_deployments_go_on_however_often_their_engines_are_killed(
    cloud, stacks
):
    template = waits.template(actions=['CREATE', 'UPDATE', 'DELETE'])
    stack = stacks(template)

    def answered(action):
        waits.answer(stack)
        stack.wait(f'{action}_COMPLETE')

    before = waits.all_wait(stack)
    for _ in range(3):
        cloud.kill('heat')
        cloud.start('heat')
    # The servers have it, and run it once.
    ids = {one.config['id'] for one in before.values()}
    assert {one['id'] for one in stack.metadata()} == ids
    answered('CREATE')
    assert waits.answers(stack) == dict(
        zip(waits.NAMES, waits.NAMES, strict=True)
    )
    for name in waits.NAMES:
        assert stack.deployment(name).config == before[name].config
    # The other engine goes on.
    stack.update(template, who='moon')
    waits.all_wait(stack, 'UPDATE')
    cloud.kill('heat-engine-1')
    answered('UPDATE')
    # A deletion undoes nothing there: no server would answer.
    assert len(stack.metadata()) == waits.COUNT
    cloud.start('heat')
    stack.delete()
    base.until(
        lambda: any(
            (found := waits.current(stack, name)) and found.action == 'DELETE'
            for name in waits.NAMES
        )
    )
    cloud.kill('heat-engine-1')
    answered('DELETE')


COUNT = 50


@pytest.mark.long
def test_each_server_of_a_group_runs_each_action_once(cloud, stacks):
    whole = base.group(
        COUNT,
        signal_transport='TEMP_URL_POLL',
        actions=['CREATE', 'UPDATE', 'DELETE'],
    )
    stack = stacks(whole)
    answered = set()

    def given(action):
        """Return the configs of an action that have no answer yet."""
        # An engine that has just died may still be asked.
        with contextlib.suppress(base.NotShown, OSError):
            return [
                config
                for config in stack.metadata()
                if base.value(config, 'deploy_action') == action
                and config['id'] not in answered
            ]
        return []

    def answer(configs):
        for config in configs:
            answered.add(config['id'])
            base.answer(config, greeting='hello')

    for action, begin in (
        ('CREATE', lambda: None),
        ('UPDATE', lambda: stack.update(whole, who='moon')),
        ('DELETE', stack.delete),
    ):
        begin()
        configs = base.until(
            lambda action=action: (
                len(found := given(action)) == COUNT and found
            ),
            120,
        )
        answer(configs[:1])
        # One of the two has the group.
        for engine in ('heat-engine-1', 'heat-engine-2'):
            cloud.kill(engine)
            cloud.start(engine)
        # What is delivered again has another config, and is one too many.
        answer(configs[1:])
        before = len(answered)
        base.until(
            lambda action=action: (
                answer(given(action)) or stack.status == f'{action}_COMPLETE'
            ),
            240,
        )
        assert len(answered) == before
        if action == 'UPDATE':
            shown = stack.resource('group', 'members')['attributes']
            states = shown['members'].values()
            assert [one['status'] for one in states] == ['COMPLETE'] * COUNT
