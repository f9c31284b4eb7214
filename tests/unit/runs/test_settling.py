# SPDX-License-Identifier: Apache-2.0
"""What becomes of a run, whoever looks."""

import dataclasses
import json

from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs.follow import settling
from heat_plugins.runs.records import record_names
from heat_plugins.runs.start import orders
from heat_plugins.signals import live
from heat_plugins.signals import signal_names
from tests.unit import counted
from tests.unit.runs import base

State = runs.State


class SettleTest(base.RunsTestCase):
    def setUp(self):
        super().setUp()
        self.run_ = self.start(timeout=600)
        self.url = self.inputs()['deploy_signal_id']

    def assert_clean(self):
        """Nothing but records is left, and the server has nothing."""
        self.assertEqual([], self.heat.given())
        self.assertEqual([], self.objects(record_names.OPEN))
        self.assertEqual([], self.objects(signal_names.SIGNALS))

    def test_success(self):
        self.now += 5
        self.answer(size='12 MB', deploy_stdout='done\n')
        run = self.show(self.run_)
        self.assertEqual(State.COMPLETE, run.state)
        self.assertEqual('12 MB', run.outputs['size'])
        self.assertEqual('done\n', run.outputs['deploy_stdout'])
        self.assertEqual(5, run.ended_at - run.started_at)
        self.assert_clean()

    def test_a_record_takes_nothing_that_is_not_of_its_run(self):
        """Who may write into the container has no rights in Heat by that."""
        stacks_own = self.row.config_id
        other = self.heat.add_deployment(self.stack, 'other')
        for values in (
            {'row_id': self.row.id, 'config_id': stacks_own},
            {'row_id': None, 'config_id': other.config_id},
            {'row_id': 'gone', 'config_id': other.config_id},
        ):
            run = dataclasses.replace(
                self.run_, state=State.CANCELLED, ended_at=1, **values
            )
            self.records.write(run)
            with self.assertLogs(level='WARNING') as logs:
                self.show(run)
            self.assertIn('which was not made for it', logs.output[0])
            for row in (self.row, other):
                self.assertIn(row.id, self.heat.rows)
                self.assertIn(row.config_id, self.heat.configs)
            self.announce(run.key)

    def test_a_record_of_another_stack_is_none(self):
        run = dataclasses.replace(self.run_, stack_id='of another')
        self.records.write(run)
        error = self.assertRaises(errors.UnreadableRun, self.show, run)
        self.assertIn('the record of another stack', str(error))

    def test_what_a_dead_process_left_of_a_run_goes(self):
        config_id = self.run_.config_id
        self.heat.delete_deployment(self.run_.row_id)
        self.assertIn(config_id, self.heat.configs)
        self.runs.cancel('shop', self.run_.id)
        self.assertNotIn(config_id, self.heat.configs)

    def test_a_run_that_ends_asks_heat_for_one_thing_more(self):
        self.answer()
        self.heat.asked.clear()
        self.show(self.run_)
        asked = [one.partition(' ')[0] for one in self.heat.asked]
        self.assertEqual(
            ['deployment', 'delete_deployment', 'delete_config'],
            [one for one in asked if 'deployment' in one or 'config' in one],
        )

    def test_the_reason_of_a_failure_shows_no_input_that_was_given(self):
        self.runs.cancel('shop', self.run_.id)
        run = self.start(inputs={'password': 'hunter2'})
        said = 'login with hunter2 failed'
        self.answer(deploy_status_code=3, deploy_stderr=said)
        run = self.show(run)
        self.assertIn('is 3: login with ****** failed', run.reason)

    def test_without_a_result_what_is_known_is_told(self):
        self.now += 601
        run = self.show(self.run_)
        self.assertEqual(State.TIMED_OUT, run.state)
        self.assertIn('no result within 600 s', run.reason)
        self.assertIn('The server reported no start', run.reason)
        self.assertIn(f'{self.run_.config_id}.json', run.reason)

    def test_so_it_is_of_what_has_started(self):
        self.put(self.inputs()['deploy_progress_url'], {})
        self.show(self.run_)
        self.now += 601
        reason = self.show(self.run_).reason
        self.assertIn('The server reported the start', reason)
        self.assertIn(f'{self.run_.config_id}.notify.json', reason)

    def test_a_hook_that_servers_lack_is_told_after_a_while(self):
        self.runs.cancel('shop', self.run_.id)
        config = self.heat.add_config('fix', 'scirpt', config='', inputs=[])
        self.heat.add_resource(
            self.stack, 'box', 'OS::Nova::Server', 'server-9'
        )
        target = self.runs.server('shop', 'box', config)
        order = orders.RunOrder(action='APPLY', timeout=600)
        run = self.runs.start(target, order)
        self.now += 59
        self.assertEqual(runs.UNANSWERED, self.show(run).reason)
        self.now += 1
        found = self.show(run)
        self.assertEqual(State.WAITING, found.state)
        for part in ('"scirpt" is not a hook', 'Did you mean "script"?'):
            self.assertIn(part, found.reason)
        self.now += 600
        self.assertIn('"scirpt" is not a hook', self.show(run).reason)

    def test_what_is_no_result_is_a_failure(self):
        self.cluster.put_signed(self.url, b'<html>')
        run = self.show(self.run_)
        self.assertEqual(State.FAILED, run.state)
        self.assertIn('not JSON', run.reason)
        self.assert_clean()

    def test_it_times_out(self):
        self.now += 601
        run = self.show(self.run_)
        self.assertEqual(State.TIMED_OUT, run.state)
        self.assertIn('600 s', run.reason)
        # The server may fetch it just now, and is told to stop it.
        self.assertEqual(
            [live.control_name(run.signal)],
            self.objects(signal_names.SIGNALS),
        )
        self.runs.delete('shop', run.id)
        self.assert_clean()

    def test_it_counts_when_the_answer_came_and_not_when_somebody_looked(self):
        self.now += 30
        self.answer()
        self.now += 5000
        run = self.show(self.run_)
        self.assertEqual(State.COMPLETE, run.state)
        self.assertEqual(30, run.ended_at - run.started_at)

    def test_an_answer_after_its_time_is_late_though_nobody_looked(self):
        self.now += 700
        self.answer(size='1')
        self.now += 5000
        run = self.show(self.run_)
        self.assertEqual(State.TIMED_OUT, run.state)
        self.assertEqual(600, run.ended_at - run.started_at)
        self.assertEqual(700, run.late.at - run.started_at)
        self.assertEqual('1', run.late.outputs['size'])
        self.assert_clean()

    def test_a_result_that_no_listing_shows_is_found_in_the_end(self):
        self.answer()
        name = self.run_.signal
        self.cluster.lagging.add((self.records.container, name))
        self.assertEqual(State.WAITING, self.show(self.run_).state)
        self.now += 601
        self.assertEqual(State.COMPLETE, self.show(self.run_).state)

    def test_its_end_is_counted_once(self):
        counts = self.useFixture(counted.Counted())
        self.show(self.run_)
        self.answer(size='1')
        for _ in range(2):
            self.show(self.run_)
        self.assertEqual({'complete': 1}, counts.of(metrics.RUNS))

    def test_looking_twice_changes_nothing(self):
        self.answer(size='1')
        run = self.show(self.run_)
        before = self.objects()
        self.now += 1000
        self.assertEqual(run, self.show(self.run_))
        self.assertEqual(before, self.objects())

    def test_two_that_look_at_once_agree(self):
        self.answer(size='1')
        seen = []

        def before(request):
            if request.method == 'GET' and self.run_.signal in request.url:
                self.cluster.before = lambda request: None
                seen.append(self.show(self.run_))

        self.cluster.before = before
        run = self.show(self.run_)
        self.assertEqual(seen, [run])
        self.assertEqual(State.COMPLETE, run.state)
        self.assert_clean()

    def test_what_could_not_be_cleaned_up_is_done_by_who_looks_next(self):
        self.answer()
        self.heat.failing = {'delete_deployment': errors.Unavailable('no')}
        self.assertRaises(errors.Unavailable, self.show, self.run_)
        self.heat.failing = {}
        self.assertEqual(State.COMPLETE, self.show(self.run_).state)
        self.assert_clean()

    def test_outputs_without_end_are_kept_whole_and_shown_by_their_tail(self):
        text = 'x' * 10000 + 'the end'
        self.answer(deploy_stdout=text, size='1')
        run = self.show(self.run_)
        self.assertEqual(text[-runs.TAIL :], run.outputs['deploy_stdout'])
        self.assertEqual({'deploy_stdout': len(text)}, dict(run.cut))
        whole = self.runs.outputs(run)
        self.assertEqual(text, whole['deploy_stdout'])
        self.assertEqual('1', whole['size'])

    def test_the_url_does_not_come_back_with_the_outputs(self):
        self.answer(deploy_stderr=f'crashed with {self.url}')
        shown = self.show(self.run_).outputs['deploy_stderr']
        signature = self.url.partition('temp_url_sig=')[2].partition('&')[0]
        self.assertNotIn(signature, shown)

    def test_progress(self):
        url = self.inputs()['deploy_progress_url']
        self.put(url, {'progress': 40, 'message': 'table 4\x1b[2J\nof 10'})
        run = self.show(self.run_)
        self.assertEqual(State.RUNNING, run.state)
        self.assertEqual(40, run.progress)
        self.assertEqual(r'table 4\x1b[2J of 10', run.message)
        self.assertEqual(int(self.now), run.reported_at)
        self.put(url, b'not a map'.decode())
        self.assertEqual(State.RUNNING, self.show(self.run_).state)
        self.answer()
        self.assertEqual(State.COMPLETE, self.show(self.run_).state)
        self.assert_clean()

    def settled_by_who_saw_it_begin(self):
        """Settle it with what was known of it before it was handed over."""
        self.put(self.inputs()['deploy_progress_url'], {})
        early = dataclasses.replace(
            self.run_, state=State.STARTING, row_id=None, config_id=None
        )
        settler = settling.Settler(
            services.Services.of(
                self.heat,
                self.cluster.store(),
                who='bob',
                clock=lambda: self.now,
            ),
            self.records,
        )
        return early, lambda: settler.settle(early, self.records.arrivals())

    def test_who_saw_it_begin_loses_nothing_of_what_came_after(self):
        _, settle = self.settled_by_who_saw_it_begin()
        self.now += 300
        run = settle()
        self.assertEqual(State.RUNNING, run.state)
        self.assertEqual(self.run_.row_id, run.row_id)
        self.assertEqual(self.run_.row_id, self.show(run).row_id)

    def test_a_report_leaves_it_to_who_starts_it_to_end_that(self):
        early, settle = self.settled_by_who_saw_it_begin()
        self.records.write(early)
        self.assertEqual(State.STARTING, settle().state)
        self.assertEqual(early, self.records.read(early.key))


