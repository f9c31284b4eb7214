# SPDX-License-Identifier: Apache-2.0
"""What a member of an operation is given, and how its answer is read."""

import dataclasses

import testtools

from heat_plugins import errors
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import member_runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.start import starting
from heat_plugins.signals import body
from tests.unit.runs.fleet import simulation

ONE = operations.OperationLimits(max_concurrent=operations.Share(1))


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
        order = starting.RunOrder(action='BACKUP', **given)
        chosen = fleet_targets.Chooser(self.world.heat, self.door.pool).choose(
            fleet_targets.Wanted(stacks=['s0']), order
        )
        advancer = self.door.create(chosen, limits, order)
        advancer.step()
        return advancer

    def end(self, advancer):
        return simulation.run(self.world, [advancer])

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
        self.assertIn('no longer in stack s0', found.attempts[1].reason)

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

        def withdraw(row_id):
            told.append(
                sum(
                    one.method == 'PUT' and one.where.endswith('.control')
                    for one in self.world.cluster.seen
                )
            )
            return delete(row_id)

        self.world.heat.delete_deployment = withdraw
        self.door.request(advancer.operation.id, 'cancel')
        found = self.end(advancer)
        self.assertEqual('cancelled', found.control.phase.value)
        self.assertEqual([2, 2], told)
