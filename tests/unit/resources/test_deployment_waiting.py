# SPDX-License-Identifier: Apache-2.0
"""How a deployment waits for its signal, and what it makes of it."""

import contextlib
from unittest import mock

import fixtures
from heat.common import exception
from heat.engine import scheduler
from oslo_db import exception as db_exception

from heat_plugins import heat_values
from heat_plugins.engine import hubs
from heat_plugins.engine.database import rows
from heat_plugins.signals import body
from heat_plugins.signals import watcher
from tests.unit.resources import deployments


class OutcomeTest(deployments.DeploymentTestCase):
    def test_outputs_become_attributes(self):
        self.answer = {
            'answer': {'deep': [1, 2]},
            'deploy_stdout': 'out',
            'deploy_stderr': 'err',
            'deploy_status_code': 0,
        }
        stack = self.created()
        resource = stack['deployment']
        self.assertEqual(2, resource.FnGetAtt('answer', 'deep', 1))
        self.assertEqual('out', resource.FnGetAtt('deploy_stdout'))
        self.assertEqual('err', resource.FnGetAtt('deploy_stderr'))
        self.assertEqual(0, resource.FnGetAtt('deploy_status_code'))
        self.assertIsNone(resource.FnGetAtt('trouble'))

    def test_an_exit_status_fails_it_and_the_reason_says_why(self):
        said = 'hm\nno space left\n'
        stack, reason = self.fails(
            deployments.template(),
            {'deploy_status_code': 3, 'deploy_stderr': said},
        )
        self.assertIn(
            'the exit status (deploy_status_code) is 3: no space left', reason
        )
        self.assertEqual(said, stack['deployment'].FnGetAtt('deploy_stderr'))

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
            self.assertIn('login with ****** failed', reason)
            for told in [reason, *deployments.events(stack)]:
                self.assertNotIn('s3cret', told)

    def test_a_hook_that_servers_lack_is_told_at_once(self):
        log = self.useFixture(fixtures.FakeLogger())
        whole = deployments.template(config={'group': 'scirpt'}, timeout=60)
        stack, task = self.waiting(whole)
        (event,) = self.unknown_hooks(stack)
        self.assertIn('"scirpt" is not a hook of heat-agents', event)
        self.assertIn('Did you mean "script"?', event)
        self.assertIn('"scirpt" is not a hook of heat-agents', log.output)
        self.assertIn('heat-agents have no hook', self.failed(task, stack))

    def test_hooks_are_known_that_the_operator_names(self):
        self.configure(known_hooks=['terraform'])
        for group, number in (('terraform', 0), ('script', 1)):
            stack, _ = self.waiting(
                stack=self.heat.stack(
                    deployments.template(config={'group': group}), group
                )
            )
            self.assertEqual(number, len(self.unknown_hooks(stack)))

    def test_without_a_signal_any_group_will_do(self):
        stack = self.created(
            deployments.template(
                config={'group': 'os-apply-config'},
                signal_transport='NO_SIGNAL',
            )
        )
        self.assertEqual([], self.unknown_hooks(stack))

    def unknown_hooks(self, stack):
        return [
            event
            for event in deployments.events(stack)
            if heat_values.event_kind(event)
            is heat_values.EventKind.UNKNOWN_HOOK
        ]

    def test_an_error_output_fails_it_only_if_it_has_a_value(self):
        self.answer = {'trouble': ''}
        self.created(name='fine')
        _, reason = self.fails(deployments.template(), {'trouble': 'oh'})
        self.assertIn('error output "trouble" has a value', reason)

    def test_no_output_of_the_former_action_remains_while_one_goes_on(self):
        self.answer = {'answer': '1'}
        stack = self.created()
        whole = deployments.template(name='x', signal_transport='NO_SIGNAL')
        self.answer = None
        self.update(stack, whole)
        again = self.heat.load(stack)
        self.assertIsNone(again['deployment'].FnGetAtt('answer'))

    def test_a_body_that_is_no_result_fails_it_and_nothing_else(self):
        limit = 2000
        self.configure(signal_body_limit=limit)
        bodies = {
            'junk': (b'{', 'it is not JSON'),
            'list': (b'[1]', 'it is a list, but must be a map'),
            'latin': (b'{"a": "\xe9"}', 'it is not UTF-8'),
            'large': (b'x' * (limit + 1), f'larger than {limit} bytes'),
        }
        self.answer = lambda config: bodies.get(config['name'], [{}])[0]
        parts = {
            name: deployments.deployment(name=name, actions=['SUSPEND'])
            for name in bodies
        }
        stack = self.created(deployments.template(resources=parts))
        tasks = {
            name: self.heat.start(stack[name].suspend)
            for name in ('deployment', *bodies)
        }
        for name, (_, reason) in bodies.items():
            error = self.assertRaises(
                exception.ResourceFailure, self.finish, tasks[name]
            )
            self.assertIn('The signal cannot be used', str(error))
            self.assertIn(reason, str(error))
            self.assertLess(len(str(error)), 200)
            stack[name].FnGetAtt('deploy_stdout')
        self.finish(tasks['deployment'])

    def test_an_empty_body_is_a_success_without_outputs(self):
        self.answer = b''
        self.created()

    def test_one_that_cannot_be_deleted_counts_all_the_same(self):
        self.swift.fail(1, 503, 'DELETE')
        stack = self.created()
        self.assertEqual(1, len(self.objects(stack)))
        self.delete(stack)
        self.assert_nothing_left()


