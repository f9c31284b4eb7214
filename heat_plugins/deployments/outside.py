# SPDX-License-Identifier: Apache-2.0
"""The ways out of this room: Heat, its servers, and the object store.

Each has one implementation in `heat_plugins.engine`. What concerns many
servers takes many at a time: a single deployment gives sequences of one.
"""

from collections import abc
from typing import Protocol

from heat_plugins.deployments import deliveries
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import watcher


class Rows(Protocol):
    """Heat's derived configs and deployments, and what servers know of them.

    Each may raise `errors.Unavailable`: the database does not answer, and
    what was to be written may be written all the same.
    """

    def read(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, deliveries.Row]:
        """Read deployments by id; those that are gone are left out."""

    def deliver(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Write configs and deployments, and tell the servers.

        A deployment that has a row gets another config, no outputs, and the
        state of an action that begins; NO_SIGNAL completes it at once. What
        is written already, by an attempt before, is written over.
        """

    def settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.Outcome]
    ) -> abc.Collection[watcher.Ticket]:
        """End deployments that still wait for just that; return whose counts.

        Another engine, or a user, may have ended one already.
        """

    def begin(
        self, tickets: abc.Collection[watcher.Ticket]
    ) -> abc.Collection[watcher.Ticket]:
        """Write that servers have started; return of which that is news."""

    def withdraw(self, ids: abc.Collection[str]) -> None:
        """Delete deployments, and take their configs from the servers."""

    def delete_configs(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, Exception]:
        """Delete configs; return those that remain, and why."""


class Signals(Protocol):
    """The signals of one root stack, in one engine process: its hub.

    The watcher of that hub, which polls for all, is core and has no protocol.
    """

    def fetch(self, name: str, limit: int) -> bytes:
        """Fetch a signal of at most so many bytes.

        :raises errors.ServiceError: as `store.ObjectStore.get_object`.
        """

    def discard(self, name: str) -> None:
        """Delete a signal that was taken, before long."""

    def leave(self, ticket: watcher.Ticket) -> None:
        """Stop polling for a signal."""

    def key_holds(self, signer: keys.Signer) -> bool:
        """Say whether URLs of a signer still work."""

    def rows(self, ids: abc.Collection[str]) -> abc.Mapping[str, watcher.Row]:
        """Read what the watcher needs of deployments' rows.

        :raises errors.Unavailable: the database does not answer.
        """


class Memory(Protocol):
    """What a resource keeps between its actions: texts, by key.

    A Heat resource is one, by its data in the database.
    """

    def data(self) -> abc.Mapping[str, str]:
        """Return all of it."""

    def data_set(self, key: str, value: str, redact: bool = False) -> object:
        """Keep a text.

        :param redact: store it encrypted, and show nobody.
        """

    def data_delete(self, key: str) -> object:
        """Forget a text; it may be gone already."""
