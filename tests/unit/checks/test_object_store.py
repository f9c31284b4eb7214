# SPDX-License-Identifier: Apache-2.0
"""What is told of an object store, by its clock, keys and listings."""

import dataclasses
import email.utils
import time
from unittest import mock

from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_upgradecheck import upgradecheck
import testtools

from heat_plugins import errors
from heat_plugins.checks import object_store
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import wire
from tests.unit import fake_swift

Code = upgradecheck.Code


class Clocked:
    """A transport to a store whose clock is wrong."""

    def __init__(self, transport, ahead):
        self._transport = transport
        self._ahead = ahead
        self.storage_url = transport.storage_url
        self.project_id = transport.project_id

    def send(self, request):
        answer = self._transport.send(request)
        date = email.utils.formatdate(time.time() + self._ahead, usegmt=True)
        return wire.Response(
            status=answer.status,
            headers={**answer.headers, 'date': date},
            body=answer.body,
            truncated=answer.truncated,
        )


class TempURLsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        keys.KeyKeeper.forget_abilities()
        self.addCleanup(keys.KeyKeeper.forget_abilities)
        self.conf = self.useFixture(config_fixture.Config(cfg.CONF))
        self.conf.config(group='heat_plugins', temp_url_secret='s' * 32)
        self.cluster = fake_swift.Cluster()

    def found(self, way):
        """Return the result of the check of a store that one reaches so."""
        self.patch(object_store, 'connect', lambda session: way)
        return object_store.check('a session')

    def check(self, code, ahead=0):
        """Run the check; return what it says."""
        way = Clocked(self.cluster.transport(), ahead)
        found = self.found(way)
        assert (found.code, found.details) == (code, found.details)
        return found.details

    def test_a_cloud_may_have_none_on_purpose(self):
        class Without:
            def storage_url(self):
                raise errors.NoObjectStore('There is none')

        found = self.found(Without())
        assert found.code == Code.SUCCESS
        assert 'Not here: This region has no object' in found.details

    def assert_nothing_left(self):
        assert self.cluster.containers == {}

    def test_a_url_is_made_and_used_and_nothing_is_left(self):
        said = self.check(Code.SUCCESS)
        assert 'signed with sha256 and the key of the container' in said
        assert '/v1/AUTH_project-1' in said
        assert 'temp_url_sig' not in said
        self.assert_nothing_left()

    def test_on_ceph_the_key_of_the_account_serves(self):
        self.cluster = fake_swift.ceph(fake_swift.CEPH_ACCOUNT)
        said = self.check(Code.WARNING)
        assert 'X-Copy-From' in said
        assert 'Let a proxy in front of it refuse' in said
        self.cluster.copies = False
        said = self.check(Code.SUCCESS)
        assert 'signed with sha1 and the key of the account' in said
        self.assert_nothing_left()

    def test_a_storage_url_without_an_account_is_a_warning(self):
        self.cluster = fake_swift.ceph()
        said = self.check(Code.WARNING)
        assert '/swift/v1 names no account' in said
        assert 'rgw swift account in url = true' in said
        assert 'AUTH_%(project_id)s' in said
        assert 'signed with sha1 and the key of the account' in said

    def test_on_ceph_with_implicit_tenants_the_url_needs_the_account(self):
        self.cluster = fake_swift.ceph(implicit_tenants=True)
        said = self.check(Code.FAILURE)
        assert 'accepts no TempURL' in said
        assert 'rgw swift account in url = true' in said
        assert 'AUTH_%(project_id)s' in said
        assert 'middleware' not in said
        self.assert_nothing_left()
        self.cluster = fake_swift.ceph(
            fake_swift.CEPH_ACCOUNT, implicit_tenants=True
        )
        self.cluster.copies = False
        self.check(Code.SUCCESS)

    def test_clocks_may_differ_by_the_margin(self):
        for margin, ahead, code, part in (
            (None, 60, Code.WARNING, 'NTP'),
            (None, -60, Code.WARNING, 'NTP'),
            (30, 60, Code.FAILURE, 'temp_url_margin'),
            # URLs that expire later than meant do no harm.
            (30, -60, Code.WARNING, 'NTP'),
            # The resolution is one second.
            (0, 2, Code.SUCCESS, ''),
        ):
            if margin is not None:
                self.conf.config(group='heat_plugins', temp_url_margin=margin)
            assert part in self.check(code, ahead)

    def test_urls_work_whatever_the_clock_of_this_host_is(self):
        for ahead in (3000, -3000):
            self.cluster.clock = lambda ahead=ahead: time.time() + ahead
            said = self.check(Code.WARNING, ahead)
            assert 'A TempURL works' in said

    def test_a_store_without_temp_urls_is_a_failure_with_the_place_to_look(
        self,
    ):
        self.cluster = fake_swift.Cluster(info={'swift': {}})
        said = self.check(Code.FAILURE)
        assert 'no TempURLs' in said
        assert 'transports' in said
        self.assert_nothing_left()

    def test_what_becomes_of_an_object_is_looked_at(self):
        for broken, code, said in (
            ('refused', Code.FAILURE, 'answered 401 to a PUT'),
            ('changed', Code.FAILURE, 'reads back changed'),
            ('unlisted', Code.WARNING, 'lags behind its objects'),
        ):
            way = self.cluster.transport()
            with mock.patch.object(way, 'send', self.breaking(way, broken)):
                found = self.found(way)
            assert found.code == code
            assert said in found.details

    def breaking(self, way, broken):
        """Return what sends, and does so to a PUT to a TempURL."""
        send = way.send

        def sent(request):
            if request.method == 'PUT' and not request.authenticated:
                if broken == 'refused':
                    return wire.Response(
                        status=401, headers={}, body=b'', truncated=False
                    )
                if broken == 'changed':
                    request = dataclasses.replace(request, body=b'')
                else:
                    path = request.url.partition('?')[0].split('/', 6)
                    self.cluster.lagging.add(tuple(path[-2:]))
            return send(request)

        return sent

    def test_a_store_that_is_away_or_refuses_the_user_is_a_failure(self):
        self.cluster.denied.add('project-1')
        assert 'operator role' in self.check(Code.FAILURE)
        self.cluster.denied.clear()
        self.cluster.fail(times=100)
        assert 'answered 503' in self.check(Code.FAILURE)