class DeliveryTest(base.RunsTestCase):
    def test_a_server_that_should_report_and_does_not_has_time_out(self):
        run = self.start(timeout=600, delivery_timeout=30)
        self.now += 31
        run = self.show(run)
        self.assertEqual(State.TIMED_OUT, run.state)
        self.assertIn('within 30 s', run.reason)

    def test_a_report_that_no_listing_shows_is_found_in_time(self):
        run = self.start(timeout=600, delivery_timeout=30)
        self.put(self.inputs()['deploy_progress_url'], {})
        self.cluster.lagging.add((self.records.container, run.progress_signal))
        self.now += 31
        self.assertEqual(State.RUNNING, self.show(run).state)

    def test_one_that_has_reported_has_the_rest_of_the_time(self):
        run = self.start(timeout=600, delivery_timeout=30)
        self.put(self.inputs()['deploy_progress_url'], {})
        self.now += 29
        self.show(run)
        self.now += 500
        self.assertEqual(State.RUNNING, self.show(run).state)


class StarterDiedTest(base.RunsTestCase):
    """The process that started a run died after giving it to its server."""

    def setUp(self):
        super().setUp()
        self.run_ = self.start(timeout=600)
        self.forget()
        self.heat.asked.clear()

    def forget(self, **more):
        """Let the record say that the run is starting."""
        values = {'row_id': None, 'config_id': None, **more}
        self.records.write(
            dataclasses.replace(self.run_, state=State.STARTING, **values)
        )

    def shown(self, seconds=200):
        self.now += seconds
        return self.show(self.run_)

    def is_told(self):
        """Say whether its server was told of the run once more."""
        return any(each.startswith('tell ') for each in self.heat.asked)

    def assert_withdrawn(self, run):
        self.assertEqual(State.CANCELLED, run.state)
        self.assertEqual([], self.heat.given())
        self.assertFalse(self.is_told())

    def test_it_goes_on(self):
        self.assertEqual(State.WAITING, self.shown().state)
        self.assertTrue(self.is_told())

    def test_what_the_former_release_could_not_undo_does_not(self):
        self.forget(config_id=self.run_.config_id)
        self.assert_withdrawn(self.shown())

    def test_nor_does_what_was_revoked(self):
        self.records.revoke(self.run_.key)
        self.assert_withdrawn(self.shown())

    def test_what_is_cancelled_is_not_begun_before(self):
        self.now += 200
        self.assert_withdrawn(self.runs.cancel('shop', self.run_.id))

    def test_a_config_that_no_server_was_given_goes_with_its_run(self):
        self.heat.delete_deployment(self.run_.row_id)
        self.records.revoke(self.run_.key)
        self.assert_withdrawn(self.shown())
        self.assertNotIn(self.run_.config_id, self.heat.configs)

    def test_nor_is_what_is_late(self):
        self.assertEqual(State.TIMED_OUT, self.shown(700).state)
        self.assertFalse(self.is_told())


