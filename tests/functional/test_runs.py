# SPDX-License-Identifier: Apache-2.0
"""Actions on a running stack, through ``openstack`` and a real agent."""

from collections.abc import Iterator
import concurrent.futures
import json
import pathlib
import subprocess
from typing import Any

import pytest

from tests.functional import base
from tests.functional import servers

Template = base.Template

SECRET = 's3cret-of-the-day'

_BACKUP = """\
#!/bin/sh -e
[ -n "$password" ] && [ "$password" != none ] && echo "with a password"
echo "backing up $database at level $level"
printf '12 MB' > "$heat_outputs_path.size"
"""

_SLOW = """\
#!/usr/bin/env python3
import os, time, urllib.request
urllib.request.urlopen(
    urllib.request.Request(
        os.environ['deploy_progress_url'],
        b'{"progress": 40, "message": "table 4 of 10"}',
        method='PUT',
    )
)
until = time.monotonic() + 90
while time.monotonic() < until and not os.path.exists(os.environ['database']):
    time.sleep(0.2)
"""

_SCRIPTS = {
    ('CREATE', 'UPDATE'): '#!/bin/sh\necho "$deploy_action"\n',
    ('BACKUP',): _BACKUP,
    ('FAILOVER',): '#!/bin/sh\necho "no standby" >&2\nexit 3\n',
    ('LIST',): '#!/bin/sh\nseq 1 20000\n',
    ('SLOW',): _SLOW,
}


def template(*, deployments: int = 1, **properties: Any) -> Template:
    """Return a database with actions, on a server of its own."""
    config = {
        'type': 'OS::Heat::SoftwareComponent',
        'properties': {
            'inputs': [
                {'name': 'database', 'type': 'String', 'default': 'shop'},
                {'name': 'level', 'type': 'Number', 'default': 3},
                {'name': 'password', 'type': 'String', 'default': 'none'},
            ],
            'outputs': [{'name': 'size'}],
            'configs': [
                {'actions': list(names), 'tool': 'script', 'config': script}
                for names, script in _SCRIPTS.items()
            ],
        },
    }
    return base.software(
        deployments=deployments,
        config=config,
        outputs=[{'name': 'size'}],
        **{'input_values': {}, **properties},
    )


class Commands:
    """``openstack software deployment …`` of one user, for one stack."""

    def __init__(
        self, cloud: base.minicloud_client.Cloud, stack: str, user: str
    ) -> None:
        self._env = cloud.env(user)
        self._stack = stack
        #: All that was printed.
        self.said = ''

    def begin(self, command: str, *arguments: str) -> Any:
        return subprocess.Popen(
            [
                *('openstack', 'software', 'deployment', *command.split()),
                *(self._stack, *arguments, '-f', 'json'),
            ],
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, process: Any) -> tuple[int, Any]:
        output, errors = process.communicate(timeout=100)
        self.said += output + errors
        code = process.returncode
        return code, json.loads(output) if output.strip() else errors

    def __call__(self, command: str, *arguments: str) -> tuple[int, Any]:
        """Run one; its exit code, and what it printed."""
        return self.end(self.begin(command, *arguments))


@pytest.fixture(scope='module')
def stack(
    cloud: base.minicloud_client.Cloud, module_stacks: Any
) -> base.Stack:
    """A stack whose server has done CREATE, and is switched off then."""
    found = module_stacks(template(), name='shop')
    with servers.agent(cloud, found):
        found.wait('CREATE_COMPLETE')
    return found


@pytest.fixture
def run(
    cloud: base.minicloud_client.Cloud, stack: base.Stack
) -> Iterator[Commands]:
    commands = Commands(cloud, stack.name, 'demo')
    yield commands
    assert SECRET not in commands.said
    assert SECRET not in cloud.log('heat').read_text()


def given(stack: base.Stack) -> list[str]:
    """Return the names of the runs' configs that the server is given."""
    names = [one['name'] for one in stack.metadata()]
    return [name for name in names if '-' in name]


