# SPDX-License-Identifier: Apache-2.0
"""Kill the engine that delivers, or leads a run, at each step.

``make kills`` takes the steps of `kills`, and starts a run on twelve servers
for each of its own, by a command or by a schedule, kills the engine and starts
it again. The run, Heat's database and what is left then say whether each
server has had the action once, each result counts, the limits have held, and
the webhook was told. It prints the seconds from each kill to the end, and ends
with 0 if all is as it must be.

A step is hit as in `kills`, or by a request that the object store or the
webhook holds.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
import dataclasses
import functools
import http.server
import json
import sys
import threading
import time
from typing import Any

from heat_plugins.clients import runs
from tests.functional import base
from tests.functional import kills
from tests.functional import running

#: The servers, how many may run at a time, how many may fail, and how many
#: fail where some do.
COUNT, AT_ONCE, ERRORS, FAILING = 12, 5, 2, 4

#: How many have answered where some have.
ANSWERS = 3

_ACTION = 'BACKUP'

_LIMITS = {'max_concurrent': AT_ONCE, 'max_errors': ERRORS}

_CONF = """
notify_hosts = http://127.0.0.1,http://127.0.0.1:{port}
"""

# Seconds for which the object store holds a request, and for which an engine
# must have waited at it.
_HOLD, _STAND = 30, 3

# The statements by which an engine takes a step, of which none may end.
_TICK = ('BEFORE INSERT ON heat_plugins_run WHEN NEW.schedule_id IS NOT NULL',)
_GIVE = (f'BEFORE INSERT ON software_deployment WHEN NEW.{kills.OF_RUN}',)
_TELL = (
    'BEFORE UPDATE OF rsrc_metadata ON resource'
    f" WHEN NEW.rsrc_metadata LIKE '%-{_ACTION}%'",
)
_SETTLE = (
    'BEFORE UPDATE OF state ON heat_plugins_run_target'
    " WHEN NEW.state IN ('complete', 'failed')",
)
_FINISH = (
    'BEFORE UPDATE OF ended_at ON heat_plugins_run'
    ' WHEN NEW.ended_at IS NOT NULL AND OLD.ended_at IS NULL',
)


class Database(kills.Database):
    """Heat's database, as runs change it."""

    def given_now(self) -> int:
        """Return how many servers have something of a run, by its rows."""
        return sum(
            row.reason.startswith('heat-plugins run ') for row in self.rows()
        )

    def told(self) -> list[base.Template]:
        """Return the configs of runs that servers see."""
        return [
            config
            for given in self.metadata().values()
            for config in given
            if base.value(config, 'deploy_action') == _ACTION
        ]

    def runs(self) -> int:
        """Return how many runs go on."""
        going = 'SELECT id FROM heat_plugins_run WHERE ended_at IS NULL'
        return len(self.select(going))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """A step of a run at which the engine that leads it dies.

    :ivar gate: the statements that take the next step.
    :ivar hold: the requests to the object store that do.
    :ivar answers: how many servers answer before the kill, at most.
    :ivar is_taken: says whether the engine has come so far.
    :ivar failing: how many servers fail.
    :ivar by_schedule: whether a schedule starts the run.
    """

    gate: Sequence[str] = ()
    hold: dict[str, str] | None = None
    answers: int = 0
    is_taken: Callable[['Fleet'], bool]
    failing: int = 0
    by_schedule: bool = False


def _first(fleet: 'Fleet') -> bool:
    return len(fleet.database.told()) == AT_ONCE


def _nothing(fleet: 'Fleet') -> bool:
    return fleet.database.given_now() == 0


def _settled(fleet: 'Fleet') -> bool:
    return len(fleet.database.given(_ACTION)) >= AT_ONCE + ANSWERS


