# SPDX-License-Identifier: Apache-2.0
"""An engine dies before each of its writes; servers run each action once.

What it wrote in one transaction is there or is not. `make kills` shows the
same of a real engine, at fewer steps.
"""

import collections
import itertools
import sys
from unittest import mock
import uuid

from oslo_db.sqlalchemy import enginefacade

from heat_plugins.engine import hubs
from tests.unit import examples
from tests.unit.resources import deployments

ACTIONS = ('CREATE', 'UPDATE', 'DELETE')


class Died(BaseException):
    """The engine dies just here."""


def _is_ours():
    """Say whether what is being executed is on behalf of our classes."""
    frame = sys._getframe(1)
    while frame is not None:
        if '/heat_plugins/' in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


class KilledCase(deployments.DeploymentTestCase):
    """A deployment; `test_rollout` has each step of a group."""

    def whole(self, actions=ACTIONS, **changed):
        return deployments.template(actions=actions, **changed)

    def dies_at(self, number, begin, *args):
        """Let an engine die before a write; say whether it came to that."""
        numbers = itertools.count(1)
        manager = enginefacade._TransactionContextManager
        real = manager._transaction_scope
        is_dead = False

        def scope(manager, context):
            nonlocal is_dead
            if manager._mode is enginefacade._WRITER and _is_ours():
                # One that is dead writes nothing as it tidies up.
                is_dead = is_dead or next(numbers) == number
                if is_dead:
                    raise Died
            return real(manager, context)

        with mock.patch.object(manager, '_transaction_scope', scope):
            try:
                self.finish(begin(*args))
            except Died:
                hubs.HUBS.clear()
        return is_dead

    def rescue(self, stack, action):
        """Be the engine that notices it."""
        again = self.heat.load(stack)
        if 'deployment' in again:
            again['deployment'].state_set(action, 'FAILED', 'It has died')
        again.state_set('UPDATE', 'FAILED', 'It has died')
        again.persist_state_and_release_lock(uuid.uuid4().hex)

    def before(self, number, whole):
        """Return a new stack, before the action in which the engine dies."""
        self.handed.clear()
        return self.created(whole, name=f'stack{number}')

    def ran(self):
        """Return how often the server has run each action."""
        each = map(deployments.inputs, self.handed)
        return dict(collections.Counter(one['deploy_action'] for one in each))

    def assert_ran(self, *actions):
        """Hold that the server has run just these actions, once each."""
        assert self.ran() == dict.fromkeys(actions, 1)

    def update_dies(self, former, whole, action, *, first=1, step=1):
        """Let an engine die at each write of an update; yield the stacks.

        :param action: of the deployment.
        """
        for number in itertools.count(first, step * examples.STEP):
            stack = self.before(number, former)
            again = self.heat.load(stack)
            is_dead = self.dies_at(
                number, self.heat.begin, again, 'UPDATE', whole
            )
            if is_dead:
                self.rescue(stack, action)
            yield stack
            self.assert_nothing_left()
            if not is_dead:
                break
        assert number > 6

    def without(self, whole):
        """Return a template without the deployment."""
        parts = dict(whole['resources'])
        del parts['deployment']
        return {**whole, 'resources': parts}


class KilledTest(KilledCase):
    def test_create(self):
        whole = self.whole(actions=['CREATE'])
        without = self.without(whole)
        for stack in self.update_dies(without, whole, 'CREATE', step=2):
            self.update(stack, whole)
            assert self.heat.load(stack).status == 'COMPLETE'
            self.delete(stack)
            self.assert_ran('CREATE')

    def test_delete_undoes_what_may_have_been_delivered_alone(self):
        whole = self.whole()
        for stack in self.update_dies(
            self.without(whole), whole, 'CREATE', first=2, step=2
        ):
            expected = {'DELETE': 1} if self.deployment_rows() else {}
            self.delete(stack)
            ran = self.ran()
            ran.pop('CREATE', None)
            assert ran == expected

    def test_update(self):
        whole = self.whole(input_values={'who': 'moon'})
        for stack in self.update_dies(self.whole(), whole, 'UPDATE'):
            self.update(stack, whole)
            assert self.heat.load(stack).status == 'COMPLETE'
            self.delete(stack)
            self.assert_ran(*ACTIONS)

    def test_delete(self):
        for number in itertools.count(1, examples.STEP):
            stack = self.before(number, self.whole())
            dying = self.heat.load(stack)
            is_dead = self.dies_at(
                number, self.heat.start, dying['deployment'].delete
            )
            if is_dead:
                self.rescue(stack, 'DELETE')
            self.delete(stack)
            self.assert_ran('CREATE', 'DELETE')
            self.assert_nothing_left()
            if not is_dead:
                break
        assert number > 6
