# SPDX-License-Identifier: Apache-2.0
"""How the results of servers come back."""

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

pytestmark = pytest.mark.quick


def _chosen(stack, name='deployment'):
    shown = stack.resource(name, 'signal_transport')['attributes']
    return shown['signal_transport']


def test_agent_signals_by_each_transport(cloud, stacks):
    transports = {
        'TEMP_URL_SIGNAL': 'TEMP_URL_POLL',
        'CFN_SIGNAL': 'CFN_SIGNAL',
        'AUTO': 'TEMP_URL_POLL',
    }
    if conftest.PROFILE == 'small':
        # See `conftest.trusted`.
        transports['HEAT_SIGNAL'] = 'HEAT_SIGNAL'
    # Each with a URL that starts runs, and without one.
    count = 2 * len(transports)
    template = base.software(deployments=count)
    for number, asked in enumerate([*transports] * 2):
        template['resources'][f'deployment{number}']['properties'].update(
            signal_transport=asked, trigger_url=number >= len(transports)
        )
    silent = template['resources']['silent'] = base.software()['resources'][
        'deployment'
    ]
    silent['properties'].update(name='silent', signal_transport='NO_SIGNAL')
    stack = stacks(template)
    # Without a signal nothing is waited for; the server runs it nevertheless.
    base.until(
        lambda: (
            stack.resource('silent')['resource_status'] == 'CREATE_COMPLETE'
        )
    )
    assert stack.deployment('silent').status == 'COMPLETE'
    with servers.agent(cloud, stack) as agent:
        stack.wait('CREATE_COMPLETE')
        config = stack.deployment('silent').config['id']
        base.until(lambda: config in servers.has_run(agent))
    for number, chosen in enumerate([*transports.values()] * 2):
        name = f'deployment{number}'
        assert stack.outputs[f'{name}_greeting'] == 'hello world'
        assert _chosen(stack, name) == chosen
    assert len(servers.signals(cloud, stack)) == 4


def test_user_without_the_swift_role_is_told_so_and_auto_passes_over(
    cloud, stacks
):
    refused, passed = (
        stacks(base.software(signal_transport=transport), user='reader')
        for transport in ('TEMP_URL_POLL', 'AUTO')
    )
    with servers.agent(cloud, passed, user='reader'):
        passed.wait('CREATE_COMPLETE')
    assert passed.outputs['deployment_greeting'] == 'hello world'
    assert _chosen(passed) == 'CFN_SIGNAL'
    refused.wait('CREATE_FAILED')
    assert 'TEMP_URL_POLL' in refused.reason
    assert 'operator role' in refused.reason
    # Ceph's gateway takes no token of theirs.
    assert {'swift': '403', 'rgw': '401'}[conftest.STORE] in refused.reason
