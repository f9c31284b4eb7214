# SPDX-License-Identifier: Apache-2.0
"""Runs without an object store: servers answer by way of heat-api-cfn."""

import contextlib
import json
from urllib import parse

from heat.common import exception
from heat.engine.clients.os.keystone import fake_keystoneclient
from keystoneauth1 import exceptions as ks_exceptions
from keystoneclient.contrib.ec2 import utils as ec2_utils
from oslo_config import cfg
from oslo_messaging.rpc import dispatcher

from heat_plugins import errors
from heat_plugins import wording
from heat_plugins.engine import hubs
from heat_plugins.engine import patches
from heat_plugins.engine.database import resources
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_fleet
from heat_plugins.engine.runs import triggering
from heat_plugins.runs import run_store
from tests.unit import heat_fixture
from tests.unit.engine import test_run_fleet
from tests.unit.resources import deployments

CFN = 'http://cfn.invalid:8000/v1'
SECRET = 'hunter2-secret'


class _Pair:
    """A key pair, as Keystone makes it."""

    def __init__(self, number):
        self.id = f'credential-{number}'
        self.access, self.secret = f'access-{number}', f'secret-{number}'


class NoStore:
    """What Heat's client finds where the catalogue has no object store."""

    def __getattr__(self, name):
        raise errors.NoObjectStore(wording.no_service('object-store'))


def template(*names, transport='POLL_SERVER_HEAT'):
    """Return a template of servers with an action BACKUP."""
    config = deployments.component(
        (['CREATE'], '#!/bin/sh'), (['BACKUP'], '#!/bin/sh\necho backup')
    )
    config['properties']['inputs'] = [{'name': 'token', 'default': ''}]
    parts = {'config': config}
    for name in names:
        parts[f'server_{name}'] = {
            'type': 'OS::Heat::DeployedServer',
            'properties': {'software_config_transport': transport},
        }
        parts[name] = {
            'type': 'OS::Heat::SoftwareDeployment',
            'properties': {
                'config': {'get_resource': 'config'},
                'server': {'get_resource': f'server_{name}'},
                'signal_transport': 'NO_SIGNAL',
            },
        }
    return {'heat_template_version': '2021-04-16', 'resources': parts}


class PoorCase(test_run_fleet.LeadingCase):
    """A cloud that has heat-api-cfn, and no object store.

    :ivar pairs: the key pairs that Keystone has made, by user.
    """

    def setUp(self):
        super().setUp()
        self.heat.auth.endpoints['cloudformation'] = CFN
        del self.heat.auth.endpoints['object-store']
        self.patch(self.swift, 'store', lambda project: NoStore())
        for patch in patches.PATCHES:
            if patch.function == 'EngineService.resource_signal':
                self._install(patch)
        leading.install(self.leader)
        self.addCleanup(leading.install, None)
        self.pairs = []
        self.patch(
            fake_keystoneclient.FakeKeystoneClient,
            'create_stack_domain_user_keypair',
            lambda keystone, **values: self._new_pair(**values),
        )
        self.answer = None

    def _new_pair(self, user_id, project_id):
        self.pairs.append(_Pair(len(self.pairs)))
        return self.pairs[-1]

    def started(self, *names, **values):
        """Return a run on the servers of a stack; they have it."""
        self.stack = self.created(template(*(names or 'a')))
        run = self.runs.start('BACKUP', stacks=[self.stack.name], **values)
        self.go_on(3)
        return run.id

    def begun(self, **values):
        """Return a run on one server, and the URL that it has."""
        run_id = self.started(**values)
        (url,) = self.urls().values()
        return run_id, url

    def urls(self):
        """Return the URLs that servers were given for runs, by server."""
        return {
            given['deploy_server_id']: given['deploy_signal_id']
            for config in self.handed
            if (given := deployments.inputs(config))['deploy_action']
            == 'BACKUP'
        }

    def post(self, url, details, **changed):
        """POST to a URL, as heat-api-cfn hands it on."""
        query = dict(parse.parse_qsl(parse.urlsplit(url).query))
        creds = {'signature': changed.get('signature', query['Signature'])}
        context = heat_fixture.new_context(
            aws_creds=json.dumps({'ec2Credentials': creds})
        )
        self.heat.rpc.engine.resource_signal(
            context,
            dict(self.stack.identifier()),
            parse.unquote(parse.urlsplit(url).path).rpartition('/')[2],
            details,
        )

    def other_engine(self):
        """Let answers come to an engine that leads none of the runs."""
        other = self.lead('engine-2')
        leading.install(other)
        return other


