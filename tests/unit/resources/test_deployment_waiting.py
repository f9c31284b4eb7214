# SPDX-License-Identifier: Apache-2.0
"""How a deployment waits for its signal, and what it makes of it."""

from heat_plugins import heat_values
from heat_plugins.engine.database import rows
from tests.unit.resources import deployments


class OutcomeTest(deployments.DeploymentTestCase):
    def test_outputs_become_attributes_and_an_exit_status_a_reason(self):
        said = 'hm\nno space left\n'
        stack, reason = self.fails(
            deployments.template(),
            {
                'answer': {'deep': [1, 2]},
                'deploy_stdout': 'out',
                'deploy_stderr': said,
                'deploy_status_code': 3,
            },
        )
        assert (
            'the exit status (deploy_status_code) is 3: no space left'
            in reason
        )
        resource = stack['deployment']
        assert resource.FnGetAtt('answer', 'deep', 1) == 2
        assert resource.FnGetAtt('deploy_stdout') == 'out'
        assert resource.FnGetAtt('deploy_stderr') == said
        assert resource.FnGetAtt('deploy_status_code') == 3
        assert resource.FnGetAtt('trouble') is None

    def test_the_reason_shows_nothing_that_the_stack_hides(self):
        whole = deployments.template(
            input_values={'who': {'get_param': 'hidden'}},
        )
        whole['parameters'] = {
            'hidden': {'type': 'string', 'hidden': True, 'default': 's3cret'}
        }
        said = 'login with s3cret failed'
        for transport in ('TEMP_URL_POLL', 'HEAT_SIGNAL'):
            properties = whole['resources']['deployment']['properties']
            properties['signal_transport'] = transport
            self.answer = None
            stack = self.heat.stack(whole, transport)
            task = self.heat.begin(stack, 'CREATE')
            self.step(task, 9)
            answer = {'deploy_status_code': 3, 'deploy_stderr': said}
            if transport == 'HEAT_SIGNAL':
                stack['deployment'].signal(answer)
            else:
                self.send(self.handed[-1], answer)
            reason = self.failed(task, stack)
            assert 'login with ****** failed' in reason
            for told in [reason, *deployments.events(stack)]:
                assert 's3cret' not in told

    def test_an_unknown_hook_is_told_and_is_the_likely_cause(self):
        self.configure(known_hooks=['terraform'])
        for group, number in (('terraform', 0), ('terrafrom', 1)):
            whole = deployments.template(config={'group': group}, timeout=60)
            stack = self.heat.stack(whole, group)
            with self.hook_logs(number) as logs:
                _, task = self.waiting(stack=stack)
            hooks = [
                event
                for event in deployments.events(stack)
                if heat_values.event_kind(event)
                is heat_values.EventKind.UNKNOWN_HOOK
            ]
            assert len(hooks) == number
            reason = self.failed(task, stack)
            lacking = 'heat-agents have no hook "terrafrom"'
            assert (lacking in reason) == bool(number), reason
        assert '"terrafrom" is not a hook' in hooks[0]
        assert 'Did you mean "terraform"?' in '\n'.join(logs.output)

    def hook_logs(self, number):
        if number:
            return self.assertLogs('heat_plugins', 'WARNING')
        return self.assertNoLogs('heat_plugins', 'WARNING')

    def test_one_that_cannot_be_deleted_counts_all_the_same(self):
        self.swift.fail(1, 503, 'DELETE')
        stack = self.created()
        assert len(self.objects(stack)) == 1
        self.delete(stack)
        self.assert_nothing_left()


class OtherWaysTest(deployments.DeploymentTestCase):
    """Signals that come through Heat's APIs, under every transport."""

    TRANSPORTS = ('TEMP_URL_POLL', 'HEAT_SIGNAL', 'CFN_SIGNAL')

    def setUp(self):
        super().setUp()
        self.heat.auth.endpoints['cloudformation'] = 'http://cfn.invalid/v1'

    def each(self):
        for transport in self.TRANSPORTS:
            stack = self.heat.stack(
                deployments.template(signal_transport=transport), transport
            )
            task = self.heat.begin(stack, 'CREATE')
            self.answer = None
            self.step(task, 9)
            yield stack, task

    def test_one_completes_it_and_the_second_is_ignored(self):
        for stack, task in self.each():
            resource = stack['deployment']
            again = self.heat.load(stack)
            resource.signal({'answer': 'first'})
            again['deployment'].signal({'answer': 'second'})
            self.finish(task, 20)
            assert stack.status == 'COMPLETE'
            assert resource.FnGetAtt('answer') == 'first'

    def test_one_after_a_cancellation_is_ignored_and_one_before_stays(self):
        stack, task = self.waiting()
        stack['deployment'].signal({'answer': 'x'})
        task.cancel()
        (row,) = self.deployment_rows()
        assert row.status == 'COMPLETE'
        self.delete(stack)
        stack, task = self.waiting(
            deployments.template(signal_transport='HEAT_SIGNAL')
        )
        task.cancel()
        stack['deployment'].signal({'answer': 'late'})
        self.assert_withdrawn(stack)
        assert stack['deployment'].FnGetAtt('answer') is None


