# SPDX-License-Identifier: Apache-2.0
"""A chart of what Heat, Mistral and the door of runs know."""

from unittest import mock

import testtools

from heat_plugins import errors
from heat_plugins.clients import runs as client
from heat_plugins.runs import summary
from heat_plugins.timeline import chart
from heat_plugins.timeline import chart_reading
from tests.unit.runs import fake_heat

THEN = 1_800_000_000


def target(resource='db', state='complete', begin=0, end=None, **more):
    """Return the target of a run, with times in seconds after `THEN`."""
    begun = {'started_at': begin, 'reported_at': None, 'ended_at': end}
    attempt = {
        name: None if after is None else summary.time(THEN + after)
        for name, after in (begun | more).items()
        if name in begun
    }
    values = {'state': state, 'reason': more.get('reason', ''), 'attempt': 1}
    return client.Target(
        number=0,
        stack='shop',
        resource=resource,
        server='s',
        attempts=[] if begin is None else [attempt | values],
        **values,
    )


def run(*targets, action='BACKUP', **values):
    return client.Run(
        id='r',
        action=action,
        state='running',
        created_at=summary.time(THEN),
        target_list=list(targets),
        **values,
    )


class ChartReaderTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.runs, self.now, self.asked = [], THEN, []
        self.heat = fake_heat.Heat()
        self.stack = self.heat.add_stack('shop')
        self.heat.add_deployment(self.stack)
        self.happens('db', 'CREATE_IN_PROGRESS', 1)
        self.happens('db', 'CREATE_COMPLETE', 9)

    def happens(self, name, status, after, stack=None, physical_id=''):
        self.heat.happens(
            stack or self.stack, name, status, THEN + after, physical_id
        )

    def chart(self, name='shop', **wanted):
        given = chart_reading.ChartFilter(**wanted)
        return chart_reading.read(
            self.heat, self.list_runs, name, given, lambda: self.now
        )

    def list_runs(self, **asked):
        self.asked.append(asked)
        yield from self.runs

    def rows(self, **wanted):
        return [
            (row.kind.value, '  ' * row.depth + row.title, len(row.bars))
            for row in self.chart(**wanted).rows
        ]

    def workflow(self, **execution):
        self.heat.add_resource(
            self.stack, 'nightly', 'OS::Mistral::Workflow', 'shop.nightly'
        )
        made = {
            'id': 'e1',
            'workflow_name': 'shop.nightly',
            'created_at': '2027-01-15 08:00:20',
            'updated_at': '2027-01-15 08:00:30',
        }
        self.heat.attributes['nightly', 'executions'] = [made | execution]

    def test_a_run_is_shown_with_its_id(self):
        reason = 'The server has started the action'
        begun = {'reported_at': 3, 'reason': reason}
        for state, more, since, said in (
            ('waiting', {}, None, 'The server has not answered yet'),
            ('running', begun, THEN + 3, reason),
        ):
            self.runs = [run(target(state=state, **more))]
            _, row = self.chart().rows
            (bar,) = row.bars
            assert (bar.state.value, bar.reason) == (state, f'{said} (run r)')
            assert (bar.start, bar.working_since) == (THEN, since)

    def test_runs_of_one_action_have_a_row_if_they_have_started(self):
        self.runs = [
            run(target(), target('web'), target('new', 'pending', None)),
            run(target(), target('web'), target('old', 'skipped')),
            run(target()),
        ]
        assert self.rows(runs=2) == [
            ('deployment', 'db', 1),
            ('run', 'db BACKUP', 2),
            ('run', 'web BACKUP', 2),
        ]
        wanted = {'stack': self.stack.id, 'targets': True, 'limit': 2}
        assert self.asked == [wanted]

    def test_a_script_on_several_servers_has_one_row(self):
        for name in ('web0', 'web1'):
            kind = 'OS::Heat::DeployedServer'
            self.heat.add_resource(self.stack, name, kind, f'{name}-id')
        script = {'action': 'APPLY', 'script': 'uptime'}
        self.runs = [run(target('web0'), **script)]
        assert ('run', 'web0 APPLY', 1) in self.rows()
        self.runs += [run(target('web0'), target('web1'), **script)]
        row = 'run', 'servers APPLY (+2)', 1
        assert [each for each in self.rows() if 'run' in each] == [row]
        unfolded = self.rows(unfold=True)
        both = {('run', 'web0 APPLY', 2), ('run', 'web1 APPLY', 1)}
        assert both <= {*unfolded}
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
        trace = 'Error in tasks: backup\n\n  backup -> disk full\n'
        error = 'ERROR: Error in tasks: backup backup -> disk full'
        for state, info, drawn, end, reason in (
            ('SUCCESS', None, 'complete', THEN + 30, 'SUCCESS'),
            ('RUNNING', None, 'running', None, 'RUNNING'),
            ('PAUSED', None, 'waiting', None, 'PAUSED'),
            ('ERROR', trace, 'failed', THEN + 30, error),
        ):
            del self.heat.members[self.stack.id][1:]
            self.workflow(state=state, state_info=info)
            *_, row = self.chart().rows
            (bar,) = row.bars
            found = row.title, bar.state.value, bar.start, bar.end
            assert found == ('nightly shop.nightly', drawn, THEN + 20, end)
            assert bar.reason == f'{reason} (execution e1)'

    def test_a_schedule_that_misses_its_times_shows_that(self):
        self.heat.add_resource(
            self.stack, 'nightly', 'OS::Heat::SoftwareSchedule', 's1', None
        )
        self.happens('nightly', 'CREATE_COMPLETE', 0)
        assert self.rows() == [('deployment', 'db', 1)]
        said = 'Not triggered: missed s1: no store'
        missed = self.stack, 'nightly', 'SIGNAL_FAILED', THEN + 60
        self.heat.happens(*missed, reason=said)
        assert ('resource', 'nightly', 2) in self.rows()
        trouble = chart.State.FAILED, f'nightly SIGNAL failed: {said}'
        assert trouble in list(self.chart().troubles())

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
        self.workflow()
        self.heat.failing['attribute'] = errors.Unavailable('it is away')
        self.list_runs = mock.Mock(side_effect=errors.Denied('no role'))
        drawn = self.chart()
        assert drawn.notes == (
            'Cannot list the runs of its actions: no role',
            'Cannot list the executions of nightly: it is away',
        )
        assert [row.title for row in drawn.rows] == ['db']

    def test_a_nested_stack_folds_and_unfolds_on_demand(self):
        nested = self.heat.add_stack('shop-group', self.stack.id)
        self.heat.add_deployment(nested, 'one')
        kind, place = 'OS::Heat::SoftwareDeploymentGroup', [nested.id] * 2
        self.heat.add_resource(self.stack, 'group', kind, *place)
        self.happens('group', 'CREATE_IN_PROGRESS', 2)
        self.happens('one', 'CREATE_IN_PROGRESS', 3, nested)
        self.happens('one', 'CREATE_COMPLETE', 6, nested)
        self.happens('group', 'CREATE_COMPLETE', 7)
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
        self.runs = [run(target(begin=0, end=0))]
        self.happens('db', 'UPDATE_IN_PROGRESS', 500)
        drawn = self.chart(since=THEN + 10)
        (row,) = drawn.rows
        assert [bar.label for bar in row.bars] == ['UPDATE']
        # The clock of heat-engine may be ahead.
        assert drawn.now == THEN + 500

    def test_runs_of_deleted_resources_and_stacks_are_shown(self):
        self.runs = [run(target())]
        self.heat.members[self.stack.id].clear()
        assert self.rows() == [('run', 'db BACKUP', 1)]
        self.heat.failing['resources'] = errors.NotFound('it is deleted')
        assert self.rows() == [('run', 'db BACKUP', 1)]
        self.assertRaises(errors.NotFound, self.chart, 'other')
