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
import contextlib
import dataclasses
import hashlib
import hmac
import json
import re
import secrets
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import tokens
from heat_plugins.runs import orchestration
from heat_plugins.runs.fleet import operations

#: The group of the config that binds an operation. Engines of former releases
#: look for `FORMER_GROUP`, and find nothing that they can read.
GROUP = 'heat-plugins-bound-operation'

#: The group of the config by which a former release registered an operation.
FORMER_GROUP = 'heat-plugins-operation'

#: The group of the config that has the webhook of an operation.
NOTICES = 'heat-plugins-notices'

#: The most stacks that such a config names; an engine needs one of them.
STACKS = 100

#: The most characters of such a config.
LENGTH = 100_000

_VERSION = 1

# A digest, and a key, of 32 bytes in hex.
_SHA256 = re.compile('[0-9a-f]{64}')

#: The status of the deployment while engines advance the operation, and after.
IN_PROGRESS, COMPLETE = 'IN_PROGRESS', 'COMPLETE'


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
        """Check the object with the order.

        :raises errors.Tampered: it was changed.
        """
        digest = hashlib.sha256(content).hexdigest()
        if not hmac.compare_digest(digest, self.order):
            raise tampered(self.operation_id, name)

    def seal(self, name: str, value: Any) -> Any:
        """Return what to store as an object, in JSON's types."""
        return {'code': self._code(name, value), 'value': value}

    def open(self, name: str, stored: Any) -> Any:
        """Return what was sealed for an object of that name.

        :raises errors.Tampered: that was not sealed for it.
        """
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


#: Proves records of one operation.
Seal = Binding | Former


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


def register(
    heat: orchestration.Deploying,
    order: operations.OperationOrder,
    seal: Binding,
) -> str:
    """Let engines know of a new operation; return the ID of its deployment.

    :raises errors.Error: Heat refuses it; nothing is left of it.
    """
    config_id = heat.create_config(
        heat_values.DerivedConfig(
            name=order.id,
            group=GROUP,
            config=seal.text(order.stack_ids),
            inputs=[],
            outputs=[],
            options={},
        )
    )
    try:
        return heat.create_deployment(
            config_id=config_id,
            server_id=order.id,
            action=order.action,
            reason=f'heat-plugins operation {order.id}',
        )
    except BaseException:
        with contextlib.suppress(errors.Error):
            # Heat may have taken it all the same.
            forget(heat, order.id, seal)
            heat.delete_config(config_id)
        raise


def offer(
    heat: orchestration.Deploying,
    operation: operations.Operation,
) -> bool:
    """Let engines know of an operation to advance; True if one answers."""
    registered = str(operation.control.registered)
    return tokens.ADVANCED.marks(heat.set_status(registered, IN_PROGRESS))


def finish(
    heat: orchestration.Deploying,
    operation: operations.Operation,
    seal: Seal,
) -> operations.Operation:
    """Let engines know that an operation has ended."""
    registered = operation.control.registered
    if registered is None:
        return operation
    if isinstance(seal, Former):
        with contextlib.suppress(errors.Tampered):
            # Anybody may have written the ID of any config.
            _check_former(heat, operation)
            heat.delete_config(registered)
        return operation.changed(registered=None)
    with contextlib.suppress(errors.NotFound):
        heat.set_status(registered, COMPLETE)
    return operation


def seal_of(heat: orchestration.Deploying, operation_id: str) -> Seal:
    """Return what proves the records of an operation.

    :raises errors.Tampered: Heat has several such configs, or an invalid one.
    """
    texts = {
        each.id: each.config
        for each in heat.server_configs(operation_id)
        if each.group == GROUP and each.name == operation_id
    }
    if not texts:
        return Former(operation_id=operation_id)
    try:
        (text,) = texts.values()
        return Binding.parse(operation_id, text)
    except ValueError as exc:
        raise errors.Tampered(
            f'Heat has no valid config of the group {GROUP} for '
            f'operation {operation_id}, or several. '
            f'{remedy(operation_id)}'
        ) from exc


def check(
    heat: orchestration.Deploying,
    operation: operations.Operation,
    seal: Seal,
) -> None:
    """Check that Heat knows of an operation that a process may act on.

    Nothing else proves what a former release has recorded. So a process
    checks the very state that it acts on, not only an earlier reading of it.

    :raises errors.Tampered: it does not.
    """
    if isinstance(seal, Former) and not operation.ended:
        _check_former(heat, operation)


def _check_former(
    heat: orchestration.Deploying, operation: operations.Operation
) -> None:
    """Check that Heat knows of an operation of a former release.

    :raises errors.Tampered: it does not.
    """
    registered = operation.control.registered
    with contextlib.suppress(errors.NotFound):
        config = None if registered is None else heat.config(registered)
        if config and (config.group, config.name) == (
            FORMER_GROUP,
            operation.id,
        ):
            return
    raise errors.Tampered(
        f'Heat knows nothing of operation {operation.id}, which is '
        f'{operation.control.phase.value}. {remedy(operation.id)}'
    )


def forget(
    heat: orchestration.Deploying,
    operation_id: str,
    seal: Binding | None = None,
) -> None:
    """Delete what Heat has of an operation.

    :param seal: what another process has registered stays.
    """
    key = seal.key.hex() if seal else ''
    for row in heat.deployments(operation_id):
        with contextlib.suppress(errors.NotFound):
            config = heat.config(row.config_id)
            is_ours = config.group == GROUP and key in str(config.config)
            is_ours |= config.group == NOTICES
            if config.name != operation_id or not is_ours:
                continue
        heat.delete_deployment(row.id)
        heat.delete_config(row.config_id)
