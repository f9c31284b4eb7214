# SPDX-License-Identifier: Apache-2.0
"""Whose signals settle a deployment, and which of them."""

import dataclasses
from unittest import mock

import pytest

from heat_plugins import heat_values
from heat_plugins import tokens
from heat_plugins.deployments import deliveries
from heat_plugins.engine import callers
from heat_plugins.engine import histories
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import servers
from heat_plugins.signals import body
from heat_plugins.signals import presigned

OWN = callers.Signaller(user_id='own', is_of_project=False)
OTHER = callers.Signaller(user_id='other', is_of_project=False)
USER = callers.Signaller(user_id='user', is_of_project=True, may_update=True)
READER = callers.Signaller(user_id='reader', is_of_project=True)

REPORT = {body.REPORT: {}, body.CONFIG_ID: 'c1'}
NAMED = {body.CONFIG_ID: 'c1'}
LATE = {body.CONFIG_ID: 'c0', 'deploy_status_code': 7}
EARLIER = (
    'it answers an earlier action on server server of d1, which failed with '
    'exit code 7; UPDATE still waits'
)


def by_url(signature, **details):
    return presigned.Presigned({'deploy_status_code': 0, **details}, signature)


def row(number='d1', transport='CFN_SIGNAL', signature='s1', **values):
    given = {
        'deploy_signal_transport': transport,
        'deploy_signal_id': f'http://cfn/v1?Signature={signature}',
    }
    found = heat_values.DeploymentRow(
        id=number,
        server_id=f'server of {number}',
        config=heat_values.Config(
            id=number.replace('d', 'c'),
            name='config',
            group='script',
            config='',
            inputs=[{'name': k, 'value': v} for k, v in given.items()],
            outputs=[],
        ),
        action='UPDATE',
        status='IN_PROGRESS',
        reason='',
        outputs={},
        input_values={},
        reading_project=None,
    )
    return dataclasses.replace(found, **values)


STARTED = {'reason': tokens.STARTED.after('The server has started')}


class Deployment:
    """What a signal needs of a resource, and what comes of the signal."""

    resource_id, root_stack_id, context = 'd1', 's1', None
    id, name, label = 7, 'deployment', 'Deployment d1'
    stack = mock.Mock(id='s1')

    def __init__(self, patch):
        self.kept = {}
        self.settled, self.begun = [], []
        self.counts = True
        self.replaced = []
        patch.setattr(servers.Servers, 'name', lambda self, number: number)
        patch.setattr(deployment_rows, 'settle', self._settle)
        patch.setattr(rows, 'begin', self._begin)
        patch.setattr(
            resources,
            'replaced_users',
            lambda *_: {each.id: user for each, user in self.replaced},
        )
        patch.setattr(
            rows,
            'visible',
            lambda context, ids: {each.id: each for each, _ in self.replaced},
        )

    def _settle(self, outcomes):
        if self.counts:
            self.settled += [
                (ticket.deployment_id, outcome.status)
                for ticket, outcome in outcomes.items()
            ]
        return [*outcomes] if self.counts else []

    def _begin(self, context, tickets):
        self.begun += [ticket.deployment_id for ticket in tickets]
        return tickets if self.counts else []

    def _get_user_id(self):
        return 'own'

    def data(self):
        return self.kept

    def data_set(self, key, value):
        self.kept[key] = value

    def take(self, signaller, details, given):
        return histories.SignalHandler(self, signaller).take(details, given)

    def refuses(self, signaller, details, given, why):
        with pytest.raises(deliveries.ActionFailed, match=why):
            self.take(signaller, details, given)
        assert not self.settled


@pytest.fixture
def deployment(monkeypatch):
    return Deployment(monkeypatch)


@pytest.mark.parametrize('details', [{}, NAMED, by_url('s1')])
@pytest.mark.parametrize('signaller', [OWN, USER, callers.UNKNOWN])
def test_its_server_and_users_of_the_project_answer(
    deployment, signaller, details
):
    told = deployment.take(signaller, details, row())
    assert told == 'deployment d1 succeeded'
    assert deployment.settled == [('d1', 'COMPLETE')]


