# SPDX-License-Identifier: Apache-2.0
"""heat-engine tells a webhook when a schedule's action fails."""

import contextlib
import json
import socket
import subprocess
import sys
import time

import pytest
import yaml

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers
from tests.functional import test_schedules as schedules

EXAMPLES = base.ROOT / 'contrib/examples/notices'
SECRET = 'a secret of this test alone'

#: Fails as long as a file is there.
_BACKUP = """\
#!/bin/sh
echo "$deploy_action" >> "$journal"
echo 'a word that must stay here'
! test -e "$journal.bad"
"""

_CONF = """\
[heat_plugins]
rescue_interval = 3
notify_hosts = http://127.0.0.1,http://127.0.0.1:{port}
"""


@contextlib.contextmanager
def receiving(port, log):
    """Run the example of a receiver, which prints what it verifies."""
    with log.open('a') as out:
        process = subprocess.Popen(
            [sys.executable, str(EXAMPLES / 'receiver.py'), str(port)],
            env={'NOTICE_SECRET': SECRET},
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def told(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def template(journal, port):
    example = yaml.safe_load((EXAMPLES / 'schedule.yaml').read_text())
    content = schedules.template(
        journal, notify=example['resources']['nightly']['properties']['notify']
    )
    parts = content['resources']['config']['properties']['configs']
    parts[1]['config'] = _BACKUP
    content['parameters'] |= {
        'hook': {
            'type': 'string',
            'hidden': True,
            'default': f'http://127.0.0.1:{port}/p4th',
        },
        'hook_secret': {'type': 'string', 'hidden': True, 'default': SECRET},
    }
    content['outputs'] |= {
        'notify_error': {'value': {'get_attr': ['schedule', 'notify_error']}}
    }
    return content


def start(cloud, file, port):
    """Start a run by a command, which is told; return its ID."""
    url = f'http://127.0.0.1:{port}/p4th'
    file.write_text(json.dumps({'url': url, 'secret': SECRET}))
    words = f'run start BACKUP --stack shop --notify {file}'.split()
    started = schedules.openstack(cloud, *words)
    assert started['notify'] == 'http://127.0.0.1'
    return str(started['id'])


@pytest.fixture
def port():
    """Return a free port, which the operator permits."""
    with socket.create_server(('127.0.0.1', 0)) as found:
        return int(found.getsockname()[1])


@pytest.fixture
def telling(request, tmp_path, port):
    """A cloud whose heat-engine may tell receivers on this machine."""
    conf = tmp_path / 'heat.conf'
    conf.write_text(_CONF.format(port=port))
    yield from conftest.clouds(
        request, 'notices', plugin=base.ROOT, conf=[conf]
    )


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_failure_and_the_recovery_are_told(telling, tmp_path, port):
    journal, log = tmp_path / 'journal', tmp_path / 'log'
    bad = tmp_path / 'journal.bad'
    bad.touch()
    log.touch()
    stack = base.Stack(
        telling.session('demo'), template(journal, port), name='shop'
    )
    stack.wait('CREATE_COMPLETE')
    schedule = schedules.schedule(telling, 'pause')
    assert schedule['notify'] == 'http://127.0.0.1'

    def run():
        ran = schedules.schedule(telling, 'run')['last_run']
        base.until(lambda: schedules.ended(stack), 120)
        assert stack.outputs['last_run'] == ran
        return str(ran)

    with servers.agent(telling, stack):
        begun = time.monotonic()
        failed = run()
        # No process listens, and the next run does not wait for that.
        run()
        assert time.monotonic() - begun < 90
        with receiving(port, log):
            base.until(lambda: len(told(log)) == 2, 90)
            bad.unlink()
            recovered = run()
            base.until(lambda: len(told(log)) == 3, 90)
            bad.touch()
            of_command = start(telling, tmp_path / 'notify.json', port)
            base.until(lambda: len(told(log)) == 4, 120)
    first, second, third, fourth = told(log)
    assert (first['id'], first['event']) == (f'{failed}.failure', 'failure')
    assert (second['event'], second['failures']) == ('failure', 2)
    assert third['id'] == f'{recovered}.recovery'
    assert fourth['event'] == 'failure'
    assert fourth['run'] == of_command
    assert fourth['servers'] == first['servers']
    assert first['stack'] == {'id': stack.id, 'name': 'shop'}
    assert first['servers'] == [
        {
            'stack': 'shop',
            'resource': 'deployment',
            'server': 'server',
            'state': 'failed',
        }
    ]
    assert stack.outputs['notify_error'] == ''
    assert 'must stay here' not in log.read_text()
    engine = telling.log('heat').read_text()
    assert 'p4th' not in engine
    assert SECRET not in engine
