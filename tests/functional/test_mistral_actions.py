# SPDX-License-Identifier: Apache-2.0
"""Actions on a running stack, by workflows of a real Mistral."""

import pathlib

import pytest

from tests.functional import base
from tests.functional import flows
from tests.functional import servers

EXAMPLE = base.ROOT / 'contrib/examples/workflows/backup.yaml'

# The sixth field of a pattern is for the seconds.
OFTEN = '* * * * * */15'


def template():
    """Return the example, with an action that fails."""
    found = flows.example('backup')
    found['resources']['notes']['properties']['configs'].append(
        {
            'actions': ['FAILOVER'],
            'tool': 'script',
            'config': '#!/bin/sh\necho "no standby" >&2\nexit 3\n',
        }
    )
    return found


@pytest.fixture(scope='module')
def stack(cloud, module_stacks):
    """A stack whose server has done CREATE, and is switched off then."""
    found = module_stacks(template(), name='diary', pattern=flows.YEARLY)
    with servers.agent(cloud, found):
        found.wait('CREATE_COMPLETE')
    return found


def trusts(cloud):
    demo = cloud.session('demo')
    answer = demo.get(
        'identity', f'/OS-TRUST/trusts?trustor_user_id={demo.user_id}'
    )
    return {one['id'] for one in answer.json()['trusts']}


def test_the_clock_backs_up_and_a_deleted_stack_leaves_nothing(
    cloud, stacks, mistral
):
    def made():
        return (
            mistral.names('workflows'),
            mistral.names('cron_triggers'),
            trusts(cloud),
        )

    before = made()
    left = base.Leftovers.of(cloud)
    stack = stacks(EXAMPLE.read_text(), name='notes', pattern=OFTEN)
    with servers.agent(cloud, stack) as agent:
        stack.wait('CREATE_COMPLETE')

        def nights():
            return [
                one
                for one in stack.outputs['nights']
                if one['state'] == 'SUCCESS'
            ]

        night = base.until(nights)[0]
        backup = pathlib.Path(night['output']['path'])
        assert backup.is_relative_to(agent.path)
        assert backup.read_text() == 'CREATE\n'
        found = cloud.software('run list --stack notes --state complete')
        assert {one['action'] for one in found} == {'BACKUP'}
        shown = cloud.software(f'run show {found[-1]["id"]}')
        assert shown['created_by'].startswith('demo, by workflow execution ')
        stack.remove()
    assert made() == before
    # An action that Mistral was in the middle of undoes what it has made.
    left.hold(cloud)


@pytest.mark.quick
def test_a_run_that_fails_fails_its_workflow_with_the_reason(
    cloud, stack, mistral
):
    with servers.agent(cloud, stack):
        ended = mistral.run(
            'software_deployment.trigger',
            stack=stack.name,
            resource='deployment',
            action='FAILOVER',
        )
    assert ended['state'] == 'ERROR'
    reason = 'the exit status (deploy_status_code) is 3: no standby'
    assert ended['state_info'] == reason
    run = ended['output']['run']
    assert (run['state'], run['reason']) == ('failed', reason)
    assert run['outputs']['deploy_stderr'] == 'no standby\n'


def test_a_run_outlives_the_workflow_and_ends_by_another(stack, mistral):
    started = mistral.run(
        'software_deployment.trigger',
        stack=stack.name,
        resource='deployment',
        action='BACKUP',
        wait=False,
    )
    run = started['output']['run']
    assert (started['state'], run['state']) == ('SUCCESS', 'running')
    of_the_run = {'run_id': run['id']}
    stopped = mistral.start('software_deployment.wait', **of_the_run)
    waiting = mistral.start('software_deployment.wait', **of_the_run)
    mistral.set_state(stopped, 'CANCELLED')
    assert mistral.end(stopped)['state'] == 'CANCELLED'
    cancelled = mistral.run('software_deployment.cancel', **of_the_run)
    requests = cancelled['output']['run']['requests']
    assert [one['do'] for one in requests] == ['cancel']
    ended = mistral.end(waiting)
    assert ended['state'] == 'ERROR'
    assert ended['state_info'].startswith('Cancelled by demo')
