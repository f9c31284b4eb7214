# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareDeployment: its life from creation to adoption."""

import pathlib
import re
import textwrap
from unittest import mock
import uuid

from heat.common import exception
from heat.engine import api
from heat.engine.resources.openstack.heat import software_deployment as base
from oslo_config import cfg
import yaml

from heat_plugins.engine import hubs
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import server_metadata
from tests.unit import heat_fixture
from tests.unit.resources import deployments

PAGE = (
    pathlib.Path(__file__).resolve().parents[3]
    / 'doc/source/software-deployments.rst'
).read_text()

NOTHING = (None,) * 3


class LifeTest(deployments.DeploymentTestCase):
    def test_every_action_has_a_config_of_its_own(self):
        actions = {'actions': deployments.ALL_ACTIONS}
        stack = self.created(
            deployments.template(input_values={'who': 's3cret'}, **actions)
        )
        source = stack['config'].resource_id
        (row,) = self.deployment_rows()
        assert row.input_values == {'who': 's3cret'}
        # It says where to send what, and nothing of other ways.
        given = deployments.inputs(self.handed[0])
        assert given['deploy_stack_id'] == stack.identifier().stack_path()
        assert (
            f'/AUTH_{deployments.PROJECT}/heat-plugins-{stack.id}/'
            f'signals/{row.id}/{self.handed[0]["id"]}?'
        ) in given['deploy_signal_id']
        for name in ('deploy_auth_url', 'deploy_queue_id', 'deploy_password'):
            assert name not in given
        # As one that Heat's own class has made.
        rows.change(
            self.heat.context, row.id, stack_user_project_id='stack-users'
        )
        self.update(stack, deployments.template(**actions))
        # Inputs that are taken back leave the row.
        (row,) = self.deployment_rows()
        assert not row.input_values
        assert row.stack_user_project_id is None
        # A config of nobody else is touched.
        number = self.handed[-1]['id']
        assert self.config_ids() == {source, number}
        assert [each['id'] for each in self.in_metadata(stack)] == [number]
        self.act(stack, 'SUSPEND')
        self.act(stack, 'RESUME')
        self.answer = None
        task = self.heat.start(stack['deployment'].delete)
        # A server may well send a former result once more.
        self.send(self.handed[0])
        assert not self.step(task, 100)
        self.send(self.handed[-1])
        self.finish(task)
        assert self.actions() == [
            *('CREATE', 'UPDATE', 'SUSPEND', 'RESUME', 'DELETE')
        ]
        assert len({config['id'] for config in self.handed}) == 5
        assert self.config_ids() == {source}
        assert self.in_metadata(stack) == []
        # After the last one the engine keeps no connection.
        assert hubs.HUBS.values() == []
        self.delete(stack)
        self.assert_nothing_left()

    def test_an_action_that_is_not_asked_for_is_complete_at_once(self):
        whole = deployments.template(actions=['UPDATE'])
        stack = self.created(whole)
        assert stack['deployment'].resource_id is None
        # A signal before anything was delivered is ignored.
        stack['deployment'].signal({'answer': 'x'})
        self.update(stack, deployments.template(actions=['UPDATE'], name='x'))
        self.act(stack, 'SUSPEND')
        self.delete(stack)
        assert self.actions() == ['UPDATE']
        self.assert_nothing_left()
        self.handed.clear()
        # DELETE runs though CREATE was asked for only later.
        stack = self.created(deployments.template(actions=['DELETE']))
        self.update(stack, deployments.template(actions=['CREATE', 'DELETE']))
        assert self.handed == []
        self.delete(stack)
        assert self.actions() == ['DELETE']
        self.assert_nothing_left()

        # Without a signal it is complete when it is delivered.
        self.answer = None
        self.swift.seen.clear()
        whole = deployments.template(signal_transport='NO_SIGNAL')
        self.configure(swift_error_budget=20)
        # The row is complete as it is written, before the server knows.
        attempts = self.break_database(server_metadata, 'tell', 10**6)
        stack, _ = self.fails(whole, None)
        assert self.in_metadata(stack) == []
        attempts.clear()
        self.update(stack, whole)
        (row,) = self.deployment_rows()
        assert row.status == 'COMPLETE'
        (config,) = self.in_metadata(stack)
        given = deployments.inputs(config)
        assert given['deploy_signal_transport'] == 'NO_SIGNAL'
        assert 'deploy_signal_id' not in given
        assert self.swift.seen == []
        self.delete(stack)
        assert hubs.HUBS.values() == []
        self.assert_nothing_left()

    def test_the_deployment_of_the_page_works_and_fails_as_it_says(self):
        shown = {}
        for block in re.findall(
            r'code-block:: yaml\n\n((?:(?: {4}.*)?\n)+)', PAGE
        ):
            shown.update(yaml.safe_load(textwrap.dedent(block)))
        whole = deployments.template(
            resources={name: shown[name] for name in ('config', 'deployment')}
        )
        whole['parameters'] = {'who': {'type': 'string', 'default': 'world'}}
        self.answer = {'greeting': 'Hello, world'}
        stack = self.created(whole)
        found = stack['deployment'].FnGetAtt
        assert found('greeting') == 'Hello, world'
        assert found('signal_transport') == 'TEMP_URL_POLL'
        self.delete(stack)
        assert len(self.handed) == 2
        self.assert_nothing_left()
        _, reason = self.fails(whole, {'problem': 'no name to greet'})
        assert 'error output "problem" has a value' in reason


