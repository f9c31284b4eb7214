# SPDX-License-Identifier: Apache-2.0
"""What a server is given for an action: a derived config, as agents take it.

`heats` returns what Heat's own classes derive; a test holds the two equal.
`draft` returns what our classes deliver.
"""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.configs import actions
from heat_plugins.configs import hidden_inputs
from heat_plugins.deployments import deliveries
from heat_plugins.signals import body
from heat_plugins.signals import live

_SIGNAL_ID = 'ID of signal to use for signaling output values'
_SIGNAL_VERB = 'HTTP verb to use for signaling output values'

# The inputs with credentials, by their names in those that Heat makes.
_CREDENTIALS = {
    'auth_url': ('deploy_auth_url', 'URL for API authentication'),
    'username': ('deploy_username', 'Username for API authentication'),
    'user_id': ('deploy_user_id', 'User ID for API authentication'),
    'password': ('deploy_password', 'Password for API authentication'),
    'project_id': (
        'deploy_project_id',
        'ID of project for API authentication',
    ),
    'region_name': (
        'deploy_region_name',
        'Region name for API authentication',
    ),
}


class MissingInput(errors.Failed):
    """A structured config refers to an input that has no value.

    :ivar name: of the input.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f'input {name} has no value')
        self.name = name


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """The facts of one deployment in its template and stack.

    :ivar stack_path: the path of the stack in URLs of Heat's API.
    :ivar resource_name: of the deployment, or of the member of a group.
    :ivar physical_name: names a config whose template names none.
    :ivar properties: of the deployment, by name.
    :ivar is_structured: whether inputs replace parts of the config.
    :ivar secrets: the values of hidden parameters.
    """

    server_id: str
    stack_path: str
    resource_name: str
    physical_name: str | None
    properties: abc.Mapping[str, Any] = dataclasses.field(repr=False)
    is_structured: bool = False
    secrets: abc.Collection[str] = dataclasses.field(default=(), repr=False)


def draft(
    source: heat_values.DerivedConfig,
    action: str,
    signalling: deliveries.Signalling,
    facts: Facts,
) -> heat_values.DerivedConfig:
    """Return the config that a server is given, as agents can take it.

    :raises MissingInput: a structured config needs an input without a value.
    """
    heats_own = heats(source, action, signalling, facts)
    # How to report, and until when.
    about_reports = {
        body.PROGRESS_INPUT: signalling.report_url,
        body.REPORTS_INPUT: signalling.takes_reports and 'true',
        body.TIMEOUT_INPUT: str(signalling.timeout),
        live.CONTROL_INPUT: signalling.control_url,
    }
    given = actions.agent_inputs(
        [
            *heats_own.inputs,
            *(
                {'name': name, 'type': 'String', 'value': value}
                for name, value in about_reports.items()
                if value and signalling.timeout is not None
            ),
        ],
        source.tool(action),
    )
    return dataclasses.replace(
        heats_own,
        inputs=given,
        options=hidden_inputs.marked(heats_own.options, given, facts.secrets),
        config=actions.for_server(heats_own.group, heats_own.config),
    )


def inputs(
    source: heat_values.DerivedConfig,
    action: str,
    values: abc.Mapping[str, Any] | None,
) -> list[dict[str, Any]]:
    """Return the inputs of the config's author, as agents can take them.

    :param values: what the template gives to inputs, by name.
    """
    return actions.agent_inputs(
        _declared(source.inputs, values), source.tool(action)
    )


def heats(
    source: heat_values.DerivedConfig,
    action: str,
    signalling: deliveries.Signalling,
    facts: Facts,
) -> heat_values.DerivedConfig:
    """Derive a config as Heat's own classes do.

    :raises MissingInput: see `draft`.
    """
    given = [
        *_declared(source.inputs, facts.properties.get('input_values')),
        _input(
            'deploy_server_id',
            'ID of the server being deployed to',
            facts.server_id,
        ),
        _input(
            'deploy_action',
            'Name of the current action being deployed',
            action,
        ),
        _input(
            'deploy_stack_id',
            'ID of the stack this deployment belongs to',
            facts.stack_path,
        ),
        _input(
            'deploy_resource_name',
            'Name of this deployment resource in the stack',
            facts.resource_name,
        ),
        _input(
            heat_values.TRANSPORT_INPUT,
            'How the server should signal to heat with the deployment output '
            'values.',
            signalling.transport,
        ),
        *_about_signal(signalling),
    ]
    config = source.config
    if facts.is_structured:
        values = {each['name']: each['value'] for each in given}
        config = _substituted(config, values, facts.properties)
    return heat_values.DerivedConfig(
        name=facts.properties.get('name')
        or source.name
        or facts.physical_name,
        group=source.group or 'Heat::Ungrouped',
        config=config or ({} if facts.is_structured else ''),
        inputs=given,
        outputs=source.outputs,
        options=source.options,
    )


def _declared(
    declared: abc.Iterable[abc.Mapping[str, Any]],
    values: abc.Mapping[str, Any] | None,
) -> abc.Iterator[dict[str, Any]]:
    """Yield the inputs that the config declares, then all others."""
    others = dict(values or {})
    for each in declared:
        value = others.pop(each['name'], each.get('default'))
        yield {**each, 'value': value}
    for name, value in others.items():
        yield {'name': name, 'type': 'String', 'value': value}


def _input(name: str, description: str, value: object) -> dict[str, Any]:
    """Return an input of a config that a server gets."""
    return {
        'name': name,
        'description': description,
        'type': 'String',
        'value': value,
    }


def _about_signal(
    signalling: deliveries.Signalling,
) -> abc.Iterator[dict[str, Any]]:
    """Yield the inputs that tell an agent where to send its result."""
    if signalling.url is not None:
        # Only who holds no credentials gets one.
        yield _input('deploy_signal_id', _SIGNAL_ID, signalling.url)
        yield _input('deploy_signal_verb', _SIGNAL_VERB, signalling.verb)
    if signalling.credentials is not None:
        for key, (name, description) in _CREDENTIALS.items():
            value = signalling.credentials[key]
            if value or key != 'region_name':
                yield _input(name, description, value)
    if signalling.queue_id is not None:
        yield _input(
            'deploy_queue_id',
            'ID of queue to use for signaling output values',
            signalling.queue_id,
        )


def _substituted(
    part: Any,
    values: abc.Mapping[str, Any],
    properties: abc.Mapping[str, Any],
) -> Any:
    """Return a structured config with the values of inputs in their places.

    :raises MissingInput: the template is strict, and one has no value.
    """
    if isinstance(part, abc.Mapping):
        name = part.get(properties.get('input_key', 'get_input'))
        if len(part) != 1 or not isinstance(name, str):
            return {
                key: _substituted(each, values, properties)
                for key, each in part.items()
            }
        is_strict = properties.get('input_values_validate') == 'STRICT'
        if is_strict and name not in values:
            raise MissingInput(name)
        return values.get(name)
    if isinstance(part, abc.Iterable) and not isinstance(part, str):
        return [_substituted(each, values, properties) for each in part]
    return part


def asks_replacement(
    inputs: abc.Iterable[abc.Mapping[str, Any]],
    before: abc.Mapping[str, Any],
) -> bool:
    """Say whether an input changes that must not change in place.

    :param inputs: those that a server would get now, as agents take them.
    :param before: the values that the last action had, by name.
    """
    return any(
        each.get('replace_on_change')
        and each['name'] in before
        and before[each['name']] != each.get('value')
        for each in inputs
    )
