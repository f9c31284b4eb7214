# SPDX-License-Identifier: Apache-2.0
"""Several deployments that wait, and a server that answers each of them."""

import contextlib

from tests.functional import base

COUNT = 4
NAMES = [f'deployment{number}' for number in range(COUNT)]


def template(**properties):
    return base.software(deployments=COUNT, **properties)


def all_wait(stack, action='CREATE'):
    """Return the deployments of a stack once all of them wait."""
    return {name: stack.waiting(name, action) for name in NAMES}


def current(stack, name):
    """Return a deployment as it is now, unless it has gone."""
    # Also while it is asked for.
    with contextlib.suppress(AssertionError, base.NotShown):
        return stack.deployment(name)
    return None


def answer(stack, seconds=240):
    """Signal what each deployment now waits for, until the stack is done.

    One that is gone on with has another config, and with it another URL.
    Each answers with its own name.
    """
    answered = set()

    def done():
        for name in NAMES:
            found = current(stack, name)
            if found is None or found.status != 'IN_PROGRESS':
                continue
            if found.config['id'] not in answered:
                answered.add(found.config['id'])
                found.answer(greeting=name)
        return not stack.status.endswith('IN_PROGRESS')

    base.until(done, seconds)


def answers(stack):
    """Return what the deployments of a stack have been answered."""
    return {name: stack.outputs[f'{name}_greeting'] for name in NAMES}
