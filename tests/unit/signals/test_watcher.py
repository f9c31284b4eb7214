# SPDX-License-Identifier: Apache-2.0
"""Who waits sees what there is, and looks no more often than needed."""

import dataclasses
import itertools
import threading
import time

import testtools
from testtools import matchers

from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins.signals import paces
from heat_plugins.signals import watcher
from tests.unit import counted
from tests.unit import threads

ARRIVED = watcher.Observation.ARRIVED
PEEK = watcher.Observation.PEEK
SETTLED = watcher.Observation.SETTLED
SUPERSEDED = watcher.Observation.SUPERSEDED
WAITING = watcher.Observation.WAITING


def limits(interval, interval_max, **more):
    """Return limits without fast polls."""
    polls = paces.PollLimits(
        fast=interval, interval=interval, interval_max=interval_max
    )
    return watcher.WatchLimits(polls=polls, **{'direct': 60.0, **more})


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Source:
    """Rows and names in memory; counts how often it is looked at."""

    def __init__(self):
        self.listed = set()
        self.table = {}
        self.error = None
        self.row_reads = []
        self.listings = 0
        #: Called in the middle of a look, before rows and before names.
        self.before_rows = lambda: None
        self.before_names = lambda: None

    def rows(self, ids):
        self.before_rows()
        self.row_reads.append(set(ids))
        return {each: self.table[each] for each in ids if each in self.table}

    def names(self, wanted):
        self.before_names()
        self.listings += 1
        if self.error is not None:
            raise self.error
        return set(self.listed)


def ticket(number=1, config='c1', transport='swift'):
    deployment = f'd{number}'
    return watcher.Ticket(
        deployment_id=deployment,
        config_id=config,
        object_name=(
            f'signals/{deployment}/{config}' if transport == 'swift' else None
        ),
    )


class Case(testtools.TestCase):
    limits = limits(1.0, 5.0)

    def setUp(self):
        super().setUp()
        self.clock = Clock()
        self.source = Source()
        self.watcher = watcher.Watcher(self.source, self.limits, self.clock)

    def row(self, waiting, *, in_progress=True, config=None):
        self.source.table[waiting.deployment_id] = watcher.WatchedRow(
            config_id=config or waiting.config_id, in_progress=in_progress
        )

    def join(self, *args, **kwargs):
        """Begin to wait as a deployment does: first the row, then the wait."""
        waiting = ticket(*args, **kwargs)
        self.row(waiting)
        self.watcher.join(waiting)
        return waiting

    def arrive(self, waiting):
        self.source.listed.add(waiting.object_name)

    def poll(self, waiting):
        """Return what a poll shows, without blocking."""
        seen = self.watcher.wait([waiting], 0)
        return seen.get(waiting, WAITING)

    def look(self, waiting, after=0.0):
        self.clock.now += after
        return self.poll(waiting)

    def looks(self):
        return len(self.source.row_reads)


class BeginningTest(Case):
    """Whether a server has begun is seen with what is looked at anyway."""

    def reporting(self):
        return dataclasses.replace(ticket(), report_name='signals/d1/c1.x')

    def test_a_report_is_an_object_where_the_signal_is_one(self):
        waiting = self.reporting()
        self.row(waiting)
        self.watcher.join(waiting)
        self.look(waiting)
        assert not self.watcher.has_begun(waiting)
        self.source.listed.add(waiting.report_name)
        assert self.look(waiting, after=10) is WAITING
        assert self.watcher.has_begun(waiting)
        self.arrive(waiting)
        assert self.look(waiting, after=10) is ARRIVED

    def test_a_report_of_another_action_is_not_this_ones(self):
        before = self.reporting()
        self.row(before)
        self.watcher.join(before)
        self.source.listed.add(before.report_name)
        self.look(before)
        waiting = dataclasses.replace(
            ticket(config='c2'), report_name='signals/d1/c2.x'
        )
        self.row(waiting)
        self.watcher.join(waiting)
        self.look(waiting, after=10)
        assert not self.watcher.has_begun(waiting)

    def test_elsewhere_it_is_in_the_row(self):
        waiting = self.join(transport='heat')
        self.look(waiting)
        assert not self.watcher.has_begun(waiting)
        for config, begun in (('c2', False), ('c1', True)):
            self.source.table['d1'] = watcher.WatchedRow(
                config_id=config, in_progress=True, begun=True
            )
            self.look(waiting, after=10)
            assert self.watcher.has_begun(waiting) == begun

    def test_a_server_that_was_never_looked_for_has_not(self):
        assert not self.watcher.has_begun(ticket(transport='heat'))


