# SPDX-License-Identifier: Apache-2.0
"""Kill the engine at each step of a delivery, and hold that it recovers.

All steps of a single deployment and of a group of fifty, for CREATE, UPDATE
and DELETE. Each server must have run each action once, and nothing is left.

A step is hit exactly: a trigger in Heat's database keeps the statement that
would take the next step from ending. So that the engine cannot have taken it,
it is killed within that statement, and the database rolls that back. Another
trigger writes down whatever servers are given. A step fails if no engine
executes its statement, or if the database shows that the engine was past it.
"""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import functools
import json
import pathlib
import sqlite3
import tempfile
import time
import traceback
from typing import Any

from tests.functional import base
from tests.functional import servers

#: A new engine tells the one before dead after seconds.
CONF = """\
[DEFAULT]
periodic_interval = 5

[heat_plugins]
rescue_interval = 5
"""

ACTIONS = ('CREATE', 'UPDATE', 'DELETE')

#: Seconds that an action may take from the kill to its end.
PATIENCE = 240

#: The servers of a group.
MANY = 50

#: Whether a row is of a run.
OF_RUN = "status_reason LIKE 'heat-plugins run %'"

# What SQLite computes for longer than any test takes, and what writes down
# which configs servers are given, and how many have a run at the same time.
_MADE = f"""\
CREATE VIEW IF NOT EXISTS kills_forever AS
WITH RECURSIVE count(n) AS (
    SELECT 1 UNION ALL SELECT n + 1 FROM count LIMIT 1000000000000
)
SELECT count(*) FROM count;
CREATE TABLE IF NOT EXISTS kills_given (server TEXT, metadata TEXT);
CREATE TRIGGER IF NOT EXISTS kills_note
AFTER UPDATE OF rsrc_metadata ON resource
WHEN NEW.rsrc_metadata IS NOT OLD.rsrc_metadata BEGIN
    INSERT INTO kills_given VALUES (NEW.nova_instance, NEW.rsrc_metadata);
END;
CREATE TABLE IF NOT EXISTS kills_most (number INTEGER);
CREATE TRIGGER IF NOT EXISTS kills_count
AFTER INSERT ON software_deployment WHEN NEW.{OF_RUN} BEGIN
    INSERT INTO kills_most
    SELECT count(*) FROM software_deployment WHERE {OF_RUN};
END;
"""

# The key in a resource's data that names the container of its signals; and
# whether a resource owns one.
_CONTAINER = 'heat_plugins_signal_container'
_OWNS = (
    '(SELECT 1 FROM resource_data WHERE resource_id = resource.id'
    f" AND key = '{_CONTAINER}')"
)

_OURS = "NEW.name IN ('deployment', 'group')"
_RUNNING = (
    "EXISTS (SELECT 1 FROM software_deployment WHERE status = 'IN_PROGRESS')"
)

# The statements by which an engine takes a step, of which none may end.
_NAME = (
    'BEFORE UPDATE OF nova_instance ON resource'
    f' WHEN NEW.nova_instance IS NOT OLD.nova_instance AND {_OURS}',
)
# The last of their transaction: for a new deployment, and for one that was
# given something before.
_WRITE = (
    'BEFORE INSERT ON software_deployment',
    f'BEFORE DELETE ON software_config WHEN {_RUNNING}',
)
_PUSH = (
    'BEFORE UPDATE OF rsrc_metadata ON resource'
    " WHEN NEW.rsrc_metadata LIKE '%deploy_action%'",
)
_SETTLE = (
    'BEFORE UPDATE OF status ON software_deployment'
    " WHEN NEW.status = 'COMPLETE'",
)
_TAKE_BACK = (
    'BEFORE DELETE ON software_deployment',
    'BEFORE UPDATE OF server_id ON software_deployment'
    ' WHEN NEW.server_id <> OLD.server_id',
)
#: What takes from servers' metadata the only config that they have.
TELL = (
    'BEFORE UPDATE OF rsrc_metadata ON resource'
    " WHEN OLD.rsrc_metadata LIKE '%deploy_action%'"
    " AND NEW.rsrc_metadata NOT LIKE '%deploy_action%'",
)
_ERASE = (f'BEFORE DELETE ON software_config WHEN NOT {_RUNNING}',)
_SWEEP = (f"BEFORE DELETE ON resource_data WHEN OLD.key = '{_CONTAINER}'",)
# Heat stores a stack that is complete once more, as it purges that.
_ENDS = "NEW.status = 'COMPLETE' AND OLD.status <> 'COMPLETE'"
_COMPLETE = (f'BEFORE UPDATE OF status ON resource WHEN {_ENDS} AND {_OURS}',)
_SPREAD = (
    'BEFORE UPDATE ON sync_point WHEN EXISTS ('
    'SELECT 1 FROM resource JOIN stack ON stack.id = resource.stack_id'
    ' WHERE stack.id = NEW.stack_id AND resource.action = stack.action'
    " AND resource.status = 'COMPLETE'"
    " AND resource.name IN ('deployment', 'group'))",
)
_END = (f'BEFORE UPDATE OF status ON stack WHEN {_ENDS}',)