class UpdateTest(deployments.DeploymentTestCase):
    def current(self, stack):
        return self.heat.load(stack)['deployment']

    def test_it_is_updated_in_place_or_replaced(self):
        inputs = [{'name': 'who'}, {'name': 'why', 'replace_on_change': True}]
        config = {'inputs': inputs}
        given, handed = {'input_values': {'why': 'a'}}, 1
        stack = self.created(deployments.template(config=config, **given))
        before = stack['deployment'].resource_id
        for change, runs in (
            # It is not touched for nothing.
            ({}, 0),
            ({'name': 'x'}, 1),
            ({'input_values': {'who': 'x', 'why': 'a'}}, 1),
            # A server that has run it need not know these.
            ({'signal_transport': 'AUTO'}, 0),
            ({'timeout': 99}, 0),
            ({'signal_url_lifetime': 6000}, 0),
        ):
            given |= change
            self.update(stack, deployments.template(config=config, **given))
            handed += runs
            assert len(self.handed) == handed, change
            assert self.current(stack).resource_id == before
        for change in ({'input_values': {'why': 'b'}}, {'server': 'other'}):
            given |= change
            before = self.current(stack).resource_id
            self.update(stack, deployments.template(config=config, **given))
            assert self.current(stack).resource_id != before
            assert len(self.deployment_rows()) == 1

    def test_one_that_failed_or_is_unhealthy_runs_again_in_place(self):
        stack = self.created()
        before = stack['deployment'].resource_id
        self.answer = {'deploy_status_code': 1}
        changed = deployments.template(name='x')
        self.failed(self.heat.begin(stack, 'UPDATE', changed), stack)
        self.answer = {}
        for _ in range(2):
            self.update(stack, changed)
        assert self.actions() == ['CREATE', 'UPDATE', 'UPDATE']
        # As a user marks it.
        self.current(stack).state_set('CHECK', 'FAILED', 'by a user')
        for _ in range(2):
            self.update(stack, changed)
        assert self.actions(3) == ['UPDATE']
        assert self.current(stack).resource_id == before
        assert self.current(stack).state == ('UPDATE', 'COMPLETE')

    def test_what_waits_is_withdrawn_when_it_is_replaced(self):
        # One that is complete stays until its replacement is too.
        stack = self.created(name='complete')
        with self.replacing(return_value=7):
            assert stack['deployment'].make_replacement(*NOTHING) == 7
        assert len(self.in_metadata(stack)) == 1
        self.delete(stack)
        stack, _ = self.waiting()
        resource = self.current(stack)
        # It is left if an engine works on it, and it cannot be replaced.
        self.fails_to_replace(resource)
        (row,) = self.deployment_rows()
        assert row.status == 'IN_PROGRESS'
        with self.replacing():
            resource.make_replacement(*NOTHING)
        self.assert_withdrawn(stack, 'has died')
        # What has failed is withdrawn first: nobody would come here again.
        self.delete(stack)
        stack, _ = self.waiting()
        resource = self.current(stack)
        resource.state_set('CREATE', 'FAILED', 'Engine has died')
        self.fails_to_replace(resource)
        self.assert_withdrawn(stack, 'has died')

    def fails_to_replace(self, resource):
        error = exception.UpdateInProgress(resource_name='deployment')
        with self.replacing(side_effect=error):
            self.assertRaises(type(error), resource.make_replacement, *NOTHING)

    def replacing(self, **options):
        heats = base.SoftwareDeployment
        return mock.patch.object(heats, 'make_replacement', **options)


