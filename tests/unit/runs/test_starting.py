# SPDX-License-Identifier: Apache-2.0
"""A run begins, or leaves nothing behind."""

import dataclasses

from heat_plugins import errors
from heat_plugins.objectstore import exclusive
from heat_plugins.runs import runs
from heat_plugins.runs.records import record_names
from tests.unit.runs import base


class StartTest(base.RunsTestCase):
    def test_the_server_is_given_a_config_of_its_own(self):
        before = dict(self.heat.configs)
        run = self.start(inputs={'level': '9', 'database': 'stock'})
        self.assertEqual(runs.State.WAITING, run.state)
        (config,) = self.heat.given()
        self.assertEqual('db-BACKUP', config.name)
        self.assertEqual('component', config.group)
        self.assertEqual(
            {**before, config.id: config}, dict(self.heat.configs)
        )
        inputs = self.inputs()
        # The hook for scripts takes nothing but text.
        self.assertEqual('9', inputs['level'])
        self.assertEqual('stock', inputs['database'])
        self.assertEqual('hunter2', inputs['password'])
        self.assertEqual('BACKUP', inputs['deploy_action'])
        self.assertEqual('server-1', inputs['deploy_server_id'])
        self.assertEqual('TEMP_URL_POLL', inputs['deploy_signal_transport'])
        self.assertEqual('PUT', inputs['deploy_signal_verb'])

    def test_the_servers_credentials_are_not_handed_on(self):
        self.start()
        self.assertNotIn('deploy_password', self.inputs())

    def test_the_url_runs_out(self):
        run = self.start(timeout=60)
        url = self.inputs()['deploy_signal_id']
        self.assertIn(f'temp_url_expires={run.started_at + 60 + 3600}', url)

    def test_the_record_shows_no_inputs_when_printed(self):
        run = self.start(inputs={'password': 's3cret'})
        self.assertNotIn('s3cret', repr(run))
        self.assertEqual({'password': 's3cret'}, self.show(run).inputs)

    def test_the_key_of_the_engine_is_used_where_there_is_one(self):
        key = {'x-container-meta-temp-url-key': 'the-engines'}
        self.cluster.store().put_container(self.records.container, key)
        self.start()
        self.assertEqual(201, self.answer())
        there = self.cluster.container(self.records.container)
        self.assertEqual(key, there.meta)

    def test_what_was_made_is_unmade_if_the_server_cannot_be_given_it(self):
        for method in ('create_config', 'create_deployment'):
            before = dict(self.heat.configs)
            self.heat.failing = {method: errors.Unavailable('no')}
            self.assertRaises(errors.Unavailable, self.start)
            self.heat.failing = {}
            self.assertEqual(before, self.heat.configs)
            self.assertEqual([], self.heat.given())
            self.assertEqual([], self.objects())

    def test_a_row_that_was_made_without_an_answer_is_found_and_unmade(self):
        create = self.heat.create_deployment

        def lose(**values):
            create(**values)
            raise errors.Unavailable('The answer was lost')

        self.heat.create_deployment = lose
        self.assertRaises(errors.Unavailable, self.start)
        self.assertEqual([], self.heat.given())
        self.assertEqual([], self.objects())

    def test_what_could_not_be_unmade_is_settled_by_who_looks_next(self):
        self.heat.failing = {
            'create_deployment': errors.Unavailable('no'),
            'deployments': errors.Unavailable('no'),
        }
        before = dict(self.heat.configs)
        self.assertRaises(errors.Unavailable, self.start)
        self.heat.failing = {}
        self.assert_did_not_start(before)

    def assert_did_not_start(self, configs):
        """The only run has ended, and nothing is left of it."""
        (key,) = self.records.keys()
        shown = self.runs.show('shop', key.run_id)
        self.assertEqual(runs.State.CANCELLED, shown.state)
        self.assertEqual([], self.heat.given())
        self.assertEqual([], self.objects(record_names.OPEN))
        self.assertEqual(configs, self.heat.configs)

    def test_what_could_not_be_unmade_and_was_delivered_is_withdrawn(self):
        """Its user was told that it did not start: nobody adopts it."""
        create, before = self.heat.create_deployment, dict(self.heat.configs)

        def lose(**values):
            create(**values)
            self.heat.failing = {'deployments': errors.Unavailable('no')}
            raise errors.Unavailable('The answer was lost')

        self.heat.create_deployment = lose
        self.assertRaises(errors.Unavailable, self.start)
        self.heat.failing = {}
        self.now += 200
        self.assert_did_not_start(before)

    def test_the_end_that_another_process_has_recorded_stays(self):
        """It is not undone, whether what the server has can be taken back."""
        create, read = self.heat.create_deployment, self.heat.deployment

        def create_and_cancel(**values):
            row_id = create(**values)
            (key,) = self.records.opened()
            self.service('bob').cancel('shop', key.run_id)
            self.left = self.failures
            return row_id

        def deployment(row_id):
            self.left -= 1
            if self.left >= 0:
                raise errors.Unavailable('no')
            return read(row_id)

        self.patch(self.heat, 'create_deployment', create_and_cancel)
        self.patch(self.heat, 'deployment', deployment)
        for self.failures in (1, 2):
            self.left = 0
            self.assertRaises(errors.Unavailable, self.start)
            (key,) = self.records.keys()
            # Until then its starter may live.
            self.now += 181
            shown = self.runs.show('shop', key.run_id)
            self.assertEqual('Cancelled by bob', shown.reason)
            self.assertEqual([], self.objects(record_names.OPEN))
            self.assertEqual([], self.heat.given())
            self.records.remove(key)

    def test_a_run_ends_though_nobody_may_list_configs(self):
        self.heat.failing = {'recent_configs': errors.Denied('no')}
        self.assertEqual(runs.State.FAILED, self.lost().state)

    def lost(self):
        """Return a run as it is shown whose starter has died."""
        run = self.start()
        # Before it gave the server what it had made.
        del self.heat.rows[run.row_id]
        self.records.write(
            dataclasses.replace(
                run, state=runs.State.STARTING, row_id=None, config_id=None
            )
        )
        self.now += 200
        return self.runs.show('shop', run.id)

    def test_a_config_that_was_never_delivered_is_deleted(self):
        self.heat.add_config(name='of another-BACKUP')
        before = dict(self.heat.configs)
        self.assertEqual(runs.State.FAILED, self.lost().state)
        self.assertEqual(before, self.heat.configs)

    def cancel(self):
        (key,) = self.records.keys()
        self.service(who='bob').cancel('shop', key.run_id)

    def assert_cancelled(self, run):
        self.assertEqual(runs.State.CANCELLED, run.state)
        self.assertEqual('bob', self.show(run).cancelled_by)
        self.assertEqual([], self.heat.given())
        self.assertEqual([], self.objects(record_names.OPEN))

    def test_one_that_is_cancelled_before_the_server_has_it_stays_so(self):
        create = self.heat.create_deployment

        def cancel_first(**values):
            self.cancel()
            return create(**values)

        self.heat.create_deployment = cancel_first
        self.assert_cancelled(self.start())

    def test_one_that_is_cancelled_at_the_last_moment_stays_so(self):
        def before(request):
            if self.heat.given() and record_names.OPEN in request.url:
                self.cluster.before = lambda request: None
                self.cancel()

        self.cluster.before = before
        self.assert_cancelled(self.start())

    def test_a_stack_that_was_deleted_since_is_not_given_a_container(self):
        (target,) = self.runs.find('shop', 'db')
        order = base.orders.RunOrder(action='BACKUP')
        self.heat.stacks[self.stack.id] = dataclasses.replace(
            self.stack, status='DELETE_IN_PROGRESS'
        )
        exc = self.assertRaises(
            errors.NotFound, self.runs.start, target, order
        )
        self.assertIn('Stack shop', str(exc))
        self.heat.delete_stack(self.stack)
        self.assertRaises(errors.NotFound, self.runs.start, target, order)
        self.assertEqual([], self.heat.given())
        self.assertIsNone(self.cluster.container(self.records.container))

    def test_without_a_role_in_the_object_store_nothing_is_made(self):
        self.cluster.denied.add('project-1')
        before = dict(self.heat.configs)
        self.assertRaises(errors.ServiceError, self.start)
        self.assertEqual(before, self.heat.configs)


