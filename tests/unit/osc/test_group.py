# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment group nest``."""

import dataclasses
import types

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.osc import common
from heat_plugins.osc.runs import group_commands
from heat_plugins.signals import signal_names
from tests.unit.osc import base

DEFAULTS = {'parameter_defaults': {'heat_plugins_group_members': 'nested'}}


class FakeHeat:
    """Stacks, each of a group and of one more; see `group_commands`."""

    def __init__(self, *names, status='CREATE_COMPLETE'):
        self.stacks = {
            name: heat_values.Stack(
                id=name, name=name, status=status, parent=None
            )
            for name in names
        }
        self.single = set(names)
        self.updated, self.asked = [], 0
        # Errors of the next questions after an update has begun.
        self.errors = []
        # By stack, the status of a member that max_failures tolerates.
        self.members = {}
        # How an update ends, and after how many questions it begins.
        self.outcome, self.delay = 'UPDATE_COMPLETE', 1
        # Whether a question meets it in progress.
        self.is_seen = True

    def stack_ids(self, tag=None):
        return [*self.stacks, 'just-gone']

    def stack(self, name):
        if name not in self.stacks:
            raise errors.NotFound(name)
        if (name, DEFAULTS) in self.updated and name in self.single:
            self._continue(name)
        return self.stacks[name]

    def _continue(self, name):
        """Let time pass: complete for a moment, in progress, the outcome."""
        if self.errors:
            raise self.errors.pop(0)
        self.asked += 1
        if self.asked == self.delay + 1 and self.is_seen:
            self._set(name, 'UPDATE_IN_PROGRESS')
        elif self.asked > self.delay:
            if self.outcome == 'UPDATE_COMPLETE':
                self.single.discard(name)
            self._set(name, self.outcome)

    def _set(self, name, status):
        self.stacks[name] = dataclasses.replace(
            self.stacks[name], status=status
        )

    def resources(self, stack):
        is_single = stack.name in self.single
        group_id = (
            signal_names.new_group_id() if is_single else f'{stack.name}-fleet'
        )
        return [
            heat_values.Resource(
                name=name,
                type='OS::Heat::SoftwareDeploymentGroup',
                physical_id=physical_id,
                status='CREATE_COMPLETE',
                stack_id=stack.id,
            )
            for name, physical_id in (('fleet', group_id), ('other', 'id'))
        ]

    def attribute(self, resource, name):
        return {
            'web': {},
            's3': {
                'deployment': 'id-of-s3',
                'server': 'server',
                'action': 'CREATE',
                'status': self.members.get(resource.stack_id, 'COMPLETE'),
                'delivered_at': '2026-01-01T00:00:00+00:00',
            },
        }

    def update_environment(self, stack, environment):
        self.asked = 0
        self.updated.append((stack.name, dict(environment)))


