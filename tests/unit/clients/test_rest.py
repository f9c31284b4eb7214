# SPDX-License-Identifier: Apache-2.0
"""What the failures of a Keystone session mean, for each service."""

from keystoneauth1 import exceptions
import pytest

from heat_plugins import errors
from heat_plugins.clients import rest

ABSENT = errors.NoObjectStore('there is none')


@pytest.mark.parametrize(
    ('raised', 'kind', 'said'),
    [
        (exceptions.EndpointNotFound(), errors.NoObjectStore, 'there is none'),
        (exceptions.EmptyCatalog(), errors.NoObjectStore, 'there is none'),
        *(
            (refusal, errors.Denied, 'refuses these credentials a token')
            for refusal in (
                exceptions.Unauthorized('hunter2'),
                exceptions.Forbidden('hunter2'),
                exceptions.NotFound('hunter2'),
                exceptions.AuthorizationFailure('hunter2'),
                exceptions.MissingAuthPlugin('hunter2'),
            )
        ),
        (
            exceptions.ServiceUnavailable('hunter2'),
            errors.Unavailable,
            'Keystone answered 503 (ServiceUnavailable)',
        ),
        *(
            (exc, errors.Unavailable, f'Cannot reach a: {type(exc).__name__}')
            for exc in (
                exceptions.ConnectFailure('hunter2'),
                exceptions.ConnectTimeout('hunter2'),
                exceptions.DiscoveryFailure('hunter2'),
            )
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_failure_has_one_meaning_and_quotes_nothing(raised, kind, said):
    for whom in (None, 'the host'):
        error = rest.unanswered(raised, 'a', ABSENT, whom)
        assert (type(error), error.status) == (kind, None)
        expected = said.replace('reach a', f'reach {whom or "a"}')
        assert expected in str(error)
        assert 'hunter2' not in str(error)
