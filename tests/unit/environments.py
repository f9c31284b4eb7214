# SPDX-License-Identifier: Apache-2.0
"""Python environments that have Heat, and heat-plugins only if installed."""

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv

# Goes with the process.
_SCRATCH = tempfile.TemporaryDirectory(prefix='heat-plugins-wheel-')

CHECKOUT = pathlib.Path(__file__).parents[2]
# There is no tag to tell a version by.
BUILD = {**os.environ, 'PBR_VERSION': '0.2.0'}
PROBE = pathlib.Path(__file__).with_name('engine_probe.py')


def run(*command, **kwargs):
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        **kwargs,
    )
    if done.returncode:
        raise AssertionError(f'{command} failed:\n{done.stdout}{done.stderr}')
    return done.stdout


@functools.cache
def source():
    """Copy the checkout, uncommitted changes included.

    :returns: the path of a copy, since a build leaves files behind that the
        next one would take.
    """
    source = pathlib.Path(_SCRATCH.name) / 'source'
    listed = run(
        *('git', '-C', CHECKOUT, 'ls-files', '-z'),
        *('--cached', '--others', '--exclude-standard'),
    )
    for name in filter(None, listed.split('\0')):
        if (CHECKOUT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, source / name)
    # pbr takes the list of the files from git.
    run('git', 'init', '--quiet', source)
    run('git', '-C', source, 'add', '--all')
    # reno looks for notes in what is committed.
    who = ('-c', 'user.name=t', '-c', 'user.email=t@example.org')
    run('git', '-C', source, *who, 'commit', '--quiet', '-m', 'x')
    return source


@functools.cache
def wheel():
    """Build the wheel of the checkout; return its path."""
    folder = pathlib.Path(_SCRATCH.name)
    run(
        *(sys.executable, '-m', 'pip', 'wheel', '--no-deps', '--no-index'),
        *('--no-build-isolation', '--wheel-dir', folder, source()),
        env=BUILD,
    )
    (path,) = folder.glob('*.whl')
    return path


@functools.cache
def sdist():
    """Build the source distribution of the checkout; return its path."""
    folder = pathlib.Path(_SCRATCH.name)
    build = f'import pbr.build; pbr.build.build_sdist({str(folder)!r})'
    run(sys.executable, '-c', build, cwd=source(), env=BUILD)
    (path,) = folder.glob('*.tar.gz')
    return path


class Environment:
    """A virtual environment with what this one has, less heat-plugins.

    :ivar prefix: its folder.
    :ivar site_packages: the folder for its packages; those of this
        environment are linked into it.
    """

    def __init__(self, folder):
        """Make it in `folder`."""
        self.prefix = pathlib.Path(folder)
        venv.create(self.prefix)
        self.python = self.prefix / 'bin' / 'python'
        paths = {'base': folder, 'platbase': folder}
        self.site_packages = pathlib.Path(
            sysconfig.get_path('purelib', 'venv', paths)
        )
        for path in pathlib.Path(sysconfig.get_path('purelib')).iterdir():
            if 'heat_plugins' not in path.name.replace('-', '_'):
                (self.site_packages / path.name).symlink_to(path)

    def install(self):
        """Install heat-plugins as pip does for an operator."""
        run(
            *(sys.executable, '-m', 'pip', '--python', self.python),
            *('install', '--quiet', '--no-deps', '--no-index', wheel()),
        )

    def plugin_dirs_line(self, heat_conf):
        """Return what ``python -m heat_plugins`` prints there."""
        command = (self.python, '-I', '-m', 'heat_plugins')
        return run(*command, '--config-file', heat_conf)

    def start_engine(self, *lines):
        """Load what heat-engine would load.

        :param lines: the lines of heat.conf.
        :returns: what engine_probe prints.
        """
        heat_conf = self.prefix / 'heat.conf'
        heat_conf.write_text(
            '\n'.join(
                ['[database]', 'connection = sqlite://', '[DEFAULT]', *lines]
            )
        )
        probe, errors = self._probe
        probe.stdin.write(f'{heat_conf}\n')
        probe.stdin.flush()
        if not (answer := probe.stdout.readline().strip()):
            errors.seek(0)
            raise AssertionError(errors.read())
        return json.loads(answer)

    @functools.cached_property
    def _probe(self):
        errors = tempfile.TemporaryFile('w+')  # noqa: SIM115
        probe = subprocess.Popen(
            [self.python, '-I', PROBE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        return probe, errors

    def close(self):
        """End the process that starts engines."""
        probe, errors = self._probe
        probe.communicate()
        errors.close()
