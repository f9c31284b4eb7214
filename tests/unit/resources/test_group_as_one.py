# SPDX-License-Identifier: Apache-2.0
"""Groups that are one resource: no nested stack, a row for each member."""

import itertools
import json
import re
from unittest import mock
from urllib import parse
import uuid

from heat.common import exception
from heat.common import identifier
from heat.engine import api
from heat.engine import resource

from heat_plugins import errors
from heat_plugins.deployments import fleets
from heat_plugins.engine import callers
from heat_plugins.engine import patches
from heat_plugins.engine import run_room
from heat_plugins.engine import server_fleets
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.runs import triggering
from heat_plugins.resources.software import deployment_group
from heat_plugins.resources.software import deployment_schema
from heat_plugins.signals import body
from heat_plugins.signals import presigned
from tests.unit import heat_fixture
from tests.unit.engine import led
from tests.unit.resources import deployments
from tests.unit.resources import stack_domain

OWNER = callers.Signaller(user_id='owner', is_of_project=True, may_update=True)

KIND = 'OS::Heat::SoftwareDeploymentGroup'
ENDS = 'before_all_members', 'after_all_members'


def key_of(config):
    return deployments.inputs(config)['deploy_resource_name']


def group(*keys, policy=None, config=None, resources=None, **properties):
    servers = {key: {'get_resource': f'server_{key}'} for key in keys}
    server = deployments.template()['resources']['server']
    more = {f'server_{key}': server for key in keys}
    whole = deployments.template(
        config=config,
        resources={**more, **(resources or {})},
        kind=KIND,
        server=None,
        servers=servers,
        **{'members': 'single', **properties},
    )
    whole['resources']['deployment']['update_policy'] = policy or {}
    return whole


class GroupTestCase(deployments.DeploymentTestCase):
    def given(self, since=0):
        found = {}
        for config in self.handed[since:]:
            if action := deployments.inputs(config).get('deploy_action'):
                found.setdefault(key_of(config), []).append(action)
        return found


class LifeTest(GroupTestCase):
    def test_each_server_is_given_what_changes_and_answers(self):
        said = {'deploy_stdout': 'out', 'members': 'mine'}
        self.answer = lambda config: {**said, 'answer': key_of(config)}
        inputs = [{'name': 'who'}, {'name': 'why', 'replace_on_change': True}]
        config = {'inputs': inputs, 'outputs': [{'name': 'answer'}]}
        more = {'config': config, 'actions': deployments.ALL_ACTIONS}
        stack = self.created(group('a', 'b', 'c', **more))
        assert self.given() == {key: ['CREATE'] for key in 'abc'}
        found = self.heat.load(stack)['deployment']
        assert not found.has_nested()
        assert found.FnGetAtt('answer') == {key: key for key in 'abc'}
        assert found.FnGetAtt('answer', 'a') == 'a'
        shown = {'deploy_stdouts': 'out', 'signal_transport': 'TEMP_URL_POLL'}
        for name, value in {**shown, 'trigger_url': None, 'runs': []}.items():
            assert found.FnGetAtt(name) == dict.fromkeys('abc', value)
        shown = 'deployment', 'config', 'status'
        assert {
            tuple(one[name] for name in shown)
            for one in found.FnGetAtt('members').values()
        } == {
            (row.id, row.config.id, 'COMPLETE')
            for row in self.deployment_rows()
        }
        self.assertRaises(
            exception.InvalidTemplateAttribute, found.FnGetAtt, 'no such'
        )
        # Another input reaches each server that stays, in place.
        config['outputs'].append({'name': 'members'})
        self.update(
            stack, group('a', 'b', **more, input_values={'who': 'moon'})
        )
        assert self.given() == {
            'a': ['CREATE', 'UPDATE'],
            'b': ['CREATE', 'UPDATE'],
            'c': ['CREATE', 'DELETE'],
        }
        assert len(self.deployment_rows()) == 2
        again = self.heat.load(stack)['deployment']
        assert again.resource_id == found.resource_id
        # An output comes before what we add.
        assert again.FnGetAtt('members') == dict.fromkeys('ab', 'mine')
        # Unless the input asks for another group.
        before = len(self.handed)
        self.update(stack, group('a', **more, input_values={'why': 'x'}))
        again = self.heat.load(stack)['deployment']
        assert again.resource_id != found.resource_id
        assert self.given(before) == {
            'a': ['CREATE', 'DELETE'],
            'b': ['DELETE'],
        }
        before = len(self.handed)
        # It goes though its config has gone.
        gone = mock.Mock(side_effect=exception.NotFound('config'))
        with mock.patch.object(server_fleets, 'named_config', gone):
            self.delete(stack)
        assert len(self.handed) == before
        self.assert_nothing_left()

        # Members go in batches.
        times = {}
        self.answer = lambda config: {
            'answer': times.setdefault(key_of(config), self.now)
        }
        batches = {'max_batch_size': 2, 'pause_time': 7}
        stack = None
        for policy in ('batch_create', 'rolling_update'):
            times.clear()
            values = {'who': policy}
            whole = group(
                *'abcd', policy={policy: batches}, input_values=values
            )
            if stack is None:
                stack = self.created(whole)
            else:
                self.update(stack, whole)
            assert times['b'] == times['a']
            assert times['d'] == times['c'] >= times['a'] + 7


