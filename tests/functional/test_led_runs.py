# SPDX-License-Identifier: Apache-2.0
"""One action on many servers, which heat-engine leads, with real agents.

Whoever starts a run is killed in its middle, and so is the engine that leads
it. ``FUNCTIONAL_FLEET`` says how many agents there are.
"""

import os
import pathlib
import signal
import time
from typing import Any

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import flows
from tests.functional import running

STACKS = ['blue', 'green']
#: In each stack.
SERVERS = int(os.environ.get('FUNCTIONAL_FLEET', '6')) // len(STACKS)
TARGETS = SERVERS * len(STACKS)
#: At a time.
MOST = max(2, TARGETS // 3)
PATIENCE = 120 + 8 * TARGETS

_SLOW = running.GATED.replace('until', 'sleep 2; until')


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='the engine is one process'
)
@pytest.mark.long
@pytest.mark.timeout(300 + 60 * TARGETS)
def test_a_run_survives_who_starts_and_who_leads_it(
    alone: base.Cloud, tmp_path: pathlib.Path
) -> None:
    stacks = [
        base.Stack(alone.session(), running.fleet(SERVERS, _SLOW), name=name)
        for name in STACKS
    ]
    for stack in stacks:
        stack.wait('CREATE_COMPLETE', PATIENCE)
    with running.switched_on(alone, STACKS, SERVERS):
        for begin in _by_command, _by_workflow:
            journal = running.Journal(tmp_path, begin.__name__)
            journal.gate.touch()
            broken = begin(alone, journal)
            _check(alone, journal, broken)
    for stack in stacks:
        for n in range(SERVERS):
            # Nothing is left of the runs.
            assert not running.given(stack, f'server{n}')


def _by_command(alone: base.Cloud, journal: running.Journal) -> str:
    """Start a run by a command, which is killed, and then the engine is."""
    command = running.Commands(alone).begin(
        *('start', 'BACKUP', '--stack', 'blue', '--stack', 'green', '--yes'),
        *('--max-concurrent', str(MOST), '--wait', *journal.options),
    )
    _wait_for(journal, 1)
    command.send_signal(signal.SIGKILL)
    command.communicate()
    _wait_for(journal, MOST + 1)
    alone.crash('heat')
    alone.start('heat')
    return ''


def _by_workflow(alone: base.Cloud, journal: running.Journal) -> str:
    """Start one with failures by a workflow, without which it ends."""
    flows.Executions(alone.session()).start(
        'software_deployment.run',
        action='BACKUP',
        stacks=STACKS,
        input_values={**journal.inputs, 'broken': 'db1'},
        max_concurrent=str(MOST),
        max_errors=str(len(STACKS)),
    )
    _wait_for(journal, 1)
    alone.crash('mistral')
    alone.start('mistral')
    return 'db1'


def _wait_for(journal: running.Journal, servers: int) -> None:
    base.until(lambda: sum(journal.ran().values()) >= servers, PATIENCE)


def _check(cloud: base.Cloud, journal: running.Journal, broken: str) -> None:
    """Hold that the last run has kept its promises."""
    user = running.client(cloud)
    last = next(iter(user.list(limit=1)))
    begun = time.monotonic()
    ended = user.wait(last.id, PATIENCE)
    print(f'ended after {time.monotonic() - begun:.0f} s')
    assert ended.state == ('failed' if broken else 'complete'), ended
    # Both stacks call theirs so; each has run once.
    assert journal.ran() == {f'db{n}': len(STACKS) for n in range(SERVERS)}
    targets = list(user.targets(last.id, outputs=True))
    assert len(targets) == TARGETS
    assert {each.attempt for each in targets} == {1}
    assert _most_at_once(targets) <= MOST
    for each in targets:
        is_broken = each.resource == broken
        assert each.state == ('failed' if is_broken else 'complete'), each
        printed = (each.outputs or {}).get('deploy_stdout')
        assert is_broken or printed == f'backed up {each.resource}\n'


def _most_at_once(targets: list[Any]) -> int:
    """Return how many targets were at work at a time."""
    # Times are in whole seconds: one ends before another starts.
    moments = sorted(
        moment
        for each in targets
        for moment in ((each.started_at, 1), (each.ended_at, -1))
    )
    now = most = 0
    for _, change in moments:
        now += change
        most = max(most, now)
    return most


@pytest.mark.quick
@pytest.mark.long
def test_an_action_runs_once_at_a_time_whoever_starts_it(
    cloud: base.Cloud, stacks: base.Make, tmp_path: pathlib.Path
) -> None:
    stack = stacks(running.fleet(2))
    stack.wait('CREATE_COMPLETE', PATIENCE)
    journal = running.Journal(tmp_path, 'journal')
    commands, user = running.Commands(cloud), running.client(cloud)
    one = 'BACKUP', '--stack', stack.name, '--resource', 'db0'
    both = 'BACKUP', '--stack', stack.name, *journal.options
    with running.switched_on(cloud, [stack.name], 2):
        single = commands.start(*one, *journal.options)
        base.until(journal.ran, PATIENCE)
        # Others meet it, and one another.
        first = commands.start(*both)
        base.until(lambda: len(journal.ran()) == 2, PATIENCE)
        code, second = commands('start', *both, '--wait')
        # Nothing ran.
        assert (code, second['state']) == (1, 'failed')
        met = list(user.targets(second['id']))
        assert [each.state for each in met] == ['skipped', 'skipped']
        assert single in met[0].reason
        assert first in met[1].reason
        third = commands.start(*both, '--if-running', 'wait')
        base.until(
            lambda: all(each.reason for each in user.targets(third)), PATIENCE
        )
        assert journal.ran() == {'db0': 1, 'db1': 1}
        journal.gate.touch()
        for run_id in single, first, third:
            assert user.wait(run_id, PATIENCE).state == 'complete'
        assert running.states(user, first) == ['skipped', 'complete']
        assert running.states(user, third) == ['complete', 'complete']
        assert journal.ran() == {'db0': 2, 'db1': 2}
    code, said = commands('delete', single, first, second['id'], third)
    assert code == 0, said
    assert list(user.list(stack=stack.name)) == []


def test_a_run_waits_for_approval_is_paused_and_retried(
    cloud: base.Cloud, stacks: base.Make, tmp_path: pathlib.Path
) -> None:
    stack = stacks(running.fleet(2))
    stack.wait('CREATE_COMPLETE', PATIENCE)
    journal = running.Journal(tmp_path, 'journal')
    commands, user = running.Commands(cloud), running.client(cloud)
    with running.switched_on(cloud, [stack.name], 2):
        run_id = commands.start(
            *('BACKUP', '--stack', stack.name, '--canary', '1'),
            *('--approve-after-canary', *journal.options),
            *('--input', 'broken=db1'),
        )
        base.until(journal.ran, PATIENCE)
        # What has started continues.
        assert commands('pause', run_id)[1]['state'] == 'paused'
        assert commands('resume', run_id)[0] == 0
        journal.gate.touch()
        base.until(lambda: commands.state(run_id) == 'waiting-for-approval')
        assert journal.ran() == {'db0': 1}
        assert commands('resume', run_id)[0] == 0
        code, ended = commands('wait', run_id)
        assert (code, ended['state']) == (3, 'failed')
        code, again = commands('retry', run_id, '--wait')
        assert (code, again['state']) == (3, 'failed')
        assert journal.ran() == {'db0': 1, 'db1': 2}
        attempts = [each.attempt for each in user.targets(run_id)]
        assert attempts == [1, 2]
