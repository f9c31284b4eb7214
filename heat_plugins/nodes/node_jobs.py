# SPDX-License-Identifier: Apache-2.0
"""What takes nodes long: registration, introspection, and moves.

Each is a row of verbs of Ironic, one after the other, for all nodes that can
take the next one. A node that fails does not keep the others.
"""

from collections import abc
import dataclasses
import enum
from typing import Any

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins.nodes import convoy
from heat_plugins.nodes import node_operations

Report = dict[str, Any]


class Phase(enum.StrEnum):
    """What the next step does."""

    REGISTER = 'register'
    FORGET = 'forget'
    GATHER = 'gather'
    MOVE = 'move'
    SUMMARIZE = 'summarize'


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeWork:
    """The state of such work.

    :ivar verbs: the moves, in their order.
    :ivar convoys: those that were gathered; the last one is under way.
    :ivar chosen: uuids or names for the next move; None for all nodes that
        can take it.
    :ivar ready: uuids that skip the next move, and take the one after it.
    :ivar nodes: the outcome of each entry of a file that is registered.
    :ivar done: uuids that have arrived by the last move.
    :ivar found: the summaries of inspections.
    :ivar reasons: why not all nodes have arrived.
    """

    phase: Phase = Phase.GATHER
    verbs: tuple[str, ...] = ()
    convoys: tuple[convoy.Convoy, ...] = ()
    chosen: tuple[str, ...] | None = None
    concurrency: int = convoy.CONCURRENCY
    attempts: int = convoy.ATTEMPTS
    timeout: float = convoy.TIMEOUT
    ready: tuple[str, ...] = ()
    nodes: tuple[abc.Mapping[str, Any], ...] = ()
    done: tuple[str, ...] = ()
    found: tuple[abc.Mapping[str, Any], ...] = ()
    reasons: tuple[str, ...] = ()

    def report(self) -> Report:
        """Return what the workflows return."""
        moves = [dataclasses.asdict(one)['members'] for one in self.convoys]
        return {
            'nodes': [*self.nodes] or [*moves[:1], ()][0],
            'moved': [member for members in moves for member in members],
            'found': [*self.found],
        }


Step = jobs.Step[NodeWork]


def registration(
    *,
    manage: bool = True,
    provide: bool = False,
    dry_run: bool = False,
    timeout: float = convoy.TIMEOUT,
) -> NodeWork:
    """Return the work of registering the nodes of a file."""
    verbs = ('manage', 'provide') if provide else ('manage',)
    return NodeWork(
        phase=Phase.REGISTER,
        verbs=verbs if manage and not dry_run else (),
        timeout=timeout,
    )


def introspection(
    nodes: abc.Iterable[str] | None, *, provide: bool = False, **options: Any
) -> NodeWork:
    """Return the work of inspecting nodes.

    :param nodes: uuids or names; None for all that are manageable.
    :param provide: whether those that were inspected become available.
    """
    verbs = ('inspect', 'provide') if provide else ('inspect',)
    return move(verbs, nodes, **options)


def move(
    verbs: tuple[str, ...], nodes: abc.Iterable[str] | None, **options: Any
) -> NodeWork:
    """Return the work of moving nodes by verbs of Ironic."""
    chosen = None if nodes is None else tuple(nodes)
    return NodeWork(verbs=verbs, chosen=chosen, **options)


