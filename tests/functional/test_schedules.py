# SPDX-License-Identifier: Apache-2.0
"""Actions that heat-engine runs by the clock, and webhooks that it tells."""

import datetime
import json
import subprocess
import sys
import time

import pytest
import yaml

from tests.functional import base
from tests.functional import running
from tests.functional import servers

_BACKUP = '#!/bin/sh\necho "$deploy_action $level" >> "$journal"\n'


def template(journal, **properties):
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


def started(cloud, stack):
    """Return the runs that the schedule has started."""
    return [
        run
        for run in running.client(cloud).list(stack=stack.id)
        if run.created_by == 'schedule schedule'
    ]


def lines(journal):
    return journal.read_text().splitlines() if journal.exists() else []


def ended(stack):
    """Return the attributes of a schedule whose run has ended."""
    shown = stack.outputs
    is_over = shown['last_outcome'] not in ('', 'starting', 'running')
    return shown if is_over else None


@pytest.mark.long
def test_each_minute_is_a_run(cloud, stacks, tmp_path):
    journal = tmp_path / 'journal'
    stack = stacks(template(journal), name='shop').created()
    shown = stack.outputs
    assert len(shown['next_times']) == 5
    assert (shown['last_time'], shown['missed']) == (None, 0)
    with servers.agent(cloud, stack):
        found = base.until(lambda: ended(stack), 120)
        assert found['last_outcome'] == 'complete', found
        assert found['reason'] == ''
        assert lines(journal)[0] == 'BACKUP 9'
        (listed,) = cloud.software('schedule list shop')
        assert (listed['schedule'], listed['paused']) == ('schedule', '')
        paused = schedule(cloud, 'pause', '--note', 'a release')
        assert (paused['paused'], paused['next_times']) == ('a release', [])
        base.until(lambda: ended(stack), 120)
        ran = schedule(cloud, 'run')['last_run']
        assert base.until(lambda: ended(stack), 120)['last_run'] == ran
        assert len(schedule(cloud, 'resume')['next_times']) == 5
        schedule(cloud, 'pause')
        base.until(lambda: ended(stack), 120)
    stack.acts(suspend=None)
    assert schedule(cloud, 'show')['last_outcome'] == 'complete'
    made = started(cloud, stack)
    assert {found['last_run'], ran} <= {each.id for each in made}
    assert {each.state for each in made} == {'complete'}
    assert len(lines(journal)) == len(made)
    for each in made:
        running.client(cloud).delete(each.id)


def schedule(cloud, verb, *options):
    return cloud.software(f'schedule {verb} shop schedule', *options)


@pytest.mark.long
def test_engines_that_die_make_one_run_of_each_time(alone, tmp_path):
    journal = tmp_path / 'journal'
    tick = int(time.time()) // 60 * 60 + 120
    # Of the ticks that come before a former one is created, one waits and the
    # others are missed: here none comes. Dead engines' claims delay it.
    content = template(journal, cron=f'{tick // 60 % 60} * * * *')
    stack = base.Stack(alone.session(), content, name='shop').created()
    with servers.agent(alone, stack):
        time.sleep(tick - time.time())
        for late in (0.0, 0.15, 0.4):
            time.sleep(late)
            alone.crash('heat')
            alone.start('heat')
        base.until(lambda: ended(stack), 240)
        # So do times before the schedule.
        first, last = (
            datetime.datetime.fromtimestamp(tick - 3600 * hours, datetime.UTC)
            for hours in (2, 1)
        )
        span = '--from', f'{first:%FT%H:%M}', '--to', f'{last:%FT%H:%M}'
        shown = schedule(alone, 'backfill', *span, '--dry-run')
        assert [each['state'] for each in shown] == ['not started'] * 2
        assert len(started(alone, stack)) == 1
        schedule(alone, 'backfill', *span)
        alone.crash('heat')
        alone.start('heat')
        for _ in range(2):
            done = schedule(alone, 'backfill', *span, '--wait')
            assert [each['state'] for each in done] == ['complete'] * 2
        made = started(alone, stack)
    assert {each['run'] for each in done} <= {each.id for each in made}
    assert {each.state for each in made} == {'complete'}
    # Each has run once.
    assert len(made) == len(lines(journal)) == 3, (lines(journal), made)
    assert schedule(alone, 'show')['backfill'] == 0
    assert stack.outputs['missed'] == 0
    stack.remove()


