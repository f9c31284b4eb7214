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


class NodeWorkPhase(enum.StrEnum):
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
    :ivar options: of each move; see `node_operations`.
    :ivar ready: uuids that skip the next move, and take the one after it.
    :ivar nodes: the outcome of each entry of a file that is registered.
    :ivar done: uuids that have arrived by the last move.
    :ivar summaries: the summaries of inspections.
    :ivar reasons: why not all nodes have arrived.
    """

    phase: NodeWorkPhase = NodeWorkPhase.GATHER
    verbs: tuple[str, ...] = ()
    convoys: tuple[convoy.Convoy, ...] = ()
    chosen: tuple[str, ...] | None = None
    options: abc.Mapping[str, float] = dataclasses.field(default_factory=dict)
    ready: tuple[str, ...] = ()
    nodes: tuple[abc.Mapping[str, Any], ...] = ()
    done: tuple[str, ...] = ()
    summaries: tuple[abc.Mapping[str, Any], ...] = ()
    reasons: tuple[str, ...] = ()


Step = jobs.JobStep[NodeWork]


class NodeJob:
    """Does such work; a `jobs.Job`.

    :param nodes: what to register; see `node_operations`.
    """

    def __init__(
        self,
        core: node_operations.NodeOperations,
        nodes: Any = None,
        *,
        remove: bool = False,
        dry_run: bool = False,
    ) -> None:
        self._core = core
        self._nodes = nodes
        self._remove, self._dry_run = remove, dry_run
        self._phases: abc.Mapping[
            NodeWorkPhase, abc.Callable[[NodeWork], Step]
        ] = {
            NodeWorkPhase.REGISTER: self._register,
            NodeWorkPhase.FORGET: self._forget,
            NodeWorkPhase.GATHER: self._gather,
            NodeWorkPhase.MOVE: self._move,
            NodeWorkPhase.SUMMARIZE: self._summarize,
        }

    def step(self, state: NodeWork, outcome: jobs.CallOutcome | None) -> Step:
        """Take a step; see `jobs.Job`."""
        return self._phases[state.phase](state)

    def output(self, state: NodeWork) -> Report:
        """Return the nodes of a file or else of a move, and what they did."""
        moves = [
            dataclasses.asdict(gathered)['members']
            for gathered in state.convoys
        ]
        return {
            'nodes': [*state.nodes] or [*moves[:1], []][0],
            'moved': [member for members in moves for member in members],
            'found': [*state.summaries],
            'done': [*state.done],
        }

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
            phase=NodeWorkPhase.FORGET,
            nodes=tuple(report['nodes']),
            chosen=tuple(report['enrolled']),
            ready=tuple(report['manageable']),
        )
        if not report['success']:
            state = _because(state, 'Some nodes are not registered')
        return jobs.JobStep(state=state)

    def _forget(self, state: NodeWork) -> Step:
        # It has passwords. The step before, which read it, is not repeated.
        self._core.forget(self._nodes)
        return _next(state)

    def _gather(self, state: NodeWork) -> Step:
        gathered = self._core.gather(
            state.verbs[len(state.convoys)], state.chosen, state.options
        )
        state = dataclasses.replace(
            state, phase=NodeWorkPhase.MOVE, convoys=(*state.convoys, gathered)
        )
        return jobs.JobStep(state=state)

    def _move(self, state: NodeWork) -> Step:
        last = self._core.escort.step(state.convoys[-1])
        state = dataclasses.replace(
            state, convoys=(*state.convoys[:-1], last), done=last.done
        )
        if not last.ended:
            next_look = self._core.escort.next_look(last)
            return jobs.JobStep(state=state, next_look=next_look)
        state = dataclasses.replace(
            state, chosen=state.ready + last.done, ready=()
        )
        if last.reason:
            state = _because(state, last.reason)
        if last.verb == 'inspect':
            state = dataclasses.replace(state, phase=NodeWorkPhase.SUMMARIZE)
            return jobs.JobStep(state=state)
        return _next(state)

    def _summarize(self, state: NodeWork) -> Step:
        summaries = tuple(self._core.summaries(state.done))
        return _next(dataclasses.replace(state, summaries=summaries))


def _next(state: NodeWork) -> Step:
    """Continue with the next move; without one, this is the end."""
    if len(state.convoys) < len(state.verbs):
        state = dataclasses.replace(state, phase=NodeWorkPhase.GATHER)
        return jobs.JobStep(state=state)
    reason = '; '.join(state.reasons)
    return jobs.JobStep(state=state, success=not reason, reason=reason)


def _because(state: NodeWork, reason: str) -> NodeWork:
    return dataclasses.replace(state, reasons=(*state.reasons, reason))


def begin(
    core: node_operations.NodeOperations,
    kind: str,
    given: abc.Mapping[str, Any],
) -> tuple[NodeJob, NodeWork]:
    """Return the job of a workflow on nodes, and its first state.

    :param kind: register, introspect or move, as the workflows.
    :param given: the input of the workflow.
    """
    given = dict(given)
    provide = ('provide',) if given.pop('provide', False) else ()
    nodes = given.pop('nodes', None)
    if kind == 'register':
        remove, dry_run = (
            given.pop('remove', False),
            given.pop('dry_run', False),
        )
        manages = given.pop('manage', True) and not dry_run
        return NodeJob(core, nodes, remove=remove, dry_run=dry_run), NodeWork(
            phase=NodeWorkPhase.REGISTER,
            verbs=('manage', *provide) if manages else (),
            options=given,
        )
    introspects = kind == 'introspect'
    return NodeJob(core), NodeWork(
        verbs=('inspect', *provide) if introspects else (given.pop('verb'),),
        chosen=None if nodes is None else tuple(nodes),
        options=given,
    )


class NodeWorkOperations:
    """The operation of the workflows on nodes."""

    def __init__(self, core: node_operations.NodeOperations) -> None:
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
        job, begun = begin(self._core, kind, given)
        return jobs.advance(job, begun, state, outcome)