#: In their order.
STEPS = {
    'tick uncommitted': Step(
        gate=_TICK,
        is_taken=lambda fleet: not fleet.database.runs(),
        by_schedule=True,
    ),
    'tick committed': Step(
        gate=_GIVE,
        is_taken=lambda fleet: fleet.database.runs() == 1,
        by_schedule=True,
    ),
    'uncommitted': Step(gate=_GIVE, is_taken=_nothing),
    'committed': Step(
        gate=_TELL, is_taken=lambda fleet: fleet.database.given_now() > 0
    ),
    'told': Step(is_taken=_first),
    'unsettled': Step(gate=_SETTLE, answers=ANSWERS, is_taken=_first),
    'undiscarded': Step(
        hold={'method': 'DELETE', 'path': '.*/signals/runs/.*'},
        answers=ANSWERS,
        is_taken=lambda fleet: len(fleet.database.given(_ACTION)) >= AT_ONCE,
    ),
    'discarded': Step(answers=ANSWERS, is_taken=_settled),
    'failing': Step(
        gate=_SETTLE, answers=AT_ONCE, failing=FAILING, is_taken=_first
    ),
    'unfinished': Step(
        gate=_FINISH, answers=COUNT, is_taken=lambda fleet: True
    ),
    'notice': Step(
        answers=COUNT,
        failing=FAILING,
        is_taken=lambda fleet: bool(fleet.hook.notices),
    ),
}


