# SPDX-License-Identifier: Apache-2.0
"""Run the tests under each Python that is supported and found.

``pythons.py [--unit-only] VERSION...``: the unit tests under each, and the
functional tests of ``make test`` under the newest. Looks at PATH and at
pyenv's versions. A version that is not found is named, and not a failure.

``pythons.py find VERSION`` prints the path of that Python, or fails.
"""

from collections.abc import Sequence
import os
import pathlib
import shutil
import subprocess
import sys

UNIT_ONLY = '--unit-only'
FIND = 'find'


def find(version: str) -> str | None:
    """Return the path of an interpreter, such as of ``3.12``, or None."""
    candidates = [shutil.which(f'python{version}')]
    root = pathlib.Path(os.environ.get('PYENV_ROOT') or '~/.pyenv')
    pattern = f'versions/{version}.*/bin/python{version}'
    candidates += map(str, root.expanduser().glob(pattern))
    return next((one for one in candidates if one and _is(one, version)), None)


def _is(program: str, version: str) -> bool:
    """Whether a program is that Python; pyenv's shims may lead nowhere."""
    code = 'import sys; print("%d.%d" % sys.version_info[:2])'
    done = subprocess.run([program, '-c', code], capture_output=True)
    return done.stdout.decode().strip() == version


def command(found: dict[str, str], unit_only: bool) -> list[str]:
    """Return the call of tox.

    :param found: paths of interpreters by version.
    :param unit_only: whether the newest runs no functional tests either.
    """
    newest = max(found, key=lambda one: [int(n) for n in one.split('.')])
    names = [
        f'py{one.replace(".", "")}'
        + ('-functional' if one == newest and not unit_only else '')
        for one in found
    ]
    return [
        *(sys.executable, '-m', 'tox', 'run'),
        *('--discover', *found.values(), '-e', ','.join(names)),
    ]


def main(arguments: Sequence[str]) -> int:
    if arguments[0] == FIND:
        path = find(arguments[1])
        print(path or '')
        return 0 if path else 1
    versions = [one for one in arguments if one != UNIT_ONLY]
    paths = {version: find(version) for version in versions}
    found = {version: path for version, path in paths.items() if path}
    code = 0
    if found:
        code = subprocess.run(
            command(found, UNIT_ONLY in arguments)
        ).returncode
    for version in versions:
        if version not in found:
            print(
                f'Not run: the tests under Python {version}, which is neither '
                "on PATH nor among pyenv's versions."
            )
    return code


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