class CancelTest(base.RunsTestCase):
    def setUp(self):
        super().setUp()
        self.run_ = self.start()
        self.url = self.inputs()['deploy_signal_id']

    def test_a_late_result_is_noted_and_is_no_success(self):
        self.runs.cancel('shop', self.run_.id)
        self.now += 60
        self.put(self.url, {'deploy_status_code': 0, 'size': '3'})
        run = self.show(self.run_)
        self.assertEqual(State.CANCELLED, run.state)
        self.assertEqual('complete', run.late.status)
        self.assertEqual(int(self.now), run.late.at)
        self.assertEqual('3', run.late.outputs['size'])
        self.assertEqual([], self.objects(signal_names.SIGNALS))
        self.assertEqual(run, self.show(run))

    def test_what_has_ended_cannot_be_cancelled(self):
        self.put(self.url, {})
        self.assertRaises(
            errors.AlreadyEnded, self.runs.cancel, 'shop', self.run_.id
        )
        self.assertEqual(State.COMPLETE, self.show(self.run_).state)

    def test_a_result_for_a_run_that_was_deleted_is_swept_up(self):
        self.runs.cancel('shop', self.run_.id)
        self.runs.delete('shop', self.run_.id)
        self.put(self.url, {})
        self.assertEqual([], self.runs.history('shop', run_service.Filter()))
        self.assertEqual([], self.objects())

    def test_signals_of_the_stacks_own_actions_are_left_alone(self):
        name = signal_names.signal(self.row.id, 'config-1')
        self.cluster.store().put_object(self.records.container, name, b'{}')
        self.runs.history('shop', run_service.Filter())
        self.assertEqual([name], self.objects(signal_names.SIGNALS))


