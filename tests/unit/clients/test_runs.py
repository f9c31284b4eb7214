# SPDX-License-Identifier: Apache-2.0
"""The client of runs, as commands and scripts use it."""

import json
from unittest import mock

import pytest

from heat_plugins import errors
from heat_plugins.clients import runs
from heat_plugins.runs import ordering
from tests.unit import web_service
from tests.unit.engine import run_world
from tests.unit.osc import run_door

RUN, OTHER = run_door.RUN, run_door.OTHER


class ClientTest(run_door.RunCase):
    def setUp(self):
        super().setUp()
        self.world.answers = lambda server_id: None
        self.start()
        self.world.pass_time()
        self.runs = self.client()

    def test_only_a_later_version_is_read(self):
        run = self.runs.newer(RUN, None)
        # An answer of a server makes none.
        self.reports()
        self.world.pass_time(2)
        assert self.runs.newer(RUN, run.version) is None
        assert self.runs.show(RUN).counts['running'] == 1
        self.runs.pause(RUN)
        later = self.runs.newer(RUN, run.version)
        assert later.state == 'paused'
        assert later.version > run.version
        self.assertRaises(errors.NotFound, self.runs.newer, OTHER, 1)

    def test_a_target_is_read_alone(self):
        target = self.runs.target(RUN, 1)
        assert (target.number, target.stack_id) == (1, 'stack-1')
        assert (target.resource, target.outputs) == ('deployment-1', None)
        assert self.runs.target(RUN, 1, outputs=True).outputs == {}
        self.assertRaises(errors.NotFound, self.runs.target, RUN, 3)
        # The end of an ID is enough.
        assert self.runs.run_id(RUN[:5]) == RUN
        self.use(run_world.World())
        runs = self.client()
        self.assertRaises(errors.NotFound, runs.run_id, RUN[:5])
        assert runs.run_id(OTHER) == OTHER

    def test_an_order_without_an_answer_is_repeated_with_its_ids(self):
        self.assertRaises(errors.Refused, self.runs.resume, RUN)
        assert len(self.api.posts) == 1
        self.api.failing = 3
        run = self.runs.cancel(RUN, target=1)
        assert [e['do'] for e in run.requests] == ['cancel-run']
        assert len(self.api.posts) == 5
        self.api.failing = 4
        self.assertRaises(errors.Unavailable, self.runs.pause, RUN)
        # A lost deletion is done.
        self.api.failing = 0
        self.runs.cancel(RUN)
        self.world.finish(run_id=RUN)
        self.api.failing = 1
        self.runs.delete(RUN)
        assert list(self.runs.list()) == []


def test_a_selection_is_a_dry_run_and_an_order_has_the_id_that_is_given():
    heat = web_service.Service()
    found = {'targets': 2, 'left_out': 0, 'unmet': [], 'rows': [], 'more': 0}
    shown = {'status': ordering.DRY_RUN, 'output_values': found}
    heat.answer = mock.Mock(return_value=(200, {'software_deployment': shown}))
    client = runs.Runs(web_service.cloud(heat, 'http://heat.example.com/v1'))
    assert client.select('BACKUP', stacks=['shop']).targets == 2
    with pytest.raises(runs.Unconfirmed) as caught:
        client.start('BACKUP', run_id=OTHER, stacks=['shop'])
    assert caught.value.selection.targets == 2
    first, second = [
        json.loads(asked.args[0].body)['input_values']
        for asked in heat.answer.mock_calls
    ]
    assert first['dry_run']
    assert second['run'] == OTHER
