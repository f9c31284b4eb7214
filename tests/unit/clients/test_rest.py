# SPDX-License-Identifier: Apache-2.0
"""What the failures of a Keystone session mean, for each service."""

from keystoneauth1 import exceptions
import pytest

from heat_plugins import errors
from heat_plugins.clients import rest

ABSENT = errors.NoObjectStore('there is none')
REFUSED = 'refuses these credentials a token'
REFUSALS = ('Unauthorized', 'Forbidden', 'NotFound', 'MissingAuthPlugin')
REFUSALS += ('AuthorizationFailure',)


@pytest.mark.parametrize(
    ('raised', 'kind', 'said'),
    [
        ('EndpointNotFound', errors.NoObjectStore, 'there is none'),
        ('EmptyCatalog', errors.NoObjectStore, 'there is none'),
        *((name, errors.Denied, REFUSED) for name in REFUSALS),
        ('ServiceUnavailable', errors.Unavailable, 'Keystone answered 503 (S'),
        ('ConnectFailure', errors.Unavailable, 'Cannot reach a: ConnectF'),
        ('ConnectTimeout', errors.Unavailable, 'Cannot reach a: ConnectT'),
        ('DiscoveryFailure', errors.Unavailable, 'Cannot reach a: Disco'),
    ],
)
def test_each_failure_has_one_meaning_and_quotes_nothing(raised, kind, said):
    raised = getattr(exceptions, raised)('hunter2')
    for whom in (None, 'the host'):
        error = rest.unanswered(raised, 'a', ABSENT, whom)
        assert (type(error), error.status) == (kind, None)
        assert said.replace('reach a', f'reach {whom or "a"}') in str(error)
        assert 'hunter2' not in str(error)
