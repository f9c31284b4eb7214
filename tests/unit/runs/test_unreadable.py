# SPDX-License-Identifier: Apache-2.0
"""Runs whose records cannot be read."""

import json
import threading

from heat_plugins import errors
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.start import orders
from tests.unit.runs import base

State = runs.State


class UnreadableTestCase(base.RunsTestCase):
    def setUp(self):
        super().setUp()
        self.configs = dict(self.heat.configs)
        self.run_ = self.start(inputs={'password': 's3cret'})
        self.whole = self.record(self.run_)

    def name(self):
        """Return the object that holds the record of the run."""
        name = record_names.record_name(self.run_.key)
        return f'{self.records.container}/{name}'

    def other(self):
        """Start a run on another server, some time later."""
        self.now += 10
        self.heat.add_deployment(self.stack, 'web', 'server-2')
        return self.start(resource='web')

    def warned(self):
        return self.assertLogs('heat_plugins.runs', 'WARNING')


class ReadTest(UnreadableTestCase):
    def refused(self, content):
        self.garble(self.run_, content)
        exc = self.assertRaises(errors.UnreadableRun, self.show, self.run_)
        self.assertEqual(
            self.run_.key,
            record_names.Key(
                run_id=exc.run_id,
                deployment_id=exc.deployment_id,
                action=exc.action,
            ),
        )
        return str(exc)

    def test_what_each_record_says_is_required(self):
        values = json.loads(self.whole)
        for name in (
            *('id', 'stack_id', 'stack_name', 'resource', 'deployment_id'),
            *('server_id', 'action', 'state', 'reason', 'started_at'),
            *('started_by', 'timeout'),
        ):
            record = {k: v for k, v in values.items() if k != name}
            self.refused(json.dumps(record).encode())

    def test_its_run_its_object_and_the_remedy_are_named(self):
        values = json.loads(self.whole)
        for content in (
            b'',
            b'garbage',
            b'\xff',
            b'[]',
            b'{}',
            self.whole[: len(self.whole) // 2],
            json.dumps({**values, 'state': 'asleep'}).encode(),
            json.dumps({**values, 'timeout': 'an hour'}).encode(),
        ):
            message = self.refused(content)
            self.assertIn(f'Run {self.run_.id} of BACKUP', message)
            self.assertIn(self.name(), message)
            self.assertIn('run delete', message)
            self.assertNotIn('s3cret', message)

    def test_that_of_another_run_is_none(self):
        self.assertIn(
            'record of another run',
            self.refused(self.whole.replace(b'"BACKUP"', b'"FAIL/OVER"')),
        )

    def test_what_it_holds_does_not_flood_or_command_a_terminal(self):
        values = json.loads(self.whole)
        message = self.refused(
            json.dumps(
                {**values, 'late': {'\x1b[2J' + 9999 * 'x': 1}}
            ).encode()
        )
        self.assertTrue(message.isprintable())
        self.assertLess(len(message), 600)


class LookTest(UnreadableTestCase):
    def setUp(self):
        super().setUp()
        self.second = self.other()
        self.garble(self.run_)

    def test_a_list_has_the_others_and_a_warning_names_it(self):
        with self.warned() as logs:
            found = self.runs.history('shop', run_service.Filter())
        self.assertEqual([self.second.id], [run.id for run in found])
        (line,) = logs.output
        self.assertIn(self.name(), line)
        self.assertIn(self.run_.id, line)

    def test_it_does_not_count_to_the_limit_of_a_list(self):
        self.garble(self.second)
        self.now += 10
        third = self.start(action='FAIL/OVER')
        self.garble(self.run_, self.whole)
        with self.warned():
            found = self.runs.history('shop', run_service.Filter(limit=2))
        self.assertEqual([third.id, self.run_.id], [run.id for run in found])

    def test_so_does_what_an_engine_shows_of_a_deployment(self):
        self.now += 10
        third = self.start(action='FAIL/OVER')
        with self.warned() as logs:
            found = self.runs.latest_of(self.stack.id, [self.row.id], 10)
            found = found[self.row.id]
        self.assertEqual([third.id], [run.id for run in found])
        self.assertIn(self.name(), logs.output[0])

    def test_an_engine_reads_several_at_a_time(self):
        self.garble(self.run_, self.whole)
        both = threading.Barrier(2, timeout=30)
        read = records.Records.read

        def wait_for_the_other(store, key):
            both.wait()
            return read(store, key)

        self.patch(records.Records, 'read', wait_for_the_other)
        ids = [self.run_.deployment_id, self.second.deployment_id]
        found = self.runs.latest_of(self.stack.id, ids, 10)
        self.assertEqual(
            {
                self.run_.deployment_id: [self.run_.id],
                self.second.deployment_id: [self.second.id],
            },
            {each: [run.id for run in its] for each, its in found.items()},
        )


class StartTest(UnreadableTestCase):
    def setUp(self):
        super().setUp()
        self.garble(self.run_)

    def test_as_long_as_it_is_announced_its_action_is_refused(self):
        self.now += 10 * 86400
        exc = self.assertRaises(errors.Refused, self.start)
        self.assertIn(self.name(), str(exc))
        self.assertIn('run delete', str(exc))
        self.assertEqual(1, len(self.heat.given()))
        self.assertEqual([self.run_.key], self.records.opened())

    def test_another_action_is_not(self):
        self.assertEqual(State.WAITING, self.start(action='FAIL/OVER').state)

    def test_nor_when_its_end_was_cleaned_up_before(self):
        self.garble(self.run_, self.whole)
        self.answer()
        self.show(self.run_)
        self.garble(self.run_)
        self.assertEqual(State.WAITING, self.start().state)


class DeleteTest(UnreadableTestCase):
    def setUp(self):
        super().setUp()
        self.garble(self.run_)

    def test_it_is_taken_from_its_server_and_nothing_is_left_of_it(self):
        with self.warned() as logs:
            deleted = self.runs.delete('shop', self.run_.id[-6:])
        self.assertIsNone(deleted)
        self.assertIn(self.run_.id, logs.output[0])
        self.assertEqual([], self.heat.given())
        self.assertEqual(self.configs, self.heat.configs)
        self.assertEqual([], self.objects('runs/'))

    def test_what_is_left_of_others_stays(self):
        second = self.start(action='FAIL/OVER')
        self.runs.delete('shop', self.run_.id)
        self.assertEqual(State.WAITING, self.show(second).state)
        self.assertEqual(1, len(self.heat.given()))

    def test_one_with_a_config_of_its_own_is_found_on_its_server(self):
        self.heat.add_resource(
            self.stack, 'box', 'OS::Nova::Server', 'server-9'
        )
        config = self.heat.add_config('fix', 'script', config='', inputs=[])
        target = self.runs.server('shop', 'box', config)
        run = self.runs.start(target, orders.RunOrder(action='APPLY'))
        self.garble(run)
        self.runs.delete('shop', run.id)
        self.assertEqual([], self.heat.given('server-9'))

    def test_while_heat_does_not_let_it_be_taken_back_it_stays(self):
        self.heat.failing['delete_deployment'] = errors.Denied('no')
        self.assertRaises(
            errors.Denied, self.runs.delete, 'shop', self.run_.id
        )
        self.assertEqual([self.run_.key], self.records.opened())
        self.heat.failing.clear()
        self.runs.delete('shop', self.run_.id)
        self.assertEqual([], self.objects('runs/'))

    def test_with_it_goes_the_container_of_a_stack_that_is_gone(self):
        self.answer()
        self.heat.delete_stack(self.stack)
        self.runs.delete(self.stack.id, self.run_.id)
        self.assertIsNone(self.cluster.container(self.records.container))


class WaitTest(UnreadableTestCase):
    def waiter(self, **more):
        self.told = []
        return self.runs.waiter(self.stack.id, watch=self.told.append, **more)

    def look(self, waiter, times=1):
        for _ in range(times):
            waiter._next_look = waiter._clock()
            waiter.step()

    def test_one_that_is_waited_for_ends_and_the_others_go_on(self):
        second = self.other()
        waiter = self.waiter()
        waiter.add(self.run_)
        waiter.add(second)
        self.records.close(self.run_.key)
        self.garble(self.run_)
        with self.warned() as logs:
            self.look(waiter)
        self.assertIn(self.name(), logs.output[0])
        self.assertEqual([second], waiter.pending)
        (ended,) = self.told
        self.assertEqual((self.run_.id, State.FAILED), (ended.id, ended.state))
        self.assertIn('become unreadable', ended.reason)
        # It is left to its server: nobody knows what has become of it.
        self.assertEqual(1, len(self.heat.given()))

    def test_who_waits_for_all_there_are_passes_it_over_and_says_so_once(self):
        second = self.other()
        self.garble(self.run_)
        waiter = self.waiter(everything=True)
        with self.warned() as logs:
            self.look(waiter, times=3)
        self.assertEqual(1, len(logs.output))
        self.assertEqual([second.id], [run.id for run in waiter.pending])
