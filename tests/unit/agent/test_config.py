# SPDX-License-Identifier: Apache-2.0
"""What a config says of signals, reports and time."""

import pytest

from heat_plugins.signals import body
from tests.unit.agent import conftest

from heat_config_supervisor import config as configs  # isort: skip

#: When the configs of these tests were made.
CREATED = 1795240800.0

PUT = {'deploy_signal_id': 'u', 'deploy_signal_verb': 'PUT'}


def read(**inputs):
    return configs.read(conftest.config(**inputs))


def test_what_is_no_config_is_told_and_one_keeps_its_secrets_to_itself():
    for content in (
        *(b'', b'[]', b'{}', b'{"id": "c1", "inputs": null}'),
        b'{"id": "../c1", "inputs": []}',
        b'{"id": null, "inputs": [1]}',
    ):
        with pytest.raises(ValueError, match=r'.'):
            configs.read(content)
    found = read(deploy_signal_id=conftest.URL, password='hunter2')
    assert 's3cret' not in repr(found)
    assert 'hunter2' not in repr(found)


@pytest.mark.parametrize(
    ('inputs', 'signalled', 'has_object', 'needs_notifier'),
    [
        ({}, False, False, False),
        ({'deploy_signal_id': ''}, False, False, False),
        ({'deploy_signal_id': 'u'}, True, False, False),
        (PUT, True, True, False),
        ({'deploy_auth_url': 'u'}, True, False, True),
        ({'deploy_queue_id': 'q', 'deploy_auth_url': 'u'}, True, False, True),
    ],
)
def test_how_it_is_signalled(inputs, signalled, has_object, needs_notifier):
    config = read(**inputs)
    found = config.is_signalled, config.has_object, config.needs_notifier
    assert found == (signalled, has_object, needs_notifier)


@pytest.mark.parametrize(
    ('given', 'after', 'limit'),
    [
        # Some of it is kept for the answer.
        ('600', 0, 585),
        ('600', 100, 485),
        ('20', 0, 15),
        # One of the clocks is wrong.
        ('600', -50, 585),
        ('600', 700, 585),
        *((given, 0, None) for given in (None, '', 'soon', '-5')),
    ],
)
def test_the_time_that_is_left_counts(server, given, after, limit):
    found = read(**{body.TIMEOUT_INPUT: given})
    assert found.time_limit(CREATED + after) == limit


def test_whoever_made_the_image_may_limit_it_too(server, monkeypatch):
    monkeypatch.setenv('HEAT_CONFIG_TIMEOUT', '100')
    assert read().time_limit(CREATED) == 100
    given = read(deploy_signal_timeout='600')
    assert given.time_limit(CREATED) == 100
    assert given.time_limit(CREATED + 560) == 30


def test_what_the_server_is_given_may_be_unknown(server):
    assert configs.given() is None
    server.given('c1', 'c2')
    assert configs.given() == {'c1', 'c2'}
    (server.path / 'metadata').write_text('{{deployments}}')
    assert configs.given() is None
