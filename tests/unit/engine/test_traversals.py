# SPDX-License-Identifier: Apache-2.0
"""Stacks that stand still as an engine died between two of their resources.

Heat's own code converges them here. Engines are function calls, and messages
a list, so that an engine can die wherever it leaves something to another.
"""

import collections
import contextlib
import sys
from unittest import mock
import uuid

from heat.common import context as heat_context
from heat.db import api as db_api
from heat.engine import check_resource
from heat.engine import properties
from heat.engine import resource
from heat.engine import service
from heat.engine import stack as parser
from heat.engine import sync_point
from heat.engine import template as heat_template
from heat.engine import worker
from heat.objects import snapshot as snapshot_objects
from heat.rpc import worker_client
from oslo_config import cfg

from heat_plugins import metrics
from heat_plugins.engine import traversals
from heat_plugins.engine.database import resources
from tests.unit import counted
from tests.unit import examples
from tests.unit import heat_fixture
from tests.unit.engine import run_world

KIND = 'Test::Counted'

BEFORE = {'a': (), 'b': ('a',), 'c': ('a',), 'd': ('b', 'c')}
# Of these b is replaced, c is gone, and e is new.
AFTER = {'a': (), 'b': ('a',), 'd': ('b',), 'e': ('d', 'a')}


class Died(BaseException):
    """The engine was killed here."""


class Counted(resource.Resource):
    """Counts how often it is created and deleted."""

    properties_schema = {'value': properties.Schema(properties.Schema.STRING)}
    done = collections.Counter()

    def handle_create(self):
        self.done['create', self.name] += 1
        self.resource_id_set(uuid.uuid4().hex)

    def handle_delete(self):
        self.done['delete', self.name] += 1


def template(names, **values):
    resources = {
        name: {
            'type': KIND,
            'depends_on': list(before),
            'properties': {'value': values.get(name, '1')},
        }
        for name, before in names.items()
    }
    return heat_template.Template(
        {'heat_template_version': '2021-04-16', 'resources': resources}
    )


class Threads(service.ThreadGroupManager):
    """Those of an engine, where each thread has ended as it starts."""

    def start(self, stack_id, func, *args, **kwargs):
        func(*args, **kwargs)


class Engines:
    """Heat-engines and their broker, and what kills one.

    :ivar point: how many of the places where an engine may die come before
        the one where it does; None if it never does.
    """

    def __init__(self):
        self.messages = collections.deque()
        self.point = None
        self.worker = object.__new__(worker.WorkerService)
        self.worker.engine_id = uuid.uuid4().hex
        self.worker.thread_group_mgr = Threads()
        self.worker._rpc_client = self

    def check_resource(self, context, *args, **kwargs):
        self.may_die()
        self.messages.append((args, kwargs))

    def may_die(self):
        if self.point is None:
            return
        self.point -= 1
        if self.point < 0:
            self.point = None
            raise Died

    def before(self, function):
        def die_or_do(*args, **kwargs):
            self.may_die()
            return function(*args, **kwargs)

        return die_or_do

    def run(self):
        """Handle messages until none is left; whether an engine died."""
        died = False
        while self.messages:
            args, kwargs = self.messages.popleft()
            try:
                # One that has the message, and has not begun.
                self.may_die()
                self.worker.check_resource(
                    heat_context.get_admin_context(), *args, **kwargs
                )
            except Died:
                died = True
        return died