class GoneTest(base.RunsTestCase):
    def test_a_stack_that_is_deleted_ends_its_runs(self):
        run = self.start()
        self.heat.delete_stack(self.stack)
        shown = self.runs.show(self.stack.id, run.id)
        self.assertEqual(State.CANCELLED, shown.state)
        self.assertIn('Stack shop was deleted', shown.reason)
        self.assertEqual([], self.heat.given())

    def test_the_records_of_a_deleted_stack_can_be_deleted_all(self):
        run = self.start()
        self.heat.delete_stack(self.stack)
        self.runs.show(self.stack.id, run.id)
        self.runs.delete(self.stack.id, run.id)
        self.assertIsNone(self.cluster.container(self.records.container))

    def test_the_container_of_a_stack_that_is_there_stays(self):
        run = self.start()
        self.answer()
        self.runs.delete('shop', run.id)
        self.assertIsNotNone(self.cluster.container(self.records.container))

    def test_a_deployment_that_was_deleted_ends_its_runs(self):
        run = self.start()
        del self.heat.rows[self.row.id]
        shown = self.show(run)
        self.assertEqual(State.CANCELLED, shown.state)
        self.assertIn('Deployment db', shown.reason)
        self.assertEqual([], self.heat.given())

    def test_a_row_that_somebody_has_deleted_ends_its_run(self):
        run = self.start()
        del self.heat.rows[run.row_id]
        shown = self.show(run)
        self.assertEqual(State.CANCELLED, shown.state)
        self.assertIn('in Heat', shown.reason)


