# SPDX-License-Identifier: Apache-2.0
"""Which signal transport an action uses, and what it makes for that."""

import pathlib
import tempfile
import time
from unittest import mock
from urllib import parse

from heat.common import exception
from keystoneauth1 import exceptions as ks_exceptions
from keystoneclient.contrib.ec2 import utils as ec2_utils
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import wording
from heat_plugins.deployments import deliveries
from heat_plugins.engine import transports
from heat_plugins.engine.database import in_process
from heat_plugins.engine.database import rows
from heat_plugins.resources import software_deployment
from heat_plugins.resources.software import deployment_schema
from tests.unit import fake_swift
from tests.unit import heat_fixture
from tests.unit.resources import deployments
from tests.unit.resources import stack_domain

CFN = 'http://cfn.invalid/v1'


class Case(deployments.DeploymentTestCase):
    def given(self, **properties):
        """Return the inputs of a deployment that is handed over."""
        self.handed.clear()
        self.answer = None
        self.stack = self.heat.stack(
            deployments.template(**properties), f's{len(self.now_names)}'
        )
        self.now_names.append(self.stack.name)
        self.task = self.heat.begin(self.stack, 'CREATE')
        self.step(self.task, 9)
        assert self.stack['deployment'].status == 'IN_PROGRESS', self.stack[
            'deployment'
        ].status_reason
        (row,) = [
            row
            for row in self.deployment_rows()
            if row.id == self.stack['deployment'].resource_id
        ]
        return {
            each['name']: each['value'] for each in row.config.config['inputs']
        }

    def setUp(self):
        super().setUp()
        self.now_names = []
        self.domain = self.enterContext(stack_domain.Domain().installed())

    def done(self):
        self.stack['deployment'].signal({})
        self.finish(self.task)
        assert self.stack.status == 'COMPLETE'


