# SPDX-License-Identifier: Apache-2.0
"""Plans become stacks, whole and recorded; these are compared and followed."""

import json

import pytest
import yaml

from heat_plugins import errors
from heat_plugins.plans import plan_operations
from heat_plugins.plans.deploy import comparing
from heat_plugins.plans.deploy import deploy_records
from heat_plugins.plans.deploy import deploying
from heat_plugins.plans.deploy import plan_stacks
from tests.unit.plans import fake_heat
from tests.unit.plans import fakes


class DeployingCase(fakes.PlanCase):
    def setUp(self):
        super().setUp()
        self.deployer = deploying.Deployer(self.plans)

    def finish(self, status='COMPLETE', **more):
        action = self.heat.stacks['plan'].action
        self.heat.become('plan', f'{action}_{status}', **more)


class StartTest(DeployingCase):
    def test_then_it_is_replaced_and_what_was_removed_is_gone(self):
        found = self.deployer.preview('plan')
        assert (found.action, found.added) == ('CREATE', ('node',))
        assert self.heat.stacks == {}
        self.deployer.start('plan')
        self.heat.happen('plan', 'node', 'CREATE_COMPLETE')
        self.finish()
        found = self.deployer.preview('plan')
        assert (found.action, found.deleted) == ('UPDATE', ('old',))
        assert self.heat.stacks['plan'].status == 'CREATE_COMPLETE'
        small, before = 'environments/small.yaml', self.heat.stacks['plan']
        for is_enabled in (True, False):
            self.plans.select('plan', {small: is_enabled})
            begun = self.deployer.start('plan')
            assert begun.after_event == 'event-0'
            assert (small in self.heat.contents['plan'][2]) is is_enabled
            if is_enabled:
                assert begun.before == before.changed_at
            self.finish()

    def test_a_stack_of_somebody_else_is_taken_over_only_on_request(self):
        self.heat.become('plan', 'UPDATE_IN_PROGRESS', tags=('theirs',))
        exc = self.assertRaises(errors.Refused, self.deployer.cancel, 'plan')
        assert 'openstack stack cancel --no-rollback plan' in str(exc)
        assert 'cancel' not in self.heat.asked
        self.heat.become('plan', 'CREATE_COMPLETE')
        exc = self.assertRaises(errors.Refused, self.deployer.start, 'plan')
        assert 'No plan created stack' in str(exc)
        assert 'replace' not in self.heat.asked
        begun = self.deployer.start('plan', take_over=True)
        assert begun.action == 'UPDATE'
        # No other content comes into one that goes on.
        self.plans.update('plan', {'new.yaml': b'{}'})
        refused = self.assertRaises(
            errors.Refused, self.deployer.start, 'plan'
        )
        assert 'UPDATE_IN_PROGRESS' in str(refused)
        self.finish()
        self.deployer.start('plan')

    def test_steps_that_cannot_be_run_are_refused_before_anything_is(self):
        plan = b'template: root.yaml\npost_deployment: [nothing]\n'
        given = fakes.content(**{'plan-environment.yaml': plan})
        self.assertRaises(errors.Invalid, self.plans.create, 'other', given)
        self.cloud.write_past_checks('plan-environment.yaml', plan)
        self.assertRaises(errors.Invalid, self.deployer.start, 'plan')
        assert 'create' not in self.heat.asked

    def test_a_password_that_heat_quotes_is_masked(self):
        password = self.plans.load('plan').environment.passwords['secret']

        def create(*_, **__):
            # No other user changes the plan now.
            assert 'plan-lock:plan' in self.cloud.registry.records
            raise errors.ServiceError(f'{password} is too short', 400)

        self.heat.create = create
        start = self.deployer.start
        exc = self.assertRaises(errors.ServiceError, start, 'plan')
        assert (str(exc), exc.status) == ('****** is too short', 400)
        # Nothing is recorded.
        assert '.heat-plugins/deployed' not in self.cloud.objects()

    def test_whether_the_plan_is_what_was_deployed(self):
        found = self.deployer.status('plan')
        assert (found.status, found.current) == (deploying.NOT_DEPLOYED, False)
        self.assertRaises(errors.NotFound, self.deployer.cancel, 'plan')
        self.deployer.start('plan')
        found = self.deployer.status('plan')
        assert (found.current, found.deployed_at[:4]) == (True, '2027')
        # The record is no part of the plan.
        assert self.plans.load('plan') == self.plan
        annex = self.plans.annex(self.plan)
        record = deploy_records.find_deployed(annex, found.deployed_hash)
        assert record.content == self.plans.resolve(self.plan)
        self.plans.update('plan', {'new.yaml': b'{}'})
        assert not self.deployer.status('plan').current
        # Only the last record is kept.
        self.finish()
        self.deployer.start('plan')
        former = deploy_records.find_deployed(annex, found.deployed_hash)
        assert former is None
        assert self.deployer.status('plan').current
        # An unreadable one is none.
        found = self.deployer.status('plan')
        for value in ([], 'x', {'content_hash': found.deployed_hash}):
            annex.write('deployed', value)
            assert self.deployer.status('plan').deployed_at == ''
        # A stack that was updated past the plan is not.
        self.heat.become('plan', 'UPDATE_COMPLETE', tags=())
        found = self.deployer.status('plan')
        assert (found.current, found.deployed_at) == (False, '')


