# SPDX-License-Identifier: Apache-2.0
"""What the command line asks for while it waits for many runs."""

from collections.abc import Callable
import dataclasses
import subprocess
import time

from tests.bench import counting
from tests.bench import engine_state
from tests.bench import lab as labs
from tests.bench import rounds
from tests.bench import scenarios
from tests.bench import stacks
from tests.functional import base

COUNT = 50

#: What is counted, in the order in which it happens.
PHASES = ('started', 'waiting', 'ended')

_ACTION = 'BACKUP'
_WAITING = 20
_LIMIT = 300


@dataclasses.dataclass(kw_only=True)
class Triggered:
    """Runs of an action on all deployments of a stack, by one command.

    :ivar n: how many runs.
    :ivar started: counts from the start until all runs wait.
    :ivar waiting: counts while all wait.
    :ivar ended: counts from when all had been signalled to the end.
    :ivar exit_code: of the command.
    """

    n: int
    started: counting.Counts
    waiting: counting.Counts
    ended: counting.Counts
    exit_code: int


def measure(lab: labs.Lab, say: Callable[[str], None]) -> Triggered:
    """Trigger an action with ``--all --wait``; answer after a while."""
    lab.start(labs.SIDES['ours'])
    meter = counting.Meter(lab.cloud)
    template = scenarios.components(lab.servers[:COUNT], _ACTION)
    with lab.state() as state:
        rounds.warm_up(lab, state)
        group = stacks.Stacks(lab, state, [template], COUNT)
        group.create()
        group.signal('CREATE')
        begin = meter.mark()
        command = subprocess.Popen(
            [
                *('openstack', 'software', 'deployment', 'trigger'),
                *(group.names[0], '--all', _ACTION, '--wait', '-f', 'json'),
            ],
            env=lab.cloud.env(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            engine_state.until(
                lambda: len(state.triggered(_ACTION)) == COUNT,
                _LIMIT,
                f'{COUNT} runs to begin',
            )
            running = meter.mark()
            time.sleep(_WAITING)
            waited = meter.mark()
            urls = state.signal_urls(state.triggered(_ACTION))
            for url in urls.values():
                base.put(url, stacks.BODY)
            answered = meter.mark()
            exit_code = command.wait(_LIMIT)
        finally:
            command.kill()
        ended = meter.mark()
        group.delete()
    say(f'{COUNT} runs: exit code {exit_code}')
    return Triggered(
        n=COUNT,
        started=meter.between(begin, running),
        waiting=meter.between(running, waited),
        ended=meter.between(answered, ended),
        exit_code=exit_code,
    )
