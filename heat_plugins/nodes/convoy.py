# SPDX-License-Identifier: Apache-2.0
"""Many nodes on one way, but not too many at a time.

A convoy is a value that JSON can say. `Escort.step` takes one and returns
the next; between two of them nothing is held, so a workflow can wait, be
restarted or be stopped there, and so can a process.
"""

from collections import abc
import dataclasses
import enum
import time

from heat_plugins import errors
from heat_plugins.nodes import moves
from heat_plugins.nodes import node
from heat_plugins.nodes import node_protocols

#: The most nodes on their way at a time: what DHCP and TFTP bear.
CONCURRENCY = 20

#: How often a node is sent, if it fails.
ATTEMPTS = 3

#: Seconds that a node may take, all its attempts together.
TIMEOUT = 3600

# Seconds until the next poll, at least and at most: a part of the longest
# way until now.
_PART, _SOONEST, _LATEST = 10, 2, 30

# Ironic's words for what a user has aborted.
_ABORTED = 'aborted by request'


class NodePhase(enum.StrEnum):
    """How a node stands in a convoy."""

    WAITING = 'waiting'
    MOVING = 'moving'
    DONE = 'done'
    FAILED = 'failed'
    ABORTED = 'aborted'
    TIMED_OUT = 'timed-out'

    @property
    def ended(self) -> bool:
        return self not in (NodePhase.WAITING, NodePhase.MOVING)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeMember:
    """A node in a convoy.

    :ivar until: when its time is over, in seconds since the epoch; 0 before
        it was first sent.
    :ivar reason: why it has failed last; '' if it has not.
    """

    uuid: str
    name: str = ''
    phase: NodePhase = NodePhase.WAITING
    attempts: int = 0
    until: float = 0
    reason: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class Convoy:
    """Nodes on one way.

    :ivar verb: the name of the way; see `moves.BY_VERB`.
    """

    verb: str
    members: tuple[NodeMember, ...]
    concurrency: int = CONCURRENCY
    attempts: int = ATTEMPTS
    timeout: float = TIMEOUT

    @property
    def ended(self) -> bool:
        return all(member.phase.ended for member in self.members)

    @property
    def done(self) -> tuple[str, ...]:
        """The uuids of the nodes that have arrived."""
        return tuple(
            member.uuid
            for member in self.members
            if member.phase is NodePhase.DONE
        )

    @property
    def reason(self) -> str:
        """Say in a line how many have not arrived; '' until it ends."""
        phases = [member.phase for member in self.members]
        lacking = [phase for phase in NodePhase if phase in phases]
        if not self.ended or len(self.done) == len(phases):
            return ''
        counted = ', '.join(
            f'{phases.count(phase)} {phase}'
            for phase in lacking
            if phase is not NodePhase.DONE
        )
        done = f'{len(self.done)} of {len(phases)} done'
        return f'{self.verb}: {done}, {counted}'


class Escort:
    """Brings convoys on their way."""

    def __init__(
        self,
        baremetal: node_protocols.Baremetal,
        *,
        clock: abc.Callable[[], float] = time.time,
    ) -> None:
        self._baremetal = baremetal
        self._clock = clock

    def step(self, convoy: Convoy) -> Convoy:
        """Judge the nodes that are on their way, and send others.

        :raises errors.Unavailable: Ironic cannot be reached; retry.
        """
        move = moves.BY_VERB[convoy.verb]
        states = {seen.uuid: seen for seen in self._baremetal.states()}
        members = [
            member
            if member.phase.ended
            else self._judge(member, states.get(member.uuid), convoy, move)
            for member in convoy.members
        ]
        free = convoy.concurrency - sum(
            member.phase is NodePhase.MOVING for member in members
        )
        for place, member in enumerate(members):
            if member.phase is NodePhase.WAITING and free > 0:
                members[place] = self._send(member, convoy, move)
                free -= members[place].phase is NodePhase.MOVING
        return dataclasses.replace(convoy, members=tuple(members))

    def next_look(self, convoy: Convoy) -> int:
        """Return after how many seconds to take the next step; 0 if none."""
        if convoy.ended:
            return 0
        now = self._clock()
        ages = [
            now - (member.until - convoy.timeout)
            for member in convoy.members
            if member.phase is NodePhase.MOVING
        ]
        return int(min(max(_SOONEST, max(ages, default=0) / _PART), _LATEST))

    def _judge(
        self,
        member: NodeMember,
        seen: node.Node | None,
        convoy: Convoy,
        move: moves.Move,
    ) -> NodeMember:
        if seen is None:
            return _ended(
                member, NodePhase.FAILED, 'Ironic no longer has the node'
            )
        sent = member.phase is NodePhase.MOVING
        verdict = move.verdict(seen.state, sent=sent)
        if verdict is moves.Verdict.THERE:
            return _ended(member, NodePhase.DONE, '')
        if verdict is moves.Verdict.MOVING:
            return self._moving(member, seen, convoy, move)
        if verdict is moves.Verdict.NOWHERE:
            reason = f'It is {seen.state}: {move.remedy}'.rstrip(': ')
            return _ended(member, NodePhase.FAILED, reason)
        return self._failed(member, seen, convoy) if sent else member

    def _moving(
        self,
        member: NodeMember,
        seen: node.Node,
        convoy: Convoy,
        move: moves.Move,
    ) -> NodeMember:
        if member.phase is NodePhase.WAITING:
            # Another caller has sent it, or this one before a restart.
            return self._begun(member, convoy)
        if self._clock() < member.until:
            return member
        self._abort(seen, move)
        return _ended(
            member,
            NodePhase.TIMED_OUT,
            f'It was still {seen.state} after {convoy.timeout:g} s',
        )

    def _failed(
        self, member: NodeMember, seen: node.Node, convoy: Convoy
    ) -> NodeMember:
        reason = seen.text('last_error') or f'It is {seen.state} again'
        if _ABORTED in reason:
            return _ended(member, NodePhase.ABORTED, reason)
        if self._clock() >= member.until:
            return _ended(member, NodePhase.TIMED_OUT, reason)
        if member.attempts >= convoy.attempts:
            return _ended(member, NodePhase.FAILED, reason)
        return dataclasses.replace(
            member, phase=NodePhase.WAITING, reason=reason
        )

    def _send(
        self, member: NodeMember, convoy: Convoy, move: moves.Move
    ) -> NodeMember:
        try:
            self._baremetal.set_state(member.uuid, move.verb)
        except (errors.NodeLocked, errors.Unavailable) as exc:
            # Also its turn ends some time.
            member = dataclasses.replace(
                member,
                until=member.until or self._clock() + convoy.timeout,
                reason=str(exc),
            )
            if self._clock() < member.until:
                return member
            return _ended(member, NodePhase.TIMED_OUT, str(exc))
        except errors.Error as exc:
            return _ended(member, NodePhase.FAILED, str(exc))
        return self._begun(member, convoy)

    def _begun(self, member: NodeMember, convoy: Convoy) -> NodeMember:
        return dataclasses.replace(
            member,
            phase=NodePhase.MOVING,
            attempts=member.attempts + 1,
            until=member.until or self._clock() + convoy.timeout,
        )

    def _abort(self, seen: node.Node, move: moves.Move) -> None:
        if seen.state not in move.stoppable:
            return
        try:
            self._baremetal.set_state(seen.uuid, 'abort')
        except (errors.Conflict, errors.Refused, errors.Unavailable):
            # It has continued by itself, or will reach its own time limit.
            return


def _ended(member: NodeMember, phase: NodePhase, reason: str) -> NodeMember:
    return dataclasses.replace(member, phase=phase, reason=reason)
