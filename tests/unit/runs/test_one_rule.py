# SPDX-License-Identifier: Apache-2.0
"""A run on its own and a member of an operation end by the same rules."""

import dataclasses

import testtools

from heat_plugins.runs import run_objects
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.start import orders
from tests.unit.runs import base

State = runs.State


class Alone(base.RunsTestCase):
    """The action BACKUP runs on the deployment "db"."""

    def runTest(self):
        """Play nothing; a test says what happens."""

    def use(self, tool):
        """Let the action be run by a hook."""
        configs = self.heat.configs
        config = configs[self.row.config_id]
        parts = [{**each, 'tool': tool} for each in config.config['configs']]
        configs[config.id] = dataclasses.replace(
            config, config={'configs': parts}
        )

    def begin(self):
        """Start the run; return its ID."""
        run = self.start(timeout=600, delivery_timeout=300)
        return run.id

    def advance(self):
        """Let the process that leads the run do its part."""

    def delete_rows(self):
        """Delete what the server of the run was given, as a user may."""
        for row in list(self.heat.rows.values()):
            if (row.server_id, row.action) == ('server-1', 'BACKUP'):
                del self.heat.rows[row.id]

    def forget_delivery(self, run_id):
        """Let the record not say what the server of the run was given."""
        run = self.runs.show(self.stack.id, run_id)
        self.records.write(
            dataclasses.replace(
                run, state=State.STARTING, row_id=None, config_id=None
            )
        )

    def played(self, scenario):
        """Return what becomes of the run."""
        run_id = self.begin()
        config_id = self.runs.show(self.stack.id, run_id).config_id
        scenario(self, run_id)
        self.advance()
        run = self.runs.show(self.stack.id, run_id)
        late = run.late
        return {
            'state': run.state,
            'reason': run.reason.replace(config_id, 'CONFIG'),
            'seconds': run.duration,
            'progress': (run.progress, run.message),
            'outputs': dict(run.outputs),
            'late': late
            and dataclasses.replace(late, at=late.at - run.started_at),
            'withdrawn': not self.heat.given(),
            'told to stop': self.is_told_to_stop(run),
        }

    def is_told_to_stop(self, run):
        """Say whether its server is, for as long as it may ask."""
        objects = self.runs._tools.objects(run)
        container = self.cluster.container(objects.container)
        if objects.control not in container.objects:
            return False
        lifetime = int(container.lifetimes[objects.control])
        left = int(run.deadline + run_objects.MARGIN - self.now)
        self.assertIn(lifetime, range(left, run.timeout + 3601))
        return True


class InOperation(Alone):
    """The same as the one member of an operation."""

    def begin(self):
        self.door = self.fleets()
        self.advancer = self.door.create(
            fleet_targets.Chosen(targets=self.runs.find('shop', 'db')),
            operations.OperationLimits(timeout=600, delivery_timeout=300),
            orders.RunOrder(action='BACKUP'),
        )
        self.advance()
        return self.advancer.operation.run_id(0)

    def forget_delivery(self, run_id):
        operation = self.advancer.operation
        self.assertTrue(self.advancer.lead())
        self.advancer._op = operation.attempted(
            {
                0: {
                    'state': State.STARTING,
                    'row_id': None,
                    'config_id': None,
                }
            }
        )
        self.advancer.release()

    def advance(self):
        for _ in range(3):
            self.advancer.step()
        # It leads no longer than that.
        self.advancer.release()


