# SPDX-License-Identifier: Apache-2.0
"""What Heat holds of an operation, and what that proves.

Any user who may write into the container of operations can write an order, a
state or a request. So Heat has a software config for each operation, with the
digest of its order and a key that only this operation has, and a software
deployment of that config. To create these takes a role in Heat. A record that
bears no code of the key under the name of its object is not of the operation.

Another record of the same operation with the same name is as good as the one
that it replaces: who keeps a copy of an older record can put that back.
"""

from collections import abc
import dataclasses
import hashlib
import hmac
import json
import re
import secrets
from typing import Any, Protocol

from heat_plugins import bounds
from heat_plugins import errors

#: The group of the config that binds an operation. Engines of former releases
#: look for `FORMER_GROUP`, and find nothing that they can read.
GROUP = 'heat-plugins-bound-operation'

#: The group of the config by which a former release registered an operation.
FORMER_GROUP = 'heat-plugins-operation'

#: The most stacks that such a config names; an engine needs one of them.
STACKS = 100

#: The most characters of such a config.
LENGTH = 100_000

_VERSION = 1

# A digest, and a key, of 32 bytes in hex.
_SHA256 = re.compile('[0-9a-f]{64}')


class Seal(Protocol):
    """Proves records of one operation: `Binding`, or `Former`."""

    @property
    def operation_id(self) -> str:
        """The operation."""

    def check_order(self, name: str, content: bytes) -> None:
        """Check the object with the order.

        :raises errors.Tampered: it was changed.
        """

    def seal(self, name: str, value: Any) -> Any:
        """Return what to store as an object, in JSON's types."""

    def open(self, name: str, stored: Any) -> Any:
        """Return what was sealed for an object of that name.

        :raises errors.Tampered: that was not sealed for it.
        """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Binding:
    """The seal of an operation.

    :ivar order: the SHA-256 of the object with its order.
    """

    operation_id: str
    order: str
    key: bytes = dataclasses.field(repr=False)

    @classmethod
    def new(cls, operation_id: str, content: bytes) -> 'Binding':
        """Return one with a new key.

        :param content: of the object with the order.
        """
        return cls(
            operation_id=operation_id,
            order=hashlib.sha256(content).hexdigest(),
            key=secrets.token_bytes(32),
        )

    @classmethod
    def parse(cls, operation_id: str, text: Any) -> 'Binding':
        """Read what `text` returns.

        :raises ValueError: it is no binding of that operation.
        """
        if not isinstance(text, str) or len(text) > LENGTH:
            raise ValueError('it is not a text, or too long')
        values = bounds.read_json(text.encode(), depth=4)
        match values:
            case {
                'version': version,
                'operation': str(named),
                'order': str(order),
                'key': str(key),
            } if (
                # True is an int, and equals 1.
                type(version) is int
                and (version, named) == (_VERSION, operation_id)
                and all(map(_SHA256.fullmatch, (order, key)))
            ):
                return cls(
                    operation_id=operation_id,
                    order=order,
                    key=bytes.fromhex(key),
                )
        raise ValueError(
            'it is of another version, or of another operation, or its digest '
            'or key is invalid'
        )

    def text(self, stack_ids: abc.Sequence[str]) -> str:
        """Return it as the config has it: never to be shown."""
        return json.dumps(
            {
                'version': _VERSION,
                'operation': self.operation_id,
                'stacks': list(stack_ids[:STACKS]),
                'order': self.order,
                'key': self.key.hex(),
            }
        )

    def check_order(self, name: str, content: bytes) -> None:
        digest = hashlib.sha256(content).hexdigest()
        if not hmac.compare_digest(digest, self.order):
            raise tampered(self.operation_id, name)

    def seal(self, name: str, value: Any) -> Any:
        return {'code': self._code(name, value), 'value': value}

    def open(self, name: str, stored: Any) -> Any:
        match stored:
            case {'code': str(code), 'value': value} if code.isascii():
                if hmac.compare_digest(code, self._code(name, value)):
                    return value
        raise tampered(self.operation_id, name)

    def _code(self, name: str, value: Any) -> str:
        content = json.dumps(value, sort_keys=True, separators=(',', ':'))
        text = f'{name}\0{content}'.encode()
        return hmac.new(self.key, text, hashlib.sha256).hexdigest()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Former:
    """That of an operation of a former release, which proves nothing."""

    operation_id: str

    def check_order(self, name: str, content: bytes) -> None:
        """Heat has no digest of it."""

    def seal(self, name: str, value: Any) -> Any:
        return value

    def open(self, name: str, stored: Any) -> Any:
        if isinstance(stored, dict) and 'code' in stored:
            raise errors.Tampered(
                f'Heat has no config of the group {GROUP} for operation '
                f'{self.operation_id}, or no longer: its records cannot be '
                f'checked. {remedy(self.operation_id)}'
            )
        return stored


class Unchecked(Former):
    """What reads records of any operation only to show them."""

    def open(self, name: str, stored: Any) -> Any:
        if isinstance(stored, dict) and 'code' in stored:
            return stored.get('value')
        return stored


def tampered(operation_id: str, name: str) -> errors.Tampered:
    """Return the error of a record that Heat's binding does not prove."""
    return errors.Tampered(
        f'Object {name} of operation {operation_id} was not written by '
        'heat-plugins: it does not match what Heat holds of the operation. '
        'A user who may write into the container, perhaps of another project, '
        f'has changed it. {remedy(operation_id)}'
    )


def remedy(operation_id: str) -> str:
    return (
        'heat-plugins does not act on it. Check the access control list of '
        'the container, start the action again, and delete this operation: '
        '"openstack software deployment operation delete --force '
        f'{operation_id}"'
    )
