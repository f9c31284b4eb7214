# SPDX-License-Identifier: Apache-2.0
"""The command line of the bench."""

import argparse
from collections.abc import Callable, Iterator
import datetime
import pathlib
import tempfile
import time
from typing import Any

from tests.bench import answering
from tests.bench import completing
from tests.bench import cycling
from tests.bench import lab as labs
from tests.bench import live
from tests.bench import machine
from tests.bench import pacing
from tests.bench import profiling
from tests.bench import quick
from tests.bench import record as records
from tests.bench import report
from tests.bench import rounds
from tests.bench import running
from tests.bench import scenarios
from tests.bench import scheduling
from tests.bench import tables
from tests.functional import base

_JSON = 'figures.json'

_Say = Callable[[str], None]
_Measure = Callable[[labs.Lab, argparse.Namespace, _Say], Any]

#: By the name that the command line has for it: a title, and what measures
#: each field of the record.
_MEASUREMENTS: dict[str, tuple[str, dict[str, _Measure]]] = {
    'completing': (
        'Completions in a sync point',
        {'completing': lambda lab, options, say: completing.measure(say)},
    ),
    'pacing': (
        'Intervals',
        {'paces': lambda lab, options, say: pacing.measure(lab, say)},
    ),
    'cycling': (
        'Stacks that come and go',
        {
            'cycled': lambda lab, options, say: [
                cycling.measure(lab, labs.SIDES[name], say)
                for name in options.sides
            ]
        },
    ),
    'live': (
        'Live runs',
        {'live': lambda lab, options, say: live.measure(lab, say)},
    ),
    'quick': (
        'Quick servers',
        {'quick': lambda lab, options, say: quick.measure(lab, say)},
    ),
    'runs': (
        'Runs',
        {'runs': lambda lab, options, say: running.measure(lab, say)},
    ),
    'scheduling': (
        'Schedules',
        {'scheduled': lambda lab, options, say: scheduling.measure(lab, say)},
    ),
    'answering': (
        'Runs without an object store',
        {
            'answered': lambda lab, options, say: answering.measure(
                options.name, say
            )
        },
    ),
    'profile': (
        'Profile',
        {
            'profile': lambda lab, options, say: tables.profile(
                [
                    _profile(lab, n, say)
                    for n in (options.goals_at, 2 * options.goals_at)
                ]
            )
        },
    ),
}

_OTHERS = (*scenarios.OTHERS, *_MEASUREMENTS)


def main() -> None:
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.render:
        record = records.read(options.render)
    else:
        record = _measure(options)
    report.write(record, options.out, print, options.second)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='make bench ARGS=…',
        description='Measure deployments that wait, on a mini cloud of its '
        "own: heat-plugins next to Heat's own classes, in turns.",
        epilog='The whole of it takes about an hour on two cores.',
    )
    parser.add_argument(
        '--n',
        metavar='N,…',
        type=_numbers,
        default=[10, 25, 50, 100, 200],
        help='deployments in a stack (default: 10,25,50,100,200)',
    )
    parser.add_argument(
        '--sides',
        metavar='SIDE,…',
        type=_names(labs.SIDES),
        default=list(labs.SIDES),
        help='whose classes: ' + ', '.join(labs.SIDES) + ' (default: both)',
    )
    parser.add_argument(
        '--store',
        choices=['swift', 'rgw'],
        default='swift',
        help="the object store; rgw is Ceph's gateway, which refuses the "
        "TempURLs of Heat's own classes, so --sides is ours then",
    )
    parser.add_argument(
        '--others',
        metavar='NAME,…',
        type=_names(_OTHERS),
        default=list(_OTHERS),
        help='what else: ' + ', '.join(_OTHERS) + ', or nothing: '
        "'' (default: all)",
    )
    parser.add_argument(
        '--short',
        action='store_true',
        help='only what the goals need, once: about 20 minutes; the options '
        'above and --repeat are set by it',
    )
    parser.add_argument(
        '--goals-at',
        metavar='N',
        type=int,
        default=100,
        help='the N that the goals are for (default: 100)',
    )
    parser.add_argument(
        '--repeat',
        metavar='TIMES',
        type=int,
        default=3,
        help='rounds of that N, which tell the noise (default: 3)',
    )
    parser.add_argument(
        '--out',
        metavar='DIR',
        type=pathlib.Path,
        default=base.ROOT / 'doc/build/bench',
        help='where to write figures, tables and plots '
        '(default: doc/build/bench)',
    )
    parser.add_argument(
        '--render',
        metavar='FILE',
        type=pathlib.Path,
        help=f'only make tables and plots again, of such a {_JSON}',
    )
    parser.add_argument(
        '--second',
        metavar='FILE',
        type=pathlib.Path,
        help='the goals.csv of another run, whose figures the table of the '
        'goals shows as well',
    )
    parser.add_argument(
        '--name',
        default='bench',
        help='of the mini cloud (default: bench)',
    )
    options = parser.parse_args()
    if options.short:
        options.n = sorted({10, options.goals_at})
        options.others = [
            *('single', 'thousand', 'runs', 'cycling', 'scheduling'),
        ]
        options.repeat = 1
    if options.store == 'rgw':
        options.sides = ['ours']
    return options


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(',') if part]


