# SPDX-License-Identifier: Apache-2.0
"""One round: the life of some deployments, from create to delete.

All of them wait, some time is counted, and all are signalled at once; then
the same for an update; then they are deleted.
"""

from collections.abc import Callable, Sequence
from concurrent import futures
import dataclasses
import itertools
import json
import time

from tests.bench import counting
from tests.bench import engine_state
from tests.bench import lab as labs
from tests.bench import scenarios
from tests.functional import base

#: Seconds that are counted while nothing happens, and while all wait.
IDLE = 10
WAITING = 15

#: Seconds for what follows the last hand-over.
SETTLE = 2

#: How many servers signal in the same instant.
_SENDERS = 16

#: What a server sends that has succeeded.
BODY = json.dumps(
    {
        'deploy_stdout': 'one line of what a script prints\n' * 10,
        'deploy_stderr': '',
        'deploy_status_code': 0,
        'result': 'done',
    }
).encode()

_numbers = itertools.count(1)


@dataclasses.dataclass(kw_only=True)
class Signalled:
    """How an action went from the moment when all were signalled.

    :ivar latencies: seconds from the PUT to a complete resource, sorted.
    :ivar seconds: until the stacks were complete, from the first PUT.
    :ivar refused: PUTs that were answered with an error.
    :ivar early: deployments that were complete before they were signalled.
    """

    latencies: list[float]
    seconds: float
    refused: int
    early: int


@dataclasses.dataclass(kw_only=True)
class Round:
    """What was measured; what could not be is None.

    :ivar scenario: its name, such as ``stack of 100``.
    :ivar side: whose classes served it.
    :ivar create: seconds until all waited for their servers.
    :ivar update: the same for the update.
    :ivar delete: seconds until all was gone.
    :ivar counts: by phase: idle, create, waiting, signals, update,
        update_signals, delete.
    :ivar peak_bytes: of memory, by service.
    :ivar trouble: what kept the round from going on; empty if nothing did.
    """

    scenario: str
    kind: str
    n: int
    side: str
    create: float | None = None
    signals: Signalled | None = None
    update: float | None = None
    update_signals: Signalled | None = None
    delete: float | None = None
    counts: dict[str, counting.Counts] = dataclasses.field(
        default_factory=dict
    )
    peak_bytes: dict[str, int] = dataclasses.field(default_factory=dict)
    trouble: str = ''


class Runner:
    """Runs rounds on a lab.

    :param observe: called with the pid of Heat and the name of each phase
        as it begins; what it returns is called as the phase ends.
    """

    def __init__(
        self,
        lab: labs.Lab,
        say: Callable[[str], None],
        observe: Callable[[int, str], Callable[[], None]] | None = None,
    ) -> None:
        self._lab = lab
        self._say = say
        self._observe = observe or (lambda pid, phase: lambda: None)

    def run(
        self, scenario: scenarios.Scenario, side: labs.Side, conf: str = ''
    ) -> Round:
        """Run one round, from a start of Heat on.

        :param conf: what to add to heat.conf.
        """
        found = Round(
            scenario=scenario.name,
            kind=scenario.kind,
            n=scenario.count,
            side=side.name,
        )
        self._lab.start(side, conf)
        servers = self._lab.servers()
        with self._lab.state() as state:
            life = _Life(self._lab, state, scenario, self._say, self._observe)
            try:
                life.warm_up(servers)
                life.measure(found, scenario.templates(servers))
            except engine_state.TooLongError as error:
                found.trouble = str(error)
                self._say(f'gave up: {error}')
        if found.trouble:
            # What goes on in this cloud would be in the next round.
            self._lab.reset()
        return found