#: A deployment in Heat's database.
Row = collections.namedtuple('Row', 'server_id config_id action status reason')


class Database:
    """Heat's database, and what keeps an engine from changing it."""

    def __init__(self, cloud: base.Cloud) -> None:
        self._file = cloud.path / 'data/heat.sqlite'
        self._database = sqlite3.connect(self._file, isolation_level=None)
        self._database.execute('PRAGMA busy_timeout = 60000')
        self._database.executescript(_MADE)
        self._gates = 0

    def arm(self, statements: Sequence[str]) -> None:
        """Keep statements from ending."""
        for statement in statements:
            self._database.execute(
                f'CREATE TRIGGER kills_gate{self._gates} {statement}'
                ' BEGIN SELECT * FROM kills_forever; END'
            )
            self._gates += 1

    def disarm(self) -> None:
        """Let all statements end again."""
        while self._gates:
            self._gates -= 1
            self._database.execute(f'DROP TRIGGER kills_gate{self._gates}')

    def is_held(self) -> bool:
        """Say whether a statement that must not end is being executed.

        It keeps all others from writing, and for a second nothing is written.
        """
        with contextlib.closing(
            sqlite3.connect(self._file, timeout=1, isolation_level=None)
        ) as database:
            before = database.execute('PRAGMA data_version').fetchone()
            try:
                database.execute('BEGIN IMMEDIATE')
            except sqlite3.OperationalError:
                after = database.execute('PRAGMA data_version').fetchone()
                return bool(before == after)
            database.execute('ROLLBACK')
        return False

    def rows(self) -> list[Row]:
        """Read all deployments."""
        found = self.select(
            'SELECT server_id, config_id, action, status,'
            " COALESCE(status_reason, '') FROM software_deployment"
        )
        return [Row(*each) for each in found]

    def resource(self, name: str, what: str) -> str:
        """Return something of a resource; '' if it is gone."""
        rows = self.select(
            f'SELECT {what} FROM resource WHERE name = ?'
            ' ORDER BY id DESC LIMIT 1',
            name,
        )
        return str(rows[0][0] or '') if rows else ''

    def state(self, name: str) -> str:
        """Return the state of a resource."""
        return self.resource(name, "action || '_' || status")

    def stack(self, stack_id: str) -> tuple[str, str]:
        """Return the state of a stack, and the reason."""
        ((action, status, reason),) = self.select(
            'SELECT action, status, status_reason FROM stack WHERE id = ?',
            stack_id,
        )
        return f'{action}_{status}', reason

    def metadata(self) -> dict[str, list[base.Template]]:
        """Return the configs that servers have, by server."""
        return {
            server: _configs(metadata)
            for server, metadata in self.select(
                'SELECT nova_instance, rsrc_metadata FROM resource'
                ' WHERE nova_instance IS NOT NULL'
                " AND rsrc_metadata LIKE '%deployments%'"
            )
        }

    def given(self, action: str) -> dict[str, set[str]]:
        """Return the configs of an action that servers had, by server."""
        given = collections.defaultdict(set)
        for server, metadata in self.select('SELECT * FROM kills_given'):
            for config in _configs(metadata):
                if base.value(config, 'deploy_action') == action:
                    given[server].add(config['id'])
        return dict(given)

    def forget_given(self) -> None:
        """Forget what servers had."""
        self._database.executescript(
            'DELETE FROM kills_given; DELETE FROM kills_most'
        )

    def select(self, query: str, *values: str) -> list[Any]:
        return self._database.execute(query, values).fetchall()


