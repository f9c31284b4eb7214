# SPDX-License-Identifier: Apache-2.0
"""Who waits sees what there is; one of all looks, as often as needed."""

import dataclasses
import functools
import threading
import time
from unittest import mock

import testtools

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
    polls = paces.PollLimits(
        fast=interval, interval=interval, interval_max=interval_max
    )
    return watcher.WatchLimits(polls=polls, **{'direct': 60.0, **more})


class Source:
    """Rows and names in memory."""

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
        self.now = 1000.0
        self.source = Source()
        self.watcher = watcher.Watcher(
            self.source, self.limits, self.clock, stack_id='s1'
        )

    def clock(self):
        return self.now

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
        seen = self.watcher.wait([waiting], 0)
        return seen.get(waiting, WAITING)

    def look(self, waiting, after=0.0):
        self.now += after
        return self.poll(waiting)

    def looks(self):
        return len(self.source.row_reads)


class BeginningTest(Case):
    def test_a_report_is_an_object_where_the_signal_is_one(self):
        for config in ('c1', 'c2'):
            # That of the action before is not this one's.
            waiting = dataclasses.replace(
                ticket(config=config), report_name=f'signals/d1/{config}.x'
            )
            self.row(waiting)
            self.watcher.join(waiting)
            self.look(waiting, after=10)
            assert not self.watcher.has_begun(waiting)
            self.source.listed.add(waiting.report_name)
            assert self.look(waiting, after=10) is WAITING
            assert self.watcher.has_begun(waiting)
        self.arrive(waiting)
        assert self.look(waiting, after=10) is ARRIVED

    def test_elsewhere_it_is_in_the_row(self):
        waiting = self.join(transport='heat')
        assert not self.watcher.has_begun(waiting)
        for config, begun in (('c2', False), ('c1', True)):
            self.source.table['d1'] = watcher.WatchedRow(
                config_id=config, in_progress=True, begun=True
            )
            self.look(waiting, after=10)
            assert self.watcher.has_begun(waiting) == begun


#: Whether a signal arrives, what the row says, and what is seen.
CASES = (
    (True, {}, ARRIVED),
    (False, {'in_progress': False}, SETTLED),
    (True, {'in_progress': False}, SETTLED),
    (False, {'config': 'c2'}, SUPERSEDED),
    (False, None, SUPERSEDED),
)


class SightTest(Case):
    def test_the_oldest_wait_is_known(self):
        assert self.watcher.oldest == 0
        first = self.join(1)
        self.now += 30
        self.join(2)
        self.now += 5
        assert self.watcher.oldest == 35
        self.watcher.leave(first)
        assert self.watcher.oldest == 5

    def test_what_becomes_of_an_action_is_seen(self):
        for number, (arrives, row, expected) in enumerate(CASES):
            # Before the first look, and after it.
            for after in (0, 10):
                waiting = self.join(number, f'c{after}')
                if after:
                    assert self.look(waiting, 10) is WAITING
                if arrives:
                    self.arrive(waiting)
                if row is None:
                    self.source.table.clear()
                else:
                    self.row(waiting, **row)
                assert self.look(waiting, after=10) is expected

    def test_a_signal_of_an_earlier_action_is_not_this_ones(self):
        before = self.join(config='c1')
        self.arrive(before)
        assert self.look(before) is ARRIVED
        waiting = self.join(config='c2')
        assert len(self.watcher) == 1
        assert self.look(waiting, after=10) is WAITING
        assert self.look(before) is SUPERSEDED


