# SPDX-License-Identifier: Apache-2.0
"""The door of a real EngineService, asked as heat-api asks it."""

import json
from urllib import parse
import uuid

from heat.api.middleware import fault
from heat.common import exception
from oslo_config import cfg
from oslo_log import log

from heat_plugins.clients import runs
from heat_plugins.engine import heat_types
from heat_plugins.engine import patches
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import tenancy
from heat_plugins.engine.runs import door
from heat_plugins.runs import ordering
from tests.unit import web_service
from tests.unit.resources import deployments

# heat-api reads its option "debug".
log.register_options(cfg.CONF)

URL = 'http://heat.invalid/v1/project'
ENGINE, NOW = 'engine', 1_800_000_000.0


class Api(web_service.Service):
    """heat-api: hands requests to the engine, and maps its errors."""

    def __init__(self, rpc, context):
        super().__init__()
        self.rpc = rpc
        self.context = context
        #: The engines that lack the door and answer before this one.
        self.old = 0
        self.posts = []

    def answer(self, request):
        try:
            return 200, self._answer(request), {}
        except Exception as exc:
            error = fault.FaultWrapper(None)._error(exc)
            return error['code'], error, {}

    def _answer(self, request):
        path = parse.urlsplit(request.url)
        assert path.path.endswith('/software_deployments')
        if self.old:
            self.old -= 1
            if request.method == 'POST':
                raise exception.NotFound
            return {'software_deployments': []}
        if request.method == 'POST':
            body = json.loads(request.body)
            self.posts.append(body)
            made = self.rpc.create_software_deployment(self.context, **body)
            return {'software_deployment': made}
        (server_id,) = parse.parse_qs(path.query)['server_id']
        found = self.rpc.list_software_deployments(self.context, server_id)
        return {'software_deployments': found}


class DoorCase(deployments.DeploymentTestCase):
    """A test with a door.

    :ivar runs: the client of a member of the project.
    :ivar woken: the runs whose leader was woken.
    """

    def setUp(self):
        super().setUp()
        for patch in patches.PATCHES:
            if patch.wrap.__module__ in (tenancy.__name__, door.__name__):
                self._install(patch)
        self.heat.rpc.engine.engine_id = ENGINE
        self.store, self.woken = run_rows.RunRows(), []
        door.install(door.Door(self.store, self.woken.append, lambda: NOW))
        self.addCleanup(door.install, None)
        #: What the clients do to wait.
        self.sleep = self._pass
        self.runs = self.client()

    def client(self, **changed):
        """Return the client of a user; `changed` are parts of the context."""
        context = self.heat.context
        if changed:
            context = heat_types.in_project(
                context,
                changed.pop('project_id', context.project_id),
                **changed,
            )
        self.api = Api(self.heat.rpc, context)
        return runs.Runs(
            web_service.cloud(self.api, URL),
            monotonic=lambda: self.now,
            sleep=lambda seconds: self.sleep(seconds),
        )

    def stored(self):
        heads = self.store.heads(
            self.heat.context.project_id, ordering.Query()
        )
        return {each.id: self.store.load(each.id) for each in heads}

    def change(self, run_id, attempts=(), **control):
        """Change a run as its leader does.

        :param attempts: what changes of them, by number.
        """
        before = self.store.load(run_id)
        after = before.run.attempted(dict(attempts)).changed(**control)
        self.store.step(before, after, str(uuid.uuid4()))

    def _pass(self, seconds):
        self.now += seconds

    def _install(self, patch):
        owner, heats = patch.probe()
        name = patch.function.rpartition('.')[2]
        self.patch(owner, name, patch.wrap(heats))
