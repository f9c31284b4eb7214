# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, in one tree; no message holds a secret.

::

    Error
      x Refused               it was not done, and nothing was changed
          . Invalid           a name, a file or a choice that cannot be
              - BadFile       a file, with its path and line
          . Exists            there is something of that name
          . InUse             a stack of the plan exists
          . Busy              somebody else changes the plan just now
          . Unfinished        the plan is half made, or half deleted
          . AlreadyRunning    the same action runs there
      x Ended                 a run cannot be cancelled any more
      x Unreadable            a record is none, or of a later release
      x Failed                it has begun, and did not succeed
      x ServiceError          a service did not do what we asked
          . NotFound          no such thing, or not for this project
              - NoObject      404 of the object store
          . Conflict          409: in the way is what is there, or a change
              - Locked        of Ironic: somebody changes the node just now
          . TooMany           a listing is longer than we read
          . OverLimit         Heat takes less than that
          . BadSignal         what a server sent is no result
          . TempURLUnusable   this cloud, or this user, cannot have TempURLs
          . Denied            401, 403, or Keystone refused us a token
          . Unavailable       it may pass: 5xx, 429, a broken connection
              - Doubtful      500 of Mistral: often it is a defect
              - NotLetIn      401 to a new token, before anything was made

Mistral hands on what JSON can say, so each has a code: `report` writes an
error as a map, and `restore` reads it.
"""

from collections import abc
import inspect
from typing import TYPE_CHECKING

from heat_plugins import foreign

if TYPE_CHECKING:
    from heat_plugins.runs.records import record_names


class Error(Exception):
    """Base of all errors; the message says what to do.

    :cvar code: says to programs which one it is.
    """

    code = 'error'

    @property
    def may_pass(self) -> bool:
        """Whether the same may go well a while later."""
        return False


class Refused(Error):
    """It was not done; the message says why, and what to do."""

    code = 'refused'


class Invalid(Refused):
    """What was given is no plan, no name, or no choice that there is."""

    code = 'invalid'


class BadFile(Invalid):
    """A file of a plan cannot be read, or refers to what it may not.

    :param path: of the file.
    :param line: from 1; None where no line is known.
    """

    def __init__(
        self, message: str, path: str = '', line: int | None = None
    ) -> None:
        super().__init__(message)
        self.path = path
        self.line = line


class Exists(Refused):
    """The name is taken."""

    code = 'exists'


class InUse(Refused):
    """A stack of the plan exists, in whatever state."""

    code = 'in-use'


class Busy(Refused):
    """The plan is being changed by somebody else."""

    code = 'busy'


class Unfinished(Refused):
    """The plan's making, or its deletion, has begun and not ended."""

    code = 'unfinished'


class AlreadyRunning(Refused):
    """Only one run of an action is allowed on a deployment at a time.

    :param run_id: the one that is there.
    """

    code = 'already-running'

    def __init__(self, message: str, run_id: str = '') -> None:
        super().__init__(message)
        self.run_id = run_id


class Ended(Error):
    """The run has ended already."""

    code = 'ended'


class Unreadable(Error):
    """Nobody can say of a run more than its name; `run delete` forgets it.

    :param key: that name.
    """

    code = 'unreadable'

    def __init__(self, message: str, key: 'record_names.Key') -> None:
        super().__init__(message)
        self.key = key


class Failed(Error):
    """What has begun, a deployment or what runs after it, has failed."""

    code = 'failed'


class ServiceError(Error):
    """A service refused a request.

    :param message: what was tried, and what came of it.
    :param status: the HTTP status, or None where no answer came.
    """

    code = 'error'

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class NotFound(ServiceError):
    """There is no such thing, or not for this project."""

    code = 'not-found'


class NoObject(NotFound):
    """There is no such container or object."""


class Conflict(ServiceError):
    """It is there already, is not empty, or belongs to somebody else."""


class Locked(Conflict):
    """A node is being changed by somebody else."""


class TooMany(ServiceError):
    """A container holds more objects than we list."""


class OverLimit(ServiceError):
    """A plan exceeds a limit of Heat.

    :param option: of heat.conf, in [DEFAULT].
    """

    def __init__(
        self, message: str, status: int | None = None, option: str = ''
    ) -> None:
        super().__init__(message, status)
        self.option = option


class BadSignal(ServiceError):
    """A signal that is no result; the message says why, and holds no data."""


class TempURLUnusable(ServiceError):
    """No TempURL can be had; the message names the cause and the remedy."""

    code = 'no-temp-url'


class Denied(ServiceError):
    """Who asked may not do this."""

    code = 'denied'

    @property
    def may_pass(self) -> bool:
        """Whether the store takes no token for now: who lacks a role gets 403.

        Swift does so, at least. Ceph's gateway answers 401 to those, too.
        """
        return self.status == 401


class Unavailable(ServiceError):
    """The service is out of order for now; later it may answer."""

    code = 'unavailable'

    @property
    def may_pass(self) -> bool:
        return True


class Doubtful(Unavailable):
    """It may pass, but is not waited for long: often it is a defect."""


class NotLetIn(Unavailable):
    """No token of who asks is taken for now, so that nothing was made."""


def report(exc: Exception) -> dict[str, str]:
    """Return an error as a map of a code and a message."""
    code = exc.code if isinstance(exc, Error) else Error.code
    return {'code': code, 'message': foreign.block(exc)}


_KINDS: abc.Mapping[str, type[Error]] = {
    kind.code: kind
    for kind in list(globals().values())
    if inspect.isclass(kind)
    and issubclass(kind, Error)
    and kind is not Unreadable
    and 'code' in vars(kind)
}


def restore(found: abc.Mapping[str, object]) -> Error:
    """Return the error of a map."""
    kind = _KINDS.get(str(found.get('code')), ServiceError)
    return kind(str(found.get('message')))