class UrlTest(PoorCase):
    def test_the_key_pair_of_its_server_signs_a_url_of_its_own(self):
        self.started('a', 'b')
        first, second = self.urls().values()
        parts = parse.urlsplit(first)
        query = dict(parse.parse_qsl(parts.query))
        assert parts.netloc == 'cfn.invalid:8000'
        assert parts.path.endswith('/resources/heat-plugins-run')
        assert 'Timestamp' not in query
        signature = query.pop('Signature')
        secret = {each.access: each.secret for each in self.pairs}
        request = {
            'verb': 'POST',
            'host': parts.netloc,
            'path': parse.unquote(parts.path),
            'params': query,
        }
        signer = ec2_utils.Ec2Signer(secret[query['AWSAccessKeyId']])
        assert signer.generate(request) == signature
        other = dict(parse.parse_qsl(parse.urlsplit(second).query))
        assert other['AWSAccessKeyId'] != query['AWSAccessKeyId']

    def test_a_server_gets_one_key_pair_and_no_credentials(self):
        run_id = self.started()
        (config,) = [e for e in self.handed if 'BACKUP' in e['name']]
        given = deployments.inputs(config)
        assert [
            given[f'deploy_signal_{name}']
            for name in ('transport', 'verb', 'reports')
        ] == ['CFN_SIGNAL', 'POST', 'true']
        for name in ('password', 'log_url', 'control_url'):
            assert name not in given
        for url in self.urls().values():
            self.post(url, {})
        self.go_on(3)
        assert self.runs.show(run_id).state == 'complete'
        before = [*self.urls().values()]
        self.runs.start('BACKUP', stacks=[self.stack.name])
        self.go_on(3)
        assert [*self.urls().values()] != before
        assert len(self.pairs) == 1

    def test_one_with_poll_server_cfn_has_a_pair_already(self):
        self.stack = self.created(template('a', transport='POLL_SERVER_CFN'))
        kept = self.heat.load(self.stack)['server_a'].data()
        made = len(self.pairs)
        self.runs.start('BACKUP', stacks=[self.stack.name])
        self.go_on(3)
        (url,) = self.urls().values()
        assert f'AWSAccessKeyId={kept["access_key"]}' in url
        assert len(self.pairs) == made

    def test_two_engines_may_make_it_at_once_and_both_urls_work(self):
        stack = self.created(template('a'))
        server_id = self.heat.load(stack)['server_a'].resource_id
        servers = resources.find_all(self.heat.context, [server_id])

        def url(attempt):
            key = run_store.TargetKey(run_id='r', number=0, attempt=attempt)
            given = run_fleet.cfn_inputs(stack, key, servers[server_id])
            return given['deploy_signal_id']

        def make(keystone, **values):
            pair = self._new_pair(**values)
            if len(self.pairs) == 1:
                # While Keystone answers, another engine needs one, too.
                found.append(url(2))
            return pair

        found = []
        self.patch(
            fake_keystoneclient.FakeKeystoneClient,
            'create_stack_domain_user_keypair',
            make,
        )
        found.append(url(1))
        second, first = found
        assert f'AWSAccessKeyId={self.pairs[0].access}&' in first
        assert f'AWSAccessKeyId={self.pairs[1].access}&' in second
        # One of them is kept, with its secret.
        assert url(1) == first
        assert len(self.pairs) == 2

    def test_the_address_that_heat_conf_names_counts(self):
        cfg.CONF.set_override(
            'heat_waitcondition_server_url',
            'http://elsewhere.invalid/v1/waitcondition',
        )
        del self.heat.auth.endpoints['cloudformation']
        _, url = self.begun()
        assert url.startswith('http://elsewhere.invalid/v1/signal/')

    def test_a_server_without_a_user_fails_and_says_why(self):
        self.patch(resources, 'secrets', lambda context, number: {})
        run_id = self.started()
        (target,) = self.targets(run_id)
        assert target.state == 'failed'
        assert 'set its software_config_transport' in target.reason

    def test_keystone_that_does_not_answer_is_asked_again(self):
        def fail(keystone, user_id, project_id):
            raise ks_exceptions.ConnectFailure

        with self.assertLogs(level='INFO'):
            self.patch(
                fake_keystoneclient.FakeKeystoneClient,
                'create_stack_domain_user_keypair',
                fail,
            )
            run_id = self.started()
        assert self.states(run_id) == ['pending']
        self.patch(
            fake_keystoneclient.FakeKeystoneClient,
            'create_stack_domain_user_keypair',
            lambda keystone, **values: self._new_pair(**values),
        )
        self.go_on(10)
        assert self.states(run_id) == ['waiting']

    def test_a_store_that_refuses_its_owner_is_as_good_as_none(self):
        self.patch(
            self.swift, 'store', type(self.swift).store.__get__(self.swift)
        )
        self.heat.auth.endpoints['object-store'] = 'http://swift.invalid'
        self.swift.denied.add(deployments.PROJECT)
        _, url = self.begun()
        assert 'cfn.invalid' in url


