# SPDX-License-Identifier: Apache-2.0
"""How operations look: columns for every command that shows some."""

from collections import abc

from heat_plugins import foreign
from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.runs.fleet import operation as operations
from heat_plugins.runs.fleet import overview

_TARGETS = (
    'stack',
    'resource',
    'server',
    'state',
    'started_at',
    'duration',
    'reason',
)


class Counts(columns.Column):
    """Numbers by name, those that are not 0."""

    def human_readable(self) -> str:
        return ', '.join(
            f'{number} {name}' for name, number in self._value.items()
        )


class Failures(columns.Column):
    """The targets that failed, each with the reason."""

    def human_readable(self) -> str:
        return '\n'.join(
            foreign.line(
                f'{one["stack"]} {one["server_name"] or one["resource"]}: '
                f'{one["state"]}: {one["reason"]}'
            )
            for one in self._value
        )


class Ids(columns.Column):
    """What programs alone read."""

    def human_readable(self) -> str:
        return ''


class Limits(columns.Column):
    """The limits, those that are set."""

    def human_readable(self) -> str:
        return ', '.join(
            f'{name.replace("_", "-")} {value}'
            for name, value in self._value.items()
            if value not in (None, False) and value != 0
        )


def shown(found: operations.Operation, now: float) -> common.Shown:
    """Return columns and values of one operation."""
    values = overview.of(found, now)
    values['stacks'] = columns.Names(values['stacks'])
    values['stack_ids'] = Ids(values['stack_ids'])
    values['inputs'] = columns.Names(values['inputs'])
    values['counts'] = Counts(values['counts'])
    values['limits'] = Limits(values['limits'])
    values['failures'] = Failures(values['failures'])
    values['duration'] = columns.Seconds(values['duration'])
    return tuple(values), common.One(values.values())


def rows(
    found: operations.Operation, members: abc.Iterable[int]
) -> common.Many:
    rows = []
    for member in members:
        row = overview.target(found, member)
        row['server'] = columns.Server(row['server'], row['server_name'])
        row['duration'] = columns.Seconds(row['duration'])
        row['outputs'] = columns.Outputs(row['outputs'])
        row['cut'] = columns.Outputs(row['cut'])
        rows.append(row)
    return common.Many(rows, _TARGETS)
