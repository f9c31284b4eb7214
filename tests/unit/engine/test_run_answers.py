# SPDX-License-Identifier: Apache-2.0
"""Runs without an object store: servers answer by way of heat-api-cfn."""

import contextlib
import json
import types
from unittest import mock
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
from heat_plugins.runs import run_store
from tests.unit import heat_fixture
from tests.unit.engine import test_run_fleet
from tests.unit.resources import deployments

CFN = 'http://cfn.invalid:8000/v1'
SECRET = 'hunter2-secret'
PAIR = 'access', 'secret'


class NoStore:
    """What Heat's client finds where the catalogue has no object store."""

    def __getattr__(self, name):
        raise errors.NoObjectStore(wording.no_service('object-store'))


def template(*names):
    return test_run_fleet.template(*names, signal_transport='NO_SIGNAL')


class PoorCase(test_run_fleet.LeadingCase):
    """A cloud that has heat-api-cfn, and no object store.

    :ivar pairs: the key pairs that Keystone has made.
    """

    def setUp(self):
        super().setUp()
        self.heat.auth.endpoints['cloudformation'] = CFN
        del self.heat.auth.endpoints['object-store']
        self.patch(self.swift, 'store', lambda project: NoStore())
        for patch in patches.PATCHES:
            if patch.function == 'EngineService.resource_signal':
                self._install(patch)
        self.pairs = []
        self.make_pairs(self.new_pair)
        self.answer = None

    def make_pairs(self, make):
        self.patch(
            fake_keystoneclient.FakeKeystoneClient,
            'create_stack_domain_user_keypair',
            lambda keystone, **_: make(),
        )

    def new_pair(self):
        names = {each: f'{each}-{len(self.pairs)}' for each in PAIR}
        self.pairs.append(types.SimpleNamespace(**names))
        return self.pairs[-1]

    def started(self, *names, **values):
        self.stack = self.created(template(*(names or 'a')))
        run = self.runs.start('BACKUP', stacks=[self.stack.name], **values)
        self.go_on(3)
        return run.id

    def begun(self, **values):
        run_id = self.started(**values)
        (url,) = self.urls().values()
        return run_id, url

    def urls(self):
        return {
            given['deploy_server_id']: given['deploy_signal_id']
            for given in map(deployments.inputs, self.backups())
        }

    def post(self, url, details, **changed):
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