def strike(
    cloud: base.Cloud,
    database: Database,
    gate: Sequence[str],
    begin: Callable[[], None],
    is_taken: Callable[[], bool],
    stand: float = 0,
) -> float:
    """Begin something, and kill the engine at a step; return when.

    :param gate: the statements that take the next step.
    :param is_taken: whether the engine has come so far; called repeatedly.
    :param stand: the seconds for which it stands there.
    """
    database.arm(gate)
    try:
        begin()
        base.until(
            lambda: is_taken() and (not gate or database.is_held()),
            120,
            pause=0.2,
        )
        time.sleep(stand)
    finally:
        # What is held would keep the gates where they are.
        cloud.crash('heat')
        killed_at = time.monotonic()
        database.disarm()
    assert is_taken(), 'the step is past'
    return killed_at


def attempts(
    name: str,
    conf: str,
    begin: Callable[[base.Cloud], Callable[[str], Iterator[str]]],
    steps: Sequence[str],
    chosen: Sequence[str],
) -> int:
    """Kill at steps, in a cloud of its own; return how many went wrong.

    :param begin: returns what yields what to say of the kills of a step.
    :param chosen: some of the steps; none for all of them.
    """
    cloud, wrong = base.Cloud(f'kills-{name}'), 0
    cloud.down(purge=True)
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        file.write(conf)
        file.flush()
        cloud.up(plugin=base.ROOT, conf=[file.name])
        kills = begin(cloud)
        for step in [each for each in steps if each in (chosen or steps)]:
            try:
                for said in kills(step):
                    print(f'{time.strftime("%X")} {name} {said}', flush=True)
            except Exception:
                wrong += 1
                cloud.revive()
                traced = traceback.format_exc(limit=-8)
                print(f'{name} {step}: {traced}', flush=True)
        cloud.down(purge=not wrong)
    return wrong


def _configs(metadata: str) -> list[base.Template]:
    return list((json.loads(metadata) or {}).get('deployments', []))


class Subject:
    """A stack whose deployment or group is delivered, and its servers.

    :ivar name: of the resource.
    :ivar count: how many servers there are.
    """

    name: str
    count: int

    def __init__(self, cloud: base.Cloud, database: Database) -> None:
        self.cloud = cloud
        self.database = database
        self.stack: base.Stack | None = None

    def template(self) -> base.Template:
        raise NotImplementedError

    def begin(self, action: str, step: str) -> None:
        """Have the stack do something, as its servers must for a step."""
        if action == 'CREATE':
            self.stack = base.Stack(self.cloud.session(), self.template())
        elif self.stack and action == 'UPDATE':
            self.stack.update(self.template(), who='moon')
        elif self.stack:
            self.stack.delete()

    def go_on(self) -> None:
        """Let servers do what they must, once; called again and again."""

    def hurry(self, step: str) -> None:
        """Bring servers to a step."""

    def check(self, action: str) -> None:
        """Hold that each server has run an action just once."""
        given = self.database.given(action)
        often = {k: v for k, v in given.items() if len(v) != 1}
        assert not often, f'{action} was given more than once: {often}'
        assert len(given) == self.count, (action, len(given))
        rows = [(row.action, row.status) for row in self.database.rows()]
        wanted = 0 if action == 'DELETE' else self.count
        assert rows == [(action, 'COMPLETE')] * wanted, rows

    def leave(self) -> None:
        """Leave the cloud as it was."""
        self.cloud.revive()
        if self.stack:
            self.stack.delete()
            self.end('DELETE')
        self.stack = None

    def end(self, action: str, seconds: float = PATIENCE) -> None:
        """Wait until the stack has done it."""
        assert self.stack is not None
        deadline = time.monotonic() + seconds
        while True:
            state, reason = self.database.stack(self.stack.id)
            if state == f'{action}_COMPLETE':
                return
            assert not state.endswith('FAILED'), f'{state}: {reason}'
            assert time.monotonic() < deadline, f'{state}: {reason}'
            self.go_on()
            time.sleep(0.2)