def _names(known):
    def names(text: str) -> list[str]:
        found = [part for part in text.split(',') if part]
        if unknown := set(found).difference(known):
            raise argparse.ArgumentTypeError(f'no such: {sorted(unknown)}')
        return found

    return names


def _plan(
    options: argparse.Namespace,
) -> Iterator[tuple[scenarios.Scenario, labs.Side]]:
    """Yield the rounds in their order; the sides take turns."""
    sides = [labs.SIDES[name] for name in options.sides]
    for n in options.n:
        times = options.repeat if n == options.goals_at else 1
        for _ in range(times):
            for side in sides:
                yield scenarios.flat(n), side
    for name, scenario in scenarios.OTHERS.items():
        if name in options.others:
            for side in sides:
                if side is labs.SIDES['ours'] or not scenario.single:
                    yield scenario, side


def _lab(options: argparse.Namespace) -> labs.Lab:
    counts = [scenario.count for scenario, _ in _plan(options)]
    most = max(
        [*counts, running.WAITING, scheduling.COUNT, 2 * options.goals_at]
    )
    return labs.Lab(options.name, most, options.store)


def _measure(options: argparse.Namespace) -> records.Record:
    begun = time.monotonic()

    def say(text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - begun), 60)
        print(f'{minutes:3}:{seconds:02} {text}', flush=True)

    record = records.Record(
        machine=machine.about(),
        options={
            name: value if isinstance(value, list | int) else str(value)
            for name, value in vars(options).items()
        },
        made_at=datetime.datetime.now(datetime.UTC).isoformat(),
    )
    try:
        with _lab(options) as lab:
            _fill(record, options, lab, say)
    finally:
        # An end before its time leaves what there is.
        record.seconds = time.monotonic() - begun
        record.write(options.out / _JSON)
    return record


def _fill(
    record: records.Record,
    options: argparse.Namespace,
    lab: labs.Lab,
    say: _Say,
) -> None:
    def detail(text: str) -> None:
        say(f'      {text}')

    plan = list(_plan(options))
    runner = rounds.Runner(lab, detail)
    for number, (scenario, side) in enumerate(plan, 1):
        say(f'{number}/{len(plan)} {scenario.name}: {side.title}')
        record.measured.append(runner.run(scenario, side))
    for name, (title, fields) in _MEASUREMENTS.items():
        if name in options.others:
            say(title)
            for field, measure in fields.items():
                setattr(record, field, measure(lab, options, detail))


def _profile(lab: labs.Lab, n: int, say: _Say) -> profiling.Profiled:
    """Profile heat-engine in one more round of ours.

    It is slower for that, so the figures of the round mean nothing.
    """
    with tempfile.TemporaryDirectory(prefix='bench-') as folder:
        profiler = profiling.Profiler(pathlib.Path(folder))
        runner = rounds.Runner(lab, say, profiler)
        found = runner.run(scenarios.flat(n), labs.SIDES['ours'])
        return profiling.Profiled(
            n=n,
            cpu={
                phase: counts.cpu['heat']
                for phase, counts in found.counts.items()
            },
            profiles=profiler.read(),
        )


if __name__ == '__main__':
    main()