class FailureTest(GroupTestCase):
    def test_the_reason_names_members_and_some_may_fail(self):
        bad = {'deploy_status_code': 1, 'deploy_stderr': 'boom'}
        self.answer = lambda config: (
            bad if key_of(config) in 'bc' else {'answer': key_of(config)}
        )
        stack, reason = self.fails(group('a', 'b', 'c'), self.answer)
        assert '2 of 3 members failed. 2 members (b, c): ' in reason
        assert 'boom' in reason
        found = self.heat.load(stack)['deployment']
        assert found.FnGetAtt('answer', 'a') == 'a'
        # What has failed is not adopted.
        adopted = self.adopt(stack)['deployment']
        assert 'are not COMPLETE: b, c' in adopted.status_reason
        stack = self.created(group('a', 'b', max_failures='50%'), name='half')
        found = self.heat.load(stack)['deployment']
        assert found.FnGetAtt('members')['b']['status'] == 'FAILED'
        told = str(deployments.events(stack))
        assert '1 of 2 members failed' in told
        assert 'no stack has a server with this ID' not in told
        whole, before = group('a'), len(self.handed)
        servers = whole['resources']['deployment']['properties']['servers']
        servers['nowhere'] = None
        _, reason = self.fails(whole, {}, 'lacking')
        assert 'These members have no server: nowhere' in reason
        # A server that no stack has is named at once and in the end.
        for kind, more in (
            (KIND, {'servers': {'a': 'of nobody'}, 'server': None}),
            ('OS::Heat::SoftwareDeployment', {'server': 'of nobody'}),
        ):
            whole = deployments.template(kind=kind, timeout=30, **more)
            stack, reason = self.fails(whole, None, self.getUniqueString())
            said = ' (no stack has a server with this ID) has not signalled'
            assert said in reason
            assert (
                'no stack has a server with this ID: of nobody. It runs the '
                'action only if its agent asks Heat by itself'
            ) in deployments.events(stack)
        assert self.given(before).keys() <= {'a', 'deployment'}

    def test_none_may_fail_in_vain(self):
        # As a group with a nested stack does not count them.
        self.heat.auth.endpoints['cloudformation'] = deployments.CFN
        stack = self.created(group('a'), name='former')
        said = 'max_failures does not count'
        for more in (
            {'members': 'nested'},
            {'signal_transport': 'HEAT_SIGNAL'},
            {'trigger_url': True},
        ):
            whole = group('a', max_failures='10%', **more)
            why = self.why_invalid(whole)
            assert f'properties.max_failures: {said}' in why
            # An update goes on with a group that has it.
            self.heat.preview(stack, whole)
            whole['resources']['deployment']['properties']['max_failures'] = 0
            self.heat.stack(whole, self.getUniqueString()).validate()
        # AUTO does not forget it.
        del self.heat.auth.endpoints['cloudformation']
        whole = group('a', max_failures='1', signal_transport='AUTO')
        self.swift.denied.add(deployments.PROJECT)
        _, reason = self.fails(whole, {})
        assert said in reason
        assert 'answered 403' in reason
        del self.heat.auth.endpoints['object-store']
        self.heat.context = heat_fixture.new_context()
        assert said in self.why_invalid(whole)
        # Zaqar comes before CFN_SIGNAL.
        self.heat.auth.endpoints['cloudformation'] = deployments.CFN
        self.enterContext(stack_domain.with_zaqar(self.heat))
        self.heat.context = heat_fixture.new_context()
        assert said in self.why_invalid(whole)


