# SPDX-License-Identifier: Apache-2.0
"""Ceph's gateway, also in its default form; ``make test-rgw`` runs it."""

from keystoneauth1 import session as ks_session
from keystoneauth1.identity import v3
import pytest

from heat_plugins.clients import rest
from heat_plugins.clients import swift
from tests import rgw_script
from tests.functional import base
from tests.functional import servers
from tests.functional import test_status

check = test_status.check


@pytest.fixture
def default_form(cloud):
    """Let the URL of the cloud's gateway name no account meanwhile."""
    conf = cloud.path / 'again.conf'
    conf.write_text((cloud.path / 'conf/heat-extra-00.conf').read_text())

    def give(url):
        cloud.up(plugin=base.ROOT, conf=[conf], rgw_url=url)
        # They know the endpoint of before.
        cloud._sessions.clear()

    give('default')
    yield
    give('account')


def transport(cloud, user):
    env = cloud.env(user)
    return swift.KeystoneTransport(
        rest.Cloud(
            ks_session.Session(
                v3.Password(
                    auth_url=env['OS_AUTH_URL'],
                    username=env['OS_USERNAME'],
                    password=env['OS_PASSWORD'],
                    user_domain_id='default',
                    project_name=env['OS_PROJECT_NAME'],
                    project_domain_id='default',
                )
            )
        )
    )


@pytest.mark.quick
def test_it_answers_as_the_fake_of_the_unit_tests(cloud):
    found = rgw_script.run(transport(cloud, 'demo'), transport(cloud, 'other'))
    assert found == rgw_script.EXPECTED


@pytest.mark.timeout(300)
@pytest.mark.usefixtures('default_form')
def test_deployments_complete_in_ceph_s_default_form_as_the_status_says(
    cloud, stacks, check
):
    code, said = check()[test_status.TEMP_URLS]
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