class _Life:
    def __init__(self, lab, state, scenario, say, observe) -> None:
        self._cloud = lab.cloud
        self._state = state
        self._n = scenario.count
        self._limit = 60 + 2 * scenario.count
        self._say = say
        self._observe = observe
        self._meter = counting.Meter(lab.cloud)

    def warm_up(self, servers: Sequence[str]) -> None:
        """Let both sides make what they make once: keys, tokens, caches."""
        template = scenarios.flat(1).templates(servers)[0]
        stacks = self._create([template])
        self._all_wait(stacks, 1, 'CREATE')
        self._signal(stacks, 1, 'CREATE')
        self._delete(stacks)

    def measure(
        self, found: Round, templates: Sequence[scenarios.Template]
    ) -> None:
        mark = self._count(found, 'idle', lambda: time.sleep(IDLE))
        stacks: list[base.Stack] = []

        def create() -> None:
            begun = time.time()
            stacks.extend(self._create(templates))
            self._all_wait(stacks, self._n, 'CREATE')
            found.create = time.time() - begun

        mark = self._count(found, 'create', create, mark)
        self._say(f'all wait after {found.create:.1f} s')
        time.sleep(SETTLE)
        mark = self._count(found, 'waiting', lambda: time.sleep(WAITING))

        def signal() -> None:
            found.signals = self._signal(stacks, self._n, 'CREATE')

        mark = self._count(found, 'signals', signal, mark)
        self._say(f'complete {_middle(found.signals.latencies)} after its PUT')
        found.peak_bytes = self._meter.peak_bytes()

        def update() -> None:
            begun = time.time()
            for stack, template in zip(stacks, templates, strict=True):
                stack.update(template, timeout_mins=60, turn='second')
            self._all_wait(stacks, self._n, 'UPDATE')
            found.update = time.time() - begun

        mark = self._count(found, 'update', update, mark)

        def signal_again() -> None:
            found.update_signals = self._signal(stacks, self._n, 'UPDATE')

        mark = self._count(found, 'update_signals', signal_again, mark)

        def delete() -> None:
            begun = time.time()
            self._delete(stacks)
            found.delete = time.time() - begun

        self._count(found, 'delete', delete, mark)
        self._say(f'gone after {found.delete:.1f} s')

    def _count(self, found, phase, do, begin=None) -> counting.Mark:
        """Do something, and note what the services did meanwhile."""
        begin = begin or self._meter.mark()
        end_observation = self._observe(
            self._cloud.usage('heat')['pid'], phase
        )
        try:
            do()
        finally:
            end_observation()
        end = self._meter.mark()
        found.counts[phase] = self._meter.between(begin, end)
        return end

    def _create(
        self, templates: Sequence[scenarios.Template]
    ) -> list[base.Stack]:
        return [
            base.Stack(
                self._cloud.session(),
                template,
                name=f'bench{next(_numbers)}',
                timeout_mins=60,
            )
            for template in templates
        ]

    def _all_wait(
        self, stacks: Sequence[base.Stack], count: int, action: str
    ) -> None:
        """Wait until each deployment waits, or does so no more."""
        ids = [stack.id for stack in stacks]

        def handed_over() -> bool:
            found = self._state.deployments(ids)
            return count == sum(
                one.waits(action) or one.is_done(action) for one in found
            )

        engine_state.until(
            handed_over, self._limit, f'{count} deployments to wait ({action})'
        )

    def _signal(
        self, stacks: Sequence[base.Stack], count: int, action: str
    ) -> Signalled:
        ids = [stack.id for stack in stacks]
        waiting = [
            one.id for one in self._state.deployments(ids) if one.waits(action)
        ]
        urls = self._state.signal_urls(waiting)
        sent: dict[str, float] = {}
        done: dict[str, float] = {}

        def put(deployment: str) -> int:
            sent[deployment] = time.time()
            return base.put(urls[deployment], BODY)

        def all_done() -> bool:
            for one in self._state.deployments(ids):
                if one.is_done(action):
                    done.setdefault(one.id, time.time())
            return self._state.stacks(ids) == {f'{action}_COMPLETE'}

        begun = time.time()
        with futures.ThreadPoolExecutor(_SENDERS) as pool:
            statuses = [pool.submit(put, one) for one in waiting]
            engine_state.until(
                lambda: all_done() or all(one.done() for one in statuses),
                self._limit,
                f'{count} PUTs',
            )
        refused = sum(one.result() >= 400 for one in statuses)
        if refused:
            raise engine_state.TooLongError(
                f'{action}: {refused} of {count} PUTs were refused'
            )
        try:
            engine_state.until(all_done, self._limit, f'{action} of {count}')
        except engine_state.TooLongError as error:
            raise engine_state.TooLongError(
                f'{error}; {len(done)} were complete by then'
            ) from error
        return Signalled(
            latencies=sorted(done[one] - sent[one] for one in waiting),
            seconds=time.time() - begun,
            refused=refused,
            early=count - len(waiting),
        )

    def _delete(self, stacks: Sequence[base.Stack]) -> None:
        ids = [stack.id for stack in stacks]
        for stack in stacks:
            stack.delete()
        engine_state.until(
            lambda: self._state.stacks(ids) == {'DELETE_COMPLETE'},
            self._limit,
            'deletion',
        )


def _middle(latencies: Sequence[float]) -> str:
    if not latencies:
        return 'before'
    return f'{latencies[len(latencies) // 2]:.1f} s'
