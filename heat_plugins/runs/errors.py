# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a run, apart from the run itself.

::

    RunError
      x Refused              it was not started, and nothing was changed
          . AlreadyRunning   the same action runs there
      x NotFound             no such stack, resource, deployment or run
      x Ended                it cannot be cancelled any more
      x Unreadable           its record is none, or of a later release
      x OrchestrationError   Heat did not do what we asked
          . Denied           401, 403, or Keystone refused us a token
          . Unavailable      it may pass: 5xx, 429, a broken connection

What the object store answers is told by `heat_plugins.objectstore.errors`.
"""

from heat_plugins.runs.records import record_names


class RunError(Exception):
    """Base of the errors of this package."""


class Refused(RunError):
    """The run was not started; the message says why and what to do."""


class AlreadyRunning(Refused):
    """Only one run of an action is allowed on a deployment at a time.

    :param run_id: the one that is there.
    """

    def __init__(self, message: str, run_id: str) -> None:
        super().__init__(message)
        self.run_id = run_id


class NotFound(RunError):
    """There is no such thing, or not for this project."""


class Ended(RunError):
    """The run has ended already."""


class Unreadable(RunError):
    """Nobody can say of a run more than its name; `run delete` forgets it.

    :param key: that name.
    """

    def __init__(self, message: str, key: record_names.Key) -> None:
        super().__init__(message)
        self.key = key


class OrchestrationError(RunError):
    """Heat refused a request.

    :param status: the HTTP status, or None where no answer came.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Denied(OrchestrationError):
    """Who asked may not do this."""


class Unavailable(OrchestrationError):
    """Heat is out of order for now; later it may answer."""
