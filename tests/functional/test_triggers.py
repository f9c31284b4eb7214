# SPDX-License-Identifier: Apache-2.0
"""Runs that a signal starts, on one server or on a group of them."""

import uuid

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import running
from tests.functional import servers

_BACKUP = '#!/bin/sh\necho "level $level"\n'


def template(**properties):
    """Return a deployment with an action that runs on demand."""
    config = running.component({'CREATE': '', 'BACKUP': _BACKUP}, {'level': 3})
    server = {}
    if conftest.PROFILE == 'small':
        # With credentials for Heat's API; see `conftest.trusted`.
        server = {'software_config_transport': 'POLL_SERVER_HEAT'}
    whole = base.software(
        config=config,
        server=server,
        # Nothing but runs is waited for here.
        signal_transport='NO_SIGNAL',
        input_values={},
        **properties,
    )
    whole['outputs'] = {
        name: {'value': {'get_attr': ['deployment', name]}}
        for name in ('runs', 'trigger_url')
    }
    return whole


def post(url, details, **headers):
    """POST to a URL as curl would; the HTTP status."""
    return base.rest.send('POST', url, body=details, headers=headers).status


def told(stack, beginning, name='deployment', holding=''):
    """Wait for an event of a resource that begins like that, and has a text.

    Other tests may have told the stack of a module something else.
    """

    def event():
        reasons = [
            str(one['resource_status_reason']) for one in stack.events(name)
        ]
        found = [
            one
            for one in reasons
            if one.startswith(beginning) and holding in one
        ]
        return found[0] if found else None

    return str(base.until(event))


@pytest.fixture(scope='module')
def stack(cloud, module_stacks):
    found = module_stacks(template(trigger_url=True), name='hooked').created()
    return found


@pytest.mark.quick
def test_whoever_has_the_url_starts_a_run_that_the_engine_sees_to_its_end(
    cloud, stack
):
    details = {'trigger': 'BACKUP', 'input_values': {'level': 9}}
    assert post(stack.outputs['trigger_url'], details) == 200
    said = told(stack, 'Signal: run ')
    assert said.endswith('of BACKUP has started on 1 server')
    base.until(lambda: running.given(stack) == ['deployment-BACKUP'])
    with servers.agent(cloud, stack):
        # Nobody has asked for it.
        base.until(lambda: not running.given(stack))
    (run,) = stack.outputs['runs']
    assert run['id'] in said
    assert (run['state'], run['started_by']) == ('complete', 'a signal')
    assert run['outputs']['deploy_stdout'] == 'level 9\n'
    # Who sends it twice, as the answer was lost, starts it once.
    order = {'id': str(uuid.uuid4()), 'action': 'BACKUP'}
    for _ in range(2):
        url = stack.outputs['trigger_url']
        assert post(url, {'run': order}) == 200
    user = running.client(cloud)
    base.until(lambda: len(list(user.list(stack=stack.name))) == 2)
    user.cancel(order['id'])
    assert user.wait(order['id'], 60).state == 'cancelled'


class Server:
    """Whoever has the credentials with which a server polls."""

    def __init__(self, cloud, stack):
        shown = stack.resource('server', 'os_collect_config')
        login = shown['attributes']['os_collect_config']['heat']
        user = {'id': login['user_id'], 'password': login['password']}
        self.token = base.token(login['auth_url'], user, login['project_id'])
        session = cloud.session()
        self.endpoint = session.endpoint('orchestration').replace(
            session.project_id, login['project_id']
        )
        self._url = f'{self.endpoint}/stacks/{stack.name}/{stack.id}/resources'

    def signal(self, details, name='deployment'):
        """Signal a resource of the stack."""
        url = f'{self._url}/{name}/signal'
        status = post(url, details, **{'X-Auth-Token': self.token})
        assert status == 200


@pytest.mark.quick
@conftest.trusted
def test_a_server_starts_nothing_unless_the_template_lets_it(cloud, stacks):
    stack = stacks(template(), name='ordered').created()
    server = Server(cloud, stack)
    server.signal({'trigger': 'BACKUP'})
    said = told(stack, 'Not triggered: ')
    assert 'property "trigger_by_servers"' in said
    assert not running.given(stack)
    stack.updated(template(trigger_by_servers=True))
    server.signal({'trigger': 'BACKUP'})
    told(stack, 'Signal: run ')
    base.until(lambda: running.given(stack) == ['deployment-BACKUP'])


@pytest.mark.quick
@conftest.trusted
def test_a_server_answers_for_no_other(cloud, stacks):
    server = {'software_config_transport': 'POLL_SERVER_HEAT'}
    whole = base.software(server=server, signal_transport='CFN_SIGNAL')
    stack = stacks(whole, name='another')
    waiting = stack.waiting()
    Server(cloud, stack).signal({'greeting': 'a lie'})
    said = told(stack, 'Result refused: ')
    assert 'other credentials' in said
    assert post(waiting.signal_url, {'greeting': 'hello'}) == 200
    stack.wait('CREATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'hello'


@pytest.mark.quick
def test_the_url_is_dead_once_the_template_asks_no_more(stacks):
    stack = stacks(template(trigger_url=True)).created()
    url = stack.outputs['trigger_url']
    stack.updated(template())
    assert stack.outputs['trigger_url'] is None
    # Heat makes a 500 of it that Keystone has no such key.
    assert post(url, {'trigger': 'BACKUP'}) >= 400
