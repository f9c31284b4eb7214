# SPDX-License-Identifier: Apache-2.0
"""What workflows can do with runs, in terms of JSON.

Each method raises what `errors` or `heat_plugins.errors` has.
"""

from collections import abc
import time
from typing import Any

from heat_plugins import errors
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs import summary
from heat_plugins.runs.start import starting

Report = dict[str, Any]

# Seconds until the next look at a run: a part of its age, within limits. An
# agent asks for its work every 30 s, and each look is a row in Mistral's
# database.
_PART, _LEAST, _MOST = 10, 5, 300


class Operations:
    """The operations on the runs of a project.

    Each returns all that may be shown of a run, see `summary`, and:

    - ``stack_id``: with it a run is found also when another stack has taken
      over the name;
    - ``success``: whether it is complete; null until it ends;
    - ``next_look``: seconds after which to look again; 0 if it has ended.
    """

    def __init__(
        self,
        found: run_service.Runs,
        *,
        clock: abc.Callable[[], float] = time.time,
    ) -> None:
        self._runs = found
        self._clock = clock

    def trigger(
        self,
        stack: str,
        resource: str,
        action: str,
        input_values: abc.Mapping[str, Any] | None = None,
        timeout: int | None = None,
        delivery_timeout: int | None = None,
    ) -> Report:
        """Start an action, such as BACKUP, on a server of a stack.

        :param stack: name or ID of the stack.
        :param resource: the deployment: name, path in nested stacks
            (parent.child) or physical ID.
        :param action: the action.
        :param input_values: a map of inputs that get other values than
            the stack gives them. Mistral shows them to everybody in the
            project.
        :param timeout: the most seconds that the run may take; by default
            those of the deployment's property "timeout", or 3600.
        :param delivery_timeout: the most seconds until the server reports
            that it has started; only for actions that report.
        :returns: the run, which has not ended yet.
        """
        inputs = input_values or {}
        if not isinstance(inputs, abc.Mapping):
            # Whatever it is: not to be quoted.
            raise errors.Refused(
                'input_values must be a map of inputs: name: value'
            )
        order = starting.Order(
            action=action,
            inputs=inputs,
            timeout=_seconds('timeout', timeout),
            delivery_timeout=_seconds('delivery_timeout', delivery_timeout),
        )
        found = self._runs.find(stack, resource)
        if len(found) != 1:
            raise errors.Refused(
                f'{resource} holds {len(found)} deployments; name one of '
                f'them: {", ".join(target.path for target in found)}'
            )
        return self._report(self._runs.start(found[0], order))

    def show(self, stack: str, run_id: str) -> Report:
        """Look what has become of a run.

        :param stack: name or ID of its stack; the ID if it was deleted.
        :param run_id: the run.
        :returns: the run.
        """
        return self._report(self._runs.show(stack, run_id))

    def cancel(self, stack: str, run_id: str) -> Report:
        """Take a run back from its server.

        A server that has not fetched it never runs it; one that has is not
        stopped.

        :param stack: name or ID of its stack.
        :param run_id: the run.
        :returns: the run.
        """
        return self._report(self._runs.cancel(stack, run_id))

    def _report(self, found: runs.Run) -> Report:
        complete = found.state is runs.State.COMPLETE
        return {
            **summary.of(found),
            'stack_id': found.stack_id,
            'success': complete if found.ended else None,
            'next_look': 0 if found.ended else self._next_look(found),
        }

    def _next_look(self, found: runs.Run) -> int:
        now = int(self._clock())
        wanted = min((now - found.started_at) // _PART, found.deadline - now)
        return min(max(wanted, _LEAST), _MOST)


def _seconds(name: str, value: Any) -> int | None:
    """Return a number of seconds that a workflow has given, or None."""
    if value is None:
        return None
    try:
        seconds = int(value)
    except (TypeError, ValueError):
        seconds = 0
    if seconds < 1:
        raise errors.Refused(
            f'{name} must be at least 1 second, not {value!r}'
        )
    return seconds