class SignalTest(GroupTestCase, led.LedCase):
    COMPONENT = deployments.component(
        (['CREATE'], '#!/bin/sh'), (['BACKUP'], '#!/bin/sh')
    )

    def signal(self, found, details):
        with mock.patch.object(callers, 'of', return_value=OWNER):
            found.signal(details)

    def test_a_trigger_starts_one_run_on_all(self):
        parts = {'config': self.COMPONENT}
        stack = self.created(group('a', 'b', resources=parts))
        found = self.heat.load(stack)['deployment']
        self.signal(found, {'trigger': 'BAKCUP'})
        told = '\n'.join(deployments.events(stack))
        (event,) = re.findall('^Not triggered: .*', told, re.MULTILINE)
        assert 'did you mean "BACKUP"?' in event
        assert self.stored_runs() == []
        self.signal(found, {'trigger': 'BACKUP'})
        (run,) = self.stored_runs()
        said = f'Signal: run {run.id} of BACKUP has started on 2 servers'
        assert said in deployments.events(stack)
        for _ in range(10):
            self._second()
        assert self.given() == {key: ['CREATE', 'BACKUP'] for key in 'ab'}
        found = self.heat.load(stack)['deployment'].FnGetAtt('runs')
        expected = {'action': 'BACKUP', 'state': 'complete'}
        for key, (run,) in found.items():
            expected['resource'] = f'deployment.{key}'
            assert expected.items() <= run.items()
        assert found.keys() == {*'ab'}
        self.delete(stack)
        self.assert_nothing_left()
        # A group with a nested stack asks its members, and goes without those
        # that refuse.
        parts['other'] = deployments.deployment(name='o')
        below = self.created(deployments.template(resources=parts))
        stack = self.heat.stack(group('a', members='nested'), 'above')
        stack._store_resources()
        above = stack['deployment']
        members = {n: below[n] for n in ('deployment', 'other')}
        self.patch(above, 'nested', lambda: members)
        deployment, backup = type(members['other']), {'trigger': 'BACKUP'}
        real = deployment.run_target
        for details, refuses, said in (
            ({'deploy_status_code': 0}, False, 'accepts only signals that'),
            (backup, True, 'on 1 server; left out: other: busy'),
            (backup, False, 'has started on 2 servers'),
        ):

            def run_target(member, wanted, refuses=refuses):
                if refuses and member.name == 'other':
                    raise errors.Refused('busy')
                return real(member, wanted)

            with mock.patch.object(deployment, 'run_target', run_target):
                self.signal(above, details)
            self.go_on()
            assert said in str(deployments.events(stack))
        assert len(self.stored_runs()) == 3


