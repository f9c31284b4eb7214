# SPDX-License-Identifier: Apache-2.0
"""The fake of Ceph's gateway; tests/functional/test_rgw.py has the real."""

from tests import rgw_script
from tests.unit import fake_swift


def test_it_answers_as_the_real_one_does():
    for endpoint in (fake_swift.CEPH_ACCOUNT, fake_swift.CEPH):
        cluster = fake_swift.ceph(endpoint)
        users = [cluster.transport(name) for name in ('one', 'two')]
        assert rgw_script.unexpected(*users) == {}
