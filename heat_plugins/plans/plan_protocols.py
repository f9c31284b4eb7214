# SPDX-License-Identifier: Apache-2.0
"""Who has the name of a plan: a registry, as a protocol.

Each method may raise `errors.Denied`, `errors.Unavailable` or another
`errors.ServiceError`. The real ones are in `heat_plugins.clients`, the
strict fakes in ``tests/unit/plans/fakes.py``.
"""

from collections import abc
import dataclasses
from typing import Any, Protocol


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """What stands under a name in a registry.

    :ivar values: JSON's kinds only; who reads them judges them.
    """

    name: str
    description: str
    values: abc.Mapping[str, Any]


class Registry(Protocol):
    """Names, each of which one at most can take.

    They are Mistral's environments, or objects where there is no Mistral.
    """

    def create(self, record: Record) -> bool:
        """Take a name; False where it is taken."""

    def get(self, name: str) -> Record | None:
        """Return the record of a name in this project, if there is one."""

    def find(self) -> list[Record]:
        """Return all records of this project, by name."""

    def delete(self, name: str) -> bool:
        """Release a name; False where it was not taken."""