class SightTest(Case):
    def test_the_oldest_wait_is_known(self):
        assert self.watcher.oldest == 0
        first = self.join(1)
        self.clock.now += 30
        self.join(2)
        self.clock.now += 5
        assert self.watcher.oldest == 35
        self.watcher.leave(first)
        assert self.watcher.oldest == 5

    def becomes(self, waiting, *, arrives=False, row=None):
        """Let something become of an action: its signal, or its row."""
        if arrives:
            self.arrive(waiting)
        if row == 'gone':
            self.source.table.clear()
        elif row is not None:
            self.row(waiting, **row)

    def test_what_becomes_of_an_action_is_seen(self):
        settled = {'in_progress': False}
        for number, (what, expected) in enumerate(
            (
                ({'arrives': True}, ARRIVED),
                ({'row': settled}, SETTLED),
                ({'arrives': True, 'row': settled}, SETTLED),
                ({'row': {'config': 'c2'}}, SUPERSEDED),
                ({'row': 'gone'}, SUPERSEDED),
            )
        ):
            # Before the first look, and after it.
            for after in (0, 10):
                with self.subTest(what=what, after=after):
                    waiting = self.join(number, f'c{after}')
                    if after:
                        assert self.look(waiting, 10) is WAITING
                    self.becomes(waiting, **what)
                    assert self.look(waiting, after=10) is expected

    def test_a_signal_of_an_earlier_action_is_not_this_ones(self):
        before = self.join(config='c1')
        self.arrive(before)
        assert self.look(before) is ARRIVED
        waiting = self.join(config='c2')
        assert self.look(waiting, after=10) is WAITING

    def test_who_is_signalled_otherwise_is_told_by_the_row_alone(self):
        waiting = self.join(transport='heat')
        for _ in range(20):
            assert self.look(waiting, after=100) is WAITING
        self.row(waiting, in_progress=False)
        assert self.look(waiting, after=100) is SETTLED
        assert self.source.listings == 0

    def test_each_sees_what_is_its_own(self):
        first, second, third = self.join(1), self.join(2), self.join(3)
        self.arrive(first)
        self.row(second, in_progress=False)
        assert self.look(first) is ARRIVED
        assert self.look(second) is SETTLED
        assert self.look(third) is WAITING

    def test_signals_that_nobody_waits_for_are_passed_over(self):
        waiting = self.join()
        self.arrive(ticket(2))
        self.source.listed.add('signals/.probe')
        assert self.look(waiting) is WAITING


class RowsTest(Case):
    """Rows are read less often than the container is listed."""

    limits = limits(1.0, 1.0, rows=3.0)

    def test_they_are_read_at_their_own_interval(self):
        waiting = self.join()
        for _ in range(30):
            self.look(waiting, after=1)
        assert self.source.listings == 30
        assert self.looks() == 10

    def test_a_deployment_that_ends_another_way_is_seen_all_the_same(self):
        waiting = self.join()
        self.look(waiting)
        self.row(waiting, in_progress=False)
        assert self.look(waiting, after=1) is WAITING
        assert self.look(waiting, after=2) is SETTLED

    def test_what_joins_between_two_reads_is_not_taken_for_gone(self):
        self.look(self.join(1))
        waiting = self.join(2)
        assert self.look(waiting, after=1) is WAITING
        assert self.look(waiting, after=1) is WAITING

    def test_they_are_read_each_time_for_those_that_have_nothing_else(self):
        waiting = self.join(transport='heat')
        for _ in range(10):
            self.look(waiting, after=1)
        assert self.looks() == 10

    def test_a_read_that_fails_is_repeated_with_the_next_look(self):
        waiting = self.join()
        self.source.before_rows = lambda: 1 / 0
        self.assertRaises(ZeroDivisionError, self.look, waiting)
        self.source.before_rows = lambda: None
        self.look(waiting, after=1)
        assert self.looks() == 1


