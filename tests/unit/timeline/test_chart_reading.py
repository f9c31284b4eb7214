# SPDX-License-Identifier: Apache-2.0
"""A chart of what Heat, Mistral and the door of runs know."""

import dataclasses

import testtools

from heat_plugins import errors
from heat_plugins.clients import runs as client
from heat_plugins.timeline import chart
from heat_plugins.timeline import chart_reading
from heat_plugins.timeline import plain_text
from heat_plugins.timeline import svg
from tests.unit import growth
from tests.unit.runs import fake_heat
from tests.unit.runs import listed_runs


def test_a_script_is_not_sought_among_those_of_all_servers():
    def reader(size):
        heat = fake_heat.Heat()
        heat.add_stack('shop')
        at = '2027-01-15T08:00:00Z'
        times = dict.fromkeys(('started_at', 'reported_at', 'ended_at'), at)
        attempt = {'attempt': 1, 'state': 'complete', 'reason': '', **times}
        target = client.Target(
            number=0,
            stack='shop',
            resource='',
            server='s',
            state='complete',
            attempt=1,
            attempts=[attempt],
        )
        run = client.Run(
            id='r',
            action='APPLY',
            state='complete',
            script='uptime',
            created_at=at,
            target_list=[
                dataclasses.replace(target, resource=f'web{number}')
                for number in range(size)
            ],
        )
        return chart_reading.ChartReader(heat, lambda **asked: iter([run]))

    wanted = chart_reading.ChartFilter()
    growth.check(
        lambda found: found.read('shop', wanted),
        reader,
        start=64,
        largest=2**13,
    )


class ChartReaderTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.then = 1_800_000_000
        self.runs = listed_runs.ListedRuns(self.then)
        self.heat = fake_heat.Heat()
        self.stack = self.heat.add_stack('shop')
        self.heat.add_deployment(self.stack)
        self.happens('db', 'CREATE_IN_PROGRESS', 1)
        self.happens('db', 'CREATE_COMPLETE', 9)

    def happens(self, name, status, after, stack=None, physical_id=''):
        self.heat.happens(
            stack or self.stack, name, status, self.then + after, physical_id
        )

    def chart(self, name='shop', **wanted):
        reader = chart_reading.ChartReader(
            self.heat, self.runs.client.list, lambda: self.runs.now
        )
        return reader.read(name, chart_reading.ChartFilter(**wanted))

    def rows(self, **wanted):
        return [
            (row.kind.value, '  ' * row.depth + row.title, len(row.bars))
            for row in self.chart(**wanted).rows
        ]

    def workflow(self, **execution):
        self.heat.add_resource(
            self.stack, 'nightly', 'OS::Mistral::Workflow', 'shop.nightly'
        )
        self.heat.attributes['nightly', 'executions'] = [
            {
                'id': 'e1',
                'workflow_name': 'shop.nightly',
                'created_at': '2027-01-15 08:00:20',
                'updated_at': '2027-01-15 08:00:30',
                'state': 'SUCCESS',
                **execution,
            }
        ]

    def group(self):
        nested = self.heat.add_stack('shop-group', self.stack.id)
        self.heat.add_deployment(nested, 'one')
        self.heat.add_resource(
            self.stack,
            'group',
            'OS::Heat::SoftwareDeploymentGroup',
            nested.id,
            nested=nested.id,
        )
        self.happens('group', 'CREATE_IN_PROGRESS', 2)
        self.happens('one', 'CREATE_IN_PROGRESS', 3, nested)
        self.happens('one', 'CREATE_COMPLETE', 6, nested)
        self.happens('group', 'CREATE_COMPLETE', 7)

    def start(self, *resources, **values):
        """Start a run whose servers have it."""
        run = self.runs.start(self.stack, *(resources or ['db']), **values)
        self.runs.begin(run, *range(len(resources or ['db'])))
        return run

    def bar(self):
        """Return the only bar of a run."""
        (row,) = (
            row for row in self.chart().rows if row.kind is chart.RowKind.RUN
        )
        (bar,) = row.bars
        return bar

    def test_a_run_is_shown_with_its_id(self):
        run = self.start()
        bar = self.bar()
        assert bar.state == chart.State.WAITING
        assert f'The server has not answered yet (run {run})' == bar.reason
        self.runs.change(
            run,
            state='running',
            started_at=self.then,
            reported_at=self.then + 3,
            reason='The server has started the action',
        )
        bar = self.bar()
        assert (self.then, self.then + 3, None) == (
            bar.start,
            bar.working_since,
            bar.end,
        )

    def test_what_has_not_started_has_no_bar(self):
        self.runs.start(self.stack, 'db')
        skipped = self.runs.start(self.stack, 'db')
        self.runs.end(skipped, state='skipped', reason='it runs already')
        assert self.rows() == [('deployment', 'db', 1)]

    def test_one_question_shows_the_targets_of_many_runs(self):
        other = self.heat.add_stack('other')
        for _run in range(3):
            self.start('db', 'web')
        self.runs.begin(self.runs.start(other, 'elsewhere'))
        assert self.rows() == [
            ('deployment', 'db', 1),
            ('run', 'db BACKUP', 3),
            ('run', 'web BACKUP', 3),
        ]
        assert len(self.runs.asked) == 1

    def test_the_newest_runs_are_shown(self):
        for _run in range(3):
            self.start()
            self.runs.now += 9
        (_, row) = self.chart(runs=2).rows
        assert {self.then + 9, self.then + 18} == {
            bar.start for bar in row.bars
        }

    def run_script(self, *servers):
        self.start(*servers, action='APPLY', script='#!/bin/sh\nuptime\n')

    def servers(self, *names):
        for name in names:
            kind = 'OS::Heat::DeployedServer'
            self.heat.add_resource(self.stack, name, kind, f'{name}-id')

    def test_a_script_on_several_servers_has_one_row(self):
        self.servers('web0', 'web1', 'web2')
        self.run_script('web0')
        assert ('run', 'web0 APPLY', 1) in self.rows()
        self.run_script('web0', 'web1')
        row = 'run', 'servers APPLY (+2)', 1
        assert [each for each in self.rows() if 'run' in each] == [row]
        unfolded = self.rows(unfold=True)
        assert {('run', 'web0 APPLY', 2), ('run', 'web1 APPLY', 1)} <= {
            *unfolded
        }
        assert row not in unfolded

    def test_members_without_resources_have_a_bar_each(self):
        self.heat.add_group(self.stack, 'fleet', {'a': 's-1', 'b': 's-2'})
        self.happens('fleet', 'CREATE_IN_PROGRESS', 2)
        self.happens('fleet', 'CREATE_COMPLETE', 7)
        folded = next(row for row in self.chart().rows if row.name == 'fleet')
        assert folded.folded == 2
        assert ('deployment', '  a', 1) in self.rows(unfold=True)

    def test_the_stack_comes_first_and_other_resources_on_demand(self):
        self.happens('shop', 'CREATE_IN_PROGRESS', 0, None, self.stack.id)
        self.happens('db_config', 'CREATE_COMPLETE', 0)
        stack, db = ('stack', 'shop', 1), ('deployment', 'db', 1)
        assert self.rows() == [stack, db]
        config = ('resource', 'db_config', 1)
        assert self.rows(everything=True) == [stack, config, db]

    def test_an_execution_is_drawn_with_its_state_and_reason(self):
        failure = 'Failure caused by error in tasks: backup'
        for state, drawn, has_ended, info, reason in (
            ('SUCCESS', chart.State.COMPLETE, True, None, 'SUCCESS'),
            ('RUNNING', chart.State.RUNNING, False, None, 'RUNNING'),
            ('PAUSED', chart.State.WAITING, False, None, 'PAUSED'),
            (
                'ERROR',
                chart.State.FAILED,
                True,
                f'{failure}\n\n  backup -> disk full\n',
                f'ERROR: {failure} backup -> disk full',
            ),
        ):
            del self.heat.members[self.stack.id][1:]
            self.workflow(state=state, state_info=info)
            (row,) = (r for r in self.chart().rows if r.path == 'nightly')
            (bar,) = row.bars
            assert row.title == 'nightly shop.nightly'
            assert (bar.state, bar.start) == (drawn, self.then + 20)
            assert bar.end == (self.then + 30 if has_ended else None)
            assert bar.reason == f'{reason} (execution e1)'

    def test_a_schedule_that_misses_its_times_shows_that(self):
        self.heat.add_resource(
            self.stack, 'nightly', 'OS::Heat::SoftwareSchedule', 's1', None
        )
        self.happens('nightly', 'CREATE_COMPLETE', 0)
        assert self.rows() == [('deployment', 'db', 1)]
        self.heat.happens(
            self.stack,
            'nightly',
            'SIGNAL_FAILED',
            self.then + 60,
            reason='Not triggered: missed s1: no store',
        )
        assert ('resource', 'nightly', 2) in self.rows()
        assert (
            chart.State.FAILED,
            'nightly SIGNAL failed: Not triggered: missed s1: no store',
        ) in list(self.chart().troubles())
        drawn = self.chart()
        line, _ = [
            each
            for each in plain_text.draw(drawn, 80)
            if each.plain.startswith('nightly ')
        ]
        (red,) = [span for span in line.spans if span.style == 'red']
        assert line.plain[red.start : red.end] == '✗'
        assert 'class="bar failed"' in svg.draw(drawn)

    def test_what_a_stack_holds_is_shown_by_its_kind(self):
        empty = self.heat.add_stack('shop-empty', self.stack.id)
        for name, kind, number, nested in (
            ('empty', 'OS::Heat::Stack', empty.id, empty.id),
            ('once', 'OS::Mistral::Execution', 'e9', None),
            ('fresh', 'OS::Mistral::Workflow', '', None),
        ):
            self.heat.add_resource(self.stack, name, kind, number, nested)
            self.happens(name, 'CREATE_COMPLETE', 9)
        shown = {('deployment', 'db'), ('workflow execution', 'once')}
        assert shown == {row[:2] for row in self.rows()}
        shown |= {('nested stack', 'empty'), ('resource', 'fresh')}
        found = {row[:2] for row in self.rows(everything=True)}
        assert shown == found
        assert 'attribute fresh executions' not in self.heat.asked

    def test_services_that_do_not_answer_are_noted(self):
        def refuse(request):
            raise errors.Denied('no role')

        self.workflow()
        self.heat.failing['attribute'] = errors.Unavailable('it is away')
        self.patch(self.runs, 'answer', refuse)
        drawn = self.chart()
        assert drawn.notes == (
            'Cannot list the runs of its actions: no role',
            'Cannot list the executions of nightly: it is away',
        )
        assert [row.title for row in drawn.rows] == ['db']

    def test_a_nested_stack_folds_and_unfolds_on_demand(self):
        self.group()
        db = ('deployment', 'db', 1)
        assert self.rows() == [db, ('deployment', 'group (+1)', 1)]
        assert self.rows(unfold=True) == [
            db,
            ('deployment', 'group', 1),
            ('deployment', '  one', 1),
        ]
        # A nested stack is shown from its top.
        assert self.chart('shop-group').stack == 'shop'

    def test_what_ended_before_is_left_out(self):
        self.runs.end(self.start(), started_at=self.then)
        self.happens('db', 'UPDATE_IN_PROGRESS', 500)
        drawn = self.chart(since=self.then + 10)
        (row,) = drawn.rows
        assert [bar.label for bar in row.bars] == ['UPDATE']
        # The clock of heat-engine may be ahead.
        assert drawn.now == self.then + 500

    def test_runs_of_deleted_resources_and_stacks_are_shown(self):
        self.start()
        self.heat.members[self.stack.id].clear()
        assert self.rows() == [('run', 'db BACKUP', 1)]
        self.heat.failing['resources'] = errors.NotFound('it is deleted')
        assert self.rows() == [('run', 'db BACKUP', 1)]
        self.assertRaises(errors.NotFound, self.chart, 'other')
