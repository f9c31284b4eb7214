# SPDX-License-Identifier: Apache-2.0
"""How long each target of the Makefile took when it last ran.

``timing.py run FILE TARGET COMMAND...`` runs a command and keeps its time;
``timing.py list FILE MAKEFILE`` prints the targets with those times. Needs
nothing but Python, as it also times the installation.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

#: In a Makefile: a target, and the comment that says what it is for.
_TARGET = re.compile(r'^([\w-]+):.*?## (.+)$', re.MULTILINE)


def read(file):
    """Return what is known of targets; nothing if the file is unreadable."""
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def run(file, target, command):
    """Run a command, record its seconds and return its exit code."""
    begun = time.monotonic()
    # Those of make's job server are among the open files.
    code = subprocess.run(command, close_fds=False).returncode
    seconds = round(time.monotonic() - begun)
    end = 'done' if code == 0 else 'failed'
    print(f'make {target}: {end} after {shown(seconds)}', flush=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    # Others may have written to it meanwhile.
    known = {**read(file), target: {'seconds': seconds, 'ok': code == 0}}
    scratch = file.with_name(f'{file.name}.{os.getpid()}')
    scratch.write_text(json.dumps(known, indent=1))
    scratch.replace(file)
    return code


def shown(seconds):
    """Return seconds as minutes and seconds, such as ``3 min 05 s``."""
    minutes, rest = divmod(seconds, 60)
    return f'{minutes} min {rest:02d} s' if minutes else f'{rest} s'


def table(makefile, known):
    """Return a line for each target that has a description."""
    lines = []
    for target, purpose in _TARGET.findall(makefile):
        last = known.get(target)
        took = shown(last['seconds']) if last else '-'
        if last and not last['ok']:
            took += ' (failed)'
        lines.append(f'make {target:20}{took:>19}  {purpose}')
    return lines


def main(arguments):
    verb, file, *rest = arguments
    if verb == 'run':
        return run(pathlib.Path(file), rest[0], rest[1:])
    (makefile,) = rest
    print(f'{"":25}{"last run took":>19}')
    known = read(pathlib.Path(file))
    print('\n'.join(table(pathlib.Path(makefile).read_text(), known)))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
