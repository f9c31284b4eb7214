# SPDX-License-Identifier: Apache-2.0
"""Whether what a stack does has been cancelled."""

from heat.objects import stack as stack_objects
from oslo_db import exception as db_exception

from heat_plugins.engine import hubs
from heat_plugins.engine.database import resources
from tests.unit.resources import deployments

EMPTY = {'heat_template_version': '2021-04-16'}


class Case(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        self.root = self.acting('root')
        self.cancellation = hubs.Cancellation(self.root.id)
        self.begun = self.now
        self.stack = self.acting()
        self.now += 1

    def acting(self, name='stack'):
        stack = self.heat.stack(EMPTY, name)
        stack.current_traversal = f'{name}-1'
        self.becomes(stack, traversal=f'{name}-1')
        return stack

    def becomes(self, stack, traversal, action='UPDATE', status='IN_PROGRESS'):
        row = stack_objects.Stack.get_by_id(self.heat.context, stack.id)
        row.update_and_save(
            {
                'current_traversal': traversal,
                'action': action,
                'status': status,
            }
        )

    def is_cancelled(self, stack=None):
        # A stack without resources is false.
        stack = self.stack if stack is None else stack
        return self.cancellation.of(stack, self.begun)


class MeaningTest(Case):
    def test_it_depends_on_what_the_stack_and_its_root_stack_do(self):
        rollback = ('ROLLBACK', 'IN_PROGRESS')
        for becomes, root, is_cancelled in (
            # It goes on, with or without its root stack.
            (None, None, False),
            (None, ('other', *rollback), False),
            # It was stopped, rolled back, or updated again.
            (('other', 'UPDATE', 'FAILED'), None, True),
            (('other', *rollback), None, True),
            (('other',), None, False),
            # Its root stack is rolled back, or was so before.
            (('other',), ('other', *rollback), True),
            (('other',), ('other', 'ROLLBACK', 'COMPLETE'), False),
            # Something else in it has failed.
            (('', 'UPDATE', 'FAILED'), None, False),
        ):
            with self.subTest(becomes=becomes, root=root):
                self.becomes(self.stack, *(becomes or ['stack-1']))
                self.becomes(self.root, *(root or ['root-1']))
                self.now += 3
                assert self.is_cancelled() is is_cancelled

    def test_what_was_seen_before_an_action_says_nothing_about_it(self):
        self.becomes(self.stack, 'other', status='FAILED')
        assert self.is_cancelled()
        self.begun = self.now
        assert not self.is_cancelled()


class CostTest(Case):
    def ask(self, stacks, seconds):
        """Let all stacks ask every second; return what was queried."""
        with self.counting_queries() as statements:
            for _ in range(seconds):
                for stack in stacks:
                    self.is_cancelled(stack)
                self.now += 1
        return statements

    def test_all_that_wait_share_one_query(self):
        stacks = [self.acting(f'nested{number}') for number in range(20)]
        assert len(self.ask(stacks, 30)) == 10
        self.becomes(stacks[7], 'other', status='FAILED')
        self.ask(stacks, 3)
        assert [s for s in stacks if self.is_cancelled(s)] == [stacks[7]]

    def test_one_that_waits_no_more_is_not_asked_for(self):
        wanted = []
        real = resources.traversals
        self.patch(
            resources,
            'traversals',
            lambda context, ids: wanted.append(set(ids)) or real(context, ids),
        )
        other = self.acting('other')
        self.ask([self.stack, other], 5)
        assert wanted[-1] == {self.root.id, self.stack.id, other.id}
        self.ask([self.stack], 90)
        assert wanted[-1] == {self.root.id, self.stack.id}

    def test_an_error_of_the_database_says_nothing_and_passes(self):
        self.becomes(self.stack, 'other', status='FAILED')
        real = resources.traversals

        def fail(context, ids):
            raise db_exception.DBConnectionError

        self.patch(resources, 'traversals', fail)
        assert not self.is_cancelled()
        self.patch(resources, 'traversals', real)
        self.now += 3
        assert self.is_cancelled()