class MaskTest(DeployingCase):
    """Reasons quote what a resource was given."""

    def setUp(self):
        super().setUp()
        self.plans.update(
            'plan', {'base.yaml': fakes.environment(who='you', secret='pw12')}
        )
        self.own = self.plans.load('plan').environment.passwords['secret']

    def failed(self, reason):
        begun = self.deployer.start('plan')
        self.finish('FAILED', reason=reason)
        return begun

    def test_what_was_a_secret_when_it_was_deployed_is_still_one(self):
        self.failed(f'node: {self.own} and pw12 are no names; you')
        said = 'node: ****** and ****** are no names; you'
        assert self.deployer.status('plan').reason == said
        self.plans.update('plan', {'base.yaml': fakes.environment(who='you')})
        assert self.deployer.status('plan').reason == said

    def test_as_long_as_all_goes_well_nothing_is_read_for_it(self):
        begun = self.deployer.start('plan')
        self.heat.become(
            'plan', 'CREATE_IN_PROGRESS', reason='Stack CREATE started'
        )
        asked = len(self.cloud.swift.asked())
        found = self.deployer.poll(begun.stack_id, '')
        assert found['reason'] == ''
        assert len(self.cloud.swift.asked()) == asked

    def test_without_its_plan_nothing_can_be_told(self):
        begun = self.failed('pw12 is too short')
        # An object store that is away may come back.
        self.cloud.swift.fail(times=99, status=503)
        with self.assertRaises(errors.Unavailable):
            self.deployer.poll(begun.stack_id, '')
        self.cloud.swift.heal()
        self.cloud.swift.container('plan').meta.clear()
        found = self.deployer.poll(begun.stack_id, '')
        assert 'pw12' not in found['reason']
        assert 'was deleted' in found['reason']

    def test_what_no_template_has_may_be_a_secret(self):
        self.change(parameter_defaults={'Forgotten': 'pw34', 'who': 'me-2'})
        self.failed('pw34 me-2')
        assert self.deployer.status('plan').reason == '****** me-2'


