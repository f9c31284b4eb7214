# SPDX-License-Identifier: Apache-2.0
"""What the deployments of one root stack share."""

from concurrent import futures
import threading
from unittest import mock

from heat.objects import stack as stack_objects
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins import errors
from heat_plugins.engine import hubs
from heat_plugins.engine import signing
from heat_plugins.engine.database import resources
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores
from heat_plugins.signals import watcher
from tests.unit import heat_fixture
from tests.unit.resources import deployments

EMPTY = {'heat_template_version': '2021-04-16'}


class Case(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        self.stack = self.heat.stack(EMPTY)

    def hub(self, root='root'):
        hub = hubs.hub_for(self.stack, root)
        hub.adopt(self.stack)
        return hub

    def ticket(self, number=1):
        return watcher.Ticket(
            deployment_id=f'd{number}', config_id='c', object_name='signals/x'
        )


class RegistryTest(Case):
    def test_there_is_one_for_each_root_stack_of_each_project(self):
        ours = self.hub('a')
        assert self.hub('a') is ours
        assert self.hub('b') is not ours
        context = heat_fixture.new_context(project_id='f' * 32)
        self.patch(self.stack, 'context', context)
        assert self.hub('a') is not ours

    def test_those_that_nobody_uses_are_forgotten_the_oldest_first(self):
        self.patch(hubs.HUBS, 'most', 3)
        first = self.hub('busy')
        first.watcher.join(self.ticket())
        old, used = self.hub('old'), self.hub('used')
        for number in range(2):
            self.hub(f'{number}')
        assert self.hub('used') is used
        self.hub('new')
        assert self.hub('busy') is first
        assert self.hub('used') is used
        assert self.hub('old') is not old
        assert len(hubs.HUBS.kept) <= 5
        # Also when it is told to, unless a deployment waits.
        hubs.HUBS.forget(used)
        hubs.HUBS.forget(first)
        assert self.hub('used') is not used
        assert self.hub('busy') is first


class CredentialsTest(Case):
    def setUp(self):
        super().setUp()
        self.made = mock.Mock(side_effect=self.stack.stored_context)
        self.patch(self.stack, 'stored_context', self.made)

    def test_they_are_those_that_the_stack_has_by_now(self):
        seen = []
        self.patch(
            type(self.stack),
            'stored_context',
            lambda stack: seen.append(stack.user_creds_id) or stack.context,
        )
        stale = self.heat.load(self.stack)
        row = stack_objects.Stack.get_by_id(self.heat.context, self.stack.id)
        row.update_and_save({'user_creds_id': 4711})
        self.addCleanup(row.update_and_save, {'user_creds_id': None})
        hubs.hub_for(stale, stale.id).adopt(stale)
        assert seen == [4711]
        assert stale.user_creds_id != 4711

    def test_they_are_taken_once_unless_those_that_worked_are_refused(self):
        self.swift.denied.add(deployments.PROJECT)
        hub = self.hub()
        call = hub.call, self.stack, hub.signing.signer
        self.assertRaises(errors.TempURLsUnusable, *call)
        assert len(self.swift.seen) == 1
        self.swift.denied.clear()
        hub = self.hub()
        hub.signing.signer()
        made = self.made.call_count
        # Other errors say nothing of them.
        self.swift.fail(1, 503)
        self.assertRaises(
            errors.Unavailable, hub.call, self.stack, lambda: hub.names(())
        )
        hub.names(())
        self.hub().signing.signer()
        assert self.made.call_count == made


class SlowStoreTest(Case):
    def setUp(self):
        super().setUp()
        self.asked, self.answer = threading.Event(), threading.Event()
        self.addCleanup(self.answer.set)

    def hang(self, request):
        self.asked.set()
        assert self.answer.wait(30), 'nobody lets it answer'

    def begin(self, do, *args, **kwargs):
        """Do something in a thread; return what waits for its end."""
        pool = futures.ThreadPoolExecutor(1)
        self.addCleanup(pool.shutdown)
        return pool.submit(do, *args, **kwargs)

    def hanging(self, do, *args):
        self.asked.clear()
        self.swift.before = self.hang
        running = self.begin(do, *args)
        assert self.asked.wait(30)
        return running

    def test_few_signals_are_fetched_at_a_time(self):
        self.patch(hubs, '_FETCH_LEASE', 60)
        hub = self.hub()
        begun = threading.Semaphore(0)

        def hang(request):
            begun.release()
            self.hang(request)

        self.swift.before = hang
        running = [self.begin(hub.fetch, f's{n}', 10) for n in range(5)]
        for _ in range(3):
            assert begun.acquire(timeout=30)
        while len(hub.fetching.present) < 5:
            pass
        assert not begun.acquire(blocking=False)
        self.answer.set()
        for each in running:
            self.assertRaises(errors.NoObject, each.result, 30)

    def test_a_request_to_the_store_holds_up_nobody_who_waits(self):
        hub = self.hub()
        for do, *given in (
            (hub.signing.signer,),
            (hub.drop_container, hub.container),
        ):
            self.answer.clear()
            running = self.hanging(do, *given)
            for other, *its in (
                (hub.adopt, self.stack),
                (hub.cancellation.of, self.stack, 0),
                (hub.watcher.join, self.ticket()),
                (hub.watcher.leave, self.ticket()),
            ):
                self.begin(other, *its).result(10)
            assert not running.done()
            self.answer.set()
            running.result(10)

    def test_nobody_waits_until_signals_that_were_taken_are_deleted(self):
        self.patch(
            hubs,
            'in_background',
            lambda do, *args: self.begin(do, *args).result,
        )
        hub = self.hub()
        hub.signing.signer()
        name = 'signals/d1/c'
        there = self.swift.container(hub.container, deployments.PROJECT)
        there.objects[name] = b'{}'
        hub.discard(name)
        self.hanging(hub.tidy).result(10)
        assert list(there.objects) == [name]
        listing = self.begin(hub.contents.below, hub.container, 'signals/')
        self.answer.set()
        assert listing.result(10) == []

    def test_a_signer_made_while_the_container_goes_is_not_kept(self):
        hub = self.hub()
        making = self.hanging(hub.signing.signer)
        self.swift.before = lambda request: None
        hub.drop_container(hub.container)
        self.answer.set()
        making.result(10)
        hub.store.delete_container(hub.container)
        hub.signing.signer()
        assert self.containers() == [hub.container]


class SignerTest(Case):
    def test_a_container_that_another_engine_dropped_is_made_again(self):
        hub = self.hub()
        hub.signing.signer()
        self.now += 3600
        hub.names(())
        seen = len(self.swift.seen)
        # It was there just now.
        hub.signing.signer(certain=True)
        assert len(self.swift.seen) == seen
        self.swift.store(deployments.PROJECT).delete_container(hub.container)
        self.now += 3600
        hub.signing.signer()
        assert self.containers() == []
        hub.signing.signer(certain=True)
        assert self.containers() == [hub.container]

    def test_the_published_secret_is_none(self):
        self.configure(temp_url_secret=None)
        assert signing.temp_url_secret() is None
        cfg.CONF.set_override('auth_encryption_key', 'x' * 32)
        assert signing.temp_url_secret() == 'x' * 32
        self.configure(temp_url_secret='ours')
        assert signing.temp_url_secret() == 'ours'

    def test_a_former_key_stays_as_long_as_any_action_may_take(self):
        overlaps, keeper = [], keys.KeyKeeper

        def keep(*args, overlap, **more):
            overlaps.append(overlap)
            return keeper(*args, overlap=overlap, **more)

        hub = self.hub()
        self.configure(temp_url_margin=100)
        self.patch(keys, 'KeyKeeper', keep)
        for longest in (None, 60, 10**6):
            self.configure(temp_url_lifetime_max=longest)
            hub.signing.forget()
            hub.signing.signer()
        needed = self.stack.timeout_secs() + 100
        assert overlaps == [None, needed, 10**6]


class OverfullTest(Case):
    def test_what_goes_is_listed_by_its_folder_if_there_is_too_much(self):
        self.patch(stores.ObjectStore.list_objects, '__defaults__', (20,))
        hub = self.hub()
        hub.signing.signer()
        there = self.swift.container(hub.container, deployments.PROJECT)
        found = ['runs/open/d1/BACKUP/x']
        others = ['signals/d1/c', 'runs/open/d2/BACKUP/x']
        for name in (*found, *others, *(f'junk/{n}' for n in range(30))):
            there.objects[name] = b''
        # The whole is not listed again for a while.
        for _ in range(5):
            self.now += 2
            below = hub.contents.below(hub.container, 'runs/open/d1/')
            assert list(below) == found
        listed = [each.query.get('prefix') for each in self.swift.seen]
        assert listed.count('') == 1


class RefusalTest(Case):
    def test_a_refusal_of_the_object_store_counts_for_a_while(self):
        for status, seconds, kind in (
            (403, 300, errors.TempURLsUnusable),
            # A new token comes soon.
            (401, 30, errors.TokenRejected),
            # A store that is out of order has refused nothing.
            (503, 0, None),
        ):
            hub = self.hub(f'root{status}')
            self.swift.fail(1, status)
            self.assertRaises(errors.ServiceError, hub.signing.signer)
            if kind is not None:
                self.now += seconds * 2 / 3
                assert isinstance(hub.signing.refusal, kind)
                self.now += seconds * 2 / 3
            assert hub.signing.refusal is None


class CancellationTest(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        self.root = self.acting('root')
        self.cancellation = hubs.Cancellation(self.root.id)
        self.begun = self.now
        self.stack = self.acting()
        self.now += 1

    def acting(self, name='stack'):
        stack = self.heat.stack(EMPTY, name)
        stack.current_traversal = f'{name}-1'
        self.becomes(stack, traversal=f'{name}-1')
        return stack

    def becomes(self, stack, traversal, action='UPDATE', status='IN_PROGRESS'):
        row = stack_objects.Stack.get_by_id(self.heat.context, stack.id)
        values = {'action': action, 'status': status}
        row.update_and_save({'current_traversal': traversal, **values})

    def is_cancelled(self, stack=None):
        # A stack without resources is false.
        stack = self.stack if stack is None else stack
        return self.cancellation.of(stack, self.begun)

    def test_it_depends_on_what_the_stack_and_its_root_stack_do(self):
        rollback = ('ROLLBACK', 'IN_PROGRESS')
        for becomes, root, is_cancelled in (
            # It goes on, with or without its root stack.
            (None, None, False),
            (None, ('other', *rollback), False),
            # It was stopped, rolled back, or updated again.
            (('other', 'UPDATE', 'FAILED'), None, True),
            (('other', *rollback), None, True),
            (('other',), None, False),
            # Its root stack is rolled back, or was so before.
            (('other',), ('other', *rollback), True),
            (('other',), ('other', 'ROLLBACK', 'COMPLETE'), False),
            # Something else in it has failed.
            (('', 'UPDATE', 'FAILED'), None, False),
        ):
            with self.subTest(becomes=becomes, root=root):
                self.becomes(self.stack, *(becomes or ['stack-1']))
                self.becomes(self.root, *(root or ['root-1']))
                self.now += 3
                assert self.is_cancelled() is is_cancelled

    def test_what_was_seen_before_an_action_says_nothing_about_it(self):
        self.becomes(self.stack, 'other', status='FAILED')
        assert self.is_cancelled()
        self.begun = self.now
        assert not self.is_cancelled()

    def ask(self, stacks, seconds):
        with self.counting_queries() as statements:
            for _ in range(seconds):
                for stack in stacks:
                    self.is_cancelled(stack)
                self.now += 1
        return statements

    def test_all_that_wait_share_one_query(self):
        stacks = [self.acting(f'nested{number}') for number in range(20)]
        assert len(self.ask(stacks, 30)) == 10
        self.becomes(stacks[7], 'other', status='FAILED')
        self.ask(stacks, 3)
        assert [s for s in stacks if self.is_cancelled(s)] == [stacks[7]]

    def test_one_that_waits_no_more_is_not_asked_for(self):
        asked = mock.Mock(side_effect=resources.traversals)
        self.patch(resources, 'traversals', asked)
        other, own = self.acting('other'), {self.root.id, self.stack.id}
        self.ask([self.stack, other], 5)
        assert {*asked.call_args.args[1]} == {*own, other.id}
        self.ask([self.stack], 90)
        assert {*asked.call_args.args[1]} == own

    def test_an_error_of_the_database_says_nothing_and_passes(self):
        self.becomes(self.stack, 'other', status='FAILED')
        away = mock.Mock(side_effect=db_exception.DBConnectionError)
        with mock.patch.object(resources, 'traversals', away):
            assert not self.is_cancelled()
        self.now += 3
        assert self.is_cancelled()
