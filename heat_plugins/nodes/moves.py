# SPDX-License-Identifier: Apache-2.0
"""The transitions of a node between provision states.

Source: Ironic's state machine, in its documentation for users.
"""

import dataclasses
import enum
from typing import Final


class Verdict(enum.Enum):
    """The position of a node in a transition."""

    #: It has arrived.
    THERE = 'there'
    #: It can be sent.
    READY = 'ready'
    #: It is in transition, sent by this caller or another.
    MOVING = 'moving'
    #: No transition begins in its state.
    NOWHERE = 'nowhere'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Move:
    """A transition, which Ironic begins on a verb.

    :ivar ready: states in which it begins; a node that was sent and is back in
        one of them has failed.
    :ivar moving: states of the transition.
    :ivar stoppable: those of them in which Ironic takes the verb abort.
    :ivar there: states that are its end.
    """

    verb: str
    ready: frozenset[str]
    moving: frozenset[str]
    stoppable: frozenset[str]
    there: frozenset[str]
    remedy: str

    def verdict(self, state: str, *, sent: bool) -> Verdict:
        """Judge the state of a node.

        :param sent: whether the node has been sent; one that is inspected
            begins and ends in the same state.
        """
        if state in self.moving:
            return Verdict.MOVING
        if state in self.there and (sent or state not in self.ready):
            return Verdict.THERE
        return Verdict.READY if state in self.ready else Verdict.NOWHERE


MANAGE: Final = Move(
    verb='manage',
    ready=frozenset({'enroll'}),
    moving=frozenset({'verifying'}),
    stoppable=frozenset(),
    there=frozenset({'manageable'}),
    remedy='',
)

INSPECT: Final = Move(
    verb='inspect',
    ready=frozenset({'inspect failed', 'manageable'}),
    moving=frozenset({'inspect wait', 'inspecting'}),
    stoppable=frozenset({'inspect wait'}),
    there=frozenset({'manageable'}),
    remedy='only a manageable node is inspected',
)

PROVIDE: Final = Move(
    verb='provide',
    ready=frozenset({'manageable'}),
    moving=frozenset({'clean wait', 'cleaning'}),
    stoppable=frozenset({'clean wait'}),
    there=frozenset({'available'}),
    remedy='only a manageable node becomes available',
)

BY_VERB: Final = {move.verb: move for move in (MANAGE, INSPECT, PROVIDE)}

#: States in which a node is unused and idle, and Ironic permits its deletion.
IDLE: Final = frozenset({'available', 'enroll', 'manageable'})
