# SPDX-License-Identifier: Apache-2.0
"""Ceph's gateway in each of its forms; ``make test-rgw`` runs it."""

from collections.abc import Callable, Iterator
from typing import Any

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

Forms = Callable[[str, bool], base.Cloud]


@pytest.fixture
def forms(request: pytest.FixtureRequest) -> Iterator[Forms]:
    """Return what gives the cloud's gateway a form; it ends as it began."""
    cloud = request.getfixturevalue('cloud')
    conf = cloud.path / 'conf/heat-extra-00.conf'
    text = conf.read_text()
    again = cloud.path / 'again.conf'
    again.write_text(text)

    def give(url: str, implicit: bool) -> base.Cloud:
        cloud.up(
            plugin=base.ROOT,
            conf=[again],
            rgw_url=url,
            implicit_tenants=implicit,
        )
        # They know the endpoint of before.
        cloud._sessions.clear()
        return cloud

    yield give
    give('account', False)


def transport(cloud: base.Cloud, user: str) -> swift.KeystoneTransport:
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
def test_it_answers_as_the_fake_of_the_unit_tests(cloud: base.Cloud) -> None:
    found = rgw_script.run(transport(cloud, 'demo'), transport(cloud, 'other'))
    assert found == rgw_script.EXPECTED


#: RGW's URL, implicit tenants, a user that RGW has not made without them, and
#: what the status check says.
FORMS: list[tuple[str, bool, str, int, tuple[str, ...]]] = [
    (
        'account',
        False,
        'demo',
        test_status.WARNING,
        ('signed with sha1 and the key of the account', 'X-Copy-From'),
    ),
    (
        'default',
        False,
        'demo',
        test_status.WARNING,
        ('/swift/v1 names no account', 'rgw swift account in url = true'),
    ),
    (
        'account',
        True,
        'admin',
        test_status.WARNING,
        ('signed with sha1 and the key of the account', 'X-Copy-From'),
    ),
    (
        'default',
        True,
        'admin',
        test_status.FAILURE,
        ('accepts no TempURL', 'rgw swift account in url = true'),
    ),
]


@pytest.mark.timeout(300)
def test_the_status_check_tells_the_truth_of_each_form(
    forms: Forms, check: Any
) -> None:
    for url, implicit, user, code, told in FORMS:
        forms(url, implicit)
        found = check(user=user)
        form = (url, implicit)
        got, said = found[test_status.TEMP_URLS]
        assert (form, got, said) == (form, code, said)
        for text in told:
            assert text in said, (form, said)


@pytest.mark.timeout(300)
def test_deployments_complete_in_ceph_s_default_form(
    forms: Forms, stacks: base.Make
) -> None:
    cloud = forms('default', False)
    stack = stacks(base.software())
    with servers.agent(cloud, stack):
        stack.wait('CREATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'hello world'
    assert len(servers.signals(cloud, stack)) == 1
    # Its container goes with the stack, in the form that made it.
    stack.purge()
