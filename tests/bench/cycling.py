# SPDX-License-Identifier: Apache-2.0
"""The memory that heat-engine keeps when stacks come and go."""

from collections.abc import Callable
import dataclasses

from tests.bench import lab as labs
from tests.bench import rounds
from tests.bench import scenarios
from tests.bench import stacks

COUNT = 50

#: How often stacks come and go, and after how often caches must be full.
CYCLES, FULL = 30, 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cycled:
    """Stacks that were created, answered and deleted, one after another.

    :ivar n: deployments in each.
    :ivar side: whose classes served them.
    :ivar resident_bytes: of heat-engine after each.
    """

    n: int
    side: str
    resident_bytes: list[int]

    @property
    def growth(self) -> float:
        """The most memory after it was full, as a part of that."""
        full, *later = self.resident_bytes[FULL - 1 :]
        return max(later, default=full) / full


def measure(
    lab: labs.Lab, side: labs.Side, say: Callable[[str], None]
) -> Cycled:
    """Let stacks of single deployments come and go."""
    # With as many threads as Heat has by default: they are there before the
    # tenth stack.
    lab.start(side, waiting=0)
    template = scenarios.flat(COUNT).template(lab.servers)
    found = []
    with lab.state() as state:
        rounds.warm_up(lab, state)
        for number in range(1, CYCLES + 1):
            group = stacks.Stacks(lab, state, [template], COUNT)
            group.create()
            group.signal('CREATE')
            group.delete()
            found.append(lab.cloud.usage('heat')['rss_bytes'])
            say(f'{found[-1] / 1e6:.0f} MB after {number} stacks')
    return Cycled(n=COUNT, side=side.name, resident_bytes=found)
