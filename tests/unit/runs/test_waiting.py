# SPDX-License-Identifier: Apache-2.0
"""Waiting for runs."""

from heat_plugins import errors
from heat_plugins.runs import runs
from heat_plugins.runs.follow import settling
from tests.unit.runs import base

State = runs.State


class WaitTest(base.RunsTestCase):
    def setUp(self):
        super().setUp()
        self.run_ = self.start(timeout=600)
        self.plan = []
        settler = self.runs._settler(self.records)
        self.waiter = settling.Waiter(
            settler,
            self.records,
            watch=lambda run: None,
            clock=lambda: self.now,
            sleep=self.sleep_and_act,
        )
        self.waiter.add(self.run_)

    def sleep_and_act(self, seconds):
        self.now += seconds
        for act in [a for at, a in self.plan if at <= self.now]:
            act()
        self.plan = [(at, a) for at, a in self.plan if at > self.now]

    def wait(self):
        while self.waiter.pending:
            self.waiter.step()
        return self.waiter.all

    def test_it_looks_less_often_as_time_goes_by(self):
        self.plan = [(self.now + 100, self.answer)]
        self.cluster.seen.clear()
        self.heat.asked.clear()
        self.wait()
        # Two for each look, of which two a second in the first half minute.
        listings = [s for s in self.cluster.seen if 'prefix' in s.query]
        self.assertLess(len(listings), 120 + 2 * 14 + 8)
        self.assertLess(len(self.heat.asked), 30)

    def test_a_result_is_seen_at_once_while_it_is_likely(self):
        answered = self.now + 20.1
        self.plan = [(answered, self.answer)]
        self.wait()
        self.assertLessEqual(self.now - answered, 1.1)

    def test_slow_servers_are_not_looked_at_fast_again(self):
        self.plan = [(self.now + 100, self.answer)]
        self.wait()
        self.now += 100
        self.waiter.add(self.start(timeout=600))
        self.cluster.seen.clear()
        begun = self.now
        self.plan = [(self.now + 60, self.answer)]
        self.wait()
        listings = [s for s in self.cluster.seen if 'prefix' in s.query]
        self.assertLess(len(listings), self.now - begun)

    def test_fifty_are_watched_as_one(self):
        for number in range(2, 51):
            name = f'db{number}'
            self.heat.add_deployment(self.stack, name, f'server-{number}')
            self.waiter.add(self.start(resource=name))
        self.cluster.seen.clear()
        self.heat.asked.clear()
        self.waiter.step()
        self.assertEqual(
            ['runs/open/', 'signals/'],
            [one.query['prefix'] for one in self.cluster.seen],
        )
        # One question about the stack, two about each of ten runs.
        self.assertEqual(21, len(self.heat.asked))
        asked = [one for one in self.heat.asked if one.startswith('stack ')]
        self.assertEqual(1, len(asked))
        # After a while all have had their turn.
        gone = max(self.waiter.pending, key=lambda run: run.started_at)
        self.heat.delete_deployment(gone.row_id)
        for _ in range(200):
            self.waiter.step()
        self.assertEqual(49, len(self.waiter.pending))

    def test_it_sees_that_somebody_else_has_settled_it(self):
        def settle():
            self.answer()
            self.show(self.run_)

        self.plan = [(self.now + 5, settle)]
        self.assertEqual(State.COMPLETE, self.wait()[0].state)

    def test_the_engine_drops_the_container_as_the_stack_goes(self):
        def delete():
            store = self.cluster.store()
            for name in self.objects():
                store.delete_object(self.records.container, name)
            store.delete_container(self.records.container)
            self.heat.delete_stack(self.stack)

        self.plan = [(self.now + 5, delete)]
        (run,) = self.wait()
        self.assertEqual(State.CANCELLED, run.state)
        self.assertIn('Stack shop was deleted', run.reason)
        self.assertEqual([], self.heat.given())

    def test_passing_faults_are_ridden_out(self):
        self.cluster.fail(6)
        self.plan = [(self.now + 60, self.answer)]
        self.assertEqual(State.COMPLETE, self.wait()[0].state)

    def test_faults_that_do_not_pass_are_told(self):
        self.heat.failing = {'stack': errors.Unavailable('no')}
        self.assertRaises(errors.Unavailable, self.wait)
