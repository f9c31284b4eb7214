# SPDX-License-Identifier: Apache-2.0
"""Which operations an engine advances."""

import collections
import contextlib
import json
import threading
import time
import types

from heat.common import context as heat_context
from heat.common import exception
from heat.engine import service_software_config
from heat.engine import stack as parser
from heat.objects import software_config as config_objects
from heat.objects import software_deployment as deployment_objects
from oslo_config import cfg
from oslo_db import exception as db_exception
import sqlalchemy

from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins import tokens
from heat_plugins.engine import process
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import exclusions
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import layout
from tests.unit import counted
from tests.unit import heat_fixture
from tests.unit import threads
from tests.unit.runs.fleet import simulation

PROJECT = 'project-1'
JUNK = '20270115T080000Z-0bad0bad'


class WatchingTest(heat_fixture.HeatTestCase):
    TYPES = {}

    def setUp(self):
        super().setUp()
        self.context = heat_context.get_admin_context()
        self.world = simulation.World(4, fail=[3])
        self.real = own_heat.OwnHeat
        self.load = fleet_watching.load_stack
        self.step_on = fleet_watching._step_on
        self.patch(own_heat, 'OwnHeat', lambda rpc, context: self.world.heat)
        self.patch(fleet_watching.rpc_client, 'EngineClient', lambda: None)
        self.stack = types.SimpleNamespace(
            context=None,
            clients=types.SimpleNamespace(
                client=lambda name: self.world.cluster.store()
            ),
        )
        self.patch(
            fleet_watching,
            'load_stack',
            lambda stack_id, project_id: (
                self.stack if project_id == PROJECT else None
            ),
        )
        self.patch(
            fleet_watching.resources,
            'of_project',
            lambda context, stack_ids, project_id: list(stack_ids),
        )
        #: By member: why it gets no run.
        self.refusals = {}
        self.patch(
            self.world.heat,
            'refusals',
            lambda order, members: self.refusals,
        )
        self.patch(
            fleet_watching.member_batches,
            'MemberBatches',
            lambda context: self.world.heat,
        )
        self.patch(fleet_watching, 'ADVANCED', process.Places(32, 4))
        # A thread of another test may have a place of the process.
        self.patch(fleet_watching, '_WORKERS', process.Places(16, 16))
        self.patch(fleet_watching, '_PROJECTS', process.Places(16, 1))
        self.patch(
            fleet_watching,
            'BACKOFF',
            fleet_watching.Backoff(lambda: self.world.now),
        )

    def begin(self):
        """Start an operation by a command that ends at once."""
        advancer = self.world.begin(self.world.order())
        advancer.step()
        return advancer

    def left(self):
        """Start an operation that Heat knows and no process advances."""
        advancer = self.begin()
        advancer.release()
        self.register(advancer.operation.id)
        return advancer

    def register(self, name, tenant=PROJECT, text=None, group=binding.GROUP):
        """Let Heat know of an operation, by a deployment; return that."""
        seal = self.world.seals.get(name)
        if text is None and seal is None:
            seal = binding.Binding.new(name, b'')
        config = config_objects.SoftwareConfig.create(
            self.context,
            {
                'group': group,
                'name': name,
                'tenant': tenant,
                'config': {
                    'config': seal.text(['one']) if text is None else text
                },
            },
        )
        if group == binding.FORMER_GROUP:
            return config
        return self.deploy(config, tenant)

    def deploy(self, config, tenant=PROJECT, **more):
        return deployment_objects.SoftwareDeployment.create(
            self.context,
            {
                'config_id': config.id,
                'server_id': config.name,
                'tenant': tenant,
                'stack_user_project_id': None,
                'action': 'BACKUP',
                'status': 'IN_PROGRESS',
                'status_reason': '',
                **more,
            },
        )

    def look(self):
        """Look, and do at once what threads would; return what was led."""
        self.patch(
            process, 'threading', threads.stand_in(lambda target: target())
        )
        led = []

        def step_on(advancer, project_id):
            led.append(advancer.operation.id)
            self.step_on(advancer, project_id, self.world.sleep)

        self.patch(fleet_watching, '_step_on', step_on)
        fleet_watching.look()
        return led

    def found(self, order_id):
        return fleets.Fleets(self.world.heat, self.world.tools()).show(
            order_id
        )

    def test_it_takes_over_what_a_command_has_left(self):
        counts = self.useFixture(counted.Counted())
        advancer = self.left()
        self.assertEqual([advancer.operation.id], self.look())
        found = self.found(advancer.operation.id)
        self.assertIs(operations.Phase.FAILED, found.control.phase)
        self.assertEqual({'failed': 1}, counts.of(metrics.OPERATIONS))
        self.assertEqual(
            {'failed': 1, 'complete': len(found.attempts) - 1},
            counts.of(metrics.RUNS),
        )
        self.assertEqual([3], found.failures)
        self.assertEqual([], self.world.given)
        # Heat knows no more of it.
        self.assertEqual(self.world.configs, set(self.world.heat.configs))

    def test_it_leaves_alone_what_somebody_advances(self):
        advancer = self.begin()
        self.register(advancer.operation.id)
        self.assertEqual([], self.look())
        self.assertTrue(fleet_watching.ADVANCED.take('x', PROJECT))

    def test_it_takes_over_from_a_process_that_has_died(self):
        advancer = self.begin()
        self.register(advancer.operation.id)
        self.world.sleep(60)
        self.assertEqual([advancer.operation.id], self.look())

    def test_what_is_overdue_costs_more_than_a_takeover_may(self):
        """Each is read, told to stop and withdrawn, however many there are."""
        self.patch(fleet_watching, '_LEAD', (100, 300.0, 10_000_000))
        self.world = simulation.World(120)
        order = self.world.order()
        advancer = self.world.begin(order)
        running = {
            'state': operations.State.RUNNING,
            'number': 1,
            'started_at': 1,
        }
        self.world.tools().records.write(
            advancer.operation.attempted(dict.fromkeys(range(120), running)),
            1,
            advancer.operation,
            self.world.seals[order.id],
        )
        self.register(order.id)
        self.world.now += 60
        self.assertEqual([order.id], self.look())
        found = self.found(order.id)
        self.assertEqual(120, found.count(operations.State.TIMED_OUT))
        self.assertTrue(found.ended)

    def test_it_acts_in_no_other_project(self):
        advancer = self.begin()
        advancer.release()
        self.register(advancer.operation.id, tenant='project-2')
        self.assertEqual([], self.look())

    def test_what_names_no_operation_does_not_stop_it(self):
        advancer = self.begin()
        advancer.release()
        for text in (
            '[]',
            '{}',
            'x',
            '{"stacks": 3}',
            '{"stacks": []}',
            '[' * 90_000,
        ):
            self.register(JUNK, text=text)
            self.register(JUNK, text=text, group=binding.FORMER_GROUP)
        self.register('20270115T080000Z-00000000')
        self.register(advancer.operation.id)
        self.assertEqual([advancer.operation.id], self.look())

    def test_configs_of_one_project_hide_no_operation_of_another(self):
        self.patch(fleet_watching, '_READ', 5)
        for number in range(12):
            self.register(
                f'20270115T0800{number:02}Z-00000000', tenant='project-2'
            )
        advancer = self.left()
        found = fleet_watching.registered(self.context)
        of_each = collections.Counter(one.project_id for one in found)
        self.assertEqual({'project-2': 5, PROJECT: 1}, of_each)
        self.assertIn(PROJECT, [one.project_id for one in found[:2]])
        self.assertEqual([advancer.operation.id], self.look())

    def test_a_config_costs_little_however_long_it_is(self):
        former = binding.FORMER_GROUP
        for stacks in (['x' * 200_000], ['y'] * 10_000):
            text = json.dumps({'stacks': stacks})
            self.register(JUNK, text=text, group=former)
        (found,) = fleet_watching.registered(self.context)
        self.assertEqual(100, len(found.stacks))

    def scanned(self, number, seconds=0.0):
        """Scan so many projects; return those that were looked at."""
        seal = binding.Binding.new(JUNK, b'')
        found = [
            fleet_watching.Registered(
                config_id=f'config-{n}',
                row_id='row',
                operation_id=JUNK,
                project_id=f'project-{n}',
                stacks=('one',),
                age=0.0,
                seal=seal,
            )
            for n in range(number)
        ]
        self.patch(fleet_watching, 'registered', lambda context: found)
        self.patch(
            fleet_watching,
            'time',
            types.SimpleNamespace(monotonic=lambda: self.world.now),
        )
        targets, seen = [], []
        self.patch(process, 'threading', threads.stand_in(targets.append))

        def take_over(one):
            # No two threads are at one project.
            taken = fleet_watching._PROJECTS.take(one.project_id, 'x')
            self.assertFalse(taken)
            seen.append(one.project_id)
            self.world.now += seconds

        self.patch(fleet_watching, 'take_over', take_over)
        fleet_watching.look()
        # They are busy: another scan starts no more.
        self.assertLessEqual(len(targets), 16)
        fleet_watching.look()
        self.assertLessEqual(len(targets), 16)
        for target in targets:
            target()
        return seen

    def test_a_scan_reaches_each_of_many_projects(self):
        seen = self.scanned(300)
        self.assertEqual(300, len(seen))
        self.assertEqual(300, len(set(seen)))
        self.assertTrue(fleet_watching._WORKERS.take('0', 'x'))
        fleet_watching._WORKERS.leave('0')

    def test_a_scan_begins_with_no_project_when_its_time_is_over(self):
        # A thread has 60 s.
        self.assertEqual(16 * 3, len(self.scanned(300, seconds=25.0)))

    def test_a_project_leaves_places_for_others(self):
        advancer = self.left()
        for key in 'abcd':
            fleet_watching.ADVANCED.take(key, PROJECT)
        self.assertEqual([], self.look())
        self.patch(fleet_watching, 'ADVANCED', process.Places(32, 4))
        for key in 'abcd':
            fleet_watching.ADVANCED.take(key, 'project-2')
        self.assertEqual([advancer.operation.id], self.look())

    def test_no_scan_asks_who_leads_what_this_process_has_created(self):
        advancer = self.begin()
        self.patch(process, 'threading', threads.stand_in(lambda target: None))
        row = self.register(advancer.operation.id)
        advancer._op = advancer.operation.changed(registered=row.id)
        self.assertTrue(fleet_watching.keep(advancer, PROJECT, self.stack))
        asked = self.world.requests
        fleet_watching.look()
        (entry,) = fleet_watching.registered(self.context)
        self.assertFalse(fleet_watching.take_over(entry))
        self.assertEqual(asked, self.world.requests)

    def test_of_large_operations_it_leads_few_of_a_project(self):
        advancer = self.left()
        self.patch(fleet_watching, '_TARGETS', 3)
        self.patch(fleet_watching, 'LARGE', process.Places(32, 1))
        fleet_watching.LARGE.take('x', PROJECT)
        self.assertEqual([], self.look())
        self.assertTrue(fleet_watching.ADVANCED.take('x', PROJECT))
        fleet_watching.LARGE.leave('x')
        self.assertEqual([advancer.operation.id], self.look())
        # It has ended.
        self.assertTrue(fleet_watching.LARGE.take('x', PROJECT))

    def test_of_many_operations_each_is_polled_less_often(self):
        pauses = []
        for others in (0, 96):
            self.patch(fleet_watching, 'ADVANCED', process.Places(99, 99))
            for number in range(others):
                fleet_watching.ADVANCED.take(str(number), PROJECT)
            advancer = self.begin()
            pauses.append(0)

            def sleep(seconds, advancer=advancer):
                pauses[-1] = pauses[-1] or seconds / advancer.pause
                self.world.sleep(1)

            self.step_on(advancer, PROJECT, sleep)
        self.assertEqual([1, 3], pauses)

    def test_a_project_steps_so_many_operations_at_a_time(self):
        with contextlib.ExitStack() as taken:
            for _ in range(4):
                taken.enter_context(fleet_watching._turn(PROJECT))
            others = fleet_watching._turn('project-2')
            taken.enter_context(others)
            turns = fleet_watching._TURNS_OF_PROJECTS.get(PROJECT)
            waiting = threading.Thread(target=self.step_once, daemon=True)
            waiting.start()
            while not len(turns):
                time.sleep(0.01)
        waiting.join(60)
        self.assertFalse(waiting.is_alive())

    def step_once(self):
        with fleet_watching._turn(PROJECT):
            pass

    def test_an_operation_of_the_same_name_elsewhere_keeps_none_from_it(self):
        advancer = self.begin()
        advancer.release()
        theirs = self.register(advancer.operation.id, tenant='project-2')
        fleet_watching.ADVANCED.take(theirs.config_id, 'project-2')
        self.register(advancer.operation.id)
        self.assertEqual([advancer.operation.id], self.look())

    def test_it_finds_what_heat_was_told_of(self):
        order = self.world.order()
        heat = self.real(
            self.heat.rpc, heat_fixture.new_context(project_id=PROJECT)
        )
        seal = self.world.tools().records.bind(order)
        row_id = binding.register(heat, order, seal)
        (one,) = fleet_watching.registered(self.context)
        self.assertEqual(row_id, one.row_id)
        self.assertEqual(seal, one.seal)
        self.assertEqual(order.id, one.operation_id)
        self.assertEqual(PROJECT, one.project_id)
        self.assertEqual(
            {stack.id for stack in self.world.stacks}, set(one.stacks)
        )
        self.assertEqual(seal, binding.seal_of(heat, order.id))
        heat.set_status(row_id, binding.COMPLETE)
        self.assertEqual([], fleet_watching.registered(self.context))
        self.assertEqual(seal, binding.seal_of(heat, order.id))
        binding.forget(heat, order.id)
        self.assertEqual([], heat.deployments(order.id))
        with self.assertRaises(errors.NotFound):
            heat.config(one.config_id)

    def test_configs_of_other_groups_cost_no_look_at_their_deployments(self):
        statements = []
        engine = sqlalchemy.engine.Engine

        def keep(connection, cursor, statement, *more):
            statements.append(statement)

        sqlalchemy.event.listen(engine, 'before_cursor_execute', keep)
        self.addCleanup(
            sqlalchemy.event.remove, engine, 'before_cursor_execute', keep
        )
        fleet_watching.registered(self.context)
        self.patch(fleet_watching, '_LOOKS', 1)
        fleet_watching.look_for(JUNK, lambda seconds: None)
        every, one = [each for each in statements if 'rank' in each]
        for statement in (every, one):
            joined, _, filtered = statement.partition('WHERE')
            self.assertIn('LEFT OUTER JOIN', joined)
            self.assertIn('software_config."group" IN', filtered)
        self.assertNotIn('software_config.name = ', every.split('WHERE')[1])
        self.assertIn('software_config.name = ', one.split('WHERE')[1])

    def test_a_signal_takes_over_its_own_operation_alone(self):
        advancer = self.left()
        self.register(JUNK)
        taken = []

        def take_over(entry):
            taken.append(entry.operation_id)
            # It is released after the second look.
            return len(taken) == 3

        self.patch(fleet_watching, 'take_over', take_over)
        fleet_watching.look_for(advancer.operation.id, lambda seconds: None)
        self.assertEqual([advancer.operation.id] * 3, taken)

    def test_a_signal_for_what_fails_counts_as_a_single_failure(self):
        advancer = self.left()
        delays = []
        add = fleet_watching.BACKOFF.add

        def note(*failure):
            delays.append(failure)
            add(*failure)

        self.patch(fleet_watching.BACKOFF, 'add', note)
        self.world.cluster.fail(times=1000)
        for _ in range(2):
            fleet_watching.look_for(
                advancer.operation.id, lambda seconds: None
            )
        self.assertEqual(1, len(delays))

    def ask(self, row, status='IN_PROGRESS'):
        """Return what Heat shows of a deployment whose status is set."""
        update = fleet_watching.answering(
            service_software_config.SoftwareConfigService.update_software_deployment
        )
        names = ('config_id', 'input_values', 'output_values', 'action')
        others = (*names, 'status_reason', 'updated_at')
        return update(
            service_software_config.SoftwareConfigService(),
            self.context,
            row.id,
            status=status,
            **dict.fromkeys(others),
        )['status_reason']

    def test_it_advances_at_once_what_it_is_asked_to(self):
        advancer = self.begin()
        advancer.release()
        asked = []
        self.patch(fleet_watching, 'look_for', asked.append)
        self.patch(fleet_watching, '_OFFERS', process.Places(1, 1))
        self.patch(
            process, 'threading', threads.stand_in(lambda target: target())
        )
        self.addCleanup(
            cfg.CONF.clear_override, 'rescue_interval', 'heat_plugins'
        )
        cfg.CONF.set_override('rescue_interval', 60, 'heat_plugins')
        row = self.register(advancer.operation.id)
        self.assertTrue(tokens.ADVANCED.marks(self.ask(row)))
        self.assertEqual([advancer.operation.id], asked)
        # Offered again meanwhile, it is accepted, and looked for only once.
        fleet_watching._OFFERS.take(advancer.operation.id, PROJECT)
        self.assertTrue(tokens.ADVANCED.marks(self.ask(row)))
        self.assertEqual([advancer.operation.id], asked)
        other = self.register('20270115T080000Z-11c0ffee', text='{}')
        self.assertEqual('', self.ask(other))
        fleet_watching._OFFERS.leave(advancer.operation.id)
        # Nothing of that is kept.
        self.assertEqual('', self.ask(row, 'COMPLETE'))
        # What registers no operation is none of its business.
        other = self.register('any', text='{}')
        self.assertEqual('', self.ask(other))
        cfg.CONF.set_override('rescue_interval', 0, 'heat_plugins')
        self.assertEqual('', self.ask(row))
        self.assertEqual([advancer.operation.id], asked)

    def test_it_has_the_stored_credentials_of_a_stack(self):
        stack = self.heat.create({'heat_template_version': '2021-04-16'})
        project = stack.tenant_id
        # Heat's fake of Keystone makes trusts for no project.
        self.assertIsNone(self.load(stack.id, project))
        self.patch(
            type(stack),
            'stored_context',
            lambda stack: heat_fixture.new_context(),
        )
        loaded = self.load(stack.id, project)
        self.assertEqual(project, loaded.tenant_id)
        self.assertIsNotNone(loaded.clients)
        # Anybody may write the id of a stack into a config.
        self.assertIsNone(self.load(stack.id, 'of-somebody-else'))
        self.assertIsNone(self.load('no-such-stack', project))

    def test_a_database_that_is_away_says_nothing_of_credentials(self):
        def load(*args, **more):
            raise db_exception.DBConnectionError

        self.patch(parser.Stack, 'load', load)
        self.assertRaises(errors.Unavailable, self.load, 'stack', 'project')

    def test_heat_knows_how_old_it_is(self):
        self.register('20270115T080000Z-00000000')
        (one,) = fleet_watching.registered(self.context)
        self.assertEqual(PROJECT, one.project_id)
        self.assertEqual(('one',), one.stacks)
        self.assertTrue(-60 < one.age < 600, one.age)

    def test_a_leftover_goes(self):
        order = self.world.order()
        seal = self.world.tools().records.bind(order)
        heat = self.world.heat
        row_id = binding.register(heat, order, seal)
        config_id = heat.rows[row_id].config_id
        self.patch(fleet_watching, '_LEFTOVER', -1)
        self.patch(
            fleet_watching,
            'registered',
            lambda context: [
                fleet_watching.Registered(
                    config_id=config_id,
                    row_id=row_id,
                    operation_id=order.id,
                    project_id=PROJECT,
                    stacks=('one',),
                    age=time.time(),
                    seal=seal,
                )
            ],
        )
        self.look()
        self.assertNotIn(config_id, heat.configs)
        self.assertNotIn(row_id, heat.rows)

    def test_a_leftover_goes_with_what_was_recorded_of_it(self):
        advancer = self.begin()
        advancer.release()
        name = advancer.operation.id
        objects = self.world.cluster.container(simulation.CONTAINER).objects
        del objects[layout.head(name)]
        self.register(name)
        self.patch(fleet_watching, '_LEFTOVER', -86400)
        self.look()
        # What tells others of it goes with the next of them.
        tools = self.world.tools()
        exclusions.OtherOperations(tools).running('BACKUP', {'any'})
        self.assertEqual([], [one for one in objects if name in one])

    def test_a_config_that_was_never_registered_goes(self):
        def there(config):
            with contextlib.suppress(exception.NotFound):
                return config_objects.SoftwareConfig.get_by_id(
                    self.context, config.id
                )

        row = self.register('20270115T080000Z-00000000')
        ended = self.deploy(row.config, status='COMPLETE')
        deployment_objects.SoftwareDeployment.delete(self.context, row.id)
        alone = self.register('20270115T080000Z-00000001')
        deployment_objects.SoftwareDeployment.delete(self.context, alone.id)
        foreign = self.register(
            '20270115T080000Z-00000002', group=binding.FORMER_GROUP
        )
        fleet_watching.look()
        # It may be registered just now.
        self.assertIsNotNone(there(alone.config))
        self.patch(fleet_watching, '_LEFTOVER', -86400)
        fleet_watching.look()
        self.assertIsNone(there(alone.config))
        self.assertIsNotNone(there(ended.config))
        self.assertIsNotNone(there(foreign))

    def test_a_retry_is_not_undone_by_an_engine_that_saw_the_end(self):
        advancer = self.begin()
        name = advancer.operation.id
        simulation.run(self.world, [advancer])
        row_id = self.world.registered[name]
        heat = self.world.heat
        heat.set_status(row_id, binding.IN_PROGRESS)
        door = fleets.Fleets(heat, self.world.tools())
        late = door.advancer(name)
        self.assertFalse(late.lead())
        # The engine has read that it has ended; then a user retries it.
        door.request(name, 'retry')
        late.take_out()
        self.assertFalse(late.is_leading)
        self.assertEqual(binding.IN_PROGRESS, heat.deployment(row_id).status)

    def test_what_has_ended_is_no_longer_found(self):
        advancer = self.begin()
        name = advancer.operation.id
        simulation.run(self.world, [advancer])
        row_id = self.world.registered[name]
        heat = self.world.heat
        heat.set_status(row_id, binding.IN_PROGRESS)
        late = fleets.Fleets(heat, self.world.tools()).advancer(name)
        self.assertFalse(late.lead())
        late.take_out()
        self.assertEqual(binding.COMPLETE, heat.deployment(row_id).status)
        self.assertFalse(late.is_leading)

    def test_a_config_alone_registers_none(self):
        """Who may not create deployments starts nothing by an engine."""
        advancer = self.begin()
        advancer.release()
        name = advancer.operation.id
        row = self.register(name)
        for wrong in (
            {'tenant': 'project-2'},
            {'server_id': 'another'},
            {'status': 'COMPLETE'},
        ):
            deployment_objects.SoftwareDeployment.delete(self.context, row.id)
            row = self.deploy(row.config, **wrong)
            self.assertEqual([], fleet_watching.registered(self.context))
        self.deploy(row.config)
        self.assertEqual([name], self.look())

    def test_a_target_that_is_refused_gets_no_run(self):
        order = self.world.order()
        self.world.begin(order).release()
        self.register(order.id)
        self.refusals[1] = 'Server server-1 accepts only its own stack'
        self.assertEqual([order.id], self.look())
        found = self.found(order.id)
        self.assertEqual(self.refusals[1], found.attempts[1].reason)
        self.assertNotIn(f'{order.id}.1.1', self.world.executed)

    def test_it_does_not_act_on_an_order_that_was_changed(self):
        advancer = self.begin()
        advancer.release()
        name = advancer.operation.id
        self.register(name)
        objects = self.world.cluster.container(simulation.CONTAINER).objects
        objects[layout.order(name)] += b' '
        before = set(self.world.heat.rows)
        self.assertEqual([], self.look())
        self.assertEqual(before, set(self.world.heat.rows))

    def test_it_finishes_what_a_former_release_has_begun(self):
        advancer = self.begin_former()
        self.assertEqual([advancer.operation.id], self.look())
        found = self.found(advancer.operation.id)
        self.assertIs(operations.Phase.FAILED, found.control.phase)
        self.assertIsNone(found.control.registered)

    def test_nothing_of_a_former_release_stands_for_a_new_operation(self):
        advancer = self.begin()
        advancer.release()
        text = json.dumps({'stacks': ['one']})
        name = advancer.operation.id
        self.register(name, text=text, group=binding.FORMER_GROUP)
        self.assertEqual([], self.look())

    def begin_former(self):
        """Start an operation by a command of a former release."""
        order = self.world.order()
        seal = binding.Former(operation_id=order.id)
        advancer = advancing.Advancer(self.world.tools(), order, seal)
        text = json.dumps({'stacks': ['one']})
        config = self.world.heat.add_config(
            name=order.id,
            group=binding.FORMER_GROUP,
            config=text,
            inputs=[],
            outputs=[],
        )
        advancer.begin(config.id)
        advancer.release()
        self.register(order.id, text=text, group=binding.FORMER_GROUP)
        return advancer

    def objects(self):
        return self.world.cluster.container(simulation.CONTAINER).objects

    def warned(self):
        """Scan; return the warnings of that."""
        with self.assertLogs(fleet_watching.LOG.name, 'DEBUG') as logs:
            fleet_watching.LOG.debug('so that there is a line')
            self.look()
        return [
            one.getMessage()
            for one in logs.records
            if one.levelname == 'WARNING'
        ]

    def hostile(self):
        """Register what kept an engine busy for years."""
        name = JUNK
        store = self.world.cluster.store()
        store.put_container(simulation.CONTAINER, {})
        records = {
            layout.head(name): {
                'id': name,
                'state': 'complete',
                'created_at': 1,
            },
            layout.order(name): {'id': name, 'members': []},
            layout.control(name, 1): {},
            f'{layout.leads(name)}999999999': {},
        }
        for each, values in records.items():
            body = json.dumps(values).encode()
            store.put_object(simulation.CONTAINER, each, body)
        text = json.dumps({'stacks': ['one']})
        self.register(name, text=text, group=binding.FORMER_GROUP)
        return name

    def test_one_project_s_object_costs_few_requests_and_one_warning(self):
        name = self.hostile()
        before = len(self.world.cluster.seen)
        (warning,) = self.warned()
        self.assertTrue(len(self.world.cluster.seen) - before < 15)
        for part in (name, PROJECT, layout.order(name), 'delete --force'):
            self.assertIn(part, warning)
        # It rests, longer after each failure, and others are served.
        rests = []
        for _ in range(6):
            asked, begun = len(self.world.cluster.seen), self.world.now
            while len(self.world.cluster.seen) == asked:
                self.world.now += 10
                self.assertEqual([], self.warned())
            rests.append(self.world.now - begun)
        self.assertEqual([30, 60, 120, 240, 480, 960], rests)
        advancer = self.left()
        self.assertEqual([advancer.operation.id], self.look())

    def test_what_takes_too_many_requests_is_back_off(self):
        self.patch(fleet_watching, '_LOOK', (2, 60.0, 10_000))
        self.left()
        (warning,) = self.warned()
        self.assertIn('takes more than 2 requests', warning)

    def test_what_takes_too_many_bytes_is_back_off(self):
        self.patch(fleet_watching, '_LEAD', (2000, 300.0, 100))
        self.left()
        (warning,) = self.warned()
        self.assertIn('takes more than 100 bytes', warning)

    def test_an_outage_is_one_warning_and_a_short_rest(self):
        advancer = self.left()
        self.world.cluster.fail(times=1000)
        (warning,) = self.warned()
        self.assertIn('Check the object store', warning)
        for _ in range(20):
            self.world.now += 300
            self.assertEqual([], self.warned())
        self.world.cluster.heal()
        self.world.now += 300
        self.assertEqual([advancer.operation.id], self.look())

    def test_what_rests_is_remembered_while_heat_knows_it(self):
        self.hostile()
        self.warned()
        self.assertEqual(1, len(fleet_watching.BACKOFF._delays))
        self.patch(fleet_watching, 'registered', lambda context: [])
        self.look()
        self.assertEqual({}, fleet_watching.BACKOFF._delays)

    def test_what_another_process_leads_costs_three_requests(self):
        advancer = self.begin()
        self.register(advancer.operation.id)
        before = len(self.world.cluster.seen)
        self.assertEqual([], self.look())
        self.assertEqual(
            ['/', 'GET', 'GET'],
            [
                '/' if one.where in ('', '/') else one.method
                for one in self.world.cluster.seen[before:]
            ],
        )

    def test_what_is_no_operation_is_looked_at_less_and_less(self):
        self.begin()
        self.register(JUNK)
        self.look()
        asked = len(self.world.cluster.seen)
        self.world.now += 20
        self.look()
        self.assertEqual(asked, len(self.world.cluster.seen))
        self.world.now += 20
        self.look()
        self.assertTrue(len(self.world.cluster.seen) > asked)

    def test_a_name_that_is_no_id_asks_the_store_for_nothing(self):
        self.begin()
        self.register('../../x')
        before = len(self.world.cluster.seen)
        self.look()
        self.assertEqual(before, len(self.world.cluster.seen))
