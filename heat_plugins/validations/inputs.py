# SPDX-License-Identifier: Apache-2.0
"""What a run of validations is given: variables, and what is secret."""

from collections import abc
import dataclasses
import re
from typing import Any, Self

from heat_plugins import errors
from heat_plugins import masking

_NAME = re.compile('[A-Za-z_][A-Za-z0-9_]*')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Secrets:
    """The secret inputs of a run.

    :ivar key: a private key for ssh; '' for none.
    """

    variables: abc.Mapping[str, Any] = dataclasses.field(repr=False)
    key: str = dataclasses.field(repr=False)

    @classmethod
    def read(cls, found: Any) -> Self:
        """Return what a map of ``variables`` and ``ssh_key`` holds.

        :raises errors.Invalid: it is no such map.
        """
        # Whatever it is: not to be quoted.
        if not isinstance(found, abc.Mapping) or not (
            found.keys() <= {'variables', 'ssh_key'}
        ):
            raise errors.Invalid(
                'secrets must be a map with variables and ssh_key'
            )
        key = found.get('ssh_key') or ''
        if not isinstance(key, str):
            raise errors.Invalid('ssh_key of secrets must be a text')
        return cls(
            variables=variables_of(found.get('variables') or {}), key=key
        )

    def texts(self) -> tuple[str, ...]:
        """Return the texts to be masked."""
        return tuple(sorted({*masking.texts([self.variables, self.key])}))


def variables_of(found: Any) -> abc.Mapping[str, Any]:
    """Return variables that Ansible takes.

    :raises errors.Invalid: they are not a map, or a name is none.
    """
    if not isinstance(found, abc.Mapping):
        raise errors.Invalid('variables must be a map of names and values')
    for name in found:
        if not _NAME.fullmatch(str(name)):
            raise errors.Invalid(
                f'{str(name)[:100]!r} cannot be the name of a variable'
            )
    return found
