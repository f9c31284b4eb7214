# SPDX-License-Identifier: Apache-2.0
"""Runs in Heat's database, their leaders, and their servers; see `leading`.

A test sets up `heat_fixture.Heat`. A server runs what it was told of, each
config once, and only then answers. A leader dies at any call of the store or
of servers, before or after it. A `Trouble` lets servers be slow, answer twice
or never, and listings of the object store lag.
"""

import collections
import contextlib
import dataclasses
import random
import uuid

from heat_plugins import errors
from heat_plugins.deployments import deliveries
from heat_plugins.engine import process
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_fleet
from heat_plugins.runs import deciding
from heat_plugins.runs import ordering
from heat_plugins.runs import run_objects
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs import stepping
from heat_plugins.signals import body
from tests.unit import heat_fixture
from tests.unit.runs import store_contract

PROJECT = 'project'
RUN = '20270115T080000Z-00c0ffee'


class Crash(BaseException):
    """The engine has died."""


class Places(process.Places):
    """Does all in the caller's thread."""

    def run(self, key, name, do, *args):
        try:
            do(*args)
        finally:
            self.leave(key)


class Store(run_rows.RunRows):
    """Runs in an empty database, which fails on request.

    :ivar aborts: how many of the next writing transactions are cut off.
    :ivar silent: how many of the next commits have no answer.
    :ivar losing: before how many of the next steps another one is stored.
    :ivar is_late: whether reading shows nothing that is committed from now on.
    :ivar given: the deliveries whose rows are there, by deployment.
    """

    def __init__(self):
        super().__init__()
        heat_fixture.database().empty()
        self.aborts = self.silent = self.losing = 0
        self.given = {}
        self._shown, self._led = None, {}

    @property
    def is_late(self):
        return self._shown is not None

    @is_late.setter
    def is_late(self, value):
        self._shown = None
        if value:
            heads = self.heads(PROJECT, ordering.Query())
            self._shown = {each.id: self.load(each.id) for each in heads}
        self._led.clear()

    def load(self, run_id, project_id=None):
        if self._shown is None:
            return super().load(run_id, project_id)
        if run_id not in self._shown:
            raise errors.NotFound(run_id)
        return self._shown[run_id]

    def led_by(self, engine_id):
        if self._shown is not None:
            return {
                run_id: each.version
                for run_id, each in self._shown.items()
                if each.engine_id == engine_id and not each.run.ended
            }
        # Leaders ask each second.
        if engine_id not in self._led:
            self._led[engine_id] = super().led_by(engine_id)
        return self._led[engine_id]

    @contextlib.contextmanager
    def _changing(self):
        if self.aborts:
            self.aborts -= 1
            raise errors.Unavailable('cut off before its commit')
        try:
            yield
        finally:
            self._led.clear()
        if self.silent:
            self.silent -= 1
            raise errors.Unavailable('its commit has no answer')

    def create(self, *args, **values):
        with self._changing():
            return super().create(*args, **values)

    def step(self, before, after, step_id, *, given=None, taken=(), **more):
        more |= {'given': given, 'taken': taken}
        with self._changing():
            if self.losing:
                self.losing -= 1
                kept = super().load(after.id)
                super().step(kept, kept.run, str(uuid.uuid4()))
            stepped = super().step(before, after, step_id, **more)
            for each in (given or {}).values():
                self.given[each.deployment_id] = each
            for row_id in taken:
                self.given.pop(row_id, None)
            return stepped

    def answer(self, outcomes):
        with self._changing():
            return super().answer(outcomes)

    def take_over(self, *args):
        with self._changing():
            return super().take_over(*args)


