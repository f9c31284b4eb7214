# SPDX-License-Identifier: Apache-2.0
"""The ways out of this room: Heat, its servers, and the object store.

Each has one implementation in `heat_plugins.engine`. What concerns many
servers takes many at a time: a single deployment gives sequences of one.
"""

from collections import abc
import contextlib
import dataclasses
from typing import Any, Protocol

from heat_plugins import errors
from heat_plugins import retrying
from heat_plugins.deployments import deliveries
from heat_plugins.objectstore import keys
from heat_plugins.runs import orchestration
from heat_plugins.signals import body
from heat_plugins.signals import watcher


class Unanswered(errors.Unavailable):
    """Heat's database does not answer.

    The database may have written the change all the same.
    """


class Rows(Protocol):
    """Heat's derived configs and deployments, and what servers know of them.

    Each may raise errors of the database; see `guarded`.
    """

    def guarded(
        self, *, everything: bool = False
    ) -> contextlib.AbstractContextManager[None]:
        """Turn failures of the database in a block into `Unanswered`.

        :param everything: also those that a repetition would meet again.
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

    def tell(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Tell servers what they must run, as the rows say."""

    def poll_queue(self, deployment_id: str) -> None:
        """Let Heat settle a deployment by what lies in its Zaqar queue."""

    def change_outputs(
        self, deployment_id: str, outputs: abc.Mapping[str, Any]
    ) -> None:
        """Write other outputs of a deployment that has ended."""

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
        """Fetch a signal of at most `limit` bytes.

        :raises errors.ServiceError: as `stores.ObjectStore.get_object`.
        """

    def discard(self, name: str) -> None:
        """Delete a signal that was taken, before long."""

    def request_stop(self, name: str) -> None:
        """Tell a server to stop the action that a signal is of, if it can.

        :param name: of the signal. What fails is logged.
        """

    def key_holds(self, signer: keys.Signer) -> bool:
        """Say whether URLs of a signer still work."""

    def rows(self, ids: abc.Collection[str]) -> abc.Mapping[str, watcher.Row]:
        """Read what the watcher needs of deployments' rows.

        :raises errors.Unavailable: the database does not answer.
        """


class Servers(Protocol):
    """The servers that the stacks of a project have."""

    def find(self, server_id: str) -> deliveries.Server:
        """Return a server, whether any stack has it or none."""

    def is_there(self, server_id: str) -> bool:
        """Say whether a server can be given a config; doubt counts as yes."""


class Stack(Protocol):
    """The stack of a deployment, as far as a waiting one must know."""

    def is_cancelled(self, since: float) -> bool:
        """Say whether its action was cancelled or is rolled back.

        :param since: when the action began, by `time.monotonic`.
        """

    def renew_access(self) -> None:
        """Take other stored credentials, if the present ones were refused."""


class Loop(Protocol):
    """Heat's loop around the checks of an action."""

    def patience(self, *deadlines: float | None) -> float:
        """Return the seconds for which a check may block now.

        :param deadlines: when there is something else to do, by
            `time.monotonic`; None counts as never.
        """

    def goes_on(self) -> bool:
        """Ask what Heat asks between two checks; say if there is time.

        :raises BaseException: the stack has cancelled the action.
        """


class Memory(Protocol):
    """What a resource keeps between its actions: texts, by key.

    A Heat resource is one, by its data in the database.
    """

    def data(self) -> abc.Mapping[str, str]:
        """Return all of it."""

    def data_set(self, key: str, value: str, redact: bool = False) -> object:
        """Keep a text.

        :param redact: store it encrypted, and never show it.
        """

    def data_delete(self, key: str) -> object:
        """Forget a text; it may be gone already."""


class Resource(Memory, Protocol):
    """A deployment of a stack, as Heat has it.

    :ivar resource_id: the deployment's id; None before its first action.
    :ivar replaces: the number of the resource in whose place it is created.
    """

    replaces: int | None

    @property
    def resource_id(self) -> str | None: ...

    @property
    def label(self) -> str:
        """What the log calls it, to be found by any of its names and ids."""

    def take_id(self) -> None:
        """Get an id, if it has none."""

    def keep_id(self) -> None:
        """Store its id, before Heat has a row of that."""

    def tell(self, action: str, reason: str) -> None:
        """Write an event of an action that is in progress."""


class Template(Protocol):
    """What a deployment's template has Heat make of it."""

    users_project: str | None

    @property
    def input_values(self) -> abc.Mapping[str, Any] | None: ...

    def choose(self, config_id: str) -> deliveries.Signalling:
        """Prepare the transport of an action.

        :param config_id: the id that the derived config gets.
        :raises failures.NoAnswer: no transport can be used.
        :raises errors.Unavailable: the same, but one may be usable later.
        """

    def choose_again(self, row: deliveries.Row) -> deliveries.Signalling:
        """Return how the action of a row is signalled; see `choose`."""

    def derive(
        self,
        action: str,
        source: deliveries.Source,
        signalling: deliveries.Signalling,
    ) -> orchestration.Draft:
        """Return the config that a server is given, as agents can take it."""


class Sweep(Protocol):
    """What cleans up the object store behind a deployment that goes."""

    container: str | None

    def run(self) -> None:
        """Clean up; can be run again after it has failed.

        :raises errors.ServiceError: the object store did not do it.
        """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What the operator has set.

    :ivar known_hooks: those that servers are known to have.
    :ivar body_limit: the most bytes of a signal.
    :ivar budget: seconds for which failures of the object store and of the
        database are ridden out.
    """

    known_hooks: abc.Collection[str]
    body_limit: int
    budget: float

    def is_over_budget(self, trouble: retrying.Trouble) -> bool:
        """Say whether trouble has lasted longer than is ridden out."""
        return trouble.seconds > self.budget


@dataclasses.dataclass(frozen=True, kw_only=True)
class Engine:
    """What one heat-engine shares among the deployments of a stack.

    :ivar watcher: of the hub that `signals` is.
    """

    rows: Rows
    signals: Signals
    watcher: watcher.Watcher
    stack: Stack
    loop: Loop
    settings: Settings
