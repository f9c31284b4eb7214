# SPDX-License-Identifier: Apache-2.0
"""What the bench makes of its measurements."""

import pathlib
import tempfile

import testtools

from tests.bench import counting
from tests.bench import figures
from tests.bench import record
from tests.bench import rounds
from tests.bench import scenarios
from tests.bench import stacks
from tests.bench import tables
from tests.functional import base


def counts(seconds=10.0, swift=0, rpc=0, db=0, cpu=0.0):
    return counting.Counts(
        seconds=seconds,
        swift={'GET': swift},
        rpc={'show': rpc},
        db={'SELECT': db},
        cpu=dict.fromkeys(counting.SERVICES, cpu),
    )


def a_round(side='ours', n=100, create=8.0, seconds=6.0, **waiting):
    """Return a round in which each phase but the waiting counts nothing."""
    return rounds.Round(
        scenario=f'stack of {n}',
        kind='stack of',
        n=n,
        side=side,
        create=create,
        signals=stacks.Signalled(
            latencies=[0.5, 1.0, 2.0, 4.0], seconds=seconds, early=0
        ),
        update=1.0,
        update_signals=stacks.Signalled(latencies=[1.0], seconds=1.0, early=0),
        delete=1.0,
        counts={
            'idle': counts(cpu=0.3),
            **{phase: counts() for phase in figures.LIFE},
            'waiting': counts(**waiting),
        },
        peak_bytes=dict.fromkeys(counting.SERVICES, 100_000_000),
    )


def cycled(side, most):
    """Return stacks that come and go, at first with 100 bytes."""
    return rounds.Cycled(
        side=side, resident_bytes=[60] * 9 + [100] + [most] * 20
    )


def cell(table, title, column):
    return next(row for row in table if row[0] == title)[column]


def value(figure, found):
    return figures.of(figure, [found], found.scenario, found.side)


class FiguresTest(testtools.TestCase):
    def test_rates_are_per_second_of_waiting(self):
        self.assertEqual(2.0, value(figures.SWIFT, a_round(swift=20)))

    def test_cpu_counts_above_its_idle_level(self):
        self.assertAlmostEqual(0.1, value(figures.HEAT_CPU, a_round(cpu=1.3)))

    def test_the_life_is_all_phases_but_the_idle_one(self):
        found = a_round(n=10, rpc=50)
        found.counts['idle'] = counts(rpc=1000)
        self.assertEqual(5.0, value(figures.LIFE_RPC, found))

    def test_latencies(self):
        self.assertEqual(1.0, value(figures.MEDIAN, a_round()))
        self.assertEqual(4.0, value(figures.WORST, a_round()))

    def test_a_round_that_was_given_up_has_the_figures_it_got_to(self):
        found = rounds.Round(
            scenario='stack of 10',
            kind='stack of',
            n=10,
            side='heats',
            create=3.0,
            trouble='too long',
        )
        self.assertEqual(3.0, value(figures.SETUP, found))
        self.assertIsNone(value(figures.WORST, found))
        self.assertIsNone(value(figures.LIFE_SWIFT, found))

    def test_a_quiet_wait_counts_where_there_is_one(self):
        ours, heats = a_round(swift=400), a_round('heats', swift=800)
        ours.counts['quiet'] = counts(swift=10)
        self.assertEqual(1.0, value(figures.QUIET, ours))
        self.assertEqual(80.0, value(figures.QUIET, heats))


class GoalsTest(testtools.TestCase):
    def test_a_goal_is_reached_or_missed(self):
        found = [a_round(rpc=10), a_round('heats', rpc=600, create=9.0)]
        table = tables.goals(found)
        self.assertEqual(
            ['100', '1.00', '60.0', '1/60', '1/50', 'reached'],
            cell(table, figures.RPC.title, slice(1, None)),
        )
        self.assertEqual('missed', cell(table, figures.SETUP.title, 6))

    def test_a_goal_may_be_a_number_and_a_part_of_heats(self):
        goal = figures.Goal(figures.MEDIAN, most=2.0, part=1)
        for ours, heats, reached in (
            (2.0, 2.0, True),
            (2.0, 1.0, False),
            (3.0, 3.0, False),
            (2.0, None, None),
            (None, 2.0, None),
        ):
            self.assertIs(reached, figures.is_reached(goal, ours, heats))

    def test_goals_for_few_deployments_are_of_their_round(self):
        found = [
            a_round(side, n) for n in (10, 100) for side in ('ours', 'heats')
        ]
        found[0].signals.latencies = [0.1, 0.2, 0.3, 0.4]
        self.assertEqual(
            ['10', '0.20', '1.00', '1/5', '0.3, 1.00', 'reached'],
            cell(tables.goals(found), figures.MEDIAN.title, slice(1, 7)),
        )

    def test_without_heats_side_nothing_is_said(self):
        table = tables.goals([a_round()])
        self.assertEqual('', cell(table, figures.SETUP.title, 6))

    def test_a_group_has_goals_of_its_own(self):
        found = a_round(n=200, create=3.0)
        found.scenario = f'{scenarios.SINGLE} 200'
        row = next(
            row
            for row in tables.goals([found])
            if row[:2] == [figures.SETUP.title, found.scenario]
        )
        self.assertEqual(['3.00', '', '', '4', 'reached'], row[2:])

    def test_of_ceph_s_gateway_there_are_our_figures_alone(self):
        table = tables.ours([a_round(rpc=10)])
        self.assertEqual(['', 'N', 'heat-plugins'], table[0])
        self.assertIn([figures.RPC.title, '100', '1.00'], table)

    def test_memory_must_stay_level(self):
        title = 'most memory up to stack 30, over that after 10'
        for most, said in ((105, 'reached'), (106, 'missed')):
            table = tables.goals([], cycled=[cycled('ours', most)])
            self.assertEqual(said, cell(table, title, 6))
        self.assertEqual('', cell(tables.goals([]), title, 6))

    def test_memory_is_compared_with_heats(self):
        found = [cycled('ours', 110), cycled('heats', 220)]
        self.assertEqual(
            ['1.10', '2.20', '0.50', '1.05', 'missed'],
            tables.goals([], cycled=found)[-1][2:],
        )

    def test_what_has_no_goal_has_an_empty_cell(self):
        table = tables.measured([('a', 1000, 2.04, 2.5), ('b', 1, 3, None)])
        self.assertEqual(['a', '1,000', '2.0', '2.5'], table[1])
        self.assertEqual(['b', '1', '3.0', ''], table[2])


class TroublesTest(testtools.TestCase):
    def test_names_updates_that_nobody_had_signalled(self):
        found = a_round('heats')
        found.update_signals.early = 7
        self.assertEqual(
            [
                "stack of 100, Heat's own: 7 of 100 updates were complete "
                'before their servers had answered'
            ],
            tables.troubles([found]),
        )


class RecordTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_is_read_as_it_was_written(self):
        file = self.folder / 'figures.json'
        written = record.Record(
            machine={'cores': 2},
            options={'store': 'swift'},
            made_at='today',
            measured=[a_round(swift=3), a_round('heats')],
            cycling=[cycled('ours', 110)],
        )
        written.write(file)
        self.assertEqual(written, record.read(file))

    def test_the_page_shows_the_figures_that_it_has(self):
        page = base.ROOT / 'doc/source/performance'
        figures = record.read(page / 'figures.json')
        said = []
        record.render(figures, self.folder, said.append)
        for name in ('goals', 'waiting', 'times', 'costs', 'live', 'quick'):
            file = f'{name}.csv'
            self.assertEqual(
                (page / file).read_text(), (self.folder / file).read_text()
            )
