# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a plan.

::

    PlanError
      x Refused          it was not done, and nothing was changed
          . Invalid      a name, a file or a choice that cannot be
              - BadFile  a file of the plan, with its path and line
          . Exists       there is a plan, or something else, of that name
          . InUse        a stack of the plan exists
          . Busy         somebody else changes the plan just now
          . Unfinished   the plan is half made, or half deleted
      x NotFound         no such plan, or no such file in it
      x Failed           it has begun, and did not succeed
      x ServiceError     Mistral or Heat did not do what we asked
          . OverLimit    Heat takes less than that
          . Denied       401, 403, or Keystone refused us a token
          . Unavailable  it may pass: 5xx, 429, a broken connection

What the object store answers is told by `heat_plugins.objectstore.errors`.
"""


class PlanError(Exception):
    """Base of the errors of this package; no message holds a secret."""


class Refused(PlanError):
    """It was not done; the message says why, and what to do."""


class Invalid(Refused):
    """What was given is no plan, no name, or no choice that a plan has."""


class BadFile(Invalid):
    """A file of the plan cannot be read, or refers to what it may not.

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


class InUse(Refused):
    """A stack of the plan exists, in whatever state."""


class Busy(Refused):
    """The plan is being changed by somebody else."""


class Unfinished(Refused):
    """The plan's making, or its deletion, has begun and not ended."""


class NotFound(PlanError):
    """There is no such plan, or no such file in it."""


class Failed(PlanError):
    """What has begun, a deployment or what runs after it, has failed."""


class ServiceError(PlanError):
    """A service refused a request.

    :param status: the HTTP status, or None where no answer came.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class OverLimit(ServiceError):
    """A plan exceeds a limit of Heat.

    :param option: of heat.conf, in [DEFAULT].
    """

    def __init__(
        self, message: str, status: int | None = None, option: str = ''
    ) -> None:
        super().__init__(message, status)
        self.option = option


class Denied(ServiceError):
    """Who asked may not do this."""


class Unavailable(ServiceError):
    """The service is out of order for now; later it may answer."""