class ReferenceTest(GroupTestCase):
    """Servers that another resource names, as a ResourceGroup does."""

    NAMED = {'get_attr': ['nodes', 'value']}
    MERGED = {'map_merge': [NAMED, {'c': {'get_resource': 'server_c'}}]}

    def by_map(self, servers, keys, **properties):
        whole = group(*'abc', **properties)
        whole['resources']['deployment']['properties']['servers'] = servers
        value = {k: {'get_resource': f'server_{k}'} for k in keys}
        nodes = {'type': 'OS::Heat::Value', 'properties': {'value': value}}
        whole['resources']['nodes'] = nodes
        whole['outputs'] = {
            name: {'value': {'get_attr': ['deployment', name]}}
            for name in ('members', 'answer')
        }
        return whole

    def shown(self, stack):
        loaded = self.heat.load(stack)
        return api.format_resource_attributes(loaded['deployment'], ['answer'])

    def servers_of(self, members):
        return {key: one['server'] for key, one in members.items()}

    def test_a_request_and_an_output_show_each_member(self):
        # A member that was given nothing is shown as well.
        stack = self.created(
            self.by_map(self.NAMED, 'ab', actions=['DELETE']), name='nothing'
        )
        members = self.shown(stack)['members']
        assert self.servers_of(members) == dict.fromkeys('ab')
        self.answer = {'deploy_stdout': 'out', 'answer': '42'}
        for servers, keys in ((self.NAMED, 'ab'), (self.MERGED, 'abc')):
            stack = self.created(
                self.by_map(servers, 'ab'), name=self.getUniqueString()
            )
            expected = {k: stack[f'server_{k}'].FnGetRefId() for k in keys}
            shown, loaded = self.shown(stack), self.heat.load(stack)
            assert shown['deploy_stdouts'] == dict.fromkeys(keys, 'out')
            for found in (shown, self.heat.outputs(loaded)):
                assert self.servers_of(found['members']) == expected
                assert found['answer'] == dict.fromkeys(keys, '42')


class KindTest(GroupTestCase):
    def test_one_with_a_nested_stack_is_as_heat_has_it(self):
        stack = self.heat.stack(group('a', members='nested'))
        nested = stack['deployment']
        # A rescue leaves that to its members.
        assert nested.withdraw_delivered() is None
        none, shown = {'members': None}, ['deploy_stdouts']
        for name, args in (
            *((n, ()) for n in ('handle_suspend', 'prepare_abandon')),
            *((n, shown) for n in ('get_attribute', '_resolve_attribute')),
            ('handle_update', [None, None, {}]),
            ('handle_adopt', [{}]),
            ('check_create_complete', [None]),
            ('_needs_update', [None, None, none, none]),
            ('_handle_cancel', ()),
        ):
            with mock.patch.object(
                deployment_group.GroupMixin, name, create=True
            ) as heats:
                getattr(nested, name)(*args)
            heats.assert_called_once_with(*args)
        call = nested._needs_update, None, None, {'members': 'single'}, none
        self.assertRaises(resource.UpdateReplace, *call)

    def test_an_existing_group_keeps_its_kind(self):
        # As one of the former name does when it gets the name of now.
        for kind in ('Software', 'Structured'):
            whole = group('a', actions=deployments.ALL_ACTIONS)
            config = {} if kind == 'Structured' else '#!/bin/sh'
            whole['resources']['config']['type'] = f'OS::Heat::{kind}Config'
            whole['resources']['config']['properties']['config'] = config
            named = whole['resources']['deployment']
            named['type'] = f'OS::Heat::{kind}Deployments'
            stack = self.created(whole, name=kind)
            before = self.heat.load(stack)['deployment'].resource_id
            named['type'] = f'OS::Heat::{kind}DeploymentGroup'
            self.update(stack, whole)
            assert self.given() == {'a': ['CREATE']}
            assert self.heat.load(stack)['deployment'].resource_id == before
            self.delete(stack)
            self.handed.clear()
        # One resource is the default.
        auto = {'signal_transport': 'AUTO'}
        stack = self.created(group('a', members=None, **auto))
        before = self.heat.load(stack)['deployment'].resource_id
        self.configure(group_members='nested')
        for members in (None, 'single'):
            self.update(stack, group('a', members=members, **auto, timeout=9))
        assert self.given() == {'a': ['CREATE']}
        found = self.heat.load(stack)['deployment']
        assert found.resource_id == before
        assert not found.has_nested()

    def test_a_preview_of_an_update_says_what_the_update_does(self):
        stack = self.created(group('a'), name='previewed')
        for does, change in (
            ('updated', {'timeout': 60}),
            ('updated', {'signal_transport': 'NO_SIGNAL'}),
            ('updated', {'signal_transport': 'AUTO'}),
            ('replaced', {'signal_transport': 'HEAT_SIGNAL'}),
            ('replaced', {'trigger_url': True}),
            ('replaced', {'members': 'nested'}),
        ):
            shown = self.heat.preview(stack, group('a', **change))
            assert 'deployment' in shown[does], change
        # As where an environment maps the type of the members to another.
        with mock.patch(
            'heat.engine.environment.Environment.get_class',
            return_value=resource.Resource,
        ):
            shown = self.heat.preview(stack, group('a'))
        assert 'deployment' in shown['replaced']
        # A preview of the group shows one resource, or its members.
        for kind in ('single', 'nested'):
            previewed = self.heat.stack(group('a', members=kind), name=kind)
            found = previewed['deployment'].preview()
            if kind == 'nested':
                assert {one.name for one in found} == {'a', *ENDS}
            else:
                assert found == previewed['deployment']
        # What takes a nested stack.
        for name, kind in (('TEMP_URL_POLL', 'nested'), ('AUTO', 'single')):
            self.configure(group_members=kind)
            # AUTO finds no temporary URLs.
            self.swift.fail(times=1000 * (name == 'AUTO'))
            whole = group('a', members=None, signal_transport=name)
            # It would make one, which this Heat does not.
            assert 'create_stack' in self.fails(whole, {}, name)[1]