class TimeLimitTest(base.RunsTestCase):
    """One rule, whoever starts a run: the deployment's, unless given."""

    def test_the_deployments_counts_unless_another_is_given(self):
        self.heat.add_deployment(
            self.stack,
            'timed',
            properties={'timeout': 300, 'delivery_timeout': 30},
        )
        run = self.start(resource='timed')
        self.assertEqual((300, 30), (run.timeout, run.delivery_timeout))
        self.runs.cancel('shop', run.id)
        run = self.start(resource='timed', timeout=5, delivery_timeout=2)
        self.assertEqual((5, 2), (run.timeout, run.delivery_timeout))

    def test_without_either_it_is_an_hour(self):
        run = self.start()
        self.assertEqual((3600, None), (run.timeout, run.delivery_timeout))


class RefusalTest(base.RunsTestCase):
    def refused(self, **order):
        exc = self.assertRaises(errors.Refused, self.start, **order)
        self.assertEqual([], self.heat.given())
        self.assertEqual([], self.cluster.seen)
        return str(exc)

    def test_an_action_that_is_not_there(self):
        message = self.refused(action='BAKCUP')
        self.assertIn('BACKUP, FAIL/OVER', message)
        self.assertTrue(message.endswith('; did you mean "BACKUP"?'), message)

    def test_an_action_of_the_stacks_life(self):
        self.assertIn('Only Heat runs', self.refused(action='CREATE'))

    def test_a_config_that_is_no_component(self):
        self.heat.add_deployment(
            self.stack, 'plain', group='script', config='#!/bin/sh'
        )
        (target,) = self.runs.find('shop', 'plain')
        self.assertRaises(errors.Refused, target.tool, 'BACKUP')

    def test_all_that_is_wrong_with_the_inputs_is_told_at_once(self):
        message = self.refused(
            inputs={'level': 's3cret', 'datbase': 'x', 'options': '[1'}
        )
        self.assertIn('"level" must be a number', message)
        self.assertIn('did you mean "database"?', message)
        self.assertIn('"options" must be a map or a list', message)
        self.assertNotIn('s3cret', message)


