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
        self.single, self.updated, self.asked = set(names), [], 0
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
        assert self.waited < 1000, 'it waits forever'

    def states(self, line):
        code, found = self.json(f'group nest {line}')
        return code, {one['stack']: one['state'] for one in found}

    def test_a_dry_run_names_the_groups_and_changes_nothing(self):
        _, (one, _) = self.json('group nest --dry-run')
        shown = one['stack'], one['groups'], one['state']
        assert shown == ('shop', 'fleet', 'single')
        assert self.fake.updated == []

    def test_each_stack_is_updated_and_waited_for(self):
        nested = {'shop': 'nested', 'mail': 'nested'}
        assert self.states('--yes') == (0, nested)
        assert self.fake.updated == [('shop', DEFAULTS), ('mail', DEFAULTS)]
        # There is nothing left to do.
        assert self.states('--yes') == (0, {})
        self.fake = FakeHeat('shop', 'mail')
        assert self.states('--yes --stack mail') == (0, {'mail': 'nested'})
        self.refused('group nest --yes --stack nosuch')
        # Without a terminal it must be told.
        assert '--yes' in self.refused('group nest')
        assert self.fake.updated == [('mail', DEFAULTS)]

    def test_a_stack_that_is_not_complete_is_left_out_with_the_remedy(self):
        for status, remedy in (
            ('UPDATE_IN_PROGRESS', 'wait until that has ended'),
            ('SUSPEND_COMPLETE', 'resume it'),
            ('CHECK_FAILED', 'update it'),
        ):
            self.fake = FakeHeat('shop', status=status)
            _, (found,) = self.json('group nest --dry-run')
            assert found['state'] == 'blocked'
            assert f'{status}: {remedy}' in found['reason']
            code, (found,) = self.json('group nest --yes')
            assert (code, found['state']) == (common.FAILED, 'failed')
            assert self.fake.updated == []

    def test_the_end_of_an_update_is_waited_for(self):
        for outcome, is_seen, delay, outage, reason in (
            ('UPDATE_COMPLETE', True, 20, 0, ''),
            ('UPDATE_COMPLETE', True, 1, 5, ''),
            ('UPDATE_COMPLETE', True, 1, 500, '503'),
            ('UPDATE_FAILED', True, 1, 0, 'UPDATE_FAILED'),
            ('ROLLBACK_COMPLETE', True, 1, 0, 'no nested stack: fleet'),
            # No poll meets it in progress.
            ('ROLLBACK_COMPLETE', False, 1, 0, 'ROLLBACK_COMPLETE'),
        ):
            self.fake, self.waited = FakeHeat('shop'), 0.0
            self.fake.outcome, self.fake.is_seen = outcome, is_seen
            self.fake.errors = [errors.Unavailable('503')] * outage
            self.fake.delay = delay
            code, (shown,) = self.json('group nest --yes')
            assert code == (common.FAILED if reason else 0)
            assert shown['state'] == ('failed' if reason else 'nested')
            assert reason in (shown['reason'] or '')
            assert outage or self.waited < 70

    def test_members_that_would_run_again_keep_it_from_that(self):
        self.fake.members['shop'] = 'FAILED'
        _, found = self.json('group nest --dry-run')
        assert [each['state'] for each in found] == ['blocked', 'single']
        assert 'Members fleet.s3 have not' in found[0]['reason']
        code, states = self.states('--yes')
        assert code == common.FAILED
        assert states == {'shop': 'failed', 'mail': 'nested'}
        assert self.fake.updated == [('mail', DEFAULTS)]

    def test_interrupted_it_says_what_continues(self):
        def interrupt(seconds):
            raise KeyboardInterrupt

        self.clock.sleep = interrupt
        code, states = self.states('--yes')
        assert code == common.INTERRUPTED
        assert states == {'shop': 'single', 'mail': 'single'}
        assert self.fake.updated == [('shop', DEFAULTS)]
        said = 'heat-engine continues the update of stack shop'
        assert said in self.stderr.getvalue()
