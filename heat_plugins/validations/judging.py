# SPDX-License-Identifier: Apache-2.0
"""From the report of a playbook to the outcome of its validation."""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins.validations import catalogue
from heat_plugins.validations import validation_runs

# So much is kept of a playbook: tasks of hosts, and characters.
_TASKS = 5000
_STDOUT = 1024 * 1024

_BAD = ('failed', 'unreachable')


class Account:
    """What is known of a validation that runs."""

    def __init__(self, validation: catalogue.Validation) -> None:
        self.outcome = validation_runs.ValidationOutcome(
            validation=validation.id,
            name=validation.name,
            groups=validation.groups,
        )
        self._hosts_wanted = ', '.join(validation.hosts)
        self._tasks: list[validation_runs.Task] = []
        self._stdout: list[str] = []
        self._room = _STDOUT
        self._cut = False
        self._failures: list[validation_runs.Task] = []
        self._hosts: dict[str, dict[str, int]] = {}
        self._end: abc.Mapping[str, Any] | None = None

    @property
    def detail(self) -> validation_runs.Detail:
        """All that is kept of it."""
        return validation_runs.Detail(
            tasks=tuple(self._tasks),
            stdout=''.join(self._stdout),
            cut=self._cut,
        )

    def take(self, news: abc.Iterable[abc.Mapping[str, Any]]) -> None:
        """Take what was reported; see `guard`."""
        for report in news:
            values = {**report}
            kind = values.pop('kind')
            if kind == 'result':
                self._result(validation_runs.Task(**values))
            elif kind == 'stdout':
                self._said(values['text'])
            elif kind == 'task':
                self._change(under_way=values['task'])
            elif kind == 'end':
                self._end = values

    def begun(self) -> None:
        self._change(state=validation_runs.ValidationState.RUNNING)

    def lasts(self, seconds: float) -> None:
        """Say for how long it has been running."""
        self._change(
            seconds=round(seconds, 1),
            hosts={name: dict(counts) for name, counts in self._hosts.items()},
        )

    def refused(self, reason: str) -> None:
        """Say that it could not be begun."""
        self._change(
            state=validation_runs.ValidationState.FAILED, reason=reason
        )

    def stopped(self) -> None:
        """Say that it will not begin."""
        self._change(
            state=validation_runs.ValidationState.STOPPED,
            reason='It did not start',
        )

    def ended(self, left: int) -> None:
        """Say that its process has ended.

        :param left: how many of its processes could not be.
        """
        state, reason = self._judge()
        left = max(left, int((self._end or {}).get('left', 0)))
        if left:
            reason = f'{reason}; cannot end {left} of its processes'
        self._change(
            state=state, reason=reason.removeprefix('; '), under_way=''
        )

    def _judge(self) -> tuple[validation_runs.ValidationState, str]:
        if self._end is None:
            return (
                validation_runs.ValidationState.FAILED,
                'Its process was killed',
            )
        status = self._end['status']
        if status == 'stopped':
            return validation_runs.ValidationState.STOPPED, 'It was stopped'
        if status == 'timeout':
            return validation_runs.ValidationState.TIMED_OUT, (
                'It exceeded its time limit'
                + (
                    f', in task {self.outcome.under_way}'
                    if self.outcome.under_way
                    else ''
                )
            )
        if status == 'overflow':
            return (
                validation_runs.ValidationState.FAILED,
                'It printed more than the limit allows',
            )
        if self._failures:
            if status != 'successful':
                return validation_runs.ValidationState.FAILED, self._why()
        elif status != 'successful':
            return (
                validation_runs.ValidationState.FAILED,
                f'Ansible failed: {self._complaint()}',
            )
        if not self._hosts:
            wanted = self._hosts_wanted or 'the hosts of its plays'
            return validation_runs.ValidationState.FAILED, (
                f'No host was checked: none is in {wanted}; --host-group '
                '(host_groups) puts hosts into groups'
            )
        return validation_runs.ValidationState.PASSED, ''

    def _why(self) -> str:
        first = self._failures[0]
        more = len({failure.host for failure in self._failures}) - 1
        others = f' (and {more} more hosts)' if more else ''
        message = ' '.join(first.message.split())[:300]
        return f'{first.host}: {first.task}: {message or first.state}{others}'

    def _complaint(self) -> str:
        """Return the gravest line that Ansible has printed before its recap.

        Banners, such as ``TASK [x] ****``, complain of nothing.
        """
        printed, _, _ = ''.join(self._stdout).partition('PLAY RECAP ***')
        lines = [
            line
            for line in printed.splitlines()
            if line and '****' not in line
        ]
        for mark in ('ERROR', 'fatal:', '[WARNING]'):
            for line in lines:
                if mark in line:
                    return line[:500]
        return lines[-1][:500] if lines else 'it gave no reason'

    def _result(self, task: validation_runs.Task) -> None:
        counts = self._hosts.setdefault(task.host, {})
        counts[task.state] = counts.get(task.state, 0) + 1
        if task.state in _BAD:
            self._failures.append(task)
        if len(self._tasks) < _TASKS:
            self._tasks.append(task)
        else:
            self._cut = True

    def _said(self, text: str) -> None:
        kept = f'{text}\n'[: max(self._room, 0)]
        self._room -= len(kept)
        self._cut = self._cut or len(kept) <= len(text)
        self._stdout.append(kept)

    def _change(self, **values: Any) -> None:
        self.outcome = dataclasses.replace(self.outcome, **values)
