# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment group nest``."""

import dataclasses
import types
from unittest import mock

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.osc import common
from heat_plugins.osc.runs import group_commands
from heat_plugins.signals import signal_names
from tests.unit.osc import base

DEFAULTS = {'parameter_defaults': {'heat_plugins_group_members': 'nested'}}


WORKS = ['CREATE_COMPLETE', 'UPDATE_IN_PROGRESS', 'UPDATE_COMPLETE']


class FakeHeat:
    """Stacks, each of a group and of one more; see `group_commands`.

    :ivar failed: the stacks with a failure that max_failures tolerates.
    :ivar story: the statuses that are met after an update, and errors.
    """

    def __init__(self, *names, status='CREATE_COMPLETE', story=WORKS):
        self.stacks = {
            name: heat_values.Stack(
                id=name, name=name, status=status, parent=None
            )
            for name in names
        }
        self.single, self.failed, self.updated = set(names), set(), []
        self.story, self.left = story, {}

    def stack_ids(self, tag=None):
        return [*self.stacks, 'just-gone']

    def stack(self, name):
        if name not in self.stacks:
            raise errors.NotFound(name)
        if left := self.left.get(name):
            met = left.pop(0)
            if isinstance(met, Exception):
                raise met
            if met == 'UPDATE_COMPLETE':
                self.single.discard(name)
            self.stacks[name] = dataclasses.replace(
                self.stacks[name], status=met
            )
        return self.stacks[name]

    def resources(self, stack):
        is_single = stack.name in self.single
        group_id = signal_names.new_group_id() if is_single else 'nested'
        more = {'status': 'CREATE_COMPLETE', 'stack_id': stack.id}
        more['type'] = 'OS::Heat::SoftwareDeploymentGroup'
        return [
            heat_values.Resource(name=name, physical_id=physical_id, **more)
            for name, physical_id in (('fleet', group_id), ('other', 'id'))
        ]

    def attribute(self, resource, name):
        has_failed = resource.stack_id in self.failed
        status = 'FAILED' if has_failed else 'COMPLETE'
        given = {'deployment': 'id', 'server': 's', 'action': 'CREATE'}
        given['delivered_at'] = '2026-01-01T00:00:00+00:00'
        return {'web': {}, 's3': {**given, 'status': status}}

    def update_environment(self, stack, environment):
        self.left[stack.name] = [*self.story]
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
        away, (before, during, _) = [errors.Unavailable('503')], WORKS
        for story, reason in (
            ([before] * 19 + WORKS, ''),
            (away * 5 + WORKS, ''),
            (away * 500 + WORKS, '503'),
            ([before, during, 'UPDATE_FAILED'], 'UPDATE_FAILED'),
            ([before, during, 'ROLLBACK_COMPLETE'], 'no nested stack: fleet'),
            # No poll meets it in progress.
            ([before, 'ROLLBACK_COMPLETE'], 'ROLLBACK_COMPLETE'),
        ):
            self.fake, self.waited = FakeHeat('shop', story=story), 0.0
            code, (shown,) = self.json('group nest --yes')
            assert code == (common.FAILED if reason else 0)
            assert shown['state'] == ('failed' if reason else 'nested')
            assert reason in (shown['reason'] or '')
            assert away[0] in story or self.waited < 70

    def test_members_that_would_run_again_keep_it_from_that(self):
        self.fake.failed.add('shop')
        _, found = self.json('group nest --dry-run')
        assert [each['state'] for each in found] == ['blocked', 'single']
        assert 'Members fleet.s3 have not' in found[0]['reason']
        code, states = self.states('--yes')
        assert code == common.FAILED
        assert states == {'shop': 'failed', 'mail': 'nested'}
        assert self.fake.updated == [('mail', DEFAULTS)]

    def test_interrupted_it_says_what_continues(self):
        self.clock.sleep = mock.Mock(side_effect=KeyboardInterrupt)
        code, states = self.states('--yes')
        assert code == common.INTERRUPTED
        assert states == {'shop': 'single', 'mail': 'single'}
        assert self.fake.updated == [('shop', DEFAULTS)]
        said = 'heat-engine continues the update of stack shop'
        assert said in self.stderr.getvalue()