class World:
    """What there is beside the leaders.

    :ivar answers: returns what a server sends, by its ID; None: nothing.
    :ivar ran: how often each server has run something.
    :ivar executed: how often an attempt was run, by the name of its result.
    :ivar hidden: until when no listing shows a result, by its name.
    :ivar slowness: the seconds that it takes to prepare something.
    :ivar tellings: how many servers were told at a time.
    :ivar calls: how many there were; before `crash_at` the engine dies.
    """

    def __init__(self, targets=3, unknown_hook=None, **limits):
        self.store = Store()
        self.now = 1_800_000_000.0
        self.answers = lambda server_id: 0
        self.ran, self.executed = collections.Counter(), collections.Counter()
        self.hidden = {}
        self.metadata, self.objects, self.done = {}, {}, set()
        self.reports, self.stopped = set(), set()
        self.gone, self.refused = {}, {}
        self.outage = self.store_outage = None
        self.slowness = 0
        self.tellings, self.calls, self.crash_at = [], 0, None
        self.leaders, self.servers = [], None
        self.unknown_hook = unknown_hook
        self.targets, self.limits = targets, limits

    # Runs

    def order(self, run_id=RUN, action='BACKUP', **values):
        members = [
            run_records.RunTarget(
                stack_id=f'stack-{n % 2}',
                stack_name=f's{n % 2}',
                resource=f'deployment-{n}',
                deployment_id=f'deployment-{n}',
                server_id=f'server-{n}',
                unknown_hook=self.unknown_hook,
            )
            for n in range(self.targets)
        ]
        return store_contract.order(
            run_id,
            action=action,
            limits=run_records.RunLimits(**self.limits),
            members=members,
            created_at=int(self.now),
            inputs={'secret': 'hunter2-secret'},
            **values,
        )

    def start(self, run_id=RUN, leader=None, **values):
        if leader is None:
            leader = self.leader()
        run = run_records.RunRecord.new(self.order(run_id, **values))
        self.store.create(PROJECT, run, leader.engine_id)
        leader.wake(run_id)
        return leader

    def ask(self, do, run_id=RUN, **values):
        """Do what a user asks another engine for."""
        stored = self.store.load(run_id)
        after = deciding.follow(
            stored.run,
            run_records.Request(do=do, who='ben', request='x', **values),
            self.now,
        )
        assert after != stored.run
        self.store.step(stored, after, f'request {self.now}')

    def run(self, run_id=RUN):
        return self.store.load(run_id).run

    def states(self, run_id=RUN):
        return [
            each.state and each.state.value
            for each in self.run(run_id).attempts
        ]

    def names(self):
        given = self.store.given.values()
        return sorted(each.signalling.object_name for each in given)

    # Leaders

    def leader(self, engine_id='engine', places=None, skew=0):
        """Return a leader; its clock is ahead by `skew` seconds."""

        def servers(settle):
            self.servers = Servers(self, settle, skew)
            return self.servers

        made = leading.Leader(
            engine_id,
            Watched(self),
            servers,
            places=Places(1000, 1000) if places is None else places,
            clock=lambda: self.now + skew,
            monotonic=lambda: self.now,
        )
        self.leaders.append(made)
        return made

    def take_over(self, dead='engine', engine_id='other'):
        self.leaders.clear()
        leader = self.leader(engine_id)
        leader.wake(*self.store.take_over(dead, engine_id, 100))
        return leader

    def pass_time(self, seconds=1):
        for _ in range(seconds):
            self.now += 1
            for each in self.leaders:
                with contextlib.suppress(errors.Error):
                    each.turn()
            self.serve()

    def finish(self, seconds=600, run_id=RUN):
        for _ in range(seconds):
            if self.run(run_id).ended:
                return
            self.pass_time()
        raise AssertionError(self.run(run_id))

    # Servers

    def tell(self, server_ids):
        self.tellings.append(len(server_ids))
        for server_id in server_ids:
            self.metadata[server_id] = {
                each.config_id: each
                for each in self.store.given.values()
                if each.server_id == server_id
            }

    def serve(self):
        for server_id, configs in self.metadata.items():
            for config_id, delivery in configs.items():
                name = delivery.signalling.object_name
                if config_id not in self.done:
                    self.done.add(config_id)
                    self.ran[server_id] += 1
                    self.executed[name] += 1
                if name not in self.objects:
                    self.send(name, self.answers(server_id))

    def send(self, name, status, **details):
        if status is not None and (name, 'sent') not in self.done:
            self.done.add((name, 'sent'))
            details = {'deploy_status_code': status, **details}
            self.objects[name] = body.outcome(details, ()), self.now

    def shows(self, name):
        return name in self.objects and self.now >= self.hidden.get(name, 0)

    def call(self):
        self.calls += 1
        if self.calls == self.crash_at:
            raise Crash


def waiting(targets=3, **limits):
    world = World(targets, **limits)
    world.answers = lambda server_id: None
    world.start()
    world.pass_time(3)
    return world


class Trouble(World):
    """A world in which servers are slow, and fail; one thing a second.

    :ivar most_at_once: the most runs that servers had at a time.
    :ivar failures_begun: how many runs began that fail, or never answer.
    """

    def __init__(self, seed, targets, *, fail=(), silent=(), **limits):
        super().__init__(targets, **limits)
        self.random = random.Random(seed)
        self.failing = {f'server-{n}' for n in {*fail, *silent}}
        self.silent = {f'server-{n}' for n in silent}
        self.most_at_once = self.failures_begun = 0
        self.lag = 0
        # When a server sends its result: the time, name and status.
        self._pending = []

    def serve(self):
        chance = self.random.random
        self.most_at_once = max(self.most_at_once, len(self.store.given))
        for server_id, configs in self.metadata.items():
            for config_id, delivery in configs.items():
                if config_id not in self.done and chance() < 0.5:
                    self.done.add(config_id)
                    name = delivery.signalling.object_name
                    self.executed[name] += 1
                    self._begin(server_id, name)
        due = [each for each in self._pending if each[0] <= self.now]
        self._pending = [each for each in self._pending if each not in due]
        for _, name, status in due:
            self.done.discard((name, 'sent'))
            self.send(name, status)
            self.hidden[name] = self.now + chance() * self.lag

    def _begin(self, server_id, name):
        self.failures_begun += server_id in self.failing
        if server_id in self.silent:
            return
        if self.random.random() < 0.3:
            self.reports.add(name)
        at = self.now + self.random.uniform(0, 20)
        status = int(server_id in self.failing)
        self._pending.append((at, name, status))
        if self.random.random() < 0.2:
            self._pending.append((at + 3, name, status))


