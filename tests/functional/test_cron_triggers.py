# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::CronTrigger with a real Mistral, whose cron runs."""

import datetime

import pytest

from tests.functional import base

rest = base.minicloud_client.rest

MISTRAL = 'workflowv2'

WORKFLOW = """\
version: '2.0'
tidy:
  input: [what, where: here]
  tasks:
    say:
      action: std.echo output=<% $.what %>
      publish:
        said: <% task().result %>
"""

YEARLY = '0 0 1 1 *'

# The sixth field of a pattern is for the seconds.
OFTEN = '* * * * * */2'


@pytest.fixture(scope='module')
def session(cloud):
    found = cloud.session('demo')
    answer = found.post(
        MISTRAL,
        '/workflows',
        WORKFLOW.encode(),
        headers={'Content-Type': 'text/plain'},
    )
    assert answer.ok, answer
    yield found
    found.delete(MISTRAL, '/workflows/tidy')


class Mistral:
    """What is in Mistral, and the trusts that it has."""

    def __init__(self, cloud, session):
        self._session = session
        users = cloud.session('admin').get('identity', '/users?name=mistral')
        (self._user,) = [one['id'] for one in users.json()['users']]
        # Mistral keeps a trust if the run of a trigger's last tick is deleted.
        self._former = self._trusts()

    def triggers(self):
        answer = self._session.get(MISTRAL, '/cron_triggers')
        return answer.json()['cron_triggers']

    def only(self):
        (trigger,) = self.triggers()
        return trigger

    def trusts(self):
        """Return how many trusts Mistral has got from the user meanwhile."""
        return len(self._trusts() - self._former)

    def _trusts(self):
        answer = self._session.get(
            'identity',
            f'/OS-TRUST/trusts?trustor_user_id={self._session.user_id}',
        )
        return {
            trust['id']
            for trust in answer.json()['trusts']
            if trust['trustee_user_id'] == self._user
        }

    def executions(self, trigger_id):
        answer = self._session.get(MISTRAL, '/executions')
        return [
            one
            for one in answer.json()['executions']
            if trigger_id in (one['description'] or '')
        ]


@pytest.fixture
def mistral(cloud, session):
    found = Mistral(cloud, session)
    assert found.triggers() == []
    yield found
    for trigger in found.triggers():
        session.delete(MISTRAL, f'/cron_triggers/{trigger["id"]}')


def template(**properties):
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            'trigger': {
                'type': 'OS::Mistral::CronTrigger',
                'properties': {
                    'pattern': YEARLY,
                    'workflow': {'name': 'tidy', 'input': {'what': 'all'}},
                    **properties,
                },
            }
        },
        'outputs': {
            name: {'value': {'get_attr': ['trigger', name]}}
            for name in ('remaining_executions', 'next_execution_time')
        },
    }


def made(stacks, **properties):
    stack = stacks(template(**properties))
    stack.wait('CREATE_COMPLETE')
    return stack


def updated(stack, state='UPDATE_COMPLETE', **properties):
    stack.update(template(**properties))
    stack.wait(state)


@pytest.mark.quick
def test_a_trigger_fires_and_runs_out(stacks, mistral):
    stack = made(stacks, pattern=OFTEN, count=3)
    trigger = mistral.only()
    base.until(lambda: mistral.triggers() == [], 30)
    assert stack.outputs == {
        'remaining_executions': 0,
        'next_execution_time': None,
    }
    base.until(lambda: len(mistral.executions(trigger['id'])) == 3)
    base.until(lambda: mistral.trusts() == 0)
    stack.action(check=None)
    stack.wait('CHECK_COMPLETE')
    updated(stack, pattern=YEARLY, count=4)
    assert mistral.only()['remaining_executions'] == 4
    stack.delete()
    stack.wait('DELETE_COMPLETE')
    assert (mistral.triggers(), mistral.trusts()) == ([], 0)


@pytest.mark.quick
def test_every_update_leaves_one_trigger_and_one_trust(stacks, mistral):
    stack = made(stacks, name='nightly')
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(1)
    for changed in (
        {'pattern': '0 0 2 1 *'},
        {
            'workflow': {
                'name': 'tidy',
                'input': {'what': 'little', 'where': 'there'},
                'params': {'env': {'a': 1}},
            },
            'count': 7,
        },
        {'name': 'daily', 'first_time': tomorrow.strftime('%Y-%m-%d %H:%M')},
    ):
        updated(stack, **{'name': 'nightly', **changed})
        assert mistral.trusts() == 1
        row = mistral.only()
        assert row['name'] == changed.get('name', 'nightly')
    assert row['first_execution_time']
    stack.delete()
    stack.wait('DELETE_COMPLETE')
    assert (mistral.triggers(), mistral.trusts()) == ([], 0)


@pytest.mark.quick
def test_the_former_trigger_comes_back_if_mistral_refuses_the_new_one(
    stacks, mistral
):
    stack = made(stacks, name='nightly', count=7)
    for changed, reason in (
        ({'workflow': 'tidy'}, "missing=['what']"),
        ({'pattern': None, 'first_time': '2020-01-01 00:00'}, '1 minute in'),
    ):
        properties = {'name': 'nightly', 'count': 7, **changed}
        updated(stack, 'UPDATE_FAILED', **properties)
        assert reason in stack.reason
        assert 'The former trigger has been created again' in stack.reason
        row = mistral.only()
        assert (row['pattern'], row['remaining_executions']) == (YEARLY, 7)
        assert row['workflow_input'] == '{"what": "all"}'
        assert mistral.trusts() == 1
    updated(stack, name='nightly', count=7)
    assert mistral.only()['pattern'] == YEARLY


def test_the_example_does_what_it_says(stacks, mistral, session):
    path = base.ROOT / 'contrib/examples/workflows/nightly.yaml'
    stack = stacks(path.read_text(), pattern=OFTEN, count=2)
    stack.wait('CREATE_COMPLETE')
    base.until(lambda: stack.outputs['remaining'] == 0)

    def inputs():
        rows = session.get(MISTRAL, '/executions').json()['executions']
        name = f'{stack.name}.report.report'
        return [one['input'] for one in rows if one['workflow_name'] == name]

    base.until(lambda: len(inputs()) == 2)
    # The trigger gives none: the workflow's default serves.
    assert inputs() == ['{"about": "last night"}'] * 2
    assert stack.outputs['upcoming'] == []
    stack.delete()
    stack.wait('DELETE_COMPLETE')
    base.until(lambda: mistral.trusts() == 0)
