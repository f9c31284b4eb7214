# SPDX-License-Identifier: Apache-2.0
"""Who sends a signal, and what Heat's policy lets them start."""

import types
from unittest import mock

from heat.common import context as heat_context
from heat.common import exception
from oslo_config import cfg
import pytest

from heat_plugins import errors
from heat_plugins.engine import callers

PROJECT = 'project'

MEMBER = callers.Signaller(user_id='user', is_of_project=True, may_update=True)
READER = callers.Signaller(user_id='user', is_of_project=True)
SERVER = callers.Signaller(user_id='user', is_of_project=False)


@pytest.fixture(autouse=True)
def _users_of_stacks():
    cfg.CONF.set_override('stack_user_domain_id', 'users')
    yield
    cfg.CONF.clear_override('stack_user_domain_id')


def request(answer=True, **values):
    """Return a request's context, with what the policy answers."""
    given = {
        'user_id': 'user',
        'project_id': PROJECT,
        'user_domain_id': 'default',
        'roles': ['member'],
        'is_admin': False,
        'trust_id': None,
    }
    enforce = mock.Mock(side_effect=[answer])
    return types.SimpleNamespace(
        **{**given, **values}, policy=mock.Mock(enforce=enforce)
    )


def loaded(context):
    return types.SimpleNamespace(
        tenant_id=PROJECT, defn=types.SimpleNamespace(_context=context)
    )


def stored():
    return heat_context.StoredContext(
        user_id='owner', project_id=PROJECT, is_admin=False
    )


@pytest.mark.parametrize(
    ('context', 'expected'),
    [
        (request(), MEMBER),
        (request(exception.Forbidden()), READER),
        (request(ValueError('invalid policy.yaml')), READER),
        (request(is_admin=True, project_id='another'), MEMBER),
        (request(project_id='another'), SERVER),
        (request(user_domain_id='users'), SERVER),
        # Without a domain of their own, users of stacks are the project's.
        (request(roles=['heat_stack_user']), SERVER),
        (request(user_id=None), callers.UNKNOWN),
        (stored(), callers.UNKNOWN),
        (None, callers.UNKNOWN),
    ],
)
def test_the_request_tells_who_sends_a_signal(context, expected):
    assert callers.of(loaded(context)) == expected
    if expected is MEMBER:
        target = context.policy.enforce.call_args.kwargs['target']
        assert target == {'project_id': context.project_id}


@pytest.mark.parametrize(
    ('context', 'expected'),
    [
        (request(), False),
        (request(exception.Forbidden()), True),
        # In doubt a template sees what it saw before.
        (request(ValueError('invalid policy.yaml')), False),
        (request(exception.Forbidden(), trust_id='trust'), False),
        (stored(), False),
    ],
)
def test_who_may_not_update_the_stack_is_known_for_certain(context, expected):
    assert callers.may_not_update(loaded(context)) == expected


@pytest.mark.parametrize(
    ('signaller', 'servers_may', 'why'),
    [
        (MEMBER, False, None),
        (READER, True, 'may not update the stack'),
        (SERVER, True, None),
        (SERVER, False, "credentials of the stack's servers"),
        (callers.UNKNOWN, True, None),
        (callers.UNKNOWN, False, 'cannot tell whose credentials'),
    ],
)
def test_a_template_may_let_servers_start_actions(signaller, servers_may, why):
    if why is None:
        callers.check_may_start(signaller, servers_may=servers_may)
        return
    with pytest.raises(errors.Refused, match=why) as raised:
        callers.check_may_start(signaller, servers_may=servers_may)
    is_remedy = '"trigger_by_servers"' in str(raised.value)
    assert is_remedy == (signaller is not READER)
