# SPDX-License-Identifier: Apache-2.0
"""Move nodes to a provision state, and wait for them."""

from collections import abc
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import retrying
from heat_plugins.nodes import node_operations

Report = dict[str, Any]

#: Is told how nodes stand: a report of `operations.Operations.step`.
Show = abc.Callable[[Report], None]

# How many polls in a row Ironic may leave unanswered.
_PATIENCE = 60

# How often to poll, a second each, whether what has just begun can be stopped.
_STOPPING = 30


class Failed(errors.Failed):
    """Not all nodes have come to their end.

    :ivar found: the results until then.
    """

    def __init__(self, reason: str, found: Report) -> None:
        super().__init__(reason)
        self.found = found


class Leader:
    """Leads nodes to their ends."""

    def __init__(
        self,
        core: node_operations.Operations,
        *,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._core = core
        self._sleep = sleep

    def register(
        self,
        nodes: Any,
        show: Show,
        *,
        manage: bool,
        provide: bool,
        remove: bool,
        dry_run: bool,
        timeout: float,
    ) -> Report:
        """Register the nodes of a file; return what has become of each.

        :raises Failed: not all of them are where they should be.
        """
        found = self._core.register(nodes, remove=remove, dry_run=dry_run)
        reasons = [] if found['success'] else ['Some nodes are not registered']
        moved: list[Report] = []
        if manage and not dry_run:
            ready = found['manageable']
            report = self._lead(show, 'manage', found['enrolled'], timeout)
            moved += report['convoy']['members']
            reasons.append(report['reason'])
            if provide:
                ready = [*ready, *report['done']]
                report = self._lead(show, 'provide', ready, timeout)
                moved += report['convoy']['members']
                reasons.append(report['reason'])
        return _checked({'nodes': found['nodes'], 'moved': moved}, reasons)

    def introspect(
        self,
        nodes: abc.Collection[str] | None,
        show: Show,
        *,
        provide: bool,
        concurrency: int,
        attempts: int,
        timeout: float,
    ) -> Report:
        """Let nodes be inspected; return how each stands, and what was found.

        :raises Failed: not all of them were.
        """
        report = self._lead(
            show,
            'inspect',
            nodes,
            timeout,
            concurrency=concurrency,
            attempts=attempts,
        )
        found = {
            'nodes': report['convoy']['members'],
            'found': self._core.summaries(report['done']),
        }
        reasons = [report['reason']]
        if provide:
            report = self._lead(show, 'provide', report['done'], timeout)
            reasons.append(report['reason'])
        return _checked(found, reasons)

    def provide(
        self,
        nodes: abc.Collection[str] | None,
        show: Show,
        *,
        timeout: float,
    ) -> Report:
        """Let nodes become available; return how each stands.

        :raises Failed: not all of them have.
        """
        report = self._lead(show, 'provide', nodes, timeout)
        members = report['convoy']['members']
        return _checked({'nodes': members}, [report['reason']])

    def _lead(
        self,
        show: Show,
        verb: str,
        nodes: abc.Collection[str] | None,
        timeout: float,
        **options: int,
    ) -> Report:
        """Lead nodes to their end; stop them if the user interrupts."""
        report = self._core.begin(verb, nodes, timeout=timeout, **options)
        try:
            while report['success'] is None:
                pause = report['next_look']
                report = retrying.insist(
                    self._core.step,
                    report['convoy'],
                    attempts=_PATIENCE,
                    wait=pause,
                    most=pause,
                    sleep=self._sleep,
                )
                show(report)
                self._sleep(report['next_look'])
        except KeyboardInterrupt:
            self._core.stop(report['convoy'])
            if verb == 'inspect':
                members = report['convoy']['members']
                uuids = [one['uuid'] for one in members]
                stop(self._core.abort, uuids, self._sleep)
            raise
        return report


def stop(
    abort: abc.Callable[[abc.Collection[str]], Report],
    nodes: abc.Collection[str],
    sleep: abc.Callable[[float], None],
) -> None:
    """Stop inspections, also of nodes that have only just been sent.

    :param abort: `operations.Operations.abort`, wherever it runs.
    """
    for _ in range(_STOPPING):
        if not abort(nodes)['moving']:
            return
        sleep(1)


def _checked(found: Report, reasons: abc.Iterable[str]) -> Report:
    reasons = [reason for reason in reasons if reason]
    if reasons:
        raise Failed('; '.join(reasons), found)
    return found
