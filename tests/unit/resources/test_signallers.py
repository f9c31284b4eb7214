# SPDX-License-Identifier: Apache-2.0
"""What signals do depends on whose credentials they are sent with."""

import collections
import types
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


class SignallerTestCase(test_deployment_triggers.TriggerTestCase):
    def setUp(self):
        super().setUp()
        self.domain = self.enterContext(stack_domain.Domain().installed())
        self.heat.auth.endpoints['cloudformation'] = CFN
        # What Heat's engine would run in a thread is run at once.
        self.heat.rpc.engine.thread_group_mgr = types.SimpleNamespace(
            start=lambda stack_id, function, *args: function(*args)
        )
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
        return heat_fixture.new_context(roles=['reader'], user_id='reader')

    def policy(self, **options):
        self.patch(policy, 'ENFORCER', None)
        policy.get_enforcer()
        for name, value in options.items():
            cfg.CONF.set_override(name, value, 'oslo_policy')

    def data(self, stack):
        return set(self.heat.load(stack)['deployment'].data())

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
        self.completes(task, stack)
        return stack

    def url(self, stack, context=None):
        loaded = self.heat.load(stack, context)
        return loaded['deployment'].FnGetAtt('trigger_url')

    def test_a_server_starts_nothing_unless_the_template_permits_it(self):
        stack = self.stack()
        for context in (self.server(stack), self.own(stack)):
            said = self.send_as(stack, context, BACKUP)
            assert said == (
                "Not triggered: it was sent with credentials of the stack's "
                'servers. To permit that, set property "trigger_by_servers"'
            )
        assert self.given(stack) == []
        self.delete(stack)
        for name in ('trigger_by_servers', 'trigger_url'):
            stack = self.stack(**{name: True})
            said = self.send_as(stack, self.server(stack), BACKUP)
            assert 'of BACKUP has started' in said
            self.delete(stack)

    def test_a_trigger_url_is_there_for_those_who_may_update_the_stack(self):
        stack = self.created(self.template())
        self.update(stack, self.template(trigger_url=True))
        url = self.url(stack)
        assert '/signal/' in url
        assert 'Timestamp' not in url
        assert self.url(stack) == url
        # Asking for it is nothing to the server.
        assert self.actions() == ['CREATE']
        assert self.url(stack, self.reader()) is None
        assert self.url(stack, self.server(stack)) is None
        # With the rules of former years a reader may update stacks, too.
        self.policy(enforce_new_defaults=False)
        assert self.url(stack, self.reader()) == url
        said = self.send_as(stack, self.reader(), BACKUP)
        assert 'of BACKUP has started' in said
        self.update(stack, self.template())
        assert self.url(stack) is None
        keys = {'access_key', 'secret_key'}
        assert not {'user_id', *keys} & self.data(stack)
        # Its key goes also where the user stays.
        self.delete(stack)
        heats = {'signal_transport': 'HEAT_SIGNAL'}
        stack = self.stack(trigger_url=True, **heats)
        self.update(stack, self.template(**heats))
        assert 'user_id' in self.data(stack)
        assert not keys & self.data(stack)


class ResultTest(SignallerTestCase):
    def by_url(self, number, **details):
        url = deployments.inputs(self.handed[number])['deploy_signal_id']
        query = urllib.parse.urlsplit(url).query
        (signature,) = urllib.parse.parse_qs(query)['Signature']
        return presigned.Presigned(
            {'deploy_status_code': 0, **details}, signature
        )

    def test_its_sender_and_its_url_tell_whether_it_counts(self):
        whole = self.template(signal_transport='CFN_SIGNAL', timeout=60)
        stack, task = self.waiting(whole)
        for details in ({}, {'deploy_status_code': 1}, {body.REPORT: {}}):
            said = self.send_as(stack, self.reader(), details)
            assert 'Result refused: ' in said
            assert 'may not update the stack (policy' in said
        (row,) = self.deployment_rows()
        assert row.status == 'IN_PROGRESS'
        # Its first image had the add-on.
        named = {body.CONFIG_ID: self.handed[-1]['id']}
        self.send_as(stack, self.own(stack), named)
        self.completes(task, stack)
        # The server loses its disk.
        again, given = self.heat.load(stack), {'who': 'moon'}
        changed = self.template(
            signal_transport='CFN_SIGNAL', timeout=60, input_values=given
        )
        _, task = self.waiting(changed, 'UPDATE', again)
        own = self.own(stack)
        said = self.send_as(stack, own, self.by_url(0, deploy_status_code=7))
        assert said == (
            'Signal: Result ignored: it answers an earlier action on server '
            'server, which failed with exit code 7; UPDATE still waits'
        )
        (row,) = self.deployment_rows()
        assert row.status == 'IN_PROGRESS'
        said = self.send_as(stack, own, {})
        assert 'names none' in said
        # It no longer names a config, but came by the right URL.
        assert 'succeeded' in self.send_as(stack, own, self.by_url(-1))
        self.completes(task, again)
        # An agent that names none any more is heard after a failure.
        again = self.heat.load(stack)
        _, task = self.waiting(whole, 'UPDATE', again)
        assert 'heat_plugins_naming' in again['deployment'].data()
        assert 'within 60 s' in self.failed(task, again)
        assert 'heat_plugins_naming' not in self.data(stack)