class ShownTest(deployments.DeploymentTestCase):
    def shown(self, resource):
        """Return what the API shows where nothing else is asked for."""

        def ask(*args, **kwargs):
            raise AssertionError('heat-api waits for this engine')

        self.patch(type(resource), 'client', ask)
        return api.format_resource_attributes(resource)

    def test_outputs_are_attributes_and_a_failure_has_its_reason(self):
        said = 'hm\nno space left\n'
        answer = {
            'answer': {'deep': [1, 2]},
            'deploy_stdout': 'out',
            'deploy_stderr': said,
            'deploy_status_code': 3,
        }
        stack, reason = self.fails(deployments.template(), answer)
        said = 'the exit status (deploy_status_code) is 3: no space left'
        assert said in reason
        resource = stack['deployment']
        assert resource.FnGetAtt('answer', 'deep', 1) == 2
        for name, value in {**answer, 'trouble': None}.items():
            assert resource.FnGetAtt(name) == value
        # An output of the config comes before what we add.
        self.answer, config = {}, {'outputs': [{'name': 'signal_transport'}]}
        whole = deployments.template(config=config)
        stack = self.created(whole, name='outputs')
        assert stack['deployment'].FnGetAtt('signal_transport') is None
        # A declared one is known before it has a value.
        whole = deployments.template(actions=['SUSPEND'])
        stack = self.created(whole, name='nothing')
        resource = stack['deployment']
        assert resource.FnGetAtt('answer') is None
        assert resource.FnGetAtt('signal_transport') is None
        self.assertRaises(
            exception.InvalidTemplateAttribute, resource.FnGetAtt, 'unknown'
        )
        # A config that is gone is no reason to fail.
        self.heat.rpc.delete_software_config(
            self.heat.context, stack['config'].resource_id
        )
        assert resource.FnGetAtt('deploy_stdout') is None
        assert resource.FnGetAtt('answer') is None
        # Without one the server gets an empty config.
        whole = deployments.template()
        del whole['resources']['deployment']['properties']['config']
        stack = self.created(whole, name='bare')
        config = self.handed[-1]
        assert config['name'].startswith('bare-deployment-')
        assert (config['config'], config['group']) == ('', 'Heat::Ungrouped')
        assert config['options'] == {}
        assert stack['deployment'].FnGetAtt('deploy_stdout') is None
        call = stack['deployment'].FnGetAtt, 'answer'
        self.assertRaises(exception.InvalidTemplateAttribute, *call)

    def test_the_api_shows_it_without_a_request_to_the_api(self):
        self.answer = {'answer': 'hello', 'deploy_stdout': 'said'}
        expected = {
            **self.answer,
            'signal_transport': 'TEMP_URL_POLL',
            'nonsense': None,
        }
        stack = self.created()
        deployment, config = stack['deployment'], stack['config']
        for found, show in (
            (deployment, self.heat.rpc.show_software_deployment),
            (config, self.heat.rpc.show_software_config),
        ):
            stored = show(self.heat.context, found.resource_id)
            assert self.shown(found) == stored
        # What is not there is null.
        found = api.format_resource_attributes(deployment, [*expected])
        assert expected.items() <= found.items()
        # A config that is gone must be replaced, and a deployment must not.
        self.heat.rpc.delete_software_deployment(
            self.heat.context, deployment.resource_id
        )
        assert deployment.get_live_state(deployment.properties) == {}
        # Yet one that the template has by its ID must be there.
        kind, why = type(deployment), exception.StackValidationFailed
        with mock.patch.object(kind, 'external_id', deployment.resource_id):
            self.assertRaises(why, deployment.validate_external)
        config.resource_id = str(uuid.uuid4())
        assert 'id' not in self.shown(config)
        call = config.get_live_state, config.properties
        self.assertRaises(exception.EntityNotFound, *call)
        # A server sees neither, as before: the API's policy denies it.
        stack.context.roles.append(cfg.CONF.heat_stack_user_role)
        assert 'server_id' not in self.shown(deployment)
        assert config._show_resource() is None
        # Outputs of the action before are not kept.
        self.answer = lambda config: {
            'deploy_stdout': deployments.inputs(config)['deploy_action']
        }
        self.heat.context = heat_fixture.new_context()
        all_actions = {'actions': deployments.ALL_ACTIONS}
        stack = self.created(deployments.template(**all_actions), name='kept')

        def said(stack):
            return stack['deployment'].FnGetAtt('deploy_stdout')

        before = self.heat.load(stack)
        assert said(before) == 'CREATE'
        self.act(stack, 'SUSPEND')
        # Whoever shows a stack stores what it has resolved last of all.
        before['deployment'].store_attributes()
        after = self.heat.load(stack)
        assert said(after) == 'SUSPEND'
        after['deployment'].store_attributes()
        stored = self.heat.load(stack)['deployment'].attributes
        assert stored.cached_attrs == {'deploy_stdout': 'SUSPEND'}


