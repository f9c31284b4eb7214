# SPDX-License-Identifier: Apache-2.0
"""A stack may have any number of events in the life of an engine."""

import contextlib
import math
import threading
import types

from heat.common import exception
import testtools

from heat_plugins.resources import eventful


class Group:
    """Heat's ``ThreadGroup``, as far as it keeps what has ended."""

    def __init__(self, most=1000):
        self.threads = []
        self._lock = threading.Lock()
        self._most = most

    def add_thread(self, target):
        if len(self.threads) >= self._most:
            raise RuntimeError('Maximum number of threads reached')
        with self._lock:
            thread = threading.Thread(target=target)
            thread.start()
            self.threads.append(thread)
        return thread


class Resource:
    """What Heat's own does about an event: a thread of the stack's group."""

    def __init__(self, stack, group):
        self.stack = stack
        self.group = group

    def _add_event(self, action, status, reason):
        self.group.add_thread(lambda: None).join()


class Told:
    """What Heat's own does with reasons."""

    def __init__(self):
        self.stack = types.SimpleNamespace(id='1', thread_group_mgr=None)
        self.told = []

    def _add_event(self, action, status, reason):
        self.told.append(reason)

    def state_set(self, action, status, reason='state changed', lock=0):
        self.told.append(reason)

    @contextlib.contextmanager
    def _action_recorder(self, action):
        try:
            yield
        except Exception as exc:
            self.told.append(str(exc))
            raise


class OursTold(eventful.Eventful, Told):
    pass


class Ours(eventful.Eventful, Resource):
    pass


class EventfulTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.patch(eventful, '_next_search', math.inf)
        self.group = Group(most=150)
        self.manager = types.SimpleNamespace(groups={'1': self.group})
        self.stack = types.SimpleNamespace(
            id='1', thread_group_mgr=self.manager
        )

    def add_events(self, kind, count):
        found = kind(self.stack, self.group)
        for _number in range(count):
            found._add_event('UPDATE', 'COMPLETE', '')

    def test_events_go_on_where_heats_own_cannot(self):
        self.assertRaises(RuntimeError, self.add_events, Resource, 200)
        self.add_events(Ours, 200)

    def test_what_has_not_ended_is_kept(self):
        go_on = threading.Event()
        self.addCleanup(go_on.set)
        running = self.group.add_thread(go_on.wait)
        self.add_events(Ours, 120)
        self.assertIn(running, self.group.threads)
        self.assertLess(len(self.group.threads), 120)

    def test_at_times_threads_of_deleted_stacks_are_forgotten(self):
        self.patch(eventful, '_next_search', 0.0)
        gone = self.manager.groups['2'] = Group()
        for _more in range(2):
            for _number in range(3):
                gone.add_thread(lambda: None).join()
            self.add_events(Ours, 1)
        self.assertEqual(3, len(gone.threads))
        self.assertEqual(['1', '2'], list(self.manager.groups))

    def test_threads_of_another_kind_are_left_to_heat(self):
        """Those of eventlet, in a group that may have no lock."""
        others = [object() for _number in range(120)]
        self.manager.groups['1'] = types.SimpleNamespace(threads=others)
        eventful.forget_ended_threads(self.stack)
        self.assertEqual(120, len(others))

    def test_a_stack_without_threads_is_none_of_its_business(self):
        del self.manager.groups['1']
        eventful.forget_ended_threads(self.stack)
        self.stack.thread_group_mgr = None
        eventful.forget_ended_threads(self.stack)


class ReasonTest(testtools.TestCase):
    """Reasons of events, states and failures, as servers have sent them."""

    BAD = 'a\nINFO b\x1b[2J\u202e\U0001f44d ?temp_url_sig=abc&x'
    SAFE = r'a\nINFO b\x1b[2J\u202e\U0001f44d ?temp_url_sig=***&x'

    def test_events_and_states_say_what_is_safe_to_show(self):
        found = OursTold()
        found._add_event('UPDATE', 'FAILED', self.BAD)
        found.state_set('UPDATE', 'FAILED', self.BAD)
        found.state_set('UPDATE', 'FAILED', self.BAD, 1)
        found.state_set('UPDATE', 'COMPLETE')
        self.assertEqual([*[self.SAFE] * 3, 'state changed'], found.told)

    def test_a_failure_that_heat_logs_is_safe_and_keeps_its_type(self):
        for kind in (exception.Error, ValueError, exception.NotFound):
            found = OursTold()
            with (
                self.assertRaises(kind) as raised,
                found._action_recorder('UPDATE'),
            ):
                raise kind(self.BAD)
            self.assertEqual([self.SAFE], found.told)
            self.assertEqual(self.SAFE, str(raised.exception))
