# SPDX-License-Identifier: Apache-2.0
"""What the bench makes of its measurements."""

import pathlib
import tempfile

import testtools

from tests.bench import counting
from tests.bench import cycling
from tests.bench import figures
from tests.bench import record
from tests.bench import rounds
from tests.bench import stacks
from tests.bench import tables


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
    return cycling.Cycled(
        n=50, side=side, resident_bytes=[60] * 9 + [100] + [most] * 20
    )


def cell(table, title, column):
    return next(row for row in table if row[0] == title)[column]


class FiguresTest(testtools.TestCase):
    def value(self, figure, *found):
        return figures.over(figure, found).middle

    def test_rates_are_per_second_of_waiting(self):
        found = a_round(swift=20)
        self.assertEqual(2.0, self.value(figures.SWIFT, found))

    def test_the_noise_is_half_of_what_lies_between_the_extremes(self):
        found = [a_round(create=seconds) for seconds in (8.0, 10.0, 11.0)]
        value = figures.over(figures.SETUP, found)
        self.assertEqual(10.0, value.middle)
        self.assertAlmostEqual(0.15, value.noise)

    def test_a_round_that_was_given_up_has_the_figures_it_got_to(self):
        found = rounds.Round(
            scenario='stack of 10',
            kind='stack of',
            n=10,
            side='heats',
            create=3.0,
            trouble='too long',
        )
        self.assertEqual(3.0, self.value(figures.SETUP, found))
        self.assertIsNone(figures.over(figures.WORST, [found]))
        self.assertIsNone(figures.over(figures.LIFE_SWIFT, [found]))


class GoalsTest(testtools.TestCase):
    def test_a_goal_is_reached_or_missed(self):
        found = [a_round(rpc=10), a_round('heats', rpc=600, create=9.0)]
        table = tables.goals(found, 100)
        self.assertEqual(
            ['100', '1.00', '60.0', '1/60', '1/50', 'reached'],
            cell(table, figures.RPC.title, slice(1, None)),
        )
        self.assertEqual('missed', cell(table, figures.SETUP.title, 6))

    def test_a_goal_may_be_a_number_and_a_part_of_heats(self):
        goal = figures.Goal(figure=figures.MEDIAN, most=2.0, part=1)
        one, two, three = (
            figures.Value(middle=middle, noise=None)
            for middle in (1.0, 2.0, 3.0)
        )
        for ours, heats, reached in (
            (two, two, True),
            (two, one, False),
            (three, three, False),
            (two, None, None),
            (None, two, None),
        ):
            self.assertIs(reached, figures.is_reached(goal, ours, heats))

    def test_twice_as_many_are_to_take_twice_the_time_at_most(self):
        for seconds, said in ((20.0, 'reached'), (20.1, 'missed')):
            found = [
                a_round(),
                a_round(n=200, create=8.0, seconds=seconds),
            ]
            title = 'time for 200 over time for 100, set-up and completion'
            self.assertEqual(said, cell(tables.goals(found, 100), title, 6))

    def test_memory_must_stay_level(self):
        title = 'most memory up to stack 30, over that after 10'
        for most, said in ((105, 'reached'), (106, 'missed')):
            table = tables.goals([], 100, cycled=[cycled('ours', most)])
            self.assertEqual(said, cell(table, title, 6))
        self.assertEqual('', cell(tables.goals([], 100), title, 6))


class RecordTest(testtools.TestCase):
    def test_is_read_as_it_was_written(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        file = pathlib.Path(folder.name, 'figures.json')
        written = record.Record(
            machine={'cores': 2},
            options={'goals_at': 100},
            made_at='today',
            measured=[a_round(swift=3), a_round('heats')],
            cycled=[cycled('ours', 110)],
        )
        written.write(file)
        self.assertEqual(written, record.read(file))
