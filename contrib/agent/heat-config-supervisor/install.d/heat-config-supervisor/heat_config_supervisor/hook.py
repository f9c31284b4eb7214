# SPDX-License-Identifier: Apache-2.0
"""Runs a hook within the time that there is for it, or until it must stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
from typing import IO, Any

#: The exit statuses of what was stopped: for its time is over, as that of
#: timeout(1), and when it was told to, as after SIGTERM.
OVER, TOLD = 124, 143

# Seconds for what is told to stop, and then for its hook.
GRACE = 5.0

# Seconds between two looks whether it must stop.
_LOOK = 0.25

# Seconds between two looks whether what has to stop has ended.
PAUSE = 0.1

# How often to look for what a killed process may have started meanwhile.
_ROUNDS = 50

_PR_SET_CHILD_SUBREAPER = 36


@dataclasses.dataclass(frozen=True)
class Order:
    """A command, its input and its limits.

    :ivar content: the config, for its standard input.
    :ivar limit: seconds; None for no limit.
    :ivar stop: set when it must stop.
    :ivar inherited: the file descriptors that it needs.
    """

    command: list[str]
    content: bytes = dataclasses.field(repr=False)
    limit: float | None = None
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)
    inherited: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Stopped:
    """Why and how a hook was stopped.

    :ivar reason: what follows "it was".
    :ivar by_force: whether something of it had to be killed.
    """

    reason: str
    status: int
    by_force: bool


@dataclasses.dataclass(frozen=True)
class End:
    """How a hook has ended.

    :ivar stopped: None if it has ended by itself.
    """

    status: int
    stdout: bytes = dataclasses.field(repr=False)
    stderr: bytes = dataclasses.field(repr=False)
    stopped: Stopped | None = None

    def result(self) -> bytes:
        """Return the output of the hook for 55-heat-config."""
        if self.stopped is None:
            return self.stdout
        outputs = _outputs(self.stdout)
        stderr = str(outputs.get('deploy_stderr') or '')
        outputs['deploy_stderr'] = (
            f'{stderr}\nheat-config-supervisor: {self.stopped.reason}\n'
        ).lstrip('\n')
        outputs['deploy_status_code'] = self.stopped.status
        if self.stopped.status == TOLD:
            outputs['deploy_stopped'] = (
                'by force' if self.stopped.by_force else 'when told'
            )
        return json.dumps(outputs).encode()


def run(order: Order, begun: Callable[[], object] = lambda: None) -> End:
    """Run a hook; processes that it leaves running in time stay.

    :param begun: called when it has been started.
    """
    with contextlib.ExitStack() as stack:
        # No pipes: what the hook leaves running may hold those open.
        given, stdout, stderr = (
            stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)
        )
        given.write(order.content)
        given.seek(0)
        family = _Family()
        process = subprocess.Popen(
            order.command,
            stdin=given,
            stdout=stdout,
            stderr=stderr,
            pass_fds=order.inherited,
            preexec_fn=os.setpgrp,
        )
        family.leader = process.pid
        begun()
        status = _wait(process, order)
        stopped = None
        if status is not None:
            by_force = _stop(process, family)
            reason = 'stopped on request'
            if status == OVER:
                reason = f'stopped after {order.limit:.0f} s, its time limit'
            stopped = Stopped(reason, status, by_force)
        return End(
            process.returncode, _content(stdout), _content(stderr), stopped
        )


def _wait(process: subprocess.Popen[bytes], order: Order) -> int | None:
    """Wait for its end; return with which status it must stop, if so."""
    end = None if order.limit is None else time.monotonic() + order.limit
    # What has ended by itself is not stopped.
    while process.poll() is None:
        left = _LOOK
        if end is not None:
            left = min(left, end - time.monotonic())
        if order.stop.is_set():
            return TOLD
        if left <= 0:
            return OVER
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(left)
    return None


def _content(stream: IO[bytes]) -> bytes:
    """Return the output to this point; a process may still be writing."""
    number = stream.fileno()
    return os.pread(number, os.fstat(number).st_size, 0)


def _stop(process: subprocess.Popen[bytes], family: _Family) -> bool:
    """Stop a hook with all that it has started; say whether by force.

    What the hook has started goes first, so that the hook has a chance to
    return what that has printed.
    """
    commands = family.commands()
    _signal(commands, signal.SIGTERM)
    signalled = {command.program for command in commands}
    _wait_for_stopped(lambda: process.poll() is not None, family, signalled)
    by_force = process.poll() is None
    if by_force:
        _signal(family.commands(), signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)
    else:
        # What is left has had its time, or has it now: a daemon goes slowly.
        _wait_for_stopped(lambda: not family.alive(), family, signalled)
    for _ in range(_ROUNDS):
        left = family.alive()
        if not left:
            break
        by_force = True
        _signal(left, signal.SIGKILL)
        time.sleep(0.05)
    process.wait()
    return by_force


def _wait_for_stopped(
    ended: Callable[[], bool],
    family: _Family,
    signalled: set[tuple[int, str]],
) -> None:
    """Wait for the processes that got SIGTERM; send it to late orphans.

    A script that starts a command while it gets the signal leaves that
    command without it. What a script's trap runs has a parent, and no signal.

    :param signalled: the programs that have got it; grows.
    """
    end = time.monotonic() + GRACE
    while not ended() and time.monotonic() < end:
        late = [
            orphan
            for orphan in family.orphans()
            if orphan.program not in signalled
        ]
        _signal(late, signal.SIGTERM)
        signalled |= {orphan.program for orphan in late}
        time.sleep(PAUSE)


def _signal(processes: Iterable[_Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


class _Family:
    """A process and all that has come of it, wherever that went.

    What loses its parent, such as a daemon, becomes a child of ours and not
    of init, so it is known whose it is.

    :ivar leader: its process ID, and that of its group.
    """

    leader = 0

    def __init__(self) -> None:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._others = {
            process.pid
            for process in running_processes()
            if process.parent == os.getpid()
        }

    def commands(self) -> list[_Process]:
        """Return its living processes but the leader, or else the leader."""
        living = self.alive()
        return [
            process for process in living if process.pid != self.leader
        ] or living

    def orphans(self) -> list[_Process]:
        """Return its living processes that have lost their parent."""
        return [
            process
            for process in running_processes()
            if process.lives
            and process.parent == os.getpid()
            and process.pid not in self._others
            and process.pid != self.leader
        ]

    def alive(self) -> list[_Process]:
        """Return its living processes, parents before their children.

        A script whose command ends before the script itself gets the signal
        would start its next command.
        """
        there = running_processes()
        members = {
            process.pid
            for process in there
            if process.group == self.leader
            or (
                process.parent == os.getpid()
                and process.pid not in self._others
            )
        }
        size = 0
        while size < len(members):
            size = len(members)
            members |= {
                process.pid for process in there if process.parent in members
            }
        parents = {process.pid: process.parent for process in there}

        def depth(pid: int) -> int:
            return 1 + depth(parents[pid]) if pid in parents else 0

        living = [
            process
            for process in there
            if process.pid in members and process.lives
        ]
        return sorted(living, key=lambda process: depth(process.pid))


@dataclasses.dataclass(frozen=True)
class _Process:
    pid: int
    command: str
    parent: int
    group: int
    lives: bool

    @property
    def program(self) -> tuple[int, str]:
        """The process ID and the command, which a signal must meet together.

        One that reaches a shell between its fork and its exec may end in the
        shell's trap, and not in the command.
        """
        return self.pid, self.command


def running_processes() -> list[_Process]:
    processes = []
    for file in pathlib.Path('/proc').glob('[0-9]*/stat'):
        with contextlib.suppress(OSError):
            # After the command's name: state, parent, group.
            name, _, rest = file.read_text().rpartition(')')
            fields = rest.split()
            processes.append(
                _Process(
                    int(file.parent.name),
                    name.partition('(')[2],
                    int(fields[1]),
                    int(fields[2]),
                    fields[0] not in 'ZX',
                )
            )
    return processes


def _outputs(stdout: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        outputs = json.loads(stdout)
        if isinstance(outputs, dict):
            return outputs
    return {'deploy_stdout': stdout.decode(errors='replace')}
