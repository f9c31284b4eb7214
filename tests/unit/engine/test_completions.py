# SPDX-License-Identifier: Apache-2.0
"""Complete deployments of a stack go into Heat's core one after another."""

import functools
import threading
import types
from unittest import mock

from heat.engine import sync_point
import tenacity
import testtools

from heat_plugins.engine import patches
from tests.unit import threads

DEPLOYMENT = 'OS::Heat::SoftwareDeployment'


class TurnsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.inside = []
        self.go_on = threading.Event()
        self.addCleanup(self.go_on.set)
        self.propagate = patches.in_turn(self.core)

    def core(self, checker, context, resource_id, *args, **kwargs):
        """Stand for Heat's core, where each stays until told otherwise."""
        self.inside.append(resource_id)
        self.go_on.wait(30)
        self.inside.remove(resource_id)
        return args, kwargs

    def begin(self, number, kind=DEPLOYMENT, stack='s1'):
        thread = threading.Thread(
            target=self.propagate,
            args=(
                None,
                None,
                number,
                'traversal',
                True,
                types.SimpleNamespace(type=lambda: kind),
                types.SimpleNamespace(id=stack),
            ),
            kwargs={'is_skip': False},
            daemon=True,
        )
        thread.start()
        return thread

    def come_in(self, count):
        """Wait until so many are inside."""
        for _ in range(3000):
            if len(self.inside) == count:
                return
            self.go_on.wait(0.01)
        self.fail(f'{len(self.inside)} came in, and not {count}')

    def end(self, *begun):
        self.go_on.set()
        for thread in begun:
            thread.join(30)
            self.assertFalse(thread.is_alive())

    def test_other_stacks_and_heats_own_resources_take_no_turns(self):
        with mock.patch.object(patches, '_TURN_SECONDS', 60):
            begun = [
                self.begin(1, stack='s1'),
                self.begin(2, stack='s2'),
                self.begin(3, kind='OS::Heat::Value', stack='s1'),
            ]
            self.come_in(3)
            self.end(*begun)


class Row:
    """A sync point in the database, where only the newest may be changed."""

    def __init__(self):
        self.input_data, self.extra_data = {}, None
        self.atomic_key = 0
        self.conflicts = 0
        self._lock = threading.Lock()
        self._pause = threading.Event()

    def read(self, *args):
        with self._lock:
            found = types.SimpleNamespace(
                input_data=self.input_data,
                extra_data=self.extra_data,
                atomic_key=self.atomic_key,
            )
        # A database takes its time.
        self._pause.wait(0.002)
        return found

    def change(
        self, context, key, traversal, is_update, version, data, extra=None
    ):
        with self._lock:
            if version != self.atomic_key:
                self.conflicts += 1
                return 0
            self.atomic_key += 1
            self.input_data, self.extra_data = data, extra
            return 1


class ConflictsTest(testtools.TestCase):
    """Heat's own code, with many that complete together."""

    def setUp(self):
        super().setUp()
        self.row = Row()
        self.patch(sync_point, 'get', self.row.read)
        self.patch(sync_point, 'update_input_data', self.row.change)
        # Else it would pause for up to a minute.
        self.patch(tenacity.nap.time, 'sleep', lambda seconds: None)

    def complete(self, number, wrapper):
        """Let so many complete; return how often Heat found them all."""
        together = threading.Barrier(number)
        ready = []

        def propagate(checker, context, resource_id, *args):
            sync_point.sync(
                context,
                'stack',
                'traversal',
                True,
                lambda *found: ready.append(found),
                {(each, True) for each in range(number)},
                {(resource_id, True): None},
            )

        wrapped = wrapper(propagate)
        deployment = types.SimpleNamespace(type=lambda: DEPLOYMENT)
        stack = types.SimpleNamespace(id='s1')

        def go(each):
            together.wait(30)
            wrapped(None, None, each, 'traversal', True, deployment, stack)

        threads.run(*(functools.partial(go, each) for each in range(number)))
        return len(ready)

    def test_those_that_take_turns_do_not(self):
        self.assertEqual(1, self.complete(50, patches.in_turn))
        self.assertEqual(50, self.row.atomic_key)
        self.assertEqual(0, self.row.conflicts)


class LiteralsTest(testtools.TestCase):
    def test_each_is_evaluated_once(self):
        evaluated = []

        def evaluate(text):
            evaluated.append(text)
            return (text,)

        remembered = patches.remembering(evaluate)
        for _ in range(3):
            for text in 'ab':
                self.assertEqual((text,), remembered(text))
        self.assertEqual(['a', 'b'], evaluated)

    def test_what_cannot_be_evaluated_fails_each_time(self):
        remembered = patches.remembering(sync_point._str_unpack_tuple)
        for _ in range(2):
            self.assertRaises(ValueError, remembered, 'tuple:(x)')

    def test_one_is_evaluated_at_a_time(self):
        inside, most = [], []
        barrier = threading.Barrier(5)

        def evaluate(text):
            inside.append(text)
            most.append(len(inside))
            inside.remove(text)
            return ()

        remembered = patches.remembering(evaluate)

        def ask(number):
            barrier.wait(30)
            for each in range(200):
                remembered(f'{number}.{each}')

        threads.run(*(functools.partial(ask, number) for number in range(5)))
        self.assertEqual(1000, len(most))
        self.assertEqual(1, max(most))
