# SPDX-License-Identifier: Apache-2.0
"""Columns, cells and progress of runs and their targets."""

from collections import abc
import dataclasses
import functools
import textwrap
from typing import Any

from heat_plugins import foreign
from heat_plugins import wording
from heat_plugins.clients import runs as run_client
from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.osc import progress
from heat_plugins.runs import run_records
from heat_plugins.runs import summary

# Characters of a line of reasons.
_WIDTH = 120

# What a table has of a run, and of a target; JSON and YAML have all.
_LISTED = (
    'id',
    'action',
    'state',
    'stacks',
    'targets',
    'failed',
    'percent',
    'created_at',
    'duration',
    'reason',
)
_KEYS = (
    *_LISTED,
    'script',
    'counts',
    'created_by',
    'ended_at',
)
_TARGETS = (
    'number',
    'stack',
    'resource',
    'server',
    'state',
    'started_at',
    'duration',
    'reason',
)
_TARGET_KEYS = tuple(
    field.name for field in dataclasses.fields(run_client.Target)
)

# What is for the client, or for a list of another command.
_LEFT_OUT = ('target_list', 'version')

# What only programs read of a run with one target: the rest says it.
_OF_MANY = (
    'stacks',
    'targets',
    'counts',
    'percent',
    'failed',
    'round',
    'targets_from',
    'limits',
)

#: The states of targets that have failed, and of those that have ended.
FAILED = (run_records.State.FAILED.value, run_records.State.TIMED_OUT.value)

# Phases of a run whose reason says more than that of its only target.
_HELD = (
    run_records.Phase.PAUSED.value,
    run_records.Phase.APPROVAL.value,
    run_records.Phase.STOPPING.value,
)
ENDED = tuple(each.value for each in run_records.State if each.ended)


def counted(counts: abc.Mapping[str, int]) -> str:
    """Return the number of targets in each state, in words."""
    return ', '.join(f'{number} {name}' for name, number in counts.items())


# What programs alone read.
_for_programs = functools.partial(columns.Said, say=lambda value: '')

# Cells of what is shown, by the keys.
_KINDS: abc.Mapping[str, abc.Callable[[Any], Any]] = {
    'duration': columns.Seconds,
    'timeout': columns.Seconds,
    'inputs': columns.NamesCell,
    'stacks': columns.NamesCell,
    'outputs': columns.Outputs,
    'cut': columns.Outputs,
    'late_result': columns.Outputs,
    'counts': functools.partial(columns.Said, say=counted),
    'limits': functools.partial(
        columns.Said,
        say=lambda limits: ', '.join(
            f'{name.replace("_", "-")} {value}'
            for name, value in limits.items()
            if value not in (None, False, run_records.SKIP) and value != 0
        ),
    ),
    'script': columns.Value,
    'requests': functools.partial(
        columns.Said,
        say=lambda requests: '\n'.join(
            f'{each["at"]}: '
            + ' '.join(filter(None, (each['do'], each['only'])))
            + f' by {foreign.line(str(each["who"]))}'
            for each in requests
        ),
    ),
    'notices': functools.partial(
        columns.Said,
        say=lambda notices: '\n'.join(
            f'{each["event"]}: {each["state"]}'
            + (f' at {each["at"]}' if each['at'] else '')
            + (f': {foreign.line(each["reason"])}' if each['reason'] else '')
            for each in notices
        ),
    ),
    'stack_ids': _for_programs,
    'stack_id': _for_programs,
    'attempts': _for_programs,
}


def done(run: run_client.Run) -> int:
    """Return the number of targets that have ended."""
    return sum(run.counts.get(state, 0) for state in ENDED)


def _cells(
    of: run_client.Run | run_client.Target, **kinds: Any
) -> dict[str, Any]:
    """Return values by their keys, as cells where there is a kind of those."""
    every = {**_KINDS, **kinds}
    return {
        key: every[key](value) if key in every else value
        for key, value in vars(of).items()
        if key not in _LEFT_OUT
    }


def many(listed: abc.Iterable[run_client.Run]) -> common.Shown:
    """Return columns and rows of runs."""
    rows = [_cells(run) for run in listed]
    return _KEYS, common.Many(rows, _LISTED)