class SharedLookTest(Case):
    def test_all_share_one_look(self):
        tickets = [self.join(number) for number in range(50)]
        for each in tickets:
            assert self.look(each) is WAITING
        assert self.source.listings == 1
        assert self.source.row_reads == [
            {each.deployment_id for each in tickets}
        ]

    def test_rows_are_read_before_names(self):
        order = []
        self.source.before_rows = lambda: order.append('rows')
        self.source.before_names = lambda: order.append('names')
        self.look(self.join())
        assert order == ['rows', 'names']

    def test_who_left_is_not_looked_for(self):
        first, second = self.join(1), self.join(2)
        self.watcher.leave(first)
        self.look(second)
        assert self.source.row_reads == [{'d2'}]
        assert len(self.watcher) == 1

    def test_what_is_listed_and_not_there_is_believed_ever_more_seldom(self):
        waiting = self.join()
        self.arrive(waiting)
        seen = []
        for second in range(1000):
            if self.look(waiting, after=1) is ARRIVED:
                seen.append(second)
                self.watcher.absent(waiting)
        assert seen[0] == 0
        gaps = [late - early for early, late in itertools.pairwise(seen)]
        assert gaps == [120, 240, 480]

    def test_what_is_listed_all_along_does_not_keep_the_interval_short(self):
        waiting = self.join()
        self.arrive(waiting)
        for _ in range(200):
            self.look(waiting, after=1)
        looks = self.looks()
        for _ in range(100):
            self.look(waiting, after=1)
        self.assertThat(self.looks() - looks, matchers.LessThan(25))

    def test_who_has_left_is_superseded_and_causes_no_poll(self):
        waiting = self.join()
        self.watcher.leave(waiting)
        assert self.look(waiting, after=10) is SUPERSEDED
        assert self.looks() == 0

    def test_a_deployment_is_forgotten_with_all_its_actions(self):
        waiting, other = self.join(1), self.join(2)
        self.watcher.forget('d1')
        assert self.look(waiting) is SUPERSEDED
        assert self.look(other) is WAITING

    def test_who_is_forgotten_during_its_look_is_superseded(self):
        waiting = self.join()
        self.arrive(waiting)
        self.source.before_names = lambda: self.watcher.forget('d1')
        assert self.look(waiting) is SUPERSEDED

    def test_the_next_action_of_a_deployment_takes_the_place_of_the_last(self):
        before = self.join(config='c1')
        waiting = self.join(config='c2')
        assert len(self.watcher) == 1
        assert self.look(before) is SUPERSEDED
        assert self.look(waiting) is WAITING

    def test_who_joins_during_a_look_is_not_told_by_its_row(self):
        # That look has read the row as the action before this one left it.
        first = self.join(1)
        late = ticket(2, config='c2')
        self.row(late, config='c1', in_progress=False)
        self.watcher.join(ticket(2, config='c1'))

        def join_late():
            self.source.before_names = lambda: None
            self.row(late)
            self.watcher.join(late)

        self.source.before_names = join_late
        self.look(first)
        assert self.look(late) is WAITING
        assert self.looks() == 1
        self.row(late, in_progress=False)
        assert self.look(late, after=10) is SETTLED

    def test_who_joins_after_a_look_is_told_by_the_next_one_only(self):
        first = self.join(1)
        self.look(first)
        late = self.join(2)
        assert self.look(late) is WAITING
        assert self.look(late, after=1) is WAITING
        assert self.looks() == 2

    def test_an_answer_from_memory_needs_no_lock_of_the_look(self):
        first, second = self.join(1), self.join(2)
        self.look(first)
        looking, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        def stall():
            looking.set()
            go_on.wait(10)

        self.source.before_names = stall
        self.clock.now += 10
        thread = threading.Thread(target=self.poll, args=(first,))
        thread.start()
        assert looking.wait(10)
        assert self.poll(second) is WAITING
        self.watcher.leave(second)
        self.join(3)
        go_on.set()
        thread.join(10)
        assert self.looks() == 2

    def test_a_look_that_breaks_is_made_again(self):
        waiting = self.join()

        def break_down():
            raise RuntimeError('no database')

        self.source.before_rows = break_down
        self.assertRaises(RuntimeError, self.look, waiting)
        self.source.before_rows = lambda: None
        self.arrive(waiting)
        assert self.look(waiting) is ARRIVED


