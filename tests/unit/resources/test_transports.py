# SPDX-License-Identifier: Apache-2.0
"""Which signal transport an action uses, and what it makes for that."""

import contextlib
import pathlib
import tempfile
import time
from unittest import mock
from urllib import parse

import fixtures
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


class Case(deployments.DeploymentTestCase):
    def given(self, **properties):
        self.handed.clear()
        self.answer = None
        self.stack = self.heat.stack(
            deployments.template(**properties), self.getUniqueString()
        )
        self.task = self.heat.begin(self.stack, 'CREATE')
        self.step(self.task, 9)
        resource = self.stack['deployment']
        assert resource.status == 'IN_PROGRESS', resource.status_reason
        self.row = next(
            row
            for row in self.deployment_rows()
            if row.id == resource.resource_id
        )
        return deployments.inputs(self.row.config.config)

    def setUp(self):
        super().setUp()
        self.domain = self.enterContext(stack_domain.Domain().installed())

    def done(self):
        self.stack['deployment'].signal({})
        self.completes(self.task, self.stack)

    def gone(self):
        self.done()
        self.finish(self.heat.start(self.stack['deployment'].delete))


class ValidationTest(Case):
    def validate(self, transport, **more):
        whole = deployments.template(signal_transport=transport, **more)
        # One of another request, which finds out for itself.
        self.heat.context = heat_fixture.new_context()
        self.heat.stack(whole, self.getUniqueString()).validate()

    def refused(self, *given, **more):
        call = exception.StackValidationFailed, self.validate, *given
        return str(self.assertRaises(*call, **more))

    def test_what_a_cloud_lacks_is_refused_before_there_is_a_stack(self):
        endpoints = self.heat.auth.endpoints
        endpoints['cloudformation'] = deployments.CFN
        host = deployments.template()['resources']['server']
        whole = deployments.template(
            signal_transport='NO_SIGNAL',
            trigger_url=True,
            resources={'host': host},
            server={'get_resource': 'host'},
        )
        stack = self.heat.create(whole, 'former')
        self.validate('CFN_SIGNAL')
        del endpoints['object-store'], endpoints['cloudformation']
        lacking = {
            'ZAQAR_SIGNAL': 'messaging',
            'CFN_SIGNAL': 'cloudformation',
            'TEMP_URL_SIGNAL': 'object-store',
        }
        group = {'kind': 'OS::Heat::SoftwareDeploymentGroup', 'server': None}
        for transport, service in lacking.items():
            for servers in (None, {}, {'a': 'x'}):
                more = {} if servers is None else group | {'servers': servers}
                said = self.refused(transport, **more)
                assert 'cannot be used; AUTO uses' in said
                assert wording.no_service(service) in said
                assert 'properties.signal_transport' in said
        # A URL that could start no run.
        said = self.refused('NO_SIGNAL', trigger_url=True)
        assert 'properties.trigger_url: Servers cannot' in said
        for transport in ('AUTO', 'NO_SIGNAL', 'HEAT_SIGNAL'):
            self.validate(transport)
        # A server that polls a URL is told what works.
        host['properties']['software_config_transport'] = 'POLL_TEMP_URL'
        server = {'get_resource': 'host'}
        for more in ({'server': server}, {**group, 'servers': {'a': server}}):
            said = self.refused('NO_SIGNAL', resources={'host': host}, **more)
            assert 'host has POLL_TEMP_URL' in said
            assert 'POLL_SERVER_CFN' in said
        # An update goes on with what exists.
        self.heat.preview(stack, whole)
        parts = whole['resources']
        parts['another'] = parts.pop('deployment')
        for said in ('host has POLL_TEMP_URL', 'another.properties.trigger'):
            why, call = exception.StackValidationFailed, self.heat.preview
            assert said in str(self.assertRaises(why, call, stack, whole))
            parts['another']['properties']['server'] = 'one'
        # A URL of heat.conf serves without a catalogue.
        name = 'heat_waitcondition_server_url'
        cfg.CONF.set_override(name, deployments.CFN)
        self.validate('CFN_SIGNAL')
        cfg.CONF.clear_override(name)
        # Nothing is refused while the catalogue cannot be had.
        real = self.heat.auth.get_endpoint

        def away(session, service_type=None, **kwargs):
            if service_type == 'orchestration':
                return real(session, service_type)
            raise ks_exceptions.ConnectFailure('away')

        self.patch(self.heat.auth, 'get_endpoint', away)
        for transport in lacking:
            self.validate(transport)


