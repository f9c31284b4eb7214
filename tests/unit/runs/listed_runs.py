# SPDX-License-Identifier: Apache-2.0
"""Runs in the strict store, shown by a real door to a real client."""

import types
from urllib import parse
import uuid

from heat_plugins.clients import runs as client
from heat_plugins.engine.runs import door
from heat_plugins.runs import run_records
from tests.unit import web_service
from tests.unit.runs import fake_run_store

PROJECT, URL = 'project', 'http://heat.invalid/v1/project'


class ListedRuns(web_service.Service):
    """The runs of one project.

    :ivar now: the time of the store and the door.
    :ivar client: the way to them.
    :ivar asked: the queries so far.
    """

    def __init__(self, now):
        super().__init__()
        self.now = now
        self.asked = []
        self._store = fake_run_store.FakeRunStore()
        self._door = door.Door(self._store, clock=lambda: self.now)
        self.client = client.Runs(
            web_service.cloud(self, URL), lambda: self.now, self._sleep
        )

    def _sleep(self, seconds):
        self.now += seconds

    def answer(self, request):
        query = parse.parse_qs(parse.urlsplit(request.url).query)
        _name, _, asked = query['server_id'][0].partition('?')
        self.asked.append(asked)
        context = types.SimpleNamespace(project_id=PROJECT)
        found = self._door.show(context, asked)
        return 200, {'software_deployments': found}

    def start(self, stack, *resources, action='BACKUP', script=None):
        """Start a run on resources of a stack; return its ID."""
        members = [
            run_records.RunTarget(
                stack_id=stack.id,
                stack_name=stack.name,
                resource=each,
                deployment_id=f'{each}-deployment',
                server_id=f'{each}-server',
            )
            for each in resources
        ]
        order = run_records.RunOrder(
            id=str(uuid.uuid4()),
            action=action,
            limits=run_records.RunLimits(),
            members=members,
            created_at=int(self.now),
            created_by='ann',
            config=script and {'config': script, 'group': 'script'},
        )
        self._store.create(PROJECT, run_records.RunRecord.new(order), 'engine')
        return order.id

    def change(self, run_id, number=0, **values):
        """Change a target as its leader does.

        :param values: of `run_records.Attempt`; ``state`` as a text.
        """
        before = self._store.load(run_id)
        values['state'] = run_records.State(values['state'])
        after = before.run.attempted({number: {'number': 1, **values}})
        self._store.step(before, after, str(uuid.uuid4()))

    def begin(self, run_id, *numbers):
        """Give servers what they run."""
        for number in numbers or (0,):
            self.change(
                run_id, number, state='waiting', started_at=int(self.now)
            )

    def end(self, run_id, number=0, state='complete', **values):
        self.change(
            run_id, number, state=state, ended_at=int(self.now), **values
        )