class Single(Subject):
    """A deployment on a server with a real agent."""

    name = 'deployment'
    count = 1

    # The steps at which the agent must not have polled.
    _UNPOLLED = ('unnamed', 'unwritten', 'unpushed', 'pushed')

    def __init__(self, cloud: base.Cloud, database: Database) -> None:
        super().__init__(cloud, database)
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix='kills'))
        self._busy = self._folder / 'busy'
        self._agent: base.minicloud_client.Agent | None = None
        self._is_on = False

    def template(self) -> base.Template:
        script = '\n'.join(
            [
                '#!/bin/sh',
                f'echo "$deploy_action" >> {self._folder}/runs',
                f'while [ -e {self._busy} ]; do sleep 0.1; done',
                'printf hello > "$heat_outputs_path.greeting"',
            ]
        )
        return base.software(script=script, actions=list(ACTIONS))

    def begin(self, action: str, step: str) -> None:
        if step == 'running':
            self._busy.touch()
        if step == 'pushed':
            self._switch(on=False)
        super().begin(action, step)
        is_early = step in self._UNPOLLED and action == 'CREATE'
        if step != 'pushed' and not is_early:
            self._switch(on=True)

    def _switch(self, *, on: bool) -> None:
        if self._agent is None and self.stack:
            self._agent = servers.agent(self.cloud, self.stack)
        if self._agent and on != self._is_on:
            (self._agent.start if on else self._agent.stop)()
            self._is_on = on

    def go_on(self) -> None:
        self._busy.unlink(missing_ok=True)
        self._switch(on=True)

    def runs(self, action: str) -> int:
        """Return how often the server has run an action."""
        with contextlib.suppress(FileNotFoundError):
            return (self._folder / 'runs').read_text().split().count(action)
        return 0

    def check(self, action: str) -> None:
        super().check(action)
        assert self.runs(action) == 1, (
            f'{action} ran {self.runs(action)} times'
        )

    def leave(self) -> None:
        super().leave()
        self._switch(on=False)
        self._agent = None
        (self._folder / 'runs').unlink(missing_ok=True)