def garble(
    cloud: base.minicloud_client.Cloud, stack: base.Stack, run_id: str
) -> str:
    """Write over the record of a run; return where it lies."""
    swift = cloud.session()
    container = f'/heat-plugins-{stack.id}'
    prefix = f'{container}?prefix=runs/records/{run_id}/'
    name = swift.get('object-store', prefix).body.decode().strip()
    path = f'{container}/{name}'
    assert swift.put('object-store', path, b'{"id":').ok
    return path.removeprefix('/')


def signal_url(stack: base.Stack, name: str) -> str:
    """Return where a server sends the result of a config that it is given."""
    (config,) = [one for one in stack.metadata() if one['name'] == name]
    return base.signal_url(config)


@pytest.mark.quick
def test_actions_are_listed_with_their_inputs(run: Commands) -> None:
    code, found = run('action list')
    assert code == 0
    actions = [one['Action'] for one in found]
    assert actions == ['BACKUP', 'FAILOVER', 'LIST', 'SLOW']
    types = {one['name']: one['type'] for one in found[0]['Inputs']}
    assert types['level'] == 'Number'


@pytest.mark.quick
@pytest.mark.timeout(300)
def test_a_server_runs_actions_until_their_ends(
    cloud: base.minicloud_client.Cloud,
    stack: base.Stack,
    run: Commands,
    tmp_path: pathlib.Path,
) -> None:
    script = tmp_path / 'fix.sh'
    script.write_text('#!/bin/sh\necho "fixed by $who"\n')
    with servers.agent(cloud, stack):
        code, (shown,) = run(
            *('trigger', 'deployment', 'BACKUP', '--wait'),
            *('--input', 'level=9', '--input', f'password={SECRET}'),
        )
        assert (code, shown['state']) == (0, 'complete')
        stdout = 'with a password\nbacking up shop at level 9\n'
        assert shown['outputs']['deploy_stdout'] == stdout
        assert shown['outputs']['size'] == '12 MB'
        assert shown['inputs'] == ['level', 'password']
        # Several at a time, as they do not disturb each other.
        failing = run.begin('trigger', 'deployment', 'FAILOVER', '--wait')
        listing = run.begin('trigger', 'deployment', 'LIST', '--wait')
        again = run.begin(
            *('run rerun', shown['id'], '--input', 'level=1', '--wait')
        )
        applied = run.begin(
            *('apply', 'server', '--config-file', str(script)),
            *('--input', 'who=me', '--wait'),
        )
        code, (failed,) = run.end(failing)
        assert (code, failed['state']) == (3, 'failed')
        assert failed['outputs']['deploy_stderr'] == 'no standby\n'
        code, (listed,) = run.end(listing)
        assert code == 0
        tail = listed['outputs']['deploy_stdout']
        assert tail.endswith('19999\n20000\n')
        assert len(tail) == 4096
        code, repeated = run.end(again)
        assert (code, repeated['repeats']) == (0, shown['id'])
        stdout = 'with a password\nbacking up shop at level 1\n'
        assert repeated['outputs']['deploy_stdout'] == stdout
        code, fixed = run.end(applied)
        assert (code, fixed['action']) == (0, 'APPLY')
        assert fixed['outputs']['deploy_stdout'] == 'fixed by me\n'
    _, whole = run('run output', listed['id'], 'deploy_stdout', '--whole')
    assert whole['deploy_stdout'].startswith('1\n2\n3\n')
    _, found = run('run list', '--state', 'complete')
    ids = {one['id'] for one in (shown, listed, repeated, fixed)}
    assert {one['id'] for one in found} == ids
    # Nothing is left of them but their records. Runs of other tests that were
    # cancelled may have left more.
    assert given(stack) == []
    session = cloud.session()
    path = f'/heat-plugins-{stack.id}?prefix=signals/'
    left = session.get('object-store', path).body.decode()
    assert not [one for one in (*ids, failed['id']) if one in left]
    # The stack's own deployment has not noticed.
    own = stack.deployment()
    assert own is not None
    assert (own.action, own.status) == ('CREATE', 'COMPLETE')


