# SPDX-License-Identifier: Apache-2.0
"""Plans are deployed with a real Heat, Swift, Mistral and agents."""

from collections.abc import Iterator
import pathlib
from typing import Any

import pytest
import yaml

from tests.functional import base
from tests.functional import executions
from tests.functional import planning

# Each command takes its time where many run at once.
pytestmark = pytest.mark.timeout(300)

PASSWORD = 'set-by-hand-and-hidden'

#: A hidden value that does not match the pattern of its parameter.
REFUSED = 'SET_BY_HAND_AND_REFUSED'


@pytest.fixture
def plans(
    cloud: base.minicloud_client.Cloud, tmp_path: pathlib.Path
) -> Iterator[Any]:
    made: list[planning.Plan] = []

    def plan(name: str) -> planning.Plan:
        made.append(planning.Plan(cloud, tmp_path, name))
        return made[-1]

    yield plan
    for one in made:
        one.purge()
    planning.forget_validations(cloud.session())


@pytest.fixture(scope='module')
def mistral(cloud: base.minicloud_client.Cloud) -> executions.Mistral:
    return executions.Mistral(cloud.session())


@pytest.mark.quick
def test_a_plan_is_chosen_set_deployed_changed_and_deleted(
    cloud: base.minicloud_client.Cloud, plans: Any
) -> None:
    plan = plans('shop')
    steps = [{'action': 'std.echo', 'input': {'output': 'greeted'}}]
    made = plan.make(planning.files(planning.tier(), steps))
    assert made['secrets'] == ['Password']

    chosen = plan('capability set', '--enable', 'environments/south.yaml')
    assert {'Environment': 'environments/south.yaml'} in chosen
    code, said = plan.fails('parameter set', 'Size=4')
    refusal = "Parameter 'Size' is invalid: 4 is out of range"
    assert (code, refusal in said) == (1, True), said
    code, _, said = plan.run(
        'parameter set', '--file', '-', said=f'Other: {REFUSED}'
    )
    assert (code, "Parameter 'Other' is invalid" in said) == (1, True), said
    plan('parameter set', 'who=you')
    # Not on a command line.
    plan('parameter set', '--file', '-', said=f'Other: {PASSWORD}')
    listed = {one['Name']: one for one in plan('parameter list')}
    assert (listed['who']['Value'], listed['who']['Origin']) == (
        'you',
        'plan',
    )
    assert listed['region']['Origin'] == 'environment'
    assert listed['Password']['Value'] == listed['Other']['Value'] == '******'

    preview = plan('deploy', '--validate-only')
    assert (preview['action'], preview['added']) == (
        'CREATE',
        ['size', 'tier'],
    )
    process = plan.begin('deploy')
    with plan.agent():
        code, status = plan.end(process)
        assert (code, status['status']) == (0, 'CREATE_COMPLETE'), status
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
    held = plan.held('environment')['parameter_defaults']
    assert set(held) == {'Password', 'Other'}

    code, said = plan.fails('delete')
    assert (code, 'UPDATE_COMPLETE' in said) == (1, True)
    kept = cloud.session().get('object-store', '/shop/plan-environment.yaml')
    secret = yaml.safe_load(kept.body)['passwords']['Password']
    # Nothing secret has come out, also not through Mistral.
    session = cloud.session()
    rows = [
        session.get('workflowv2', path).body.decode()
        for path in (
            '/executions?include_output=true',
            '/tasks?include_result=true',
            '/action_executions?include_output=true',
        )
    ]
    for text in (*rows, plan.said):
        assert secret not in text
        assert PASSWORD not in text
        assert REFUSED not in text


def test_a_command_needs_no_mistral_and_says_what_its_actions_say(
    plans: Any, mistral: executions.Mistral
) -> None:
    here, there = plans('here'), plans('there')
    content = planning.files(planning.empty())
    registry = content['environments/base.yaml']['resource_registry']
    registry['Shop::Lost'] = 'lost.yaml'
    made = here.make(content)
    assert mistral.action('plan.show', plan='here') == made == here('show')
    there.make(content)
    assert here('deploy')['status'] == 'CREATE_COMPLETE'
    said = here.said.rpartition('Warning: environments/base.yaml')[2]
    lost = ' refers to environments/lost.yaml'
    assert said.startswith(lost), here.said
    ended = mistral.run('plan.deploy', plan='there')
    assert ended['state'] == 'SUCCESS', str(ended)
    [warning] = ended['output']['warnings']
    assert warning.startswith(f'environments/base.yaml{lost}')
    statuses = [
        mistral.action('plan.status', plan=plan.name) for plan in (here, there)
    ]
    assert [(one['status'], one['current']) for one in statuses] == [
        ('CREATE_COMPLETE', True)
    ] * 2
    assert here('status').items() <= statuses[0].items()
    session = here.session()
    query = 'description=plan%20here'
    answer = session.get('workflowv2', f'/executions?{query}')
    assert answer.json()['executions'] == []