class AnswerTest(PoorCase):
    def test_results_end_the_run_and_no_token_is_asked_for(self):
        run_id = self.started('a', 'b')
        adopted = []
        self.patch(hubs.Hub, 'adopt', lambda hub, stack: adopted.append(hub))
        self.go_on(5)
        for url in self.urls().values():
            self.post(url, {'answer': 'saved', 'deploy_stdout': 'out'})
            self.leader.turn()
        self.go_on(1)
        assert self.runs.show(run_id).state == 'complete'
        for target in self.targets(run_id):
            assert target.outputs['answer'] == 'saved'
        assert adopted == []
        assert [
            each for each in self.deployment_rows() if each.action == 'BACKUP'
        ] == []

    def test_an_engine_that_does_not_lead_the_run_ends_it(self):
        run_id = self.started('a', 'b')
        other = self.other_engine()
        first, second = self.urls().values()
        self.post(first, {})
        assert len(other) == 0
        assert sorted(self.states(run_id)) == ['complete', 'waiting']
        self.post(second, {'deploy_status_code': 3})
        other.turn()
        assert self.runs.show(run_id).state == 'failed'
        self.go_on(2)
        assert len(self.leader) == 0

    def test_the_leader_sees_what_came_to_another_engine(self):
        run_id = self.started('a', 'b', limits={'max_concurrent': 1})
        self.other_engine()
        (url,) = self.urls().values()
        self.post(url, {})
        self.go_on(5)
        assert self.states(run_id) == ['complete', 'waiting']

    def test_a_report_says_that_the_server_has_started(self):
        run_id = self.started()
        (attempt,) = self.store.load(run_id).run.attempts
        (url,) = self.urls().values()
        report = {'deploy_progress': {}, 'deploy_config_id': 'another'}
        self.post(url, report)
        assert self.states(run_id) == ['waiting']
        self.post(url, {**report, 'deploy_config_id': attempt.config_id})
        assert self.states(run_id) == ['running']

    def test_outputs_are_whole_and_secrets_of_a_reason_are_masked(self):
        run_id, url = self.begun(inputs={'token': SECRET})
        printed = 'x' * 50_000
        self.post(
            url,
            {
                'deploy_status_code': 1,
                'deploy_stdout': printed,
                'deploy_stderr': f'no {SECRET}',
            },
        )
        (target,) = self.targets(run_id)
        assert target.outputs['deploy_stdout'] == printed
        assert target.cut == {}
        assert 'exit status' in target.reason
        assert SECRET not in target.reason

    def test_of_outputs_over_the_limit_the_end_is_kept(self):
        run_id, url = self.begun()
        self.post(url, {'deploy_stdout': 'x' * 100_000 + 'end'})
        (target,) = self.targets(run_id)
        assert target.cut['deploy_stdout'] == 100_003
        assert target.outputs['deploy_stdout'].endswith('end')

    def test_a_script_of_the_users_own_answers_so_too(self):
        self.stack = self.created(template('a'))
        run = self.runs.start(
            'BACKUP',
            stacks=[self.stack.name],
            resources=['server_a'],
            config={'group': 'script', 'config': '#!/bin/sh\ndate'},
        )
        self.go_on(3)
        (url,) = self.urls().values()
        self.post(url, {})
        self.go_on(2)
        assert self.runs.show(run.id).state == 'complete'

    def test_a_timeout_names_what_may_have_been_lost(self):
        run_id = self.started(limits={'timeout': 5})
        self.ahead = 2**32
        self.go_on(5)
        (target,) = self.targets(run_id)
        assert target.state == 'timed-out'
        assert 'refuses results over 1 MiB' in target.reason

    def test_what_is_cancelled_is_withdrawn_and_not_stopped(self):
        run_id = self.started()
        self.runs.cancel(run_id)
        self.go_on(3)
        (target,) = self.targets(run_id)
        assert target.state == 'cancelled'
        assert 'cannot stop a script that has started' in target.reason
        given = self.heat.load(self.stack)['server_a'].metadata_get()
        names = [each['name'] for each in given['deployments']]
        assert [each for each in names if 'BACKUP' in each] == []


