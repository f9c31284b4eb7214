# SPDX-License-Identifier: Apache-2.0
"""Work for strangers in a process that can be stopped, and be small.

What templates say may take as long, and make as much, as it likes, and
Python stops neither a loop nor a match. So it is done in a process of its
own: a module that reads JSON from its standard input, writes a map of JSON to
its standard output, and calls `enter` first.
"""

from collections import abc
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from typing import Any, Final

#: The process took more time than it was given.
TIMED_OUT: Final = -signal.SIGXCPU

# Many times the processor time: for a machine that has much else to do.
_SLACK: Final = 20


def run(
    module: str, given: Any, *, seconds: int, memory: int, output: int
) -> tuple[int, abc.Mapping[str, Any]]:
    """Run a module.

    :param given: what it reads.
    :param seconds: of processor time.
    :param memory: bytes of address space.
    :param output: the most bytes that it writes.
    :return: how it has ended, and what it wrote; an empty map if that is
        none.
    """
    command = [
        *(sys.executable, '-P', '-m', module),
        *(f'{limit}' for limit in (seconds, memory, output)),
    ]
    # Files on a disk cannot keep either side waiting, and have an end.
    with tempfile.TemporaryFile() as reads, tempfile.TemporaryFile() as writes:
        reads.write(json.dumps(given).encode())
        reads.seek(0)
        process = subprocess.Popen(
            command,
            stdin=reads,
            stdout=writes,
            stderr=subprocess.DEVNULL,
            # The same code as here, and nothing else that is known here.
            env={'PYTHONPATH': os.pathsep.join(filter(None, sys.path))},
        )
        try:
            code = process.wait(seconds * _SLACK)
        except subprocess.TimeoutExpired:
            code = TIMED_OUT
        finally:
            process.kill()
            process.wait()
        writes.seek(0)
        text = writes.read(output + 1)
    if code == -signal.SIGKILL:
        code = TIMED_OUT
    try:
        written = json.loads(text)
    except ValueError:
        written = None
    return code, written if isinstance(written, dict) else {}


def enter() -> tuple[int, int]:
    """Limit this process by its arguments; return its memory and output."""
    seconds, memory, output = map(int, sys.argv[1:])
    for kind, limit in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, output),
        (resource.RLIMIT_CORE, 0),
    ):
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            limit = min(limit, most)
        resource.setrlimit(kind, (limit, limit))
    return memory, output
