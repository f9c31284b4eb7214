# SPDX-License-Identifier: Apache-2.0
"""What `exclusive` promises on services that fail.

Each process has a thread, which stops before each request until the test lets
it go. Requests come in any order, and each may be refused (``unserved``),
served without an answer (``unanswered``), served after its caller has got an
error (``late``) or served again later (``twice``). Listings may lag, and
processes die anywhere. What the docstring of `exclusive` names as a window is
told here where it opens; nothing else may break a promise.
"""

import contextlib
import functools
import itertools
import threading

from hypothesis import settings
from hypothesis import stateful
from hypothesis import strategies as st

from heat_plugins import errors
from heat_plugins.objectstore import exclusive
from tests.unit import examples
from tests.unit import fake_swift

_FAULTS = (*['none'] * 6, 'unserved', 'unanswered', 'late', 'twice')

# Seconds by which a request may take effect late: less than a holder leaves
# between the last use of its lease and the end of that.
_LATE = 15.0


class Killed(BaseException):
    """The process is no more."""


class Process:
    """Does one job after the other, each one request at a time."""

    def __init__(self, model):
        self.thread = None
        self._model = model

    @property
    def is_running(self):
        return self.thread is not None and self.thread.is_alive()

    def begin(self, job):
        self._go, self._stopped = threading.Semaphore(0), threading.Event()
        run = functools.partial(self._run, job)
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        self._wait()

    def step(self, fault='none'):
        self._fault = fault
        self._stopped.clear()
        self._go.release()
        self._wait()

    def _wait(self):
        self._stopped.wait()
        if self._is_done:
            self.thread.join()

    def _run(self, job):
        self._is_done = False
        try:
            with contextlib.suppress(errors.Error, Killed):
                job()
        finally:
            self._is_done = True
            self._stopped.set()

    def serve(self, serve, is_write):
        self._stopped.set()
        self._go.acquire()
        fault = self._fault
        if fault == 'killed':
            raise Killed
        if fault == 'late' and is_write:
            self._model.postpone(serve)
        if fault in ('unserved', 'late'):
            raise errors.Unavailable('503')
        answer = serve()
        if fault == 'twice' and is_write:
            self._model.postpone(serve)
        if fault == 'unanswered':
            raise errors.Unavailable('the answer was lost')
        return answer


class Exclusive(stateful.RuleBasedStateMachine):
    """Candidates for one object, and a service that fails.

    :ivar is_blind: whether a listing did not show an announcement: the first
        window.
    :ivar was_late: whether a request took effect late: the third one.
    :ivar has_failed: whether anything failed at all.
    """

    is_blind = was_late = has_failed = False
    now = 1_800_000_000.0

    def __init__(self):
        super().__init__()
        # It overwrites, whatever it is told of If-None-Match.
        self.cluster = fake_swift.ceph()
        self.store = self.cluster.store()
        self.store.put_container('box', {})
        self.cluster.now = self.clock
        self.late, self.winners = [], []
        self.numbers = itertools.count()
        self._serve = self.cluster.serve
        self.cluster.serve = self.serve
        self.processes = [Process(self) for _ in range(3)]

    def clock(self):
        return self.now

    @property
    def objects(self):
        return self.cluster.container('box').objects

    def create(self, body):
        clocks = {'now': self.clock, 'clock': self.clock}
        clocks['sleep'] = lambda seconds: None
        if exclusive.create(self.store, 'box', 'a', body, **clocks):
            self.winners.append(body)

    def serve(self, project_id, request, body=b''):
        """Serve a request, at its turn if a process has sent it."""
        serve = functools.partial(self.listed, project_id, request, body)
        for process in self.processes:
            if process.thread is threading.current_thread():
                is_write = request.method in ('PUT', 'DELETE')
                return process.serve(serve, is_write)
        return serve()

    def listed(self, project_id, request, body):
        if request.method == 'GET' and 'prefix=.heat-plugins' in request.url:
            self.is_blind |= any(
                name.startswith(exclusive.FOLDER) and name in self.objects
                for _, name in self.cluster.lagging
            )
        return self._serve(project_id, request, body)

    def postpone(self, serve):
        self.late.append((self.now, serve))

    def some(self, number, *, is_running):
        """Return a process that is at it, or is not; None if there is none."""
        some = [p for p in self.processes if p.is_running is is_running]
        return some[number % len(some)] if some else None

    def step(self, process, requests):
        # Less in all than a candidate waits for another: a longer standstill
        # is the second window, and the fourth.
        for _ in range(requests):
            if process.is_running:
                self.now += 0.005
                process.step()

    @stateful.rule(
        number=st.integers(0, 2),
        requests=st.sampled_from([*[5] * 4, *range(6)]),
    )
    def begin(self, number, requests):
        """Begin a job, but not all of it: a candidate must meet others."""
        process = self.some(number, is_running=False)
        if process is not None:
            body = str(next(self.numbers)).encode()
            process.begin(functools.partial(self.create, body))
            self.step(process, requests)

    @stateful.rule(
        number=st.integers(0, 2),
        requests=st.sampled_from([1, 2, 4, 40, 40]),
        fault=st.sampled_from(_FAULTS),
    )
    def go(self, number, requests, fault):
        """Serve requests of a job, the last one with a fault."""
        process = self.some(number, is_running=True)
        if process is not None:
            self.step(process, requests - 1)
        if process is not None and process.is_running:
            self.has_failed |= fault != 'none'
            process.step(fault)

    @stateful.rule(number=st.integers(0, 2))
    def die(self, number):
        process = self.some(number, is_running=True)
        while process is not None and process.is_running:
            self.has_failed = True
            process.step('killed')

    @stateful.precondition(lambda self: self.late)
    @stateful.rule()
    def arrive(self):
        self.was_late = True
        _, serve = self.late.pop(0)
        serve()

    @stateful.rule()
    def lag(self):
        """Let listings not show announcements."""
        self.cluster.lagging.update(
            ('box', name)
            for name in self.objects
            if name.startswith(exclusive.FOLDER)
        )

    @stateful.rule()
    def show(self):
        self.cluster.lagging.clear()

    @stateful.precondition(
        lambda self: not any(p.is_running for p in self.processes)
    )
    @stateful.rule()
    def wait(self):
        while self.late and self.late[0][0] + _LATE < self.now + 1:
            self.arrive()
        self.now += 1

    @stateful.invariant()
    def one_wins(self):
        assert len(self.winners) <= 1 or self.is_blind

    def teardown(self):
        self.cluster.lagging.clear()
        while self.late:
            self.arrive()
        while running := [p for p in self.processes if p.is_running]:
            self.now += 0.05
            for process in running:
                process.step()
        self.one_wins()
        self.now += 300
        if not self.winners and 'a' not in self.objects:
            self.create(b'last')
            assert self.winners
        assert 'a' in self.objects
        if self.winners and not (self.is_blind or self.was_late):
            assert self.objects['a'] == self.winners[0]
        if not self.has_failed:
            assert set(self.objects) == {'a'}


def test_no_promise_is_broken():
    length = settings(
        max_examples=examples.number(300),
        stateful_step_count=8,
        deadline=None,
        derandomize=True,
    )
    stateful.run_state_machine_as_test(Exclusive, settings=length)
