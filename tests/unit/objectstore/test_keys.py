# SPDX-License-Identifier: Apache-2.0
"""Whose keys sign, where they are kept, and which of them the store takes."""

from concurrent import futures
import functools
import threading
import time

import testtools

from heat_plugins import errors
from heat_plugins.objectstore import keys
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


class Case(testtools.TestCase):
    def setUp(self):
        super().setUp()
        keys.KeyKeeper.forget_abilities()
        self.addCleanup(keys.KeyKeeper.forget_abilities)
        self.use(fake_swift.Cluster())

    def use(self, cluster):
        self.cluster = cluster

    def keeper(
        self,
        project_id='project-1',
        *,
        secret='s3cret',
        digests=DIGESTS,
        overlap=None,
    ):
        return keys.KeyKeeper(
            self.cluster.store(project_id),
            secret=secret,
            digests=digests,
            overlap=overlap,
        )

    def meta(self, project_id='project-1'):
        return self.cluster.container(BOX, project_id).meta

    def url(self, signer, name='signals/d/c'):
        return signer.url(name, int(time.time()) + 600)

    def overtake(self, method, do):
        """Let another client act right after the next such request."""

        def wait(request):
            if request.method == method:
                self.cluster.before = be_faster

        def be_faster(request):
            self.cluster.before = lambda request: None
            do()

        self.cluster.before = wait

    def assert_usable(self, *signers):
        for signer in signers:
            self.assertEqual(201, self.cluster.put_signed(self.url(signer)))

    def assert_unusable(self, signer):
        self.assertIn(self.cluster.put_signed(self.url(signer)), (401, 403))

    def refusal(self, keeper=None):
        """Return the words with which a keeper refuses."""
        keeper = keeper or self.keeper()
        error = self.assertRaises(errors.TempURLsUnusable, keeper.ensure, BOX)
        return str(error)


class SignerTest(Case):
    def test_a_signer_keeps_its_key_to_itself(self):
        signer = self.keeper().ensure(BOX)
        self.assertNotIn(signer.key, repr(signer))

    def test_no_url_outlives_32_bit_time(self):
        url = self.keeper().ensure(BOX).url('signals/d/c', 2**40)
        self.assertIn(f'temp_url_expires={keys.MAX_EXPIRES}', url)
        self.assertEqual(201, self.cluster.put_signed(url))


class DerivedKeyTest(Case):
    def test_a_container_is_made_with_its_key_in_one_request(self):
        signer = self.keeper().ensure(BOX)
        self.assert_usable(signer)
        self.assertEqual({KEY: signer.key}, self.meta())
        self.assertEqual(
            1, sum(s.method in ('PUT', 'POST') for s in self.cluster.seen[:-1])
        )

    def test_a_container_that_has_its_key_is_not_written_to(self):
        first = self.keeper().ensure(BOX)
        del self.cluster.seen[:]
        self.assertEqual(first, self.keeper().ensure(BOX))
        self.assertEqual([f'HEAD /{BOX}'], self.cluster.asked())

    def test_a_container_without_a_key_is_given_one(self):
        self.cluster.store().put_container(BOX, {})
        self.assert_usable(self.keeper().ensure(BOX))
        self.assertNotIn(KEY_2, self.meta())

    def test_engines_that_start_together_get_the_same_key(self):
        # All have asked for the container before the first one makes it.
        barrier = threading.Barrier(8)

        def meet(request):
            if request.method == 'PUT':
                barrier.wait(10)

        self.cluster.before = meet
        signers = []

        def ensure():
            signers.append(self.keeper().ensure(BOX))

        threads.run(*[ensure] * 8)
        self.cluster.before = lambda request: None
        self.assertEqual(8, len(signers))
        self.assertEqual(1, len(set(signers)))
        self.assert_usable(*signers)

    def test_keys_differ_by_secret_and_by_container(self):
        self.assertNotEqual(
            self.keeper().ensure(BOX).key, self.keeper().ensure('other').key
        )
        self.assertNotEqual(
            keys.derive('one', 'purpose'), keys.derive('two', 'purpose')
        )

    def test_an_outage_is_told_as_one_and_passes(self):
        for method in ('HEAD', 'PUT', 'GET'):
            self.cluster.fail(method=method)
            self.assertRaises(errors.Unavailable, self.keeper().ensure, BOX)
        self.assert_usable(self.keeper().ensure(BOX))


class WithdrawalTest(Case):
    def test_no_url_works_any_more_until_there_is_need_of_one(self):
        old = self.keeper(secret='old').ensure(BOX)
        new = self.keeper(secret='new').ensure(BOX)
        self.assert_usable(old, new)
        keys.withdraw(self.cluster.store(), BOX)
        self.assert_unusable(old)
        self.assert_unusable(new)
        self.assertEqual({}, self.meta())
        self.assert_usable(self.keeper(secret='new').ensure(BOX))


