# SPDX-License-Identifier: Apache-2.0
"""What the commands for validations share: how runs look, and end."""

from collections import abc
from typing import Any

from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.validations import validation_runs

_CODES = {
    validation_runs.State.PASSED: 0,
    validation_runs.State.STOPPED: common.CANCELLED,
    validation_runs.State.RUNNING: common.STILL_RUNNING,
}


def exit_code(run: dict[str, Any]) -> int:
    """Return the exit code for how a run stands."""
    return _CODES.get(run['state'], common.FAILED)


def outcomes(run: dict[str, Any]) -> common.Shown:
    """Return columns and rows of the outcome of each validation."""
    return common.table(
        run['outcomes'],
        {
            'Validation': 'validation',
            'Name': columns.of(columns.Value, 'name'),
            'State': columns.of(str, 'state'),
            'Duration': columns.of(columns.Seconds, 'seconds'),
            'Hosts': columns.of(_hosts, 'hosts'),
            'Reason': columns.of(columns.Value, 'reason'),
        },
    )


def _hosts(
    found: abc.Mapping[str, abc.Mapping[str, int]],
) -> columns.Outputs:
    """Return the numbers of each host by their names, as people read them."""
    return columns.Outputs(
        {
            host: ', '.join(f'{count} {name}' for name, count in one.items())
            for host, one in found.items()
        }
    )