class TraversalsTest(heat_fixture.HeatTestCase):
    TYPES = {KIND: Counted}

    def setUp(self):
        super().setUp()
        self.patch(Counted, 'done', collections.Counter())
        self.engines = Engines()
        self.patch(worker_client, 'WorkerClient', lambda: self.engines)
        checker = check_resource.CheckResource
        for place, name in (
            (checker, '_initiate_propagate_resource'),
            (parser.Stack, '_update_or_store_resources'),
            (parser.Stack, 'mark_complete'),
            (sync_point, 'create'),
        ):
            self.patch(place, name, self.engines.before(getattr(place, name)))
        mark_failed = parser.Stack.mark_failed

        def fail_unless_killed(*args, **kwargs):
            if not isinstance(sys.exc_info()[1], Died):
                mark_failed(*args, **kwargs)

        self.patch(parser.Stack, 'mark_failed', fail_unless_killed)
        self.patch(traversals, '_PLACES', run_world.Places(16, 4))
        # Of what an engine has begun with, another scan takes care.
        nothing = mock.Mock(return_value=(False, False, None))
        self.patch(checker, '_handle_resource_failure', nothing)
        self.context = heat_context.get_admin_context()
        stored = heat_fixture.new_context
        self.patch(parser.Stack, 'stored_context', lambda stack: stored())
        # Heat waits a second before it sends the first messages; by `time`,
        # or, up to Heat 24, by `eventlet`.
        self.patch(
            parser.time if hasattr(parser, 'time') else parser.eventlet,
            'sleep',
            lambda seconds: None,
        )
        cfg.CONF.set_override('rescue_interval', 30, 'heat_plugins')
        self.now = 0.0
        self.patch(traversals.time, 'monotonic', lambda: self.now)
        self.scan = traversals.Traversals()

    def create(self, stack):
        stack = self.load(stack)
        stack.converge_stack(stack.t, action=parser.Stack.CREATE)

    def load(self, stack):
        """Return a stack as a request finds it."""
        loaded = parser.Stack.load(
            heat_fixture.new_context(), stack.id, force_reload=True
        )
        loaded.thread_group_mgr = self.engines.worker.thread_group_mgr
        return loaded

    def update(self, stack):
        self.load(stack).converge_stack(
            template(AFTER, b='2'), action=parser.Stack.UPDATE
        )

    def delete(self, stack):
        stack = self.load(stack)
        kind = heat_template.Template
        empty = kind.create_empty_template(version=stack.t.version)
        stack.converge_stack(empty, action=parser.Stack.DELETE)

    def state(self, stack):
        found = db_api.stack_get(self.context, stack.id, show_deleted=True)
        return f'{found.action}_{found.status}'

    def look(self, seconds):
        continued = []
        until = self.now + seconds
        while self.now < until:
            self.now += 30
            continued += self.scan.look()
        return continued

    def recover(self):
        """Scan, with engines that live, until nothing stands still."""
        for _ in range(40):
            for seconds in (0, 61, 300):
                self.now += seconds
                if self.scan.look():
                    self.engines.run()
                    break
            else:
                return

    def ready(self, action):
        """Return a stack as it is before an action."""
        given = self.heat.context, 'stack', template(BEFORE)
        stack = parser.Stack(*given, convergence=True)
        stack.store()
        if action != 'CREATE':
            self.create(stack)
            self.engines.run()
        return stack

    def begin(self, stack, action, point):
        """Let the first messages of an action be sent; return the stack.

        :param point: where an engine dies; None for nowhere.
        """
        Counted.done.clear()
        self.engines.point = point
        with contextlib.suppress(Died):
            getattr(self, action.lower())(stack)
        return stack

    def act(self, action, point=None):
        return self.begin(self.ready(action), action, point)

    def idle(self):
        return resources.idle(self.context, traversals.actions())

    def survives(self, action):
        """Kill an engine at each place of an action; return how many."""
        most = 1000
        self.heat.database.empty()
        stack = self.ready(action)
        restore = self.heat.database.save()
        self.begin(stack, action, most)
        self.engines.run()
        count = most - self.engines.point
        assert self.state(stack) == f'{action}_COMPLETE'
        expected = +Counted.done
        for point in range(0, count, examples.STEP):
            restore()
            self.engines.messages.clear()
            self.scan = traversals.Traversals()
            self.begin(stack, action, point)
            self.engines.run()
            has_begun = all(each.has_begun for each in self.idle())
            if action != 'DELETE' and not has_begun:
                assert self.look(600) == []
                continue
            self.recover()
            with self.subTest(point=point):
                assert self.state(stack) == f'{action}_COMPLETE'
                assert +Counted.done == expected
        return count

    def test_a_stack_goes_on_wherever_an_engine_dies(self):
        for action, places in (('CREATE', 19), ('DELETE', 19), ('UPDATE', 37)):
            assert self.survives(action) == places

    def stalled(self, action='CREATE'):
        """Return a stack whose engine died after its first resource."""
        stack = self.act(action)
        self.engines.point = 1
        assert self.engines.run()
        return stack

    def test_it_is_left_for_a_minute(self):
        for action in ('CREATE', 'DELETE'):
            self.heat.database.empty()
            stack = self.stalled(action)
            assert self.look(60) == []
            assert self.look(60) == [stack.id]

    def test_what_no_engine_has_begun_is_left_for_five_minutes(self):
        # A message may wait.
        self.act('CREATE')
        assert self.look(300) == []
        assert len(self.look(60)) == 1
        self.heat.database.empty()
        self.engines.messages.clear()
        stack = self.act('DELETE', 0)
        assert self.look(300) == []
        assert self.look(60) == [stack.id]
        self.engines.run()
        assert self.state(stack) == 'DELETE_COMPLETE'

    def test_one_for_which_there_is_no_thread_is_left(self):
        stack = self.act('DELETE', 0)
        values = {'stack_id': stack.id, 'status': 'COMPLETE'}
        values['tenant'] = stack.context.project_id
        snapshot = snapshot_objects.Snapshot.create(stack.context, values)
        # Its snapshots may go just now.
        assert self.look(600) == []
        snapshot_objects.Snapshot.delete(stack.context, snapshot.id)
        self.patch(traversals, '_PLACES', run_world.Places(0, 0))
        assert self.look(600) == []
        self.patch(traversals, '_PLACES', run_world.Places(16, 4))
        assert self.look(1) == [stack.id]

    def test_of_two_engines_one_begins_it_and_a_slow_one_does_nothing(self):
        stack = self.act('DELETE', 0)
        slow, other = self.load(stack), self.load(stack)
        assert traversals.begin_deletion(self.load(stack))
        messages = [*self.engines.messages]
        assert len(messages) == 1
        assert not traversals.begin_deletion(other)
        slow._converge_create_or_update()
        assert [*self.engines.messages] == messages

    def test_one_that_an_engine_is_storing_resources_for_is_left(self):
        stamps = set()
        for point in (0, 2):
            self.heat.database.empty()
            self.act('CREATE', point)
            (idle,) = self.idle()
            assert not idle.has_begun
            stamps.add(idle.stamp)
        assert len(stamps) == 2

    def test_of_two_engines_one_continues_it(self):
        counts = self.useFixture(counted.Counted())
        stack = self.stalled()
        (seen,) = self.idle()
        other = traversals.Traversals()
        self.scan.look()
        other.look()
        self.now += 90
        assert len(self.scan.look()) == 1
        assert other.look() == []
        assert not resources.claim(self.context, seen)
        assert len(self.engines.messages) == 2
        assert counts.of(metrics.RESCUED) == {'stack': 1}
        # Nor does anybody continue what was updated meanwhile.
        (seen,) = self.idle()
        another = {'current_traversal': 'another'}
        db_api.stack_update(self.context, stack.id, another)
        assert not traversals.continue_stack(seen, has_waited=True)

    def test_a_stack_that_waits_for_a_hook_or_an_engine_is_left(self):
        stack = self.stalled()
        waiting = self.load(stack)['a']
        self.heat.change(waiting.id, engine_id=uuid.uuid4().hex)
        assert self.look(1000) == []
        self.heat.change(waiting.id, engine_id=None)
        waiting = self.load(stack)['a']
        waiting.trigger_hook('post-create')
        assert self.look(1000) == []
        waiting.clear_hook('post-create')
        assert self.look(120) == [stack.id]

    def test_an_action_is_left_of_which_messages_alone_say_all(self):
        stack = self.stalled()
        for action in ('ADOPT', 'CHECK', 'SUSPEND', 'RESUME', 'SNAPSHOT'):
            db_api.stack_update(self.context, stack.id, {'action': action})
            assert self.idle() == []
        db_api.stack_update(self.context, stack.id, {'action': 'DELETE'})
        assert len(self.idle()) == 1
        cfg.CONF.set_override('enable_stack_abandon', True)
        assert self.idle() == []

    def test_a_failure_in_one_stack_is_one_warning(self):
        self.stalled()
        fail = mock.Mock(side_effect=ValueError('x\nSQL'))
        self.patch(traversals, 'continue_stack', fail)
        with self.assertLogs(traversals.LOG.name, 'WARNING') as logs:
            assert self.look(120) == []
        assert len(logs.output) == 1
        assert 'SQL' not in logs.output[0]
