# SPDX-License-Identifier: Apache-2.0
"""What a heat-engine gives to a deployment, in memory.

It behaves like the worst real one: the database fails before or after it has
written, objects vanish once they were deleted, and a row that somebody else
has changed is not settled.
"""

import contextlib
import dataclasses
import json
import time

from heat_plugins import errors
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import delivering
from heat_plugins.deployments import failures
from heat_plugins.deployments import histories
from heat_plugins.deployments import outside
from heat_plugins.deployments import waiters
from heat_plugins.objectstore import keys
from heat_plugins.runs import orchestration
from heat_plugins.signals import signal_names
from heat_plugins.signals import watcher

SERVER = deliveries.Server(
    id='server-id', has_queue=False, refusal=None, find_name=lambda: 'web'
)


class DatabaseError(Exception):
    """The database is away."""


@dataclasses.dataclass(kw_only=True)
class Terms:
    """A template's words; see `deliveries.Terms`."""

    server_id: str = SERVER.id
    actions: tuple[str, ...] = ('CREATE', 'UPDATE', 'DELETE')
    transport: str = 'TEMP_URL_POLL'
    timeout: int | None = None
    delivery_timeout: int | None = None


class Resource:
    """A resource of Heat; see `outside.Resource`."""

    label = 'Deployment'

    def __init__(self):
        self.replaces = None
        self.resource_id = None
        self.kept = {}
        self.told = []

    def take_id(self):
        self.resource_id = self.resource_id or 'deployment-id'

    def keep_id(self):
        if self.resource_id is None:
            raise AssertionError('It has no id that could be kept')

    def tell(self, action, reason):
        self.told.append(f'{action}: {reason}')

    def data(self):
        return dict(self.kept)

    def data_set(self, key, value, redact=False):
        if not isinstance(value, str):
            raise TypeError(value)
        self.kept[key] = value

    def data_delete(self, key):
        self.kept.pop(key, None)


class Rows:
    """Heat's database; see `outside.Rows`.

    :ivar away: for the next deliveries, which fail, whether each is written
        all the same; then it cannot be withdrawn at first, either.
    """

    def __init__(self):
        self.there = {}
        self.configs = {}
        self.away = []
        self._is_stuck = False

    @contextlib.contextmanager
    def guarded(self, *, everything=False):
        try:
            yield
        except DatabaseError as exc:
            raise outside.Unanswered(str(exc)) from None

    def read(self, ids):
        return {each: self.there[each] for each in ids if each in self.there}

    def deliver(self, made):
        is_written = self.away.pop(0) if self.away else None
        if is_written is not False:
            for each in made:
                self._deliver(each)
        self._is_stuck = is_written is True
        if is_written is not None:
            raise DatabaseError('away')

    def _deliver(self, made):
        if made.config_id in self.configs:
            raise AssertionError('A config is made twice')
        draft = made.draft
        self.configs[made.config_id] = config = orchestration.Config(
            id=made.config_id, **vars(draft)
        )
        self.there[made.deployment_id] = deliveries.Row(
            id=made.deployment_id,
            server_id=made.server_id,
            config=config,
            action=made.action,
            status='IN_PROGRESS' if made.is_signalled else 'COMPLETE',
            reason=None,
            outputs={},
            input_values={},
            reading_project=None,
        )

    def settle(self, outcomes):
        return [
            ticket
            for ticket, outcome in outcomes.items()
            if self.change(
                ticket,
                status=outcome.status,
                reason=outcome.reason,
                outputs=outcome.outputs,
            )
        ]

    def begin(self, tickets):
        return [one for one in tickets if self.change(one, reason='begun')]

    def change(self, ticket, **values):
        row = self.there.get(ticket.deployment_id)
        if (
            row is None
            or not row.in_progress
            or row.config.id != ticket.config_id
        ):
            return False
        self.there[row.id] = dataclasses.replace(row, **values)
        return True

    def withdraw(self, ids):
        if self._is_stuck:
            self._is_stuck = False
            raise DatabaseError('away')
        for each in ids:
            self.there.pop(each, None)

    def delete_configs(self, ids):
        used = {row.config.id for row in self.there.values()}
        if used & set(ids):
            raise AssertionError('A server has that config')
        for each in ids:
            self.configs.pop(each, None)
        return {}


