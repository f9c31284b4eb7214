# SPDX-License-Identifier: Apache-2.0
"""Kill the process that advances an operation, at each step of it.

``make kills`` runs an operation on thirty servers for each step: in one cloud
an engine advances it, in another the command that has started it. That process
is killed, and another one brings the operation to its end. The records, Heat's
database and what is left then say whether each server has run the script once,
each result counts, and the limits have held.

A step is hit as in `kills`, or by requests that the object store holds. What
it holds of a process that is dead it writes later.
"""

import argparse
import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
import traceback
from typing import Any

from tests.functional import base
from tests.functional import kills
from tests.functional import servers

#: The servers, how many may run at a time, and how many may fail.
COUNT, AT_ONCE, ERRORS = 30, 12, 2

ACTION = 'BACKUP'

#: No engine advances operations.
ALONE = """\
[heat_plugins]
rescue_interval = 0
"""

# Seconds for which the object store holds a request, and for which a process
# must have waited at it.
_HOLD, _STAND = 30, 3

_RUN = "status_reason LIKE 'heat-plugins run %'"

# What notes how many servers have a run at the same time.
_MADE = f"""\
CREATE TABLE IF NOT EXISTS kills_most (number INTEGER);
CREATE TRIGGER IF NOT EXISTS kills_count
AFTER INSERT ON software_deployment WHEN NEW.{_RUN} BEGIN
    INSERT INTO kills_most
    SELECT count(*) FROM software_deployment WHERE {_RUN};
END;
"""

# The statements by which an engine takes a step, of which none may end.
_GIVE = (f'BEFORE INSERT ON software_deployment WHEN NEW.{_RUN}',)
_TELL = (
    'BEFORE UPDATE OF rsrc_metadata ON resource'
    f" WHEN NEW.rsrc_metadata LIKE '%-{ACTION}%'",
)
_WITHDRAW = (f'BEFORE DELETE ON software_deployment WHEN OLD.{_RUN}',)
_FORGET = (
    f"BEFORE DELETE ON software_config WHEN OLD.name LIKE '%-{ACTION}'",
)
_FINISH = (
    'BEFORE UPDATE OF status ON software_deployment WHEN NEW.status ='
    " 'COMPLETE' AND OLD.status_reason LIKE 'heat-plugins operation %'",
)


class Database(kills.Database):
    """Heat's database, as runs change it."""

    def __init__(self, cloud: base.Cloud) -> None:
        super().__init__(cloud.path / 'data/heat.sqlite')
        self._database.executescript(_MADE)

    def runs(self) -> list[kills.Row]:
        """Read the deployments of runs."""
        return [
            row
            for row in self.rows()
            if row.reason.startswith('heat-plugins run ')
        ]

    def operation(self) -> str | None:
        """Return the operation that goes on; None for none."""
        for row in self.rows():
            is_operation = row.reason.startswith('heat-plugins operation ')
            if is_operation and row.status == 'IN_PROGRESS':
                return row.server_id
        return None

    def told(self) -> list[base.Template]:
        """Return the configs of runs that servers have."""
        return [
            config
            for given in self.metadata().values()
            for config in given
            if base.value(config, 'deploy_action') == ACTION
        ]

    def most_at_once(self) -> int:
        """Return how many servers have had a run at the same time."""
        ((most,),) = self._select('SELECT max(number) FROM kills_most')
        return int(most or 0)

    def forget_given(self) -> None:
        super().forget_given()
        self._database.execute('DELETE FROM kills_most')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """A step of an operation at which the process that advances it dies.

    :ivar gate: the statements that take the next step.
    :ivar hold: the requests to the object store that do, as a method and the
        end of a path.
    :ivar answers: how many servers answer before the kill.
    :ivar is_taken: says whether the process has come so far, by the runs that
        Heat has and those that servers were told of.
    :ivar is_late: whether the first servers have their runs before the next
        step is held.
    :ivar failing: how many servers fail.
    """

    gate: Sequence[str] = ()
    hold: tuple[str, str] | None = None
    answers: int = 0
    is_taken: Callable[[int, int], bool]
    is_late: bool = False
    failing: int = 0


def _first(runs: int, told: int) -> bool:
    return told == AT_ONCE


#: Of an engine, in their order.
ENGINE = {
    'unwritten': Step(gate=_GIVE, is_taken=lambda runs, told: not runs),
    'untold': Step(gate=_TELL, is_taken=lambda runs, told: runs == AT_ONCE),
    'told': Step(is_taken=_first),
    'unwithdrawn': Step(gate=_WITHDRAW, answers=6, is_taken=_first),
    'unforgotten': Step(
        gate=_FORGET, answers=6, is_taken=lambda runs, told: runs < AT_ONCE
    ),
    'unfilled': Step(
        gate=_GIVE,
        answers=6,
        is_late=True,
        is_taken=lambda runs, told: runs < AT_ONCE,
    ),
    'failing': Step(
        gate=_WITHDRAW, answers=AT_ONCE, failing=8, is_taken=_first
    ),
    'unfinished': Step(
        gate=_FINISH, answers=COUNT, is_taken=lambda runs, told: not runs
    ),
}