class RowsTest(Case):
    # They are read less often than the container is listed.

    limits = limits(1.0, 1.0, rows=3.0)

    def test_they_are_read_at_their_own_interval(self):
        waiting = self.join()
        for _ in range(30):
            self.look(waiting, after=1)
        assert (self.source.listings, self.looks()) == (30, 10)
        self.look(waiting, after=1)
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
            assert self.look(waiting, after=1) is WAITING
        assert (self.looks(), self.source.listings) == (10, 0)
        self.row(waiting, in_progress=False)
        assert self.look(waiting, after=1) is SETTLED

    def test_a_read_that_fails_is_repeated_with_the_next_look(self):
        waiting = self.join()
        self.source.before_rows = lambda: 1 / 0
        self.assertRaises(ZeroDivisionError, self.look, waiting)
        self.source.before_rows = lambda: None
        self.arrive(waiting)
        assert self.look(waiting, after=1) is ARRIVED
        assert self.looks() == 1


class SharedLookTest(Case):
    def test_all_share_one_look_but_who_has_left(self):
        tickets = [self.join(number) for number in range(50)]
        for each in tickets:
            assert self.look(each) is WAITING
        assert self.source.listings == 1
        assert self.source.row_reads == [
            {each.deployment_id for each in tickets}
        ]
        self.watcher.leave(*tickets[1:])
        assert self.look(tickets[1], after=10) is SUPERSEDED
        assert self.looks() == 1
        self.look(tickets[0])
        assert self.source.row_reads[1:] == [{'d0'}]
        assert len(self.watcher) == 1

    def test_rows_are_read_before_names(self):
        order = []
        self.source.before_rows = lambda: order.append('rows')
        self.source.before_names = lambda: order.append('names')
        self.look(self.join())
        assert order == ['rows', 'names']

    def test_what_is_listed_and_not_there_is_believed_ever_more_seldom(self):
        waiting = self.join()
        self.arrive(waiting)
        seen = []
        for second in range(1000):
            if self.look(waiting, after=1) is ARRIVED:
                seen.append(second)
                self.watcher.absent(waiting)
        assert seen == [0, 120, 360, 840]
        # Nor does it keep the interval short.
        looks = self.looks()
        for _ in range(100):
            self.look(waiting, after=1)
        assert self.looks() - looks < 25

    def test_a_deployment_is_forgotten_with_all_its_actions(self):
        waiting, other = self.join(1), self.join(2)
        self.watcher.forget('d1')
        assert self.look(waiting) is SUPERSEDED
        assert self.look(other) is WAITING
        # Also during its look.
        self.arrive(other)
        self.source.before_names = lambda: self.watcher.forget('d2')
        assert self.look(other, after=10) is SUPERSEDED

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


class PaceTest(Case):
    def intervals(self, waiting, count):
        """Return the seconds between the next looks, to a sixteenth."""
        result = []
        for _ in range(count):
            before, begun = self.looks(), self.now
            while self.looks() == before:
                self.look(waiting, after=1 / 16)
            result.append(self.now - begun)
        return result

    def begin(self, *args, **kwargs):
        waiting = self.join(*args, **kwargs)
        self.look(waiting)
        return waiting

    def test_an_arrival_by_any_transport_resets_it(self):
        waiting, other = self.begin(1), self.join(2)
        by_row = self.join(3, transport='heat')
        self.intervals(waiting, 80)
        self.arrive(ticket(4))
        assert self.intervals(waiting, 2) == [5.0, 5.0]
        for arrive in (
            lambda: self.arrive(other),
            lambda: self.row(by_row, in_progress=False),
        ):
            arrive()
            assert self.intervals(waiting, 2) == [5.0, 1.0]
            self.intervals(waiting, 80)

    def test_who_joins_does_not_put_off_a_look_that_is_due(self):
        waiting = self.begin(1)
        looks = self.looks()
        for number in range(2, 30):
            self.now += 0.1
            self.join(number)
            self.look(waiting)
        assert self.looks() - looks >= 2

    def test_an_outage_slows_the_looks_down(self):
        waiting = self.begin()
        self.arrive(waiting)
        self.look(waiting, after=10)
        self.source.error = errors.Unavailable('out of order')
        assert self.intervals(waiting, 80)[-1] == 5.0


