# SPDX-License-Identifier: Apache-2.0
"""Problems of a definition."""

from collections.abc import Iterable
import dataclasses

from heat_plugins import bounds


@dataclasses.dataclass(frozen=True, kw_only=True)
class DefinitionProblem:
    """A mistake in a definition.

    :ivar message: the mistake, with the value and the remedy.
    :ivar line: its line, from 1; None where that is not known.
    """

    message: str
    workflow: str | None = None
    task: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        places = []
        if self.workflow is not None:
            places.append(f'workflow "{bounds.shortened(self.workflow)}"')
        if self.task is not None:
            places.append(f'task "{bounds.shortened(self.task)}"')
        if self.line is not None:
            places.append(f'line {self.line}')
        if not places:
            return self.message
        return f'{", ".join(places)}: {self.message}'


class DefinitionError(ValueError):
    """A definition cannot be used.

    :param problems: in the order of the text.
    """

    def __init__(self, problems: Iterable[DefinitionProblem]) -> None:
        super().__init__(bounds.listed(problems, between='; '))
