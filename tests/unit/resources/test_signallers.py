# SPDX-License-Identifier: Apache-2.0
"""What signals do depends on whose credentials they are sent with."""

import collections
import urllib.parse

from heat.common import messaging
from heat.common import policy
from oslo_config import cfg

from heat_plugins.signals import body
from heat_plugins.signals import presigned
from tests.unit import heat_fixture
from tests.unit.resources import deployments
from tests.unit.resources import stack_domain
from tests.unit.resources import test_deployment_triggers

BACKUP = test_deployment_triggers.BACKUP
CFN = 'http://cfn.invalid/v1'


class _Threads:
    """Runs at once what Heat's engine would run in a thread."""

    @staticmethod
    def start(stack_id, function, *args):
        function(*args)


class SignallerTestCase(test_deployment_triggers.TriggerTestCase):
    def setUp(self):
        super().setUp()
        self.domain = self.enterContext(stack_domain.Domain().installed())
        self.heat.auth.endpoints['cloudformation'] = CFN
        self.heat.rpc.engine.thread_group_mgr = _Threads()
        self.policy(enforce_new_defaults=True)
        # What Heat ships in place of Keystone knows of no project in trusts.
        cfg.CONF.set_override('deferred_auth_method', 'password')

    def send_as(self, stack, context, details, name='deployment'):
        """Signal a resource over RPC; return the event of that."""
        before = collections.Counter(deployments.events(stack))
        serializer = messaging.RequestContextSerializer
        self.heat.rpc.engine.resource_signal(
            serializer.deserialize_context(context.to_dict()),
            dict(stack.identifier()),
            name,
            details,
        )
        after = collections.Counter(deployments.events(stack))
        return '; '.join(after - before)

    def server(self, stack, user_id='of another server', **values):
        """Return the context of who has credentials of a stack."""
        again = self.heat.load(stack)
        return heat_fixture.new_context(
            user_id=user_id,
            project_id=again.stack_user_project_id,
            tenant='of stack users',
            user_domain_id='users',
            user_domain='users',
            roles=['heat_stack_user'],
            **values,
        )

    def reader(self):
        """Return the context of who has the role reader in the project."""
        return heat_fixture.new_context(roles=['reader'], user_id='reader')

    def policy(self, **options):
        """Let heat-engine read its policy again, with other options."""
        self.patch(policy, 'ENFORCER', None)
        policy.get_enforcer()
        for name, value in options.items():
            cfg.CONF.set_override(name, value, 'oslo_policy')
            self.addCleanup(cfg.CONF.clear_override, name, 'oslo_policy')

    def own(self, stack):
        """Return the context of who has what the server was given."""
        data = self.heat.load(stack)['deployment'].data()
        return self.server(stack, data['user_id'])


class TriggerTest(SignallerTestCase):
    def stack(self, **properties):
        # With a user, so that there are credentials of the stack.
        properties.setdefault('signal_transport', 'CFN_SIGNAL')
        whole = self.template(**properties)
        stack, task = self.waiting(whole)
        stack['deployment'].signal({})
        self.finish(task)
        stack.persist_state_and_release_lock('engine')
        assert stack.status == 'COMPLETE'
        return stack

    def test_a_server_starts_nothing(self):
        stack = self.stack()
        for context in (self.server(stack), self.own(stack)):
            said = self.send_as(stack, context, BACKUP)
            assert said == (
                "Not triggered: it was sent with credentials of the stack's "
                'servers. To permit that, set property "trigger_by_servers"'
            )
        assert self.given(stack) == []

    def url(self, stack, context):
        loaded = self.heat.load(stack, context)
        return loaded['deployment'].FnGetAtt('trigger_url')

    def test_who_may_not_update_the_stack_does_not_see_its_trigger_url(self):
        stack = self.stack(trigger_url=True)
        url = self.url(stack, self.heat.context)
        assert '/signal/' in url
        assert self.url(stack, self.reader()) is None
        assert self.url(stack, self.server(stack)) is None
        # With the rules of former years a reader may update stacks, too.
        self.policy(enforce_new_defaults=False)
        assert self.url(stack, self.reader()) == url
        said = self.send_as(stack, self.reader(), BACKUP)
        assert 'of BACKUP has started' in said

    def test_the_key_of_a_trigger_url_goes_where_the_user_stays(self):
        stack = self.stack(signal_transport='HEAT_SIGNAL', trigger_url=True)
        self.update(stack, self.template(signal_transport='HEAT_SIGNAL'))
        left = self.heat.load(stack)['deployment'].data()
        assert 'user_id' in left
        assert not {'access_key', 'secret_key'} & set(left)

    def test_a_template_may_permit_it(self):
        for name in ('trigger_by_servers', 'trigger_url'):
            stack = self.stack(**{name: True})
            said = self.send_as(stack, self.server(stack), BACKUP)
            assert 'of BACKUP has started' in said
            self.delete(stack)


