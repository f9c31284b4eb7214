# SPDX-License-Identifier: Apache-2.0
"""Ceph's gateway, also in its default form; ``make test-rgw`` runs it."""

import pytest

from heat_plugins.clients import swift
from tests import rgw_script
from tests.functional import base
from tests.functional import running
from tests.functional import servers
from tests.functional import test_status


@pytest.fixture
def default_form(cloud):
    """Let the URL of the cloud's gateway name no account meanwhile."""

    def give(url):
        cloud.again(plugin=base.ROOT, rgw_url=url)
        # They know the endpoint of before.
        cloud._sessions.clear()

    give('default')
    yield
    give('account')


@pytest.mark.quick
def test_it_answers_as_the_fake_of_the_unit_tests(cloud):
    both = (
        swift.KeystoneTransport(running.logged_in(cloud, user))
        for user in ('demo', 'other')
    )
    assert rgw_script.unexpected(*both) == {}


@pytest.mark.usefixtures('default_form')
def test_deployments_complete_in_ceph_s_default_form_as_the_status_says(
    cloud, stacks
):
    code, said = test_status.check(cloud)[test_status.TEMP_URLS]
    assert code == test_status.WARNING, said
    assert '/swift/v1 names no account' in said
    assert 'rgw swift account in url = true' in said
    stack = stacks(base.software())
    with servers.agent(cloud, stack):
        stack.wait('CREATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'hello world'
    assert len(servers.signals(cloud, stack)) == 1
    # Its container goes with the stack, in the form that made it.
    stack.purge()