def test_a_server_that_is_away_lets_it_time_out(
    stack: base.Stack, run: Commands
) -> None:
    code, (shown,) = run(
        *('trigger', 'deployment', 'BACKUP', '--wait', '--timeout', '3')
    )
    assert (code, shown['state']) == (4, 'timed-out')
    assert given(stack) == []


def test_what_a_server_has_not_seen_it_never_runs(
    cloud: base.minicloud_client.Cloud, stack: base.Stack, run: Commands
) -> None:
    agent = servers.agent(cloud, stack)
    before = servers.has_run(agent)
    code, (shown,) = run('trigger', 'deployment', 'BACKUP')
    assert (code, shown['state']) == (0, 'waiting')
    url = signal_url(stack, 'deployment-BACKUP')
    code, (cancelled,) = run('run cancel', shown['id'])
    assert (code, cancelled['state']) == (0, 'cancelled')
    assert given(stack) == []
    agent.once()
    assert servers.has_run(agent) == before
    # One that had seen it would answer all the same.
    assert base.put(url, servers.body(size='1')) == 201
    _, shown = run('run show', shown['id'])
    assert shown['state'] == 'cancelled'
    assert shown['cancelled_by'] == 'demo'
    assert shown['late_result']['status'] == 'complete'


def test_a_run_with_a_garbled_record_is_skipped_until_it_is_deleted(
    cloud: base.minicloud_client.Cloud, stack: base.Stack, run: Commands
) -> None:
    _, (other,) = run('trigger', 'deployment', 'LIST')
    run('run cancel', other['id'])
    _, (garbled,) = run('trigger', 'deployment', 'LIST')
    path = garble(cloud, stack, garbled['id'])
    code, found = run('run list')
    assert code == 0
    ids = {one['id'] for one in found}
    assert other['id'] in ids
    assert garbled['id'] not in ids
    assert f'Object {path}' in run.said
    code, said = run('trigger', 'deployment', 'LIST')
    assert code == 1
    assert garbled['id'] in said
    assert 'run delete' in said
    assert given(stack) == ['deployment-LIST']
    code, _ = run('run delete', garbled['id'])
    assert code == 0
    assert given(stack) == []
    assert cloud.session().get('object-store', f'/{path}').status == 404
    # Its action is free again.
    code, (shown,) = run('trigger', 'deployment', 'LIST')
    assert (code, shown['state']) == (0, 'waiting')
    run('run cancel', shown['id'])


def test_a_script_that_runs_is_not_stopped_and_its_result_is_late(
    cloud: base.minicloud_client.Cloud,
    stack: base.Stack,
    run: Commands,
    tmp_path: pathlib.Path,
) -> None:
    go_on = tmp_path / 'go-on'
    with servers.agent(cloud, stack):
        _, (shown,) = run(
            'trigger', 'deployment', 'SLOW', '--input', f'database={go_on}'
        )

        def show(field: str) -> Template | None:
            _, found = run('run show', shown['id'])
            return found if found[field] else None

        found = base.until(lambda: show('progress'))
        assert found['state'] == 'running'
        assert (found['progress'], found['message']) == (40, 'table 4 of 10')
        attributes = stack.resource('deployment', 'runs')['attributes']
        assert attributes['runs'][0]['message'] == 'table 4 of 10'
        waiting = run.begin('run wait', shown['id'])
        assert waiting.stderr.readline().endswith(
            'running 40% table 4 of 10\n'
        )
        code, _ = run('run cancel', shown['id'])
        assert code == 0
        code, _ = run.end(waiting)
        assert code == 5
        assert given(stack) == []
        go_on.touch()
        found = base.until(lambda: show('late_result'))
    assert found['state'] == 'cancelled'
    assert 'after the server had begun' in found['reason']
    assert found['late_result']['status'] == 'complete'


