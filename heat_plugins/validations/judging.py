# SPDX-License-Identifier: Apache-2.0
"""From the events of a playbook to the outcome of its validation."""

from collections import abc
import dataclasses
import json
from typing import Any

from heat_plugins import masking
from heat_plugins.validations import catalogue
from heat_plugins.validations import validation_ledger

# So much is kept of a playbook: tasks of hosts, and characters.
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

_State = validation_ledger.ValidationState


class Account:
    """What is known of a validation that runs; nothing of it is secret.

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
        """All that is kept of it."""
        return validation_ledger.Detail(
            tasks=tuple(self._tasks), stdout=self._stdout, cut=self._cut
        )

    def take(self, events: abc.Iterable[abc.Mapping[str, Any]]) -> None:
        """Take events of ansible-runner's, in their order."""
        for event in events:
            data = event.get('event_data') or {}
            self.say(str(event.get('stdout') or ''))
            kind = str(event.get('event'))
            if kind == 'playbook_on_task_start':
                self.change(under_way=self._text(data.get('name')))
            elif kind in _STATES:
                self._result(_STATES[kind], data)

    def say(self, text: str) -> None:
        """Take what was printed, as far as there is room for it."""
        if text:
            # As on a terminal.
            text = self._mask.text(text.replace('\r', ''))
            room = _STDOUT - len(self._stdout)
            self._cut = self._cut or len(text) >= room
            self._stdout += f'{text}\n'[:room]

    def change(self, **values: Any) -> None:
        """Change its outcome."""
        self.outcome = dataclasses.replace(self.outcome, **values)

    def begun(self, now: float) -> None:
        """Say that it has started."""
        self._begun_at = now
        self.change(state=_State.RUNNING)

    def lasts(self, now: float) -> None:
        """Say how long it has been running, and on which hosts."""
        hosts = {name: dict(counts) for name, counts in self._hosts.items()}
        self.change(seconds=round(now - self._begun_at, 1), hosts=hosts)

    def ended(self, status: str, left: int = 0) -> None:
        """Judge it, as its process has ended.

        :param status: ansible-runner's; or ``stopped``, ``overflow``, or '' if
            its process was killed.
        :param left: how many of its processes could not be ended.
        """
        state, reason = self._judged(status)
        if left:
            reason = f'{reason}; cannot end {left} of its processes'
        self.change(
            state=state, reason=reason.removeprefix('; '), under_way=''
        )

    def _judged(self, status: str) -> tuple[_State, str]:
        task = self.outcome.under_way
        printed = ' '.join(self._stdout.split())[:_REASON]
        if status == 'stopped':
            return _State.STOPPED, 'It was stopped'
        if status == 'timeout':
            where = f', in task {task}' if task else ''
            return _State.TIMED_OUT, f'It exceeded its time limit{where}'
        if status == 'overflow':
            return _State.FAILED, 'It printed more than the limit allows'
        if not status:
            return _State.FAILED, f'Its process was killed: {printed}'
        if status != 'successful' and self._failures:
            first = self._failures[0]
            more = len({failure.host for failure in self._failures}) - 1
            others = f' (and {more} more hosts)' if more else ''
            message = ' '.join(first.message.split())[:300] or first.state
            return (
                _State.FAILED,
                f'{first.host}: {first.task}: {message}{others}',
            )
        if status != 'successful':
            return _State.FAILED, f'Ansible failed: {printed}'
        if not self._hosts:
            wanted = self._hosts_wanted or 'the hosts of its plays'
            return _State.FAILED, (
                f'No host was checked: none is in {wanted}; --host-group '
                '(host_groups) puts hosts into groups'
            )
        return _State.PASSED, ''

    def _result(self, state: str, data: abc.Mapping[str, Any]) -> None:
        result = data.get('res')
        result = result if isinstance(result, dict) else {}
        if state == 'failed' and data.get('ignore_errors'):
            state = 'ignored'
        elif state == 'ok' and result.get('changed'):
            state = 'changed'
        task = validation_ledger.TaskResult(
            play=self._text(data.get('play')),
            task=self._text(data.get('task')),
            host=self._text(data.get('host')),
            state=state,
            message=self._text(_message(result)),
            seconds=round(float(data.get('duration') or 0), 2),
        )
        counts = self._hosts.setdefault(task.host, {})
        counts[state] = counts.get(state, 0) + 1
        if state in ('failed', 'unreachable'):
            self._failures.append(task)
        if len(self._tasks) < _TASKS:
            self._tasks.append(task)
        else:
            self._cut = True

    def _text(self, value: Any) -> str:
        return self._mask.text(str(value or ''))[:_MESSAGE]


def _message(result: abc.Mapping[str, Any]) -> str:
    for key in ('censored', 'msg', 'reason', 'stderr', 'stdout'):
        value = result.get(key)
        if value:
            return value if isinstance(value, str) else json.dumps(value)
    return ''