class ValidationTest(Case):
    """What a cloud cannot have is refused before there is a stack."""

    LACKING = {
        'ZAQAR_SIGNAL': wording.no_service('messaging'),
        'CFN_SIGNAL': wording.no_service('cloudformation'),
        'TEMP_URL_SIGNAL': wording.no_service('object-store'),
    }

    def setUp(self):
        super().setUp()
        del self.heat.auth.endpoints['object-store']

    def validate(self, transport, **more):
        whole = deployments.template(signal_transport=transport, **more)
        self.now_names.append(f's{len(self.now_names)}')
        # One of another request, which finds out for itself.
        self.heat.context = heat_fixture.new_context()
        self.heat.stack(whole, self.now_names[-1]).validate()

    def refused(self, transport, **more):
        error = self.assertRaises(
            exception.StackValidationFailed, self.validate, transport, **more
        )
        return str(error)

    def test_a_service_that_is_not_in_the_catalogue_is_named(self):
        for transport, lacking in self.LACKING.items():
            said = self.refused(transport)
            assert 'cannot be used; AUTO uses' in said
            assert lacking in said
            assert 'resources.deployment.properties.signal_transport' in said
        for servers in ({}, {'a': 'x'}):
            said = self.refused(
                'ZAQAR_SIGNAL',
                kind='OS::Heat::SoftwareDeploymentGroup',
                server=None,
                servers=servers,
            )
            assert wording.no_service('messaging') in said
        # A URL that could start no run.
        said = self.refused('NO_SIGNAL', trigger_url=True)
        assert 'properties.trigger_url: Servers cannot' in said

    def test_a_server_that_polls_a_url_is_told_what_works(self):
        server = {
            'type': 'OS::Heat::DeployedServer',
            'properties': {'software_config_transport': 'POLL_TEMP_URL'},
        }
        for more in (
            {'server': {'get_resource': 'host'}},
            {
                'kind': 'OS::Heat::SoftwareDeploymentGroup',
                'server': None,
                'servers': {'a': {'get_resource': 'host'}},
            },
        ):
            said = self.refused(
                'NO_SIGNAL', resources={'host': server}, **more
            )
            assert 'host has POLL_TEMP_URL' in said
            assert 'POLL_SERVER_CFN' in said

    def test_an_update_goes_on_with_what_exists(self):
        self.heat.auth.endpoints['object-store'] = 'http://swift.invalid'
        self.heat.auth.endpoints['cloudformation'] = CFN
        polling = {
            'properties': {'software_config_transport': 'POLL_SERVER_HEAT'}
        }
        whole = deployments.template(
            signal_transport='NO_SIGNAL',
            trigger_url=True,
            resources={
                'host': {'type': 'OS::Heat::DeployedServer', **polling}
            },
            server={'get_resource': 'host'},
        )
        stack = self.heat.create(whole, 'former')
        polling['properties']['software_config_transport'] = 'POLL_TEMP_URL'
        del self.heat.auth.endpoints['object-store']
        del self.heat.auth.endpoints['cloudformation']
        self.heat.context = heat_fixture.new_context()
        self.heat.preview(stack, whole)
        resources = whole['resources']
        resources['another'] = resources.pop('deployment')
        for said in ('host has POLL_TEMP_URL', 'another.properties.trigger'):
            error = self.assertRaises(
                exception.StackValidationFailed,
                self.heat.preview,
                stack,
                whole,
            )
            assert said in str(error)
            resources['another']['properties']['server'] = 'one'

    def test_what_is_there_or_needs_nothing_is_not_refused(self):
        for transport in ('AUTO', 'NO_SIGNAL', 'HEAT_SIGNAL'):
            self.validate(transport)
        self.heat.auth.endpoints['cloudformation'] = CFN
        self.validate('CFN_SIGNAL')

        # A URL of heat.conf serves without a catalogue.
        del self.heat.auth.endpoints['cloudformation']
        cfg.CONF.set_override('heat_waitcondition_server_url', CFN)
        self.addCleanup(
            cfg.CONF.clear_override, 'heat_waitcondition_server_url'
        )
        self.validate('CFN_SIGNAL')

    def test_nothing_is_refused_while_the_catalogue_cannot_be_had(self):
        real = self.heat.auth.get_endpoint

        def away(session, service_type=None, **kwargs):
            if service_type == 'orchestration':
                return real(session, service_type)
            raise ks_exceptions.ConnectFailure('away')

        self.patch(self.heat.auth, 'get_endpoint', away)
        for transport in self.LACKING:
            self.validate(transport)