class EarlierSignalTest(deployments.DeploymentTestCase):
    """The signal of one action never completes another."""

    def test_an_update_right_after_a_create_is_never_lost(self):
        stack = self.created()
        for number in range(2):
            self.answer = {'answer': number}
            self.update(stack, deployments.template(name=f'n{number}'))
            again = self.heat.load(stack)
            self.assertEqual(number, again['deployment'].FnGetAtt('answer'))

    def test_a_signal_that_is_there_before_anybody_looks_counts(self):
        stack = self.heat.stack(deployments.template())
        self.configure(
            signal_poll_interval=30.0, signal_poll_interval_max=30.0
        )
        task = self.heat.begin(stack, 'CREATE')
        self.finish(task)
        self.assertEqual('COMPLETE', stack.status)

    def test_a_signal_that_listings_do_not_show_is_found(self):
        stack, task = self.waiting()
        (config,) = self.handed
        container = f'heat-plugins-{stack.id}'
        name = f'signals/{stack["deployment"].resource_id}/{config["id"]}'
        self.swift.lagging.add((container, name))
        self.send(config)
        self.assertFalse(self.step(task, 20))
        self.finish(task, 60)
        self.assertEqual('COMPLETE', stack.status)


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
            self.assertEqual('COMPLETE', stack.status)
            self.assertEqual('first', resource.FnGetAtt('answer'))

    def test_one_with_a_status_fails_it(self):
        for stack, task in self.each():
            stack['deployment'].signal({'deploy_status_code': '2'})
            reason = self.failed(task, stack)
            self.assertIn('is 2', reason)

    def test_a_garbled_one_fails_it_shortly(self):
        for stack, task in self.each():
            stack['deployment'].signal(['no', 'map'])
            reason = self.failed(task, stack)
            self.assertIn('it is a list, but must be a map', reason)
            self.assertLess(len(reason), 200)

    def test_none_at_all_is_a_success_without_outputs(self):
        for stack, task in self.each():
            stack['deployment'].signal(None)
            self.finish(task, 20)
            self.assertEqual('COMPLETE', stack.status)

    def test_one_after_a_cancellation_is_ignored(self):
        for stack, task in self.each():
            task.cancel()
            stack['deployment'].signal({'answer': 'late'})
            self.assert_withdrawn(stack)
            self.assertIsNone(stack['deployment'].FnGetAtt('answer'))
            self.delete(stack)

    def test_one_before_anything_was_handed_over_is_ignored(self):
        stack = self.created(deployments.template(actions=['UPDATE']))
        stack['deployment'].signal({'answer': 'x'})

    def test_the_rest_api_completes_it(self):
        for status in ('COMPLETE', 'FAILED'):
            for stack, task in self.each():
                self.heat.rpc.update_software_deployment(
                    self.heat.context,
                    stack['deployment'].resource_id,
                    status=status,
                    status_reason='by hand',
                    output_values={'answer': 'x'},
                )
                self.finish(task, 20)
                self.assertEqual(status, stack['deployment'].status)
                self.delete(stack)

    def test_a_row_that_is_deleted_by_hand_fails_it(self):
        stack, task = self.waiting()
        self.heat.rpc.delete_software_deployment(
            self.heat.context, stack['deployment'].resource_id
        )
        self.assertIn('Another process withdrew', self.failed(task, stack))

    def test_two_that_settle_at_once_cannot_both_count(self):
        stack, _ = self.waiting()
        row = self.deployment_rows()[0]
        outcomes = [
            body.outcome({'answer': number}, row.config.config['outputs'])
            for number in (1, 2)
        ]
        ticket = watcher.Ticket(
            deployment_id=row.id, config_id=row.config_id, object_name=None
        )
        self.assertEqual(
            [{ticket}, set()],
            [
                rows.settle(stack.context, {ticket: outcome})
                for outcome in outcomes
            ],
        )
        (row,) = self.deployment_rows()
        self.assertEqual(1, row.output_values['answer'])

    def test_what_was_settled_otherwise_while_it_was_fetched_stands(self):
        stack, task = self.waiting()

        def be_faster(request):
            if request.method == 'GET' and 'prefix' not in request.url:
                self.swift.before = lambda request: None
                again = self.heat.load(stack)
                again['deployment'].signal({'deploy_status_code': 7})

        self.swift.before = be_faster
        self.send(self.handed[0], {'answer': 'swift'})
        self.assertIn('is 7', self.failed(task, stack))
        self.assertIsNone(stack['deployment'].FnGetAtt('answer'))