class AdoptTest(GroupTestCase):
    def test_what_was_abandoned_is_taken_over(self):
        self.answer = {'answer': '42'}
        stack = self.created(group('a', 'b'))
        before = stack['deployment'].resource_id
        # It lays no claim to what another group has.
        key = deployment_schema.FORMER_GROUP
        self.heat.load(stack)['deployment'].data_set(key, 'of another')
        adopted = self.adopt(stack)
        found = adopted['deployment']
        assert found.state == ('ADOPT', 'COMPLETE')
        assert key not in found.data()
        assert found.resource_id == before
        assert not found.has_nested()
        assert found.FnGetAtt('answer') == {'a': '42', 'b': '42'}
        # It was that of the abandoned stack.
        assert self.containers() == []
        self.delete(adopted)
        assert self.deployment_rows() == []
        # Members that wait are not.
        stack, _ = self.waiting(group('a'))
        # An engine that has died leaves that to a rescue.
        for _ in range(2):
            self.heat.load(stack)['deployment'].withdraw_delivered()
            loaded = self.heat.load(stack)
            self.assert_withdrawn(loaded, 'has died', 'server_a')
        found = self.adopt(stack)['deployment']
        assert found.status == 'FAILED'
        assert 'are not COMPLETE: a' in found.status_reason


class HealthTest(GroupTestCase):
    def check(self, stack, *gone):
        lost = {stack[f'server_{key}'].resource_id for key in gone}
        self.replace(
            'heat_plugins.engine.database.servers.Servers.all_there',
            lambda servers, found: {each.id for each in found} - lost,
        )
        again = self.heat.load(stack)
        self.finish(self.heat.begin(again, 'CHECK'))
        again.persist_state_and_release_lock(uuid.uuid4().hex)
        return again['deployment']

    def test_an_update_runs_again_on_what_is_marked_or_found_unhealthy(self):
        stack = self.created(group('a', 'b'))

        def mark():
            found = self.heat.load(stack)
            found['deployment'].state_set('CHECK', 'FAILED', 'by a user')

        mark()
        assert 'runs it again' in self.deployment_rows()[0].status_reason
        expected = {key: ['CREATE', 'UPDATE'] for key in 'ab'}
        for _ in range(2):
            self.update(stack, group('a', 'b'))
            assert self.given() == expected
        # Not on what a check has found healthy since.
        mark()
        self.act(stack, 'CHECK')
        self.update(stack, group('a', 'b'))
        assert self.given() == expected
        assert self.check(stack, 'a').status == 'FAILED'
        self.update(stack, group('a', 'b'))
        expected['a'].append('UPDATE')
        assert self.given() == expected
        self.check(stack)
        row = self.deployment_rows()[0]
        said = f'These members have no deployment: {key_of(row.config.config)}'
        self.heat.rpc.delete_software_deployment(self.heat.context, row.id)
        assert said in self.check(stack).status_reason
        # A check hides no half of an update from its revert.
        stack = self.created(group('a', 'b', 'c'), name='reverted')
        self.answer = lambda config: {
            'deploy_status_code': int(key_of(config) != 'a')
        }
        changed = group('a', 'b', 'c', input_values={'who': 'moon'})
        again = self.heat.load(stack)
        self.failed(self.heat.begin(again, 'UPDATE', changed), again)
        self.answer = {}
        before = len(self.handed)
        assert self.check(stack, 'c').action == 'CHECK'
        self.update(stack, group('a', 'b'))
        assert self.given(before) == {'a': ['UPDATE'], 'b': ['UPDATE']}


