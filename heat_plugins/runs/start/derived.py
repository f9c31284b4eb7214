# SPDX-License-Identifier: Apache-2.0
"""The config that a server is handed for a run."""

from collections import abc
from typing import Any

from heat_plugins.configs import actions
from heat_plugins.configs import handover
from heat_plugins.configs import hidden_inputs
from heat_plugins.runs import orchestration
from heat_plugins.runs.start import schema
from heat_plugins.runs.start import targets
from heat_plugins.signals import beginning
from heat_plugins.signals import transport_names


def draft(
    target: targets.Target,
    action: targets.Action,
    values: abc.Mapping[str, Any],
    *,
    own_inputs: abc.Mapping[str, str],
    timeout: int,
) -> orchestration.Draft:
    """Return the config of a run, with the inputs that agents expect.

    What the stack's own config holds to signal Heat with, passwords among
    it, is left out: this server is to signal here and nowhere else.

    :param own_inputs: by which its server sends, and asks; see
        `run_objects.RunObjects.inputs`.
    """
    config = target.config
    declared = {str(one['name']): one for one in target.declared}
    own = [_input(name, declared, value) for name, value in values.items()]
    added = {
        'deploy_server_id': target.deployment.server_id,
        'deploy_action': action.name,
        'deploy_stack_id': target.current.get('deploy_stack_id') or '',
        'deploy_resource_name': target.resource.name,
        'deploy_signal_transport': transport_names.TEMP_URL_POLL,
        'deploy_signal_verb': 'PUT',
        beginning.TIMEOUT_INPUT: str(timeout),
        **own_inputs,
    }
    inputs = handover.inputs(
        [
            *(one for one in own if one['name'] not in added),
            *(
                {'name': n, 'value': v, 'type': 'String'}
                for n, v in added.items()
            ),
        ],
        action.tool,
    )
    return orchestration.Draft(
        name=f'{config.name or target.resource.name}-{action.name}',
        group=config.group,
        config=actions.for_server(config.group, config.config),
        inputs=inputs,
        outputs=config.outputs,
        options=hidden_inputs.changed(config.options, target.current, inputs),
    )


def given(inputs: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Leave out of a run's inputs what is ours to say."""
    return {k: v for k, v in inputs.items() if k not in schema.RESERVED}


def _input(
    name: str, declared: abc.Mapping[str, abc.Mapping[str, Any]], value: Any
) -> dict[str, Any]:
    # A default would be checked against the type once more, for nothing.
    kind = declared.get(name, {}).get('type') or 'String'
    return {'name': name, 'type': kind, 'value': value}