class NestTest(base.CommandCase):
    def setUp(self):
        super().setUp()
        self.fake = FakeHeat('shop', 'mail')
        self.patch(common, 'orchestration', lambda manager: self.fake)
        self.waited = 0.0
        self.clock = types.SimpleNamespace(
            monotonic=lambda: self.waited, sleep=self.pass_time
        )
        self.patch(group_commands, 'time', self.clock)

    def pass_time(self, seconds):
        self.waited += seconds
        self.assertLess(self.waited, 1000, 'it waits forever')

    def states(self, line):
        code, found = self.json(f'group nest {line}')
        return code, {one['stack']: one['state'] for one in found}

    def test_a_dry_run_names_the_groups_and_changes_nothing(self):
        _, (one, _) = self.json('group nest --dry-run')
        self.assertEqual(
            {'stack': 'shop', 'groups': 'fleet', 'state': 'single'},
            {name: one[name] for name in ('stack', 'groups', 'state')},
        )
        self.assertEqual([], self.fake.updated)

    def test_each_stack_is_updated_and_waited_for(self):
        self.assertEqual(
            (0, {'shop': 'nested', 'mail': 'nested'}), self.states('--yes')
        )
        self.assertEqual(
            [('shop', DEFAULTS), ('mail', DEFAULTS)], self.fake.updated
        )
        # There is nothing left to do.
        self.assertEqual((0, {}), self.states('--yes'))

    def test_it_can_be_told_of_some(self):
        self.assertEqual(
            (0, {'mail': 'nested'}), self.states('--yes --stack mail')
        )
        self.refused('group nest --yes --stack nosuch')

    def test_without_a_terminal_it_asks_for_yes(self):
        self.assertIn('--yes', self.refused('group nest'))
        self.assertEqual([], self.fake.updated)

    def test_a_stack_that_is_not_complete_is_left_out(self):
        self.fake = FakeHeat('shop', status='UPDATE_FAILED')
        _, found = self.json('group nest --dry-run')
        self.assertEqual('blocked', found[0]['state'])
        code, found = self.json('group nest --yes')
        self.assertEqual((common.FAILED, 'failed'), (code, found[0]['state']))
        self.assertIn('UPDATE_FAILED', found[0]['reason'])
        self.assertEqual([], self.fake.updated)

    def test_an_update_that_fails_is_told_and_the_others_go_on(self):
        self.fake.outcome = 'UPDATE_FAILED'
        code, states = self.states('--yes')
        self.assertEqual(common.FAILED, code)
        self.assertEqual({'shop': 'failed', 'mail': 'failed'}, states)

    def test_an_update_that_is_rolled_back_ends_the_waiting(self):
        self.fake = FakeHeat('shop')
        self.fake.outcome = 'ROLLBACK_COMPLETE'
        code, (found,) = self.json('group nest --yes')
        self.assertEqual((common.FAILED, 'failed'), (code, found['state']))
        self.assertIn('ROLLBACK_COMPLETE', found['reason'])
        self.assertIn('no nested stack: fleet', found['reason'])
        self.assertLess(self.waited, 60)

    def test_it_ends_though_no_question_meets_it_in_progress(self):
        self.fake = FakeHeat('shop')
        self.fake.outcome, self.fake.is_seen = 'ROLLBACK_COMPLETE', False
        code, _ = self.json('group nest --yes')
        self.assertEqual(common.FAILED, code)
        self.assertLess(self.waited, 70)

    def test_an_update_that_begins_late_is_waited_for(self):
        self.fake = FakeHeat('shop')
        self.fake.delay = 20
        self.assertEqual((0, {'shop': 'nested'}), self.states('--yes'))

    def test_a_short_outage_of_heat_is_no_failure(self):
        self.fake = FakeHeat('shop')
        self.fake.errors = [errors.Unavailable('503')] * 5
        self.assertEqual((0, {'shop': 'nested'}), self.states('--yes'))

    def test_a_long_one_is(self):
        self.fake = FakeHeat('shop')
        self.fake.errors = [errors.Unavailable('503')] * 500
        code, (found,) = self.json('group nest --yes')
        self.assertEqual((common.FAILED, 'failed'), (code, found['state']))
        self.assertIn('503', found['reason'])

    def test_members_that_would_run_again_keep_it_from_that(self):
        self.fake.members['shop'] = 'FAILED'
        _, found = self.json('group nest --dry-run')
        self.assertEqual(
            ['blocked', 'single'], [each['state'] for each in found]
        )
        self.assertIn('Members fleet.s3 have not', found[0]['reason'])
        code, states = self.states('--yes')
        self.assertEqual(common.FAILED, code)
        self.assertEqual({'shop': 'failed', 'mail': 'nested'}, states)
        self.assertEqual([('mail', DEFAULTS)], self.fake.updated)

    def test_the_remedy_is_that_of_the_status(self):
        for status, remedy in (
            ('UPDATE_IN_PROGRESS', 'wait until that has ended'),
            ('SUSPEND_COMPLETE', 'resume it'),
            ('CHECK_FAILED', 'update it'),
        ):
            self.fake = FakeHeat('shop', status=status)
            _, (found,) = self.json('group nest --dry-run')
            self.assertIn(f'{status}: {remedy}', found['reason'])

    def test_interrupted_it_says_what_continues(self):
        def interrupt(seconds):
            raise KeyboardInterrupt

        self.clock.sleep = interrupt
        code, states = self.states('--yes')
        self.assertEqual(common.INTERRUPTED, code)
        self.assertEqual({'shop': 'single', 'mail': 'single'}, states)
        self.assertEqual([('shop', DEFAULTS)], self.fake.updated)
        self.assertIn(
            'heat-engine continues the update of stack shop',
            self.stderr.getvalue(),
        )
