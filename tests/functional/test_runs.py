# SPDX-License-Identifier: Apache-2.0
"""Actions on running stacks, on one server or on many.

Whoever starts a run is killed in its middle, and so is the engine that leads
it.
"""

import itertools
import signal

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import running
from tests.functional import servers

SECRET = 's3cret-of-the-day'

_BACKUP = """\
#!/bin/sh -e
[ "$password" != none ] && echo "with a password"
echo "backing up $database at level $level"
printf '12 MB' > "$heat_outputs_path.size"
"""

_SCRIPTS = {
    'CREATE UPDATE': '#!/bin/sh\necho "$deploy_action"\n',
    'BACKUP': _BACKUP,
    'FAILOVER': '#!/bin/sh\necho "no standby" >&2\nexit 3\n',
    'LIST': '#!/bin/sh\nseq 1 20000\n',
}


def template(*, deployments=1, **properties):
    """Return a database with actions, on a server of its own."""
    inputs = {'database': 'shop', 'level': 3, 'password': 'none'}
    return base.software(
        deployments=deployments,
        config=running.component(_SCRIPTS, inputs, ('size',)),
        outputs=[{'name': 'size'}],
        **{'input_values': {}, **properties},
    )


@pytest.fixture(scope='module')
def stack(cloud, module_stacks):
    """A stack whose server has done CREATE, and is switched off then."""
    found = module_stacks(template(), name='shop')
    with servers.agent(cloud, found):
        found.wait('CREATE_COMPLETE')
    return found


@pytest.fixture
def run(cloud):
    commands = running.Commands(cloud)
    yield commands
    assert SECRET not in commands.said
    assert SECRET not in cloud.log('heat').read_text()


def on(stack, action, *words):
    """Return the words of a command that starts an action on a stack."""
    return ('start', action, '--stack', stack.name, *words)


@pytest.mark.quick
def test_a_server_runs_actions_until_their_ends(cloud, stack, run, tmp_path):
    script = tmp_path / 'fix.sh'
    script.write_text('#!/bin/sh\necho "fixed by $who"\n')
    with servers.agent(cloud, stack):
        code, shown = run(
            *on(stack, 'BACKUP', '--wait', '--input', 'level=9'),
            *('--input', f'password={SECRET}'),
        )
        assert (code, shown['state']) == (0, 'complete'), shown
        stdout = 'with a password\nbacking up shop at level 9\n'
        assert shown['outputs']['deploy_stdout'] == stdout
        assert shown['outputs']['size'] == '12 MB'
        assert shown['inputs'] == ['level', 'password']
        # Several at a time, as they do not disturb each other.
        processes = [
            run.begin(*words, '--wait', '-f', 'json')
            for words in (
                on(stack, 'FAILOVER'),
                on(stack, 'LIST'),
                (
                    *('start', '--stack', stack.name, '--resource', 'server'),
                    *('--config-file', str(script), '--input', 'who=me'),
                ),
            )
        ]
        ends = [run.end(process) for process in processes]
        (failing, failed), (listing, listed), (code, fixed) = ends
        assert (failing, failed['state']) == (3, 'failed')
        assert failed['outputs']['deploy_stderr'] == 'no standby\n'
        assert listing == 0
        tail = listed['outputs']['deploy_stdout']
        assert tail.endswith('19999\n20000\n')
        assert (code, fixed['action']) == (0, 'APPLY')
        assert fixed['outputs']['deploy_stdout'] == 'fixed by me\n'
    _, whole = run('output', listed['id'], 'deploy_stdout', '--whole')
    assert whole['deploy_stdout'].startswith('1\n2\n3\n')
    # A part of the ID is enough.
    assert run('show', failed['id'][-8:])[1]['id'] == failed['id']
    _, found = run('list', '--stack', stack.name, '--state', 'complete')
    ids = {one['id'] for one in (shown, listed, fixed)}
    assert ids <= {one['id'] for one in found}
    assert failed['id'] not in {one['id'] for one in found}
    # Nothing is left of them but their records. Runs of other tests that were
    # cancelled may have left more.
    assert running.given(stack) == []
    path = f'{stack.container}?prefix=signals/'
    left = cloud.session().get('object-store', path).body.decode()
    assert not [one for one in (*ids, failed['id']) if one in left]
    # The stack's own deployment has not noticed.
    own = stack.deployment()
    assert own is not None
    assert (own.action, own.status) == ('CREATE', 'COMPLETE')


def test_what_a_server_has_not_seen_times_out_or_is_cancelled_and_never_runs(
    cloud, stack, run
):
    agent = servers.agent(cloud, stack)
    before = servers.has_run(agent)
    code, shown = run(*on(stack, 'BACKUP', '--wait', '--timeout', '3'))
    assert code == 4, shown
    assert 'timed-out' in (shown['state'], *shown['counts'])
    assert running.given(stack) == []
    run_id = run.start('BACKUP', '--stack', stack.name)
    base.until(lambda: running.given(stack) == ['deployment-BACKUP'])
    (config,) = running.configs(stack)
    assert run('cancel', run_id)[0] == 0
    base.until(lambda: run.state(run_id) == 'cancelled')
    assert running.given(stack) == []
    agent.once()
    assert servers.has_run(agent) == before
    # One that had seen it would answer all the same.
    base.answer(config, size='1')
    late = base.until(lambda: run('show', run_id)[1]['late_result'])
    assert late['status'] == 'complete'
    assert run.state(run_id) == 'cancelled'