class PaceTest(Case):
    def intervals(self, waiting, count):
        """Return the seconds between the next looks, to a sixteenth."""
        result = []
        for _ in range(count):
            before, begun = self.looks(), self.clock.now
            while self.looks() == before:
                self.look(waiting, after=1 / 16)
            result.append(self.clock.now - begun)
        return result

    def begin(self, *args, **kwargs):
        waiting = self.join(*args, **kwargs)
        self.look(waiting)
        return waiting

    def test_an_arrival_resets_it(self):
        waiting, other = self.begin(1), self.join(2)
        self.intervals(waiting, 80)
        self.arrive(other)
        after = self.intervals(waiting, 2)
        self.assertAlmostEqual(5.0, after[0], delta=1 / 16)
        self.assertAlmostEqual(1.0, after[1], delta=1 / 16)

    def test_an_arrival_by_another_transport_resets_it(self):
        waiting = self.begin(1)
        other = self.join(2, transport='heat')
        self.intervals(waiting, 80)
        self.row(other, in_progress=False)
        after = self.intervals(waiting, 2)
        self.assertAlmostEqual(1.0, after[1], delta=1 / 16)

    def test_a_signal_that_nobody_waits_for_does_not_reset_it(self):
        waiting = self.begin()
        self.arrive(ticket(2))
        self.assertAlmostEqual(
            5.0, self.intervals(waiting, 80)[-1], delta=1 / 16
        )

    def test_who_joins_resets_it_and_is_seen_after_one_interval(self):
        waiting = self.begin(1)
        self.intervals(waiting, 80)
        late = self.join(2)
        self.arrive(late)
        assert self.look(late, after=0.9) is WAITING
        assert self.look(late, after=0.2) is ARRIVED

    def test_who_joins_does_not_put_off_a_look_that_is_due(self):
        waiting = self.begin(1)
        looks = self.looks()
        for number in range(2, 30):
            self.clock.now += 0.1
            self.join(number)
            self.look(waiting)
        assert self.looks() - looks >= 2

    def test_an_outage_slows_the_looks_down(self):
        waiting = self.begin()
        self.arrive(waiting)
        self.look(waiting, after=10)
        self.source.error = errors.Unavailable('out of order')
        self.assertAlmostEqual(
            5.0, self.intervals(waiting, 80)[-1], delta=1 / 16
        )


class PeekTest(Case):
    def peeks(self, waiting, seconds):
        """Return at which seconds a peek is asked for."""
        result = []
        begun = self.clock.now
        for second in range(seconds):
            self.clock.now = begun + second
            if self.poll(waiting) is PEEK:
                result.append(second)
        return result

    def test_a_look_past_the_listing_is_asked_for_ever_more_seldom(self):
        assert self.peeks(self.join(), 600) == [60, 180, 420]

    def test_each_has_its_own_time_for_that(self):
        first = self.join(1)
        self.clock.now += 30
        second = self.join(2)
        self.clock.now += 30
        assert self.look(first) is PEEK
        assert self.look(second) is WAITING
        assert self.look(second, after=30) is PEEK
        assert self.look(first) is WAITING

    def test_those_that_began_together_do_not_all_ask_at_once(self):
        waiting = [self.join(number) for number in range(40)]
        asked, peeked = [], set()
        begun = self.clock.now
        for quarter in range(4 * 300):
            self.clock.now = begun + quarter / 4
            before = self.source.listings
            seen = {
                one.deployment_id for one in waiting if self.poll(one) is PEEK
            }
            peeked |= seen
            asked.append(len(seen) + self.source.listings - before)
        for second in range(30, 290):
            # With the listings it is one a second.
            ten = sum(asked[4 * second : 4 * second + 40])
            assert ten <= 11, f'{second} s'
        assert len(peeked) == 40

    def test_a_new_action_begins_anew(self):
        self.peeks(self.join(config='c1'), 300)
        assert self.peeks(self.join(config='c2'), 100) == [60]


