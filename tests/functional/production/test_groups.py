# SPDX-License-Identifier: Apache-2.0
"""A group of fifty on two engines, which die one after the other."""

import contextlib

import pytest

from tests.functional import base
from tests.functional.production import waits

COUNT = 50


@pytest.mark.long
@pytest.mark.timeout(800)
def test_each_server_of_a_group_runs_each_action_once(cloud, stacks):
    whole = base.group(
        COUNT,
        signal_transport='TEMP_URL_POLL',
        actions=['CREATE', 'UPDATE', 'DELETE'],
    )
    stack = stacks(whole)
    answered = set()

    def given(action):
        """Return the configs of an action that nobody has answered."""
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
            url = base.signal_url(config)
            assert base.put(url, waits.body('hello')) == 201

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