class Watched:
    """The store, as one engine has it, which may die around each change."""

    def __init__(self, world):
        self._world = world

    def __getattr__(self, name):
        method = getattr(self._world.store, name)
        if name not in ('step', 'answer'):
            return method

        def call(*args, **values):
            self._world.call()
            result = method(*args, **values)
            self._world.call()
            return result

        return call


class Servers:
    """See `run_fleet.RunServers`."""

    def __init__(self, world, settle, skew=0):
        self._world = world
        self._settle = settle
        self._skew = skew
        self.stacks = {}

    def of_stack(self, project_id, stack_id):
        assert project_id == PROJECT
        if stack_id not in self.stacks:
            self.stacks[stack_id] = Stack(
                self._world, stack_id, self._settle, self._skew
            )
        return self.stacks[stack_id]

    def room(self, project_id):
        return run_records.MOST

    def prepare(self, project_id, run, members):
        self._world.now += self._world.slowness
        return {n: self._prepared(run, n) for n in members}

    def _prepared(self, run, number):
        world, key = self._world, run_store.key_of(run, number)
        if world.outage is not None:
            return world.outage
        if number in world.refused:
            return world.refused[number]
        name = run_objects.result_name(key.run_id, number, key.attempt)
        unique = f'{world.now}-{key}-{len(world.store.given)}'
        return dataclasses.replace(
            store_contract.delivery(key.run_id, number),
            deployment_id=f'row-{unique}',
            config_id=f'config-{unique}',
            action=run.order.action,
            signalling=deliveries.Signalling(
                transport='TEMP_URL_POLL',
                object_name=name,
                report_name=body.report_name(name),
            ),
        )

    def given(self, project_id, run, members):
        return {
            n: self._world.store.given[row_id]
            for n in members
            if (row_id := run.attempts[n].row_id) in self._world.store.given
        }

    def tell(self, project_id, stack_id, server_ids):
        self._world.call()
        self._world.tell(server_ids)
        self._world.call()

    def gone(self, project_id, run, members):
        return {n: why for n, why in self._world.gone.items() if n in members}


class Stack:
    """See `run_fleet.StackRuns`."""

    def __init__(self, world, stack_id, settle, skew):
        self._world, self._skew = world, skew
        self.stack_id, self.project_id = stack_id, PROJECT
        self._settle = settle
        self._waits = {}
        self._begun = set()
        self.due = 0

    @property
    def is_idle(self):
        return not self._waits

    def add(self, key, delivery):
        assert key not in self._waits
        self._waits[key] = delivery

    def leave(self, key):
        self._waits.pop(key, None)

    def poll(self):
        world, answers = self._world, {}
        if world.store_outage is not None:
            raise world.store_outage
        for key, delivery in self._waits.items():
            name = delivery.signalling.object_name
            if delivery.deployment_id not in world.store.given:
                answers[key] = stepping.Answer(lost=run_fleet.CHANGED)
            elif world.shows(name):
                answers[key] = self._answer(name)
            elif name in world.reports and key not in self._begun:
                answers[key] = stepping.Answer()
        self._settle(answers)
        for key, answer in answers.items():
            if answer == stepping.Answer():
                self._begun.add(key)
            else:
                self._waits.pop(key, None)
                self.discard_all(key)

    def _answer(self, name):
        outcome, at = self._world.objects[name]
        result = run_objects.Result(outcome=outcome, at=at + self._skew)
        return stepping.Answer(result=result)

    def ask(self, key, expected, inputs, *, reports):
        name = _name(key)
        if self._world.store_outage is not None:
            raise self._world.store_outage
        if name in self._world.objects:
            return self._answer(name)
        if reports and name in self._world.reports:
            return stepping.Answer()
        return None

    def discard_all(self, key):
        self._world.objects.pop(_name(key), None)

    def stop(self, key):
        if self._world.store_outage is not None:
            raise self._world.store_outage
        self._world.stopped.add(_name(key))


def _name(key):
    return run_objects.result_name(key.run_id, key.number, key.attempt)
