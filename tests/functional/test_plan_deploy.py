# SPDX-License-Identifier: Apache-2.0
"""Plans are deployed with a real Heat, Swift, Mistral and agents."""

import json

import pytest
import yaml

from tests.functional import base
from tests.functional import planning

PASSWORD = 'set-by-hand-and-hidden'

#: A hidden value that does not match the pattern of its parameter.
REFUSED = 'SET_BY_HAND_AND_REFUSED'


@pytest.fixture
def plans(cloud, tmp_path):
    made = []

    def plan(name):
        made.append(planning.Plan(cloud, tmp_path, name))
        return made[-1]

    yield plan
    for one in made:
        one.purge()
    planning.forget_validations(cloud.session())


@pytest.mark.long
@pytest.mark.quick
def test_a_plan_is_chosen_set_deployed_changed_and_deleted(cloud, plans):
    plan = plans('shop')
    steps = [{'action': 'std.echo', 'input': {'output': 'greeted'}}]
    content = planning.files(planning.tier(), post_deployment=steps)
    assert plan.make(content)['secrets'] == ['Password']

    chosen = plan('capability set', '--enable', 'environments/south.yaml')
    assert {'Environment': 'environments/south.yaml'} in chosen
    said = plan.fails(1, 'parameter set', 'Size=4')
    assert "Parameter 'Size' is invalid: 4 is out of range" in said
    from_input = ('parameter set', '--file', '-')
    said = plan.fails(1, *from_input, said=f'Other: {REFUSED}')
    assert "Parameter 'Other' is invalid" in said
    plan('parameter set', 'who=you')
    # Not on a command line.
    plan(*from_input, said=f'Other: {PASSWORD}')
    listed = {one['Name']: one for one in plan('parameter list')}
    assert (listed['who']['Value'], listed['who']['Origin']) == ('you', 'plan')
    assert listed['region']['Origin'] == 'environment'
    assert listed['Password']['Value'] == listed['Other']['Value'] == '******'

    preview = plan('deploy', '--validate-only')
    assert (preview['action'], preview['added']) == (
        'CREATE',
        ['size', 'tier'],
    )
    process = plan.begin('deploy')
    with plan.agent():
        output, said = process.communicate(timeout=110)
        plan.said += output + said
        assert process.returncode == 0, said
        status = json.loads(output)
        assert status['status'] == 'CREATE_COMPLETE'
        assert status['current'] is True
        assert plan.outputs == {'greeting': 'hello you', 'region': 'south'}
        assert plan('diff') == []

        plan('parameter unset', 'who')
        plan('capability set', '--disable', 'environments/south.yaml')
        assert {
            (one['Kind'], one['Change'], one['Name']) for one in plan('diff')
        } == {
            ('file', 'removed', 'environments/south.yaml'),
            ('parameter', 'removed', 'region'),
            ('parameter', 'removed', 'who'),
        }
        assert plan('status')['current'] is False
        assert plan('deploy')['status'] == 'UPDATE_COMPLETE'
    # What was removed from the plan is gone from the stack.
    assert plan.outputs == {'greeting': 'hello world', 'region': 'nowhere'}

    assert 'UPDATE_COMPLETE' in plan.fails(1, 'delete')
    session = cloud.session()
    kept = session.get('object-store', '/shop/plan-environment.yaml')
    secret = yaml.safe_load(kept.body)['passwords']['Password']
    # Nothing secret has come out, also not through Mistral.
    for text in (planning.shown_by_mistral(session), plan.said):
        for value in (secret, PASSWORD, REFUSED):
            assert value not in text


def test_a_command_needs_no_mistral_and_says_what_its_actions_say(
    cloud, plans, mistral
):
    here, there = plans('here'), plans('there')
    content = planning.files()
    registry = content['environments/base.yaml']['resource_registry']
    registry['Shop::Lost'] = 'lost.yaml'
    made = here.make(content)
    assert mistral.action('plan.show', plan='here') == made == here('show')
    there.make(content)
    assert here('deploy')['status'] == 'CREATE_COMPLETE'
    lost = 'environments/base.yaml refers to environments/lost.yaml'
    assert f'Warning: {lost}' in here.said
    ended = mistral.run('plan.deploy', plan='there')
    assert ended['state'] == 'SUCCESS', str(ended)
    [warning] = ended['output']['warnings']
    assert warning.startswith(lost)
    statuses = [
        mistral.action('plan.status', plan=n) for n in ('here', 'there')
    ]
    for status in statuses:
        assert status['status'] == 'CREATE_COMPLETE'
        assert status['current'] is True
    assert here('status').items() <= statuses[0].items()
    path = '/executions?description=plan%20here'
    answer = cloud.session().get('workflowv2', path)
    assert answer.json()['executions'] == []


def test_a_deployment_is_cancelled_where_it_stands(plans):
    plan = plans('halted')
    plan.make(planning.files(planning.tier()))
    assert plan('deploy', '--no-wait')['plan'] == 'halted'
    plan.tier()
    # The same once more finds the one that goes on; another is refused.
    plan('deploy', '--no-wait')
    plan.write({'scripts/greet.sh': '#!/bin/sh\n'})
    plan('set', '--from', str(plan.folder))
    assert 'CREATE_IN_PROGRESS' in plan.fails(1, 'deploy')
    plan('deploy', '--cancel')
    assert 'CREATE_FAILED' in plan.fails(3, 'status', '--wait')


@pytest.mark.long
def test_a_deployment_outlives_a_mistral_that_is_killed(cloud, plans, mistral):
    plan = plans('lasting')
    plan.make(planning.files(planning.tier()))
    # A crash that meets a poll is noticed at the end of the step's time.
    names = ('plan.deploy', 'plan.configure', 'heat_plugins.job')
    namespace = mistral.hasten(*names, seconds=15)
    execution_id = mistral.start('plan.deploy', namespace, plan=plan.name)
    agent = plan.agent()
    cloud.crash('mistral')
    with agent:
        base.until(
            lambda: plan.stack()['stack_status'] == 'CREATE_COMPLETE', 90
        )
    cloud.start('mistral')
    ended = mistral.end(execution_id)
    assert ended['state'] == 'SUCCESS', str(ended)
    assert ended['output']['stack']['status'] == 'CREATE_COMPLETE'
