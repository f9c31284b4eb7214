# SPDX-License-Identifier: Apache-2.0
"""Runs a hook of heat-agents, and copies the output of its programs.

The hooks keep the output of what they run to themselves until that has ended.
They are Python and all read it in the same way, with `Popen.communicate`; so
this stands in for that, in the process of the hook alone. It runs under the
Python of the hook: standard library only.
"""

import os
import pathlib
import runpy
import selectors
import subprocess
import sys

_BYTES = 64 * 1024

_communicate = subprocess.Popen.communicate

# Where the output goes; None once it has no reader.
_copy = None


def communicate(process, input=None, timeout=None):
    """Do as `Popen.communicate`, and hand on output as it comes.

    A program of whose outputs a hook reads one alone only answers a question.
    """
    streams = [process.stdout, process.stderr]
    if (
        input is not None
        or timeout is not None
        or process.stdin
        or process.text_mode
        or None in streams
    ):
        return _communicate(process, input, timeout)
    contents = {stream: [] for stream in streams}
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                content = os.read(key.fd, _BYTES)
                if content:
                    contents[key.fileobj].append(content)
                    _hand_on(content)
                else:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
    process.wait()
    return tuple(b''.join(contents[stream]) for stream in streams)


def _hand_on(content):
    global _copy
    try:
        while content and _copy is not None:
            content = content[os.write(_copy, content) :]
    except OSError:
        _copy = None


def main(number, program):
    """Run a hook; copy all that it reads to a file descriptor."""
    global _copy
    _copy = int(number)
    # What the hook starts has no part in it.
    os.set_inheritable(_copy, False)
    subprocess.Popen.communicate = communicate
    sys.argv = [program]
    sys.path[0] = str(pathlib.Path(program).resolve().parent)
    runpy.run_path(program, run_name='__main__')


if __name__ == '__main__':
    main(*sys.argv[1:])