class ComparingTest(fakes.PlanCase):
    def deployed(self):
        """Let the stack hold what the plan is now; return it."""
        content = self.plans.resolve(self.plans.load('plan'))
        self.heat.become('plan', 'CREATE_COMPLETE')
        template = yaml.load(content.template, yaml.BaseLoader)
        template['parameters']['secret']['hidden'] = True
        environment = fake_heat.answer(content)['Environment']
        held = (template, environment, dict(content.files))
        self.heat.contents['plan'] = held
        return held

    def found(self):
        return {
            (one.kind, one.change, one.name): one.detail
            for one in comparing.differences(self.plans, 'plan')
        }

    def test_files_and_parameters_with_their_former_and_new_values(self):
        self.deployed()
        script = {'scripts/run.sh': b'#!/bin/sh\necho hello\n'}
        self.plans.update('plan', script)
        [(key, detail)] = self.found().items()
        assert key == ('file', 'changed', 'scripts/run.sh')
        assert '+echo hello' in detail
        self.plans.update('plan', {'base.yaml': fakes.environment(who='me')})
        found = self.found()
        assert found['parameter', 'changed', 'who'] == '"you" -> "me"'
        # Its file shows by its values alone.
        assert found['file', 'changed', 'base.yaml'] == ''
        self.plans.update('plan', {'base.yaml': b'{}'})
        assert self.found()['parameter', 'removed', 'who'] == '"you"'
        held = self.deployed()
        del held[2]['scripts/run.sh']
        # Its values are compared one by one.
        held[2]['plan-environment.yaml#passwords'] = '{}'
        assert self.found() == {('file', 'added', 'scripts/run.sh'): ''}

    def test_secrets_are_masked_wherever_else_they_stand(self):
        held = self.deployed()
        own = self.plans.load('plan').environment.passwords['secret']
        environment = fakes.environment(who=f'http://a:{own}@b')
        script = f'curl -u me:{own} b\n'.encode()
        files = {'base.yaml': environment, 'scripts/run.sh': script}
        self.plans.update('plan', files)
        defaults = held[1]['parameter_defaults']
        defaults.update(secret='the-former-one', who='the-former-one')
        # No template has it any more.
        defaults['forgotten'] = 'a-password'
        found = self.found()
        shown = '"******" -> "http://a:******@b"'
        assert found['parameter', 'changed', 'who'] == shown
        assert 'me:****** b' in found['file', 'changed', 'scripts/run.sh']
        for value in (own, 'a-password', 'the-former-one'):
            assert value not in str(found)

    def test_what_heat_masks_or_encrypts_is_not_compared(self):
        held = self.deployed()
        for value, encrypted in (
            ('******', []),
            (['cryptography', 'xyz'], ['secret']),
        ):
            held[1]['parameter_defaults']['secret'] = value
            held[1]['encrypted_param_names'] = encrypted
            assert self.found() == {}

    def test_a_stack_that_was_changed_past_the_plan(self):
        with self.assertRaises(errors.NotFound):
            self.found()
        held = self.deployed()
        held[1]['resource_registry']['A::B'] = 'gone.yaml'
        assert self.found()['registry', 'removed', 'A::B'] == '"gone.yaml"'
        held[0]['resources']['other'] = {'type': 'OS::Heat::None'}
        found = self.found()
        assert '-  other:' in found['template', 'changed', '']


@pytest.fixture
def heat():
    return fake_heat.Heat()


def follower(heat, **more):
    return plan_stacks.StackFollower(
        heat,
        'shop-id',
        mask=lambda said: said.replace('geheim', '******'),
        **more,
    )


def test_events_of_the_present_action_are_counted(heat):
    heat.become('shop', 'UPDATE_IN_PROGRESS')
    heat.happen('shop', 'z', 'CREATE_FAILED', reason='no space')
    heat.happen('shop', 'shop', 'UPDATE_IN_PROGRESS', physical_id='shop-id')
    heat.happen('shop', 'a', 'CREATE_IN_PROGRESS')
    heat.happen('shop', 'a', 'CREATE_COMPLETE')
    heat.happen('shop', 'c', 'CREATE_COMPLETE')
    heat.happen('shop', 'c', 'UPDATE_IN_PROGRESS')
    # The beginning of a nested stack.
    nested = {'physical_id': 'x', 'stack_id': 'x'}
    heat.happen('shop', 'x', 'CREATE_IN_PROGRESS', **nested)
    heat.happen('shop', 'b', 'CREATE_IN_PROGRESS')
    follows = follower(heat)
    found = follows.look()
    assert (found.done, found.failures, found.ended) == (1, (), False)
    assert found.under_way == 'b CREATE_IN_PROGRESS'
    # None is counted twice, or lost between pages.
    for number in range(450):
        heat.happen('shop', f'r{number}', 'UPDATE_COMPLETE')
    assert follows.look().done == 451


def test_failures_have_reasons_without_secrets(heat):
    heat.become('shop', 'CREATE_FAILED', reason='a: geheim')
    heat.happen('shop', 'a', 'CREATE_FAILED', reason='not geheim')
    found = follower(heat).look()
    assert found.reason == 'a: ******'
    assert found.failures == ('a CREATE_FAILED: not ******',)
    assert (found.done, found.ended, found.success) == (1, True, False)


def test_the_end(heat):
    gone = follower(heat).look()
    assert (gone.ended, gone.success) == (True, False)
    assert 'deleted' in gone.reason
    # An accepted action may not have begun.
    heat.become('shop', 'INIT_COMPLETE')
    assert not follower(heat).look().ended
    heat.become('shop', 'CREATE_COMPLETE')
    before = heat.stacks['shop'].changed_at
    assert not follower(heat, before=before).look().ended
    assert follower(heat).look().success


PLAN = b"""\
template: root.yaml
environments: [{path: base.yaml}]
required_validations: [prep]
post_deployment:
  - workflow: shop.configure
    input: {region: north}
  - action: std.noop
"""