NOTICES = base.ROOT / 'contrib/examples/notices'
SECRET = 'a secret of this test alone'

#: Fails as long as a file is there.
_FAILS = """\
#!/bin/sh
echo 'a word that must stay here'
! test -e "$journal.bad"
"""


@pytest.mark.long
def test_a_failure_and_the_recovery_are_told(
    cloud, stacks, hook_port, tmp_path
):
    hook = {'url': f'http://127.0.0.1:{hook_port}/p4th', 'secret': SECRET}
    journal, log = tmp_path / 'journal', tmp_path / 'log'
    bad = tmp_path / 'journal.bad'
    bad.touch()
    example = yaml.safe_load((NOTICES / 'schedule.yaml').read_text())
    notify = example['resources']['nightly']['properties']['notify']
    content = template(journal, notify=notify)
    parts = content['resources']['config']['properties']['configs']
    parts[1]['config'] = _FAILS
    content['parameters'] |= {
        name: {'type': 'string', 'hidden': True, 'default': value}
        for name, value in (('hook', hook['url']), ('hook_secret', SECRET))
    }
    content['outputs']['notify_error'] = {
        'value': {'get_attr': ['schedule', 'notify_error']}
    }
    stack = stacks(content, name='shop').created()
    assert schedule(cloud, 'pause')['notify'] == 'http://127.0.0.1'

    def run():
        ran = schedule(cloud, 'run')['last_run']
        base.until(lambda: ended(stack), 120)
        assert stack.outputs['last_run'] == ran
        return str(ran)

    def told(count):
        """Wait for what the receiver prints, which it has verified."""

        def there():
            found = lines(log)
            return found if len(found) == count else None

        return [json.loads(line) for line in base.until(there, 120)]

    with servers.agent(cloud, stack), log.open('a') as out:
        begun = time.monotonic()
        failed = run()
        # No process listens, and the next run does not wait for that.
        run()
        assert time.monotonic() - begun < 90
        receiver = subprocess.Popen(
            [sys.executable, str(NOTICES / 'receiver.py'), str(hook_port)],
            env={'NOTICE_SECRET': SECRET},
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
        try:
            told(2)
            bad.unlink()
            recovered = run()
            told(3)
            bad.touch()
            # A run that a command starts is told as well.
            file = tmp_path / 'notify.json'
            file.write_text(json.dumps(hook))
            words = f'run start BACKUP --stack shop --notify {file}'
            by_command = cloud.software(words)
            assert by_command['notify'] == 'http://127.0.0.1'
            first, second, third, fourth = told(4)
        finally:
            receiver.kill()
            receiver.wait()
    assert (first['id'], first['event']) == (f'{failed}.failure', 'failure')
    assert (second['event'], second['failures']) == ('failure', 2)
    assert third['id'] == f'{recovered}.recovery'
    assert (fourth['event'], fourth['run']) == ('failure', by_command['id'])
    assert first['stack'] == {'id': stack.id, 'name': 'shop'}
    expected = {
        'stack': 'shop',
        'resource': 'deployment',
        'server': 'server',
        'state': 'failed',
    }
    assert first['servers'] == fourth['servers'] == [expected]
    assert stack.outputs['notify_error'] == ''
    assert 'must stay here' not in log.read_text()
    engine = cloud.log('heat').read_text()
    assert 'p4th' not in engine
    assert SECRET not in engine