class CfnTest(GroupTestCase):
    """A group whose servers answer by signed URLs of heat-api-cfn."""

    def setUp(self):
        super().setUp()
        self.heat.auth.endpoints['cloudformation'] = deployments.CFN
        del self.heat.auth.endpoints['object-store']
        self.swift.denied.add(deployments.PROJECT)
        self.domain = self.enterContext(stack_domain.Domain().installed())
        run_room.install(triggering)

    def send(self, config, answer=None):
        """Answer as heat-api-cfn passes it on; return what Heat handles."""
        given = deployments.inputs(config)
        assert given['deploy_signal_verb'] == 'POST'
        url = parse.urlsplit(given['deploy_signal_id'])
        arn = identifier.ResourceIdentifier.from_arn_url(url.geturl())
        signature = dict(parse.parse_qsl(url.query))['Signature']
        return self.post(arn, signature, answer)

    def post(self, arn, signature, answer):
        credentials = json.dumps({'ec2Credentials': {'signature': signature}})
        context, left = mock.Mock(aws_creds=credentials), mock.Mock()
        signalled = dict(arn.stack()), arn.resource_name, answer
        patches.note_signature(left)('service', context, *signalled)
        return left.call_args

    def of(self, name):
        return [each for each in self.handed if key_of(each) == name][-1]

    def states(self):
        return deployment_rows.states(self.heat.context, self.group_id)

    def statuses(self):
        return {
            state.member.key: (state.row.action, state.row.status)
            for state in self.states()
        }

    def waiting_group(self, *keys, **properties):
        whole = group(*keys, signal_transport='CFN_SIGNAL', **properties)
        stack, task = self.waiting(whole)
        self.group_id = stack['deployment'].resource_id
        self.work()
        return stack, task

    def test_each_answer_is_of_one_member_and_counts_once(self):
        stack, task = self.waiting_group('a', 'b', 'c', max_failures='1')
        # What no member has signed goes to Heat, as does a trigger.
        assert self.send(self.of('a'), {'trigger': 'BACKUP'}) is not None
        url = deployments.inputs(self.of('a'))['deploy_signal_id']
        arn = identifier.ResourceIdentifier.from_arn_url(url)
        assert self.post(arn, 'of somebody else', {}) is not None
        # The ID of a config holds but a part of a digest.
        guessed = {'return_value': self.states()[0].row.config.id}
        with mock.patch.object(presigned, 'config_id', **guessed):
            assert self.post(arn, 'of a guess', {}) is not None
        # What names another config does not count.
        named = {body.CONFIG_ID: self.of('b')['id']}
        assert self.send(self.of('a'), named) is None
        assert all(state.row.in_progress for state in self.states())
        for name, details in (
            ('c', {body.REPORT: 1, body.CONFIG_ID: self.of('c')['id']}),
            ('a', {'answer': 'of a'}),
            ('a', {'answer': 'again'}),
            ('b', {'deploy_status_code': 1}),
        ):
            assert self.send(self.of(name), details) is None
        assert [s.row.has_started for s in self.states()].count(True) == 1
        assert not self.step(task, 60)
        assert self.statuses() == {
            'a': ('CREATE', 'COMPLETE'),
            'b': ('CREATE', 'FAILED'),
            'c': ('CREATE', 'IN_PROGRESS'),
        }
        # A server may answer with nothing.
        self.send(self.of('c'))
        self.finish(task)
        assert stack.status == 'COMPLETE'
        answers = self.heat.load(stack)['deployment'].FnGetAtt('answer')
        assert answers == {'a': 'of a', 'b': None, 'c': None}
        # A late answer ends no other action.
        self.delete(stack)
        stack, task = self.waiting_group('a')
        before = self.of('a')
        self.send(before)
        self.completes(task, stack)
        other = group('a', signal_transport='CFN_SIGNAL', name='other')
        self.waiting(other, 'UPDATE', self.heat.load(stack))
        passed_on = self.send(before, {}).args[-1]
        seen = deployments.events(stack)
        self.heat.load(stack)['deployment'].signal(passed_on)
        assert deployments.events(stack) == seen
        assert self.statuses() == {'a': ('UPDATE', 'IN_PROGRESS')}
        # Its answer counts for a group that has got a nested stack as well.
        found = self.heat.load(stack)['deployment']
        found.data_set(deployment_schema.FORMER_GROUP, self.group_id)
        self.heat.change(found.id, physical_resource_id='a nested stack')
        self.work()
        assert self.send(self.of('a'), {}) is None
        assert self.statuses() == {'a': ('UPDATE', 'COMPLETE')}

    def test_it_runs_all_actions_and_leaves_no_user(self):
        self.answer = lambda config: {
            'answer': deployments.inputs(config)['deploy_action']
        }
        whole = group(
            'a', 'b', signal_transport='AUTO', actions=deployments.ALL_ACTIONS
        )
        stack = self.created(whole)
        user_id = self.heat.load(stack)['deployment']._get_user_id()
        assert user_id in self.domain.passwords
        self.act(stack, 'SUSPEND')
        self.act(stack, 'RESUME')
        self.delete(stack)
        actions = ['CREATE', 'SUSPEND', 'RESUME', 'DELETE']
        assert self.given() == {'a': actions, 'b': actions}
        assert self.domain.passwords == {}
        assert self.deployment_rows() == []
        # One that is replaced gets the answers of its members.
        self.handed.clear()
        self.answer = {}
        inputs = [{'name': 'a', 'default': '1', 'replace_on_change': True}]
        actions = {'actions': ['CREATE', 'DELETE']}
        whole = group('a', signal_transport='CFN_SIGNAL', **actions)
        whole['resources']['config']['properties']['inputs'] = inputs
        stack = self.created(whole)
        former = self.heat.load(stack)['deployment'].resource_id
        inputs[0]['default'] = '2'
        self.update(stack, whole)
        assert self.heat.load(stack)['deployment'].resource_id != former
        assert self.given() == {'a': ['CREATE', 'CREATE', 'DELETE']}
        # AUTO leaves a cloud with Zaqar as it was.
        self.enterContext(stack_domain.with_zaqar(self.heat))
        self.heat.context = heat_fixture.new_context()
        whole = group('a', signal_transport='AUTO')
        assert 'create_stack' in self.fails(whole, {}, 'zaqar')[1]


