# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between us and the object store.

::

    SignalError
      x BadSignal            what the server sent is no result
      x StoreError           the object store did not do what we asked
          . NotFound         404
          . Conflict         409
          . TooMany          a listing is longer than we read
          . Denied           401, 403, or Keystone refused us a token
          . Unavailable      it may pass: 5xx, 429, a broken connection
              - NotLetIn     401 to a new token, before anything was made
      x TempURLUnusable      this cloud, or this user, cannot have TempURLs
"""


class SignalError(Exception):
    """Base of the errors of this package."""

    @property
    def may_pass(self) -> bool:
        """Whether the same may go well a while later."""
        return False


class BadSignal(SignalError):
    """A signal that is no result; the message says why, and holds no data."""


class StoreError(SignalError):
    """The object store refused a request.

    :param message: what was tried, and what came of it.
    :param status: the HTTP status, or None where no answer came.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class NotFound(StoreError):
    """There is no such container or object."""


class Conflict(StoreError):
    """A container is not empty, or belongs to somebody else."""


class TooMany(StoreError):
    """A container holds more objects than we list."""


class Denied(StoreError):
    """Who asked may not do this."""

    @property
    def may_pass(self) -> bool:
        """Whether the store takes no token for now: who lacks a role gets 403.

        Swift does so, at least. Ceph's gateway answers 401 to those, too.
        """
        return self.status == 401


class Unavailable(StoreError):
    """The object store is out of order for now; later it may answer."""

    @property
    def may_pass(self) -> bool:
        """Whether the same may go well a while later."""
        return True


class NotLetIn(Unavailable):
    """No token of who asks is taken for now, so that nothing was made."""


class TempURLUnusable(SignalError):
    """No TempURL can be had; the message names the cause and the remedy."""
