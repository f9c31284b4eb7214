# SPDX-License-Identifier: Apache-2.0
"""Findings about a config."""

import dataclasses
import enum
import functools
from typing import Final


class Unknown(enum.Enum):
    """The type of :data:`UNKNOWN`."""

    UNKNOWN = 'unknown'


#: Stands for a value that only exists once other resources do.
UNKNOWN: Final = Unknown.UNKNOWN


class Severity(enum.Enum):
    """How much a :class:`ConfigProblem` matters."""

    ERROR = 'error'
    WARNING = 'warning'
    NOTE = 'note'


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConfigProblem:
    """One finding about a config.

    :ivar severity: an error must be put right before the config is used.
    :ivar code: a short name that stays the same between releases.
    :ivar where: the place in the config, such as ``inputs[1]``.
    :ivar message: the finding, with the value and the remedy.
    """

    severity: Severity
    code: str
    where: str
    message: str

    def __str__(self) -> str:
        return f'{self.where}: {self.message}'


error = functools.partial(ConfigProblem, severity=Severity.ERROR)
warning = functools.partial(ConfigProblem, severity=Severity.WARNING)
note = functools.partial(ConfigProblem, severity=Severity.NOTE)