class AutoTest(Case):
    def chosen(self):
        given = self.given(signal_transport='AUTO')
        assert (
            self.stack['deployment'].FnGetAtt('signal_transport')
            == given['deploy_signal_transport']
        )
        self.done()
        self.stack.persist_state_and_release_lock('x')
        return given['deploy_signal_transport']

    def test_a_temp_url_is_the_first_choice(self):
        self.heat.auth.endpoints['cloudformation'] = CFN
        assert self.chosen() == 'TEMP_URL_POLL'

    def test_a_container_is_known_of_although_no_token_is_taken_for_now(self):
        def refuse_what_comes_after(request):
            if request.method == 'PUT':
                for method in ('HEAD', 'GET', 'DELETE'):
                    self.swift.fail(1000, 401, method)

        self.swift.before = refuse_what_comes_after
        self.heat.auth.endpoints['cloudformation'] = CFN
        assert self.chosen() == 'CFN_SIGNAL'
        assert rows.CONTAINER_KEY in self.stack['deployment'].data()
        self.swift.heal()
        self.delete(self.stack)
        self.assert_nothing_left()

    def test_all_are_tried_in_turn_and_every_reason_is_given(self):
        for name, cls in transports.TRANSPORTS.items():

            def prepare(transport, by_auto):
                raise deliveries.Unusable(f'no {transport.name} here')

            if name != 'NO_SIGNAL':
                self.patch(cls, 'prepare', prepare)
        _, reason = self.fails(
            deployments.template(signal_transport='AUTO'), {}
        )
        assert (
            'cannot be used. TEMP_URL_POLL: no TEMP_URL_POLL here. '
            'ZAQAR_SIGNAL: no ZAQAR_SIGNAL here. '
            'CFN_SIGNAL: no CFN_SIGNAL here. '
            'HEAT_SIGNAL: no HEAT_SIGNAL here'
        ) in reason

    def test_what_passes_in_keystone_is_ridden_out(self):
        self.swift.denied.add(deployments.PROJECT)
        self.answer = None
        for number, error in enumerate(
            (
                ks_exceptions.ConnectFailure('no route'),
                ks_exceptions.ServiceUnavailable(),
            )
        ):
            with mock.patch.object(
                deployments.OURS['OS::Heat::SoftwareDeployment'],
                '_create_user',
                side_effect=error,
            ):
                stack, task = self.waiting_for_keystone(f'k{number}')
            self.step(task, 9)
            stack['deployment'].signal({})
            self.finish(task)
            assert stack.status == 'COMPLETE'

    def waiting_for_keystone(self, name):
        stack = self.heat.stack(
            deployments.template(signal_transport='AUTO'), name
        )
        task = self.heat.begin(stack, 'CREATE')
        assert not self.step(task, 9), stack.status_reason
        assert not self.in_metadata(stack)
        return stack, task

    def test_what_never_was_used_is_not_cleaned_up(self):
        self.heat.auth.endpoints['cloudformation'] = CFN

        def no_urls():
            self.swift = fake_swift.Cluster(tempurl=False)

        def denied():
            self.swift.denied.add(deployments.PROJECT)

        for break_store in (
            no_urls,
            lambda: self.swift.fail(1000, 503),
            lambda: self.swift.fail(1000, 401),
            denied,
        ):
            self.swift = fake_swift.Cluster()
            break_store()
            assert self.chosen() == 'CFN_SIGNAL'
            assert rows.CONTAINER_KEY not in self.stack['deployment'].data()
            # It delays no deletion, and leaves no warning.
            with self.assertNoLogs('heat_plugins.resources', 'WARNING'):
                deployment = self.stack['deployment']
                self.finish(self.heat.start(deployment.delete), 9)
            events = '\n'.join(deployments.events(self.stack))
            assert 'Cannot clean up' not in events
            self.delete(self.stack)
            self.assert_nothing_left()


class TempURLTest(Case):
    def test_a_store_that_has_moved_is_used_where_it_is(self):
        self.answer = {}
        stack = self.created()
        host = parse.urlsplit(self.swift.endpoint).netloc
        self.swift.endpoint = self.swift.endpoint.replace(host, 'new.invalid')
        self.update(stack, deployments.template(input_values={'who': 'moon'}))
        url = deployments.inputs(self.handed[-1])['deploy_signal_id']
        assert parse.urlsplit(url).netloc == 'new.invalid'

    def lifetime(self, **properties):
        url = self.given(**properties)['deploy_signal_id']
        query = parse.parse_qs(parse.urlsplit(url).query)
        return int(query['temp_url_expires'][0]) - time.time()

    def test_a_url_lives_as_long_as_the_action_may_take_and_a_margin(self):
        hour = cfg.CONF.stack_action_timeout
        self.configure(temp_url_margin=100)
        for properties, seconds in (
            ({}, hour + 100),
            ({'timeout': 60}, 160),
            ({'timeout': 10 * hour}, hour + 100),
            ({'timeout': 60, 'signal_url_lifetime': 5000}, 5000),
            ({'signal_url_lifetime': 60}, hour + 100),
        ):
            self.assertAlmostEqual(
                seconds, self.lifetime(**properties), delta=5
            )
        # The operator limits what a template may ask for.
        self.configure(temp_url_lifetime_max=1000)
        for properties, seconds in (
            ({'timeout': 60, 'signal_url_lifetime': 5000}, 1000),
            ({'timeout': 2000, 'signal_url_lifetime': 5000}, 2100),
        ):
            self.assertAlmostEqual(
                seconds, self.lifetime(**properties), delta=5
            )

    def test_a_url_is_not_for_everybody_to_read(self):
        signalling = deliveries.Signalling(
            transport='TEMP_URL_POLL',
            answers_by=deliveries.AnswersBy.OBJECT,
            url='http://secret',
        )
        assert 'secret' not in repr(signalling)

    def test_on_ceph_the_account_key_serves(self):
        self.swift = fake_swift.ceph()
        self.answer = {}
        stack = self.created()
        assert (
            '/swift/v1/'
            in deployments.inputs(self.handed[0])['deploy_signal_id']
        )
        self.delete(stack)
        self.assert_nothing_left()

    def containers(self):
        return list(self.swift.containers)