class Group(Subject):
    """A group on fifty servers, for which the test answers."""

    name = 'group'
    count = MANY

    def __init__(
        self, cloud: base.Cloud, database: Database, ids: Mapping[str, str]
    ) -> None:
        super().__init__(cloud, database)
        self._ids = ids
        # The configs of which servers have sent what, by the input with the
        # URL for that; and how many results of this action.
        self._sent: dict[str, set[str]] = collections.defaultdict(set)
        self._results = 0

    def template(self) -> base.Template:
        whole = base.group(
            0, signal_transport='TEMP_URL_POLL', actions=list(ACTIONS)
        )
        del whole['resources']['server']
        del whole['resources']['config']['depends_on']
        group = whole['resources']['group']['properties']
        group['servers'] = dict(self._ids)
        group['members'] = 'single'
        return whole

    def begin(self, action: str, step: str) -> None:
        self._results = 0
        super().begin(action, step)

    def hurry(self, step: str) -> None:
        if step == 'running':
            self._put('deploy_progress_url', b'{}', MANY)
        elif step == 'half':
            self._answer(MANY // 2)
        elif step not in ('unnamed', 'unwritten', 'unpushed', 'pushed'):
            self._answer(MANY)

    def go_on(self) -> None:
        self._answer(MANY)

    def _answer(self, most: int) -> None:
        """Answer for servers that have something new."""
        body = base.body(greeting='hello')
        self._results += self._put(
            'deploy_signal_id', body, most - self._results
        )

    def _put(self, name: str, body: bytes, most: int) -> int:
        sent = self._sent[name]
        configs = [
            config
            for given in self.database.metadata().values()
            for config in given
            if config['id'] not in sent
        ][: max(0, most)]
        for config in configs:
            assert base.put(base.value(config, name), body) == 201
            sent.add(config['id'])
        return len(configs)

    def check(self, action: str) -> None:
        super().check(action)
        if action == 'DELETE':
            given = self.database.metadata()
            assert not any(given[each] for each in self._ids.values())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """A step of a delivery before which, or after which, the engine dies.

    :ivar gate: the statements that take the next step.
    :ivar is_taken: whether the engine has come so far.
    :ivar actions: those that have it.
    :ivar names: of the resources that have it.
    """

    gate: Sequence[str] = ()
    is_taken: Callable[[Subject, str], bool]
    actions: Sequence[str] = ACTIONS
    names: Sequence[str] = ('deployment', 'group')


def _begun(subject: Subject, action: str) -> bool:
    return subject.database.state(subject.name) == f'{action}_IN_PROGRESS'


def _unwritten(subject: Subject, action: str) -> bool:
    return _begun(subject, action) and not any(
        row.action == action for row in subject.database.rows()
    )


def _rows(subject: Subject, action: str, status: str) -> list[Row]:
    """Return the rows of an action once there are all; else none."""
    found = [
        row
        for row in subject.database.rows()
        if (row.action, row.status) == (action, status)
    ]
    return found if len(found) == subject.count else []


def _pushed(subject: Subject, action: str) -> bool:
    metadata = subject.database.metadata()
    rows = _rows(subject, action, 'IN_PROGRESS')
    return bool(rows) and all(
        row.config_id
        in [each['id'] for each in metadata.get(row.server_id, [])]
        for row in rows
    )


def _running(subject: Subject, action: str) -> bool:
    if isinstance(subject, Single):
        return subject.runs(action) == 1
    rows = _rows(subject, action, 'IN_PROGRESS')
    return bool(rows) and all(
        row.reason.endswith('[hp:started]') for row in rows
    )


def _half(subject: Subject, action: str) -> bool:
    now = (action, 'COMPLETE')
    ended = [row for row in subject.database.rows() if row[2:4] == now]
    return len(ended) == subject.count // 2


def _signalled(subject: Subject, action: str) -> bool:
    rows = _rows(subject, action, 'IN_PROGRESS')
    puts = subject.cloud.swift_requests(method='PUT', path='.*/signals/.*')
    paths = [each['path'] for each in puts if each['status'] == 201]
    arrived = {path.rpartition('/')[2] for path in paths}
    return bool(rows) and {row.config_id for row in rows} <= arrived


def _settled(subject: Subject, action: str) -> bool:
    rows = _rows(subject, action, 'COMPLETE')
    return bool(rows) and _begun(subject, action)


def _taken_back(subject: Subject, action: str) -> bool:
    """Say whether no row names a server, and all servers have configs."""
    given = subject.database.metadata()
    rows = subject.database.rows()
    return (
        _begun(subject, action)
        and len(rows) == subject.count
        and not any(row.server_id in given for row in rows)
        and sum(map(bool, given.values())) == subject.count
    )


def _told(subject: Subject, action: str) -> bool:
    """Say whether no server has a config, and the rows are there."""
    return (
        _begun(subject, action)
        and len(subject.database.rows()) == subject.count
        and not any(subject.database.metadata().values())
    )


def _rowless(subject: Subject, action: str, *, has_container: bool) -> bool:
    """Say whether all rows are gone, and the container is or is not."""
    owns = bool(subject.database.resource(subject.name, _OWNS))
    return (
        _begun(subject, action)
        and not subject.database.rows()
        and owns == has_container
    )


def _complete(subject: Subject, action: str) -> bool:
    """Say whether the resource has ended, and its stack has not."""
    assert subject.stack is not None
    return (
        subject.database.state(subject.name) == f'{action}_COMPLETE'
        and subject.database.stack(subject.stack.id)[0]
        == f'{action}_IN_PROGRESS'
    )


#: In their order.
STEPS = {
    'unnamed': Step(
        gate=_NAME,
        is_taken=lambda subject, action: (
            _begun(subject, action)
            and not subject.database.resource(subject.name, 'nova_instance')
        ),
        actions=['CREATE'],
    ),
    'unwritten': Step(gate=_WRITE, is_taken=_unwritten),
    'unpushed': Step(
        gate=_PUSH,
        is_taken=lambda subject, action: bool(
            _rows(subject, action, 'IN_PROGRESS')
        ),
    ),
    'pushed': Step(is_taken=_pushed),
    'running': Step(is_taken=_running),
    'half': Step(is_taken=_half, names=['group']),
    'signalled': Step(gate=_SETTLE, is_taken=_signalled),
    'settled': Step(
        gate=_COMPLETE, is_taken=_settled, actions=['CREATE', 'UPDATE']
    ),
    'untaken': Step(gate=_TAKE_BACK, is_taken=_settled, actions=['DELETE']),
    'untold': Step(gate=TELL, is_taken=_taken_back, actions=['DELETE']),
    'unerased': Step(gate=_ERASE, is_taken=_told, actions=['DELETE']),
    'unswept': Step(
        gate=_SWEEP,
        is_taken=functools.partial(_rowless, has_container=True),
        actions=['DELETE'],
    ),
    'swept': Step(
        gate=_COMPLETE,
        is_taken=functools.partial(_rowless, has_container=False),
        actions=['DELETE'],
    ),
    'unspread': Step(gate=_SPREAD, is_taken=_complete),
    'complete': Step(gate=_END, is_taken=_complete),
}


def kill(subject: Subject, action: str, name: str) -> float:
    """Begin an action, and kill the engine at a step.

    Returns the seconds from the kill to the end of the action.
    """
    step = STEPS[name]

    def is_taken() -> bool:
        subject.hurry(name)
        return step.is_taken(subject, action)

    killed_at = strike(
        subject.cloud,
        subject.database,
        step.gate,
        lambda: subject.begin(action, name),
        is_taken,
    )
    subject.cloud.start('heat')
    subject.end(action)
    return time.monotonic() - killed_at


def live(subject: Subject, name: str) -> Iterator[str]:
    """Take a stack through its life, with a kill at a step of each action.

    Yields what to say of each kill that was recovered from.
    """
    step = STEPS[name]
    if subject.name not in step.names:
        return
    subject.database.forget_given()
    before = base.Leftovers.of(subject.cloud)
    try:
        for action in ACTIONS:
            if action in step.actions:
                seconds = kill(subject, action, name)
                yield f'{action} {name}: {seconds:.0f} s'
            else:
                subject.begin(action, '')
                subject.end(action)
            subject.check(action)
        left = 'SELECT id FROM software_deployment UNION ALL SELECT id FROM '
        assert not subject.database.select(f'{left}software_config')
        before.hold(subject.cloud)
    finally:
        subject.leave()


def server_template(count: int) -> base.Template:
    """Return a template of servers that are its outputs, too."""
    names = [f'member{number}' for number in range(count)]
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            'first': {'type': 'OS::Heat::Value', 'properties': {'value': ''}},
            **{
                name: {
                    'type': 'OS::Heat::DeployedServer',
                    'depends_on': 'first',
                }
                for name in names
            },
        },
        'outputs': {name: {'value': {'get_resource': name}} for name in names},
    }


def single(cloud: base.Cloud) -> Callable[[str], Iterator[str]]:
    """Return what takes a deployment on one server through its life."""
    return functools.partial(live, Single(cloud, Database(cloud)))


def group(cloud: base.Cloud) -> Callable[[str], Iterator[str]]:
    """Return what takes a group of many servers through its life."""
    stack = base.Stack(cloud.session(), server_template(MANY))
    stack.wait('CREATE_COMPLETE', 300)
    return functools.partial(
        live, Group(cloud, Database(cloud), stack.outputs)
    )
