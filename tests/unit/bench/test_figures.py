# SPDX-License-Identifier: Apache-2.0
"""What the bench makes of its measurements."""

import pathlib
import tempfile

import testtools

from tests.bench import counting
from tests.bench import figures
from tests.bench import record
from tests.bench import rounds
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

    def test_without_heats_side_nothing_is_said(self):
        table = tables.goals([a_round()])
        self.assertEqual('', cell(table, figures.SETUP.title, 6))

    def test_memory_must_stay_level(self):
        title = 'most memory up to stack 30, over that after 10'
        for most, said in ((105, 'reached'), (106, 'missed')):
            table = tables.goals([], cycled=[cycled('ours', most)])
            self.assertEqual(said, cell(table, title, 6))
        self.assertEqual('', cell(tables.goals([]), title, 6))


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