class RotationTest(Case):
    def setUp(self):
        super().setUp()
        self.old = self.keeper(secret='old')
        self.new = self.keeper(secret='new')

    def until(self):
        return int(self.meta()[KEY_2_EXPIRES])

    def test_engines_of_both_kinds_sign_while_they_are_restarted(self):
        old, new = self.old.ensure(BOX), self.new.ensure(BOX)
        for keeper in (self.old, self.old, self.new, self.old, self.new):
            self.assertIn(keeper.ensure(BOX), (old, new))
            self.assert_usable(old, new)
        self.assertEqual({KEY: new.key, KEY_2: old.key}, self.meta())

    def test_the_old_key_goes_when_its_urls_have_run_out(self):
        # By the store's clock, though this host's is wrong.
        for ahead in (-300, 0, 300):
            keys.KeyKeeper.forget_abilities()
            self.use(fake_swift.Cluster(clock=functools.partial(at, ahead)))
            self.cluster.now = self.cluster.clock
            old = self.keeper(secret='old').ensure(BOX)
            keeper = self.keeper(secret='new', overlap=100)
            new = keeper.ensure(BOX)
            self.assertAlmostEqual(at(ahead + 100), self.until(), delta=10)
            keeper.ensure(BOX)
            self.assert_usable(old, new)
            self.meta()[KEY_2_EXPIRES] = str(int(at(ahead)) - 10)
            self.assertEqual(new, keeper.ensure(BOX))
            self.assertEqual({KEY: new.key}, self.meta())
            self.assert_usable(new)
            self.assert_unusable(old)

    def test_an_engine_never_drops_the_key_that_it_signs_with(self):
        old_keeper = self.keeper(secret='old', overlap=100)
        new_keeper = self.keeper(secret='new', overlap=100)
        old_keeper.ensure(BOX)
        new_keeper.ensure(BOX)
        self.meta()[KEY_2_EXPIRES] = '1000'
        self.assert_usable(old_keeper.ensure(BOX))
        self.assertGreater(self.until(), time.time())
        self.assert_usable(new_keeper.ensure(BOX))

    def test_a_second_rotation_does_not_take_over_the_term_of_the_first(self):
        self.old.ensure(BOX)
        self.keeper(secret='new', overlap=100).ensure(BOX)
        new = self.new.ensure(BOX)
        newest = self.keeper(secret='newest').ensure(BOX)
        self.assertNotIn(KEY_2_EXPIRES, self.meta())
        self.assert_usable(new, newest)

    def test_a_term_that_cannot_be_read_drops_nothing(self):
        old = self.old.ensure(BOX)
        new = self.new.ensure(BOX)
        self.meta()[KEY_2_EXPIRES] = 'yesterday'
        self.new.ensure(BOX)
        self.assert_usable(old, new)


class RandomKeyTest(Case):
    def test_a_key_is_written_once_and_then_read(self):
        first = self.keeper(secret=None).ensure(BOX)
        second = self.keeper(secret=None).ensure(BOX)
        self.assertEqual(first, second)
        self.assertRegex(first.key, '^[0-9a-f]{64}$')
        self.assert_usable(first)
        self.assertNotEqual(
            first.key, self.keeper(secret=None).ensure('other').key
        )

    def test_of_two_that_write_at_once_both_use_the_key_that_stands(self):
        self.overtake('PUT', lambda: self.meta().update({KEY: 'of-the-other'}))
        signer = self.keeper(secret=None).ensure(BOX)
        self.assertEqual('of-the-other', signer.key)
        self.assert_usable(signer)

    def test_a_container_that_was_deleted_comes_back_with_its_key(self):
        keeper = self.keeper(secret=None)
        signer = keeper.ensure(BOX)
        self.cluster.store('project-1').delete_container(BOX)
        again = keeper.ensure(BOX, signer)
        self.assert_usable(signer, again)


