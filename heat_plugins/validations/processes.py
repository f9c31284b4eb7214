# SPDX-License-Identifier: Apache-2.0
"""Starting, reading and ending the process of a playbook; see `guard`.

Nothing here waits, and no pipe is read: so it works among green threads too.
"""

from collections import abc
import contextlib
import importlib.util
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any
import uuid

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.validations import playbook_folder

# Seconds for which a process is given time to end by itself.
_GRACE = 30.0

# The same for one that was killed.
_SWEEP = 10.0


class Playbook:
    """A playbook that runs, with its folder.

    :param setting: what all playbooks of a run share.
    """

    def __init__(
        self,
        setting: playbook_folder.Setting,
        job: playbook_folder.PlaybookJob,
    ) -> None:
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix='validation-'))
        self._offset = 0
        #: What its processes can be told by.
        self.mark = uuid.uuid4().hex
        try:
            playbook_folder.write(self._folder, setting, job)
            self._until = time.monotonic() + job.timeout + _GRACE
            self._process = self._begin()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self) -> bool:
        """Say whether it is over; ends what does not end by itself."""
        if self._process.poll() is not None:
            return True
        if time.monotonic() > self._until:
            self._process.kill()
        return False

    def news(self) -> list[abc.Mapping[str, Any]]:
        """Return what was reported since the last call; see `guard`."""
        try:
            with (self._folder / playbook_folder.EVENTS).open('rb') as file:
                file.seek(self._offset)
                content = file.read()
        except FileNotFoundError:
            return []
        complete = content[: content.rfind(b'\n') + 1]
        self._offset += len(complete)
        events = (_event(line) for line in complete.splitlines())
        return [event for event in events if event is not None]

    def stop(self) -> None:
        """Begin to end it, and all that it has started."""
        if self._process.stdin and not self._process.stdin.closed:
            # This tells it that its reports are read, and it tidies up.
            with contextlib.suppress(OSError):
                self._process.stdin.write(b'stop')
                self._process.stdin.close()
            self._until = min(self._until, time.monotonic() + _GRACE)

    def close(self) -> int:
        """End it at once if it runs, and tidy up.

        :return: how many of its processes are left.
        """
        self.stop()
        until = time.monotonic() + _GRACE
        while self._process.poll() is None:
            if time.monotonic() > until:
                self._process.kill()
            time.sleep(0.05)
        left = _sweep(self.mark)
        shutil.rmtree(self._folder, ignore_errors=True)
        return left

    def _begin(self) -> subprocess.Popen[bytes]:
        with (self._folder / 'log').open('wb') as log:
            return subprocess.Popen(
                [
                    sys.executable,
                    # What lies in the folder is not ours.
                    '-P',
                    '-m',
                    'heat_plugins.validations.guard',
                    str(self._folder),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env=playbook_folder.environment(self.mark, self._folder),
                start_new_session=True,
            )


def _event(line: bytes) -> abc.Mapping[str, Any] | None:
    """Return what a line reports; None if it is not a report.

    A playbook that runs on this machine can write to the file, too.
    """
    try:
        report = bounds.read_json(line)
    except ValueError:
        return None
    return report if isinstance(report, dict) and 'kind' in report else None


def check() -> None:
    """Say no where playbooks cannot be run.

    :raises errors.Refused: what runs them is not installed.
    """
    folder = pathlib.Path(sys.executable).parent
    path = f'{folder}:{os.environ.get("PATH", os.defpath)}'
    missing = []
    if importlib.util.find_spec('ansible_runner') is None:
        missing.append('ansible-runner')
    if shutil.which('ansible-playbook', path=path) is None:
        missing.append('ansible-core')
    if missing:
        raise errors.Refused(
            f'{" and ".join(missing)} not found on {os.uname().nodename}, '
            'the machine that runs the playbooks; install there: pip install '
            f'{" ".join(missing)}'
        )


def marked(mark: str) -> list[int]:
    """Return the processes of this machine that have a mark."""
    wanted = f'HEAT_PLUGINS_VALIDATION={mark}'.encode()
    processes = []
    for entry in os.scandir('/proc'):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                environ = pathlib.Path(entry.path, 'environ').read_bytes()
                if wanted in environ.split(b'\0'):
                    processes.append(int(entry.name))
    return processes


def _sweep(mark: str) -> int:
    """Kill what is left if the guard was killed; return what stays."""
    until = time.monotonic() + _SWEEP
    while processes := marked(mark):
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if time.monotonic() > until:
            return len(processes)
        time.sleep(0.05)
    return 0
