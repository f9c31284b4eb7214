# SPDX-License-Identifier: Apache-2.0
"""A plan's container, its mark, and how an existing container becomes one.

The mark is a header of the container. A container without it is not a plan's,
whatever its name, and nothing here changes it unless a user adopts it.
"""

from collections import abc
import dataclasses
import json
from typing import Final

from heat_plugins import errors
from heat_plugins.content import sources
from heat_plugins.content import storage
from heat_plugins.plans.content import plans

_STATE = 'x-container-meta-heat-plugins-plan'
_RENDERED = 'x-container-meta-heat-plugins-plan-rendered'
_ADOPTED = 'x-container-meta-heat-plugins-plan-adopted'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mark:
    """What a container says about its plan.

    :ivar rendered: whether Jinja templates were rendered into it.
    :ivar adopted: whether it was there before the plan, which is not ready
        yet; see `Adoption`.
    :ivar shared: whether an access control list lets others read or write
        it; that is not for us to say.
    """

    state: plans.PlanState
    rendered: bool = False
    adopted: bool = False
    shared: bool = False


class Container(storage.Container):
    """A container of a plan, or of one to be."""

    def mark(self) -> Mark | None:
        """Return its mark; None if it has none, or is not there."""
        headers = self._headers() or {}
        try:
            state = plans.PlanState(headers.get(_STATE, ''))
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
        return (mark.state if mark else plans.PlanState.CREATING).value

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


_RECORDS: Final = f'{storage.OWN}adopted/'
_ADDED: Final = f'{_RECORDS}added.json'
_COPIES: Final = f'{_RECORDS}files/'


class Adoption:
    """The adoption of a container; it may have been interrupted.

    Its files belong to the user who uploaded them until the plan is ready.
    So before anything in it changes, what undoes that is written next to the
    files: copies of those that are written over, and a list of those added.
    """

    def __init__(self, container: Container) -> None:
        self._container = container

    def content(self) -> sources.Content:
        """Return the files that were there before it began.

        :raises errors.NotFound: there is no such container.
        """
        files = dict(sources.from_container(self._container))
        if not self._has_begun():
            return files
        for path in self.added():
            files.pop(path, None)
        return {**files, **self._copied()}

    def begin(self, files: abc.Mapping[str, bytes], *, rendered: bool) -> None:
        """Record how to undo the writing of files, and mark the container.

        What an adoption that was interrupted has recorded stays.
        """
        if not self._has_begun():
            # A process may have died before it made the mark, or after it
            # removed it.
            self.forget()
        added = self.added()
        kept = added | self._copied().keys()
        entries = self._container.entries()
        over = [
            path
            for path in storage.changed(files, entries)
            if path in entries and path not in kept
        ]
        added |= files.keys() - entries.keys()
        copies = self._container.fetch(over)
        self._container.write(
            {f'{_COPIES}{path}': content for path, content in copies.items()}
        )
        self._container.write({_ADDED: json.dumps(sorted(added)).encode()})
        self._container.make(
            Mark(
                state=plans.PlanState.CREATING, rendered=rendered, adopted=True
            )
        )

    def added(self) -> set[str]:
        """Return the paths that were not there before."""
        stored = self._container.fetch([_ADDED])
        return set(json.loads(stored[_ADDED])) if stored else set()

    def undo(self) -> None:
        """Make an ordinary container of it again, as it was.

        What is interrupted can be done again.
        """
        self._container.write(self._copied())
        self._container.delete(self.added())
        self.forget()
        self._container.unmark()

    def forget(self) -> None:
        """Delete the records."""
        self._container.delete(self._container.own(_RECORDS))

    def _has_begun(self) -> bool:
        mark = self._container.mark()
        return mark is not None and mark.adopted

    def _copied(self) -> dict[str, bytes]:
        copies = self._container.fetch(self._container.own(_COPIES))
        return {
            name.removeprefix(_COPIES): content
            for name, content in copies.items()
        }