class CheckAndAdoptTest(deployments.DeploymentTestCase):
    def check(self, stack):
        again = self.heat.load(stack)
        self.finish(self.heat.begin(again, 'CHECK'))
        assert again['deployment'].state == ('CHECK', 'FAILED')
        return again['deployment'].status_reason

    def test_a_check_runs_nothing_and_fails_without_row_or_server(self):
        stack = self.created(deployments.template(server='nowhere'))
        assert 'Server nowhere does not exist' in self.check(stack)
        stack = self.created(deployments.template(), name='other')
        calls = len(self.heat.rpc.calls)
        self.act(stack, 'CHECK')
        assert len(self.handed) == 2
        assert len(self.heat.rpc.calls) == calls
        self.heat.rpc.delete_software_deployment(
            self.heat.context, stack['deployment'].resource_id
        )
        assert 'no longer exists' in self.check(stack)
        adopted = self.adopt(stack)['deployment']
        assert adopted.status == 'FAILED'
        assert 'Cannot adopt deployment' in adopted.status_reason
        assert adopted.needs_replace_failed()

    def test_one_that_is_complete_is_adopted(self):
        self.answer = {'answer': '42'}
        stack = self.created()
        row_id = stack['deployment'].resource_id
        self.send(self.handed[0], {'answer': 'late'})
        adopted = self.adopt(stack)
        found = adopted['deployment']
        assert found.state == ('ADOPT', 'COMPLETE')
        assert (found.resource_id, found.FnGetAtt('answer')) == (row_id, '42')
        assert self.containers() == []
        self.delete(adopted)
        assert self.deployment_rows() == []
        # No container is touched that is not ours.
        stack = self.created()
        stack['deployment'].data_set(rows.CONTAINER_KEY, 'own')
        self.swift.store(deployments.PROJECT).put_container('own', {})
        self.delete(self.adopt(stack))
        assert 'own' in self.containers()
        # What cannot be cleaned up keeps none from it, and a wait does.
        stack = self.created()
        self.swift.denied.add(deployments.PROJECT)
        adopted = self.adopt(stack)
        assert adopted['deployment'].state == ('ADOPT', 'COMPLETE')
        self.swift.denied.clear()
        self.delete(adopted)
        stack, _ = self.waiting()
        adopted = self.adopt(stack)['deployment']
        assert adopted.status == 'FAILED'
        assert 'IN_PROGRESS' in adopted.status_reason
        assert not adopted.needs_replace_failed()