class PeekTest(Case):
    def peeks(self, waiting, seconds):
        """Return at which seconds a peek is asked for."""
        self.now -= 1
        seen = (self.look(waiting, after=1) for _ in range(seconds))
        return [second for second, sight in enumerate(seen) if sight is PEEK]

    def test_a_look_past_the_listing_is_asked_for_ever_more_seldom(self):
        assert self.peeks(self.join(), 600) == [60, 180, 420]
        # A new action begins anew.
        assert self.peeks(self.join(config='c2'), 100) == [60]

    def test_those_that_began_together_do_not_all_ask_at_once(self):
        waiting = [self.join(number) for number in range(40)]
        asked, peeked = [], set()
        begun = self.now
        for quarter in range(4 * 300):
            self.now = begun + quarter / 4
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


class TroubleTest(Case):
    def setUp(self):
        super().setUp()
        self.error = errors.Unavailable('out of order')

    def test_it_lasts_from_the_first_failure_to_the_first_answer(self):
        counts = self.useFixture(counted.Counted())
        waiting = self.join()
        self.look(waiting)
        with self.assertLogs(watcher.LOG) as logs:
            for number in range(3):
                self.source.error = errors.Unavailable(f'no {number}')
                assert self.look(waiting, after=10) is WAITING
                assert self.watcher.outage.seconds == 10 * number
            assert self.watcher.outage.error is self.source.error
            self.source.error = None
            for _ in range(2):
                self.look(waiting, after=10)
                assert self.watcher.outage is None
        assert counts.of(metrics.POLLS) == {'ok': 3, 'failed': 3}
        began, ended = logs.records
        assert (began.levelname, ended.levelname) == ('WARNING', 'INFO')
        assert 'stack s1; retrying: no 0' in began.getMessage()
        assert 'works again, after 30 s' in ended.getMessage()

    def test_what_has_arrived_is_forgotten_only_when_it_is_gone(self):
        waiting = self.join()
        self.arrive(waiting)
        self.look(waiting)
        self.source.error = self.error
        assert self.look(waiting, after=10) is ARRIVED
        assert self.watcher.outage is not None
        self.source.error = None
        self.source.listed.clear()
        assert self.look(waiting, after=10) is WAITING

    def test_rows_that_cannot_be_read_are_an_outage_and_stay(self):
        waiting = self.join()
        self.look(waiting)
        table, self.source.table = self.source.table, None
        self.source.before_rows = mock.Mock(side_effect=self.error)
        assert self.look(waiting, after=10) is WAITING
        assert self.watcher.outage.error is self.error
        self.source.before_rows = lambda: None
        # The store's outage is none of the rows.
        self.source.error, self.source.table = self.error, table
        self.row(waiting, in_progress=False)
        assert self.look(waiting, after=10) is SETTLED

    def test_it_does_not_outlast_those_who_had_it(self):
        before = self.join(1)
        self.source.error = self.error
        self.look(before)
        # Who joins has it too.
        waiting = self.join(2)
        self.look(waiting, after=30)
        assert self.watcher.outage.seconds == 30
        self.watcher.leave(before, waiting)
        self.look(self.join(3), after=3600)
        assert self.watcher.outage.seconds == 0


