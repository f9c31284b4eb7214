# SPDX-License-Identifier: Apache-2.0
"""Run the tests under each Python that is supported and installed.

``pythons.py run [VERSION...]``: the unit tests under each, and the functional
tests of ``make test`` under the newest. Looks at PATH and at pyenv's versions.
A version that is not there is named, and not a failure.

``pythons.py newest [VERSION...]`` prints the path of the newest of these that
is installed, or fails.
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


def newest(versions):
    """Return the newest of at least one version."""
    return max(versions, key=lambda version: _numbers(version))


def _numbers(version):
    return [int(number) for number in version.split('.')]


def missing(version):
    """Return what to print in the end of a version that is not there."""
    return (
        f'Not run: the tests under Python {version}, which is neither on PATH '
        "nor among pyenv's versions."
    )


def command(paths):
    """Return the call of tox.

    :param paths: of interpreters, by version.
    """
    names = [
        f'py{version.replace(".", "")}'
        + ('-functional' if version == newest(paths) else '')
        for version in paths
    ]
    return [
        *(sys.executable, '-m', 'tox', 'run'),
        *('--discover', *paths.values(), '-e', ','.join(names)),
    ]


def run(versions):
    """Run the tests under those that are there; the exit code of that."""
    paths = installed(versions)
    code = subprocess.run(command(paths)).returncode if paths else 0
    for version in versions:
        if version not in paths:
            print(missing(version))
    return code


def main(arguments):
    verb, *versions = arguments
    if verb == 'run':
        return run(versions or SUPPORTED)
    paths = installed(versions or SUPPORTED)
    if paths:
        print(paths[newest(paths)])
    return 0 if paths else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
