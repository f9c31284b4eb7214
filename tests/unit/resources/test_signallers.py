# SPDX-License-Identifier: Apache-2.0
"""What signals do depends on whose credentials they are sent with."""

import collections
from unittest import mock
import urllib.parse

from heat.common import context as heat_context
from heat.common import messaging
from heat.common import policy
from oslo_config import cfg

from heat_plugins.engine import callers
from heat_plugins.engine.database import resources
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
        self.assertEqual('COMPLETE', stack.status)
        return stack

    def test_a_server_starts_nothing(self):
        stack = self.stack()
        for context in (self.server(stack), self.own(stack)):
            said = self.send_as(stack, context, BACKUP)
            self.assertEqual(
                "Not triggered: it was sent with credentials of the stack's "
                'servers. To permit that, set property "trigger_by_servers"',
                said,
            )
        self.assertEqual([], self.given(stack))

    def test_a_user_of_the_project_does_and_an_administrator(self):
        admin = heat_fixture.new_context(
            project_id='another', is_admin=True, roles=['admin', 'member']
        )
        for context in (self.heat.context, admin):
            stack = self.stack()
            said = self.send_as(stack, context, BACKUP)
            self.assertIn('of BACKUP has started', said)
            self.delete(stack)

    def test_a_reader_starts_nothing_whatever_the_template_permits(self):
        for name in ('trigger_by_servers', 'trigger_url'):
            stack = self.stack(**{name: True})
            for details in (BACKUP, {'run': {'action': 'BACKUP'}}):
                said = self.send_as(stack, self.reader(), details)
                self.assertEqual(
                    'Not triggered: its sender may not update the stack '
                    '(policy stacks:update of Heat)',
                    said,
                )
            self.assertEqual([], self.given(stack))
            self.delete(stack)

    def test_the_policy_of_heat_decides(self):
        # With the rules of former years a reader may update stacks, too.
        self.policy(enforce_new_defaults=False)
        stack = self.stack()
        said = self.send_as(stack, self.reader(), BACKUP)
        self.assertIn('of BACKUP has started', said)

    def url(self, stack, context):
        loaded = self.heat.load(stack, context)
        return loaded['deployment'].FnGetAtt('trigger_url')

    def test_who_may_not_update_the_stack_does_not_see_its_trigger_url(self):
        stack = self.stack(trigger_url=True)
        url = self.url(stack, self.heat.context)
        self.assertIn('/signal/', url)
        self.assertIsNone(self.url(stack, self.reader()))
        self.assertIsNone(self.url(stack, self.server(stack)))
        self.policy(enforce_new_defaults=False)
        self.assertEqual(url, self.url(stack, self.reader()))

    def test_an_update_that_is_resumed_sees_its_trigger_url(self):
        stack = self.stack(trigger_url=True)
        url = self.url(stack, self.heat.context)
        # As another engine gets them, the rights of a trust may be fewer.
        trusted = heat_fixture.new_context(roles=[], trust_id='trust')
        for context in (stack.stored_context(), trusted):
            self.assertEqual(url, self.url(stack, context))
        unasked = mock.Mock(spec_set=['enforce'])
        unasked.enforce.side_effect = ValueError('invalid policy.yaml')
        context = self.reader()
        context.policy = unasked
        self.assertFalse(callers.may_not_update(_Loaded(stack, context)))

    def test_a_policy_that_cannot_be_asked_permits_nothing(self):
        stack = self.stack()
        context = self.heat.context
        enforcer = mock.Mock(spec_set=['enforce'])
        enforcer.enforce.side_effect = ValueError('invalid policy.yaml')
        context.policy = enforcer
        found = callers.of(_Loaded(stack, context))
        self.assertFalse(found.may_update)
        self.assertTrue(found.is_of_project)

    def test_a_template_may_permit_it(self):
        for name in ('trigger_by_servers', 'trigger_url'):
            stack = self.stack(**{name: True})
            said = self.send_as(stack, self.server(stack), BACKUP)
            self.assertIn('of BACKUP has started', said)
            self.delete(stack)

    def test_permitting_it_is_nothing_to_the_server(self):
        stack = self.stack()
        handed = len(self.handed)
        whole = self.template(
            signal_transport='CFN_SIGNAL', trigger_by_servers=True
        )
        self.update(stack, whole)
        self.assertEqual(handed, len(self.handed))
        said = self.send_as(stack, self.server(stack), BACKUP)
        self.assertIn('of BACKUP has started', said)

    def test_users_of_stacks_may_be_of_the_project_itself(self):
        stack = self.stack()
        context = heat_fixture.new_context(roles=['heat_stack_user'])
        self.assertIn(
            '"trigger_by_servers"', self.send_as(stack, context, BACKUP)
        )

    def test_where_it_cannot_be_known_the_template_decides(self):
        stack = self.stack()
        stored = heat_context.StoredContext.from_dict(
            self.heat.context.to_dict()
        )
        nobody = heat_context.get_admin_context()
        for context in (stored, nobody, None):
            self.assertEqual(
                callers.UNKNOWN, callers.of(_Loaded(stack, context))
            )
        self.patch(callers, 'of', lambda stack: callers.UNKNOWN)
        said = self.send_as(stack, self.heat.context, BACKUP)
        self.assertIn('cannot tell whose credentials', said)
        self.assertIn('"trigger_by_servers"', said)