class OneRuleTest(testtools.TestCase):
    def play(self, scenario, tool='script', leaving=None):
        """Return what comes of a run in a scenario, the same for both.

        :param leaving: what differs. No process leads an operation that has
            ended, so what tells a server to stop expires by itself.
        """
        ends = []
        for kind in (Alone, InOperation):
            player = kind('runTest')
            player.setUp()
            player.use(tool)
            self.addCleanup(player.doCleanups)
            ends.append(player.played(scenario))
            ends[-1].pop(leaving, None)
        self.assertEqual(*ends)
        return ends[0]

    def test_a_result(self):
        def scenario(world, run_id):
            world.now += 30
            world.answer(size='1')

        end = self.play(scenario)
        self.assertEqual((State.COMPLETE, 30), (end['state'], end['seconds']))
        self.assertEqual('1', end['outputs']['size'])
        self.assertTrue(end['withdrawn'])

    def test_what_is_no_result(self):
        def scenario(world, run_id):
            url = world.inputs()['deploy_signal_id']
            world.cluster.put_signed(url, b'<html>')

        self.assertEqual(State.FAILED, self.play(scenario)['state'])

    def test_a_report(self):
        def scenario(world, run_id):
            world.put(
                world.inputs()['deploy_progress_url'],
                {'progress': 40, 'message': 'copying'},
            )

        end = self.play(scenario)
        self.assertEqual(State.RUNNING, end['state'])
        self.assertEqual('The server has started the action', end['reason'])
        self.assertEqual((40.0, 'copying'), end['progress'])

    def test_no_report_in_time(self):
        def scenario(world, run_id):
            world.now += 301

        end = self.play(scenario)
        self.assertEqual(State.TIMED_OUT, end['state'])
        self.assertIn('did not report within 300 s', end['reason'])
        self.assertIn('CONFIG.json', end['reason'])
        self.assertTrue(end['told to stop'])

    def test_no_result_in_time(self):
        def scenario(world, run_id):
            world.put(world.inputs()['deploy_progress_url'], {})
            world.advance()
            world.now += 601

        end = self.play(scenario)
        self.assertEqual(State.TIMED_OUT, end['state'])
        self.assertIn('no result within 600 s', end['reason'])
        self.assertTrue(end['told to stop'])

    def test_a_late_result_that_nobody_missed(self):
        def scenario(world, run_id):
            world.now += 700
            world.answer(size='1')
            world.now += 5000

        end = self.play(scenario)
        self.assertEqual(
            (State.TIMED_OUT, 600), (end['state'], end['seconds'])
        )
        self.assertEqual(700, end['late'].at)
        self.assertFalse(end['told to stop'])

    def test_a_late_result_of_a_run_that_was_cancelled(self):
        def scenario(world, run_id):
            url = world.inputs()['deploy_signal_id']
            world.runs.cancel('shop', run_id)
            world.advance()
            world.now += 10
            world.put(url, {'deploy_status_code': 1})

        end = self.play(scenario, leaving='told to stop')
        self.assertEqual(State.CANCELLED, end['state'])
        self.assertEqual('failed', end['late'].status)

    def test_cancelled_before_its_server_has_said_anything(self):
        def scenario(world, run_id):
            world.runs.cancel('shop', run_id)

        end = self.play(scenario)
        self.assertEqual('Cancelled by ann', end['reason'])
        # The server may be fetching it.
        self.assertTrue(end['told to stop'])
        self.assertTrue(end['withdrawn'])

    def test_cancelled_after_its_server_has_begun(self):
        def scenario(world, run_id):
            world.put(world.inputs()['deploy_progress_url'], {})
            world.advance()
            world.runs.cancel('shop', run_id)

        end = self.play(scenario)
        self.assertEqual(
            'Cancelled by ann after the server had begun', end['reason']
        )
        self.assertTrue(end['told to stop'])

    def test_its_deployment_goes(self):
        def scenario(world, run_id):
            del world.heat.rows[world.row.id]
            world.now += 60

        end = self.play(scenario)
        self.assertEqual(State.CANCELLED, end['state'])
        self.assertIn('deleted or withdrawn', end['reason'])
        self.assertTrue(end['told to stop'])

    def test_its_stack_goes(self):
        def scenario(world, run_id):
            world.heat.delete_stack(world.stack)
            world.now += 60

        end = self.play(scenario)
        self.assertEqual('Stack shop was deleted', end['reason'])
        self.assertTrue(end['told to stop'])

    def test_what_was_made_for_it_goes(self):
        def scenario(world, run_id):
            world.delete_rows()
            world.now += 60

        end = self.play(scenario)
        self.assertEqual(State.CANCELLED, end['state'])
        self.assertIn('deleted its deployment in Heat', end['reason'])
        self.assertTrue(end['told to stop'])

    def test_a_result_counts_although_what_was_made_for_it_goes(self):
        def scenario(world, run_id):
            objects = world.runs._tools.objects(
                world.runs.show(world.stack.id, run_id)
            )
            world.cluster.lagging.add((objects.container, objects.result))
            world.answer(size='1')
            world.delete_rows()
            world.now += 60

        end = self.play(scenario)
        self.assertEqual(State.COMPLETE, end['state'])
        self.assertEqual('1', end['outputs']['size'])

    def test_a_process_that_dies_before_it_has_recorded_a_delivery(self):
        def scenario(world, run_id):
            world.forget_delivery(run_id)
            world.now += 200

        end = self.play(scenario)
        self.assertEqual(State.WAITING, end['state'])
        self.assertFalse(end['withdrawn'])

    def test_a_result_of_a_delivery_that_was_not_recorded(self):
        def scenario(world, run_id):
            world.forget_delivery(run_id)
            world.now += 200
            world.runs.show(world.stack.id, run_id)
            world.advance()
            world.answer(size='1')

        end = self.play(scenario)
        self.assertEqual((State.COMPLETE, 200), (end['state'], end['seconds']))
        self.assertTrue(end['withdrawn'])

    def test_a_hook_that_servers_may_lack(self):
        def scenario(world, run_id):
            world.now += 100

        end = self.play(scenario, tool='scirpt')
        self.assertEqual(State.WAITING, end['state'])
        self.assertIn('Did you mean "script"?', end['reason'])

    def test_a_hook_that_servers_lack(self):
        def scenario(world, run_id):
            world.now += 601

        end = self.play(scenario, tool='scirpt')
        self.assertEqual(State.TIMED_OUT, end['state'])
        self.assertIn('Did you mean "script"?', end['reason'])

    def test_a_report_that_no_listing_shows(self):
        def scenario(world, run_id):
            objects = world.runs._tools.objects(
                world.runs.show(world.stack.id, run_id)
            )
            world.cluster.lagging.add((objects.container, objects.report))
            world.put(world.inputs()['deploy_progress_url'], {})
            world.now += 301

        self.assertEqual(State.RUNNING, self.play(scenario)['state'])

    def test_a_stack_that_goes_says_more_than_a_hook(self):
        player = InOperation('runTest')
        player.setUp()
        self.addCleanup(player.doCleanups)
        player.use('scirpt')
        run_id = player.begin()
        player.now += 100
        player.heat.delete_stack(player.stack)
        # No process advances the operation.
        run = player.runs.show(player.stack.id, run_id)
        self.assertEqual('Stack shop was deleted', run.reason)