class WaitTest(Case):
    """Time passes only where somebody sleeps."""

    def setUp(self):
        super().setUp()
        self.meanwhile = lambda: None
        self.slept = []
        quick = {'polls': paces.PollLimits(), 'direct': 60.0, 'rows': 3.0}
        limits = watcher.WatchLimits(**quick)
        self.watcher = watcher.Watcher(
            self.source, limits, self.clock, sleep=self.sleep
        )

    def sleep(self, woken, seconds):
        assert seconds > 0
        self.slept.append(seconds)
        if not woken.is_set():
            self.now += seconds
        self.meanwhile()

    def arrive_after(self, seconds, *tickets):
        due = self.now + seconds

        def arrive():
            if self.now >= due:
                for each in tickets:
                    self.arrive(each)

        self.meanwhile = arrive

    def test_it_takes_no_longer_than_it_may(self):
        waiting = self.join()
        begun = self.now
        assert self.watcher.wait([waiting], 1.0) == {}
        assert self.now - begun == 1.0
        # The last of them as the time ends.
        assert self.source.listings == 5
        for _ in range(600):
            self.watcher.wait([waiting], 1.0)
        # 30 s of four a second, then ever fewer.
        assert self.source.listings < 120 + 60 + 30 + 100

    def test_who_joins_meanwhile_is_polled_for_soon(self):
        waiting = self.join(1)
        for _ in range(200):
            self.watcher.wait([waiting], 1.0)
        listings, begun = self.source.listings, self.now
        others = iter([2])
        self.meanwhile = lambda: [self.join(number) for number in others]
        self.watcher.wait([waiting], 10.0)
        assert self.source.listings - listings > 10
        assert self.now - begun < 15

    def test_who_is_forgotten_meanwhile_wakes(self):
        waiting = self.join()
        self.meanwhile = lambda: self.watcher.forget('d1')
        assert self.watcher.wait([waiting], 100) == {waiting: SUPERSEDED}
        assert len(self.slept) == 1

    def test_a_poll_that_another_one_makes_is_left_to_it(self):
        waiting, other = self.join(1), self.join(2)
        answers = []

        def wait():
            self.source.before_names = lambda: None
            answers.append(self.watcher.wait([other], 0.2))

        self.source.before_names = wait
        assert self.watcher.wait([waiting], 0.2) == {}
        assert answers == [{}]
        assert self.source.listings == 1

    def test_one_may_wait_for_many(self):
        tickets = [self.join(number) for number in range(1000)]
        self.arrive_after(2.1, tickets[5], tickets[7])
        self.row(tickets[9], in_progress=False)
        assert self.watcher.wait(tickets, 1.0) == {tickets[9]: SETTLED}
        self.watcher.leave(tickets[9])
        rest = [each for each in tickets if each is not tickets[9]]
        assert self.watcher.wait(rest, 1.0) == {}
        both = {tickets[5]: ARRIVED, tickets[7]: ARRIVED}
        assert self.watcher.wait(rest, 10.0) == both

    def test_past_the_listing_one_looks_at_a_time(self):
        tickets = [self.join(number) for number in range(1000)]
        self.now += 100
        found = self.watcher.wait(tickets, 0)
        assert [*found.values()] == [PEEK]


class ThreadsTest(Case):
    def test_one_polls_for_all_and_each_wakes_for_its_own_signal(self):
        limits = watcher.WatchLimits(direct=1e9, rows=1e9)
        self.watcher = watcher.Watcher(self.source, limits)
        tickets = [self.join(number) for number in range(50)]
        pollers, current = set(), threading.current_thread
        self.source.before_names = lambda: pollers.add(current())
        listed = threading.Event()

        def wait(waiting):
            while not (found := self.watcher.wait([waiting], 60)):
                pass
            assert found == {waiting: ARRIVED}
            self.watcher.leave(waiting)

        def answer():
            for each in tickets:
                self.arrive(each)
                listed.wait(0.002)

        waits = [functools.partial(wait, each) for each in tickets]
        threads.run(answer, *waits)
        assert len(self.watcher) == 0
        assert len(pollers) < 25

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

        def act(number):
            for run in range(100):
                waiting = self.join(number, config=f'c{run}')
                assert self.poll(waiting) is WAITING
                if run % 2:
                    self.row(waiting, in_progress=False)
                else:
                    self.arrive(waiting)
                for _ in range(5000):
                    sight = self.poll(waiting)
                    if sight is not WAITING:
                        break
                    nap(0.0005)
                assert sight is (SETTLED if run % 2 else ARRIVED)
                self.row(waiting, in_progress=False)
                if run % 3:
                    self.watcher.leave(waiting)

        threads.run(*(functools.partial(act, number) for number in range(20)))
        for number in range(20):
            self.watcher.forget(f'd{number}')
        assert len(self.watcher) == 0
