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
from heat_plugins.objectstore import wire
from tests.unit import fake_swift

Code = upgradecheck.Code

OF_THE_ACCOUNT = ('rgw swift account in url = true', 'AUTH_%(project_id)s')


class TempURLsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.conf = self.useFixture(config_fixture.Config(cfg.CONF))
        self.conf.config(group='heat_plugins', temp_url_secret='s' * 32)
        self.cluster = fake_swift.Cluster()

    def found(self, transport):
        """Return the result of the check of a store that one reaches so."""
        self.patch(object_store, 'connect', lambda session: transport)
        return object_store.check('a session')

    def sending(self, transport, change):
        """Return a transport with the answers of a function."""
        send = transport.send
        self.patch(transport, 'send', lambda request: change(send, request))
        return transport

    def check(self, code, ahead=0):
        def clocked(send, request):
            answer = send(request)
            now = email.utils.formatdate(time.time() + ahead, usegmt=True)
            headers = {**answer.headers, 'date': now}
            return dataclasses.replace(answer, headers=headers)

        found = self.found(self.sending(self.cluster.transport(), clocked))
        assert (found.code, found.details) == (code, found.details)
        return found.details

    def test_a_cloud_may_have_none_on_purpose(self):
        without = mock.Mock()
        without.storage_url.side_effect = errors.NoObjectStore('There is none')
        found = self.found(without)
        assert found.code == Code.SUCCESS
        assert 'Not here: This region has no object' in found.details

    def test_a_url_is_made_and_used_and_nothing_is_left(self):
        said = self.check(Code.SUCCESS)
        assert 'signed with sha256 and the key of the container' in said
        assert '/v1/AUTH_project-1' in said
        assert 'temp_url_sig' not in said
        assert self.cluster.containers == {}
        # A store without TempURLs fails with the place to look.
        self.cluster = fake_swift.Cluster(info={'swift': {}})
        assert 'no TempURLs' in self.check(Code.FAILURE)
        assert self.cluster.containers == {}

    def test_on_ceph_the_key_of_the_account_serves(self):
        by_account = 'signed with sha1 and the key of the account'
        account, tenants = fake_swift.CEPH_ACCOUNT, {'implicit_tenants': True}
        copies = ('X-Copy-From', 'Let a proxy in front of it refuse')
        no_account = ('/swift/v1 names no account', by_account)
        for options, code, parts in (
            ({'endpoint': account}, Code.WARNING, copies),
            # The URL has no account.
            ({}, Code.WARNING, (*no_account, *OF_THE_ACCOUNT)),
            (tenants, Code.FAILURE, ('accepts no TempURL', *OF_THE_ACCOUNT)),
        ):
            self.cluster = fake_swift.ceph(**options)
            said = self.check(code)
            for part in parts:
                assert part in said
            assert self.cluster.containers == {}
        self.cluster = fake_swift.ceph(account, **tenants)
        self.cluster.copies = False
        assert by_account in self.check(Code.SUCCESS)

    def test_clocks_may_differ_by_the_margin(self):
        for margin, ahead, code, part in (
            (90, 60, Code.WARNING, 'NTP'),
            (90, -60, Code.WARNING, 'NTP'),
            (30, 60, Code.FAILURE, 'temp_url_margin'),
            # URLs that expire later than meant do no harm.
            (30, -60, Code.WARNING, 'NTP'),
            # The resolution is one second.
            (0, 2, Code.SUCCESS, ''),
        ):
            self.conf.config(group='heat_plugins', temp_url_margin=margin)
            assert part in self.check(code, ahead)

    def test_what_becomes_of_an_object_is_looked_at(self):
        def refused(send, request):
            return wire.Response(status=401)

        def changed(send, request):
            return send(dataclasses.replace(request, body=b''))

        def unlisted(send, request):
            path = request.url.partition('?')[0].split('/', 6)
            self.cluster.lagging.add(tuple(path[-2:]))
            return send(request)

        for broken, code, said in (
            (refused, Code.FAILURE, 'answered 401 to a PUT'),
            (changed, Code.FAILURE, 'reads back changed'),
            (unlisted, Code.WARNING, 'lags behind its objects'),
        ):

            def sent(send, request, broken=broken):
                signed = request.method == 'PUT' and not request.authenticated
                return broken(send, request) if signed else send(request)

            found = self.found(self.sending(self.cluster.transport(), sent))
            assert found.code == code
            assert said in found.details

    def test_a_store_that_is_away_or_refuses_the_user_is_a_failure(self):
        self.cluster.fail(method='DELETE')
        assert 'Cannot delete container' in self.check(Code.WARNING)
        self.cluster.denied.add('project-1')
        assert 'operator role' in self.check(Code.FAILURE)
        self.cluster.denied.clear()
        self.cluster.fail(times=100)
        assert 'answered 503' in self.check(Code.FAILURE)
