# SPDX-License-Identifier: Apache-2.0
"""Derived configs: in a form that agents can take, with how to answer."""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins.configs import actions
from heat_plugins.configs import handover
from heat_plugins.configs import hidden_inputs
from heat_plugins.deployments import deliveries
from heat_plugins.runs import orchestration
from heat_plugins.signals import beginning
from heat_plugins.signals import live

#: The input of Heat that names the transport.
TRANSPORT = 'deploy_signal_transport'


def for_agents(
    derived: orchestration.Draft,
    action: str,
    signalling: deliveries.Signalling,
    secrets: abc.Collection[str],
) -> orchestration.Draft:
    """Return what Heat has derived in the form that agents can take.

    :param secrets: the values of hidden parameters.
    """
    inputs = [
        {**each, 'value': signalling.transport}
        if each['name'] == TRANSPORT
        else dict(each)
        for each in derived.inputs
    ]
    inputs = handover.inputs(
        [*inputs, *_about_reports(signalling)],
        handover.tool(derived.group, derived.config, action),
    )
    return dataclasses.replace(
        derived,
        inputs=inputs,
        options=hidden_inputs.marked(derived.options, inputs, secrets),
        config=actions.for_server(derived.group, derived.config),
    )


def _about_reports(
    signalling: deliveries.Signalling,
) -> list[dict[str, Any]]:
    """Return the inputs that say how to report, and until when."""
    if signalling.timeout is None:
        return []
    values = {
        beginning.URL_INPUT: signalling.report_url,
        beginning.REPORTS_INPUT: signalling.takes_reports and 'true',
        beginning.TIMEOUT_INPUT: str(signalling.timeout),
        live.CONTROL_INPUT: signalling.control_url,
    }
    return [
        {'name': name, 'type': 'String', 'value': value}
        for name, value in values.items()
        if value
    ]


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
