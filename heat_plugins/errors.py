# SPDX-License-Identifier: Apache-2.0
"""All errors, in one tree; no message holds a secret.

::

    Error
      x Refused               we did not do it, and changed nothing
          . Invalid           an invalid name, file or choice
          . Exists            the name is taken
          . PlanInUse         a stack of the plan exists
          . PlanBusy          another process is changing the plan
          . PlanUnfinished    the plan is half created, or half deleted
          . AlreadyRunning    the same action is running there
      x Unreadable            a record is invalid, or of a later release
      x Failed                it has started, and failed
      x ServiceError          a service refused or failed a request
          . NotFound          no such thing, or not for this project
              - NoObject      404 of the object store
          . Conflict          409: it exists, or is being changed
              - NodeLocked    of Ironic: the node is being changed
          . TooManyObjects    a container holds more than we list
          . BadContent        the content of an object is unusable
              - TooLarge      it has more bytes than we read
              - BadSignal     it is not a signal's JSON map
          . TempURLsUnusable  this cloud, or this user, cannot have TempURLs
              - NoObjectStore the catalogue has no object store
          . Denied            401, 403, or Keystone refused us a token
          . Unavailable       temporary: 5xx, 429, a broken connection
              - LikelyDefect  500 of Mistral: often permanent
              - Untouched     before any change
                  . TokenRejected  by a 401 to a new token

Mistral hands on what JSON can say, so each has a code: `report` writes an
error as a map, and `restore` reads it.
"""

from collections import abc
import inspect

from heat_plugins import foreign


class Error(Exception):
    """Base of all errors; the message names the remedy.

    :cvar code: says to programs which one it is.
    """

    code = 'error'

    @property
    def may_pass(self) -> bool:
        """Whether a retry may succeed."""
        return False


class Refused(Error):
    """The request was refused; the message says why, and the remedy."""

    code = 'refused'


class Invalid(Refused):
    """An invalid plan, name or choice."""

    code = 'invalid'


class Exists(Refused):
    """The name is taken."""

    code = 'exists'


class PlanInUse(Refused):
    """A stack of the plan exists, in whatever state."""

    code = 'in-use'


class PlanBusy(Refused):
    """Another process is changing the plan."""

    code = 'busy'


class PlanUnfinished(Refused):
    """The plan's creation or deletion has started and not ended."""

    code = 'unfinished'


class AlreadyRunning(Refused):
    """Only one run of an action is allowed on a deployment at a time."""

    code = 'already-running'


class Unreadable(Error):
    """A record is invalid; the message names its object, and the remedy."""

    code = 'unreadable'


class Failed(Error):
    """A deployment, or a later step of its command, has failed."""

    code = 'failed'


class ServiceError(Error):
    """A service refused a request.

    :param message: the request and its outcome.
    :param status: the HTTP status, or None where no answer came.
    :ivar is_denial: whether it refused the user's credentials, whatever that
        means to the caller.
    :ivar kind: the service's own name of the error; '' if it has none.
    """

    code = 'error'
    is_denial = False
    kind = ''

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class NotFound(ServiceError):
    """It does not exist, or not for this project."""

    code = 'not-found'


class NoObject(NotFound):
    """There is no such container or object."""


class Conflict(ServiceError):
    """It exists already, is not empty, or has another owner."""


class NodeLocked(Conflict):
    """Another process is changing the node."""


class TooManyObjects(ServiceError):
    """A container holds more objects than we list."""


class BadContent(ServiceError):
    """An object's content is unusable; the message says why, without data."""


class TooLarge(BadContent):
    """An object has more bytes than the caller reads."""


class BadSignal(BadContent):
    """A signal is not a JSON map in UTF-8, or too deep to be kept."""


class TempURLsUnusable(ServiceError):
    """TempURLs are unusable; the message says why, and the remedy."""

    code = 'no-temp-url'


class NoObjectStore(TempURLsUnusable):
    """The catalogue has no object store for this region."""


class Denied(ServiceError):
    """The user may not do this."""

    code = 'denied'
    is_denial = True

    @property
    def may_pass(self) -> bool:
        """Whether the store rejects all tokens for now.

        Swift answers 403 to a user without a role. Ceph's gateway answers
        401 in both cases.
        """
        return self.status == 401


class Unavailable(ServiceError):
    """A temporary failure of the service."""

    code = 'unavailable'

    @property
    def may_pass(self) -> bool:
        return True


class LikelyDefect(Unavailable):
    """A failure that is often permanent, so retried for a short time only."""


class Untouched(Unavailable):
    """The service fails temporarily, and has changed nothing."""


class TokenRejected(Untouched):
    """The service rejects a new token, too, and has changed nothing."""


_BY_STATUS: abc.Mapping[int, type[ServiceError]] = {
    401: Denied,
    403: Denied,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    429: Unavailable,
}


def of_status(status: int) -> type[ServiceError]:
    """Return the class of the error that an HTTP status means."""
    other = Unavailable if status >= 500 else ServiceError
    return _BY_STATUS.get(status, other)


def report(exc: Exception) -> dict[str, str]:
    """Return an error as a map of a code and a message."""
    code = exc.code if isinstance(exc, Error) else Error.code
    return {'code': code, 'message': foreign.block(exc)}


_KINDS: abc.Mapping[str, type[Error]] = {
    kind.code: kind
    for kind in list(globals().values())
    if inspect.isclass(kind)
    and issubclass(kind, Error)
    and 'code' in vars(kind)
}


def restore(fields: abc.Mapping[str, object]) -> Error:
    """Return the error of a map."""
    kind = _KINDS.get(str(fields.get('code')), ServiceError)
    return kind(str(fields.get('message')))