class Signals:
    """The object store; see `outside.Signals` and `watcher.Source`."""

    def __init__(self, rows, clock):
        self._rows = rows
        self.objects = {}
        self.changed_keys = set()
        self.is_away = False
        self.stopped = []
        self.watcher = watcher.Watcher(
            self, watcher.Limits(direct=60), clock, sleep=self._sleep
        )

    @staticmethod
    def _sleep(woken, seconds):
        raise AssertionError('Nobody may block in this test')

    def _check(self):
        if self.is_away:
            raise errors.Unavailable('503')

    def names(self, wanted):
        self._check()
        return set(self.objects)

    def rows(self, ids):
        return {
            row.id: watcher.Row(
                config_id=row.config.id,
                in_progress=row.in_progress,
                begun=row.reason == 'begun',
            )
            for row in self._rows.read(ids).values()
        }

    def fetch(self, name, limit):
        self._check()
        if name not in self.objects:
            raise errors.NoObject(name)
        return self.objects[name]

    def request_stop(self, name):
        self.stopped.append(name)

    def discard(self, name):
        self.objects.pop(name, None)

    def key_holds(self, signer):
        return signer.key not in self.changed_keys


class Template:
    """Heat's class; see `outside.Template`."""

    users_project = None
    input_values = None

    def __init__(self, tool='script', transport='TEMP_URL_POLL'):
        self.tool = tool
        self.transport = transport
        self.key = 'first'
        self.missing = []

    def choose(self, config_id):
        if self.missing:
            raise self.missing.pop(0)
        if self.transport != 'TEMP_URL_POLL':
            return deliveries.Signalling(transport=self.transport)
        name = signal_names.signal('deployment-id', config_id)
        return deliveries.Signalling(
            transport=self.transport,
            object_name=name,
            report_name=f'{name}.progress',
            signer=keys.Signer(
                storage_url='http://swift/v1/AUTH_me',
                container='signals',
                kind=keys.ACCOUNT,
                key=self.key,
                digest='sha256',
            ),
            timeout=60,
        )

    def derive(self, action, source, signalling):
        return orchestration.Draft(
            name='derived',
            group=self.tool,
            config='#!/bin/sh',
            inputs=[],
            outputs=source.outputs,
            options={},
        )


class Stack:
    """A stack; see `outside.Stack` and `outside.Loop`."""

    def __init__(self):
        self.cancelled = False

    def is_cancelled(self, since):
        return self.cancelled

    def renew_access(self):
        pass

    def patience(self, *deadlines):
        return 0.0

    def goes_on(self):
        return False


class Cloud:
    """All of it, for one deployment.

    :ivar now: the time in seconds.
    """

    def __init__(self, monkeypatch, **template):
        self.now = 1000.0
        monkeypatch.setattr(time, 'monotonic', lambda: self.now)
        self.resource = Resource()
        self.rows = Rows()
        self.signals = Signals(self.rows, lambda: self.now)
        self.stack = Stack()
        self.template = Template(**template)
        self.engine = outside.Engine(
            rows=self.rows,
            signals=self.signals,
            watcher=self.signals.watcher,
            stack=self.stack,
            loop=self.stack,
            settings=outside.Settings(
                known_hooks={'script', 'puppet'}, body_limit=1000, budget=30
            ),
        )
        self.history = histories.History(self.resource, self.rows)

    def waiter(self, action='CREATE', **terms):
        """Return what delivers an action and waits."""
        self.resource.take_id()
        return waiters.Waiter(
            deliveries.Order(
                action=action,
                source=deliveries.Source(
                    group=self.template.tool,
                    config='#!/bin/sh',
                    outputs=[{'name': 'answer'}],
                    heats=None,
                ),
                server=SERVER,
                terms=Terms(**terms),
            ),
            resource=self.resource,
            history=self.history,
            deliverer=delivering.Deliverer(
                self.resource,
                template=self.template,
                history=self.history,
                rows=self.rows,
            ),
            engine=self.engine,
        )

    @property
    def row(self):
        """What Heat has stored of the deployment."""
        return self.history.row()

    def answer(self, **details):
        """Be the server, which signals what it was given."""
        name = signal_names.signal(self.row.id, self.row.config.id)
        self.signals.objects[name] = json.dumps(details).encode()

    def ends(self, waiter, seconds=10):
        """Let time pass until an action has ended; say whether it has."""
        for _ in range(seconds):
            self.now += 1
            if waiter.check():
                return True
        return False

    def failure(self, waiter, seconds=100):
        """Return why an action fails."""
        try:
            ended = self.ends(waiter, seconds)
        except failures.Error as exc:
            return f'{type(exc).__name__}: {exc}'
        raise AssertionError(f'It has not failed; ended: {ended}')
