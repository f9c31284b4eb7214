# SPDX-License-Identifier: Apache-2.0
"""The process that one playbook runs under; it ends all that started there.

It is started with a folder (see `jobs`) on its command line, in a session of
its own. Ansible has another one, and with it a process group of its own. What
leaves both of them comes back to this process as an orphan, because Linux
hands it the orphans of all its descendants.

Its standard input says when to stop: when it ends. If it ends
without a word, the process at its other end was killed, and the guard tidies
up in its place.
"""

from collections import abc
import ctypes
import os
import pathlib
import shutil
import signal
import sys
import threading
import time

from heat_plugins.validations import jobs
from heat_plugins.validations import reporting

# PR_SET_CHILD_SUBREAPER in linux/prctl.h
_SUBREAPER = 36

# The most hosts at once.
_FORKS = 5

# Seconds for attempts to end what has started.
_PATIENCE = 20.0


def main(folder: pathlib.Path) -> int:
    """Run the playbook of a folder, and report into it."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)
    stopping = threading.Event()
    said: list[bytes] = []
    threading.Thread(
        target=_listen, args=(stopping, said), daemon=True
    ).start()
    job = jobs.read(folder)
    with reporting.Reporter(folder, job) as reporter:
        try:
            status = _play(folder, job, reporter, stopping)
        except Exception as exc:
            reporter.note(f'ansible-runner: {type(exc).__name__}: {exc}')
            status = 'error'
        left = end_descendants()
        reporter.end('stopped' if stopping.is_set() else status, left)
    if stopping.is_set() and not said:
        # There are secrets in it.
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _play(
    folder: pathlib.Path,
    job: jobs.Job,
    reporter: reporting.Reporter,
    stopping: threading.Event,
) -> str:
    # It is optional, and slow to import.
    import ansible_runner

    found = ansible_runner.run(
        private_data_dir=str(folder),
        project_dir=str(folder / jobs.PROJECT),
        playbook=job.playbook,
        ident='run',
        forks=_FORKS,
        quiet=True,
        timeout=job.timeout,
        event_handler=reporter.event,
        cancel_callback=lambda: stopping.is_set() or reporter.overflown,
    )
    return str(found.status)


def _listen(stopping: threading.Event, said: list[bytes]) -> None:
    while content := os.read(0, 4096):
        said.append(content)
    stopping.set()


def end_descendants() -> int:
    """Kill all processes below this one; return how many are left."""
    until = time.monotonic() + _PATIENCE
    while found := _descendants(os.getpid()):
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                # It has gone; or it is one of sudo's, and shows as left.
                continue
        _bury()
        if time.monotonic() > until:
            return len(found)
        time.sleep(0.05)
    return 0


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for process, parent in _parents():
        children.setdefault(parent, []).append(process)
    found: list[int] = []
    ahead = [root]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


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
