# SPDX-License-Identifier: Apache-2.0
"""A stack may have any number of events in the life of an engine."""

import threading
import types

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


class Ours(eventful.Eventful, Resource):
    pass


class EventfulTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
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
