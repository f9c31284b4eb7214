# SPDX-License-Identifier: Apache-2.0
"""The errors that a user of the mini cloud is meant to read."""


class MinicloudError(Exception):
    """Something did not work; ``remedy`` says what the user can do.

    MinicloudError          exit code 1: it was tried and failed
      UsageError            exit code 2: what was asked for makes no sense
      NotRunningError       exit code 3: the cloud, or a service, is down
      UnavailableError      exit code 4: something that it needs is missing
    """

    exit_code = 1

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy


class UsageError(MinicloudError):
    exit_code = 2


class NotRunningError(MinicloudError):
    exit_code = 3


class UnavailableError(MinicloudError):
    exit_code = 4