class OthersTest(Case):
    def test_a_url_of_cfn_is_valid_for_longer_than_keystones_auth_ttl(self):
        self.heat.auth.endpoints['cloudformation'] = CFN
        given = self.given(signal_transport='CFN_SIGNAL')
        url = parse.urlsplit(given['deploy_signal_id'])
        query = dict(parse.parse_qsl(url.query))
        assert 'Timestamp' not in query
        (row,) = self.deployment_rows()
        assert query['config'] == row.config.id
        # As heat-api-cfn and Keystone check it.
        signature = query.pop('Signature')
        secret = self.stack['deployment'].data()['secret_key']
        request = {
            'verb': given['deploy_signal_verb'],
            'host': url.netloc,
            'path': parse.unquote(url.path),
            'params': query,
        }
        signer = ec2_utils.Ec2Signer
        assert signer(secret).generate(request) == signature
        query['config'] = 'another'
        assert signer(secret).generate(request) != signature
        # Users and keys go with the deployment.
        self.done()
        resource = self.stack['deployment']
        self.finish(self.heat.start(resource.delete))
        assert resource.data() == {}

    def test_heat_is_handed_credentials(self):
        given = self.given(signal_transport='HEAT_SIGNAL')
        for name in ('deploy_auth_url', 'deploy_user_id', 'deploy_password'):
            assert given[name]
        assert 'deploy_signal_id' not in given
        self.done()
        assert self.swift.seen == []


class LogInTest(Case):
    """The user that a URL was made for first can log in, too."""

    def setUp(self):
        super().setUp()
        self.heat.auth.endpoints['cloudformation'] = CFN
        self.enterContext(stack_domain.with_zaqar(self.heat))
        # Heat's own show reads the queue.
        self.patch(in_process, 'take_queued', lambda context, number: None)

    def assert_logs_in(self, given):
        self.domain.stack_domain_user_token(
            given['deploy_user_id'], 'any', given['deploy_password']
        )

    def test_beside_a_trigger_url(self):
        for transport in ('HEAT_SIGNAL', 'ZAQAR_SIGNAL'):
            given = self.given(signal_transport=transport, trigger_url=True)
            self.assert_logs_in(given)
            self.done()
            self.finish(self.heat.start(self.stack['deployment'].delete))
            assert given['deploy_user_id'] not in self.domain.passwords

    def test_where_auto_falls_to_it(self):
        self.swift.denied.add(deployments.PROJECT)
        given = self.given(signal_transport='AUTO', trigger_url=True)
        assert given['deploy_signal_transport'] == 'ZAQAR_SIGNAL'
        self.assert_logs_in(given)


