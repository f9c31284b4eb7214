# SPDX-License-Identifier: Apache-2.0
"""Actions that heat-engine runs by the clock, without Mistral."""

import datetime
import json
import pathlib
import subprocess
import time
from typing import Any

import pytest

from heat_plugins.clients import runs
from tests.functional import base
from tests.functional import running
from tests.functional import servers

Template = base.Template

_BACKUP = """\
#!/bin/sh -e
echo "$deploy_action $level" >> "$journal"
"""


def template(journal: pathlib.Path, **properties: Any) -> Template:
    """Return a deployment with an action, and its schedule."""
    config = running.component(
        {'CREATE': '#!/bin/sh\n', 'BACKUP': _BACKUP},
        {'journal': str(journal), 'level': 3},
    )
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
            'last_run',
            'last_outcome',
            'missed',
            'paused',
            'reason',
        )
    }
    return whole


def openstack(cloud: base.Cloud, *words: str) -> Any:
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


def started(cloud: base.Cloud) -> list[runs.Run]:
    """Return the runs that the schedule has started."""
    return [
        run
        for run in running.client(cloud).list()
        if run.created_by == 'schedule schedule'
    ]


def lines(journal: pathlib.Path) -> list[str]:
    return journal.read_text().splitlines() if journal.exists() else []


def ended(stack: base.Stack) -> Template | None:
    """Return the attributes of a schedule whose run has ended."""
    shown: Template = stack.outputs
    is_over = shown['last_outcome'] not in ('', 'starting', 'running')
    return shown if is_over else None


@pytest.mark.long
def test_each_minute_is_a_run(
    cloud: base.Cloud, stacks: Any, tmp_path: pathlib.Path
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
        ran = schedule(cloud, 'run')['last_run']
        assert base.until(lambda: ended(stack), 120)['last_run'] == ran
        assert len(schedule(cloud, 'resume')['next_times']) == 5
        schedule(cloud, 'pause')
        base.until(lambda: ended(stack), 120)
    stack.action(suspend=None)
    stack.wait('SUSPEND_COMPLETE')
    assert schedule(cloud, 'show')['last_outcome'] == 'complete'
    made = started(cloud)
    assert {found['last_run'], ran} <= {each.id for each in made}
    assert {each.state for each in made} == {'complete'}
    assert len(lines(journal)) == len(made)
    for each in made:
        running.client(cloud).delete(each.id)


def schedule(cloud: base.Cloud, verb: str, *options: str) -> Any:
    words = 'schedule', verb, 'shop', 'schedule'
    return openstack(cloud, *words, *options)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_times_before_the_schedule_become_runs_once(
    alone: base.Cloud, tmp_path: pathlib.Path
) -> None:
    journal = tmp_path / 'journal'
    content = template(journal, cron='0 * * * *')
    stack = base.Stack(alone.session('demo'), content, name='shop')
    stack.wait('CREATE_COMPLETE')
    ends = [f'{at(hours):%FT%H}' for hours in (2, 1)]
    span = '--from', f'{ends[0]}:00', '--to', f'{ends[1]}:00'
    shown = schedule(alone, 'backfill', *span, '--dry-run')
    assert [each['state'] for each in shown] == ['not started'] * 2
    assert started(alone) == []
    schedule(alone, 'backfill', *span)
    alone.crash('heat')
    alone.start('heat')
    with servers.agent(alone, stack):
        for _ in range(2):
            done = schedule(alone, 'backfill', *span, '--wait')
            assert [each['state'] for each in done] == ['complete'] * 2
    made = {each.id for each in started(alone)}
    assert {each['run'] for each in done} <= made
    assert len(lines(journal)) == len(made)
    assert schedule(alone, 'show')['backfill'] == 0


def at(hours: int) -> datetime.datetime:
    """Return the time some hours ago, in UTC."""
    return datetime.datetime.now(datetime.UTC) - datetime.timedelta(
        hours=hours
    )


@pytest.mark.long
@pytest.mark.timeout(600)
def test_engines_that_die_around_a_tick_make_one_run(
    alone: base.Cloud, tmp_path: pathlib.Path
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
        schedule(alone, 'pause')
        made = started(alone)
        for each in made:
            each = running.client(alone).wait(each.id, 120)
            assert each.state == 'complete', each
    # The tick is one run, which has run once.
    assert len(made) == len(lines(journal)) == 1, (lines(journal), made)
    assert stack.outputs['missed'] == 0
