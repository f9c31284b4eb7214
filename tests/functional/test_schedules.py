# SPDX-License-Identifier: Apache-2.0
"""Actions that heat-engine runs by the clock, without Mistral."""

import datetime
import json
import pathlib
import subprocess
import time
from typing import Any

import pytest

from tests.functional import base
from tests.functional import servers

Template = base.Template

#: A dead engine is known to be dead soon.
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
    """Return the operations that the schedule has started."""
    return [
        each
        for each in openstack(cloud, 'operation', 'list')
        if each['created_by'] == 'schedule schedule'
    ]


def lines(journal: pathlib.Path) -> list[str]:
    return journal.read_text().splitlines() if journal.exists() else []


def ended(stack: base.Stack) -> Template | None:
    """Return the attributes of a schedule whose operation has ended."""
    shown: Template = stack.outputs
    is_over = shown['last_outcome'] not in ('', 'starting', 'running')
    return shown if is_over else None


@pytest.mark.long
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
        (listed,) = openstack(cloud, 'schedule', 'list', 'shop')
        assert (listed['schedule'], listed['paused']) == ('schedule', '')
        paused = schedule(cloud, 'pause', '--note', 'a release')
        assert (paused['paused'], paused['next_times']) == ('a release', [])
        base.until(lambda: ended(stack), 120)
        ran = schedule(cloud, 'run')['last_operation']
        assert base.until(lambda: ended(stack), 120)['last_operation'] == ran
        assert len(schedule(cloud, 'resume')['next_times']) == 5
        schedule(cloud, 'pause')
        base.until(lambda: ended(stack), 120)
    stack.action(suspend=None)
    stack.wait('SUSPEND_COMPLETE')
    assert schedule(cloud, 'show')['last_outcome'] == 'complete'
    made = operations(cloud)
    assert {found['last_operation'], ran} <= {each['id'] for each in made}
    assert {each['state'] for each in made} == {'complete'}
    assert len(lines(journal)) == len(made)
    for each in made:
        openstack(cloud, 'operation', 'delete', each['id'])


def schedule(
    cloud: base.minicloud_client.Cloud, verb: str, *options: str
) -> Any:
    words = 'schedule', verb, 'shop', 'schedule'
    return openstack(cloud, *words, *options)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_times_before_the_schedule_become_operations_once(
    alone: base.minicloud_client.Cloud, tmp_path: pathlib.Path
) -> None:
    journal = tmp_path / 'journal'
    content = template(journal, cron='0 * * * *')
    stack = base.Stack(alone.session('demo'), content, name='shop')
    stack.wait('CREATE_COMPLETE')
    ends = [f'{at(hours):%FT%H}' for hours in (2, 1)]
    span = '--from', f'{ends[0]}:00', '--to', f'{ends[1]}:00'
    shown = schedule(alone, 'backfill', *span, '--dry-run')
    assert [each['state'] for each in shown] == ['not started'] * 2
    assert operations(alone) == []
    schedule(alone, 'backfill', *span)
    alone.crash('heat')
    alone.start('heat')
    with servers.agent(alone, stack):
        for _ in range(2):
            done = schedule(alone, 'backfill', *span, '--wait')
            assert [each['state'] for each in done] == ['complete'] * 2
    made = {each['id'] for each in operations(alone)}
    assert {each['operation'] for each in done} <= made
    assert len(lines(journal)) == len(made)
    assert schedule(alone, 'show')['backfill'] == 0


def at(hours: int) -> datetime.datetime:
    """Return the time some hours ago, in UTC."""
    return datetime.datetime.now(datetime.UTC) - datetime.timedelta(
        hours=hours
    )


def completed(cloud: base.minicloud_client.Cloud) -> list[str]:
    """Return the IDs of all operations once these are complete."""
    made = operations(cloud)
    is_over = all(each['state'] == 'complete' for each in made)
    return [each['id'] for each in made] if is_over else []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_engines_that_die_around_a_tick_make_one_operation(
    alone: base.minicloud_client.Cloud, tmp_path: pathlib.Path
) -> None:
    journal = tmp_path / 'journal'
    tick = int(time.time()) // 60 * 60 + 120
    # Of the ticks that come before a former one is created, one waits and the
    # others are missed: here none comes. Dead engines' claims delay it.
    content = template(journal, cron=f'{tick // 60 % 60} * * * *')
    stack = base.Stack(alone.session('demo'), content, name='shop')
    stack.wait('CREATE_COMPLETE')
    with servers.agent(alone, stack):
        time.sleep(tick - time.time())
        for late in (0.0, 0.15, 0.4):
            time.sleep(late)
            alone.crash('heat')
            alone.start('heat')
        base.until(lambda: ended(stack), 240)
        # What an engine has decided, and not created yet, this holds.
        schedule(alone, 'pause')
        made = base.until(lambda: completed(alone), 120)
    # Each minute at most once, and each of them has run once.
    assert len({each[:13] for each in made}) == len(made) > 0, made
    assert len(lines(journal)) == len(made), (lines(journal), made)
    assert stack.outputs['missed'] == 0