class AccountKeyTest(Case):
    def setUp(self):
        super().setUp()
        self.use(fake_swift.ceph())

    def test_it_serves_where_container_keys_are_shown_but_not_honoured(self):
        signer = self.keeper().ensure(BOX)
        self.assert_usable(signer)
        self.assertIn(KEY, self.meta())
        self.assertEqual({ACCOUNT_KEY: signer.key}, self.cluster.account())

    def test_it_serves_under_each_form_of_cephs_storage_url(self):
        for endpoint in (
            'http://rgw/swift/v1',
            'http://rgw/swift/v1/AUTH_%(project_id)s',
            'http://rgw/v1',
            'http://rgw/v1/AUTH_%(project_id)s',
        ):
            keys.KeyKeeper.forget_abilities()
            self.use(fake_swift.ceph(endpoint))
            signer = self.keeper().ensure(BOX)
            self.assert_usable(signer)
            self.assertEqual('sha1', signer.digest)

    def test_a_key_that_somebody_else_set_is_used_and_never_replaced(self):
        for secret in ('s3cret', 'rotated', None):
            self.cluster.account()[ACCOUNT_KEY] = 'foreign'
            signer = self.keeper(secret=secret).ensure(BOX)
            self.assertEqual('foreign', signer.key)
            self.assert_usable(signer)
            self.assertEqual({ACCOUNT_KEY: 'foreign'}, self.cluster.account())
        self.assertNotIn('POST ', self.cluster.asked())

    def test_who_sets_one_at_the_same_time_wins(self):
        account = self.cluster.account()
        self.overtake(
            'POST', lambda: account.update({ACCOUNT_KEY: 'of-the-other'})
        )
        signer = self.keeper().ensure(BOX)
        self.assertEqual('of-the-other', signer.key)
        self.assert_usable(signer)

    def test_two_engines_get_the_same_key(self):
        first = self.keeper().ensure(BOX)
        self.cluster.account().clear()
        self.assertEqual(first, self.keeper().ensure(BOX))

    def test_no_two_projects_have_the_same_key(self):
        # Who owns an account can read its key.
        ours = self.keeper().ensure(BOX)
        theirs = self.keeper('project-2').ensure('heat-plugins-other')
        self.assertNotEqual(ours.key, theirs.key)
        self.assert_usable(ours, theirs)

    def test_without_a_known_project_the_key_is_random(self):
        self.patch(fake_swift.Transport, 'project_id', lambda transport: None)
        first = self.keeper().ensure(BOX)
        self.assert_usable(first)
        self.cluster.account().clear()
        self.assertNotEqual(first.key, self.keeper().ensure(BOX).key)


class AbilityTest(Case):
    def probes(self):
        return sum(each.signed for each in self.cluster.seen)

    def test_a_host_whose_clock_is_wrong_probes_by_the_store_s(self):
        for ahead in (-3000, 3000):
            keys.KeyKeeper.forget_abilities()
            self.use(fake_swift.Cluster(clock=functools.partial(at, ahead)))
            self.cluster.now = self.cluster.clock
            self.assertEqual(keys.CONTAINER, self.keeper().ensure(BOX).kind)

    def test_a_cluster_is_probed_once_for_all_of_its_projects(self):
        self.keeper().ensure(BOX)
        self.keeper().ensure('other')
        self.keeper('project-2').ensure(BOX)
        self.assertEqual(1, self.probes())
        self.assertEqual(1, self.cluster.asked().count('GET /info'))

    def test_threads_that_come_together_probe_once(self):
        made = threading.Semaphore(0)
        signers = []

        def wait_for_the_others(request):
            if request.method == 'PUT':
                made.release()
            elif request.url.endswith('/info'):
                for _ in range(6):
                    self.assertTrue(made.acquire(timeout=10))
                # The others are on their way to the question.
                time.sleep(0.05)
                made.release(6)

        self.cluster.before = wait_for_the_others

        def ensure(number):
            signers.append(self.keeper().ensure(f'{BOX}-{number}'))

        threads.run(*(functools.partial(ensure, n) for n in range(6)))
        self.assertEqual(6, len(signers))
        self.assertEqual(1, self.probes())

    def test_who_is_refused_in_the_place_of_others_asks_alone(self):
        self.use(fake_swift.ceph())
        url = self.cluster.store().url
        probing, others = threading.Event(), threading.Event()
        self.addCleanup(others.set)

        def refuse_the_first(request):
            if request.url.endswith('/info') and not probing.is_set():
                probing.set()
                self.assertTrue(others.wait(10))
                # The other one has come to the same question by then.
                time.sleep(0.05)
            elif request.method == 'PUT' and probing.is_set():
                others.set()
            elif request.method == 'HEAD' and request.url == url:
                self.cluster.before = lambda request: None
                self.cluster.fail(status=403)

        self.cluster.before = refuse_the_first
        with futures.ThreadPoolExecutor() as pool:
            first = pool.submit(self.keeper().ensure, BOX)
            self.assertTrue(probing.wait(10))
            second = self.keeper('project-2').ensure('other')
        self.assert_usable(first.result(), second)

    def test_another_cluster_is_probed_by_itself(self):
        self.keeper().ensure(BOX)
        self.use(fake_swift.ceph())
        self.assert_usable(self.keeper().ensure(BOX))

    def test_a_cluster_is_probed_again_after_an_hour(self):
        self.keeper().ensure(BOX)
        now = time.monotonic()
        self.patch(keys.time, 'monotonic', lambda: now + 3500)
        self.keeper().ensure(BOX)
        self.assertEqual(1, self.probes())
        self.cluster.container_keys = False
        self.patch(keys.time, 'monotonic', lambda: now + 3700)
        signer = self.keeper().ensure(BOX)
        self.assertEqual({ACCOUNT_KEY: signer.key}, self.cluster.account())

    def test_an_outage_while_probing_says_nothing_about_keys(self):
        self.cluster.before = lambda request: (
            self.cluster.fail(status=429)
            if 'temp_url_sig' in request.url
            else None
        )
        self.assertRaises(errors.Unavailable, self.keeper().ensure, BOX)
        self.assertEqual({}, self.cluster.account())

    def test_the_most_wanted_digest_that_is_allowed_signs(self):
        for allowed, wanted, used in (
            (('sha1', 'sha256', 'sha512'), DIGESTS, 'sha256'),
            (('sha512', 'sha1'), DIGESTS, 'sha512'),
            (('sha1',), DIGESTS, 'sha1'),
            (None, DIGESTS, 'sha1'),
            (('sha256', 'sha1'), ('sha1', 'sha256'), 'sha1'),
        ):
            keys.KeyKeeper.forget_abilities()
            self.use(
                fake_swift.Cluster(
                    digests=allowed or DIGESTS, named_digests=allowed
                )
            )
            signer = self.keeper(digests=wanted).ensure(BOX)
            self.assertEqual(used, signer.digest)
            self.assert_usable(signer)

    def test_without_info_each_digest_is_tried(self):
        self.use(fake_swift.Cluster(info=False, digests=('sha1',)))
        signer = self.keeper().ensure(BOX)
        self.assertEqual('sha1', signer.digest)
        self.assert_usable(signer)
        self.assertEqual({}, self.cluster.account())

    def test_an_info_of_another_shape_does_no_harm(self):
        for about in (None, True, {}, {'allowed_digests': None}):
            keys.KeyKeeper.forget_abilities()
            self.use(fake_swift.Cluster(info={'tempurl': about}))
            self.assert_usable(self.keeper().ensure(BOX))