class UrlTest(PoorCase):
    def test_the_one_key_pair_of_its_server_signs_a_url_of_its_own(self):
        run_id = self.started('a', 'b')
        given = deployments.inputs(self.backups()[0])
        names = ('transport', 'verb', 'reports')
        signal = [given[f'deploy_signal_{name}'] for name in names]
        assert signal == ['CFN_SIGNAL', 'POST', 'true']
        for name in ('password', 'log_url', 'control_url'):
            assert name not in given
        urls = first, second = [*self.urls().values()]
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
        for url in urls:
            self.post(url, {})
        self.go_on(3)
        assert self.runs.show(run_id).state == 'complete'
        self.runs.start('BACKUP', stacks=[self.stack.name])
        self.go_on(3)
        assert not {*urls} & {*self.urls().values()}
        assert len(self.pairs) == 2

    def test_one_with_poll_server_cfn_has_a_pair_already(self):
        whole = template('a')
        server = whole['resources']['server_a']['properties']
        server['software_config_transport'] = 'POLL_SERVER_CFN'
        self.stack = self.created(whole)
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

        def make():
            pair = self.new_pair()
            if len(self.pairs) == 1:
                # While Keystone answers, another engine needs one, too.
                found.append(url(2))
            return pair

        found = []
        self.make_pairs(make)
        found.append(url(1))
        second, first = found
        assert f'AWSAccessKeyId={self.pairs[0].access}&' in first
        assert f'AWSAccessKeyId={self.pairs[1].access}&' in second
        # One of them is kept, with its secret.
        assert url(1) == first
        assert len(self.pairs) == 2

    def test_the_address_that_heat_conf_names_counts(self):
        url = 'http://elsewhere.invalid/v1/waitcondition'
        cfg.CONF.set_override('heat_waitcondition_server_url', url)
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
        self.make_pairs(mock.Mock(side_effect=ks_exceptions.ConnectFailure))
        run_id = self.started()
        assert self.states(run_id) == ['pending']
        self.make_pairs(self.new_pair)
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
        assert self.rows_of_runs() == []

    def test_what_comes_to_another_engine_is_seen_by_the_leader(self):
        run_id = self.started('a', 'b', limits={'max_concurrent': 1})
        # Answers come to an engine that leads none of the runs.
        other = self.lead('engine-2')
        leading.install(other)
        (first,) = self.urls().values()
        with self.assertNoLogs('heat_plugins.engine.runs.triggering'):
            self.post(first, {})
        assert other.turn() is None
        self.go_on(5)
        assert self.states(run_id) == ['complete', 'waiting']
        (second,) = {*self.urls().values()} - {first}
        with self.assertNoLogs('heat_plugins.engine.runs.triggering'):
            self.post(second, {'deploy_status_code': 3})
        self.go_on(5)
        assert self.runs.show(run_id).state == 'failed'

    def test_a_report_says_that_the_server_has_started(self):
        run_id = self.started()
        (attempt,) = self.store.load(run_id).run.attempts
        (url,) = self.urls().values()
        report = {'deploy_progress': {}, 'deploy_config_id': 'another'}
        self.post(url, report)
        assert self.states(run_id) == ['waiting']
        self.post(url, {**report, 'deploy_config_id': attempt.config_id})
        assert self.states(run_id) == ['running']

    def test_of_outputs_the_end_is_kept_and_a_reason_is_masked(self):
        run_id, url = self.begun(inputs={'token': SECRET})
        details = {'answer': 'x' * 50_000, 'deploy_stderr': f'no {SECRET}'}
        details['deploy_stdout'] = 'x' * 100_000 + 'end'
        self.post(url, {'deploy_status_code': 1, **details})
        (target,) = self.targets(run_id)
        assert target.outputs['answer'] == 'x' * 50_000
        assert target.cut == {'deploy_stdout': 100_003}
        assert target.outputs['deploy_stdout'].endswith('end')
        assert 'exit status' in target.reason
        assert SECRET not in target.reason

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
        assert not [e for e in given['deployments'] if 'BACKUP' in e['name']]


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
        found = self.stored().values()
        return [(each.run.attempts, each.revisions) for each in found]

    def ignored(self, url):
        with self.unwanted():
            self.post(url, {})

    def assert_refused(self, url, details, **changed):
        with (
            self.unwanted(),
            self.assertRaises(dispatcher.ExpectedException) as caught,
        ):
            self.post(url, details, **changed)
        # As heat-api-cfn makes 400 of it.
        assert caught.exception.exc_info[0] is exception.ResourceNotFound

    def test_what_is_no_answer_comes_again_or_after_the_run_was_deleted(self):
        run_id, url = self.begun()
        # The server has signed it with its own key pair, as it can.
        self.assert_refused(url, {}, signature='c2lnbmVk')
        for details in (None, [], 'text', 5):
            self.assert_refused(url, details)
        self.post(url, {'answer': 'first'})
        for _ in range(3):
            self.ignored(url)
        self.go_on(3)
        self.runs.delete(run_id)
        self.assert_refused(url, {})

    def test_so_is_what_comes_after_a_cancel_or_a_retry(self):
        run_id, url = self.begun()
        self.runs.cancel(run_id)
        self.go_on(3)
        self.ignored(url)
        self.runs.retry(run_id)
        self.go_on(3)
        assert self.states(run_id) == ['waiting']
        self.assert_refused(url, {})

    def test_and_all_after_another_client_has_deleted_its_deployment(self):
        _, url = self.begun()
        (row,) = self.rows_of_runs()
        self.heat.rpc.delete_software_deployment(self.heat.context, row.id)
        self.ignored(url)

    def test_a_signal_of_a_resource_is_none_of_it(self):
        _, url = self.begun()
        other = url.replace('heat-plugins-run', 'deployment')
        assert other != url
        self.patch(type(self.store), 'awaiting', None)
        with self.assertRaises(Exception) as caught:
            self.post(url.replace('heat-plugins-run', 'no-such'), {})
        assert 'no-such' in str(caught.exception.exc_info[1])

    def test_a_database_that_is_away_lets_the_agent_send_again(self):
        _, url = self.begun()
        away = mock.Mock(side_effect=errors.Unavailable('away'))
        self.patch(type(self.store), 'awaiting', away)
        with self.assertRaises(dispatcher.ExpectedException) as caught:
            self.post(url, {})
        # 500, and not 400.
        assert caught.exception.exc_info[0] is exception.Error


class NoWayTest(PoorCase):
    def refused(self, said, start, **order):
        with self.assertRaises(errors.Error) as caught:
            start('BACKUP', stacks=[self.stack.name], **order)
        assert said in str(caught.exception)
        assert self.stored() == {}

    def test_live_output_needs_an_object_store(self):
        self.stack = self.created(template('a'))
        said = 'needs an object store'
        self.refused(said, self.runs.start, log_limit=1_000_000)

    def test_without_heat_api_cfn_too_nothing_starts(self):
        del self.heat.auth.endpoints['cloudformation']
        self.stack = self.created(template('a'))
        lacking = wording.no_service(*wording.RESULTS)
        for start in (self.runs.start, self.runs.select):
            self.refused(lacking, start)
        self.heat.load(self.stack)['deployment'].signal({'trigger': 'BACKUP'})
        events = '\n'.join(deployments.events(self.stack))
        assert 'Servers cannot send the results of runs' in events
        assert self.stored() == {}