class DatabaseTest(deployments.DeploymentTestCase):
    """Heat's database is out of order for a while."""

    def test_what_cannot_be_settled_now_is_settled_later(self):
        stack, task = self.waiting()
        self.break_database(rows, 'settle', 3)
        self.send(self.handed[0], {'answer': '42'})
        self.finish(task, 30)
        self.assertEqual('COMPLETE', stack.status)
        self.assertEqual('42', stack['deployment'].FnGetAtt('answer'))

    def test_a_row_that_cannot_be_read_now_is_read_later(self):
        stack, task = self.waiting()
        stack['deployment'].signal({'answer': '42'})
        left = self.break_database(rows, 'visible', 2)
        self.finish(task, 30)
        self.assertEqual('COMPLETE', stack.status)
        self.assertEqual([], left)


class ForeignStatusTest(deployments.DeploymentTestCase):
    def test_a_status_that_heat_does_not_know_is_a_failure(self):
        stack, task = self.waiting()
        self.heat.rpc.engine.update_software_deployment(
            self.heat.context,
            stack['deployment'].resource_id,
            None,
            None,
            None,
            None,
            'WEIRD',
            None,
            None,
        )
        self.assertIn('status WEIRD', self.failed(task, stack))


class TimeoutTest(deployments.DeploymentTestCase):
    def test_a_url_that_cannot_be_made_in_time_is_told_from_silence(self):
        self.swift.fail(10**6)
        stack = self.heat.stack(deployments.template(timeout=60))
        task = self.heat.begin(stack, 'CREATE')
        self.assertRegex(
            self.failed(task, stack),
            'could not deliver CREATE to server .* within 60 s .*503',
        )

    def test_it_ends_the_action_and_says_why(self):
        stack, task = self.waiting(deployments.template(timeout=60))
        self.assertFalse(self.step(task, 48))
        begun = self.now
        reason = self.failed(task, stack)
        self.assertLess(self.now - begun, 10)
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
        self.assertTrue(event.endswith('.json'), event)
        self.assert_withdrawn(stack, 'Server server has not signalled CREATE')
        self.assertEqual([], self.tickets())

    def test_what_is_put_later_is_no_result(self):
        stack, task = self.waiting(deployments.template(timeout=60))
        self.failed(task, stack)
        self.send(self.handed[0], {'answer': 'late'})
        self.assert_withdrawn(stack)
        self.assertIsNone(stack['deployment'].FnGetAtt('answer'))
        self.delete(stack)
        self.assert_nothing_left()

    def test_a_signal_in_the_last_moment_counts(self):
        self.blind()
        whole = deployments.template(timeout=60)
        for name in ('listed', 'lagging'):
            stack, task = self.waiting(stack=self.heat.stack(whole, name))
            self.send(self.handed[-1], {'answer': 'just so'})
            if name == 'lagging':
                container = f'heat-plugins-{stack.id}'
                self.swift.lagging |= {
                    (container, found) for found in self.objects(stack)
                }
            self.finish(task)
            self.assertEqual('COMPLETE', stack.status)
            self.assertEqual('just so', stack['deployment'].FnGetAtt('answer'))

    def test_one_through_heats_api_too(self):
        self.blind()
        stack, task = self.waiting(
            deployments.template(timeout=60, signal_transport='HEAT_SIGNAL')
        )
        stack['deployment'].signal({'answer': 'just so'})
        self.finish(task)
        self.assertEqual('COMPLETE', stack.status)

    def test_one_that_is_a_failure_is_that_failure(self):
        self.blind()
        stack, task = self.waiting(deployments.template(timeout=60))
        self.send(self.handed[0], {'deploy_status_code': 4})
        self.assertIn('is 4', self.failed(task, stack))
        self.assertEqual(1, len(self.deployment_rows()))


