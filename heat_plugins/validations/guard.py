# SPDX-License-Identifier: Apache-2.0
"""The process that one playbook runs under; it ends all that started there.

It is started with a folder (see `playbook_folder`) on its command line, in a
session of its own. Ansible has another one, and with it a process group of
its own. What leaves both of them comes back to this process as an orphan,
because Linux hands it the orphans of all its descendants.

Its standard input says when to stop: when it ends. If it ends
without a word, the process at its other end was killed, and the guard tidies
up in its place.

What the playbook does it writes as lines of JSON into a file, masked and cut,
which `processes` reads. Their kinds:

- ``task``: a task has started;
- ``result``: one has ended on a host, see `validation_runs.Task`;
- ``stdout``: what Ansible has printed;
- ``no-hosts``: a play had no hosts;
- ``end``: how it all ended, always the last.
"""

from collections import abc
import ctypes
import json
import os
import pathlib
import shutil
import signal
import sys
import threading
import time
from typing import Any, Self

from heat_plugins import masking
from heat_plugins.validations import playbook_folder

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

    def __init__(
        self, folder: pathlib.Path, job: playbook_folder.PlaybookJob
    ) -> None:
        self._path = folder / playbook_folder.EVENTS
        self._left = job.output
        self._mask = masking.Mask(job.secrets)
        self.overflown = False

    def __enter__(self) -> Self:
        # Read while it is written.
        self._file = self._path.open('a', encoding='utf-8')
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def event(self, happened: abc.Mapping[str, Any]) -> bool:
        """Take an event of ansible-runner's; it need not keep it."""
        kind = str(happened.get('event'))
        data = happened.get('event_data') or {}
        self.note(str(happened.get('stdout') or ''))
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
        value = result.get(key)
        if value:
            text = value if isinstance(value, str) else json.dumps(value)
            return text[:_MESSAGE]
    return ''


# PR_SET_CHILD_SUBREAPER in linux/prctl.h
_SUBREAPER = 36

# The most hosts at once.
_FORKS = 5

# Seconds for attempts to end what has started.
_TIMEOUT = 20.0


def main(folder: pathlib.Path) -> int:
    """Run the playbook of a folder, and report into it."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)
    stopping = threading.Event()
    received: list[bytes] = []
    threading.Thread(
        target=_listen, args=(stopping, received), daemon=True
    ).start()
    job = playbook_folder.read(folder)
    with Reporter(folder, job) as reporter:
        try:
            status = _play(folder, job, reporter, stopping)
        except Exception as exc:
            reporter.note(f'ansible-runner: {type(exc).__name__}: {exc}')
            status = 'error'
        left = end_descendants()
        reporter.end('stopped' if stopping.is_set() else status, left)
    if stopping.is_set() and not received:
        # There are secrets in it.
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _play(
    folder: pathlib.Path,
    job: playbook_folder.PlaybookJob,
    reporter: Reporter,
    stopping: threading.Event,
) -> str:
    # It is optional, and slow to import.
    import ansible_runner

    played = ansible_runner.run(
        private_data_dir=str(folder),
        project_dir=str(folder / playbook_folder.PROJECT),
        playbook=job.playbook,
        ident='run',
        forks=_FORKS,
        quiet=True,
        timeout=job.timeout,
        event_handler=reporter.event,
        cancel_callback=lambda: stopping.is_set() or reporter.overflown,
    )
    return str(played.status)


def _listen(stopping: threading.Event, received: list[bytes]) -> None:
    while content := os.read(0, 4096):
        received.append(content)
    stopping.set()


def end_descendants() -> int:
    """Kill all processes below this one; return how many are left."""
    until = time.monotonic() + _TIMEOUT
    while running := _descendants(os.getpid()):
        for process in running:
            try:
                os.kill(process, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                # It has gone; or it is one of sudo's, and shows as left.
                continue
        _bury()
        if time.monotonic() > until:
            return len(running)
        time.sleep(0.05)
    return 0


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for process, parent in _parents():
        children.setdefault(parent, []).append(process)
    below_root: list[int] = []
    ahead = [root]
    while ahead:
        below = children.get(ahead.pop(), [])
        below_root += below
        ahead += below
    return below_root


def _parents() -> abc.Iterator[tuple[int, int]]:
    for entry in os.scandir('/proc'):
        if entry.name.isdecimal():
            try:
                text = pathlib.Path(entry.path, 'stat').read_text()
            except (OSError, UnicodeDecodeError):
                continue
            # The name before it may hold anything.
            state, parent = text.rpartition(')')[2].split()[:2]
            if state != 'Z' or int(parent) == os.getpid():
                yield int(entry.name), int(parent)


def _bury() -> None:
    while True:
        try:
            process, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not process:
            return


if __name__ == '__main__':
    sys.exit(main(pathlib.Path(sys.argv[1])))