@pytest.mark.quick
def test_of_two_starts_at_once_one_is_refused(
    stack: base.Stack, run: Commands
) -> None:
    arguments = ('trigger', 'deployment', 'SLOW')
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        ends = [
            future.result()
            for future in [pool.submit(run, *arguments) for _ in range(2)]
        ]
    assert sorted(code for code, _ in ends) == [0, 1]
    (shown,) = [shown for code, shown in ends if code == 0]
    (refusal,) = [said for code, said in ends if code == 1]
    (started,) = shown
    assert started['id'] in refusal
    assert given(stack) == ['deployment-SLOW']
    run('run cancel', started['id'])


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        (('deployment', 'BAKCUP'), 'no action BAKCUP; it offers BACKUP'),
        (
            ('deployment', 'BACKUP', '--input', f'level={SECRET}'),
            '"level" must be a number',
        ),
    ],
)
def test_what_cannot_be_run_is_refused(
    stack: base.Stack,
    run: Commands,
    arguments: tuple[str, ...],
    reason: str,
) -> None:
    code, said = run('trigger', *arguments)
    assert code == 1
    assert reason in said
    assert given(stack) == []


def test_another_projects_stack_is_not_there(
    cloud: base.minicloud_client.Cloud, stack: base.Stack
) -> None:
    other = Commands(cloud, stack.id, 'other')
    code, said = other('trigger', 'deployment', 'BACKUP')
    assert code == 1
    assert 'no stack' in said
    assert other('run list')[0] == 1


def test_a_deployment_and_a_stack_that_go_end_their_runs(
    cloud: base.minicloud_client.Cloud, stacks: Any
) -> None:
    whole = template(deployments=2)
    stack = stacks(whole, name='short-lived')
    with servers.agent(cloud, stack):
        stack.wait('CREATE_COMPLETE')
    run = Commands(cloud, stack.name, 'demo')

    def begin(deployment: str) -> Any:
        process = run.begin('trigger', deployment, 'BACKUP', '--wait')
        base.until(lambda: given(stack) == [f'{deployment}-BACKUP'])
        return process

    process = begin('deployment0')
    del whole['resources']['deployment0'], whole['outputs']
    stack.update(whole)
    code, (shown,) = run.end(process)
    assert (code, shown['state']) == (5, 'cancelled')
    assert 'Deployment deployment0 of stack' in shown['reason']
    stack.wait('UPDATE_COMPLETE')
    process = begin('deployment1')
    _, (garbled,) = run('trigger', 'deployment1', 'FAILOVER')
    garble(cloud, stack, garbled['id'])
    # The fixture holds that nothing of the runs stays behind.
    stack.delete()
    stack.wait('DELETE_COMPLETE')
    code, (shown,) = run.end(process)
    assert (code, shown['state']) == (5, 'cancelled')
    assert 'was deleted' in shown['reason']


def test_it_works_with_a_heat_that_has_no_plugin(
    heats_own: base.minicloud_client.Cloud, heats_own_stacks: Any
) -> None:
    stack = heats_own_stacks(
        # The hook for scripts dies of the number that Heat hands it.
        template(signal_transport='CFN_SIGNAL', input_values={'level': '3'}),
        name='plain',
    )
    run = Commands(heats_own, stack.name, 'demo')
    with servers.agent(heats_own, stack):
        stack.wait('CREATE_COMPLETE')
        code, (shown,) = run('trigger', 'deployment', 'BACKUP', '--wait')
    assert (code, shown['state']) == (0, 'complete')
    stack.delete()
    stack.wait('DELETE_COMPLETE')
    late = Commands(heats_own, stack.id, 'demo')
    _, found = late('run list')
    assert [one['state'] for one in found] == ['complete']