def one(
    run: run_client.Run, targets: abc.Sequence[run_client.Target] = ()
) -> common.Shown:
    """Return columns and values of one run, with all that may be shown.

    :param targets: those that have failed; of a run with one target that,
        which is shown with it.
    """
    values = _cells(run)
    if run.targets == 1 and targets:
        (target,) = targets
        shown = _cells(target)
        for name in ('number', 'state', 'reason', 'attempt'):
            del shown[name]
        values |= {name: _for_programs(vars(run)[name]) for name in _OF_MANY}
        values |= shown
        if run.state == run_records.Phase.RUNNING.value:
            values['state'] = target.state
        if run.state not in _HELD:
            values['reason'] = target.reason or run.reason
    failed = [each for each in targets if each.state in FAILED]
    lines = wording.lines((each.fault for each in failed), rest(run.id))
    values['failures'] = columns.Said(
        [vars(each) for each in failed],
        lambda value: '\n'.join(
            textwrap.fill(
                foreign.line(line),
                _WIDTH,
                subsequent_indent='  ',
                break_long_words=False,
                break_on_hyphens=False,
            )
            for line in lines
            if run.targets > 1
        ),
    )
    return common.one(values)


def target(of: run_client.Target) -> common.Shown:
    """Return columns and values of one target."""
    return common.one(_cells(of))


def targets(
    listed: abc.Iterable[run_client.Target],
    shown: abc.Sequence[str] = _TARGETS,
    **kinds: Any,
) -> common.Shown:
    """Return columns and rows of targets.

    :param shown: what a table has.
    :param kinds: of which kind some cells are.
    """
    rows = [
        {
            **_cells(each, **kinds),
            'server': columns.server(each.server, each.server_name),
        }
        for each in listed
    ]
    return _TARGET_KEYS, common.Many(rows, shown)


def rest(run_id: str) -> str:
    """Return the command that lists all targets that have failed."""
    return f'openstack software deployment run show {run_id} --failed'


class RunProgress:
    """Shows the progress of one run.

    :param failures: returns its targets that have failed.
    """

    def __init__(
        self,
        display: progress.Display,
        failures: abc.Callable[[], abc.Iterable[run_client.Target]],
    ) -> None:
        self._display = display
        self._failures = failures
        self._state = ''
        self._batch = 0
        self._done = 0
        #: Targets and attempts that have failed, and the reasons shown.
        self._failed: set[tuple[int, int]] = set()
        self._reasons: set[str] = set()

    def changed(self, run: run_client.Run) -> None:
        """Print the changes of a run: its state, batches and failures."""
        size = run_records.RunLimits.asked(run.limits).concurrent(run.targets)
        if not self._state:
            at_once = f', at most {size} at a time' if run.targets > 1 else ''
            self._display.say(
                f'Run {run.id}: {run.action} on '
                f'{wording.counted(run.targets, "target")} of '
                f'{", ".join(run.stacks[:5])}{at_once}'
            )
        self._name_failures(run)
        count = done(run)
        self._done = min(self._done, count)
        if run.targets > 1 and (
            count - self._done >= size or (run.ended and count > self._done)
        ):
            self._batch += 1
            self._done = count
            self._display.say(
                f'Batch {self._batch}: {count} of {run.targets} done: '
                f'{counted(run.counts)}'
            )
        if run.state == self._state:
            return
        self._state = run.state
        if run.ended:
            taken = summary.spell(run.duration)
            self._display.say(
                f'Run {run.id}: {run.state} after {taken}. {run.reason}'
            )
        elif run.reason:
            self._display.say(f'Run {run.id}: {run.state}: {run.reason}')

    def _name_failures(self, run: run_client.Run) -> None:
        """Say why targets fail, each reason once; the result counts them."""
        is_known = run.failed <= len(self._failed) and not run.ended
        if is_known or not run.failed:
            return
        failed = {
            (each.number, each.attempt): each for each in self._failures()
        }
        new = [each for key, each in failed.items() if key not in self._failed]
        self._failed = set(failed)
        for group in wording.grouped(each.fault for each in new):
            # The last line says where all of them are.
            room = wording.LINES - len(self._reasons)
            if group.pattern in self._reasons or room < 1:
                continue
            self._reasons.add(group.pattern)
            further = f'Further failures: {rest(run.id)}'
            self._display.say(group.line() if room > 1 else further)
