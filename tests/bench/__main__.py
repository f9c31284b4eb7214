# SPDX-License-Identifier: Apache-2.0
"""The command line of the bench."""

import argparse
import json
import pathlib
import time

from tests.bench import answering
from tests.bench import completing
from tests.bench import lab as labs
from tests.bench import live
from tests.bench import quick
from tests.bench import record as records
from tests.bench import rounds
from tests.bench import running
from tests.bench import scenarios
from tests.bench import scheduling
from tests.functional import base

_JSON = 'figures.json'

#: What measures each field of the record.
_MEASUREMENTS = {
    'completing': lambda lab, options, say: completing.measure(say),
    'cycling': lambda lab, options, say: [
        rounds.cycle(lab, name, say) for name in options.sides
    ],
    'live': lambda lab, options, say: live.measure(lab, say),
    'quick': lambda lab, options, say: quick.measure(lab, say),
    'runs': lambda lab, options, say: running.measure(lab, say),
    'scheduling': lambda lab, options, say: scheduling.measure(lab, say),
    'answering': lambda lab, options, say: answering.measure(say),
}

_OTHERS = (*scenarios.OTHERS, *_MEASUREMENTS)


def main():
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.render:
        record = json.loads(options.render.read_text())
    else:
        record = _measure(options)
    records.render(record, options.out, print)


def _options():
    parser = argparse.ArgumentParser(
        prog='make bench ARGS=…',
        description='Measure deployments that wait, on a mini cloud of its '
        "own: heat-plugins next to Heat's own classes, in turns.",
        epilog='The whole of it takes about an hour on two cores.',
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add, several = parser.add_argument, {'nargs': '*'}
    sides, others = list(labs.SIDES), list(_OTHERS)
    n = 'deployments in a stack'
    add('--n', **several, type=int, default=[10, 100], help=n)
    add('--sides', **several, choices=sides, default=sides, help='classes')
    store = (
        "the object store; rgw is Ceph's gateway, which refuses the TempURLs "
        "of Heat's own classes, so --sides is ours then"
    )
    add('--store', choices=['swift', 'rgw'], default='swift', help=store)
    add('--others', **several, choices=others, default=others, help='more')
    out = {'metavar': 'DIR', 'type': pathlib.Path}
    place = base.ROOT / 'doc/build/bench'
    add('--out', **out, default=place, help='for figures and tables')
    render = f'only make the tables again, of such a {_JSON}'
    add('--render', type=pathlib.Path, help=render)
    options = parser.parse_args()
    if options.store == 'rgw':
        options.sides = ['ours']
    return options


def _plan(options):
    """Return the rounds in their order; the sides take turns."""
    plan = [
        (scenarios.flat(n), name) for n in options.n for name in options.sides
    ]
    if 'ours' in options.sides:
        for name, scenario in scenarios.OTHERS.items():
            if name in options.others:
                plan.append((scenario, 'ours'))
    return plan


def _measure(options):
    begun = time.monotonic()

    def say(text):
        minutes, seconds = divmod(int(time.monotonic() - begun), 60)
        print(f'{minutes:3}:{seconds:02} {text}', flush=True)

    record = records.new(options)
    plan = _plan(options)
    counts = [scenario.count for scenario, _ in plan]
    servers = max([*counts, scheduling.COUNT])
    try:
        with labs.Lab(servers, options.store) as lab:
            runner = rounds.Runner(lab, say)
            for number, (scenario, side) in enumerate(plan, 1):
                say(
                    f'{number}/{len(plan)} {scenario.name}: {labs.SIDES[side]}'
                )
                record['measured'].append(runner.run(scenario, side))
            for name, measure in _MEASUREMENTS.items():
                if name in options.others:
                    say(name)
                    record[name] = measure(lab, options, say)
    finally:
        # An end before its time leaves what there is.
        record['seconds'] = time.monotonic() - begun
        records.write(record, options.out / _JSON)
    return record


if __name__ == '__main__':
    main()