class HistoryTest(base.RunsTestCase):
    def setUp(self):
        super().setUp()
        self.heat.add_deployment(self.stack, 'web', 'server-2')
        self.first = self.start()
        self.answer()
        self.show(self.first)
        self.now += 10
        self.second = self.start(action='FAIL/OVER')
        self.now += 10
        self.third = self.start(resource='web')

    def ids(self, **wanted):
        found = self.runs.history('shop', run_service.Filter(**wanted))
        return [run.id for run in found]

    def test_it_can_be_narrowed(self):
        self.assertEqual([self.third.id], self.ids(resource='web'))
        self.assertEqual([self.second.id], self.ids(action='FAIL/OVER'))
        self.assertEqual([self.first.id], self.ids(state=State.COMPLETE))
        self.assertEqual([self.third.id], self.ids(limit=1))

    def test_a_run_that_begins_and_ends_meanwhile_keeps_its_result(self):
        begun = []

        def before(request):
            if 'prefix=signals' in request.url:
                self.cluster.before = lambda request: None
                begun.append(self.start())
                self.answer_as(begun[0])

        self.cluster.before = before
        self.ids()
        self.assertEqual(State.COMPLETE, self.show(begun[0]).state)

    def test_a_run_is_found_by_an_end_of_its_id(self):
        for part in (self.first.id[:-3], self.first.id[-6:]):
            shown = self.runs.show('shop', part)
            self.assertEqual(self.first.id, shown.id)

    def test_what_may_be_several_is_not_guessed(self):
        exc = self.assertRaises(errors.NotFound, self.runs.show, 'shop', '20')
        self.assertIn(self.first.id, str(exc))
        self.assertRaises(errors.NotFound, self.runs.show, 'shop', 'zz')

    def test_one_listing_of_each_kind_serves_all(self):
        self.cluster.seen.clear()
        self.ids()
        listings = [s for s in self.cluster.seen if 'prefix' in s.query]
        # And of the project's operations, which have no container here.
        self.assertEqual(3 + 1, len(listings))

    def answer_as(self, run):
        config = self.heat.configs[run.config_id]
        self.put(base.values(config)['deploy_signal_id'], {})


class RetentionTest(base.RunsTestCase):
    def setUp(self):
        super().setUp()
        self.runs = self.service(
            keep=record_names.Retention(number=2, days=30)
        )

    def ended(self):
        run = self.start()
        self.answer(deploy_stdout='x' * 9000)
        self.show(run)
        self.now += 60
        return run.id

    def ids(self):
        found = self.runs.history('shop', run_service.Filter())
        return [run.id for run in found]

    def test_so_many_are_kept_beside_those_that_go_on(self):
        ended = [self.ended() for _ in range(3)]
        run = self.start()
        self.assertEqual([run.id, ended[2], ended[1]], self.ids())
        self.assertEqual(2, len(self.objects(record_names.OUTPUTS)))

    def test_a_run_is_started_although_others_cannot_be_forgotten(self):
        for _ in range(3):
            self.ended()
        self.cluster.fail(1, 503, 'DELETE')
        self.assertEqual(State.WAITING, self.start().state)


class RecordTest(base.RunsTestCase):
    def test_what_a_later_release_has_written_can_be_read(self):
        run = self.start()
        values = {**json.loads(self.record(run)), 'mood': 'good'}
        self.assertEqual(run, runs.Run.read(values))
