# SPDX-License-Identifier: Apache-2.0
"""How servers are handed configs, and how their results come back."""

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

pytestmark = pytest.mark.quick


def _chosen(stack, name='deployment'):
    shown = stack.resource(name, 'signal_transport')['attributes']
    return shown['signal_transport']


@pytest.mark.parametrize('trigger_url', [False, True])
def test_agent_signals_by_each_transport(cloud, stacks, trigger_url):
    transports = {
        'TEMP_URL_SIGNAL': 'TEMP_URL_POLL',
        'CFN_SIGNAL': 'CFN_SIGNAL',
        'AUTO': 'TEMP_URL_POLL',
    }
    if conftest.PROFILE == 'small':
        # See `conftest.trusted`.
        transports['HEAT_SIGNAL'] = 'HEAT_SIGNAL'
    template = base.software(
        deployments=len(transports), trigger_url=trigger_url
    )
    for number, asked in enumerate(transports):
        deployment = template['resources'][f'deployment{number}']
        deployment['properties']['signal_transport'] = asked
    stack = stacks(template)
    with servers.agent(cloud, stack):
        stack.wait('CREATE_COMPLETE')
    for number, chosen in enumerate(transports.values()):
        name = f'deployment{number}'
        assert stack.outputs[f'{name}_greeting'] == 'hello world'
        assert _chosen(stack, name) == chosen
    assert len(servers.signals(cloud, stack)) == 2


def test_auto_passes_over_a_swift_that_refuses(cloud, stacks):
    template = base.software(signal_transport='AUTO')
    stack = stacks(template, user='reader')
    with servers.agent(cloud, stack, user='reader'):
        stack.wait('CREATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'hello world'
    assert _chosen(stack) == 'CFN_SIGNAL'


def test_without_a_signal_nothing_is_waited_for(cloud, stacks):
    stack = stacks(base.software(signal_transport='NO_SIGNAL'))
    stack.wait('CREATE_COMPLETE')
    assert stack.deployment().status == 'COMPLETE'
    assert stack.outputs['deployment_greeting'] is None
    config = stack.metadata()[0]['id']
    with servers.agent(cloud, stack) as agent:
        base.until(lambda: config in servers.has_run(agent))
    assert not servers.signals(cloud, stack)


def test_user_without_the_swift_role_is_told_so(stacks):
    stack = stacks(base.software(), user='reader')
    stack.wait('CREATE_FAILED')
    assert 'TEMP_URL_POLL' in stack.reason
    assert 'operator role' in stack.reason
    # Ceph's gateway takes no token of theirs.
    assert {'swift': '403', 'rgw': '401'}[conftest.STORE] in stack.reason


@pytest.mark.parametrize(
    ('transport', 'way'),
    [('TEMP_URL_POLL', 'deployment'), ('CFN_SIGNAL', 'resource signal')],
)
def test_somebody_else_completes_it(cloud, stacks, transport, way):
    stack = stacks(base.software(signal_transport=transport))
    waiting = stack.waiting()
    if way == 'resource signal':
        stack.signal('deployment', {'greeting': 'by hand'})
    else:
        answer = cloud.session().put(
            'orchestration',
            f'/software_deployments/{waiting.id}',
            {
                'status': 'COMPLETE',
                'status_reason': 'by hand',
                'output_values': {'greeting': 'by hand'},
            },
        )
        assert answer.ok, answer
    stack.wait('CREATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'by hand'


@conftest.trusted
def test_server_is_handed_its_configs_by_heat(cloud, stacks):
    server = {'software_config_transport': 'POLL_SERVER_HEAT'}
    _create_and_update(cloud, stacks, base.software(server=server))


@conftest.trusted
@conftest.signed_by_heat
def test_server_is_handed_its_configs_by_swift(cloud, stacks, folder):
    server = {
        'software_config_transport': 'POLL_TEMP_URL',
        'deployment_swift_data': folder,
    }
    _create_and_update(cloud, stacks, base.software(server=server))


def _create_and_update(cloud, stacks, template):
    stack = stacks(template)
    with servers.agent(cloud, stack):
        stack.wait('CREATE_COMPLETE')
        assert stack.outputs['deployment_greeting'] == 'hello world'
        stack.update(template, who='moon')
        stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'hello moon'
