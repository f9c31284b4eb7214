# SPDX-License-Identifier: Apache-2.0
"""How a deployment goes: its DELETE action, and all that was made for it."""

from collections import abc
import time

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins.deployments import failures
from heat_plugins.deployments import outside
from heat_plugins.deployments import waiters

LOG = foreign.logger(__name__)

# How often to ask whether the server of a DELETE is still there, in seconds.
_SERVER_SECONDS = 30


class Removal:
    """One deployment that goes."""

    def __init__(
        self,
        waiter: waiters.Waiter | None,
        *,
        resource: outside.Resource,
        server_name: abc.Callable[[], str],
        is_server_there: abc.Callable[[], bool],
        delete: abc.Callable[[], None],
        sweep: abc.Callable[[], outside.Sweep],
        settings: outside.Settings,
    ) -> None:
        """Begin.

        :param waiter: for the DELETE action; None if none is to run.
        :param delete: deletes all that was made in Heat and Keystone.
        :param sweep: returns what cleans up the rest, once that is known.
        """
        self._waiter = waiter
        self._resource = resource
        self._server_name = server_name
        self._is_server_there = is_server_there
        self._delete = delete
        self._make_sweep = sweep
        # None until all is deleted.
        self._cleanup: Cleanup | None = None
        self._settings = settings
        self._next_server_check = time.monotonic() + _SERVER_SECONDS
        # Since when the object store refuses to be cleaned up.
        self._trouble: retrying.Trouble | None = None

    @property
    def pause(self) -> int | None:
        """Seconds to leave it alone; None if it may end each second."""
        return self._waiter.pause if self._waiter else waiters.STORE_DELAY

    def begin(self) -> None:
        """Deliver the DELETE action, if there is one."""
        try:
            if self._waiter is not None and self._waiter.begin():
                self._waiter = None
        except failures.NoAnswer as exc:
            self._go_without(exc)

    def check(self) -> bool:
        """Say whether all is undone and cleaned up.

        :raises failures.Error: the DELETE action has failed.
        """
        if self._waiter is not None and not self._has_ended(self._waiter):
            return False
        self._waiter = None
        if self._cleanup is None:
            self._delete()
            self._cleanup = Cleanup(
                self._resource,
                self._make_sweep(),
                self._settings,
                self._trouble,
            )
        return self._cleanup.step()

    def _has_ended(self, waiter: waiters.Waiter) -> bool:
        now = time.monotonic()
        if now > self._next_server_check:
            self._next_server_check = now + _SERVER_SECONDS
            if not self._is_server_there():
                waiter.withdraw()
                return True
        try:
            return waiter.check(self._next_server_check)
        except failures.NoAnswer as exc:
            self._go_without(exc)
            # It has been given its time.
            self._trouble = waiter.trouble
            return True

    def withdraw(self) -> None:
        """Withdraw the DELETE action from its server, if it has not ended."""
        if self._waiter is not None:
            self._waiter.withdraw()

    def _go_without(self, why: failures.NoAnswer) -> None:
        """Go on without the DELETE action, whose result could not arrive.

        A failure would repeat at each attempt: what is missing may never
        return, and the stack must be deleted all the same.
        """
        self._waiter = None
        warn(
            self._resource,
            'DELETE',
            f'DELETE was not run on server {self._server_name()}: {why}',
        )


class Cleanup:
    """Cleans up the object store behind a resource that goes.

    :param trouble: since when the object store refuses it.
    """

    def __init__(
        self,
        resource: outside.Resource,
        sweep: outside.Sweep,
        settings: outside.Settings,
        trouble: retrying.Trouble | None = None,
    ) -> None:
        self._resource = resource
        self._sweep = sweep
        self._settings = settings
        self._trouble = trouble

    def step(self) -> bool:
        """Say whether it is done; ride out passing faults of the store."""
        try:
            self._sweep.run()
        except errors.ServiceError as exc:
            self._trouble = retrying.Trouble.of(exc, self._trouble)
            is_passing = exc.may_pass or isinstance(exc, errors.Conflict)
            if is_passing and not self._settings.is_over_budget(self._trouble):
                return False
            leave_behind(self._resource, 'DELETE', self._sweep, exc)
        return True


def leave_behind(
    resource: outside.Resource,
    action: str,
    sweep: outside.Sweep,
    exc: errors.ServiceError,
) -> None:
    """Tell that something may remain in the object store.

    The server cannot use it for anything, and its URL expires; that is no
    reason to keep a stack from being deleted.
    """
    warn(
        resource,
        action,
        f'Cannot clean up container {sweep.container}, which may remain: '
        f'{exc}',
    )


def warn(resource: outside.Resource, action: str, message: str) -> None:
    """Say in an event, and to the operator, what goes otherwise."""
    LOG.warning('%s: %s', resource.label, message)
    resource.tell(action, message)