def test_a_stack_that_goes_ends_its_runs(cloud, stacks, run):
    stack = stacks(template(), name='short-lived')
    with servers.agent(cloud, stack):
        stack.wait('CREATE_COMPLETE')
    process = run.begin(*on(stack, 'BACKUP', '--wait', '-f', 'json'))
    base.until(lambda: running.given(stack) == ['deployment-BACKUP'])
    # The fixture holds that nothing of the run stays behind.
    stack.remove()
    code, shown = run.end(process)
    assert code in (3, 5), shown
    assert 'was deleted' in str(shown)
    assert run('show', shown['id'])[0] == 0


STACKS = ['blue', 'green']
#: In each stack; and how many of all may run at a time.
SERVERS, MOST = 3, 2
PATIENCE = 170

_SLOW = running.GATED.replace('until', 'sleep 2; until')


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='the engine is one process'
)
@pytest.mark.long
def test_a_run_survives_who_starts_and_who_leads_it(alone, tmp_path):
    stacks = [
        base.Stack(alone.session(), running.fleet(SERVERS, _SLOW), name=name)
        for name in STACKS
    ]
    for stack in stacks:
        stack.wait('CREATE_COMPLETE', PATIENCE)
    journal = running.Journal(tmp_path, 'journal')
    journal.gate.touch()

    def wait_for(servers):
        base.until(lambda: sum(journal.ran().values()) >= servers, PATIENCE)

    user = running.client(alone)
    with running.switched_on(alone, stacks, running.of_fleet(SERVERS)):
        command = running.Commands(alone).begin(
            *('start', 'BACKUP', '--stack', 'blue', '--stack', 'green'),
            *('--yes', '--wait', *journal.options, '--input', 'broken=db1'),
            *('--max-concurrent', str(MOST), '--max-errors', '2'),
        )
        wait_for(1)
        command.send_signal(signal.SIGKILL)
        command.communicate()
        wait_for(MOST + 1)
        alone.crash('heat')
        alone.start('heat')
        (run,) = user.list(stack='blue')
        assert user.wait(run.id, PATIENCE).state == 'failed'
    # Both stacks call theirs so; each has run once.
    assert journal.ran() == {f'db{n}': len(STACKS) for n in range(SERVERS)}
    targets = list(user.targets(run.id, outputs=True))
    assert len(targets) == SERVERS * len(STACKS)
    assert {each.attempt for each in targets} == {1}
    # Times are in whole seconds: one ends before another starts.
    moments = sorted(
        moment
        for each in targets
        for moment in ((each.started_at, 1), (each.ended_at, -1))
    )
    at_once = itertools.accumulate(change for _, change in moments)
    assert max(at_once) <= MOST
    for each in targets:
        is_broken = each.resource == 'db1'
        assert each.state == ('failed' if is_broken else 'complete'), each
        printed = (each.outputs or {}).get('deploy_stdout')
        assert is_broken or printed == f'backed up {each.resource}\n'
    # Nothing is left of the run.
    base.until(
        lambda: (
            not any(
                running.given(stack, name)
                for stack in stacks
                for name in running.of_fleet(SERVERS)
            )
        )
    )
    user.delete(run.id)
    base.purge(stacks)


@pytest.mark.quick
@pytest.mark.long
def test_an_action_runs_once_at_a_time_and_is_paused_approved_and_retried(
    cloud, stacks, tmp_path
):
    stack = stacks(running.fleet(2))
    stack.wait('CREATE_COMPLETE', PATIENCE)
    journal = running.Journal(tmp_path, 'journal')
    commands, user = running.Commands(cloud), running.client(cloud)
    one = 'BACKUP', '--stack', stack.name, '--resource', 'db0'
    both = 'BACKUP', '--stack', stack.name, *journal.options
    with running.switched_on(cloud, [stack], running.of_fleet(2)):
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
        for run_id, ends in (
            (first, ['skipped', 'complete']),
            (third, ['complete', 'complete']),
        ):
            assert [each.state for each in user.targets(run_id)] == ends
        assert journal.ran() == {'db0': 2, 'db1': 2}

        journal.gate.unlink()
        fourth = commands.start(
            *(*both, '--canary', '1', '--approve-after-canary'),
            *('--input', 'broken=db1'),
        )
        base.until(lambda: journal.ran() == {'db0': 3, 'db1': 2}, PATIENCE)
        # What has started continues.
        assert commands('pause', fourth)[1]['state'] == 'paused'
        assert commands('resume', fourth)[0] == 0
        journal.gate.touch()
        base.until(lambda: commands.state(fourth) == 'waiting-for-approval')
        assert journal.ran() == {'db0': 3, 'db1': 2}
        assert commands('resume', fourth)[0] == 0
        code, ended = commands('wait', fourth)
        assert (code, ended['state']) == (3, 'failed')
        code, again = commands('retry', fourth, '--wait')
        assert (code, again['state']) == (3, 'failed')
        assert journal.ran() == {'db0': 3, 'db1': 4}
        attempts = [each.attempt for each in user.targets(fourth)]
        assert attempts == [1, 2]
    code, said = commands('delete', single, first, second['id'], third, fourth)
    assert code == 0, said
    assert list(user.list(stack=stack.name)) == []
