# SPDX-License-Identifier: Apache-2.0
"""A user with only the role reader changes nothing by a signal."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.functional import base
from tests.functional import test_triggers

rest = base.minicloud_client.rest

NAME, PASSWORD = 'auditor', 'of-an-auditor'

#: As Heat's own default, without the rules of former years.
POLICY = '"stacks:update": "role:member and project_id:%(project_id)s"\n'


@pytest.fixture
def reader(cloud: base.minicloud_client.Cloud) -> Iterator[str]:
    """Return the token of a reader of the project demo."""
    path = cloud.path / 'conf/policy.yaml'
    path.write_text(POLICY)
    admin = cloud.session('admin')

    def ask(method: str, path: str, body: Any = None) -> Any:
        answer = admin.request(method, 'identity', path, body)
        assert answer.ok, answer
        return answer

    user = {'name': NAME, 'password': PASSWORD, 'domain_id': 'default'}
    made = ask('POST', '/users', {'user': user}).json()['user']
    (role,) = ask('GET', '/roles?name=reader').json()['roles']
    project = cloud.session().project_id
    ask(
        'PUT',
        f'/projects/{project}/users/{made["id"]}/roles/{role["id"]}',
    )
    yield _token(admin.endpoint('identity'), made['id'], project)
    ask('DELETE', f'/users/{made["id"]}')
    # Heat does not expect that the file goes.
    path.write_text('{}')


def _token(keystone: str, user_id: str, project: str) -> str:
    body = {
        'auth': {
            'identity': {
                'methods': ['password'],
                'password': {'user': {'id': user_id, 'password': PASSWORD}},
            },
            'scope': {'project': {'id': project}},
        }
    }
    answer = rest.send('POST', f'{keystone}/auth/tokens', body=body)
    return str(answer.headers['X-Subject-Token'])


@pytest.mark.quick
def test_a_reader_starts_and_answers_nothing(
    cloud: base.minicloud_client.Cloud, stacks: Any, reader: str
) -> None:
    stack = stacks(base.software(signal_transport='HEAT_SIGNAL'))
    stack.waiting()
    heat = cloud.session().endpoint('orchestration')
    url = f'{heat}/stacks/{stack.name}/{stack.id}'
    # Heat's policy permits the signal, and no update.
    assert rest.send('PUT', url, token=reader, body={}).status == 403
    signal = f'{url}/resources/deployment/signal'
    for details, said in (
        ({'trigger': 'BACKUP'}, 'Not triggered: its sender may not update'),
        ({'operate': {'action': 'X'}}, 'Not triggered: its sender may not'),
        ({'greeting': 'forged'}, 'Result refused: its sender may not update'),
    ):
        answer = rest.send('POST', signal, token=reader, body=details)
        assert answer.ok, answer
        event = test_triggers.told(stack, said)
        assert 'policy stacks:update of Heat' in event
    assert stack.status == 'CREATE_IN_PROGRESS'
    # A user who may update the stack answers in the server's place.
    stack.signal('deployment', {'greeting': 'hello'})
    stack.wait('CREATE_COMPLETE')
