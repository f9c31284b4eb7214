# SPDX-License-Identifier: Apache-2.0
"""The engine sees the runs that it has started to their ends."""

from unittest import mock

from heat_plugins import errors
from heat_plugins.engine.runs import run_ledgers
from heat_plugins.runs import runs
from heat_plugins.runs.start import orders
from tests.unit.runs import base


class FollowTest(base.RunsTestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(run_ledgers._followed.clear)
        self.threads = []
        # Others, such as pools, have real threads.
        patcher = mock.patch.object(
            run_ledgers, 'threading', mock.Mock(Thread=self.thread)
        )
        patcher.start()
        self.addCleanup(patcher.stop)
        #: What happens, one after the other, when the thread sleeps.
        self.acts = []

    def thread(self, *, target, args, name, daemon):
        """Keep what is to be run in a thread that does not keep Heat up."""
        self.assertTrue(daemon)
        self.threads.append(lambda: target(*args))
        return mock.Mock(spec_set=['start'])

    def sleep(self, seconds):
        super().sleep(seconds)
        if self.acts:
            self.acts.pop(0)()

    def follow(self):
        run_ledgers.follow_runs(self.runs, self.stack.id)

    def state(self, run):
        """Return what the record says, without looking any further."""
        return self.records.read(run.key).state

    def test_a_run_is_settled_though_nobody_looks(self):
        run = self.start()
        self.follow()
        self.acts = [lambda: None, self.answer]
        with self.assertLogs(run_ledgers.LOG, 'INFO') as logs:
            self.threads[0]()
        self.assertEqual(runs.State.COMPLETE, self.state(run))
        self.assertEqual([], self.heat.given())
        (line,) = logs.output
        for said in (run.id, run.resource, self.stack.id, 'complete'):
            self.assertIn(said, line)

    def test_one_thread_serves_a_stack_and_those_that_begin_meanwhile(self):
        self.heat.add_deployment(self.stack, 'web', 'server-2')
        first = self.start()
        second = []

        def begin():
            (target,) = self.runs.find('shop', 'web')
            order = orders.RunOrder(action='BACKUP')
            second.append(self.runs.start(target, order))
            self.follow()

        self.follow()
        url = self.inputs()['deploy_signal_id']
        self.acts = [
            begin,
            lambda: self.put(url, {}),
            lambda: self.put(self.inputs('server-2')['deploy_signal_id'], {}),
        ]
        self.threads[0]()
        self.assertEqual(1, len(self.threads))
        states = {self.state(run) for run in (first, *second)}
        self.assertEqual({runs.State.COMPLETE}, states)

    def test_it_ends_and_begins_anew(self):
        self.start()
        self.follow()
        self.acts = [self.answer]
        self.threads[0]()
        run = self.start()
        self.follow()
        self.acts = [self.answer]
        self.threads[1]()
        self.assertEqual(runs.State.COMPLETE, self.state(run))

    def test_what_it_finds_left_behind_is_cleaned_up(self):
        run = self.start()
        self.heat.failing = {'delete_deployment': ValueError('no')}
        self.answer()
        self.assertRaises(ValueError, self.show, run)
        self.heat.failing = {}
        self.follow()
        self.threads[0]()
        self.assertEqual([], self.heat.given())
        self.assertEqual([], self.objects('runs/open/'))

    def test_an_error_that_lasts_leaves_them_to_whoever_looks_next(self):
        run = self.start()
        self.follow()
        self.patch(
            self.records.store.__class__,
            'list_objects',
            mock.Mock(side_effect=errors.Denied('no')),
        )
        self.threads[0]()
        self.assertEqual(runs.State.WAITING, self.state(run))
        self.follow()
        self.assertEqual(2, len(self.threads))

    def test_it_goes_on_with_the_credentials_of_a_run_that_began_later(self):
        run = self.start()
        lost = mock.Mock(spec_set=['waiter'])

        def renew(*args, **options):
            self.follow()
            raise errors.Denied('the trust is gone')

        lost.waiter.side_effect = renew
        run_ledgers.follow_runs(lost, self.stack.id)
        self.acts = [self.answer]
        with self.assertLogs(run_ledgers.LOG, 'WARNING'):
            self.threads[0]()
        self.assertEqual(1, len(self.threads))
        self.assertEqual(runs.State.COMPLETE, self.state(run))
        self.assertEqual({}, run_ledgers._followed)

    def test_it_looks_seldom(self):
        self.start(timeout=600)
        self.follow()
        self.cluster.seen.clear()
        self.threads[0]()
        listings = [s for s in self.cluster.seen if 'prefix' in s.query]
        self.assertLess(len(listings), 2 * 30)