#: Of a command, in their order.
COMMAND = {
    'unannounced': Step(
        hold=('PUT', f'operations/live/{ACTION}/.*'),
        is_taken=lambda runs, told: not runs,
    ),
    'giving': Step(is_taken=lambda runs, told: runs >= 3),
    'told': Step(is_taken=_first),
    'unread': Step(
        hold=('GET', 'operations/arrivals/[^/]*/[0-9]{5}.1'),
        answers=6,
        is_taken=_first,
    ),
    'unrecorded': Step(
        hold=('PUT', 'operations/states/.*'),
        answers=6,
        is_late=True,
        is_taken=lambda runs, told: runs < AT_ONCE,
    ),
    'failing': Step(
        hold=('GET', 'operations/arrivals/[^/]*/[0-9]{5}.1'),
        answers=AT_ONCE,
        failing=8,
        is_taken=_first,
    ),
    'ending': Step(answers=COUNT, is_taken=lambda runs, told: not runs),
}


class Fleet:
    """Thirty servers with a deployment each, for which the test answers."""

    def __init__(self, cloud: base.Cloud) -> None:
        self.cloud = cloud
        self.database = Database(cloud)
        self._session = cloud.session()
        ids = kills.server_template(COUNT)
        self._servers = base.Stack(self._session, ids)
        self._servers.wait('CREATE_COMPLETE', 300)
        self._names = {
            server: name for name, server in self._servers.outputs.items()
        }
        self._stack = base.Stack(self._session, self._template())
        self._stack.wait('CREATE_COMPLETE', 300)
        self._failing = 0
        # The configs whose servers have answered.
        self._answered: set[str] = set()

    @property
    def answered(self) -> int:
        """How many servers have."""
        return len(self._answered)

    def _template(self) -> base.Template:
        config = {
            'type': 'OS::Heat::SoftwareComponent',
            'properties': {
                'configs': [
                    {'actions': [each], 'tool': 'script', 'config': 'true'}
                    for each in ('CREATE', ACTION)
                ],
            },
        }
        whole = base.group(0)
        del whole['resources']['server']
        whole['resources']['config'] = config
        group = whole['resources']['group']['properties']
        group |= {'servers': self._servers.outputs, 'members': 'single'}
        return whole

    @property
    def expected(self) -> dict[str, str]:
        """What each server prints, by its name."""
        return {name: f'{name} is done' for name in self._names.values()}

    def fails(self, name: str) -> bool:
        return int(name.removeprefix('member')) < self._failing

    def begin(self, step: Step, *words: str) -> subprocess.Popen[str]:
        """Start the command that starts an operation."""
        self._failing = step.failing
        self._answered = set()
        self.database.forget_given()
        return self.command(
            *('run', ACTION, '--stack', self._stack.name, '--yes'),
            *('--max-concurrent', str(AT_ONCE), '--max-errors', str(ERRORS)),
            *words,
        )

    def command(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                *('openstack', 'software', 'deployment', 'operation'),
                *words,
            ],
            env=self.cloud.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def shown(self, *words: str) -> Any:
        """Return what a command shows."""
        printed, error = self.command(*words, '-f', 'json').communicate(
            timeout=120
        )
        assert printed, error
        return json.loads(printed)

    def answer(self, most: int) -> None:
        """Answer for servers that have something new, up to a number."""
        for config in self.database.told():
            if len(self._answered) >= most:
                return
            if config['id'] in self._answered:
                continue
            name = self._names[base.value(config, 'deploy_server_id')]
            body = servers.body(
                deploy_stdout=self.expected[name],
                deploy_status_code=int(self.fails(name)),
            )
            assert (
                base.put(base.value(config, 'deploy_signal_id'), body) == 201
            )
            self._answered.add(config['id'])

    def hold(self, requests: tuple[str, str]) -> None:
        """Let the object store hold requests."""
        method, end = requests
        rule = {'method': method, 'path': f'.*/{end}', 'delay': _HOLD}
        self.cloud.set_faults([rule])

    @property
    def _container(self) -> str:
        return f'/heat-plugins-operations-{self._session.project_id}'

    def state(self, operation_id: str) -> str:
        """Return the state of an operation, by its head."""
        name = f'{self._container}/operations/heads/{operation_id}'
        return str(self._session.get('object-store', name).json()['state'])

    def objects(self, operation_id: str) -> list[str]:
        """Return the objects of an operation."""
        listed = self._session.get('object-store', self._container)
        names = listed.body.decode().split()
        return [each for each in names if operation_id in each]

    def leftovers(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        left = base.Leftovers.of(self.cloud)
        return left.deployments, left.configs


@dataclasses.dataclass(frozen=True, kw_only=True)
class Killed:
    """A kill that was recovered from, and the seconds from it to the end."""

    who: str
    step: str
    seconds: float

    def __str__(self) -> str:
        return f'{self.who} {self.step}: {self.seconds:.0f} s'


def kill(fleet: Fleet, who: str, name: str) -> Killed:
    """Run an operation, kill who advances it at a step; hold its promises."""
    step = (ENGINE if who == 'engine' else COMMAND)[name]
    before = fleet.leftovers()
    words = () if who == 'engine' else ('--wait',)
    if not step.is_late:
        _arm(fleet, step)
    command = fleet.begin(step, *words)
    operation_id = base.until(fleet.database.operation, 90, pause=0.2)
    try:
        _reach(fleet, step)
        command.kill()
        if who == 'engine':
            fleet.cloud.crash('heat')
        killed_at = time.monotonic()
    finally:
        fleet.database.disarm()
        fleet.cloud.set_faults([])
    command.communicate()
    if who == 'engine':
        fleet.cloud.start('heat')
        _until_ended(fleet, operation_id)
    else:
        next_one = fleet.command('wait', operation_id)
        _until_ended(fleet, operation_id)
        next_one.communicate(timeout=60)
    seconds = time.monotonic() - killed_at
    check(fleet, step, operation_id)
    deleted = fleet.command('delete', operation_id)
    assert deleted.wait(60) == 0, deleted.communicate()
    base.until(lambda: fleet.leftovers() == before, 30)
    base.until(lambda: not fleet.objects(operation_id), 30)
    return Killed(who=who, step=name, seconds=seconds)


def _arm(fleet: Fleet, step: Step) -> None:
    fleet.database.arm(step.gate)
    if step.hold:
        fleet.hold(step.hold)


def _reach(fleet: Fleet, step: Step) -> None:
    """Wait until who advances the operation stands at a step."""
    database = fleet.database
    if step.is_late or step.answers:
        base.until(lambda: len(database.told()) == AT_ONCE, 90, pause=0.2)
    if step.is_late:
        _arm(fleet, step)

    def is_taken() -> bool:
        fleet.answer(step.answers)
        return (
            fleet.answered >= step.answers
            and step.is_taken(len(database.runs()), len(database.told()))
            and (not step.gate or database.is_held())
        )

    base.until(is_taken, 120, pause=0.1)
    if step.hold:
        time.sleep(_STAND)
    assert is_taken(), 'the step is past'


def _until_ended(fleet: Fleet, operation_id: str) -> None:
    """Answer for all servers until an operation has ended."""

    def ended() -> bool:
        fleet.answer(COUNT)
        state = fleet.state(operation_id)
        return state in ('complete', 'failed', 'cancelled')

    base.until(ended, kills.PATIENCE)
    # The end is recorded before what is left goes.
    base.until(lambda: not fleet.database.runs(), 60)


def check(fleet: Fleet, step: Step, operation_id: str) -> None:
    """Hold what an operation promises, by its records and by Heat's."""
    shown = fleet.shown('show', operation_id, '--targets')
    assert len(shown) == COUNT
    states = collections.Counter(each['state'] for each in shown)
    started = {each['resource'] for each in shown if each['started_at']}
    given = fleet.database.given(ACTION)
    often = {k: v for k, v in given.items() if len(v) != 1}
    assert not often, f'given more than once: {often}'
    assert len(given) == len(started) == fleet.answered
    assert fleet.database.most_at_once() <= AT_ONCE
    assert {each['attempt'] for each in shown if each['started_at']} == {1}
    state = fleet.state(operation_id)
    if step.failing:
        assert state == 'failed', states
        assert ERRORS < states['failed'] <= ERRORS + AT_ONCE, states
    else:
        assert state == 'complete', state
        assert states == {'complete': COUNT}, states
    printed = {
        _member(each): each['outputs']['deploy_stdout']
        for each in fleet.shown('output', operation_id)
        if each['outputs']
    }
    assert len(printed) == len(started)
    assert printed.items() <= fleet.expected.items()


def _member(shown: Mapping[str, Any]) -> str:
    return str(shown['resource']).rpartition('.')[2]


def run(who: str, names: Sequence[str], name: str) -> list[str]:
    """Kill at steps, in a cloud of its own; return what is wrong."""
    cloud = base.Cloud(f'{name}-{who}')
    cloud.down(purge=True)
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        file.write(kills.CONF if who == 'engine' else ALONE)
        file.flush()
        cloud.up(plugin=base.ROOT, conf=[file.name])
        wrong = list(_wrong(Fleet(cloud), who, names))
        cloud.down(purge=not wrong)
    return wrong


def _wrong(fleet: Fleet, who: str, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        try:
            killed = kill(fleet, who, name)
            print(f'{time.strftime("%X")} {killed}', flush=True)
        except Exception:
            fleet.cloud.revive()
            wrong = f'{who} {name}: {traceback.format_exc(limit=-3)}'
            print(wrong, flush=True)
            yield wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--engine', nargs='*', default=list(ENGINE))
    parser.add_argument('--command', nargs='*', default=list(COMMAND))
    parser.add_argument('--name', default='opkills', help='of the clouds')
    options = parser.parse_args()
    with futures.ProcessPoolExecutor() as pool:
        pending = [
            pool.submit(run, who, names, options.name)
            for who, names in (
                ('engine', options.engine),
                ('command', options.command),
            )
            if names
        ]
        wrong = [each for future in pending for each in future.result()]
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