def test_a_deployment_is_cancelled_where_it_stands(plans: Any) -> None:
    plan = plans('halted')
    plan.make(planning.files(planning.tier()))
    assert plan('deploy', '--no-wait')['plan'] == 'halted'
    plan.tier()
    # The same once more finds the one that goes on; another is refused.
    plan('deploy', '--no-wait')
    plan.write({'scripts/greet.sh': '#!/bin/sh\n'})
    plan('set', '--from', str(plan.folder))
    _, said = plan.fails('deploy')
    assert 'CREATE_IN_PROGRESS' in said
    plan('deploy', '--cancel')
    code, said = plan.fails('status', '--wait')
    assert (code, 'CREATE_FAILED' in said) == (3, True), said


_LASTING = """\
version: '2.0'
lasting.sleep:
  tasks:
    sleep:
      action: std.noop
      wait-before: 10
"""


_READY = [
    {
        'hosts': 'localhost',
        'gather_facts': False,
        'vars': {'metadata': {'name': 'Ready', 'groups': ['before']}},
        'tasks': [{'ansible.builtin.debug': {'msg': 'ready'}}],
    }
]


@pytest.fixture
def lasting(plans: Any) -> Any:
    """Return a plan, and files after whose deployment a workflow lasts."""
    plan = plans('killed')
    answer = plan.session().post(
        executions.MISTRAL,
        '/workflows',
        _LASTING.encode(),
        headers={'Content-Type': 'text/plain'},
    )
    assert answer.ok or answer.status == 409, answer
    calls = [{'workflow': 'lasting.sleep'}, {'action': 'std.noop'}]
    return plan, planning.files(planning.tier(), calls)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_deployment_outlives_a_mistral_that_is_killed_in_each_step(
    lasting: Any,
    cloud: base.Cloud,
    mistral: executions.Mistral,
) -> None:
    plan, files = lasting
    plan.make(files)
    names = ('plan.deploy', 'plan.configure', 'heat_plugins.job')
    namespace = mistral.hasten(*names, seconds=15)

    def crash() -> None:
        cloud.crash('mistral')
        cloud.start('mistral')

    plan.lock()
    execution_id = mistral.start(
        'plan.deploy', namespace, plan=plan.name, timeout=30
    )
    mistral.acts('plan.deploy', 'start')
    with cloud.frozen('heat'):
        # It starts the stack, and so it has the lock, which stays.
        plan.release()
        plan.locked()
        crash()
        plan.unlock()
    agent = plan.agent()
    with cloud.frozen('heat'):
        # It asks how the stack stands.
        mistral.acts('plan.deploy', 'follow')
        crash()
    with agent:
        # It runs what the plan names for after.
        mistral.pauses('lasting.sleep')
        crash()
        ended = mistral.end(execution_id)
    assert ended['state'] == 'SUCCESS', str(ended)
    assert ended['output']['stack']['status'] == 'CREATE_COMPLETE'


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_command_that_is_killed_in_each_step_can_be_repeated(
    lasting: Any,
) -> None:
    plan, files = lasting
    files['plan-environment.yaml']['required_validations'] = ['before']
    files['validations/ready.yaml'] = _READY
    plan.make(files)

    def deploy(kill_at: str) -> None:
        process = plan.begin('deploy')
        plan.reaches(process, kill_at)
        process.kill()
        process.communicate()

    def has_stack() -> bool:
        answer = plan.session().get('orchestration', f'/stacks/{plan.name}')
        return bool(answer.ok)

    deploy('workflow validations.run')
    # It has given Heat the plan, and perhaps the lock stays.
    process = plan.begin('deploy')
    base.until(has_stack, 240, 0.1)
    process.kill()
    process.communicate()
    plan.release()
    created = plan.stack()['id']
    deploy('CREATE_IN_PROGRESS')
    with plan.agent():
        deploy('workflow lasting.sleep')
    assert plan('deploy')['stack_id'] == created
