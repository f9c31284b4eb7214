# SPDX-License-Identifier: Apache-2.0
"""Actions on a running stack, through ``openstack`` and a real agent."""

from collections.abc import Iterator
import pathlib
from typing import Any

import pytest

from tests.functional import base
from tests.functional import running
from tests.functional import servers

Template = base.Template

SECRET = 's3cret-of-the-day'

_BACKUP = """\
#!/bin/sh -e
[ -n "$password" ] && [ "$password" != none ] && echo "with a password"
echo "backing up $database at level $level"
printf '12 MB' > "$heat_outputs_path.size"
"""

_SCRIPTS = {
    'CREATE UPDATE': '#!/bin/sh\necho "$deploy_action"\n',
    'BACKUP': _BACKUP,
    'FAILOVER': '#!/bin/sh\necho "no standby" >&2\nexit 3\n',
    'LIST': '#!/bin/sh\nseq 1 20000\n',
}


def template(*, deployments: int = 1, **properties: Any) -> Template:
    """Return a database with actions, on a server of its own."""
    inputs = {'database': 'shop', 'level': 3, 'password': 'none'}
    return base.software(
        deployments=deployments,
        config=running.component(_SCRIPTS, inputs, ('size',)),
        outputs=[{'name': 'size'}],
        **{'input_values': {}, **properties},
    )


@pytest.fixture(scope='module')
def stack(cloud: base.Cloud, module_stacks: Any) -> base.Stack:
    """A stack whose server has done CREATE, and is switched off then."""
    found: base.Stack = module_stacks(template(), name='shop')
    with servers.agent(cloud, found):
        found.wait('CREATE_COMPLETE')
    return found


@pytest.fixture
def run(cloud: base.Cloud) -> Iterator[running.Commands]:
    commands = running.Commands(cloud)
    yield commands
    assert SECRET not in commands.said
    assert SECRET not in cloud.log('heat').read_text()


def on(stack: base.Stack, action: str, *words: str) -> tuple[str, ...]:
    """Return the words of a command that starts an action on a stack."""
    return ('start', action, '--stack', stack.name, *words)


@pytest.mark.quick
@pytest.mark.timeout(300)
def test_a_server_runs_actions_until_their_ends(
    cloud: base.Cloud,
    stack: base.Stack,
    run: running.Commands,
    tmp_path: pathlib.Path,
) -> None:
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
    path = f'/heat-plugins-{stack.id}?prefix=signals/'
    left = cloud.session().get('object-store', path).body.decode()
    assert not [one for one in (*ids, failed['id']) if one in left]
    # The stack's own deployment has not noticed.
    own = stack.deployment()
    assert own is not None
    assert (own.action, own.status) == ('CREATE', 'COMPLETE')


def test_a_server_that_is_away_lets_it_time_out(
    stack: base.Stack, run: running.Commands
) -> None:
    code, shown = run(*on(stack, 'BACKUP', '--wait', '--timeout', '3'))
    assert code == 4, shown
    assert 'timed-out' in (shown['state'], *shown['counts'])
    assert running.given(stack) == []


def test_what_a_server_has_not_seen_it_never_runs(
    cloud: base.Cloud, stack: base.Stack, run: running.Commands
) -> None:
    agent = servers.agent(cloud, stack)
    before = servers.has_run(agent)
    run_id = run.start('BACKUP', '--stack', stack.name)
    base.until(lambda: running.given(stack) == ['deployment-BACKUP'])
    url = running.signal_url(stack, 'deployment-BACKUP')
    assert run('cancel', run_id)[0] == 0
    base.until(lambda: run.state(run_id) == 'cancelled')
    assert running.given(stack) == []
    agent.once()
    assert servers.has_run(agent) == before
    # One that had seen it would answer all the same.
    assert base.put(url, servers.body(size='1')) == 201
    late = base.until(lambda: run('show', run_id)[1]['late_result'])
    assert late['status'] == 'complete'
    assert run.state(run_id) == 'cancelled'


def test_a_deployment_and_a_stack_that_go_end_their_runs(
    cloud: base.Cloud, stacks: base.Make, run: running.Commands
) -> None:
    whole = template(deployments=2)
    stack = stacks(whole, name='short-lived')
    with servers.agent(cloud, stack):
        stack.wait('CREATE_COMPLETE')

    def begin(deployment: str) -> Any:
        process = run.begin(
            *on(stack, 'BACKUP', '--resource', deployment, '--wait'),
            *('-f', 'json'),
        )
        base.until(lambda: running.given(stack) == [f'{deployment}-BACKUP'])
        return process

    process = begin('deployment0')
    del whole['resources']['deployment0'], whole['outputs']
    stack.update(whole)
    code, shown = run.end(process)
    assert code in (3, 5), shown
    assert 'deployment0' in str(shown)
    stack.wait('UPDATE_COMPLETE')
    process = begin('deployment1')
    # The fixture holds that nothing of the runs stays behind.
    stack.delete()
    stack.wait('DELETE_COMPLETE')
    code, shown = run.end(process)
    assert code in (3, 5), shown
    assert 'was deleted' in str(shown)
    assert run('show', shown['id'])[0] == 0