class DeploymentTest(fakes.PlanCase):
    FILES = {'plan-environment.yaml': PLAN}

    def setUp(self):
        super().setUp()
        self.core = plan_operations.PlanOperations(self.plans)
        self.patch(
            plan_operations.deploying.deploy_records,
            'check',
            lambda annex, plan, now: None,
        )
        #: Of calls, by their names; else they succeed.
        self.outcomes = {}
        self.called = []
        self.repeats = 1
        self.ends_with = 'COMPLETE'

    def step(self, state=None, outcome=None):
        """Take a step, perhaps several times, as after crashes."""
        given = {'timeout': 7, 'state': state, 'outcome': outcome}
        for _ in range(self.repeats):
            found = self.core.deploy('plan', **given)
        return json.loads(json.dumps(found))

    def observed(self):
        """Return the state of a deployment before its start."""
        return self.step(self.step()['state'], {'success': True})['state']

    def run_to_the_end(self):
        step = self.step()
        while step['success'] is None:
            outcome, call = None, step['call']
            if call:
                self.called.append((call['kind'], call['name'], call['input']))
                outcome = self.outcomes.get(call['name'], {'success': True})
            else:
                self.finish()
            step = self.step(step['state'], outcome)
        return step

    def finish(self):
        stack = self.heat.stacks.get('plan')
        if stack and stack.in_progress:
            status = f'{stack.action}_{self.ends_with}'
            self.heat.become('plan', status, reason='so it is')

    def test_it_goes_through_all_phases_in_their_order(self):
        self.outcomes['validations.run'] = {'success': False, 'reason': 'ram'}
        exc = self.assertRaises(errors.Refused, self.run_to_the_end)
        said = 'Validations that the plan requires have not passed: ram'
        assert str(exc) == said
        assert 'create' not in self.heat.asked
        self.outcomes.clear()
        self.called.clear()
        step = self.run_to_the_end()
        assert step['success']
        prep = {'plan': 'plan', 'groups': ['prep']}
        assert self.called == [
            ('workflow', 'validations.run', prep),
            ('workflow', 'shop.configure', {'region': 'north'}),
            ('action', 'std.noop', {}),
        ]
        ended = {'reason': '', 'success': True, 'next_look': 0}
        assert step['state']['stack'] == {'status': 'CREATE_COMPLETE', **ended}
        assert self.heat.asked.count('create') == 1

    def test_each_step_can_be_repeated(self):
        self.repeats = 3
        self.test_it_goes_through_all_phases_in_their_order()

    def test_a_start_that_is_repeated_after_the_end_finds_what_it_did(self):
        # Mistral was away for long, and the first answer was lost.
        for action in ('CREATE', 'UPDATE'):
            self.called.clear()
            first = self.observed()
            begun = self.step(first)
            self.finish()
            asked = self.heat.asked.count('replace')
            again = self.step(first)
            assert again['state'] == begun['state']
            assert again['state']['started']['action'] == action
            assert self.heat.asked.count('replace') == asked
            assert self.step(again['state'])['state']['stack']['success']

    def test_a_start_that_is_repeated_after_a_failure_fails(self):
        first = self.observed()
        self.step(first)
        self.ends_with = 'FAILED'
        self.finish()
        again = self.step(self.step(first)['state'])
        reason = 'CREATE_FAILED: so it is'
        assert (again['success'], again['reason']) == (False, reason)
        assert again['call'] is None
        # Another deployment of the same plan mends it.
        self.ends_with = 'COMPLETE'
        assert self.run_to_the_end()['success']
        assert self.heat.asked.count('replace') == 1

    def test_a_start_that_is_repeated_before_heat_begins_is_one(self):
        first = self.observed()
        self.step(first)
        self.heat.become('plan', 'INIT_COMPLETE')
        # Another deployment of the same plan joins the one in progress.
        late = self.observed()
        for state in (first, late):
            begun = self.step(state)
            assert begun['next_look'] == 2
            followed = self.step(begun['state'])
            assert followed['success'] is None
        self.cloud.now += 10**6
        assert self.step(begun['state'])['next_look'] == 60
        self.heat.become('plan', 'CREATE_COMPLETE')
        state = self.step(late)['state']
        assert self.heat.asked.count('replace') == 0
        assert self.step(state)['state']['stack']['success']

    def test_a_call_that_fails_is_the_last(self):
        boom = 'workflow shop.configure of post_deployment: boom'
        for more, reason in (
            ({}, 'shop.configure has failed'),
            ({'reason': 'boom'}, boom),
        ):
            self.outcomes['shop.configure'] = {'success': False, **more}
            self.called.clear()
            step = self.run_to_the_end()
            assert (step['success'], step['reason']) == (False, reason)
            assert len(self.called) == 2
