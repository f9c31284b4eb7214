# SPDX-License-Identifier: Apache-2.0
"""A plan's container, and its mark.

The mark is a header of the container. A container without it is not a plan's,
whatever its name, and nothing here changes it.
"""

import dataclasses

from heat_plugins import errors
from heat_plugins.content import storage
from heat_plugins.plans.content import plans

_STATE = 'x-container-meta-heat-plugins-plan'
_RENDERED = 'x-container-meta-heat-plugins-plan-rendered'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mark:
    """What a container says about its plan.

    :ivar rendered: whether Jinja templates were rendered into it.
    """

    state: plans.PlanState
    rendered: bool = False


class PlanContainer(storage.Container):
    """A container of a plan, or of one to be."""

    def mark(self) -> Mark | None:
        """Return its mark; None if it has none, or is not there."""
        headers = self._headers() or {}
        try:
            state = plans.PlanState(headers.get(_STATE, ''))
        except ValueError:
            return None
        return Mark(state=state, rendered=headers.get(_RENDERED) == 'true')

    def state(self) -> str:
        """Return how far the plan is that has this container's name."""
        try:
            mark = self.mark()
        except errors.ServiceError:
            return plans.UNKNOWN
        # The name comes before the container.
        return (mark.state if mark else plans.PlanState.CREATING).value

    def make(self, mark: Mark) -> None:
        """Create the container, or replace its mark."""
        self._pool.insist(
            self._store.put_container,
            self._name,
            {
                _STATE: mark.state.value,
                _RENDERED: 'true' if mark.rendered else 'false',
            },
        )