class Jobs:
    """Does such work; a `jobs.Job`.

    :param nodes: what to register; see `node_operations.Operations.register`.
    """

    def __init__(
        self,
        core: node_operations.Operations,
        nodes: Any = None,
        *,
        remove: bool = False,
        dry_run: bool = False,
    ) -> None:
        self._core = core
        self._nodes = nodes
        self._remove, self._dry_run = remove, dry_run
        self._phases: abc.Mapping[Phase, abc.Callable[[NodeWork], Step]] = {
            Phase.REGISTER: self._register,
            Phase.FORGET: self._forget,
            Phase.GATHER: self._gather,
            Phase.MOVE: self._move,
            Phase.SUMMARIZE: self._summarize,
        }

    def step(self, state: NodeWork, outcome: jobs.Outcome | None) -> Step:
        """Take a step; see `jobs.Job`."""
        return self._phases[state.phase](state)

    def _register(self, state: NodeWork) -> Step:
        try:
            report = self._core.registered(
                self._nodes, remove=self._remove, dry_run=self._dry_run
            )
        except errors.Unavailable:
            raise
        except errors.Error:
            self._core.forget(self._nodes)
            raise
        state = dataclasses.replace(
            state,
            phase=Phase.FORGET,
            nodes=tuple(report['nodes']),
            chosen=tuple(report['enrolled']),
            ready=tuple(report['manageable']),
        )
        if not report['success']:
            state = _because(state, 'Some nodes are not registered')
        return jobs.Step(state=state)

    def _forget(self, state: NodeWork) -> Step:
        # It has passwords. The step before, which read it, is not repeated.
        self._core.forget(self._nodes)
        return _next(state)

    def _gather(self, state: NodeWork) -> Step:
        gathered = self._core.gather(
            state.verbs[len(state.convoys)],
            state.chosen,
            concurrency=state.concurrency,
            attempts=state.attempts,
            timeout=state.timeout,
        )
        state = dataclasses.replace(
            state, phase=Phase.MOVE, convoys=(*state.convoys, gathered)
        )
        return jobs.Step(state=state)

    def _move(self, state: NodeWork) -> Step:
        last = self._core.escort.step(state.convoys[-1])
        state = dataclasses.replace(
            state, convoys=(*state.convoys[:-1], last), done=last.done
        )
        if not last.ended:
            next_look = self._core.escort.next_look(last)
            return jobs.Step(state=state, next_look=next_look)
        state = dataclasses.replace(
            state, chosen=state.ready + last.done, ready=()
        )
        if last.reason:
            state = _because(state, last.reason)
        if last.verb == 'inspect':
            state = dataclasses.replace(state, phase=Phase.SUMMARIZE)
            return jobs.Step(state=state)
        return _next(state)

    def _summarize(self, state: NodeWork) -> Step:
        found = tuple(self._core.summaries(state.done))
        return _next(dataclasses.replace(state, found=found))

    def stop(self, state: NodeWork) -> None:
        """Stop what is under way."""
        for last in state.convoys[-1:]:
            self._core.escort.stop(last)


def _next(state: NodeWork) -> Step:
    """Continue with the next move; without one, this is the end."""
    if len(state.convoys) < len(state.verbs):
        state = dataclasses.replace(state, phase=Phase.GATHER)
        return jobs.Step(state=state)
    reason = '; '.join(state.reasons)
    return jobs.Step(state=state, success=not reason, reason=reason)


def _because(state: NodeWork, reason: str) -> NodeWork:
    return dataclasses.replace(state, reasons=(*state.reasons, reason))


class Operations:
    """The operation of the workflows on nodes."""

    def __init__(self, core: node_operations.Operations) -> None:
        self._core = core

    def work(
        self,
        kind: str,
        given: abc.Mapping[str, Any],
        state: abc.Mapping[str, Any] | None = None,
        outcome: abc.Mapping[str, Any] | None = None,
    ) -> Report:
        """Take a step of the work of a workflow on nodes.

        :param kind: register, introspect or move, as the workflows.
        :param given: the input of the workflow.
        :param state: what the last step has returned; null for the first.
        :param outcome: null.
        :returns: a map: state; next_look, the seconds to wait; success, null
            until the end; and the reason.
        """
        given = dict(given)
        if kind == 'register':
            job = Jobs(
                self._core,
                given.pop('nodes'),
                remove=given.pop('remove', False),
                dry_run=given.get('dry_run', False),
            )
            return jobs.advance(job, registration(**given), state, outcome)
        if kind == 'introspect':
            begun = introspection(**given)
        else:
            begun = move((given.pop('verb'),), **given)
        return jobs.advance(Jobs(self._core), begun, state, outcome)
