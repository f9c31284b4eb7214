# SPDX-License-Identifier: Apache-2.0
"""Commands on runs: over the real door, a strict store, leaders and servers.

Time passes as a command waits, and then leaders and servers work.
"""

import types
from unittest import mock
import uuid

from oslo_messaging.rpc import dispatcher

from heat_plugins.clients import runs
from heat_plugins.engine.runs import door
from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.osc.runs import run_commands
from heat_plugins.runs import run_objects
from heat_plugins.signals import live
from tests.unit import fake_swift
from tests.unit import heat_fixture
from tests.unit import web_service
from tests.unit.engine import heat_door
from tests.unit.engine import run_world
from tests.unit.osc import base
from tests.unit.runs import fake_heat

RUN, OTHER = (str(uuid.UUID(int=n * 0x11111111 << 96)) for n in (5, 7))


class Rpc:
    """EngineService, whose own methods a client of runs does not call."""

    engine_id = heat_door.ENGINE

    def _mine(self, *args):
        raise AssertionError(args)

    _create, _list = door.ordered(_mine), door.listed(_mine)

    def create_software_deployment(self, context, server_id, input_values):
        asked = context, server_id, None, input_values
        return self._answer(self._create, *asked)

    def list_software_deployments(self, *args):
        return self._answer(self._list, *args)

    def _answer(self, method, *args):
        try:
            return method(*args)
        except dispatcher.ExpectedException as exc:
            raise exc.exc_info[1] from None


class Api(heat_door.Api):
    """heat-api, with what happens to requests.

    :ivar failing: how many of the next requests have no answer, though the
        engine may have followed them.
    :ivar seen: the requests.
    """

    def __init__(self, context):
        super().__init__(Rpc(), context)
        self.failing, self.seen = 0, []

    def answer(self, request):
        self.seen.append(request)
        answer = super().answer(request)
        if self.failing:
            self.failing -= 1
            return 503, {'error': {'message': 'out of order'}}, {}
        return answer


class RunCase(base.CommandCase):
    """A test of commands on runs.

    :ivar world: see `run_world.World`.
    :ivar api: what the commands ask.
    :ivar cluster: the object store, where servers send what they print.
    """

    def setUp(self):
        super().setUp()
        engine = heat_fixture.Heat({})
        engine.setup()
        self.addCleanup(engine.cleanup)
        self.use(run_world.World())
        self.addCleanup(door.install, None)
        self.cluster = fake_swift.Cluster(clock=lambda: 0)
        self.cluster.now = lambda: self.world.now
        self.heat = fake_heat.Heat()
        #: Percent and message that servers report.
        self.progress = None, None
        #: What to do each time that a command waits.
        self.meanwhile = lambda: None
        self.patch(common, 'runs', lambda manager: self.client())
        self.patch(common, 'store', lambda manager: self.cluster.store())
        self.patch(common, 'orchestration', lambda manager: self.heat)
        clock = types.SimpleNamespace(
            time=self.time, monotonic=self.time, sleep=self.sleep
        )
        for module in (common, following, run_commands):
            self.patch(module, 'time', clock)

    def use(self, world):
        self.world = world
        door.install(
            door.Door(
                world.store,
                wake=self.wake,
                clock=self.time,
                progress=lambda *target: self.progress,
            )
        )
        context = heat_fixture.new_context(
            project_id=run_world.PROJECT, tenant=run_world.PROJECT
        )
        context.policy = mock.Mock()
        self.api = Api(context)

    def time(self):
        return self.world.now

    def wake(self, run_id):
        for leader in self.world.leaders:
            leader.wake(run_id)

    def client(self):
        return runs.Runs(
            web_service.cloud(self.api, heat_door.URL),
            monotonic=self.time,
            sleep=self.sleep,
        )

    def sleep(self, seconds):
        self.meanwhile()
        self.world.pass_time(max(1, round(seconds)))

    def start(self, run_id=RUN, **values):
        self.world.start(run_id, **values)
        self.world.pass_time()
        return run_id

    def ended(self, run_id=RUN, **values):
        self.start(run_id, **values)
        self.world.finish(run_id=run_id)
        return run_id

    def objects(self, number=0, run_id=RUN, attempt=1):
        place = f'stack-{number % 2}', run_id, number, attempt
        return run_objects.RunObjects(self.cluster.store(), *place)

    def put(self, name, content, number=0, **which):
        objects = self.objects(number, **which)
        store = self.cluster.store()
        store.put_container(objects.container, {})
        store.put_object(objects.container, objects.log + name, content)

    def prints(self, content, number=0, **which):
        """Let a server send the first part of its output."""
        part = b'1 0 2 3\n' + content
        self.put(live.slot_name(0, 2, 3), part, number, **which)

    def ends(self, size, number=0, **which):
        self.put(live.END, b'%d' % size, number, **which)

    def answered(self, status=0, **outputs):
        send = self.world.send

        def sent(name, given, **details):
            if given is not None:
                send(name, status or given, **{**outputs, **details})

        self.world.send = sent

    def reports(self, number=0, run_id=RUN):
        self.world.reports.add(run_objects.result_name(run_id, number, 1))

    def requests(self, method='GET'):
        return [each for each in self.api.seen if each.method == method]

    def said(self):
        return self.stderr.getvalue()

    def assert_ends(self, line, code, state):
        """Assert the exit code of a command and the state of its run."""
        found, shown = self.json(line)
        assert (found, shown['state']) == (code, state)
        return shown
