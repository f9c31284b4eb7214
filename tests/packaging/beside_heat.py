# SPDX-License-Identifier: Apache-2.0
"""Installs heat-plugins beside a Heat, and holds that nothing else changes.

In the environment of a Heat, from the top of the source, this types what the
page install has for a virtual environment::

    python -m tests.packaging.beside_heat

What pip may add is what heat-plugins brings along; a package that was there
keeps its version, or the exit code is 1.
"""

import json
import subprocess
import sys
import tempfile

from tests import pages


def installed() -> dict[str, str]:
    """Return the versions of the packages of this environment."""
    done = subprocess.run(
        [sys.executable, '-m', 'pip', 'list', '--format', 'json'],
        capture_output=True,
        text=True,
        check=True,
    )
    return {one['name']: one['version'] for one in json.loads(done.stdout)}


def main() -> int:
    pip = [sys.executable, '-m', 'pip', '--disable-pip-version-check']
    before = installed()
    if 'openstack-heat' not in before:
        print('There is no Heat in this environment.')
        return 1
    # A copy of what is committed, since a build leaves files behind.
    with tempfile.TemporaryDirectory() as folder:
        source = f'{folder}/source'
        subprocess.run(['git', 'clone', '--quiet', '.', source], check=True)
        subprocess.run(
            [*pip, 'wheel', '--quiet', '--no-deps', '-w', folder, source],
            check=True,
        )
        typed, _ = pages.blocks(
            pages.read(
                'install', 'With pip, in the environment of heat-engine'
            )
        )
        typed = typed.replace('/opt/heat', sys.prefix)
        subprocess.run(['bash', '-euc', typed], cwd=folder, check=True)
    after = installed()
    changed = {
        name: (version, after.get(name, 'none'))
        for name, version in before.items()
        if after.get(name) != version and name != 'heat-plugins'
    }
    added = sorted(after.keys() - before.keys())
    print(f'Heat {before["openstack-heat"]}; added: {", ".join(added)}')
    for name, (was, now) in sorted(changed.items()):
        print(f'{name} was {was}, and is {now}')
    consistent = subprocess.run([*pip, 'check'], check=False).returncode == 0
    return 0 if consistent and not changed else 1


if __name__ == '__main__':
    sys.exit(main())
