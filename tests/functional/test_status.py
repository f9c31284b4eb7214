# SPDX-License-Identifier: Apache-2.0
"""``heat-plugins-status`` on a cloud whose settings are right."""

import json
import pathlib
import subprocess
import sys

import pytest

from tests.functional import base
from tests.functional import conftest

TEMP_URLS = 'TempURLs'

SUCCESS, WARNING, FAILURE = range(3)

COMMAND = pathlib.Path(sys.executable).with_name('heat-plugins-status')

#: Ceph's gateway copies objects for the holder of a URL.
USUAL = {TEMP_URLS: WARNING} if conftest.STORE == 'rgw' else {}


def status(cloud, *words):
    """Run the command with the cloud's heat.conf; its code and its output."""
    # The mini cloud has the rules of former years, by which readers may
    # update stacks.
    more = cloud.path / 'more.conf'
    more.write_text('[oslo_policy]\nenforce_new_defaults = true')
    done = subprocess.run(
        [
            *(COMMAND, '--config-file', cloud.path / 'conf/heat.conf'),
            *('--config-file', more, *words),
        ],
        env=cloud.env(),
        capture_output=True,
        text=True,
    )
    assert done.stderr == ''
    return done.returncode, json.loads(done.stdout)


def check(cloud):
    """Return the result and the details of each check."""
    code, shown = status(cloud, 'upgrade', 'check', '--json')
    found = {
        one['check']: (one['result'], one['details'])
        for one in shown['checks']
    }
    # The exit code is that of the worst.
    assert code == max(code for code, _ in found.values())
    return found


@pytest.mark.quick
def test_right_settings_succeed_features_work_and_nothing_is_left(cloud):
    before = base.Leftovers.of(cloud)
    found = check(cloud)
    wrong = {
        name: code
        for name, (code, _) in found.items()
        if code != USUAL.get(name, SUCCESS)
    }
    assert wrong == {}, found
    keeper = conftest.KEY_HEADER.split('-')[1].lower()
    for name, said in (
        ('Resource types', 'heat-plugins serves 16 resource types'),
        ('TempURL secret', 'temp_url_secret'),
        ('Transports of agents', 'cloudformation answers at http'),
        (TEMP_URLS, f'with {conftest.DIGEST} and the key of the {keeper}'),
        ('Mistral', 'Keystone gives trusts'),
    ):
        assert said in found[name][1]
    _, listed = status(cloud, 'feature', 'list', '-f', 'json')
    works = {row['name']: row['works'] for row in listed}
    assert not works.pop('Deployments by ZAQAR_SIGNAL')
    # Whether triggers fire can be told of those that there are.
    assert works.pop('Cron triggers') is not False
    assert set(works.values()) == {True}, listed
    before.hold(cloud)
