# SPDX-License-Identifier: Apache-2.0
"""The tree of errors, and how one travels through Mistral."""

import inspect

import pytest

from heat_plugins import errors

# What has no code is never read again.
CODED = [
    kind
    for kind in vars(errors).values()
    if inspect.isclass(kind)
    and issubclass(kind, errors.Error)
    and kind is not errors.Error
    and 'code' in vars(kind)
]


def test_each_status_means_one_kind_of_error():
    for kind, *statuses in (
        (errors.ServiceError, 301, 400, 412),
        (errors.Denied, 401, 403),
        (errors.NotFound, 404),
        (errors.Conflict, 409),
        (errors.Unavailable, 408, 429, 500, 503, 507),
    ):
        assert {errors.of_status(status) for status in statuses} == {kind}


@pytest.mark.parametrize('kind', CODED)
def test_an_error_with_a_code_survives_its_way_through_mistral(kind):
    again = errors.restore(errors.report(kind('why')))
    assert (type(again), str(again)) == (kind, 'why')
    # What is none of ours is an error of a service.
    found = errors.report(ValueError('why'))
    assert found == {'code': 'error', 'message': 'why'}
    for report in (found, {'code': 'later'}):
        assert type(errors.restore(report)) is errors.ServiceError
