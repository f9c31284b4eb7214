# SPDX-License-Identifier: Apache-2.0
"""Whose keys sign, where they are kept, and which of them the store takes."""

import dataclasses
import functools
import threading
import time
from unittest import mock
from urllib import parse

import pytest
import testtools

from heat_plugins import errors
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import sharing
from tests.unit import fake_swift
from tests.unit import threads

BOX = 'heat-plugins-root'
KEY = 'x-container-meta-temp-url-key'
KEY_2 = 'x-container-meta-temp-url-key-2'
KEY_2_EXPIRES = 'x-container-meta-heat-plugins-key-2-expires'
ACCOUNT_KEY = 'x-account-meta-temp-url-key'
DIGESTS = ('sha256', 'sha512', 'sha1')


def at(seconds):
    """Return the time by a clock that is ahead of this host's."""
    return time.time() + seconds


class KeyTest(testtools.TestCase):
    """A cluster, and the keepers of engines that use it."""

    def setUp(self):
        super().setUp()
        self.cluster = fake_swift.Cluster()

    def ensure(self, project='project-1', *, box=BOX, former=None, **options):
        given = {'secret': 's3cret', 'digests': DIGESTS, 'overlap': None}
        store = self.cluster.store(project)
        return keys.KeyKeeper(store, **given | options).ensure(box, former)

    def meta(self):
        return self.cluster.container(BOX).meta

    def overtake(self, method, meta, key):
        """Let another client set a key right after the next such request."""

        def wait(request):
            if request.method == method:
                self.cluster.before = be_faster

        def be_faster(request):
            self.cluster.before = lambda request: None
            meta()[key] = 'the-other'

        self.cluster.before = wait
        signer = self.ensure(secret=None)
        assert signer.key == 'the-other'
        assert self.takes(signer)

    def put(self, signer):
        url = signer.url('signals/d/c', int(self.cluster.clock()) + 600)
        return self.cluster.put_signed(url)

    def takes(self, *signers):
        return {self.put(signer) for signer in signers} == {201}

    def probes(self):
        return sum(each.signed for each in self.cluster.seen)

    def refusal(self, **options):
        with pytest.raises(errors.TempURLsUnusable) as caught:
            self.ensure(**options)
        return str(caught.value)

    def test_a_container_is_made_with_its_key_by_one_request_once(self):
        signer = self.ensure()
        # It keeps the key to itself, and ends with 32-bit time.
        assert signer.key not in repr(signer)
        url = signer.url('signals/d/c', 2**40)
        assert f'temp_url_expires={keys.MAX_EXPIRES}' in url
        assert self.cluster.put_signed(url) == 201
        assert self.meta() == {KEY: signer.key}
        written = [s for s in self.cluster.seen[:-1] if s.method != 'GET']
        assert [s.method for s in written if s.method != 'HEAD'] == ['PUT']
        del self.cluster.seen[:]
        assert self.ensure() == signer
        assert self.cluster.asked() == [f'HEAD /{BOX}']

    def test_what_cannot_be_signed_is_refused(self):
        signer = self.ensure()
        for changed, name in (
            ({}, ''),
            ({}, '//'),
            ({'container': ''}, 'a'),
            ({'digest': 'md5'}, 'a'),
        ):
            made = dataclasses.replace(signer, **changed)
            self.assertRaises(ValueError, made.url, name, 1)

    def test_a_container_without_a_key_is_given_one(self):
        self.cluster.store().put_container(BOX, {})
        signer = self.ensure()
        assert self.takes(signer)
        assert KEY_2 not in self.meta()
        # Keys differ by secret and by container.
        assert signer.key != self.ensure(box='other').key
        assert keys.derive('one', 'purpose') != keys.derive('two', 'purpose')

    def test_an_outage_is_told_as_one_and_passes(self):
        for method in ('HEAD', 'PUT', 'GET'):
            self.cluster.fail(method=method)
            with pytest.raises(errors.Unavailable):
                self.ensure()
        assert self.takes(self.ensure())
        # While probing it says nothing about keys.
        self.cluster = fake_swift.Cluster()
        self.cluster.before = lambda request: (
            'temp_url_sig' in request.url and self.cluster.fail(status=429)
        )
        with pytest.raises(errors.Unavailable):
            self.ensure()
        assert self.cluster.account() == {}

    def test_engines_of_both_secrets_sign_while_they_are_restarted(self):
        old, new = self.ensure(secret='old'), self.ensure(secret='new')
        for secret in ('old', 'old', 'new', 'old', 'new'):
            assert self.ensure(secret=secret) in (old, new)
            assert self.takes(old, new)
        assert self.meta() == {KEY: new.key, KEY_2: old.key}
        # No URL works after a withdrawal, until there is need of one.
        keys.withdraw(self.cluster.store(), BOX)
        assert [self.put(old), self.put(new)] == [401, 401]
        assert self.meta() == {}
        assert self.takes(self.ensure(secret='new'))

    def test_the_old_key_goes_when_its_urls_have_run_out(self):
        for ahead in (-3000, 0, 3000):
            clock = functools.partial(at, ahead)
            self.cluster = fake_swift.Cluster(clock=clock)
            self.cluster.now = self.cluster.clock
            assert self.ensure().kind == keys.CONTAINER
            old = self.ensure(secret='old')
            new = self.ensure(secret='new', overlap=100)
            assert abs(at(ahead + 100) - int(self.meta()[KEY_2_EXPIRES])) < 10
            self.ensure(secret='new', overlap=100)
            assert self.takes(old, new)
            self.meta()[KEY_2_EXPIRES] = str(int(at(ahead)) - 10)
            assert self.ensure(secret='new', overlap=100) == new
            assert self.meta() == {KEY: new.key}
            assert (self.put(new), self.put(old)) == (201, 401)

    def test_an_engine_never_drops_the_key_that_it_signs_with(self):
        for secret in ('old', 'new'):
            self.ensure(secret=secret, overlap=100)
        self.meta()[KEY_2_EXPIRES] = '1000'
        assert self.takes(self.ensure(secret='old', overlap=100))
        assert int(self.meta()[KEY_2_EXPIRES]) > time.time()
        assert self.takes(self.ensure(secret='new', overlap=100))

    def test_a_second_rotation_does_not_take_over_the_term_of_the_first(self):
        self.ensure(secret='old')
        self.ensure(secret='new', overlap=100)
        new, newest = self.ensure(secret='new'), self.ensure(secret='newest')
        assert KEY_2_EXPIRES not in self.meta()
        assert self.takes(new, newest)
        # A term that cannot be read drops nothing.
        self.meta()[KEY_2_EXPIRES] = 'yesterday'
        self.ensure(secret='newest')
        assert self.takes(new, newest)

    def test_a_random_key_is_written_once_and_then_read(self):
        first = self.ensure(secret=None)
        assert self.ensure(secret=None) == first
        assert len(bytes.fromhex(first.key)) == 32
        assert first.key != self.ensure(secret=None, box='other').key
        # A container that was deleted comes back with it.
        self.cluster.store().delete_container(BOX)
        again = self.ensure(secret=None, former=first)
        assert self.takes(first, again)

    def test_of_two_keys_at_once_both_engines_use_the_one_that_stands(self):
        self.overtake('PUT', self.meta, KEY)
        self.cluster = fake_swift.ceph()
        self.overtake('POST', self.cluster.account, ACCOUNT_KEY)

    def test_the_account_s_key_serves_under_each_storage_url_of_ceph(self):
        for endpoint in (
            fake_swift.CEPH,
            'http://rgw/swift/v1/AUTH_%(project_id)s',
            'http://rgw/v1',
            'http://rgw/v1/AUTH_%(project_id)s',
        ):
            self.cluster = fake_swift.ceph(endpoint)
            signer = self.ensure()
            assert self.takes(signer)
            below = signer.url('logs/r/', int(at(600)), is_prefix=True)
            parts = parse.urlsplit(below)
            one = parts._replace(path=f'{parts.path}1').geturl()
            assert self.cluster.put_signed(one) == 201
            assert signer.digest == 'sha1'
            assert KEY in self.meta()
            assert self.cluster.account() == {ACCOUNT_KEY: signer.key}

    def test_an_account_s_key_of_somebody_else_is_used_and_not_replaced(self):
        self.cluster = fake_swift.ceph()
        for secret in ('s3cret', 'rotated', None):
            self.cluster.account()[ACCOUNT_KEY] = 'foreign'
            signer = self.ensure(secret=secret)
            assert signer.key == 'foreign'
            assert self.takes(signer)
            assert self.cluster.account() == {ACCOUNT_KEY: 'foreign'}
        assert 'POST ' not in self.cluster.asked()

    def test_engines_share_an_account_s_key_and_projects_do_not(self):
        self.cluster = fake_swift.ceph()
        ours = self.ensure()
        self.cluster.account().clear()
        assert self.ensure() == ours
        theirs = self.ensure('project-2', box='heat-plugins-other')
        assert ours.key != theirs.key
        assert self.takes(ours, theirs)
        # Where the project is not known, it is random.
        self.patch(fake_swift.Transport, 'project_id', lambda way: None)
        found = []
        for _ in range(2):
            self.cluster.account().clear()
            found.append(self.ensure())
            assert self.takes(found[-1])
        assert found[0].key != found[1].key

    def test_a_cluster_is_probed_once_for_its_projects_until_an_hour_later(
        self,
    ):
        swift, ceph = self.cluster, fake_swift.ceph()
        self.ensure()
        self.cluster = ceph
        assert self.takes(self.ensure())
        self.cluster = swift
        now = time.monotonic()
        self.patch(keys.time, 'monotonic', lambda: now + 3500)
        self.ensure(box='other')
        self.ensure('project-2')
        assert self.probes() == 1
        assert self.cluster.asked().count('GET /info') == 1
        self.cluster.container_keys = False
        self.patch(keys.time, 'monotonic', lambda: now + 3700)
        signer = self.ensure()
        assert self.cluster.account() == {ACCOUNT_KEY: signer.key}

    def test_threads_that_come_together_probe_once(self):
        made = threading.Semaphore(0)

        def wait_for_the_others(request):
            if request.method == 'PUT':
                made.release()
            elif request.url.endswith('/info'):
                for _ in range(6):
                    assert made.acquire(timeout=10)
                # The others are on their way to the question.
                time.sleep(0.05)
                made.release(6)

        self.cluster.before = wait_for_the_others
        boxes = [f'{BOX}-{number}' for number in range(6)]
        threads.run(*(functools.partial(self.ensure, box=b) for b in boxes))
        assert self.probes() == 1
        # Who is refused in the place of others asks alone.
        self.cluster = fake_swift.Cluster()
        refused = mock.Mock(side_effect=errors.Denied('another account', 403))
        self.patch(sharing.SharedAttempt, 'share', refused)
        assert self.takes(self.ensure())

    def test_the_most_wanted_digest_that_is_allowed_signs(self):
        for allowed, named, wanted, used in (
            (DIGESTS, DIGESTS, DIGESTS, 'sha256'),
            (('sha512', 'sha1'), ('sha512', 'sha1'), DIGESTS, 'sha512'),
            (DIGESTS, None, DIGESTS, 'sha1'),
            (DIGESTS, ('sha256', 'sha1'), ('sha1', 'sha256'), 'sha1'),
        ):
            options = {'digests': allowed, 'named_digests': named}
            self.cluster = fake_swift.Cluster(**options)
            signer = self.ensure(digests=wanted)
            assert signer.digest == used
            assert self.takes(signer)
        # Without info each digest is tried.
        self.cluster = fake_swift.Cluster(info=False, digests=('sha1',))
        signer = self.ensure()
        assert signer.digest == 'sha1'
        assert self.takes(signer)
        assert self.cluster.account() == {}
        # Nor does one of another shape do harm.
        for about in (None, {}, {'allowed_digests': None}):
            self.cluster = fake_swift.Cluster(info={'tempurl': about})
            assert self.takes(self.ensure())

    def test_a_missing_role_is_named_but_not_if_keystone_refuses(self):
        self.cluster.denied.add('project-1')
        reason = self.refusal()
        assert '403 to HEAD of heat-plugins-root' in reason
        assert 'operator_roles' in reason
        self.cluster.locked_out.add('project-1')
        reason = self.refusal()
        assert 'Keystone' in reason
        assert 'role' not in reason

    def test_whether_something_may_have_been_made_by_then_is_told(self):
        for method, status, is_untouched, kind in (
            ('HEAD', 401, True, errors.TokenRejected),
            ('PUT', 401, False, errors.TokenRejected),
            ('HEAD', 503, True, errors.Untouched),
            ('PUT', 503, False, errors.Untouched),
        ):
            self.cluster.fail(status=status, method=method)
            with pytest.raises(errors.Unavailable) as caught:
                self.ensure()
            assert isinstance(caught.value, kind) is is_untouched
            assert ('refuses every token' in str(caught.value)) is (
                status == 401
            )

    def test_what_a_store_lacks_is_told_from_its_info(self):
        for options, said in (
            ({'methods': ('GET', 'HEAD')}, 'allows no PUT'),
            ({'methods': ('GET', 'PUT')}, 'allows no HEAD'),
            ({'named_digests': ('md5',)}, 'signs with md5'),
            ({'named_digests': ('md5',)}, 'allows only sha256, sha512, sha1'),
            ({'tempurl': False}, 'tempurl middleware'),
        ):
            self.cluster = fake_swift.Cluster(**options)
            assert said in self.refusal()
        # Which is not remembered.
        self.cluster.tempurl = True
        assert self.takes(self.ensure())

    def test_a_store_that_takes_no_key_says_what_was_tried_and_no_key(self):
        self.cluster = fake_swift.Cluster(
            container_keys=False, account_keys=False
        )
        reason = self.refusal()
        for said in ('neither', 'no RGW account may own the container'):
            assert said in reason
        assert 'sha256, sha512, sha1' in reason
        assert self.meta()[KEY] not in reason
        assert self.cluster.account()[ACCOUNT_KEY] not in reason
