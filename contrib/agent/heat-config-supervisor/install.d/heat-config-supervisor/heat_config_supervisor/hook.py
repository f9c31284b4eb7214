# SPDX-License-Identifier: Apache-2.0
"""Runs a hook within the time that there is for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import tempfile
from typing import IO, Any

#: The exit status of what was stopped, as that of timeout(1).
STOPPED = 124

# Seconds for what is told to stop, and then for its hook.
_GRACE = 5.0


@dataclasses.dataclass(frozen=True)
class End:
    """How a hook has ended.

    :ivar limit: the seconds after which it was stopped; None if it was not.
    """

    status: int
    stdout: bytes = dataclasses.field(repr=False)
    stderr: bytes = dataclasses.field(repr=False)
    limit: float | None = None

    def result(self) -> bytes:
        """Return what 55-heat-config is to read as the output of the hook."""
        if self.limit is None:
            return self.stdout
        found = _outputs(self.stdout)
        said = str(found.get('deploy_stderr') or '')
        found['deploy_stderr'] = (
            f'{said}\nheat-config-supervisor: stopped after '
            f'{self.limit:.0f} s, for there was no more time\n'
        ).lstrip('\n')
        found['deploy_status_code'] = STOPPED
        return json.dumps(found).encode()


def run(
    command: list[str],
    content: bytes,
    limit: float | None,
    begun: Callable[[], None] = lambda: None,
) -> End:
    """Run a hook; what it starts and leaves running, if in time, stays.

    :param content: the config, for its standard input.
    :param limit: seconds; None for no limit.
    :param begun: called when it has been started.
    """
    with contextlib.ExitStack() as stack:
        # No pipes: what the hook leaves running may hold those open.
        given, stdout, stderr = (
            stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)
        )
        given.write(content)
        given.seek(0)
        process = subprocess.Popen(
            command,
            stdin=given,
            stdout=stdout,
            stderr=stderr,
            preexec_fn=os.setpgrp,
        )
        begun()
        exceeded = None
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            exceeded = limit
            _stop(process)
        return End(
            process.returncode, _content(stdout), _content(stderr), exceeded
        )


def _content(stream: IO[bytes]) -> bytes:
    """Return what was written, wherever what still runs is writing."""
    number = stream.fileno()
    return os.pread(number, os.fstat(number).st_size, 0)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a hook with all that is in its process group.

    What the hook has started goes first, so that the hook has a chance to
    return what that has printed.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        others = _group(process.pid) - {process.pid}
        _signal(others or {process.pid}, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
            break
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _group(leader: int) -> set[int]:
    """Return what lives of a process group."""
    found = set()
    for file in pathlib.Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(OSError):
            # After the command's name: state, parent, group.
            fields = file.read_text().rpartition(')')[2].split()
            if int(fields[2]) == leader and fields[0] not in 'ZX':
                found.add(int(file.parent.name))
    return found


def _outputs(stdout: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        found = json.loads(stdout)
        if isinstance(found, dict):
            return found
    return {'deploy_stdout': stdout.decode(errors='replace')}
