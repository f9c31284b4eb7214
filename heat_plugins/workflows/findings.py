# SPDX-License-Identifier: Apache-2.0
"""The form of what is wrong with a definition."""

from collections.abc import Iterable
import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that keeps a definition from working.

    :ivar message: what it is, with the value and the remedy.
    :ivar line: where it is, counted from 1; None where that is not known.
    """

    message: str
    workflow: str | None = None
    task: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        places = []
        if self.workflow is not None:
            places.append(f'workflow "{self.workflow}"')
        if self.task is not None:
            places.append(f'task "{self.task}"')
        if self.line is not None:
            places.append(f'line {self.line}')
        if not places:
            return self.message
        return f'{", ".join(places)}: {self.message}'


class DefinitionError(ValueError):
    """A definition cannot be used.

    :ivar problems: why, in the order of the text.
    """

    #: So many are told; the rest tends to follow from them.
    TOLD = 10

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        told = [str(problem) for problem in self.problems[: self.TOLD]]
        if left := len(self.problems) - len(told):
            told.append(f'and {left} more')
        super().__init__('; '.join(told))
