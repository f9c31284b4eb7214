# SPDX-License-Identifier: Apache-2.0
"""The fake of Ceph's gateway; tests/functional/test_rgw.py has the real."""

import testtools

from tests import rgw_script
from tests.unit import fake_swift


class FakeRGWTest(testtools.TestCase):
    def test_it_answers_as_the_real_one_does(self):
        for endpoint in (fake_swift.CEPH_ACCOUNT, fake_swift.CEPH):
            cluster = fake_swift.ceph(endpoint)
            found = rgw_script.run(
                cluster.transport('one'), cluster.transport('two')
            )
            assert found == rgw_script.EXPECTED