class NestingTest(GroupTestCase):
    """The members of a nested stack that takes the place of a group's rows."""

    def nested(self, stack, name='nested', *, is_announced=True):
        found = self.heat.load(stack)
        parent = found['deployment']
        key = deployment_schema.FORMER_GROUP
        if is_announced:
            parent.data_set(key, parent.resource_id)
        with parent.frozen_properties():
            template = parent.child_template()
        given = {'parameter_defaults': {key: parent.resource_id}}
        nested = parent._parse_nested_stack(name, template, given)
        nested.validate()
        nested.store()
        nested._store_resources()
        self.heat.run(nested, 'CREATE')
        return nested

    def test_members_take_over_their_rows_and_run_nothing(self):
        self.answer = {'answer': '42'}
        stack = self.created(group('a', 'b', 'c'))
        before = {row.id: row.config.id for row in self.deployment_rows()}
        nested = self.nested(stack)
        assert self.given() == {key: ['CREATE'] for key in 'abc'}
        after = {row.id: row.config.id for row in self.deployment_rows()}
        assert after == before
        found = self.heat.load(nested)
        assert {found[key].resource_id for key in 'abc'} == before.keys()
        assert found['a'].FnGetAtt('answer') == '42'
        # An engine that dies meanwhile has nobody run CREATE again.
        found['a'].state_set('CREATE', 'FAILED', 'its engine has died')
        assert not found['a'].needs_replace_failed()
        # A row goes to one resource alone, and a hint alone gives nobody any.
        for is_announced in (True, False):
            before = len(self.handed)
            stack = self.created(group('a'), name=f'other-{is_announced}')
            number = stack['deployment'].resource_id
            (member,) = fleets.wanted(
                number, {'a': stack['server_a'].resource_id}
            )
            if is_announced:
                self.heat.change(
                    stack['server_a'].id, physical_resource_id=member
                )
            name = f'nested-{is_announced}'
            self.nested(stack, name, is_announced=is_announced)
            assert self.given(before) == {'a': ['CREATE', 'CREATE']}


