# SPDX-License-Identifier: Apache-2.0
"""What a plan's templates and environments refer to, made whole for Heat.

Heat resolves no relative paths: a reference counts if it is, letter by
letter, the key of a file that was sent along. So each file that can be
reached is fetched once, and the references in it are rewritten as paths from
the plan's root, which are the keys.
"""

from collections import abc
import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Missing:
    """A reference to a file that the plan does not have.

    :ivar path: as it would be called in the plan.
    :ivar by: the file that refers to it.
    """

    path: str
    by: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resolved:
    """What to send to Heat.

    :ivar template: the root template.
    :ivar environments: keys in `files`, in the order of merging: generated
        passwords first, what the plan enables, what was set in it last.
        They are meant for Heat's ``environment_files``.
    :ivar files: all of the files, environments included, by their keys; the
        root template's references are keys here.
    :ivar missing: references that lead nowhere; Heat tells whether they
        matter, as much of a registry is never used.
    """

    template: str
    environments: tuple[str, ...]
    files: abc.Mapping[str, str] = dataclasses.field(repr=False)
    missing: tuple[Missing, ...] = ()