class CancelTest(deployments.DeploymentTestCase):
    def assert_taken_back(self, stack):
        self.assert_withdrawn(stack, 'was cancelled')
        self.assertEqual([], self.tickets())

    def test_what_is_cancelled_is_taken_from_the_server(self):
        stack, task = self.waiting()
        self.assertEqual(1, len(self.in_metadata(stack)))
        task.cancel()
        self.assert_taken_back(stack)

    def test_a_server_that_has_begun_it_is_told_to_stop(self):
        _, task = self.waiting()
        inputs = {
            one['name']: one['value'] for one in self.handed[-1]['inputs']
        }
        url = inputs['deploy_control_url']
        self.assertEqual(404, self.swift.get_signed(url)[0])
        task.cancel()
        self.assertEqual(200, self.swift.get_signed(url)[0])

    def test_a_store_that_cannot_tell_it_does_not_keep_it_there(self):
        stack, task = self.waiting()
        self.swift.fail(10**6, method='PUT')
        task.cancel()
        self.assert_taken_back(stack)

    def test_also_before_anybody_has_looked(self):
        stack, task = self.begun()
        task.cancel()
        self.assert_taken_back(stack)

    def test_also_by_the_stacks_own_timeout(self):
        stack, task = self.waiting()
        timeout = scheduler.Timeout(task, 0)
        with contextlib.suppress(StopIteration):
            task._runner.throw(timeout)
        self.assert_taken_back(stack)

    def test_the_next_action_has_the_same_row_and_another_config(self):
        stack = self.created()
        row_id = stack['deployment'].resource_id
        changed = deployments.template(name='x')
        _, task = self.waiting(changed, 'UPDATE', stack)
        task.cancel()
        self.assert_taken_back(stack)
        self.answer = {'answer': 'y'}
        self.update(stack, deployments.template(name='y'))
        (row,) = self.deployment_rows()
        self.assertEqual(row_id, row.id)
        self.assertEqual(self.handed[-1]['id'], row.config_id)
        self.assertEqual(3, len({config['id'] for config in self.handed}))

    def test_each_action_can_be_cancelled(self):
        whole = deployments.template(actions=deployments.ALL_ACTIONS)
        for action in ('SUSPEND', 'RESUME'):
            self.answer = {}
            stack = self.created(whole, name=action)
            if action == 'RESUME':
                self.heat.run(stack, 'SUSPEND')
            self.answer = None
            task = self.heat.begin(stack, action)
            self.step(task, 5)
            task.cancel()
            self.assertEqual([], self.in_metadata(stack))
        self.assertEqual([], self.tickets())

    def test_a_stack_that_was_stopped_is_seen_to_be(self):
        stack, task = self.waiting()
        self.heat.stop(stack)
        self.finish(task, 5)
        self.assertIn('CREATE was cancelled', stack.status_reason)
        self.assert_taken_back(stack)

    def test_also_before_the_server_was_handed_anything(self):
        self.swift.fail(10**6)
        stack = self.heat.stack(deployments.template())
        task = self.heat.begin(stack, 'CREATE')
        self.assertFalse(self.step(task, 9))
        self.heat.stop(stack)
        self.finish(task, 10)
        self.assertIn('CREATE was cancelled', stack.status_reason)
        self.assertEqual([], self.handed)

    def test_a_delete_that_is_cancelled_can_be_repeated(self):
        whole = deployments.template(actions=deployments.ALL_ACTIONS)
        stack = self.created(whole)
        self.answer = None
        task = self.heat.start(stack['deployment'].delete)
        self.step(task, 5)
        task.cancel()
        self.assert_taken_back(stack)
        self.answer = {}
        self.delete(stack)
        self.assert_nothing_left()

    def test_a_signal_in_time_for_its_cancellation_stays(self):
        stack, task = self.waiting()
        stack['deployment'].signal({'answer': 'x'})
        task.cancel()
        (row,) = self.deployment_rows()
        self.assertEqual('COMPLETE', row.status)

    def test_one_that_cannot_be_taken_back_is_still_cancelled(self):
        stack, task = self.waiting()

        failure = db_exception.DBError('no database answers')
        with mock.patch.object(rows, 'withdraw', side_effect=failure):
            task.cancel()
        self.assertTrue(task.done())
        self.assertEqual(1, len(self.deployment_rows()))
        self.delete(stack)
        self.assert_nothing_left()


