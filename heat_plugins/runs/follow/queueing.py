# SPDX-License-Identifier: Apache-2.0
"""Why a run waits: a server runs one config after the other."""

from collections import abc
import contextlib
import dataclasses

from heat_plugins import errors
from heat_plugins.runs import runs
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records

# How many runs are read for that, the latest.
_MOST = 20


def explained(
    found: records.Records,
    wanted: abc.Sequence[runs.Run],
    keys: abc.Callable[[], abc.Sequence[record_names.Key]],
) -> list[runs.Run]:
    """Return runs whose reasons say what their servers are busy with.

    :param wanted: the runs; those change that wait for their servers.
    :param keys: lists the runs there are, the oldest first.
    """
    if not any(run.state is runs.State.WAITING for run in wanted):
        return list(wanted)
    there = {run.id: run for run in _latest(found, keys())}
    # These may be newer than their records.
    there |= {run.id: run for run in wanted}
    return [_explained(run, there.values()) for run in wanted]


def _explained(run: runs.Run, there: abc.Iterable[runs.Run]) -> runs.Run:
    if run.state is not runs.State.WAITING:
        return run
    others = [
        other
        for other in sorted(there, key=lambda one: one.id)
        if other.server_id == run.server_id and other.id != run.id
    ]
    for tells in (_running, _goes_on, _before):
        for other in others:
            if told := tells(run, other):
                return dataclasses.replace(run, reason=f'{run.reason}. {told}')
    return run


def _running(run: runs.Run, other: runs.Run) -> str | None:
    if other.state is not runs.State.RUNNING:
        return None
    return f'Its server is busy with {_name(other)}'


def _goes_on(run: runs.Run, other: runs.Run) -> str | None:
    ended = other.state in (runs.State.CANCELLED, runs.State.TIMED_OUT)
    if not ended or other.reported_at is None or other.late is not None:
        return None
    return (
        f'Its server may be busy with {_name(other)}, which is '
        f'{other.state.value} and has not stopped'
    )


def _before(run: runs.Run, other: runs.Run) -> str | None:
    if other.ended or other.id > run.id:
        return None
    return f'Its server runs {_name(other)} first'


def _name(run: runs.Run) -> str:
    return f'run {run.id} ({run.action} on {run.resource})'


def _latest(
    found: records.Records, keys: abc.Sequence[record_names.Key]
) -> abc.Iterator[runs.Run]:
    for key in keys[-_MOST:]:
        with contextlib.suppress(errors.UnreadableRun):
            if (run := found.read(key)) is not None:
                yield run
