# SPDX-License-Identifier: Apache-2.0
"""The mini cloud itself, with Heat's own classes.

These make an instance of their own and throw it away.
"""

import pathlib

import pytest

from tests.functional import base

minicloud_client = base.minicloud_client


def made(cloud, name, **options):
    """Create a stack with Heat's own class of deployment."""
    options = {'signal_transport': 'TEMP_URL_SIGNAL', **options}
    return base.Stack(cloud.session(), base.software(**options), name=name)


@pytest.fixture(scope='module')
def cloud():
    instance = minicloud_client.Cloud(base.cloud_name('selftest'))
    instance.down(purge=True)
    instance.up(plugin='none')
    yield instance
    instance.down(purge=True)


def test_agent_stops_with_its_hooks(cloud):
    # timeout(1) makes a process group of its own.
    script = '#!/bin/sh\necho $$ > pid\nexec timeout 1000 sleep 1000\n'
    stack = made(cloud, 'hook', script=script)
    agent = cloud.agent('hook', stack='hook', resource='server').start()
    file = agent.path / 'var/script/pid'
    base.until(file.exists)
    hook = pathlib.Path('/proc') / file.read_text().strip()
    assert hook.exists()
    agent.stop()
    base.until(lambda: not hook.exists(), 5)
    stack.purge()


def test_fault_rules_apply_as_told(cloud):
    demo = cloud.session()
    assert demo.put('object-store', '/faults').status in (201, 202)
    assert demo.put('object-store', '/faults/a', b'x').status == 201
    rules = [
        {'method': 'GET', 'path': '.*/faults/a', 'status': 503, 'count': 1},
        {'method': 'GET', 'path': '.*/faults', 'hide_from_listing': '^a$'},
        {'method': 'PUT', 'status': 500, 'after': True},
    ]
    with cloud.faults(rules):
        answers = [demo.get('object-store', '/faults/a') for _ in range(2)]
        assert [answer.status for answer in answers] == [503, 200]
        listing = demo.get('object-store', '/faults?format=json')
        assert listing.json() == []
        assert demo.put('object-store', '/faults/b', b'y').status == 500
    names = demo.get('object-store', '/faults').body.split()
    assert names == [b'a', b'b']


def test_failed_start_leaves_no_process(cloud, tmp_path):
    conf = tmp_path / 'bad.conf'
    conf.write_text('[DEFAULT]\nauth_encryption_key = short\n')
    other = minicloud_client.Cloud(base.cloud_name('selftest-bad'))
    with pytest.raises(minicloud_client.CommandError) as caught:
        other.up(plugin='none', conf=[conf])
    assert 'must be 32 characters' in str(caught.value)
    assert not [row for row in other.status()['services'] if row['running']]
    other.down(purge=True)


def test_everything_is_back_after_down_and_up(cloud):
    demo = cloud.session()
    assert demo.put('object-store', '/kept').status in (201, 202)
    ports = [row['url'] for row in cloud.status()['services']]
    cloud.down()
    cloud.up(plugin='none')
    assert [row['url'] for row in cloud.status()['services']] == ports
    assert cloud.session().get('object-store', '/kept').status == 204