class AutoTest(Case):
    def chosen(self):
        given = self.given(signal_transport='AUTO')
        chosen = given['deploy_signal_transport']
        shown = self.stack['deployment'].FnGetAtt('signal_transport')
        assert shown == chosen
        return chosen

    def test_the_first_usable_one_is_chosen_and_no_other_cleaned_up(self):
        self.heat.auth.endpoints['cloudformation'] = deployments.CFN
        assert self.chosen() == 'TEMP_URL_POLL'
        self.done()
        self.delete(self.stack)

        for status, has_urls in ((0, False), (503, True), (401, True)):
            self.swift = fake_swift.Cluster(tempurl=has_urls)
            self.swift.fail(1000 if status else 0, status)
            assert self.chosen() == 'CFN_SIGNAL'
            self.done()
            found = self.stack['deployment']
            assert rows.CONTAINER_KEY not in found.data()
            # It delays no deletion, and leaves no warning.
            with self.assertNoLogs('heat_plugins.resources', 'WARNING'):
                self.finish(self.heat.start(found.delete), 9)
            events = '\n'.join(deployments.events(self.stack))
            assert 'Cannot clean up' not in events
            self.delete(self.stack)
            self.assert_nothing_left()
        # A container is known of although no token is taken for now.
        self.swift = fake_swift.Cluster()

        def refuse_what_comes_after(request):
            for method in ('HEAD', 'GET', 'DELETE'):
                self.swift.fail(1000 * (request.method == 'PUT'), 401, method)

        self.swift.before = refuse_what_comes_after
        assert self.chosen() == 'CFN_SIGNAL'
        self.done()
        assert rows.CONTAINER_KEY in self.stack['deployment'].data()
        self.swift.heal()
        self.delete(self.stack)
        # What passes in Keystone is ridden out.
        self.swift = fake_swift.Cluster()
        self.swift.denied.add(deployments.PROJECT)
        kind = deployments.OURS['OS::Heat::SoftwareDeployment']
        whole = deployments.template(signal_transport='AUTO')
        for error in (
            ks_exceptions.ConnectFailure('no route'),
            ks_exceptions.ServiceUnavailable(),
        ):
            stack = self.heat.stack(whole, self.getUniqueString())
            with mock.patch.object(kind, '_create_user', side_effect=error):
                self.stack, self.task = self.waiting(stack=stack)
                assert not self.in_metadata(self.stack)
            self.step(self.task, 9)
            self.done()
        # All are tried in turn, and every reason is given.
        tried = 'TEMP_URL_POLL', 'ZAQAR_SIGNAL', 'CFN_SIGNAL', 'HEAT_SIGNAL'
        for name in tried:
            fail = mock.Mock(side_effect=deliveries.Unusable(f'{name} fails'))
            self.patch(transports.TRANSPORTS[name], 'prepare', fail)
        _, reason = self.fails(whole, {})
        said = '. '.join(f'{name}: {name} fails' for name in tried)
        assert f'cannot be used. {said}' in reason


