# SPDX-License-Identifier: Apache-2.0
"""The config that a server is handed for a run."""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins.configs import actions
from heat_plugins.configs import handover
from heat_plugins.configs import hidden_inputs
from heat_plugins.runs import orchestration
from heat_plugins.runs.start import schema
from heat_plugins.runs.start import targets
from heat_plugins.signals import beginning
from heat_plugins.signals import live
from heat_plugins.signals import transport_names

#: The input with the URL of a server's result.
SIGNAL_ID = 'deploy_signal_id'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Urls:
    """Where the server of a run sends, and asks; see `live`.

    :ivar log: empty if the run has no live output.
    """

    signal: str = dataclasses.field(repr=False)
    progress: str = dataclasses.field(repr=False)
    control: str = dataclasses.field(repr=False)
    log: str = dataclasses.field(default='', repr=False)


def draft(
    target: targets.Target,
    action: targets.Action,
    values: abc.Mapping[str, Any],
    *,
    urls: Urls,
    timeout: int,
    log_limit: int = 0,
) -> orchestration.Draft:
    """Return the config of a run, with the inputs that agents expect.

    What the stack's own config holds to signal Heat with, passwords among
    it, is left out: this server is to signal here and nowhere else.
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
        SIGNAL_ID: urls.signal,
        'deploy_signal_verb': 'PUT',
        beginning.URL_INPUT: urls.progress,
        beginning.TIMEOUT_INPUT: str(timeout),
        live.CONTROL_INPUT: urls.control,
    }
    if urls.log:
        added[live.LOG_INPUT] = urls.log
        added[live.LIMIT_INPUT] = str(log_limit)
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
