# SPDX-License-Identifier: Apache-2.0
"""The process above ansible-runner, which ends all processes of a playbook.

``ansible-runner stop`` ends ansible-runner alone: ansible-playbook and its
workers each have a session of their own, and continue. Linux makes their
orphans children of this process, which finds all of them so.

Its arguments are a private data directory and the command. Standard input
ends when the caller closes it, or dies. Then this process ends all others,
and deletes the directory, which holds secrets.
"""

import contextlib
import ctypes
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import time

#: The file that says that the playbook and all its processes have ended.
ENDED = 'ended'

# PR_SET_CHILD_SUBREAPER in linux/prctl.h
_SUBREAPER = 36

#: Seconds for attempts to end the processes.
TIMEOUT = 20.0


def main(folder: pathlib.Path, command: list[str]) -> int:
    """Run a command; return the number of its processes that are left."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)
    runner = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    while runner.poll() is None and not select.select([0], [], [], 0.2)[0]:
        pass
    left = end_children()
    (folder / ENDED).touch()
    sys.stdin.buffer.read()
    shutil.rmtree(folder, ignore_errors=True)
    return min(left, 100)


def end_children() -> int:
    """Kill all children, and their children; return how many are left."""
    children = pathlib.Path(f'/proc/self/task/{os.getpid()}/children')
    until = time.monotonic() + TIMEOUT
    while True:
        running = children.read_text().split()
        for process in running:
            # It has ended; or it is one of sudo's, and counts as left.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(process), signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return 0
        if time.monotonic() > until:
            return len(running)
        time.sleep(0.05)


if __name__ == '__main__':
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2:]))
