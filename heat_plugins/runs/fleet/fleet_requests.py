# SPDX-License-Identifier: Apache-2.0
"""What users may ask of an operation in progress."""

from collections import abc
import json
from typing import Any

from heat_plugins.runs import orchestration
from heat_plugins.runs.fleet import deciding
from heat_plugins.runs.fleet import operation as operations

PAUSE, RESUME, CANCEL, RETRY = 'pause', 'resume', 'cancel', 'retry'

#: Requests that an operation remembers, as a listing may show them again.
KEPT = 20

#: The group of the config by which engines find an operation in progress.
GROUP = 'heat-plugins-operation'


#: The most stacks that such a config names; an engine needs one of them.
STACKS = 100


def refusal(found: operations.Operation, what: str) -> str | None:
    """Return why a request makes no sense now; None if it does."""
    control = found.control
    if what == RETRY:
        if not found.ended:
            return f'it is {control.phase.value}; wait for it or cancel it'
        if all(
            one.gone or one.state is operations.State.COMPLETE
            for one in found.attempts
        ):
            return 'it has succeeded on all targets'
        return None
    if found.ended:
        return f'it has ended: {control.phase.value}'
    if what == RESUME and not (
        control.paused_by or deciding.needs_approval(found)
    ):
        return f'it is {control.phase.value}, not paused'
    return None


def follow(
    found: operations.Operation, wanted: abc.Mapping[str, Any], now: float
) -> operations.Operation:
    """Return an operation that does what a user asks for.

    A request that no longer makes sense changes nothing.
    """
    what, who = wanted.get('do'), str(wanted.get('who') or 'unknown')
    if not isinstance(what, str) or refusal(found, what):
        return found
    if what == PAUSE:
        return found.changed(paused_by=who)
    if what == RESUME:
        approved = found.control.approved or deciding.needs_approval(found)
        return found.changed(paused_by=None, approved=approved)
    if what == CANCEL and found.control.stopped_by is None:
        return found.changed(stopped=operations.Stop.CANCELLED, stopped_by=who)
    if what == RETRY:
        return deciding.retry(found, now, who)
    return found


def register(heat: orchestration.Deploying, order: operations.Order) -> str:
    """Let engines know of an operation; return the config that says so."""
    return heat.create_config(
        orchestration.Draft(
            name=order.id,
            group=GROUP,
            config=json.dumps(
                {
                    'operation': order.id,
                    'stacks': order.stack_ids[:STACKS],
                }
            ),
            inputs=[],
            outputs=[],
            options={},
        )
    )
