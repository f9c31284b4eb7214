# SPDX-License-Identifier: Apache-2.0
"""What workflows can do with runs, in terms of JSON.

Each method raises what `errors` or `heat_plugins.errors` has.
"""

from collections import abc
import time
from typing import Any

from heat_plugins import errors
from heat_plugins.runs import orchestration
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs import summary
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.start import orders

Report = dict[str, Any]

# Seconds until the next look at a run: a part of its age, within limits. An
# agent asks for its work every 30 s, and each look is a row in Mistral's
# database.
_PART, _LEAST, _MOST = 10, 5, 300

# Seconds for which one call advances an operation, and until the next one if
# another process does.
_SLICE, _FOLLOWING = 30.0, 30


class RunCalls:
    """The operations on the runs of a project.

    Each returns all that may be shown of a run, see `summary`, and:

    - ``stack_id``: with it a run is found also when another stack has taken
      over the name;
    - ``success``: whether it is complete; null until it ends;
    - ``next_look``: seconds after which to look again; 0 if it has ended.
    """

    def __init__(
        self,
        service: run_service.Runs,
        *,
        clock: abc.Callable[[], float] = time.time,
    ) -> None:
        self._runs = service
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
        order = orders.RunOrder(
            action=action,
            inputs=_mapping('input_values', input_values or None),
            timeout=_seconds('timeout', timeout),
            delivery_timeout=_seconds('delivery_timeout', delivery_timeout),
        )
        targets = self._runs.find(stack, resource)
        if len(targets) != 1:
            raise errors.Refused(
                f'{resource} holds {len(targets)} deployments; name one of '
                f'them: {", ".join(target.resource for target in targets)}'
            )
        return self._report(self._runs.start(targets[0], order))

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

    def _report(self, run: runs.Run) -> Report:
        complete = run.state is runs.State.COMPLETE
        return {
            **summary.of(run),
            'stack_id': run.stack_id,
            'success': complete if run.ended else None,
            'next_look': 0 if run.ended else self._next_look(run),
        }

    def _next_look(self, run: runs.Run) -> int:
        now = int(self._clock())
        wanted = min((now - run.started_at) // _PART, run.deadline - now)
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


class OperationCalls:
    """The operations of a project on many servers.

    Each returns all that may be shown of one, see `overview`, and:

    - ``success``: whether it is complete; null until it ends;
    - ``next_look``: seconds after which to advance it again; 0 if it has
      ended.
    """

    def __init__(
        self, door: fleets.Fleets, heat: orchestration.Orchestration
    ) -> None:
        self._fleets = door
        self._chooser = fleet_targets.Chooser(heat, door.pool)

    def operate(
        self,
        action: str,
        stacks: abc.Sequence[str] | None = None,
        stack_tags: abc.Sequence[str] | None = None,
        resources: abc.Sequence[str] | None = None,
        server_metadata: abc.Mapping[str, str] | None = None,
        input_values: abc.Mapping[str, Any] | None = None,
        max_concurrent: str | int = '50',
        max_errors: str | int = 0,
        canary: int = 0,
        approve_after_canary: bool = False,
        pause: int = 0,
        timeout: int | None = None,
        delivery_timeout: int | None = None,
        deadline: int | None = None,
        cut_off: int | None = None,
        if_running: str = operations.SKIP,
    ) -> Report:
        """Start an action, such as BACKUP, on many servers over stacks.

        :param action: the action.
        :param stacks: a list of names or IDs of stacks.
        :param stack_tags: a list; all stacks that bear any of them.
        :param resources: a list of paths in the stacks (parent.child), or of
            patterns of such; by default all deployments with the action.
        :param server_metadata: a map; only servers whose metadata have it.
        :param input_values: a map of inputs that get other values
            than the stacks give them. Mistral shows them to everybody in the
            project.
        :param max_concurrent: the most runs at a time: a number, or a
            percentage such as 25%.
        :param max_errors: the most failures, likewise; after one more,
            nothing else starts.
        :param canary: how many targets come first; all must succeed.
        :param approve_after_canary: whether a user must resume it then.
        :param pause: seconds between two batches.
        :param timeout: the most seconds that each run may take.
        :param delivery_timeout: the most seconds until a server reports.
        :param deadline: the most seconds for the whole.
        :param cut_off: the seconds after which nothing else starts.
        :param if_running: what happens to a target on which the action
            already runs: "skip", or "wait" for the end of that run.
        :returns: the operation, which has not ended yet.
        """
        limits = operations.OperationLimits.asked(
            {
                'max_concurrent': max_concurrent,
                'max_errors': max_errors,
                'canary': canary,
                'approve_after_canary': approve_after_canary,
                'pause': pause,
                'timeout': timeout,
                'delivery_timeout': delivery_timeout,
                'deadline': deadline,
                'cut_off': cut_off,
                'if_running': if_running,
            }
        )
        order = orders.RunOrder(
            action=str(action), inputs=_mapping('input_values', input_values)
        )
        metadata = _mapping('server_metadata', server_metadata)
        chosen = self._chooser.choose(
            fleet_targets.Wanted(
                stacks=_texts('stacks', stacks),
                tags=_texts('stack_tags', stack_tags),
                resources=_texts('resources', resources),
                metadata={str(k): str(v) for k, v in metadata.items()},
            ),
            order,
        )
        return self._advance(self._fleets.create(chosen, limits, order))

    def advance(self, operation: str) -> Report:
        """Advance an operation for half a minute, if no other process does.

        :param operation: its ID.
        :returns: the operation.
        """
        return self._advance(self._fleets.advancer(operation))

    def _advance(self, advancer: advancing.Advancer) -> Report:
        try:
            self._fleets.advance_for(advancer, _SLICE)
        finally:
            is_leading = advancer.is_leading
            advancer.release()
        return self._report(advancer, is_leading)

    def _report(
        self, advancer: advancing.Advancer, is_leading: bool
    ) -> Report:
        operation, is_over = advancer.operation, advancer.is_over
        complete = operation.control.phase is operations.Phase.COMPLETE
        again = 1 if is_leading else _FOLLOWING
        return {
            **overview.of(operation, self._fleets.now()),
            'success': complete if is_over else None,
            'next_look': 0 if is_over else again,
        }


def _texts(name: str, values: Any) -> list[str]:
    if values is None:
        return []
    if isinstance(values, str):
        return [values]
    if not isinstance(values, abc.Sequence):
        raise errors.Refused(f'{name} must be a list of names')
    return [str(each) for each in values]


def _mapping(name: str, values: Any) -> dict[str, Any]:
    if values is None:
        return {}
    if not isinstance(values, abc.Mapping):
        # Whatever it is: not to be quoted.
        raise errors.Refused(f'{name} must be a map: name: value')
    return dict(values)
