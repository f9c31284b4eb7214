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

HEADERS = ('Validation', 'Name', 'State', 'Duration', 'Hosts', 'Reason')


def exit_code(run: dict[str, Any]) -> int:
    """Return the exit code for how a run stands."""
    return _CODES.get(run['state'], common.FAILED)


def outcomes(run: dict[str, Any]) -> common.Shown:
    """Return columns and rows of the outcome of each validation."""
    rows = [
        (
            one['validation'],
            columns.Value(one['name']),
            str(one['state']),
            columns.Seconds(one['seconds']),
            columns.Outputs(
                {host: counted(one) for host, one in one['hosts'].items()}
            ),
            columns.Value(one['reason']),
        )
        for one in run['outcomes']
    ]
    return HEADERS, rows


def counted(counts: abc.Mapping[str, int]) -> str:
    """Return numbers by their names, as people read them."""
    return ', '.join(f'{count} {name}' for name, count in counts.items())