class ZaqarTest(Case):
    """Heat's own show reads the queue."""

    def setUp(self):
        super().setUp()
        cls = deployments.OURS['OS::Heat::SoftwareDeployment']
        self.patch(cls, '_get_zaqar_signal_queue_id', lambda self: 'queue')
        self.patch(cls, '_delete_zaqar_signal_queue', lambda self: None)
        self.heat.auth.endpoints['messaging'] = 'http://zaqar.invalid'
        self.patch(in_process, 'take_queued', lambda context, number: None)

    def test_a_stack_user_may_read_its_row(self):
        given = self.given(signal_transport='ZAQAR_SIGNAL')
        assert given['deploy_queue_id'] == 'queue'
        assert given['deploy_auth_url']
        (row,) = self.deployment_rows()
        assert row.stack_user_project_id == self.stack.stack_user_project_id
        self.done()
        assert self.swift.seen == []

    def test_without_an_endpoint_it_cannot_be_used(self):
        del self.heat.auth.endpoints['messaging']
        stack = self.heat.stack(
            deployments.template(signal_transport='ZAQAR_SIGNAL')
        )
        # It is lost after the stack was validated.
        self.patch(stack, 'validate', lambda: None)
        task = self.heat.begin(stack, 'CREATE')
        assert 'ZAQAR_SIGNAL: ' in self.failed(task, stack)


class FileSignal(transports.SignalTransport):
    """The server writes its result to a file, such as one on a share."""

    name = 'FILE'
    answers_by = deliveries.AnswersBy.QUEUE

    def prepare(self, *, by_auto):
        if not SHARE:
            raise deliveries.Unusable('no share is mounted')

    def sign(self, answer):
        (folder,) = SHARE
        file = folder / answer.object_name.replace('/', '-')
        return self._signalling(url=f'file://{file}')

    def poll(self, delivery):
        file = pathlib.Path(parse.urlsplit(delivery.signalling.url).path)
        return file.read_bytes() if file.exists() else None


SHARE = []

# What its line in the table does.
with mock.patch.dict(transports.TRANSPORTS, FILE=FileSignal):
    FileDeployment = deployment_schema.of_deployment(
        type('FileDeployment', (software_deployment.SoftwareDeployment,), {})
    )


class FileTest(Case):
    """One class and its line in the table make a transport."""

    TYPES = Case.TYPES | {'OS::Heat::SoftwareDeployment': FileDeployment}

    def setUp(self):
        super().setUp()
        self.patch(
            transports,
            'TRANSPORTS',
            {'FILE': FileSignal, **transports.TRANSPORTS},
        )
        folder = self.enterContext(tempfile.TemporaryDirectory())
        SHARE.append(pathlib.Path(folder))
        self.addCleanup(SHARE.clear)

    def written(self, given, content):
        url = parse.urlsplit(given['deploy_signal_id'])
        pathlib.Path(url.path).write_bytes(content)

    def test_a_server_is_told_the_file_and_its_answer_counts(self):
        # AUTO takes it if it can.
        given = self.given(signal_transport='AUTO')
        assert given['deploy_signal_transport'] == 'FILE'
        self.step(self.task, 20)
        assert self.stack['deployment'].status == 'IN_PROGRESS'
        self.written(given, b'{"answer": "42", "deploy_status_code": 0}')
        self.finish(self.task, 9)
        assert self.stack.status == 'COMPLETE'
        assert self.stack['deployment'].FnGetAtt('answer') == '42'
        assert self.swift.seen == []
        SHARE.clear()
        given = self.given(signal_transport='AUTO')
        assert given['deploy_signal_transport'] == 'TEMP_URL_POLL'


class DefaultTest(deployments.DeploymentTestCase):
    def test_our_option_comes_before_heats(self):
        cfg.CONF.set_override(
            'default_deployment_signal_transport', 'HEAT_SIGNAL'
        )
        self.addCleanup(
            cfg.CONF.clear_override, 'default_deployment_signal_transport'
        )
        assert config.default_signal_transport(cfg.CONF) == 'HEAT_SIGNAL'
        self.configure(default_deployment_signal_transport='AUTO')
        assert config.default_signal_transport(cfg.CONF) == 'AUTO'
