# SPDX-License-Identifier: Apache-2.0
"""Runs that are followed, and stopped, on servers with the add-on."""

import hashlib
import time
import uuid

import pytest

from tests import pages
from tests.functional import base
from tests.functional import conftest
from tests.functional import running
from tests.functional import servers
from tests.functional import test_on_call

# With one stack for most of them.
pytestmark = pytest.mark.long

SECRET = 'open-sesame-of-today'

#: What sleeps for seconds that nobody else on this machine does: other
#: workers run tests of this module, too.
_FIRST = 10_000_000 + uuid.uuid4().int % 10**6 * 10
_SLEEPS = [f'sleep {_FIRST + number}' for number in range(6)]

_SCRIPTS = {
    'CREATE': '#!/bin/sh\n',
    # Both streams, no end of line at the end, and what nobody is to see.
    'TALK': '#!/bin/sh\n'
    'for n in 1 2 3 4 5 6; do echo "step $n"; sleep 1; done\n'
    'echo "to stderr: $password" >&2; printf "no end"\n',
    'BYTES': '#!/usr/bin/env python3\n'
    'import hashlib, os, sys, time\n'
    'seed = b"x"\n'
    'for _ in range(int(os.environ["pieces"])):\n'
    '    seed = hashlib.sha512(seed).digest()\n'
    '    sys.stdout.buffer.write(seed * 100)\n'
    '    sys.stdout.flush()\n'
    '    time.sleep(float(os.environ["rest"]))\n',
    'STUBBORN': "#!/bin/sh\ntrap '' TERM\necho half\n"
    'while :; do sleep 1; done\n',
    'DAEMON': '#!/bin/sh\n'
    f'(setsid sh -c "{_SLEEPS[1]} & exec {_SLEEPS[2]}" &) &\n'
    f'echo half\n{_SLEEPS[3]}\n',
    'QUICK': '#!/bin/sh\necho done\n',
    # As the page has them.
    'BACKUP': '#!/bin/sh\n'
    'for n in 1 2 3; do sleep 3; echo "table $n of 3"; done\n',
    'REINDEX': '#!/bin/sh\nsleep 604\n',
}


def template(**properties):
    inputs = {'password': '', 'pieces': 1, 'rest': 0}
    config = running.component(_SCRIPTS, inputs)
    found = base.software(
        config=config,
        input_values={'password': {'get_param': 'password'}},
        **properties,
    )
    found.setdefault('parameters', {})['password'] = {
        'type': 'string',
        'hidden': True,
        'default': SECRET,
    }
    return found


def expected(pieces):
    """Return what BYTES writes."""
    seed, found = b'x', b''
    for _ in range(pieces):
        seed = hashlib.sha512(seed).digest()
        found += seed * 100
    return found


@pytest.fixture(scope='module')
def supervised(cloud, module_stacks):
    stack = module_stacks(template(), name='shop')
    with servers.agent(cloud, stack, supervised=True) as agent:
        stack.wait('CREATE_COMPLETE')
        yield stack, agent


@pytest.fixture
def commands(cloud, supervised):
    return running.Commands(cloud, stack=supervised[0])


@pytest.mark.quick
def test_a_run_is_followed_while_it_goes_on(commands):
    began = time.monotonic()
    words = 'start', 'TALK', *commands.on, '--follow'
    process = commands.begin(*words)
    seen = {}
    said = ''
    for line in process.stderr:
        said += line.decode()
        seen[line.decode().strip()] = time.monotonic() - began
    assert process.wait(60) == 0
    steps = [seen[f'step {number}'] for number in range(1, 7)]
    assert steps == sorted(steps)
    # It came while it ran, and not all at the end.
    assert steps[-1] - steps[0] > 2
    assert SECRET not in said
    assert 'to stderr: ******' in said
    assert said.rstrip().splitlines()[-2] == 'no end', said


def test_what_is_shown_is_what_was_printed_also_after_faults(
    cloud, commands, supervised
):
    stack = supervised[0]
    path = f'.*{stack.container}/runs/logs/.*'
    run = commands.start(
        *('BYTES', *commands.on, '--input', 'pieces=80'),
        *('--input', 'rest=0.2'),
    )
    rules = [
        {'path': path, 'status': 503, 'probability': 0.2},
        {'path': path, 'method': 'PUT', 'status': 401, 'count': 2},
    ]
    with cloud.faults(rules):
        code, output, said = commands.logs(run, '-f')
    assert code == 0, said
    whole = expected(80)
    assert len(output) == len(whole), said
    # The report need not show half a megabyte.
    is_in_order = output == whole
    assert is_in_order
    # It is kept with the run.
    assert commands.logs(run)[1] == output
    assert commands('delete', run)[0] == 0
    assert commands('show', run)[0] == 1