class ResultTest(SignallerTestCase):
    """Results, and reports, of actions that are waited for."""

    def waiting_for(self, transport='CFN_SIGNAL', **properties):
        return self.waiting(
            self.template(signal_transport=transport, **properties)
        )

    def assert_refused(self, stack, context, details, why):
        said = self.send_as(stack, context, details)
        self.assertIn('Result refused: ', said)
        self.assertIn(why, said)
        (row,) = self.deployment_rows()
        self.assertEqual('IN_PROGRESS', row.status)

    def test_a_server_answers_for_itself(self):
        for transport in ('CFN_SIGNAL', 'HEAT_SIGNAL'):
            stack, task = self.waiting_for(transport)
            self.send_as(stack, self.own(stack), {})
            self.finish(task)
            self.assertEqual('COMPLETE', stack.status)
            self.delete(stack)

    def test_another_server_does_not(self):
        for transport in ('CFN_SIGNAL', 'HEAT_SIGNAL'):
            stack, task = self.waiting_for(transport)
            (row,) = self.deployment_rows()
            for details in ({}, {body.CONFIG_ID: row.config_id}):
                self.assert_refused(
                    stack, self.server(stack), details, 'other credentials'
                )
            self.send_as(stack, self.own(stack), {})
            self.finish(task)
            self.assertEqual('COMPLETE', stack.status)
            self.delete(stack)

    def test_who_has_the_url_for_triggers_answers_to_no_temp_url(self):
        stack, task = self.waiting_for('TEMP_URL_POLL', trigger_url=True)
        self.assert_refused(stack, self.own(stack), {}, 'other credentials')
        self.send(self.handed[-1])
        self.finish(task)

    def test_a_user_of_the_project_answers_for_any(self):
        stack, task = self.waiting_for()
        self.send_as(stack, self.heat.context, {})
        self.finish(task)
        self.assertEqual('COMPLETE', stack.status)

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
        self.assertEqual('COMPLETE', stack.status)

    def named(self, **details):
        return {body.CONFIG_ID: self.handed[-1]['id'], **details}

    def test_where_the_agent_names_the_config_no_other_result_counts(self):
        stack, task = self.waiting_for('HEAT_SIGNAL')
        own = self.own(stack)
        report = self.named(**{body.REPORT: {}})
        self.assertIn('Started: CREATE', self.send_as(stack, own, report))
        self.assert_refused(
            stack, own, {'deploy_status_code': 0}, 'names none'
        )
        self.send_as(stack, own, self.named())
        self.finish(task)
        self.assertEqual('COMPLETE', stack.status)

    def test_nor_does_it_in_the_next_action(self):
        stack, task = self.waiting_for()
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
        self.assert_refused(stack, self.own(stack), {}, 'names none')
        # A user may answer for a server that does not.
        self.send_as(stack, self.heat.context, {})
        self.finish(task)
        self.assertEqual('COMPLETE', again.status)

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
        self.assertEqual(
            'Signal: Result ignored: it answers an earlier action on server '
            'server, which failed with exit code 7; UPDATE still waits',
            said,
        )
        (row,) = self.deployment_rows()
        self.assertEqual('IN_PROGRESS', row.status)
        # It no longer names a config, but came by the right URL.
        self.assertIn('succeeded', self.send_as(stack, own, self.by_url(-1)))
        self.finish(task)
        self.assertEqual('COMPLETE', stack.status)

    def test_nor_does_one_by_the_url_once_the_agent_has_named_the_action(self):
        stack, task = self.rebuilt()
        own = self.own(stack)
        self.send_as(stack, own, self.named(**{body.REPORT: {}}))
        self.assert_refused(stack, own, self.by_url(-1), 'names none')
        self.send_as(stack, own, self.named())
        self.finish(task)
        self.assertEqual('COMPLETE', stack.status)

    def replaced(self, transport):
        """Return a deployment in whose place is another one, and that one.

        Both wait, and have the same name; each comes with its task.
        """
        former, task = self.waiting_for(transport)
        (row,) = self.deployment_rows()
        user = self.own(former).user_id
        whole = self.template(signal_transport=transport)
        stack, other = self.waiting(stack=self.heat.stack(whole, 'second'))
        self.patch(resources, 'replaced_users', lambda *_: {row.id: user})
        return row, (former, task), (stack, other)

    def test_a_result_reaches_the_deployment_that_was_replaced(self):
        self.check_replaced('CFN_SIGNAL')

    def test_so_does_one_without_a_url(self):
        self.check_replaced('HEAT_SIGNAL')

    def check_replaced(self, transport):
        row, (former, task), (stack, other) = self.replaced(transport)
        own, result = self.own(former), {'deploy_status_code': 0}
        if transport == 'CFN_SIGNAL':
            result = self.by_url(0)
        self.assertIn(
            f'deployment {row.id} succeeded',
            self.send_as(stack, own, result),
        )
        self.finish(task)
        self.assertEqual('COMPLETE', former.status)
        if transport == 'CFN_SIGNAL':
            result = self.by_url(1)
        self.send_as(stack, self.own(stack), result)
        self.finish(other)
        self.assertEqual('COMPLETE', stack.status)

    def test_no_other_server_answers_for_the_one_that_was_replaced(self):
        row, (_former, task), (stack, other) = self.replaced('HEAT_SIGNAL')
        for users in ({row.id: 'of the former one'}, {row.id: None}):
            replaced = mock.Mock(return_value=users)
            self.patch(resources, 'replaced_users', replaced)
            said = self.send_as(stack, self.server(stack), {})
            self.assertIn('other credentials', said)
        for each in self.deployment_rows():
            self.assertEqual('IN_PROGRESS', each.status)
        for each in (task, other):
            each.cancel()

    def test_what_is_run_again_later_changes_nothing_and_is_told(self):
        stack, task = self.rebuilt()
        own = self.own(stack)
        self.send_as(stack, own, self.by_url(-1))
        self.finish(task)
        said = self.send_as(stack, own, self.by_url(0))
        self.assertIn(
            'Result ignored: it came after the end of UPDATE on server', said
        )
        (row,) = self.deployment_rows()
        self.assertEqual('COMPLETE', row.status)

    def test_an_agent_that_names_none_any_more_is_heard_after_a_failure(self):
        stack, task = self.waiting_for(timeout=60)
        own = self.own(stack)
        self.send_as(stack, own, self.named(**{body.REPORT: {}}))
        self.assert_refused(stack, own, {}, 'names none')
        self.assertIn('within 60 s', self.failed(task, stack))
        self.assertNotIn(
            'heat_plugins_naming', self.heat.load(stack)['deployment'].data()
        )

    def test_a_name_by_hand_obliges_no_agent(self):
        stack, task = self.waiting_for('HEAT_SIGNAL')
        report = self.named(**{body.REPORT: {}})
        self.send_as(stack, self.heat.context, report)
        self.send_as(stack, self.own(stack), {})
        self.finish(task)
        self.assertEqual('COMPLETE', stack.status)


class _Loaded:
    """A stack that was loaded with some context."""

    def __init__(self, stack, context):
        self.tenant_id = stack.tenant_id
        self.defn = type('Definition', (), {'_context': context})