class TroubleTest(Case):
    def setUp(self):
        super().setUp()
        self.error = errors.Unavailable('out of order')

    def test_it_lasts_from_the_first_failure_to_the_first_answer(self):
        waiting = self.join()
        self.look(waiting)
        self.source.error = self.error
        assert self.look(waiting, after=10) is WAITING
        assert self.watcher.outage.seconds == 0
        self.source.error = errors.Denied('and now this')
        assert self.look(waiting, after=10) is WAITING
        assert self.watcher.outage.seconds == 10
        assert str(self.watcher.outage.error) == 'and now this'
        self.source.error = None
        self.look(waiting, after=10)
        assert self.watcher.outage is None

    def test_each_poll_is_counted_by_its_end(self):
        counts = self.useFixture(counted.Counted())
        waiting = self.join()
        self.look(waiting)
        self.source.error = self.error
        for _look in range(2):
            self.look(waiting, after=10)
        assert counts.of(metrics.POLLS) == {'ok': 1, 'failed': 2}

    def test_its_beginning_and_its_end_are_logged_and_nothing_between(self):
        self.watcher = watcher.Watcher(
            self.source, self.limits, self.clock, stack_id='s1'
        )
        waiting = self.join()
        with self.assertNoLogs(watcher.LOG):
            self.look(waiting)
        self.source.error = self.error
        with self.assertLogs(watcher.LOG) as logs:
            for _look in range(3):
                self.look(waiting, after=10)
            self.source.error = None
            self.look(waiting, after=10)
            self.look(waiting, after=10)
        assert [(one.levelname, one.getMessage()) for one in logs.records] == [
            (
                'WARNING',
                'Cannot list the signals of stack s1; retrying: out of order',
            ),
            (
                'INFO',
                'Listing the signals of stack s1 works again, after 30 s',
            ),
        ]

    def test_rows_are_seen_all_the_same(self):
        waiting = self.join()
        self.row(waiting, in_progress=False)
        self.source.error = self.error
        assert self.look(waiting) is SETTLED

    def test_what_has_arrived_before_is_not_forgotten(self):
        waiting = self.join()
        self.arrive(waiting)
        self.look(waiting)
        self.source.error = self.error
        assert self.look(waiting, after=10) is ARRIVED
        assert self.watcher.outage is not None

    def test_rows_that_cannot_be_read_are_an_outage_and_stay_as_they_were(
        self,
    ):
        waiting = self.join()
        self.look(waiting)

        def fail():
            raise errors.Unavailable('no database')

        self.source.before_rows = fail
        self.source.table.clear()
        assert self.look(waiting, after=10) is WAITING
        assert str(self.watcher.outage.error) == 'no database'
        self.source.before_rows = lambda: None
        assert self.look(waiting, after=10) is SUPERSEDED

    def test_a_signal_that_is_gone_from_the_listing_is_forgotten(self):
        waiting = self.join()
        self.arrive(waiting)
        self.look(waiting)
        self.source.listed.clear()
        assert self.look(waiting, after=10) is WAITING

    def test_it_does_not_outlast_those_who_had_it(self):
        before = self.join(1)
        self.source.error = self.error
        self.look(before)
        self.watcher.leave(before)
        waiting = self.join(2)
        self.look(waiting, after=3600)
        assert self.watcher.outage.seconds == 0

    def test_who_joins_those_who_have_it_has_it_too(self):
        self.source.error = self.error
        self.look(self.join(1))
        self.look(self.join(2), after=30)
        assert self.watcher.outage.seconds == 30


class ThreadsTest(Case):
    def test_waiters_that_ask_at_the_same_time_make_one_look(self):
        tickets = [self.join(number) for number in range(20)]
        barrier = threading.Barrier(20)
        asked = threading.Semaphore(0)

        def wait_for_the_others():
            for _ in range(19):
                assert asked.acquire(timeout=10)

        self.source.before_names = wait_for_the_others
        sights = []

        def ask(waiting):
            barrier.wait(10)
            sights.append(self.poll(waiting))
            asked.release()

        threads.run(*(lambda each=each: ask(each) for each in tickets))
        assert sights == [WAITING] * 20
        assert self.source.listings == 1

    def test_no_signal_is_lost_or_taken_for_another_under_load(self):
        # Each thread is a deployment that goes through many actions; the row
        # of one says "settled" until the next has begun, and looks are under
        # way all the time.
        self.watcher = watcher.Watcher(
            self.source,
            limits(1.0, 2.0, direct=1e9),
            # A thousand of its seconds go by in one.
            lambda: 1000 * time.monotonic(),
        )
        nap = threading.Event().wait
        self.source.before_names = lambda: nap(0.0005)

        def end(waiting, by_row):
            """End an action; return what is to be seen of that."""
            if by_row:
                self.row(waiting, in_progress=False)
                return SETTLED
            self.arrive(waiting)
            return ARRIVED

        def act(number):
            for run in range(100):
                waiting = self.join(number, config=f'c{run}')
                assert self.poll(waiting) is WAITING
                expected = end(waiting, by_row=run % 2)
                for _ in range(5000):
                    sight = self.poll(waiting)
                    if sight is not WAITING:
                        break
                    nap(0.0005)
                assert sight is expected
                self.row(waiting, in_progress=False)
                if run % 3:
                    self.watcher.leave(waiting)

        threads.run(*(lambda n=n: act(n) for n in range(20)))
        for number in range(20):
            self.watcher.forget(f'd{number}')
        assert len(self.watcher) == 0
