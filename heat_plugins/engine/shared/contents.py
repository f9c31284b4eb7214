# SPDX-License-Identifier: Apache-2.0
"""What lies in a root stack's container, for those that are deleted."""

from collections import abc
import math
import time

from heat_plugins import errors
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import sharing
from heat_plugins.objectstore import stores
from heat_plugins.signals import arrivals

# Seconds for which deployments that are deleted share a listing.
_LISTING_SECONDS = 1

# Seconds for which an object store that refuses the stack's owner counts as
# shut.
_SHUT_SECONDS = 300


class Contents:
    """Lists a container once for all that go at about the same time.

    :param store: returns the account's object store.
    :param settle: waits until what is being deleted has gone.
    """

    def __init__(
        self,
        container: str,
        store: abc.Callable[[], stores.ObjectStore],
        settle: abc.Callable[[], object],
    ) -> None:
        self._container = container
        self._store = store
        self._settle = settle
        # All that lay in the container, and when that was listed.
        self._listed: tuple[float, abc.Collection[str]] = (-math.inf, ())
        # When there was too much for that, and what was said of it.
        self._overfull: tuple[float, errors.TooManyObjects | None] = (
            -math.inf,
            None,
        )
        self._listings: sharing.Rounds[abc.Collection[str]] = sharing.Rounds()
        # When there was none to be had.
        self._shut_at = -math.inf

    def forget(self) -> None:
        """List it again for the next caller."""
        self._listed = -math.inf, ()

    def below(self, container: str, *folders: str) -> abc.Collection[str]:
        """List the objects in folders of a container; none if there is none.

        Those who go within a second share a listing. What arrives in that
        second goes with the container, like all that arrives later.
        """
        try:
            if container != self._container:
                there = cleaning.everything(self._store(), container)
            else:
                there = self._listings.share(lambda _: self._everything(), {})
        except errors.TooManyObjects:
            there = [
                name
                for folder in folders
                for name in cleaning.everything(
                    self._store(), container, folder
                )
            ]
        return [name for name in there if name.startswith(folders)]

    def _everything(self) -> abc.Collection[str]:
        too_many_at, too_many = self._overfull
        if time.monotonic() - too_many_at <= arrivals.OVERFULL_SECONDS:
            raise errors.TooManyObjects(str(too_many))
        listed_at, listing = self._listed
        if time.monotonic() - listed_at > _LISTING_SECONDS:
            # Else both would delete the same.
            self._settle()
            listed_at = time.monotonic()
            try:
                listing = cleaning.everything(self._store(), self._container)
            except errors.TooManyObjects as exc:
                self._overfull = listed_at, exc
                raise
            except (errors.Denied, errors.TempURLsUnusable) as exc:
                if not exc.may_pass:
                    self._shut_at = listed_at
                raise
            self._listed = listed_at, listing
            self._shut_at = -math.inf
        return listing

    @property
    def is_shut(self) -> bool:
        """Whether a short while ago nothing could be listed for good.

        There is no object store, or it refuses the stack's owner. This says
        nothing about TempURLs, unlike `signing.Signing.refusal`: commands may
        have started runs where this engine cannot use TempURLs.
        """
        return time.monotonic() - self._shut_at <= _SHUT_SECONDS