def test_what_cannot_be_read_is_a_failure(deployment):
    assert deployment.take(OWN, ['no map'], row()) == 'deployment d1 failed'
    assert deployment.settled == [('d1', 'FAILED')]


def test_what_another_engine_has_settled_is_told_there(deployment):
    deployment.counts = False
    assert deployment.take(OWN, {}, row()) is None
    assert deployment.take(OWN, REPORT, row()) is None
    assert deployment.take(OWN, {}, None) is None


@pytest.mark.parametrize(
    ('signaller', 'given', 'why'),
    [
        (OTHER, row(), 'other credentials than those given to server'),
        # It has the user of a URL for triggers.
        (OWN, row(transport='TEMP_URL_POLL'), 'other credentials'),
        (READER, row(), 'may not update the stack'),
    ],
)
@pytest.mark.parametrize(
    'details', [{}, NAMED, REPORT, {'deploy_status_code': 1}]
)
def test_nobody_else_does(deployment, signaller, given, why, details):
    deployment.refuses(signaller, details, given, why)


def test_where_the_agent_names_the_config_no_other_result_counts(deployment):
    told = deployment.take(OWN, REPORT, row())
    assert told == 'Started: UPDATE on server server of d1'
    assert deployment.begun == ['d1']
    deployment.refuses(OWN, {}, row(transport='HEAT_SIGNAL'), 'names none')
    # Not even by the right URL once it has named this action.
    deployment.refuses(OWN, by_url('s1'), row(**STARTED), 'names none')
    # A user may answer for a server that does not.
    assert deployment.take(USER, {}, row()) == 'deployment d1 succeeded'


def test_a_name_by_hand_obliges_no_agent(deployment):
    deployment.take(USER, REPORT, row())
    assert deployment.take(OWN, {}, row()) == 'deployment d1 succeeded'
    # Nor one of a server that was rebuilt, whose former agent named configs.
    deployment.take(OWN, REPORT, row())
    told = deployment.take(OWN, by_url('s1'), row())
    assert told == 'deployment d1 succeeded'


@pytest.mark.parametrize(
    ('details', 'given', 'said'),
    [
        (
            by_url('s0', deploy_status_code=7),
            row(),
            EARLIER,
        ),
        (LATE, row(), EARLIER),
        (
            {},
            row(status='COMPLETE'),
            'it came after the end of UPDATE on server server of d1: '
            'succeeded',
        ),
    ],
)
def test_what_answers_another_action_is_ignored_and_told(
    deployment, details, given, said
):
    told = deployment.take(OWN, details, given)
    assert told == f'Result ignored: {said}'
    assert not deployment.settled
    # A report of it says nothing.
    late = {body.REPORT: {}, body.CONFIG_ID: 'c0'}
    assert deployment.take(OWN, late, given) is None


FORMER = row('d0', signature='s0')
FORMER_BY_USER = row('d0', 'HEAT_SIGNAL', signature='')


@pytest.mark.parametrize(
    ('signaller', 'details', 'former'),
    [(OWN, by_url('s0'), FORMER), (OTHER, {}, FORMER_BY_USER)],
)
def test_a_result_reaches_the_deployment_that_was_replaced(
    deployment, signaller, details, former
):
    deployment.replaced = [(former, 'other')]
    told = deployment.take(signaller, details, row())
    assert told == 'deployment d0 succeeded'
    assert deployment.settled == [('d0', 'COMPLETE')]


@pytest.mark.parametrize('user', ['another', None])
def test_no_other_server_answers_for_the_one_that_was_replaced(
    deployment, user
):
    deployment.replaced = [(FORMER_BY_USER, user)]
    deployment.refuses(OTHER, {}, row(), 'other credentials')
