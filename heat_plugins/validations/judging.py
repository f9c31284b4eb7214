# SPDX-License-Identifier: Apache-2.0
"""From the events of a playbook to the outcome of its validation."""

from collections import abc
import dataclasses
import json
from typing import Any

from heat_plugins import masking
from heat_plugins.validations import catalogue
from heat_plugins.validations import validation_ledger

# Limits of the details of a playbook: results of tasks, and characters.
_TASKS = 5000
_STDOUT = 1024 * 1024

# The most characters of a task's message, and of a reason.
_MESSAGE, _REASON = 4000, 500

_STATES: abc.Mapping[str, str] = {
    'runner_on_ok': 'ok',
    'runner_on_failed': 'failed',
    'runner_on_skipped': 'skipped',
    'runner_on_unreachable': 'unreachable',
}

# The keys of a task's result that may hold its message, the best first.
_MESSAGES = ('censored', 'msg', 'reason', 'stderr', 'stdout')

_State = validation_ledger.ValidationState


class Account:
    """The account of one validation of a run; it holds no secret.

    :param secrets: the values to mask in all that it reports.
    """

    def __init__(
        self, validation: catalogue.Validation, secrets: abc.Iterable[str] = ()
    ) -> None:
        self.outcome = validation_ledger.ValidationOutcome(
            validation=validation.id,
            name=validation.name,
            groups=validation.groups,
        )
        self._hosts_wanted = ', '.join(validation.hosts)
        self._mask = masking.Mask(secrets)
        self._tasks: list[validation_ledger.TaskResult] = []
        self._failures: list[validation_ledger.TaskResult] = []
        self._stdout = ''
        self._cut = False
        self._begun_at = 0.0
        self._hosts: dict[str, dict[str, int]] = {}

    @property
    def detail(self) -> validation_ledger.Detail:
        """The tasks and the output that are kept of the validation."""
        return validation_ledger.Detail(
            tasks=tuple(self._tasks), stdout=self._stdout, cut=self._cut
        )

    def change(self, **values: Any) -> None:
        """Change fields of the outcome."""
        self.outcome = dataclasses.replace(self.outcome, **values)

    def begun(self, now: float) -> None:
        """Record that the playbook has started."""
        self._begun_at = now
        self.change(state=_State.RUNNING)

    def take(
        self, events: abc.Iterable[abc.Mapping[str, Any]], now: float
    ) -> None:
        """Add the next events of ansible-runner and the elapsed time."""
        for event in events:
            data = event.get('event_data') or {}
            self.say(str(event.get('stdout') or ''))
            kind = str(event.get('event'))
            if kind == 'playbook_on_task_start':
                self.change(under_way=self._text(data.get('name')))
            elif kind in _STATES:
                self._add_result(_STATES[kind], data)
        hosts = {name: dict(counts) for name, counts in self._hosts.items()}
        self.change(seconds=round(now - self._begun_at, 1), hosts=hosts)

    def say(self, text: str) -> None:
        """Add output of the playbook, up to the limit."""
        if text:
            # As on a terminal.
            text = self._mask.text(text.replace('\r', ''))
            room = _STDOUT - len(self._stdout)
            self._cut = self._cut or len(text) >= room
            self._stdout += f'{text}\n'[:room]

    def ended(self, status: str, left: int = 0) -> None:
        """Judge the validation once its process has ended.

        :param status: ansible-runner's; or ``stopped``, or '' if its process
            was killed.
        :param left: how many of its processes could not be ended.
        """
        task = self.outcome.under_way
        printed = ' '.join(self._stdout.split())[:_REASON]
        ends = {
            'stopped': (_State.STOPPED, 'It was stopped'),
            'timeout': (
                _State.TIMED_OUT,
                'It exceeded its time limit'
                + (f', in task {task}' if task else ''),
            ),
            '': (_State.FAILED, f'Its process was killed: {printed}'),
        }
        state, reason = _State.FAILED, f'Ansible failed: {printed}'
        if status in ends:
            state, reason = ends[status]
        elif status == 'successful' and self._hosts:
            state, reason = _State.PASSED, ''
        elif status == 'successful':
            wanted = self._hosts_wanted or 'the hosts of its plays'
            reason = (
                f'No host was checked: none is in {wanted}; --host-group '
                '(host_groups) puts hosts into groups'
            )
        elif self._failures:
            first = self._failures[0]
            more = len({failure.host for failure in self._failures}) - 1
            others = f' (and {more} more hosts)' if more else ''
            message = ' '.join(first.message.split())[:300] or first.state
            reason = f'{first.host}: {first.task}: {message}{others}'
        if left:
            reason = f'{reason}; cannot end {left} of its processes'
        self.change(
            state=state, reason=reason.removeprefix('; '), under_way=''
        )

    def _add_result(self, state: str, data: abc.Mapping[str, Any]) -> None:
        """Count the result of a task on a host, and keep it up to a limit."""
        result = data.get('res')
        result = result if isinstance(result, dict) else {}
        if state == 'failed' and data.get('ignore_errors'):
            state = 'ignored'
        elif state == 'ok' and result.get('changed'):
            state = 'changed'
        texts = (result.get(key) for key in _MESSAGES)
        message = next(filter(None, texts), '')
        if not isinstance(message, str):
            message = json.dumps(message)
        task = validation_ledger.TaskResult(
            play=self._text(data.get('play')),
            task=self._text(data.get('task')),
            host=self._text(data.get('host')),
            state=state,
            message=self._text(message),
            seconds=round(float(data.get('duration') or 0), 2),
        )
        counts = self._hosts.setdefault(task.host, {})
        counts[state] = counts.get(state, 0) + 1
        if state in ('failed', 'unreachable'):
            self._failures.append(task)
        self._cut = self._cut or len(self._tasks) >= _TASKS
        if len(self._tasks) < _TASKS:
            self._tasks.append(task)

    def _text(self, value: Any) -> str:
        """Return text of Ansible without secrets, cut."""
        return self._mask.text(str(value or ''))[:_MESSAGE]
