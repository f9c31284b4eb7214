# SPDX-License-Identifier: Apache-2.0
"""Actions on running stacks: ``software_deployment.*``.

heat-engine leads a run; the workflow ``software_deployment.wait`` polls its
state. An error is a map of ``code`` and ``message``.
"""

from collections import abc
import dataclasses
import datetime
import itertools
import time
from typing import Any

from heat_plugins import errors
from heat_plugins.clients import runs
from heat_plugins.mistral_actions import making
from heat_plugins.mistral_actions import sessions
from heat_plugins.runs import run_records

# The most failures that a result names, as Mistral stores each result.
_FAILURES = 100

# Seconds until the next poll: a part of the run's age, within limits. An
# agent asks for its work every 30 s, and each poll is a row in Mistral's
# database.
_PART, _LEAST, _MOST = 10, 5, 300

# The fields of a target that has failed.
_FAILURE = (
    'stack',
    'resource',
    'server',
    'server_name',
    'state',
    'reason',
)

_FAILED = (run_records.State.FAILED.value, run_records.State.TIMED_OUT.value)


class RunActions:
    """The operations of workflows on the runs of a project.

    Each method returns a run as `runs.Run` has it, and:

    - ``success``: whether it is complete; null until it ends;
    - ``next_look``: seconds after which to poll again; 0 if it has ended.

    :param execution: the workflow execution that the runs are shown with.
    """

    def __init__(
        self,
        client: runs.Runs,
        clock: abc.Callable[[], float] = time.time,
        *,
        execution: str | None = None,
    ) -> None:
        self._runs = client
        self._clock = clock
        self._by = f'workflow execution {execution}' if execution else ''

    def run_start(
        self,
        action: str,
        stacks: abc.Sequence[str] | None = None,
        stack_tags: abc.Sequence[str] | None = None,
        resources: abc.Sequence[str] | None = None,
        server_metadata: abc.Mapping[str, str] | None = None,
        input_values: abc.Mapping[str, Any] | None = None,
        max_concurrent: str | int | None = None,
        max_errors: str | int | None = None,
        canary: int | None = None,
        approve_after_canary: bool | None = None,
        pause: int | None = None,
        timeout: int | None = None,
        delivery_timeout: int | None = None,
        deadline: int | None = None,
        cut_off: int | None = None,
        if_running: str | None = None,
        expected: int | None = None,
        run_id: str | None = None,
    ) -> dict[str, Any]:
        """Start an action, such as BACKUP, on servers of stacks.

        :param action: the action.
        :param stacks: a list of names or IDs of stacks.
        :param stack_tags: a list; all stacks that bear any of them.
        :param resources: a list of paths in the stacks (parent.child), or of
            patterns of such; by default all deployments with the action.
        :param server_metadata: a map; only servers whose metadata have it.
        :param input_values: a map of inputs that get other values
            than the stacks give them. Mistral shows them to everybody in the
            project.
        :param max_concurrent: the most targets at a time: a number, or a
            percentage such as 25%. The default is 50.
        :param max_errors: the most failures, likewise; after one more,
            nothing else starts. The default is 0.
        :param canary: how many targets come first; all must succeed.
        :param approve_after_canary: whether a user must resume it then.
        :param pause: seconds between two batches.
        :param timeout: the most seconds that each target may take; by default
            those of the deployment's property "timeout", or 3600.
        :param delivery_timeout: the most seconds until a server reports
            that it has started; only for actions that report.
        :param deadline: the most seconds for the whole.
        :param cut_off: the seconds after which nothing else starts.
        :param if_running: what happens to a target on which the action
            already runs: "skip", or "wait" for the end of that run.
        :param expected: how many targets there must be; with another number
            nothing starts.
        :param run_id: the ID of the run, a UUID; with the same one, nothing
            starts twice.
        :returns: the run, which has not ended yet.
        """
        limits = {
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
        return self._report(
            self._runs.start(
                action,
                run_id=run_id,
                stacks=stacks or (),
                tags=stack_tags or (),
                resources=resources or (),
                metadata=server_metadata or {},
                inputs=input_values or {},
                limits={k: v for k, v in limits.items() if v is not None},
                expected=expected,
                by=self._by,
            )
        )

    def run_show(self, run_id: str) -> dict[str, Any]:
        """Return the state of a run.

        :param run_id: its ID.
        :returns: the run. Of one with several targets that has ended,
            ``failures`` are those that have failed; the keys of a single
            target are those of the run, with its outputs.
        """
        run = self._runs.show(run_id)
        report = {**self._report(run), 'failures': []}
        if run.targets == 1:
            (single,) = self._runs.targets(run_id, outputs=run.ended)
            report = {
                **dataclasses.asdict(single),
                **report,
                'reason': single.reason or run.reason,
            }
        elif run.ended and run.failed:
            failed = self._runs.targets(run_id, state=_FAILED)
            report['failures'] = [
                {name: getattr(each, name) for name in _FAILURE}
                for each in itertools.islice(failed, _FAILURES)
            ]
        return report

    def run_cancel(
        self, run_id: str, target: int | None = None
    ) -> dict[str, Any]:
        """Cancel a run, or one target of it.

        A server that has not fetched it never runs it.

        :param run_id: its ID.
        :param target: the number of the target.
        :returns: the run.
        """
        return self._report(self._runs.cancel(run_id, target))

    def _report(self, run: runs.Run) -> dict[str, Any]:
        """Return a run for a workflow, with when to look again."""
        is_complete = run.state == run_records.Phase.COMPLETE.value
        began = datetime.datetime.fromisoformat(run.created_at)
        age = self._clock() - began.timestamp()
        next_look = int(min(max(age // _PART, _LEAST), _MOST))
        return {
            **dataclasses.asdict(run),
            'stack_id': run.stack_ids[0] if run.stack_ids else None,
            'success': is_complete if run.ended else None,
            'next_look': 0 if run.ended else next_look,
        }


def core(context: Any) -> RunActions:
    """Return the runs of the project of an action's context."""
    return RunActions(
        runs.Runs(sessions.cloud(context.security)),
        execution=context.execution.workflow_execution_id,
    )


def _call(context: Any, operation: str, arguments: dict[str, Any]) -> Any:
    """Do an operation on runs for a workflow."""
    try:
        return getattr(core(context), operation)(**arguments)
    except runs.NoDoor as exc:
        # Engines may be in the middle of an upgrade, so workflows retry.
        raise errors.Unavailable(str(exc)) from exc


_action = making.ActionMaker(__name__, _call, report=making.timed_error)

RunStart = _action(RunActions.run_start)
RunShow = _action(RunActions.run_show)
RunCancel = _action(RunActions.run_cancel)