def test_a_cancel_stops_what_runs(commands):
    for action, told in (('DAEMON', 'stopped'), ('STUBBORN', 'by force')):
        run = commands.start(action, *commands.on)
        base.until(lambda run=run: commands.state(run) == 'running')
        began = time.monotonic()
        code, found = commands('cancel', run, '--wait')
        assert code == 0, found
        assert found['reason'].endswith(told)
        assert time.monotonic() - began < 20
        # Its config is gone, so nobody knows what is hidden in the outputs;
        # the server knew, and has masked what it printed.
        assert commands.logs(run)[1] == b'half\n'
        assert not base.alive(*_SLEEPS)
    # It keeps no other from it.
    run = commands.start('QUICK', *commands.on)
    base.until(lambda: commands.state(run) == 'complete')


def test_a_run_has_its_time_and_a_power_failure_ends_it(commands, supervised):
    _, agent = supervised
    # As an image may have it.
    limit = agent.path / 'refresh/environment.d/60-limit.bash'
    limit.write_text('export HEAT_CONFIG_TIMEOUT=8\n')
    _, found = commands('start', 'DAEMON', *commands.on, '--wait')
    limit.unlink()
    assert found['state'] == 'failed'
    assert found['outputs']['deploy_stdout'] == 'half\n'
    assert found['outputs']['deploy_status_code'] == 124
    assert 'stopped after 8 s' in found['outputs']['deploy_stderr']
    run = commands.start('REINDEX', *commands.on)
    base.until(lambda: commands.state(run) == 'running')
    # The power fails.
    agent.stop()
    agent.start()
    _, found = commands('wait', run)
    assert 'will not run again' in found['outputs']['deploy_stderr']


@pytest.mark.quick
@conftest.trusted
def test_a_deployment_says_that_its_server_has_begun(cloud, stacks, tmp_path):
    # Goes on when it may: a file for each deployment.
    script = """\
#!/bin/sh
until [ -e "$who.$deploy_resource_name" ]; do sleep 0.1; done
printf ok > "$heat_outputs_path.greeting"
"""
    names = 'deployment0', 'deployment1', 'deployment2'
    found = base.software(deployments=3, script=script)
    for name, transport in zip(
        names, ('CFN_SIGNAL', 'HEAT_SIGNAL', 'TEMP_URL_POLL'), strict=True
    ):
        properties = found['resources'][name]['properties']
        properties['signal_transport'] = transport
    stack = stacks(found, who=str(tmp_path / 'go'))

    def begun(name):
        reasons = [e['resource_status_reason'] for e in stack.events(name)]
        return len([one for one in reasons if 'Started: ' in one])

    with servers.agent(cloud, stack, supervised=True):
        # In the order in which the agent runs them.
        for name in names:
            base.until(lambda name=name: begun(name))
            shown = stack.deployment(name)
            assert shown.status == 'IN_PROGRESS'
            assert shown.reason == (
                'The server has started the action [hp:started]'
            )
            (tmp_path / f'go.{name}').touch()
        stack.wait('CREATE_COMPLETE')
    for name in names:
        assert stack.outputs[f'{name}_greeting'] == 'ok'
        assert begun(name) == 1


def test_a_cancelled_stack_action_stops_its_scripts(cloud, stacks):
    found = base.software(script='#!/bin/sh\n$who\n')
    resources = found['resources']
    resources['other'] = resources['server']
    alone = resources['deployment']['properties']
    resources['group'] = {
        'type': 'OS::Heat::SoftwareDeploymentGroup',
        'properties': {
            **alone,
            'name': 'member',
            'servers': {'one': {'get_resource': 'other'}},
            'input_values': {'who': _SLEEPS[5]},
            'members': 'single',
        },
    }
    del resources['group']['properties']['server']
    stack = stacks(found, who=_SLEEPS[4])
    with (
        servers.agent(cloud, stack, supervised=True),
        servers.agent(cloud, stack, 'other', supervised=True),
    ):
        for script in _SLEEPS[4:]:
            base.until(lambda script=script: base.alive(script))
        stack.action(cancel_without_rollback=None)
        base.until(lambda: not base.alive(*_SLEEPS[4:]))
        stack.wait('CREATE_FAILED')


def test_the_page_says_what_the_commands_print(cloud, commands):
    section = pages.read('running-actions', 'Follow it, stop it')
    typist = test_on_call.Typist(cloud.env())
    typed = 0
    for command, expected in test_on_call.parts(section):
        if command == 'it runs':
            run = list(typist.runs.values())[-1]
            base.until(lambda run=run: commands.state(run) == 'running')
            continue
        typist.type(command, expected)
        typed += 1
    assert typed == section.count('\n   $ ') == 3


def test_a_backup_of_the_readmes_reader_is_seen_while_it_runs(cloud, tmp_path):
    (tmp_path / 'contrib').symlink_to(base.ROOT / 'contrib')
    typed = ''.join(pages.blocks(pages.readme('A BACKUP of your own')))
    assert typed.count('BACKUP') == 2

    env = cloud.env()
    try:
        said = servers.type_script(typed, tmp_path, env)
    finally:
        servers.type_script(
            'openstack stack delete --yes --wait mine; '
            'minicloud agent stop mine --remove',
            tmp_path,
            env,
        )
    live, ended, other = said.partition(': complete after ')
    assert ended, said
    assert "\n'notes' -> 'notes-" in live, said
    assert 'only at the end' not in said
    # The stack has one server, so that both are runs.
    assert ': complete after ' in other
