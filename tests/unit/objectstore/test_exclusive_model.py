# SPDX-License-Identifier: Apache-2.0
"""What `exclusive` and `lease` promise on an object store that fails.

Each candidate has a thread, which stops before each request until the test
lets it go: so requests of several come in any order, late, and fail.
"""

import contextlib
import functools
import threading

from hypothesis import settings
from hypothesis import stateful
from hypothesis import strategies as st

from heat_plugins import errors
from heat_plugins.objectstore import exclusive
from heat_plugins.objectstore import lease
from tests.unit import examples
from tests.unit import fake_swift

_FAULTS = ('none', 'none', 'none', 'unserved', 'unanswered', 'twice')


class Candidate:
    """Creates the object, one request at a time."""

    def __init__(self, number, cluster, clock, done):
        self.body = str(number).encode()
        self.won = None
        self._cluster = cluster
        self._clock = clock
        self._done = done
        self._go, self._stopped = threading.Semaphore(0), threading.Event()
        self._fault = 'none'
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._stopped.wait()

    @property
    def is_running(self):
        return self._thread.is_alive()

    def step(self, fault):
        """Serve its next request."""
        self._fault = fault
        self._stopped.clear()
        self._go.release()
        self._stopped.wait()
        if self.won is not None:
            self._thread.join()

    def _run(self):
        store = self._cluster.store()
        try:
            self.won = exclusive.create(
                store,
                'box',
                'a',
                self.body,
                now=self._clock,
                clock=self._clock,
                sleep=lambda seconds: None,
            )
        except errors.Unavailable:
            self.won = False
        finally:
            self._stopped.set()

    def serve(self, serve, *args, **more):
        self._stopped.set()
        self._go.acquire()
        fault = self._fault
        if fault == 'unserved':
            raise errors.Unavailable('503')
        answer = serve(*args, **more)
        if fault == 'twice':
            self._done.append(functools.partial(serve, *args, **more))
        if fault == 'unanswered':
            raise errors.Unavailable('the answer was lost')
        return answer


class Creating(stateful.RuleBasedStateMachine):
    """Candidates for one object."""

    def __init__(self):
        super().__init__()
        # It overwrites, whatever it is told of If-None-Match.
        self.cluster = fake_swift.ceph()
        self.cluster.store().put_container('box', {})
        self.now = 1_800_000_000.0
        self.candidates = []
        self.repeated = []
        self.serve, self.cluster.serve = self.cluster.serve, self._serve

    def _serve(self, *args, **more):
        for one in self.candidates:
            if one._thread is threading.current_thread():
                return one.serve(self.serve, *args, **more)
        return self.first.serve(self.serve, *args, **more)

    @stateful.initialize()
    def begin_two(self):
        self.begin()
        self.begin()

    @stateful.precondition(lambda self: len(self.candidates) < 4)
    @stateful.rule()
    def begin(self):
        self.now += 0.01
        candidate = Candidate.__new__(Candidate)
        self.first = candidate
        candidate.__init__(
            len(self.candidates),
            self.cluster,
            lambda: self.now,
            self.repeated,
        )
        self.candidates.append(candidate)

    @stateful.rule(
        number=st.integers(0, 3),
        requests=st.integers(1, 7),
        fault=st.sampled_from(_FAULTS),
    )
    def go(self, number, requests, fault):
        # Less in all than a candidate waits for another: a longer standstill
        # is the window that remains.
        self.now += 0.1
        running = [one for one in self.candidates if one.is_running]
        for _ in range(requests - 1):
            if running and running[number % len(running)].is_running:
                running[number % len(running)].step('none')
        if running and running[number % len(running)].is_running:
            running[number % len(running)].step(fault)

    @stateful.precondition(lambda self: self.repeated)
    @stateful.rule()
    def serve_again(self):
        self.repeated.pop()()

    @stateful.invariant()
    def at_most_one_wins(self):
        assert sum(one.won is True for one in self.candidates) <= 1

    def teardown(self):
        for _ in range(400):
            running = [one for one in self.candidates if one.is_running]
            if not running:
                break
            self.now += 0.05
            for one in running:
                one.step('none')
        self.at_most_one_wins()
        assert not any(one.is_running for one in self.candidates)
        won = [one.body for one in self.candidates if one.won]
        content = self.cluster.container('box').objects.get('a')
        # Of a candidate whose answer was lost, or of the one that has won.
        assert not won or content == won[0]


class Leading(stateful.RuleBasedStateMachine):
    """Processes that lead one thing in turn."""

    def __init__(self):
        super().__init__()
        self.cluster = fake_swift.ceph()
        self.store = self.cluster.store()
        self.store.put_container('box', {})
        self.now = 1_800_000_000.0
        self.cluster.now = lambda: self.now
        self.faults = []
        self.serve, self.cluster.serve = self.cluster.serve, self._serve
        self.leases = [self._lease(n) for n in range(3)]

    def _lease(self, number):
        return lease.Lease(
            lease.objects(self.store, 'box', 'leads/'),
            who=str(number),
            clock=lambda: self.now,
            monotonic=lambda: self.now,
            sleep=self._sleep,
        )

    def _sleep(self, seconds):
        self.now += seconds

    def _serve(self, *args, **more):
        fault = self.faults.pop() if self.faults else 'none'
        if fault == 'unserved':
            raise errors.Unavailable('503')
        answer = self.serve(*args, **more)
        if fault == 'twice':
            self.serve(*args, **more)
        if fault == 'unanswered':
            raise errors.Unavailable('the answer was lost')
        return answer

    @stateful.rule(faults=st.lists(st.sampled_from(_FAULTS), max_size=2))
    def fail(self, faults):
        self.faults = faults

    @stateful.rule(number=st.integers(1, 20))
    def lag(self, number):
        """Let listings not show an epoch for a while."""
        self.cluster.lagging.add(('box', lease.name(number, 'leads/')))

    @stateful.rule()
    def show(self):
        self.cluster.lagging.clear()

    @stateful.rule(seconds=st.sampled_from([1, 12, 24, 40, 50, 60]))
    def wait(self, seconds):
        self.now += seconds

    @stateful.rule(number=st.integers(0, 2))
    def acquire_after_a_while(self, number):
        self.now += lease.EXPIRY + 1
        self.acquire(number)

    @stateful.rule(number=st.integers(0, 2))
    def acquire(self, number):
        one = self.leases[number]
        if one.epoch is not None:
            return
        with contextlib.suppress(errors.Unavailable):
            one.acquire(lease.last(self.store, 'box', 'leads/'))

    @stateful.rule(number=st.integers(0, 2))
    def die(self, number):
        self.leases[number] = self._lease(number)

    @stateful.rule(number=st.integers(0, 2))
    def release(self, number):
        with contextlib.suppress(errors.Unavailable):
            self.leases[number].release()

    @stateful.rule()
    def at_most_one_leads(self):
        # At the same moment, as what follows on a check has no window here.
        faults, self.faults = self.faults, []
        leading = [one.epoch for one in self.leases if self._leads(one)]
        self.faults = faults
        assert len(leading) <= 1

    def _leads(self, one):
        try:
            one.check()
        except (lease.Lost, errors.Unavailable):
            return False
        return True


TestCreating = Creating.TestCase
TestCreating.settings = settings(
    max_examples=examples.number(80),
    stateful_step_count=15,
    deadline=None,
    derandomize=True,
)
TestLeading = Leading.TestCase
TestLeading.settings = settings(
    max_examples=examples.number(150),
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
)
