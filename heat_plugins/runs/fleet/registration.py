# SPDX-License-Identifier: Apache-2.0
"""How Heat knows of an operation.

For each there is a config, see `records.binding`, and a deployment of that
config whose "server" is the ID of the operation. So a user whom the policy of
Heat's API denies ``software_deployments:create`` registers none. Engines
advance an operation as long as that deployment is in progress. Both stay as
long as the records do.

A former release had but a config, which it deleted at the end.
"""

import contextlib

from heat_plugins import errors
from heat_plugins.runs import orchestration
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding

#: The status of the deployment while engines advance the operation, and after.
IN_PROGRESS, COMPLETE = 'IN_PROGRESS', 'COMPLETE'


def register(
    heat: orchestration.Deploying,
    order: operations.Order,
    seal: binding.Binding,
) -> str:
    """Let engines know of a new operation; return the ID of its deployment.

    :raises errors.Error: Heat refuses it; nothing is left of it.
    """
    config_id = heat.create_config(
        orchestration.Draft(
            name=order.id,
            group=binding.GROUP,
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
            forget(heat, order.id)
            heat.delete_config(config_id)
        raise


def resume(
    heat: orchestration.Deploying,
    found: operations.Operation,
) -> None:
    """Let engines know of an operation that is retried."""
    heat.set_status(str(found.control.registered), IN_PROGRESS)


def finish(
    heat: orchestration.Deploying,
    found: operations.Operation,
    seal: binding.Seal,
) -> operations.Operation:
    """Let engines know that an operation has ended."""
    registered = found.control.registered
    if registered is None:
        return found
    if isinstance(seal, binding.Former):
        with contextlib.suppress(errors.Tampered):
            # Anybody may have written the ID of any config.
            _check_former(heat, found)
            heat.delete_config(registered)
        return found.changed(registered=None)
    with contextlib.suppress(errors.NotFound):
        heat.set_status(registered, COMPLETE)
    return found


def seal_of(heat: orchestration.Deploying, operation_id: str) -> binding.Seal:
    """Return what proves the records of an operation.

    :raises errors.Tampered: Heat has several such configs, or an invalid one.
    """
    texts = {
        one.id: one.config
        for one in heat.server_configs(operation_id)
        if one.group == binding.GROUP and one.name == operation_id
    }
    if not texts:
        return binding.Former(operation_id=operation_id)
    try:
        (text,) = texts.values()
        return binding.Binding.parse(operation_id, text)
    except ValueError as exc:
        raise errors.Tampered(
            f'Heat has no valid config of the group {binding.GROUP} for '
            f'operation {operation_id}, or several. '
            f'{binding.remedy(operation_id)}'
        ) from exc


def check(
    heat: orchestration.Deploying,
    found: operations.Operation,
    seal: binding.Seal,
) -> None:
    """Check that Heat knows of an operation that a process may act on.

    Nothing else proves what a former release has recorded. So a process
    checks the very state that it acts on, not only an earlier reading of it.

    :raises errors.Tampered: it does not.
    """
    if isinstance(seal, binding.Former) and not found.ended:
        _check_former(heat, found)


def _check_former(
    heat: orchestration.Deploying, found: operations.Operation
) -> None:
    """Check that Heat knows of an operation of a former release.

    :raises errors.Tampered: it does not.
    """
    registered = found.control.registered
    with contextlib.suppress(errors.NotFound):
        config = None if registered is None else heat.config(registered)
        if config and (config.group, config.name) == (
            binding.FORMER_GROUP,
            found.id,
        ):
            return
    raise errors.Tampered(
        f'Heat knows nothing of operation {found.id}, which is '
        f'{found.control.phase.value}. {binding.remedy(found.id)}'
    )


def forget(heat: orchestration.Deploying, operation_id: str) -> None:
    """Delete what Heat has of an operation."""
    for row in heat.deployments(operation_id):
        with contextlib.suppress(errors.NotFound):
            config = heat.config(row.config_id)
            if config.group != binding.GROUP or config.name != operation_id:
                continue
        heat.delete_deployment(row.id)
        heat.delete_config(row.config_id)
