# SPDX-License-Identifier: Apache-2.0
"""The roles that servers of a plan play."""

from collections import abc
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Role:
    """A role.

    :ivar count: how many servers play it by default; None if unknown.
    :ivar data: the role as roles_data.yaml has it.
    """

    name: str
    description: str = ''
    count: int | None = None
    tags: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    data: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