class OneAtATimeTest(base.RunsTestCase):
    def test_one_that_has_ended_unseen_is_not_in_the_way(self):
        first = self.start()
        self.answer()
        second = self.start()
        self.assertNotEqual(first.id, second.id)
        self.assertEqual(runs.State.COMPLETE, self.show(first).state)

    def announce(self, run_id):
        key = record_names.Key(
            run_id=run_id, deployment_id=self.row.id, action='BACKUP'
        )
        super().announce(key)
        return key

    def other_comes(self, run_id):
        """Let another announce itself just before we do."""
        done = []

        def before(request):
            if request.method == 'PUT' and record_names.OPEN in request.url:
                self.cluster.before = lambda request: None
                done.append(self.announce(run_id))

        self.cluster.before = before
        return done

    def test_of_two_at_once_the_first_by_name_goes_on(self):
        self.other_comes(record_names.new_run_id(self.now - 1))
        self.assertRaises(errors.AlreadyRunning, self.start)
        self.assertEqual([], self.heat.given())
        self.assertEqual(1, len(self.objects(record_names.OPEN)))
        self.assertEqual([], self.objects(record_names.RECORDS))

    def test_the_first_by_name_waits_until_the_other_has_given_way(self):
        came = self.other_comes(record_names.new_run_id(self.now + 5))
        slept = []

        def sleep(seconds):
            slept.append(seconds)
            self.records.close(came[0])

        self.sleep = sleep
        self.runs = self.service()
        run = self.start()
        self.assertEqual(1, len(slept))
        self.assertEqual([run.id], [k.run_id for k in self.records.opened()])

    def test_the_first_by_name_gives_way_to_one_that_has_gone_on(self):
        came = self.other_comes(record_names.new_run_id(self.now + 5))

        def sleep(seconds):
            # It had read its listing before we came.
            self.records.write(
                dataclasses.replace(
                    a_run(self.row.id),
                    id=came[0].run_id,
                    stack_id=self.stack.id,
                    state=runs.State.STARTING,
                    started_at=int(self.now),
                )
            )

        self.sleep = sleep
        self.runs = self.service()
        exc = self.assertRaises(errors.AlreadyRunning, self.start)
        self.assertEqual(came[0].run_id, exc.run_id)
        self.assertEqual([], self.heat.given())

    def test_of_two_hundred_at_once_each_is_refused_at_once(self):
        self.cluster.store().put_container(self.records.container, {})
        first, *_ = [
            self.announce(
                record_names.new_run_id(self.now - 1 + number / 1000)
            )
            for number in range(200)
        ]
        self.cluster.seen.clear()
        exc = self.assertRaises(errors.AlreadyRunning, self.start)
        self.assertEqual(first.run_id, exc.run_id)
        self.assertIn(f'Run {first.run_id} of BACKUP has not ended', str(exc))
        self.assertLess(len(self.cluster.seen), 25)

    def test_the_first_of_two_hundred_does_not_read_of_all_the_others(self):
        came = []

        def before(request):
            if request.method == 'PUT' and record_names.OPEN in request.url:
                self.cluster.before = lambda request: None
                came.extend(
                    self.announce(
                        record_names.new_run_id(self.now + 1 + one / 1000)
                    )
                    for one in range(200)
                )
                self.cluster.seen.clear()

        def sleep(seconds):
            # They give way one after another.
            for key in came[:50]:
                self.records.close(key)
            del came[:50]

        self.cluster.before = before
        self.sleep = sleep
        self.runs = self.service()
        run = self.start()
        self.assertEqual([run.id], [k.run_id for k in self.records.opened()])
        asked = [one for one in self.cluster.seen if one.method == 'GET']
        self.assertLess(len(asked), 25)

    def test_an_announcement_of_the_dead_is_not_in_the_way(self):
        self.cluster.store().put_container(self.records.container, {})
        self.announce(record_names.new_run_id(self.now - 3600))
        self.start()
        self.assertEqual(1, len(self.objects(record_names.OPEN)))

    def test_who_stands_still_for_too_long_gives_way(self):
        self.patch(exclusive, 'PATIENCE', -1.0)
        self.assertRaises(errors.Refused, self.start)
        self.assertEqual([], self.objects())
        self.assertEqual([], self.heat.given())


def a_run(deployment_id, **more):
    return runs.Run(
        **{
            'id': '20270115T080000Z-00000000',
            'stack_id': 's',
            'stack_name': 'shop',
            'resource': 'db',
            'deployment_id': deployment_id,
            'server_id': 'server-1',
            'action': 'BACKUP',
            'state': runs.State.WAITING,
            'reason': '',
            'started_at': 1,
            'started_by': 'bob',
            'timeout': 60,
            **more,
        }
    )
