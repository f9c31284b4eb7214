# SPDX-License-Identifier: Apache-2.0
"""The Pythons that are supported and installed: on PATH, or pyenv's.

``pythons.py [VERSION...]`` prints the path of the newest of these that is
installed, or fails.
"""

import os
import pathlib
import shutil
import subprocess
import sys

#: Oldest first.
SUPPORTED = ('3.11', '3.12', '3.13', '3.14')


def find(version):
    """Return the path of an interpreter, such as of ``3.12``, or None."""
    candidates = [shutil.which(f'python{version}')]
    root = pathlib.Path(os.environ.get('PYENV_ROOT') or '~/.pyenv')
    pattern = f'versions/{version}.*/bin/python{version}'
    candidates += map(str, root.expanduser().glob(pattern))
    return next(
        (path for path in candidates if path and _is(path, version)), None
    )


def _is(program, version):
    """Whether a program is that Python; pyenv's shims may lead nowhere."""
    code = 'import sys; print("%d.%d" % sys.version_info[:2])'
    done = subprocess.run([program, '-c', code], capture_output=True)
    return done.stdout.decode().strip() == version


def installed(versions):
    """Return the paths of those interpreters that are there, by version."""
    paths = {version: find(version) for version in versions}
    return {version: path for version, path in paths.items() if path}


def missing(version):
    """Return what to print in the end of a version that is not there."""
    return (
        f'Not run: the tests under Python {version}, which is neither on PATH '
        "nor among pyenv's versions."
    )


def main(versions):
    paths = installed(versions or SUPPORTED)
    if not paths:
        return 1
    newest = max(paths, key=lambda each: [*map(int, each.split('.'))])
    print(paths[newest])
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
