# SPDX-License-Identifier: Apache-2.0
"""What contrib/agent adds to a server, beside one that has it not."""

import json

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import running
from tests.functional import servers

# Goes on when it may: a file for each deployment.
_WAITS = """\
#!/bin/sh
until [ -e "$who.$deploy_resource_name" ]; do sleep 0.1; done
echo "$deploy_action"
printf ok > "$heat_outputs_path.greeting"
"""

_HANGS = '#!/bin/sh\necho half\nsleep 600\necho whole\n'


def supervised(cloud, stack, resource='server'):
    """Return the agent of a server that has the add-on, switched off."""
    return cloud.agent(
        f'{stack.name}-{resource}',
        stack=stack.name,
        resource=resource,
        supervised=True,
    )


def begun(stack, name):
    """Return what the events of a deployment say of its beginning."""
    reasons = [one['resource_status_reason'] for one in stack.events(name)]
    return [one for one in reasons if 'Started: ' in one]


def deployed(agent):
    """Return the inputs of what a server has run."""
    folder = agent.path / 'var/deployed'
    found = [
        json.loads((folder / f'{config_id}.json').read_text())
        for config_id in servers.has_run(agent)
    ]
    return [
        {one['name']: one['value'] for one in config['inputs']}
        for config in found
    ]


def with_actions(**properties):
    """Return a template whose deployment has an action that hangs."""
    scripts = {'CREATE': '#!/bin/sh\n', 'HANG': _HANGS}
    config = running.component(scripts, {})
    return base.software(config=config, input_values={}, **properties)


@pytest.mark.quick
@conftest.trusted
@pytest.mark.timeout(240)
def test_a_deployment_says_that_its_server_has_begun(cloud, stacks, tmp_path):
    template = base.software(script=_WAITS)
    resources = template['resources']
    resources['plain'] = resources['server']
    for name, transport, server in (
        ('by_cfn', 'CFN_SIGNAL', 'server'),
        ('by_heat', 'HEAT_SIGNAL', 'server'),
        ('elsewhere', 'TEMP_URL_POLL', 'plain'),
    ):
        deployment = resources['deployment']
        resources[name] = {
            **deployment,
            'properties': {
                **deployment['properties'],
                'name': name,
                'server': {'get_resource': server},
                'signal_transport': transport,
            },
        }
    stack = stacks(template, who=str(tmp_path / 'go'))
    (tmp_path / 'go.elsewhere').touch()
    with supervised(cloud, stack), servers.agent(cloud, stack, 'plain'):
        # In the order in which the agent runs them.
        for name in ('by_cfn', 'by_heat', 'deployment'):
            base.until(lambda name=name: begun(stack, name))
            found = stack.deployment(name)
            assert found is not None
            assert found.status == 'IN_PROGRESS'
            assert found.reason == (
                'The server has started the action [hp:started]'
            )
            (tmp_path / f'go.{name}').touch()
        stack.wait('CREATE_COMPLETE')
    for name in ('deployment', 'by_cfn', 'by_heat', 'elsewhere'):
        found = stack.deployment(name)
        assert found is not None
        assert found.outputs['greeting'] == 'ok'
        assert len(begun(stack, name)) == (name != 'elsewhere')


@pytest.mark.timeout(240)
def test_a_run_has_its_time_and_a_power_failure_ends_it(cloud, stacks):
    stack = stacks(with_actions(timeout=300, delivery_timeout=60))

    def run(state):
        found = stack.resource('deployment', 'runs')['attributes']['runs']
        # A signal is answered before anything comes of it.
        return found[0] if found and found[0]['state'] == state else None

    agent = supervised(cloud, stack)
    with agent:
        stack.wait('CREATE_COMPLETE')
        # As whoever makes the image may have it.
        limit = agent.path / 'refresh/environment.d/60-limit.bash'
        limit.write_text('export HEAT_CONFIG_TIMEOUT=8\n')
        stack.signal('deployment', {'trigger': 'HANG'})
        base.until(lambda: run('running'))
        found = base.until(lambda: run('failed'))
        assert found['outputs']['deploy_stdout'] == 'half\n'
        assert found['outputs']['deploy_status_code'] == 124
        assert 'stopped after 8 s' in found['outputs']['deploy_stderr']
        assert {'300'} == {
            inputs['deploy_signal_timeout'] for inputs in deployed(agent)
        }
        limit.unlink()
        stack.signal('deployment', {'trigger': 'HANG'})
        base.until(lambda: run('running'))
        # The power fails.
        agent.stop()
        agent.start()
        found = base.until(lambda: run('failed'))
        assert 'will not run again' in found['outputs']['deploy_stderr']
