# SPDX-License-Identifier: Apache-2.0
"""Actions that heat-engine runs by the clock, without Mistral."""

from collections.abc import Iterator
import json
import pathlib
import subprocess
import time
from typing import Any

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

Template = base.Template

#: A dead engine is known to be dead soon.
CONF = """\
[DEFAULT]
periodic_interval = 5

[heat_plugins]
rescue_interval = 3
"""

_BACKUP = """\
#!/bin/sh -e
echo "$deploy_action $level" >> "$journal"
"""


def template(journal: pathlib.Path, **properties: Any) -> Template:
    """Return a deployment with an action, and its schedule."""
    config = {
        'type': 'OS::Heat::SoftwareComponent',
        'properties': {
            'inputs': [
                {'name': 'journal', 'default': str(journal)},
                {'name': 'level', 'type': 'Number', 'default': 3},
            ],
            'configs': [
                {
                    'actions': ['CREATE'],
                    'tool': 'script',
                    'config': '#!/bin/sh\n',
                },
                {'actions': ['BACKUP'], 'tool': 'script', 'config': _BACKUP},
            ],
        },
    }
    whole = base.software(
        config=config, signal_transport='NO_SIGNAL', input_values={}
    )
    whole['resources']['schedule'] = {
        'type': 'OS::Heat::SoftwareSchedule',
        'properties': {
            'cron': '* * * * *',
            'action': 'BACKUP',
            'input_values': {'level': 9},
            'targets': [{'get_resource': 'deployment'}],
            **properties,
        },
    }
    whole['outputs'] = {
        name: {'value': {'get_attr': ['schedule', name]}}
        for name in (
            'next_times',
            'last_time',
            'last_operation',
            'last_outcome',
            'missed',
            'paused',
            'reason',
        )
    }
    return whole


@pytest.fixture
def alone(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path
) -> Iterator[base.minicloud_client.Cloud]:
    """A cloud whose engine is one process, and has no Mistral to ask."""
    conf = tmp_path / 'heat.conf'
    conf.write_text(CONF)
    yield from conftest.clouds(
        request, 'schedules', plugin=base.ROOT, conf=[conf]
    )


def openstack(cloud: base.minicloud_client.Cloud, *words: str) -> Any:
    """Run a command about deployments; return what it shows."""
    done = subprocess.run(
        ['openstack', 'software', 'deployment', *words, '-f', 'json'],
        env=cloud.env('demo'),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def operations(cloud: base.minicloud_client.Cloud) -> list[Any]:
    return list(openstack(cloud, 'operation', 'list'))


def lines(journal: pathlib.Path) -> list[str]:
    return journal.read_text().splitlines() if journal.exists() else []


def seconds_to_next_minute() -> float:
    return 60 - time.time() % 60


def ended(stack: base.Stack) -> Template | None:
    """Return the attributes of a schedule whose operation has ended."""
    shown: Template = stack.outputs
    is_over = shown['last_outcome'] not in ('', 'running')
    return shown if is_over else None


@pytest.mark.quick
def test_each_minute_is_an_operation(
    cloud: base.minicloud_client.Cloud, stacks: Any, tmp_path: pathlib.Path
) -> None:
    journal = tmp_path / 'journal'
    stack = stacks(template(journal), name='shop')
    stack.wait('CREATE_COMPLETE')
    shown = stack.outputs
    assert len(shown['next_times']) == 5
    assert (shown['last_time'], shown['missed']) == (None, 0)
    with servers.agent(cloud, stack):
        found = base.until(lambda: ended(stack), 120)
    assert found['last_outcome'] == 'complete', found
    assert found['reason'] == ''
    assert lines(journal)[0] == 'BACKUP 9'
    (head,) = (
        each
        for each in operations(cloud)
        if each['id'] == found['last_operation']
    )
    assert (head['created_by'], head['state']) == (
        'schedule schedule',
        'complete',
    )
    asked = 'schedule', 'list', 'shop'
    (listed,) = openstack(cloud, *asked)
    assert (listed['schedule'], listed['paused']) == ('schedule', '')
    paused = schedule(cloud, 'pause', '--note', 'a release')
    assert (paused['paused'], paused['next_times']) == ('a release', [])
    # An operation of the minute before may go on.
    base.until(lambda: stack.outputs['last_outcome'] != 'running', 120)
    ran = schedule(cloud, 'run')['last_operation']
    with servers.agent(cloud, stack):
        base.until(lambda: ended(stack), 120)
    assert stack.outputs['last_operation'] == ran
    assert schedule(cloud, 'show')['last_outcome'] == 'complete'
    for each in operations(cloud):
        assert each['state'] == 'complete'
        openstack(cloud, 'operation', 'delete', each['id'])
    resumed = schedule(cloud, 'resume')
    assert (resumed['paused'], len(resumed['next_times'])) == ('', 5)
    stack.action(suspend=None)
    stack.wait('SUSPEND_COMPLETE')
    assert stack.outputs['next_times'] == []


def schedule(
    cloud: base.minicloud_client.Cloud, verb: str, *options: str
) -> Any:
    words = 'schedule', verb, 'shop', 'schedule'
    return openstack(cloud, *words, *options)


@pytest.mark.long
def test_engines_that_die_around_a_tick_make_one_operation(
    alone: base.minicloud_client.Cloud, tmp_path: pathlib.Path
) -> None:
    journal = tmp_path / 'journal'
    stack = base.Stack(alone.session('demo'), template(journal), name='shop')
    stack.wait('CREATE_COMPLETE')
    with servers.agent(alone, stack):
        for late in (0.0, 0.15, 0.4):
            time.sleep(seconds_to_next_minute() + late)
            alone.crash('heat-engine')
            alone.start('heat-engine')
        base.until(
            lambda: (
                [each['state'] for each in operations(alone)][-3:]
                == ['complete'] * 3
            ),
            120,
        )
        stack.signal('schedule', {'do': 'pause'})
    found = operations(alone)
    ids = [each['id'] for each in found]
    assert len({each[:15] for each in ids}) == len(ids), ids
    assert len(lines(journal)) == len(ids), (lines(journal), ids)
    assert stack.outputs['missed'] == 0
