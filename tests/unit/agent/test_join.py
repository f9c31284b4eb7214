# SPDX-License-Identifier: Apache-2.0
"""A machine joins a stack: what is installed, and when that is whole."""

import os
import subprocess
import tarfile

import pytest

from tests.unit import agent

URL = 'https://swift.example.com/v1/a/c/o?temp_url_sig=5&temp_url_expires=9'

#: What heat-agents has, as far as a machine gets it.
SOURCES = (
    'heat-config/os-refresh-config/configure.d/20-os-apply-config',
    'heat-config/os-refresh-config/configure.d/55-heat-config',
    'heat-config/os-apply-config/etc/os-collect-config.conf',
    'heat-config/os-apply-config/var/run/heat-config/heat-config',
    'heat-config/bin/heat-config-notify',
    'heat-config-script/install.d/hook-script.py',
)

#: Runs in the image what `join` may run there, by the image's own paths.
CHROOT = r"""#!/bin/bash
set -eu
root=$1
shift
bin=$root/opt/heat-agents/bin
echo "$*" >>"$STATE/calls"
case "$*" in
    'sh -c command -v os-collect-config')
        case :$PATH: in *:/usr/local/bin:*) ;; *) exit 98 ;; esac
        link=$root/usr/local/bin/os-collect-config
        [ -L "$link" ] && [ -x "$root$(readlink "$link")" ]
        ;;
    'python3 -m venv /opt/heat-agents') mkdir -p "$bin" && touch "$bin/pip" ;;
    '/opt/heat-agents/bin/pip install '*' os-refresh-config')
        [ -e "$bin/pip" ]
        for name in dib-run-parts os-{apply,collect,refresh}-config; do
            install /dev/null "$bin/$name"
        done
        ;;
    '/opt/heat-agents/bin/pip download '*' --dest /tmp/'*' heat-agents')
        if [ ! -e "$STATE/online" ]; then
            echo 'Network is unreachable' >&2
            exit 1
        fi
        while [ "$1" != --dest ]; do shift; done
        cp "$STATE/heat_agents-4.0.0.tar.gz" "$root$2"
        ;;
    *) exit 99 ;;
esac
"""


class Image:
    """A tree that `join` prepares, and what the package index does."""

    def __init__(self, folder):
        self.root = folder / 'image'
        (self.root / 'tmp').mkdir(parents=True)
        self.state = folder / 'state'
        (self.state / 'bin').mkdir(parents=True)
        # The machine that builds the image has an agent of its own.
        for name, text in (
            ('chroot', CHROOT),
            ('os-collect-config', '#!/bin/sh\n'),
        ):
            program = self.state / 'bin' / name
            program.write_text(text)
            program.chmod(0o755)
        packed = self.state / 'heat_agents-4.0.0.tar.gz'
        with tarfile.open(packed, 'w:gz') as archive:
            for path in SOURCES:
                archive.addfile(tarfile.TarInfo(f'heat_agents-4.0.0/{path}'))

    def join(self, *, online=True):
        if online:
            (self.state / 'online').touch()
        return subprocess.run(
            [agent.ADD_ON / 'join'],
            input=URL + '\n',
            env={
                'PATH': f'{self.state}/bin:{os.environ["PATH"]}',
                'DESTDIR': str(self.root),
                'STATE': str(self.state),
            },
            capture_output=True,
            text=True,
        )

    def calls(self):
        return (self.state / 'calls').read_text().splitlines()

    def has(self, path):
        return os.path.lexists(self.root / path)


@pytest.fixture
def image(tmp_path):
    return Image(tmp_path)


def test_a_half_installation_is_finished_by_the_next_join(image):
    failed = image.join(online=False)
    assert failed.returncode != 0
    assert 'Network is unreachable' in failed.stderr
    assert 'server of Heat' not in failed.stdout
    assert not image.has('etc/os-collect-config.conf')
    done = image.join()
    assert done.returncode == 0, done.stderr
    for path in (
        'libexec/os-refresh-config/configure.d/20-os-apply-config',
        'libexec/os-refresh-config/configure.d/55-heat-config',
        'libexec/os-apply-config/templates/etc/os-collect-config.conf',
        'libexec/heat-config/hooks/script',
        'bin/heat-config-notify',
    ):
        assert image.has(f'usr/{path}'), path
    assert not list((image.root / 'tmp').iterdir())
    # Agents that are there are kept.
    calls = len(image.calls())
    assert image.join().returncode == 0
    assert image.calls()[calls:] == ['sh -c command -v os-collect-config']


def test_an_image_gets_agents_that_work_in_it(image):
    done = image.join()
    assert done.returncode == 0, done.stderr
    # Programs in it name its own paths, as they are installed within it.
    assert str(image.root) not in '\n'.join(image.calls())
    link = image.root / 'usr/local/bin/os-collect-config'
    assert os.readlink(link) == '/opt/heat-agents/bin/os-collect-config'
    assert 'This machine' not in done.stdout
    assert f'{image.root} is a server of Heat when it boots' in done.stdout
    configuration = image.root / 'etc/os-collect-config.conf'
    assert f'metadata_url = {URL}\n' in configuration.read_text()
    assert configuration.stat().st_mode & 0o777 == 0o600
    assert URL not in done.stdout + done.stderr