class ResultTest(SignallerTestCase):
    """Results, and reports, of actions that are waited for."""

    def waiting_for(self, transport='CFN_SIGNAL', **properties):
        return self.waiting(
            self.template(signal_transport=transport, **properties)
        )

    def assert_refused(self, stack, context, details, why):
        said = self.send_as(stack, context, details)
        assert 'Result refused: ' in said
        assert why in said
        (row,) = self.deployment_rows()
        assert row.status == 'IN_PROGRESS'

    def named(self, **details):
        return {body.CONFIG_ID: self.handed[-1]['id'], **details}

    def by_url(self, number, **details):
        """Return a result that comes by the URL of the action so numbered."""
        inputs = self.handed[number]['inputs']
        (url,) = (
            each['value']
            for each in inputs
            if each['name'] == 'deploy_signal_id'
        )
        query = urllib.parse.urlsplit(url).query
        (signature,) = urllib.parse.parse_qs(query)['Signature']
        return presigned.Presigned(
            {'deploy_status_code': 0, **details}, signature
        )

    def rebuilt(self):
        """Return a stack, the server of which has lost its disk, in UPDATE."""
        stack, task = self.waiting_for()
        # Its first image had the add-on.
        self.send_as(stack, self.own(stack), self.named())
        self.finish(task)
        stack.persist_state_and_release_lock('engine')
        again = self.heat.load(stack)
        _, task = self.waiting(
            self.template(
                signal_transport='CFN_SIGNAL', input_values={'who': 'moon'}
            ),
            'UPDATE',
            again,
        )
        return again, task

    def test_the_url_of_a_result_tells_which_action_it_answers(self):
        stack, task = self.rebuilt()
        own = self.own(stack)
        said = self.send_as(stack, own, self.by_url(0, deploy_status_code=7))
        assert said == (
            'Signal: Result ignored: it answers an earlier action on server '
            'server, which failed with exit code 7; UPDATE still waits'
        )
        (row,) = self.deployment_rows()
        assert row.status == 'IN_PROGRESS'
        # It no longer names a config, but came by the right URL.
        assert 'succeeded' in self.send_as(stack, own, self.by_url(-1))
        self.finish(task)
        assert stack.status == 'COMPLETE'

    def test_an_agent_that_names_none_any_more_is_heard_after_a_failure(self):
        stack, task = self.waiting_for(timeout=60)
        own = self.own(stack)
        self.send_as(stack, own, self.named(**{body.REPORT: {}}))
        self.assert_refused(stack, own, {}, 'names none')
        assert 'within 60 s' in self.failed(task, stack)
        assert (
            'heat_plugins_naming'
            not in self.heat.load(stack)['deployment'].data()
        )

    def test_a_reader_answers_for_none(self):
        stack, task = self.waiting_for()
        for details in ({}, {'deploy_status_code': 1}):
            self.assert_refused(
                stack, self.reader(), details, 'may not update the stack'
            )
        report = {body.REPORT: {}}
        self.assert_refused(stack, self.reader(), report, 'policy')
        self.send_as(stack, self.own(stack), {})
        self.finish(task)
        assert stack.status == 'COMPLETE'