class UrlTest(Case):
    def test_a_temp_url_lives_as_long_as_its_action_may_and_a_margin(self):
        # On Ceph the account's key serves.
        self.swift = fake_swift.ceph()
        stack = self.created()
        url = deployments.inputs(self.handed[-1])['deploy_signal_id']
        assert '/swift/v1/' in url
        # A store that has moved is used where it is.
        host = parse.urlsplit(self.swift.endpoint).netloc
        self.swift.endpoint = self.swift.endpoint.replace(host, 'new.invalid')
        self.update(stack, deployments.template(input_values={'who': 'moon'}))
        url = deployments.inputs(self.handed[-1])['deploy_signal_id']
        assert parse.urlsplit(url).netloc == 'new.invalid'
        self.delete(stack)
        self.swift = fake_swift.Cluster()
        hour = cfg.CONF.stack_action_timeout
        self.configure(temp_url_margin=100)
        short = {'timeout': 60, 'signal_url_lifetime': 5000}
        for limit, properties, seconds in (
            (None, {}, hour + 100),
            (None, {'timeout': 60}, 160),
            (None, {'timeout': 10 * hour}, hour + 100),
            (None, short, 5000),
            (None, {'signal_url_lifetime': 60}, hour + 100),
            # The operator limits what a template may ask for.
            (1000, short, 1000),
            (1000, {**short, 'timeout': 2000}, 2100),
        ):
            self.configure(temp_url_lifetime_max=limit)
            url = self.given(**properties)['deploy_signal_id']
            query = parse.parse_qs(parse.urlsplit(url).query)
            found = int(query['temp_url_expires'][0]) - time.time()
            self.assertAlmostEqual(seconds, found, delta=5)

    def test_others_are_given_what_they_answer_with(self):
        self.heat.auth.endpoints['cloudformation'] = deployments.CFN
        given = self.given(signal_transport='CFN_SIGNAL')
        url = parse.urlsplit(given['deploy_signal_id'])
        query = dict(parse.parse_qsl(url.query))
        # It is valid for longer than Keystone's auth_ttl.
        assert 'Timestamp' not in query
        assert query['config'] == self.row.config.id
        # As heat-api-cfn and Keystone check it.
        signature = query.pop('Signature')
        secret = self.stack['deployment'].data()['secret_key']
        request = {'verb': given['deploy_signal_verb'], 'host': url.netloc}
        request |= {'path': parse.unquote(url.path), 'params': query}
        signer = ec2_utils.Ec2Signer
        assert signer(secret).generate(request) == signature
        query['config'] = 'another'
        assert signer(secret).generate(request) != signature
        # Users and keys go with the deployment.
        self.gone()
        assert self.stack['deployment'].data() == {}
        self.enterContext(stack_domain.with_zaqar(self.heat))
        # Heat's own show reads the queue.
        self.patch(in_process, 'take_queued', lambda context, number: None)
        for wanted, is_denied in (
            ('HEAT_SIGNAL', False),
            ('ZAQAR_SIGNAL', False),
            ('AUTO', True),
        ):
            if is_denied:
                self.swift.denied.add(deployments.PROJECT)
            # The user that a URL was made for first can log in, too.
            for has_url in (False, True):
                more = {'trigger_url': has_url}
                given = self.given(signal_transport=wanted, **more)
                assert given['deploy_auth_url']
                assert 'deploy_signal_id' not in given
                user_id = given['deploy_user_id']
                self.domain.stack_domain_user_token(
                    user_id, 'any', given['deploy_password']
                )
                if wanted != 'HEAT_SIGNAL':
                    chosen = given['deploy_signal_transport']
                    assert chosen == 'ZAQAR_SIGNAL'
                    assert given['deploy_queue_id']
                    # A user of the stack may read the row.
                    users = self.stack.stack_user_project_id
                    assert self.row.stack_user_project_id == users
                self.gone()
                assert user_id not in self.domain.passwords
        # Without an endpoint it cannot be used: it is lost after the stack
        # was validated.
        del self.heat.auth.endpoints['messaging']
        self.heat.context = heat_fixture.new_context()
        stack = self.heat.stack(
            deployments.template(signal_transport='ZAQAR_SIGNAL'), 'lost'
        )
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
        table = {'FILE': FileSignal, **transports.TRANSPORTS}
        self.patch(transports, 'TRANSPORTS', table)
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
        log = self.useFixture(fixtures.FakeLogger())
        given = self.given(signal_transport='AUTO')
        assert given['deploy_signal_transport'] == 'TEMP_URL_POLL'
        assert 'uses TEMP_URL_POLL; these' in log.output
        assert 'unavailable: FILE: ' in log.output


def test_our_option_of_the_default_comes_before_heats():
    name = 'default_deployment_signal_transport'
    config.register_opts(cfg.CONF)
    with contextlib.ExitStack() as cleanup:
        for group, value in ((None, 'HEAT_SIGNAL'), (config.GROUP, 'AUTO')):
            cfg.CONF.set_override(name, value, group)
            cleanup.callback(cfg.CONF.clear_override, name, group)
            assert config.default_signal_transport(cfg.CONF) == value