class TroubleTest(deployments.DeploymentTestCase):
    """The object store is out of order for a while."""

    def test_passing_errors_are_ridden_out(self):
        for fault in (503, 500, 429, 408, None):
            stack, task = self.waiting()
            self.swift.fail(20, fault)
            self.assertFalse(self.step(task, 12))
            self.swift.heal()
            self.send(self.handed[-1])
            self.finish(task, 30)
            self.assertEqual('COMPLETE', stack.status)
            self.delete(stack)

    def test_an_arrived_signal_that_cannot_be_fetched_is_fetched_later(self):
        stack, task = self.waiting()

        def break_fetching(request):
            if request.method == 'GET' and 'prefix' not in request.url:
                self.swift.before = lambda request: None
                self.swift.fail(3, 503)

        self.swift.before = break_fetching
        self.send(self.handed[0])
        self.finish(task, 60)
        self.assertEqual('COMPLETE', stack.status)

    def test_over_the_budget_it_fails_and_is_taken_back(self):
        self.configure(swift_error_budget=100)
        stack, task = self.waiting()
        self.swift.fail(10000, 503)
        self.assertFalse(self.step(task, 90))
        reason = self.failed(task, stack)
        self.assertIn('answered 503', reason)
        self.assert_withdrawn(stack, 'answered 503')

    def test_refused_credentials_are_replaced(self):
        stack, task = self.waiting()
        self.swift.locked_out.add(deployments.PROJECT)
        self.assertFalse(self.step(task, 30))
        before = next(iter(hubs._hubs.values()))._context
        self.swift.locked_out.clear()
        self.send(self.handed[0])
        self.finish(task, 30)
        self.assertEqual('COMPLETE', stack.status)
        self.assertIsNot(before, None)

    def test_a_transport_without_swift_does_not_mind(self):
        self.configure(swift_error_budget=50)
        part = deployments.deployment(
            signal_transport='HEAT_SIGNAL', actions=['SUSPEND']
        )
        stack = self.created(
            deployments.template(
                resources={'other': part}, actions=['SUSPEND']
            )
        )
        self.answer = None
        tasks = [
            self.heat.start(stack[name].suspend)
            for name in ('deployment', 'other')
        ]
        for task in tasks:
            self.step(task, 5)
        self.swift.fail(10000, 503)
        self.assertRaises(
            exception.ResourceFailure, self.finish, tasks[0], 100
        )
        self.assertFalse(self.step(tasks[1], 200))
        stack['other'].signal({})
        self.finish(tasks[1])

    def test_a_container_that_is_gone_comes_back_with_its_key(self):
        for secret in ('s3cret', None):
            self.configure(temp_url_secret=secret)
            self.handed.clear()
            stack, task = self.waiting()
            name = f'heat-plugins-{stack.id}'
            self.swift.store(deployments.PROJECT).delete_container(name)
            self.assertEqual(404, self._status(self.handed[0]))
            self.assertFalse(self.step(task, 10))
            self.assertEqual(201, self.send(self.handed[0]))
            self.finish(task, 30)
            self.assertEqual('COMPLETE', stack.status)
            self.delete(stack)

    def _status(self, config):
        status = self.send(config)
        # Swift says 401 for what is not there, as for a wrong signature.
        return 404 if status in (401, 404) else status

    def test_a_url_that_cannot_be_made_now_is_made_later(self):
        self.swift.fail(10, 503)
        stack = self.heat.stack(deployments.template())
        task = self.heat.begin(stack, 'CREATE')
        self.assertFalse(self.step(task, 10))
        self.assertEqual([], self.handed)
        # Seldom, as no server has been given anything to answer.
        self.assertLess(len(self.swift.seen), 6)
        self.finish(task)
        self.assertEqual('COMPLETE', stack.status)
        self.delete(stack)
        self.assert_nothing_left()

    def test_or_fails_it_over_the_budget_and_leaves_nothing(self):
        self.configure(swift_error_budget=50)
        self.swift.fail(10000, 503)
        stack = self.heat.stack(deployments.template())
        task = self.heat.begin(stack, 'CREATE')
        with self.assertLogs('heat_plugins', 'WARNING') as logs:
            self.assertIn('answered 503', self.failed(task, stack))
        # Of all the tries, the first.
        (line,) = logs.output
        self.assertIn(f'(deployment of stack {stack.name}, {stack.id})', line)
        self.swift.heal()
        self.delete(stack)
        self.assert_nothing_left()


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
        self.assertEqual(8, len(self.handed))
        calls = len(self.heat.rpc.calls)
        tokens = self.heat.auth.tokens
        seen = len(self.swift.seen)
        with self.counting_queries() as statements:
            for _ in range(40):
                self.now += 1
                self.assertFalse(task.step())
        self.assertEqual(calls, len(self.heat.rpc.calls))
        self.assertEqual(tokens, self.heat.auth.tokens)
        looks = self.swift.seen[seen:]
        self.assertEqual({'GET'}, {each.method for each in looks})
        listings = [each for each in looks if 'prefix' in each.query]
        # The interval has grown to 5 s by now.
        self.assertLessEqual(len(listings), 9)
        self.assertGreaterEqual(len(listings), 7)
        self.assertEqual(listings, [e for e in looks if e.status == 200])
        # And seldom, whether the stack is to be cancelled.
        queries = [each for each in statements if 'FROM stack ' not in each]
        self.assertLessEqual(len(queries), len(listings), queries)
        self.assertLessEqual(len(statements) - len(queries), 40 / 3 + 1)

    def test_a_burst_of_signals_is_fetched_one_by_one_and_deleted_at_once(
        self,
    ):
        parts = {
            f'other{number}': deployments.deployment(actions=['SUSPEND'])
            for number in range(7)
        }
        stack = self.created(
            deployments.template(resources=parts, actions=['SUSPEND'])
        )
        self.answer = None
        tasks = [self.heat.start(stack[name].suspend) for name in parts]
        for task in tasks:
            self.step(task, 2)
        for config in self.handed:
            self.send(config)
        seen = len(self.swift.seen)
        self.now += 5
        for task in tasks:
            self.assertTrue(task.step())
        asked = [each.method for each in self.swift.seen[seen:]]
        self.assertEqual(8, asked.count('GET'), 'a listing, and each signal')
        self.assertLessEqual(asked.count('DELETE') + asked.count('POST'), 2)
        self.assertEqual([], self.objects(stack))

    def test_nothing_is_left_to_be_deleted_when_nobody_waits_any_more(self):
        names = ('first', 'second', 'third')
        parts = {
            name: deployments.deployment(actions=['SUSPEND'], name=name)
            for name in names
        }
        stack = self.created(
            deployments.template(resources=parts, actions=['SUSPEND'])
        )
        self.answer = None
        tasks = [self.heat.start(stack[name].suspend) for name in names]
        for task in tasks:
            self.step(task, 2)
        for config in self.handed:
            if config['name'] != 'third':
                self.send(config)
        self.now += 5
        self.assertTrue(tasks[0].step())
        self.assertTrue(tasks[1].step())
        self.assertEqual(2, len(self.objects(stack)))
        tasks[2].cancel()
        # But what tells the server of the third to stop it.
        (name,) = self.objects(stack)
        self.assertTrue(name.endswith('.control'))

    def test_of_many_urls_only_the_first_asks_swift_for_anything(self):
        parts = {'other': deployments.deployment()}
        self.created(deployments.template(resources=parts))
        made = [each for each in self.swift.seen if each.method == 'PUT']
        self.assertEqual(3, len(made), 'a container and two signals')
        self.assertEqual(
            1, self.swift.asked().count('GET /info'), self.swift.asked()
        )
