# SPDX-License-Identifier: Apache-2.0
"""A run that is cancelled stops on its server."""

import testtools

from heat_plugins import errors
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.signals import live
from tests.unit.runs import base

State = runs.State


class StopTest(base.RunsTestCase):
    def setUp(self):
        super().setUp()
        self.run_ = self.start()
        self.urls = self.inputs()

    def control(self):
        """Ask as the server does; the status."""
        return self.cluster.get_signed(self.urls['deploy_control_url'])[0]

    def stopped(self, how='when told'):
        self.put(
            self.urls['deploy_signal_id'],
            {
                'deploy_stdout': 'half',
                'deploy_status_code': 143,
                'deploy_stopped': how,
            },
        )

    def test_a_server_is_told_nothing_while_a_run_goes_on(self):
        self.assertEqual(404, self.control())

    def test_a_cancel_tells_it_to_stop(self):
        self.runs.cancel('shop', self.run_.id)
        self.assertEqual(200, self.control())

    def test_it_says_how_it_was_stopped(self):
        for how, told in (
            ('when told', 'stopped'),
            ('by force', 'stopped by force'),
        ):
            run = self.runs.cancel('shop', self.run_.id)
            self.stopped(how)
            run = self.show(run)
            self.assertEqual(State.CANCELLED, run.state)
            self.assertEqual(f'Cancelled by ann; {told}', run.reason)
            self.assertEqual('half', run.late.outputs['deploy_stdout'])
            self.assertEqual([], self.objects('signals/'))
            self.run_ = self.start()
            self.urls = self.inputs()

    def test_what_it_says_of_its_own_is_not_believed(self):
        run = self.runs.cancel('shop', self.run_.id)
        self.stopped('x' * 1000)
        self.assertEqual('Cancelled by ann', self.show(run).reason)

    def test_a_server_that_does_not_react_is_not_waited_for_longer(self):
        run = self.runs.cancel('shop', self.run_.id)
        began = self.now
        self.cluster.fail(3)
        run = self.runs.await_stop(run, 20)
        self.assertIsNone(run.late)
        self.assertLessEqual(self.now - began, 22)

    def test_the_store_deletes_it_by_itself_in_the_end(self):
        self.runs.cancel('shop', self.run_.id)
        container = self.cluster.container(self.records.container)
        name = live.control_name(self.run_.signal)
        self.assertEqual('7200', container.lifetimes[name])

    def test_the_url_is_for_reading_that_object_alone(self):
        url = self.urls['deploy_control_url']
        self.assertEqual(401, self.cluster.put_signed(url))
        other = url.replace('.control?', '.progress?')
        self.assertEqual(401, self.cluster.get_signed(other)[0])

    def test_a_store_that_fails_is_told_again_by_who_looks_next(self):
        self.cluster.before = self.refuse_control
        with testtools.ExpectedException(errors.Unavailable):
            self.runs.cancel('shop', self.run_.id)
        self.cluster.before = lambda request: None
        self.assertEqual(State.CANCELLED, self.show(self.run_).state)
        self.assertEqual(200, self.control())

    def refuse_control(self, request):
        if request.method == 'PUT' and request.url.endswith('.control'):
            raise errors.Unavailable('The connection was cut')

    def test_a_caller_that_waits_sees_it_stop(self):
        run = self.runs.cancel('shop', self.run_.id)
        began = self.now

        def sleep(seconds):
            self.now += seconds
            if self.now - began > 4:
                self.stopped()

        self.sleep = sleep
        run = self.service().await_stop(run, 20)
        self.assertEqual('Cancelled by ann; stopped', run.reason)
        self.assertLess(self.now - began, 10)


class QueueTest(base.RunsTestCase):
    """A run that waits says what its server is busy with."""

    def setUp(self):
        super().setUp()
        self.first = self.start('BACKUP')
        self.urls = self.inputs()
        self.now += 1
        self.second = self.start('FAIL/OVER')

    def test_another_run_goes_on(self):
        self.put(self.urls['deploy_progress_url'], {})
        self.show(self.first)
        reason = self.show(self.second).reason
        self.assertIn('Its server is busy with run', reason)
        self.assertIn(self.first.id, reason)

    def test_another_run_was_given_to_it_before(self):
        reason = self.show(self.second).reason
        self.assertIn(
            f'Its server runs run {self.first.id} (BACKUP on', reason
        )
        self.assertEqual(runs.UNANSWERED, self.show(self.first).reason)

    def test_another_run_was_cancelled_and_has_not_stopped(self):
        self.put(self.urls['deploy_progress_url'], {})
        self.show(self.first)
        self.runs.cancel('shop', self.first.id)
        reason = self.show(self.second).reason
        self.assertIn('may be busy', reason)
        self.assertIn('cancelled and has not stopped', reason)
        self.put(self.urls['deploy_signal_id'], {})
        self.show(self.first)
        self.assertEqual(runs.UNANSWERED, self.show(self.second).reason)

    def test_a_list_says_so_too_and_reads_the_others_once(self):
        self.put(self.urls['deploy_progress_url'], {})
        second, _ = self.runs.history('shop', run_service.Filter())
        self.assertIn('is busy with', second.reason)

    def test_a_record_that_cannot_be_read_is_passed_over(self):
        self.garble(self.first)
        self.assertEqual(runs.UNANSWERED, self.show(self.second).reason)

    def test_what_is_said_is_not_stored(self):
        self.show(self.second)
        record = self.records.read(self.second.key)
        self.assertEqual(runs.UNANSWERED, record.reason)