class UnwantedTest(PoorCase):
    """What is refused or ignored, with a line in the log; nothing is kept."""

    @contextlib.contextmanager
    def unwanted(self):
        """Hold that nothing is stored, and that one line is logged."""
        before = self.targets_stored()
        with self.assertLogs('heat_plugins', 'INFO') as logs:
            yield
        assert len(logs.output) == 1, logs.output
        assert self.targets_stored() == before

    def targets_stored(self):
        return [
            (found.run.attempts, found.revisions)
            for found in self.stored().values()
        ]

    def ignored(self, url, details=None):
        with self.unwanted():
            self.post(url, {} if details is None else details)

    def assert_refused(self, url, details, **changed):
        with (
            self.unwanted(),
            self.assertRaises(dispatcher.ExpectedException) as caught,
        ):
            self.post(url, details, **changed)
        # As heat-api-cfn makes 400 of it.
        assert caught.exception.exc_info[0] is exception.ResourceNotFound

    def test_what_comes_a_second_time_is(self):
        _, url = self.begun()
        self.post(url, {'answer': 'first'})
        for _ in range(3):
            self.ignored(url, {'answer': 'second'})

    def test_so_is_what_comes_after_a_cancel(self):
        run_id, url = self.begun()
        self.runs.cancel(run_id)
        self.go_on(3)
        self.ignored(url)

    def test_and_what_comes_after_the_run_was_deleted(self):
        run_id, url = self.begun()
        self.post(url, {})
        self.go_on(3)
        self.runs.delete(run_id)
        self.assert_refused(url, {})

    def test_and_what_answers_an_attempt_before_the_last(self):
        run_id, url = self.begun()
        self.post(url, {'deploy_status_code': 1})
        self.go_on(3)
        self.runs.retry(run_id)
        self.go_on(3)
        assert self.states(run_id) == ['waiting']
        self.assert_refused(url, {})

    def test_and_another_run_under_a_valid_signature(self):
        _, url = self.begun()
        # The server has signed it with its own key pair, as it can.
        self.assert_refused(url, {}, signature='c2lnbmVk')

    def test_and_what_is_no_map(self):
        _, url = self.begun()
        for details in (None, [], 'text', 5):
            self.assert_refused(url, details)

    def test_and_all_after_another_client_has_deleted_its_deployment(self):
        _, url = self.begun()
        (row,) = [e for e in self.deployment_rows() if e.action == 'BACKUP']
        self.heat.rpc.delete_software_deployment(self.heat.context, row.id)
        self.ignored(url)

    def test_a_signal_of_a_resource_is_none_of_it(self):
        _, url = self.begun()
        other = url.replace('/resources/heat-plugins-run', '/resources/a')
        assert other != url
        self.patch(triggering, 'take', None)
        with self.assertRaises(Exception) as caught:
            self.post(url.replace('heat-plugins-run', 'no-such'), {})
        assert 'no-such' in str(caught.exception.exc_info[1])

    def test_a_database_that_is_away_lets_the_agent_send_again(self):
        _, url = self.begun()

        def away(store, signature):
            raise errors.Unavailable('away')

        self.patch(type(self.store), 'awaiting', away)
        with self.assertRaises(dispatcher.ExpectedException) as caught:
            self.post(url, {})
        # 500, and not 400.
        assert caught.exception.exc_info[0] is exception.Error


class NoWayTest(PoorCase):
    """A cloud with neither an object store nor heat-api-cfn."""

    def setUp(self):
        super().setUp()
        del self.heat.auth.endpoints['cloudformation']

    def test_nothing_starts_and_a_dry_run_says_so_too(self):
        stack = self.created(template('a'))
        for start in (self.runs.start, self.runs.select):
            with self.assertRaises(errors.Error) as caught:
                start('BACKUP', stacks=[stack.name])
            said = str(caught.exception)
            assert wording.no_service(*wording.RESULTS) in said
            assert 'ask an operator' in said
        assert self.stored() == {}

    def test_a_signal_starts_nothing_either(self):
        stack = self.created(template('a'))
        self.heat.load(stack)['a'].signal({'trigger': 'BACKUP'})
        events = '\n'.join(deployments.events(stack))
        assert 'Servers cannot send the results of runs' in events
        assert self.stored() == {}


class NeedsTest(PoorCase):
    def test_a_limit_of_live_output_needs_an_object_store(self):
        stack = self.created(template('a'))
        with self.assertRaises(errors.Error) as caught:
            self.runs.start('BACKUP', stacks=[stack.name], log_limit=1_000_000)
        assert 'needs an object store' in str(caught.exception)
