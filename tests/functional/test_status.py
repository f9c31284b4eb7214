# SPDX-License-Identifier: Apache-2.0
"""``heat-plugins-status`` on a cloud whose settings are right."""

import json
import pathlib
import subprocess
import sys

import pytest

from tests.functional import base
from tests.functional import conftest

TYPES = 'Resource types'
SECRET = 'TempURL secret'
WAYS = 'Transports of agents'
TEMP_URLS = 'TempURLs'
MISTRAL = 'Mistral'

SUCCESS, WARNING, FAILURE = range(3)

COMMAND = pathlib.Path(sys.executable).with_name('heat-plugins-status')


@pytest.fixture
def check(cloud, tmp_path):
    """Run the command with the cloud's heat.conf."""

    def run():
        more = tmp_path / 'more.conf'
        # The mini cloud has the rules of former years, by which readers may
        # update stacks.
        more.write_text('[oslo_policy]\nenforce_new_defaults = true')
        done = subprocess.run(
            [
                *(COMMAND, '--config-file', cloud.path / 'conf/heat.conf'),
                *('--config-file', more, 'upgrade', 'check', '--json'),
            ],
            env=cloud.env(),
            capture_output=True,
            text=True,
        )
        assert done.stderr == ''
        found = {
            one['check']: (one['result'], one['details'])
            for one in json.loads(done.stdout)['checks']
        }
        # The exit code is that of the worst.
        assert done.returncode == max(code for code, _ in found.values())
        return found

    return run


#: Ceph's gateway copies objects for the holder of a URL.
USUAL = {TEMP_URLS: WARNING} if conftest.STORE == 'rgw' else {}


def wrong(found):
    """Return the checks that do not say what they say of such a store."""
    return {
        name: code
        for name, (code, _) in found.items()
        if code != USUAL.get(name, SUCCESS)
    }


def said(found, name):
    return found[name][1]


@pytest.mark.quick
def test_right_settings_succeed_and_leave_nothing_behind(cloud, check):
    before = base.Leftovers.of(cloud)
    found = check()
    assert wrong(found) == {}, found
    assert 'heat-plugins serves 16 resource types' in said(found, TYPES)
    assert 'temp_url_secret' in said(found, SECRET)
    assert 'cloudformation answers at http' in said(found, WAYS)
    keeper = conftest.KEY_HEADER.split('-')[1].lower()
    signed = f'signed with {conftest.DIGEST} and the key of the {keeper}'
    assert signed in said(found, TEMP_URLS)
    assert 'Keystone gives trusts' in said(found, MISTRAL)
    before.hold(cloud)


def features(cloud, user='demo'):
    """What works here, as the command tells a program."""
    done = subprocess.run(
        [
            *(COMMAND, '--config-file', cloud.path / 'conf/heat.conf'),
            *('feature', 'list', '-f', 'json'),
        ],
        env=cloud.env(user),
        capture_output=True,
        text=True,
        check=True,
    )
    return {row['name']: row for row in json.loads(done.stdout)}


def test_it_tells_what_works_here(cloud):
    before = base.Leftovers.of(cloud)
    rows = features(cloud)
    assert not rows['Deployments by ZAQAR_SIGNAL'].pop('works')
    assert 'has no Zaqar' in rows.pop('Deployments by ZAQAR_SIGNAL')['reason']
    # Whether triggers fire can be told of those that there are.
    assert rows.pop('Cron triggers')['works'] is not False
    assert {row['works'] for row in rows.values()} == {True}, rows
    before.hold(cloud)
