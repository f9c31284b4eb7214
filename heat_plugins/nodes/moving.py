# SPDX-License-Identifier: Apache-2.0
"""Moving nodes: Ironic gets a verb for each node, and reports their states.

A move is a value that JSON can hold. `advance` takes one and returns the next;
nothing is kept between two steps, so a workflow or a process can wait, be
restarted or be stopped there.
"""

import collections
import contextlib
import dataclasses
import enum
from typing import Any, Final

from heat_plugins import errors
from heat_plugins.nodes import moves
from heat_plugins.nodes import node

#: The most nodes in transition at a time: as many as DHCP and TFTP bear.
CONCURRENCY = 20

#: How often a node is sent, if it fails.
ATTEMPTS = 3

#: Seconds that a node may take, all its attempts together.
TIMEOUT = 3600

#: Seconds between two steps.
INTERVAL: Final = 10

# Ironic's words for what a user has aborted.
_ABORTED = 'aborted by request'


class NodePhase(enum.StrEnum):
    """The phase of a node in a move."""

    WAITING = 'waiting'
    MOVING = 'moving'
    DONE = 'done'
    FAILED = 'failed'
    ABORTED = 'aborted'
    TIMED_OUT = 'timed-out'


_PENDING = (NodePhase.WAITING, NodePhase.MOVING)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeMember:
    """A node in a move.

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
class NodeMove:
    """Nodes in one transition.

    :ivar verb: of the transition; see `moves.BY_VERB`.
    """

    verb: str
    members: tuple[NodeMember, ...]
    concurrency: int = CONCURRENCY
    attempts: int = ATTEMPTS
    timeout: float = TIMEOUT

    @property
    def ended(self) -> bool:
        return all(member.phase not in _PENDING for member in self.members)

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
        """The counts, if not all nodes have arrived; '' until it ends."""
        arrived = len(self.done) == len(self.members)
        return '' if arrived or not self.ended else self.counted

    @property
    def counted(self) -> str:
        """The number of nodes in each phase, as one line."""
        counts = collections.Counter(member.phase for member in self.members)
        phases = ', '.join(
            f'{counts[phase]} {phase}' for phase in sorted(counts)
        )
        return f'{self.verb}: {phases or "no nodes"}'


def advance(baremetal: node.Baremetal, move: NodeMove, now: float) -> NodeMove:
    """Judge the nodes in transition, and send the next ones.

    :param now: the time, in seconds since the epoch.
    :raises errors.Unavailable: Ironic cannot be reached; retry.
    """
    states = {seen.uuid: seen for seen in baremetal.states()}
    members = []
    for member in move.members:
        if member.phase in _PENDING:
            member = _judged(member, states.get(member.uuid), move, now)
            timed_out = member.phase is NodePhase.TIMED_OUT
            stoppable = moves.BY_VERB[move.verb].stoppable
            # In other states it continues, or reaches Ironic's time limit.
            if timed_out and states[member.uuid].state in stoppable:
                with contextlib.suppress(errors.Error):
                    baremetal.set_state(member.uuid, 'abort')
        members.append(member)
    moving = sum(member.phase is NodePhase.MOVING for member in members)
    for place, member in enumerate(members):
        if member.phase is NodePhase.WAITING and moving < move.concurrency:
            members[place] = _sent(baremetal, member, move, now)
            moving += 1
    return dataclasses.replace(move, members=tuple(members))


def _judged(
    member: NodeMember, seen: node.Node | None, move: NodeMove, now: float
) -> NodeMember:
    """Return a member in the phase that its node's state means."""
    if seen is None:
        reason = 'Ironic no longer has the node'
        return dataclasses.replace(
            member, phase=NodePhase.FAILED, reason=reason
        )
    transition = moves.BY_VERB[move.verb]
    sent = member.phase is NodePhase.MOVING
    verdict = transition.verdict(seen.state, sent=sent)
    if verdict is moves.Verdict.MOVING and not sent:
        # Another caller sent it, or this one before a restart.
        return _begun(member, move, now)
    phase, reason = member.phase, member.reason
    if verdict is moves.Verdict.THERE:
        phase, reason = NodePhase.DONE, ''
    elif verdict is moves.Verdict.NOWHERE:
        phase = NodePhase.FAILED
        reason = f'It is {seen.state}: {transition.remedy}'.rstrip(': ')
    elif verdict is moves.Verdict.READY and sent:
        phase = NodePhase.WAITING
        reason = seen.text('last_error') or f'It is {seen.state} again'
        if _ABORTED in reason:
            phase = NodePhase.ABORTED
        elif member.attempts >= move.attempts:
            phase = NodePhase.FAILED
    if phase in _PENDING and member.until and now >= member.until:
        phase = NodePhase.TIMED_OUT
        if verdict is moves.Verdict.MOVING:
            reason = f'It was still {seen.state} after {move.timeout:g} s'
    return dataclasses.replace(member, phase=phase, reason=reason)


def _sent(
    baremetal: node.Baremetal,
    member: NodeMember,
    move: NodeMove,
    now: float,
) -> NodeMember:
    """Send a node; return the member in its next phase."""
    try:
        baremetal.set_state(member.uuid, move.verb)
    except (errors.NodeLocked, errors.Unavailable) as exc:
        # The next step sends it again, until its time is over.
        until = member.until or now + move.timeout
        return dataclasses.replace(member, until=until, reason=str(exc))
    except errors.Error as exc:
        return dataclasses.replace(
            member, phase=NodePhase.FAILED, reason=str(exc)
        )
    return _begun(member, move, now)


def _begun(member: NodeMember, move: NodeMove, now: float) -> NodeMember:
    """Return a node whose state Ironic has been asked to change."""
    return dataclasses.replace(
        member,
        phase=NodePhase.MOVING,
        attempts=member.attempts + 1,
        until=member.until or now + move.timeout,
    )


def report(move: NodeMove) -> dict[str, Any]:
    """Return a move in terms of JSON, with the seconds until the next step."""
    return {
        'convoy': dataclasses.asdict(move),
        'next_look': 0 if move.ended else INTERVAL,
        'done': [*move.done],
        'success': not move.reason if move.ended else None,
        'reason': move.reason,
    }