class TimeoutTest(deployments.DeploymentTestCase):
    def test_it_ends_the_action_and_says_why(self):
        stack, task = self.waiting(deployments.template(timeout=60))
        assert not self.step(task, 48)
        begun = self.now
        reason = self.failed(task, stack)
        assert self.now - begun < 10
        self.assertRegex(
            reason,
            'Server server has not signalled CREATE within 60 s '
            r'\(property "timeout"\)\. The server reported no start\. '
            'See its journalctl -u os-collect-config and '
            rf'/var/lib/heat-config/deployed/{self.handed[0]["id"]}\.json',
        )
        # Heat cuts the reason of an event.
        (event,) = [
            one for one in deployments.events(stack) if 'not signalled' in one
        ]
        assert event.endswith('.json'), event
        self.assert_withdrawn(stack, 'Server server has not signalled CREATE')
        self.assert_nothing_waits()


class CancelTest(deployments.DeploymentTestCase):
    def assert_taken_back(self, stack):
        self.assert_withdrawn(stack, 'was cancelled')
        self.assert_nothing_waits()

    def test_what_is_cancelled_is_taken_from_the_server(self):
        for number in (200, 404):
            self.handed.clear()
            stack, task = self.waiting(
                stack=self.heat.stack(deployments.template(), f's{number}')
            )
            assert len(self.in_metadata(stack)) == 1
            url = deployments.inputs(self.handed[-1])['deploy_control_url']
            assert self.swift.get_signed(url)[0] == 404
            if number == 404:
                # A store that cannot tell it does not keep it there.
                self.swift.fail(10**6, method='PUT')
            task.cancel()
            self.assert_taken_back(stack)
            assert self.swift.get_signed(url)[0] == number
            self.delete(stack)

    def test_a_stack_that_was_stopped_is_seen_to_be(self):
        stack, task = self.waiting()
        self.heat.stop(stack)
        self.finish(task, 5)
        assert 'CREATE was cancelled' in stack.status_reason
        self.assert_taken_back(stack)


class TroubleTest(deployments.DeploymentTestCase):
    """The object store is out of order for a while."""

    def test_refused_credentials_are_replaced(self):
        stack, task = self.waiting()
        # Heat's database is out of order as well.
        self.break_database(rows, 'settle', 3)
        self.swift.locked_out.add(deployments.PROJECT)
        assert not self.step(task, 30)
        self.swift.locked_out.clear()
        self.send(self.handed[0], {'answer': '42'})
        self.finish(task, 60)
        assert stack.status == 'COMPLETE'
        assert stack['deployment'].FnGetAtt('answer') == '42'

    def test_a_container_that_is_gone_comes_back_with_its_key(self):
        stack, task = self.waiting()
        name = f'heat-plugins-{stack.id}'
        self.swift.store(deployments.PROJECT).delete_container(name)
        # Swift says 401 for what is not there, as for a wrong signature.
        assert self.send(self.handed[0]) in (401, 404)
        assert not self.step(task, 10)
        assert self.send(self.handed[0]) == 201
        self.finish(task, 30)
        assert stack.status == 'COMPLETE'


class CostTest(deployments.DeploymentTestCase):
    """Waiting costs next to nothing."""

    def test_many_share_one_listing_and_one_query_and_nothing_else(self):
        parts = {
            f'other{number}': deployments.deployment() for number in range(7)
        }
        self.answer = None
        stack = self.heat.stack(deployments.template(resources=parts))
        task = self.heat.begin(stack, 'CREATE')
        self.step(task, 160)
        assert len(self.handed) == 8
        calls = len(self.heat.rpc.calls)
        tokens = self.heat.auth.tokens
        seen = len(self.swift.seen)
        with self.counting_queries() as statements:
            for _ in range(40):
                self.now += 1
                assert not task.step()
        assert len(self.heat.rpc.calls) == calls
        assert self.heat.auth.tokens == tokens
        looks = self.swift.seen[seen:]
        assert {each.method for each in looks} == {'GET'}
        listings = [each for each in looks if 'prefix' in each.query]
        # The interval has grown to 5 s by now.
        assert len(listings) <= 9
        assert len(listings) >= 7
        # Of objects that may come, it asks for each now and then by name.
        peeks = [each for each in looks if each not in listings]
        assert all('/signals/' in each.where for each in peeks), peeks
        # And seldom, whether the stack is to be cancelled.
        queries = [each for each in statements if 'FROM stack ' not in each]
        assert len(queries) <= len(listings), queries
        assert len(statements) - len(queries) <= 40 / 3 + 1

    def test_of_many_urls_only_the_first_asks_swift_for_anything(self):
        parts = {'other': deployments.deployment()}
        self.created(deployments.template(resources=parts))
        made = [each for each in self.swift.seen if each.method == 'PUT']
        assert len(made) == 3, 'a container and two signals'
        assert self.swift.asked().count('GET /info') == 1, self.swift.asked()
