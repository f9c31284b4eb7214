# SPDX-License-Identifier: Apache-2.0
"""A container that becomes a plan's, and the way back.

Its files belong to the user who uploaded them until the plan is ready. So
before anything in it changes, what undoes that is written next to the files:
copies of those that are written over, and a list of those that are added.
"""

from collections import abc
import json
from typing import Final

from heat_plugins.content import sources
from heat_plugins.content import storage
from heat_plugins.plans.content import marks
from heat_plugins.plans.content import plan as plans

_RECORDS: Final = f'{storage.OWN}adopted/'
_ADDED: Final = f'{_RECORDS}added.json'
_COPIES: Final = f'{_RECORDS}files/'


class Adoption:
    """The adoption of a container; it may have been interrupted."""

    def __init__(self, container: marks.Container) -> None:
        self._container = container

    def content(self) -> sources.Content:
        """Return the files that were there before it began.

        :raises errors.NotFound: there is no such container.
        """
        found = dict(sources.from_container(self._container))
        if not self._has_begun():
            return found
        for path in self.added():
            found.pop(path, None)
        return {**found, **self._copied()}

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
            marks.Mark(
                state=plans.State.CREATING, rendered=rendered, adopted=True
            )
        )

    def added(self) -> set[str]:
        """Return the paths that were not there before."""
        found = self._container.fetch([_ADDED])
        return set(json.loads(found[_ADDED])) if found else set()

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
        found = self._container.fetch(self._container.own(_COPIES))
        return {
            name.removeprefix(_COPIES): content
            for name, content in found.items()
        }
