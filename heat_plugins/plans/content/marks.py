# SPDX-License-Identifier: Apache-2.0
"""A plan's container, and the mark that says that it is one.

The mark is a header of the container. A container without it is not a plan's,
whatever its name, and nothing here changes it.
"""

import dataclasses

from heat_plugins import errors
from heat_plugins.content import storage
from heat_plugins.plans.content import plan as plans

_STATE = 'x-container-meta-heat-plugins-plan'
_RENDERED = 'x-container-meta-heat-plugins-plan-rendered'
_ADOPTED = 'x-container-meta-heat-plugins-plan-adopted'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mark:
    """What a container says about its plan.

    :ivar rendered: whether Jinja templates were rendered into it.
    :ivar adopted: whether it was there before the plan, which is not ready
        yet; see `adoption`.
    :ivar shared: whether an access control list lets others read or write
        it; that is not for us to say.
    """

    state: plans.State
    rendered: bool = False
    adopted: bool = False
    shared: bool = False


class Container(storage.Container):
    """A container of a plan, or of one to be."""

    def mark(self) -> Mark | None:
        """Return its mark; None if it has none, or is not there."""
        headers = self._headers() or {}
        try:
            state = plans.State(headers.get(_STATE, ''))
        except ValueError:
            return None
        return Mark(
            state=state,
            rendered=headers.get(_RENDERED) == 'true',
            adopted=headers.get(_ADOPTED) == 'true',
            shared=storage.is_shared(headers),
        )

    def state(self) -> str:
        """Return how far the plan is that has this container's name."""
        try:
            mark = self.mark()
        except errors.ServiceError:
            return plans.UNKNOWN
        # The name comes before the container.
        return (mark.state if mark else plans.State.CREATING).value

    def make(self, mark: Mark) -> None:
        """Create the container, or replace its mark."""
        self._pool.insist(
            self._store.put_container,
            self._name,
            {
                _STATE: mark.state.value,
                _RENDERED: 'true' if mark.rendered else 'false',
                _ADOPTED: 'true' if mark.adopted else 'false',
            },
        )

    def unmark(self) -> None:
        """Make it an ordinary container again."""
        self._store.post_container(
            self._name, {_STATE: '', _RENDERED: '', _ADOPTED: ''}
        )
