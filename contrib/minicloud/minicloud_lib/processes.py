# SPDX-License-Identifier: Apache-2.0
"""Start processes that outlive us, and stop them without hitting others.

A process is remembered in a pid file together with its start time, since the
kernel gives a number to another process once its own has ended.
"""

from collections.abc import Iterable, Mapping, Sequence
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import time

from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import warm

_TICKS = os.sysconf('SC_CLK_TCK')
_PAGE = os.sysconf('SC_PAGE_SIZE')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Usage:
    """The memory and CPU time of a process."""

    cpu_seconds: float
    rss_bytes: int
    #: The most memory that it has held up to now.
    peak_rss_bytes: int
    threads: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Process:
    """A process of ours, told from a stranger with the same number."""

    pid: int
    started: str
    #: Marks what it was started with, to see when that has changed.
    version: str = ''

    @property
    def alive(self) -> bool:
        return _identity(self.pid) == self.started

    def usage(self) -> Usage | None:
        fields = _stat(self.pid)
        if fields is None or not self.alive:
            return None
        return Usage(
            cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS,
            rss_bytes=int(fields[21]) * _PAGE,
            peak_rss_bytes=_peak(self.pid),
            threads=int(fields[17]),
        )

    def signal(self, number: int) -> None:
        """Signal the process alone: it tells its children."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)

    def stop(self, patience: float) -> bool:
        """Ask, wait, then kill. False when it had to be killed."""
        self.signal(signal.SIGTERM)
        return self.end(patience)

    def end(self, patience: float) -> bool:
        """Wait for one that has been asked, then kill; as `stop`.

        Some programs die at once of a second SIGTERM.
        """
        clean = self.wait(patience)
        # Also when it went willingly: what it started may have stayed.
        self.kill()
        return clean

    def kill(self) -> None:
        """Kill at once, with all that was started in its session."""
        if _identity(self.pid) not in (None, self.started):
            # The number now belongs to another process.
            return
        deadline = time.monotonic() + 5
        # Again until none is left: they may fork, and take time to die.
        while members := _session(self.pid):
            for pid in members:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
        self.wait(5)

    def wait(self, seconds: float) -> bool:
        """Wait for its end; false when it is still there."""
        deadline = time.monotonic() + seconds
        while self.alive:
            if time.monotonic() > deadline:
                return False
            # Reaps it if it happens to be a child of ours.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
            time.sleep(0.02)
        return True


def spawn(
    command: Sequence[str | os.PathLike[str]],
    *,
    pid_file: pathlib.Path,
    log: pathlib.Path,
    env: Mapping[str, str],
    folder: pathlib.Path,
    version: str = '',
) -> Process:
    """Start a process in a session of its own and remember it."""
    files.make_folder(log.parent)
    files.make_folder(folder)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with os.fdopen(os.open(log, flags, 0o600), 'a') as stream:
        output = stream.fileno()
        pid = warm.fork(command, env=env, folder=folder, output=output)
        pid = pid or _start(command, env, folder, output)
    process = Process(pid=pid, started=_identity(pid) or '', version=version)
    files.write_json(pid_file, dataclasses.asdict(process))
    return process


def _start(
    command: Sequence[str | os.PathLike[str]],
    env: Mapping[str, str],
    folder: pathlib.Path,
    output: int,
) -> int:
    child = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    # It stays when we end, so it is not ours to wait for.
    child.returncode = 0
    return child.pid


def run(
    command: Sequence[object], env: Mapping[str, str], log: pathlib.Path
) -> None:
    """Run a program to its end; what it prints goes to a log."""
    with log.open('a') as stream:
        result = subprocess.run(
            [str(part) for part in command],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    if result.returncode:
        raise errors.MinicloudError(
            f'{command[0]} failed:\n{files.tail(log, 15)}',
            f'The whole output is in {log}.',
        )


def find(pid_file: pathlib.Path) -> Process | None:
    """The living process that a pid file names."""
    record = files.read_json(pid_file)
    if not record:
        return None
    process = Process(**record)
    return process if process.alive else None


def stop_all(
    pid_files: Iterable[pathlib.Path], patience: float
) -> dict[str, bool]:
    """Stop several at the same time; which of them ended by themselves."""
    running = {file: find(file) for file in pid_files}
    for process in running.values():
        if process:
            process.signal(signal.SIGTERM)
    deadline = time.monotonic() + patience
    clean = {}
    for file, process in running.items():
        if process:
            left = max(0.0, deadline - time.monotonic())
            clean[file.stem] = process.end(left)
        file.unlink(missing_ok=True)
    return clean


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat that follow the command's name."""
    try:
        text = pathlib.Path(f'/proc/{pid}/stat').read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(')')[2].split()


def _peak(pid: int) -> int:
    """The high-water mark of its memory; 0 when it has just ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        text = pathlib.Path(f'/proc/{pid}/status').read_text()
        for line in text.splitlines():
            name, _, value = line.partition(':')
            if name == 'VmHWM':
                return int(value.split()[0]) * 1024
    return 0


def _identity(pid: int) -> str | None:
    """Boot and start time; none for what has ended, zombies included."""
    fields = _stat(pid)
    if fields is None or fields[0] in 'ZX':
        return None
    boot = pathlib.Path('/proc/sys/kernel/random/boot_id').read_text()
    return f'{boot.strip()}/{fields[19]}'


def _session(leader: int) -> list[int]:
    """What lives of a session, process groups of their own included."""
    members = []
    for folder in pathlib.Path('/proc').glob('[0-9]*'):
        fields = _stat(int(folder.name))
        if fields is None or fields[0] in 'ZX':
            continue
        if int(fields[3]) == leader:
            members.append(int(folder.name))
    return members