class RefusalTest(Case):
    def test_a_missing_role_is_named(self):
        self.cluster.denied.add('project-1')
        reason = self.refusal()
        self.assertIn('403 to HEAD of heat-plugins-root', reason)
        self.assertIn('operator_roles', reason)

    def test_whether_something_may_have_been_made_by_then_is_told(self):
        for method in ('HEAD', 'PUT'):
            with self.subTest(method):
                self.cluster.fail(status=401, method=method)
                error = self.assertRaises(
                    errors.Unavailable, self.keeper().ensure, BOX
                )
                self.assertEqual(
                    method == 'HEAD', isinstance(error, errors.TokenRejected)
                )
                self.assertIn('refuses every token', str(error))
                self.cluster.fail(status=503, method=method)
                error = self.assertRaises(
                    errors.Unavailable, self.keeper().ensure, BOX
                )
                self.assertEqual(
                    method == 'HEAD', isinstance(error, errors.Untouched)
                )

    def test_a_token_that_keystone_refuses_is_no_matter_of_roles(self):
        self.cluster.locked_out.add('project-1')
        reason = self.refusal()
        self.assertIn('Keystone', reason)
        self.assertNotIn('role', reason)

    def test_a_store_without_tempurls_is_told_from_its_info(self):
        self.use(fake_swift.Cluster(tempurl=False))
        self.assertIn('tempurl middleware', self.refusal())

    def test_a_method_that_is_not_allowed_is_named(self):
        for methods, missing in (
            (('GET', 'HEAD'), 'PUT'),
            (('GET', 'PUT'), 'HEAD'),
        ):
            self.use(fake_swift.Cluster(methods=methods))
            self.assertIn(f'allows no {missing}', self.refusal())

    def test_digests_that_do_not_meet_are_named_on_both_sides(self):
        self.use(
            fake_swift.Cluster(digests=('sha1',), named_digests=('sha1',))
        )
        reason = self.refusal(self.keeper(digests=('sha256', 'sha512')))
        self.assertIn('signs with sha1', reason)
        self.assertIn('temp_url_digests allows only sha256, sha512', reason)

    def test_a_store_that_takes_no_key_says_what_was_tried_and_no_key(self):
        self.use(fake_swift.Cluster(container_keys=False, account_keys=False))
        reason = self.refusal()
        self.assertIn('neither', reason)
        self.assertIn('no RGW account may own the container', reason)
        self.assertIn('sha256, sha512, sha1', reason)
        self.assertNotIn(self.meta()[KEY], reason)
        self.assertNotIn(self.cluster.account()[ACCOUNT_KEY], reason)

    def test_a_refusal_is_not_remembered(self):
        self.cluster.tempurl = False
        self.refusal()
        self.cluster.tempurl = True
        self.assert_usable(self.keeper().ensure(BOX))
