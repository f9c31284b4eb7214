# SPDX-License-Identifier: Apache-2.0
"""What a member of an operation is given, and how its answer is read."""

import collections
import dataclasses
from unittest import mock

import testtools

from heat_plugins import errors
from heat_plugins.runs.fleet import dispatch
from heat_plugins.runs.fleet import exclusions
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import member_runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.start import orders
from heat_plugins.signals import body
from tests.unit.runs.fleet import simulation

ONE = operations.OperationLimits(max_concurrent=operations.Share(1))
ONE_FAILS = operations.Share(1)


class HandlingTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.world = simulation.World(2, stacks=1)
        self.given = []
        create = self.world.heat.create_config

        def create_config(draft):
            self.given.append(draft)
            return create(draft)

        self.world.heat.create_config = create_config
        self.door = fleets.Fleets(self.world.heat, self.world.tools())

    def begin(self, limits=ONE, **given):
        order = orders.RunOrder(action='BACKUP', **given)
        chosen = fleet_targets.Chooser(self.world.heat, self.door.pool).choose(
            fleet_targets.Wanted(stacks=['s0']), order
        )
        advancer = self.door.create(chosen, limits, order)
        advancer.step()
        return advancer

    def end(self, advancer, world=None):
        return simulation.run(world or self.world, [advancer])

    def texts(self):
        """Return what the runs of the members execute."""
        return [
            one.config['configs'][-1]['config']
            for one in self.given
            if isinstance(one.config, dict)
        ]

    def test_a_stack_may_be_updated_meanwhile(self):
        advancer = self.begin()
        self.world.sleep(300)
        config = {
            'configs': [
                {'actions': ['BACKUP'], 'tool': 'script', 'config': 'newer'}
            ]
        }
        row_id = self.world.members[1].deployment_id
        rows, configs = self.world.heat.rows, self.world.heat.configs
        inputs = configs[rows[row_id].config_id].inputs
        newer = self.world.heat.add_config(config=config, inputs=inputs)
        rows[row_id] = dataclasses.replace(rows[row_id], config_id=newer.id)
        found = self.end(advancer)
        self.assertEqual('complete', found.control.phase.value)
        self.assertEqual('newer', self.texts()[-1])

    def test_inputs_are_for_each_server(self):
        self.end(self.begin(inputs={'database': 'wiki', 'level': '9'}))
        for draft in self.given[1:]:
            inputs = {one['name']: one['value'] for one in draft.inputs}
            self.assertEqual('wiki', inputs['database'])
            # Where each sends its own result.
        urls = {
            one['value']
            for draft in self.given[1:]
            for one in draft.inputs
            if one['name'] == 'deploy_signal_id'
        }
        self.assertEqual(2, len(urls))

    def limits(self, **order):
        """Return how much each member may print."""
        self.end(self.begin(**order))
        return {
            one['value']
            for draft in self.given[1:]
            for one in draft.inputs
            if one['name'] == 'deploy_log_limit'
        }

    def test_what_few_print_is_kept_as_if_each_ran_alone(self):
        self.assertEqual({'10000000'}, self.limits())

    def test_what_many_print_is_kept_in_part(self):
        for members, limit in ((100, 10), (200, 5), (1000, 1), (9000, 1)):
            order = dataclasses.replace(
                self.world.order(), members=self.world.members[:1] * members
            )
            self.assertEqual(limit * 1_000_000, member_runs._log_limit(order))
            order = dataclasses.replace(order, log_limit=200_000)
            self.assertEqual(200_000, member_runs._log_limit(order))

    def test_inputs_that_do_not_fit_start_nothing(self):
        exc = self.assertRaises(
            errors.Refused, self.begin, inputs={'levle': 9}
        )
        self.assertIn('did you mean "level"?', str(exc))
        self.assertEqual([], self.given)

    def test_what_is_gone_leaves_the_operation(self):
        advancer = self.begin()
        self.world.heat.rows.pop(self.world.members[1].deployment_id)
        self.world.sleep(300)
        found = self.end(advancer)
        self.assertEqual('complete', found.control.phase.value)
        self.assertIn('of stack s0 was deleted', found.attempts[1].reason)

    def test_a_stack_that_goes_takes_its_targets_along(self):
        self.world.silent = {0, 1}
        advancer = self.begin()
        self.world.heat.delete_stack(self.world.stacks[0])
        found = self.end(advancer)
        self.assertEqual('cancelled', found.control.phase.value)
        self.assertEqual(
            ['Stack s0 was deleted'] * 2,
            [one.reason for one in found.attempts],
        )
        self.assertEqual([], self.world.given)

    def test_a_deployment_that_goes_takes_its_target_along(self):
        for engines in (simulation.nobody, simulation.everybody):
            world = self.world = simulation.World(
                12, stacks=1, silent={3, 11}, engines=engines
            )
            advancer = world.begin(world.order(timeout=600))
            advancer.step()
            for n in (3, 11):
                del world.heat.rows[world.members[n].deployment_id]
            began = world.now
            found = self.end(advancer)
            # Heat's API is asked for ten at a time.
            self.assertLess(world.now - began, 90)
            self.assertEqual('cancelled', found.control.phase.value)
            for n in (3, 11):
                attempt = found.attempts[n]
                self.assertIs(operations.State.CANCELLED, attempt.state)
                self.assertIn('deleted or withdrawn', attempt.reason)
            self.assertEqual([], world.given)

    def test_an_engine_withdraws_many_in_parts_and_once_more(self):
        with mock.patch.object(dispatch, '_TOGETHER', 3):
            world = self.world = simulation.World(
                8, stacks=1, silent={*range(8)}, engines=simulation.everybody
            )
            advancer = world.begin(world.order(timeout=600))
            while advancer.step() and advancer.is_busy:
                pass
            world.heat.failing['withdraw_runs'] = errors.Unavailable('503')
            door = fleets.Fleets(world.heat, world.tools())
            door.request(advancer.operation.id, 'cancel')
            for _ in range(3):
                advancer.step()
                world.sleep(1)
            self.assertEqual(8, len(world.given))
            world.heat.failing.clear()
            world.heat.asked.clear()
            found = self.end(advancer)
        self.assertEqual('cancelled', found.control.phase.value)
        self.assertEqual([], world.given)
        self.assertEqual(
            [f'withdraw_runs {n}' for n in (3, 3, 2)],
            [one for one in world.heat.asked if 'withdraw_runs' in one],
        )

    def test_a_run_whose_deployment_was_withdrawn_can_be_retried(self):
        # As an action of the stack that times out withdraws it. Heat's API
        # does not tell that from a deletion.
        world = self.world = simulation.World(2, stacks=1, silent={1})
        advancer = world.begin(world.order(timeout=600))
        advancer.step()
        row_id = world.members[1].deployment_id
        row = world.heat.rows.pop(row_id)
        operation = self.end(advancer)
        self.assertEqual(
            'Deployment db1 of stack s0 was deleted or withdrawn from its '
            'server',
            operation.attempts[1].reason,
        )
        self.assertIn('1 cancelled', operation.control.reason)
        self.assertTrue(operation.attempts[1].counts)
        world.heat.rows[row_id], world.silent = row, set()
        door = fleets.Fleets(world.heat, world.tools())
        operation = self.end(door.request(operation.id, 'retry'))
        states = {each.state for each in operation.attempts}
        self.assertEqual({operations.State.COMPLETE}, states)

    def engines(self, **more):
        """Return a cloud whose processes are engines, and an order."""
        world = self.world = simulation.World(
            2, stacks=1, engines=simulation.everybody
        )
        return world, world.order(timeout=600, **more)

    def test_with_an_engine_a_run_outlives_a_withdrawn_deployment(self):
        world, order = self.engines()
        advancer = world.begin(order)
        advancer.step()
        world.heat.withdraw(world.members[1].deployment_id)
        operation = self.end(advancer)
        states = [each.state for each in operation.attempts]
        self.assertEqual([operations.State.COMPLETE] * 2, states)

    def test_an_engine_delivers_to_what_was_withdrawn_before(self):
        world, order = self.engines()
        world.heat.withdraw(world.members[0].deployment_id)
        operation = self.end(world.begin(order))
        states = [each.state for each in operation.attempts]
        self.assertEqual([operations.State.COMPLETE] * 2, states)

    def test_an_engine_repeats_a_delivery_whose_deployment_is_withdrawn(self):
        world, order = self.engines()
        advancer = world.begin(order)
        world.heat.failing['deliver'] = errors.Unavailable('the database')
        advancer.step()
        self.assertEqual([], world.given)
        world.heat.withdraw(world.members[1].deployment_id)
        del world.heat.failing['deliver']
        # Another one, as the first has died.
        world.sleep(300)
        operation = self.end(world.advancer(order, 'bob'))
        states = [each.state for each in operation.attempts]
        self.assertEqual([operations.State.COMPLETE] * 2, states)

    def test_what_an_engine_does_not_find_leaves_the_operation(self):
        world, order = self.engines()
        row_id = world.members[1].deployment_id
        del world.heat.rows[row_id]
        operation = self.end(world.begin(order))
        self.assertTrue(operation.attempts[1].gone)

    def test_a_withdrawn_deployment_that_refuses_is_said_to_fail(self):
        world, order = self.engines()
        world.heat.withdraw(world.members[1].deployment_id)
        world.heat.failing['withdrawn'] = errors.Refused('no such action')
        operation = self.end(world.begin(order))
        attempt = operation.attempts[1]
        self.assertEqual(
            (operations.State.FAILED, 'no such action'),
            (attempt.state, attempt.reason),
        )

    def test_a_server_that_cannot_be_told_again_holds_up_no_other(self):
        world = self.world = simulation.World(2, stacks=1)
        advancer = world.begin(world.order(timeout=60))

        def refuse(row):
            raise errors.Denied('no', 403)

        world.heat.tell = refuse
        operation = advancer.operation.attempted(
            {0: {'state': operations.State.STARTING, 'number': 1}}
        )
        members = member_runs.MemberRuns(world.tools(), operation.order)
        members.start(operation, 0)
        adopted = members.adopt(operation, 0, resumes=True)
        self.assertIs(operations.State.WAITING, adopted['state'])

        def fail(row):
            raise errors.Unavailable('later')

        world.heat.tell = fail
        self.assertRaises(
            errors.Unavailable, members.adopt, operation, 0, resumes=True
        )

    def test_an_engine_gives_all_their_runs_at_once(self):
        world = simulation.World(300, engines=simulation.everybody)
        everything = operations.Share(300)
        advancer = world.begin(world.order(max_concurrent=everything))
        advancer.step()
        advancer.step()
        made = [one for one in world.heat.asked if one.startswith('deliver')]
        self.assertEqual(['deliver 250', 'deliver 50'], made)
        self.assertEqual(300, len(world.given))

    def test_a_server_in_several_stacks_is_told_of_all_runs_together(self):
        world = simulation.World(300, engines=simulation.everybody)
        # The second half are on the servers of the first.
        world.members[150:] = [
            dataclasses.replace(one, server_id=other.server_id)
            for one, other in zip(
                world.members[150:], world.members[:150], strict=True
            )
        ]
        order = world.order(max_concurrent=operations.Share(300))
        world.begin(order).step()
        counts = collections.Counter(one.server_id for one in world.given)
        self.assertEqual({2: 125}, dict(collections.Counter(counts.values())))

    def test_what_is_wrong_with_a_target_keeps_no_run_from_the_others(self):
        world = simulation.World(3, stacks=1, engines=simulation.everybody)
        row = world.heat.rows[world.members[0].deployment_id]
        config = world.heat.configs[row.config_id]
        world.heat.configs[config.id] = dataclasses.replace(
            config, config={'configs': []}
        )
        del world.heat.rows[world.members[1].deployment_id]
        found = self.end(world.begin(world.order(max_errors=ONE_FAILS)), world)
        failed, gone, fine = (one.state.value for one in found.attempts)
        self.assertEqual(
            ['failed', 'cancelled', 'complete'], [failed, gone, fine]
        )

    def test_where_not_all_fit_each_is_tried(self):
        world = self.world = simulation.World(
            3, stacks=1, engines=simulation.everybody
        )
        world.heat.failing['deliver'] = errors.ServiceError('a limit')
        found = self.end(world.begin(world.order()))
        self.assertEqual('complete', found.control.phase.value)

    def test_who_dies_before_a_server_is_told_leaves_that_to_the_next(self):
        for engines in (simulation.others, simulation.everybody):
            world = self.world = simulation.World(
                2, stacks=1, engines=simulation.everybody
            )
            order = world.order()
            advancer = world.begin(order)
            world.heat.failing['tell_of_run'] = simulation.Killed()
            self.assertRaises(simulation.Killed, advancer.step)
            del world.heat.failing['tell_of_run']
            self.assertEqual(2, len(world.heat.untold))
            world.sleep(60)
            world.engines = engines
            found = self.end(world.advancer(order))
            self.assertEqual('complete', found.control.phase.value)
            self.assertEqual({1}, set(world.executed.values()))

    def test_who_dies_before_a_config_goes_leaves_that_to_the_next(self):
        world = self.world = simulation.World(
            2, stacks=1, engines=simulation.everybody
        )
        order = world.order()
        advancer = world.begin(order)
        advancer.step()
        world.heat.failing['delete_config'] = simulation.Killed()
        self.assertRaises(simulation.Killed, self.end, advancer)
        del world.heat.failing['delete_config']
        world.sleep(60)
        found = self.end(world.advancer(order))
        self.assertEqual('complete', found.control.phase.value)
        self.assertEqual(world.configs, set(world.heat.configs))

    def test_configs_that_cannot_be_listed_stop_no_operation(self):
        world, order = self.world, self.world.order()
        world.heat.failing['create_deployment'] = simulation.Killed()
        self.assertRaises(simulation.Killed, world.begin(order).step)
        world.heat.failing = {'recent_configs': errors.Unavailable('503')}
        world.sleep(60)
        found = simulation.run(world, [world.advancer(order)], most=300)
        self.assertEqual('complete', found.control.phase.value)

    def undelivered(self):
        """Return who leads an operation whose configs are made, not given."""
        world = self.world
        world.heat.failing['create_deployment'] = errors.Unavailable('503')
        advancer = world.begin(world.order(timeout=600))
        advancer.step()
        self.assertEqual(2, len(world.heat.configs.keys() - world.configs))
        # It has looked up that Heat has no deployment.
        world.sleep(6)
        return advancer

    def test_the_config_of_what_is_held_goes(self):
        advancer = self.undelivered()
        self.door.request(advancer.operation.id, 'cancel')
        found = self.end(advancer)
        self.assertEqual('cancelled', found.control.phase.value)
        self.assertEqual(self.world.configs, set(self.world.heat.configs))

    def test_the_config_of_what_is_left_to_another_run_goes(self):
        advancer, world = self.undelivered(), self.world
        advancer._exclusion.others = lambda order, members: {
            n: exclusions.Other(run_id='another') for n in members
        }
        found = self.end(advancer)
        states = [each.state for each in found.attempts]
        self.assertEqual([operations.State.SKIPPED] * 2, states)
        self.assertEqual(world.configs, set(world.heat.configs))

    def killed(self, world):
        """Return an order whose leader died before it delivered anything."""
        order = world.order()
        advancer = world.begin(order)
        world.heat.failing['create_deployment'] = simulation.Killed()
        # As other operations make them meanwhile.
        for n in range(40):
            world.configs.add(world.heat.add_config(name=f'{n}-BACKUP').id)
        self.assertRaises(simulation.Killed, advancer.step)
        del world.heat.failing['create_deployment']
        world.sleep(60)
        return order

    def test_of_many_configs_those_of_a_dead_leader_are_found(self):
        world = self.world
        found = self.end(world.advancer(self.killed(world)))
        self.assertEqual('complete', found.control.phase.value)
        self.assertEqual(world.configs, set(world.heat.configs))

    def test_what_has_answered_needs_no_look_for_its_config(self):
        world = self.world
        order = world.order()
        advancer = world.begin(order)
        advancer.step()
        # Its record does not say that servers have their runs.
        for _ in range(3):
            world.sleep(30)
        found = self.end(world.advancer(order))
        self.assertEqual('complete', found.control.phase.value)
        asked = {each.partition(' ')[0] for each in world.heat.asked}
        self.assertNotIn('recent_configs', asked)

    def test_an_outage_keeps_one_that_is_gone_from_its_end_alone(self):
        world = self.world = simulation.World(2, stacks=1, silent={0, 1})
        advancer = world.begin(world.order(timeout=600))
        advancer.step()
        for member in world.members:
            del world.heat.rows[member.deployment_id]
        over = advancer._dispatcher._members.over

        def fail(operation, member):
            if member == 0:
                raise errors.Unavailable('503')
            return over(operation, member)

        advancer._dispatcher._members.over = fail
        world.sleep(60)
        states = [each.state for each in advancer.step().attempts]
        self.assertEqual(
            [operations.State.WAITING, operations.State.CANCELLED], states
        )

    def test_all_servers_are_told_to_stop_before_one_is_withdrawn(self):
        self.world.silent = {0, 1}
        advancer = self.begin(operations.OperationLimits())
        urls = [
            one['value']
            for draft in self.given
            for one in draft.inputs
            if one['name'] == body.URL_INPUT
        ]
        for url in urls:
            self.assertEqual(201, self.world.cluster.put_signed(url))
        self.world.sleep(2)
        advancer.step()
        told = []
        delete = self.world.heat.delete_deployment

        def withdraw(row_id, *server):
            told.append(
                sum(
                    one.method == 'PUT' and one.where.endswith('.control')
                    for one in self.world.cluster.seen
                )
            )
            return delete(row_id, *server)

        self.world.heat.delete_deployment = withdraw
        self.door.request(advancer.operation.id, 'cancel')
        found = self.end(advancer)
        self.assertEqual('cancelled', found.control.phase.value)
        self.assertEqual([2, 2], told)