class Hook(http.server.ThreadingHTTPServer):
    """A webhook; its first request has no answer, as heat-engine dies.

    :ivar notices: what it was told.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(('127.0.0.1', 0), _Handler)
        self.notices: list[dict[str, Any]] = []
        self.answers = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def order(self) -> dict[str, str]:
        url = f'http://127.0.0.1:{self.server_port}/hook'
        return {'url': url, 'secret': 'a secret of this test'}


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.server.notices.append(json.loads(body))
        self.server.answers.wait(_HOLD)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Fleet:
    """Servers with a deployment each, for which the test answers."""

    def __init__(self, cloud: base.Cloud, hook: Hook) -> None:
        self.cloud, self.hook = cloud, hook
        self.database = Database(cloud)
        self.user = running.client(cloud)
        stack = base.Stack(cloud.session(), kills.server_template(COUNT))
        stack.wait('CREATE_COMPLETE', 300)
        self._names = {id: name for name, id in stack.outputs.items()}
        self._stack = base.Stack(
            cloud.session(), self._template(stack.outputs), name='fleet'
        )
        self._stack.wait('CREATE_COMPLETE', 300)
        self._failing = 0
        # The configs whose servers have answered.
        self._answered: set[str] = set()

    @property
    def answered(self) -> int:
        """How many servers have."""
        return len(self._answered)

    def _template(self, servers: base.Template) -> base.Template:
        whole = base.group(0, servers=servers, members='single')
        resources = whole['resources']
        del resources['server']
        scripts = {'CREATE': 'true', _ACTION: 'true'}
        resources['config'] = running.component(scripts, {})
        del resources['group']['properties']['input_values']
        resources['schedule'] = {
            'type': 'OS::Heat::SoftwareSchedule',
            'properties': {
                'cron': '0 0 1 1 *',
                'action': _ACTION,
                'targets': [{'get_resource': 'group'}],
                'limits': _LIMITS,
            },
        }
        return whole

    def begin(self, step: Step) -> None:
        """Start a run."""
        self._failing = step.failing
        self._answered = set()
        self.database.forget_given()
        self.hook.notices.clear()
        for run in self.user.list():
            # A step before this one went wrong.
            self.user.delete(run.id)
        if step.by_schedule:
            # What a command would wait for does not come before the kill.
            self._stack.signal('schedule', {'do': 'run'})
            return
        self.user.start(
            _ACTION,
            stacks=['fleet'],
            limits=_LIMITS,
            notify={**self.hook.order(), 'events': ['failure']},
        )

    def answer(self, most: int) -> None:
        """Answer for servers that have something new, up to a number."""
        for config in self.database.told():
            if len(self._answered) >= most:
                return
            if config['id'] in self._answered:
                continue
            name = self._names[base.value(config, 'deploy_server_id')]
            fails = int(name.removeprefix('member')) < self._failing
            body = base.body(
                deploy_stdout=f'{name} is done', deploy_status_code=int(fails)
            )
            url = base.signal_url(config)
            assert base.put(url, body) == 201
            self._answered.add(config['id'])

    def leftovers(self) -> tuple[tuple[str, ...], ...]:
        left = base.Leftovers.of(self.cloud)
        return left.deployments, left.configs

    def run(self) -> runs.Run:
        """Return the only run."""
        (run,) = self.user.list()
        return run


def kill(fleet: Fleet, name: str) -> Iterator[str]:
    """Kill the engine at a step of a run, and hold the run's promises.

    Yields what to say of it.
    """
    step, before = STEPS[name], fleet.leftovers()
    fleet.hook.answers.clear()

    def is_taken() -> bool:
        fleet.answer(step.answers)
        enough = min(step.answers, AT_ONCE)
        return fleet.answered >= enough and step.is_taken(fleet)

    rules = [{**step.hold, 'delay': _HOLD}] if step.hold else []
    try:
        with fleet.cloud.faults(rules):
            killed_at = kills.strike(
                fleet.cloud,
                fleet.database,
                step.gate,
                lambda: fleet.begin(step),
                is_taken,
                _STAND if step.hold else 0,
            )
    finally:
        fleet.hook.answers.set()
    fleet.cloud.start('heat')
    run = _end(fleet)
    seconds = time.monotonic() - killed_at
    check(fleet, step, run)
    fleet.user.delete(run.id)
    base.until(lambda: fleet.leftovers() == before, 30)
    yield f'{name}: {seconds:.0f} s'


def _end(fleet: Fleet) -> runs.Run:
    """Answer for all servers until the run has ended; return it."""

    def ended() -> runs.Run | None:
        fleet.answer(COUNT)
        found = list(fleet.user.list())
        return found[0] if found and found[0].ended else None

    base.until(ended, kills.PATIENCE)
    # The end is recorded before what is left goes.
    base.until(lambda: _nothing(fleet), 60)
    return fleet.run()


def check(fleet: Fleet, step: Step, run: runs.Run) -> None:
    """Hold what a run promises, by its rows and by Heat's."""
    targets = list(fleet.user.targets(run.id, outputs=True))
    assert len(targets) == COUNT
    started = [each for each in targets if each.attempt]
    given = fleet.database.given(_ACTION)
    often = {k: v for k, v in given.items() if len(v) != 1}
    assert not often, f'given more than once: {often}'
    assert len(given) == len(started) == fleet.answered
    ((most,),) = fleet.database.select('SELECT max(number) FROM kills_most')
    assert most <= AT_ONCE
    assert {each.attempt for each in started} == {1}
    if step.failing:
        assert run.state == 'failed', run
        assert ERRORS < run.failed <= ERRORS + AT_ONCE, run
    else:
        assert run.state == 'complete', run
        assert run.counts == {'complete': COUNT}, run
    for each in started:
        name = each.resource.rpartition('.')[2]
        printed = (each.outputs or {}).get('deploy_stdout')
        assert printed == f'{name} is done', each
    if step.failing:
        base.until(lambda: fleet.hook.notices, 60)
    # It may come twice, and says so.
    ids = {each['id'] for each in fleet.hook.notices}
    assert len(ids) == bool(step.failing), ids


def run(chosen: Sequence[str]) -> int:
    hook = Hook()
    return kills.attempts(
        'run',
        kills.CONF + _CONF.format(port=hook.server_port),
        lambda cloud: functools.partial(kill, Fleet(cloud, hook)),
        [*STEPS],
        chosen,
    )


#: What is killed, by what it works on.
WHAT = {
    **{
        begin.__name__: functools.partial(
            kills.attempts, begin.__name__, kills.CONF, begin, [*kills.STEPS]
        )
        for begin in (kills.single, kills.group)
    },
    'run': run,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('what', nargs='*', help=', '.join(WHAT))
    known = [*kills.STEPS, *STEPS]
    parser.add_argument('--steps', nargs='*', default=[], choices=known)
    options = parser.parse_args()
    with futures.ProcessPoolExecutor(2) as pool:
        wrong = [
            pool.submit(WHAT[each], options.steps)
            for each in options.what or WHAT
        ]
        return int(any(each.result() for each in wrong))


if __name__ == '__main__':
    sys.exit(main())
