# SPDX-License-Identifier: Apache-2.0
"""``capabilities-map.yaml``: what can be chosen in a plan."""

import dataclasses

#: Where it lies in a plan.
PATH = 'capabilities-map.yaml'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Environment:
    """An environment that can be enabled; its path is what identifies it.

    :ivar requires: the paths of those that have to be enabled with it.
    :ivar present: whether the plan has the file.
    """

    path: str
    title: str
    description: str = ''
    requires: tuple[str, ...] = ()
    enabled: bool = False
    present: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """Environments that belong together.

    :ivar mutually_exclusive: whether only one of them may be enabled.
    """

    name: str = ''
    title: str = ''
    description: str = ''
    tags: tuple[str, ...] = ()
    mutually_exclusive: bool = False
    environments: tuple[Environment, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Topic:
    """Groups that belong together."""

    title: str = ''
    description: str = ''
    groups: tuple[Group, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What can be chosen in a plan.

    :ivar topics: in the map's order; the environments that the map does not
        name are in a last topic, "Other".
    :ivar warnings: what is wrong with the map, a sentence each.
    """

    topics: tuple[Topic, ...]
    warnings: tuple[str, ...] = ()
