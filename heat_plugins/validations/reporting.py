# SPDX-License-Identifier: Apache-2.0
"""What a playbook does, as lines of JSON in a file, masked and cut.

Written by `guard`, read by `processes`. The kinds of lines:

- ``task``: a task has started;
- ``result``: one has ended on a host, see `validation_runs.Task`;
- ``stdout``: what Ansible has printed;
- ``no-hosts``: a play had no hosts;
- ``end``: how it all ended, always the last.
"""

from collections import abc
import json
import pathlib
from typing import Any, Self

from heat_plugins import masking
from heat_plugins.validations import jobs

# The most characters of one message.
_MESSAGE = 4000

_RESULTS: abc.Mapping[str, str] = {
    'runner_on_ok': 'ok',
    'runner_on_failed': 'failed',
    'runner_on_skipped': 'skipped',
    'runner_on_unreachable': 'unreachable',
}


class Reporter:
    """Writes what happens; a context.

    :ivar overflown: whether the playbook has printed more than it may.
    """

    def __init__(self, folder: pathlib.Path, job: jobs.Job) -> None:
        self._path = folder / jobs.EVENTS
        self._left = job.output
        self._mask = masking.Mask(job.secrets)
        self.overflown = False

    def __enter__(self) -> Self:
        # Read while it is written.
        self._file = self._path.open('a', encoding='utf-8')
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def event(self, found: abc.Mapping[str, Any]) -> bool:
        """Take an event of ansible-runner's; it need not keep it."""
        kind = str(found.get('event'))
        data = found.get('event_data') or {}
        self.note(str(found.get('stdout') or ''))
        if kind == 'playbook_on_task_start':
            self._write('task', task=str(data.get('name') or ''))
        elif kind == 'playbook_on_no_hosts_matched':
            self._write('no-hosts')
        elif kind in _RESULTS:
            self._result(_RESULTS[kind], data)
        return False

    def note(self, text: str) -> None:
        """Take what was printed, as far as there is room for it."""
        if not text or self.overflown:
            return
        # As on a terminal.
        text = text.replace('\r', '')
        self._left -= len(text)
        if self._left < 0:
            self.overflown = True
            text = text[: self._left]
        self._write('stdout', text=text)

    def end(self, status: str, left: int) -> None:
        """Say how it has ended.

        :param status: ansible-runner's, or ``stopped``.
        :param left: processes that could not be ended.
        """
        if self.overflown:
            status = 'overflow'
        self._write('end', status=status, left=left)

    def _result(self, state: str, data: abc.Mapping[str, Any]) -> None:
        result = data.get('res')
        result = result if isinstance(result, dict) else {}
        if state == 'failed' and data.get('ignore_errors'):
            state = 'ignored'
        elif state == 'ok' and result.get('changed'):
            state = 'changed'
        self._write(
            'result',
            play=str(data.get('play') or ''),
            task=str(data.get('task') or ''),
            host=str(data.get('host') or ''),
            state=state,
            message=_message(result),
            seconds=round(float(data.get('duration') or 0), 2),
        )

    def _write(self, kind: str, **values: Any) -> None:
        shown = {
            name: self._mask.text(value) if isinstance(value, str) else value
            for name, value in values.items()
        }
        self._file.write(json.dumps({'kind': kind, **shown}) + '\n')
        self._file.flush()


def _message(result: abc.Mapping[str, Any]) -> str:
    if result.get('censored'):
        return str(result['censored'])
    for key in ('msg', 'reason', 'stderr', 'stdout'):
        said = result.get(key)
        if said:
            text = said if isinstance(said, str) else json.dumps(said)
            return text[:_MESSAGE]
    return ''
