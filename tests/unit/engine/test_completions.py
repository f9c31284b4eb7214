# SPDX-License-Identifier: Apache-2.0
"""Complete deployments of a stack go into Heat's core one after another."""

import threading
import types
from unittest import mock

from heat.engine import sync_point
import testtools

from heat_plugins.engine import patches

DEPLOYMENT = 'OS::Heat::SoftwareDeployment'


class TurnsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.inside, self.came = [], threading.Semaphore(0)
        self.go_on = threading.Event()
        self.addCleanup(self.go_on.set)
        self.propagate = patches.in_turn(self.core)

    def core(self, checker, context, resource_id, *args, **kwargs):
        self.inside.append(resource_id)
        self.came.release()
        self.go_on.wait(30)
        self.inside.remove(resource_id)
        return args, kwargs

    def begin(self, number, kind=DEPLOYMENT, stack='s1'):
        resource = types.SimpleNamespace(type=lambda: kind)
        where = resource, types.SimpleNamespace(id=stack)
        thread = threading.Thread(
            target=self.propagate,
            args=(None, None, number, 'traversal', True, *where),
            kwargs={'is_skip': False},
            daemon=True,
        )
        thread.start()
        return thread

    def test_deployments_of_one_stack_alone_take_turns(self):
        with mock.patch.object(patches, '_TURN_SECONDS', 60):
            begun = [
                self.begin(1, stack='s1'),
                self.begin(2, stack='s2'),
                self.begin(3, kind='OS::Heat::Value', stack='s1'),
            ]
            for _ in begun:
                assert self.came.acquire(timeout=30)
            # It waits for the first.
            begun.append(self.begin(4, stack='s1'))
            begun[-1].join(0.1)
            assert 4 not in self.inside
            self.go_on.set()
            for thread in begun:
                thread.join(30)
                assert not thread.is_alive()
        assert self.inside == []


class LiteralsTest(testtools.TestCase):
    def test_each_is_evaluated_once(self):
        evaluated = []

        def evaluate(text):
            evaluated.append(text)
            return (text,)

        remembered = patches.remembering(evaluate)
        for _ in range(3):
            for text in 'ab':
                assert remembered(text) == (text,)
        assert evaluated == ['a', 'b']
        # But what cannot be evaluated fails each time.
        remembered = patches.remembering(sync_point._str_unpack_tuple)
        for _ in range(2):
            self.assertRaises(ValueError, remembered, 'tuple:(x)')

    def test_one_is_evaluated_at_a_time(self):
        evaluated = []

        def evaluate(text):
            if text == 'a':
                other.start()
                other.join(0.1)
            evaluated.append(text)
            return ()

        remembered = patches.remembering(evaluate)
        other = threading.Thread(target=remembered, args='b', daemon=True)
        remembered('a')
        other.join(30)
        assert evaluated == ['a', 'b']
