# SPDX-License-Identifier: Apache-2.0
"""Workflows of a stack that are run by the clock."""

import pytest

from tests.functional import base
from tests.functional import flows

#: Ends at once, or stays paused.
BOTH = f"""\
quick:
  {flows.NOOP}
slow:
  tasks:
    first: {{action: std.noop, pause-before: true}}
"""


def clock(workflow, depends=True, **properties):
    """Return a trigger of a workflow in the stack's definition."""
    name = ['workflow', 'available_workflows', workflow]
    return {
        'type': 'OS::Mistral::CronTrigger',
        'properties': {
            'pattern': flows.YEARLY,
            'workflow': {'get_attr': name} if depends else workflow,
            **properties,
        },
    }


def with_triggers(content, **triggers):
    content['resources'].update(triggers)
    return content


@pytest.fixture
def theirs(mistral):
    """Makes a cron trigger that belongs to no stack."""
    names = []

    def make(name, workflow):
        body = {
            'name': name,
            'pattern': flows.YEARLY,
            'workflow_name': workflow,
        }
        answer = mistral.session.post(flows.MISTRAL, '/cron_triggers', body)
        assert answer.ok, answer
        names.append(name)

    def remove(name):
        mistral.session.delete(flows.MISTRAL, f'/cron_triggers/{name}')
        names.remove(name)

    make.remove = remove
    yield make
    for name in list(names):
        remove(name)


def test_nothing_that_the_clock_began_is_left_behind(made, mistral):
    content = with_triggers(
        flows.template(BOTH),
        quick=clock('quick', pattern=flows.OFTEN),
        slow=clock('slow', pattern=flows.OFTEN),
    )
    made(content)

    def both():
        states = {one['state'] for one in mistral.executions()}
        return states >= {'SUCCESS', 'PAUSED'}

    base.until(both, 30)
    # The fixture deletes the stack, and holds that no execution is left.


def test_what_runs_goes_on_if_the_template_says_so(made, mistral):
    content = with_triggers(
        flows.template(BOTH, executions_on_delete='leave'),
        slow=clock('slow', pattern=flows.OFTEN, count=1),
        quick=clock('quick', pattern=flows.OFTEN, count=1),
    )
    stack = made(content)
    base.until(lambda: len(mistral.executions()) == 2, 30)
    base.until(lambda: 'PAUSED' in mistral.states().values())
    stack.delete()
    stack.wait('DELETE_COMPLETE')
    ((identifier, state),) = mistral.states().items()
    assert state == 'PAUSED'
    mistral.session.delete(
        flows.MISTRAL, f'/executions/{identifier}?force=true'
    )


def test_workflow_that_a_trigger_of_others_runs_is_kept(made, mistral, theirs):
    stack = made(flows.template(f'{flows.ECHO}more:\n  {flows.NOOP}\n'))
    full = f'{stack.name}.workflow.more'
    theirs('weekly', full)
    stack.signal('workflow', {'workflow': 'more'})
    ran = flows.signalled(stack)['execution_id']
    base.until(lambda: mistral.state(ran) == 'SUCCESS')
    stack.update(flows.template())
    stack.wait('UPDATE_COMPLETE')
    # Mistral deletes no workflow that a trigger runs.
    assert full in mistral.definitions(stack)
    reasons = [
        one['resource_status_reason'] for one in stack.events('workflow')
    ]
    assert any(f'Mistral keeps {full}' in one for one in reasons)
    stack.delete()
    stack.wait('DELETE_FAILED')
    assert f'cannot delete the workflow "{full}"' in stack.reason
    assert 'cron triggers associated' in stack.reason
    assert ran in mistral.states()
    theirs.remove('weekly')
    stack.delete()
    stack.wait('DELETE_COMPLETE')


def test_trigger_of_the_stack_goes_over_to_another_workflow(made, mistral):
    stack = made(with_triggers(flows.template(BOTH), by=clock('quick')))
    prefix = f'{stack.name}.workflow'
    other = BOTH.replace('quick', 'swift')
    stack.update(with_triggers(flows.template(other), by=clock('swift')))
    stack.wait('UPDATE_COMPLETE')
    (trigger,) = mistral.triggers()
    assert trigger['workflow_name'] == f'{prefix}.swift'
    # It was in use while the workflows changed.
    reasons = [
        one['resource_status_reason'] for one in stack.events('workflow')
    ]
    assert any(f'Mistral keeps {prefix}.quick' in one for one in reasons)
    stack.action(check=None)
    stack.wait('CHECK_COMPLETE')
    assert set(mistral.definitions(stack)) == {
        f'{prefix}.swift',
        f'{prefix}.slow',
    }


def test_another_default_reaches_what_the_clock_begins(made, mistral):
    def whole(text):
        return with_triggers(
            flows.template(flows.ECHO, input={'text': text}),
            by=clock('echo', pattern=flows.OFTEN),
        )

    stack = made(whole('one'))
    (trigger,) = mistral.triggers()

    def said(text):
        outputs = [one['output'] for one in stack.outputs['executions']]
        return {'said': text} in outputs

    base.until(lambda: said('one'), 30)
    stack.update(whole('two'))
    stack.wait('UPDATE_COMPLETE')
    assert [one['id'] for one in mistral.triggers()] == [trigger['id']]
    base.until(lambda: said('two'), 30)