class MembersTest(GroupTestCase):
    def of(self, *keys, kind=KIND, policy=None, **properties):
        whole = deployments.template(
            kind=kind,
            server=None,
            servers={key: f'id of {key}' for key in keys},
            **properties,
        )
        whole['resources']['deployment']['update_policy'] = policy or {}
        return self.heat.stack(whole, name=self.getUniqueString())[
            'deployment'
        ]

    def nested(self, *keys, **options):
        found = self.of(*keys, **options)
        return found._parse_nested_stack(
            'members', found.child_template(), found.child_params()
        )

    def test_they_have_what_is_set_and_begin_at_once(self):
        # A member of a type that an environment maps may know no others.
        some = {'timeout': 60, 'name': 'n', 'signal_transport': 'AUTO'}
        ours = {*deployment_schema.OURS, *deployment_schema.OF_GROUP}
        for which, end, given in itertools.product(
            ('Software', 'Structured'), ('Group', 's'), ({}, some)
        ):
            kind = f'OS::Heat::{which}Deployment'
            found = self.of('one', kind=f'{kind}{end}', **given)
            template = found.child_template()
            each = template.resource_definitions(found.stack)['one']
            assert each.resource_type == kind
            properties = dict(each._properties)
            expected = {**given, 'server': 'id of one'}
            assert expected.items() <= properties.items()
            assert not (ours - given.keys()) & properties.keys()
        nested = self.nested('a', 'b', 'c')
        graph = nested.dependencies.graph()
        needed = {one for needs in graph.values() for one in needs}
        (first,) = (one.name for one in graph if not list(graph[one]))
        (last,) = (one.name for one in graph if one not in needed)
        assert (first, last) == ENDS
        assert len(nested) == 5
        # Batches are of members alone.
        for each in ('rolling_update', 'batch_create'):
            policy = {each: {'max_batch_size': 1}}
            assert set(self.nested('a', 'b', policy=policy)) == {'a', 'b'}
        # Servers may have any name, and there may be none.
        for keys in (('a', 'after_all_members'), ()):
            assert set(self.nested(*keys)) == {*keys}
        # So are the outputs of one.
        found = self.of('new', 'newer', 'c', 'd')
        self.patch(found, 'referenced_attrs', lambda: ['deploy_stdouts'])
        definition = found.get_resource_def()
        self.replace(
            'heat.common.grouputils.get_member_definitions',
            lambda group: [
                (key, group.build_resource_definition(key, definition))
                for key in ('c', 'd')
            ],
        )
        template = found._assemble_for_rolling_update(3, 1).t
        assert set(template['resources']) == {'new', 'c', 'd'}
        (shown,) = template['outputs'].values()
        assert set(shown['value']) <= {'new', 'c', 'd'}
