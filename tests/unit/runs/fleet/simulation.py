# SPDX-License-Identifier: Apache-2.0
"""Servers that do as they are told, and processes that die.

One thread and one clock. A process that advances an operation asks the fakes
of Heat and of the object store; a `World` counts their requests, and lets a
process be killed at any of them. Its servers fetch what Heat has for them,
run each config once as agents do, and answer to the URL that they were given.
"""

import dataclasses
import hashlib
import json
import random

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.objectstore import keys
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs.fleet import followers
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import operation_records
from tests.unit import fake_swift
from tests.unit.runs import fake_heat

CONTAINER = 'heat-plugins-operations-project-1'


# What Heat may do although its answer is lost.
_CHANGES = (
    'create_config',
    'create_deployment',
    'delete_config',
    'delete_deployment',
    'deliver',
    'withdraw_runs',
)


def nobody(who):
    """Say of no process that it is an engine."""
    return False


def everybody(who):
    """Say of each process that it is an engine."""
    return True


def others(who):
    """Say of all but the first process that they are engines."""
    return who != 'ann'


class Killed(BaseException):
    """The process was killed."""


class World:
    """A cloud with servers, over simulated time.

    :param members: how many servers there are.
    :param names: of the stacks, in place of their number.
    :param actions: what the servers' deployments have.
    :param fail: the servers whose runs fail.
    :param silent: those that never answer.
    :param server_names: of the servers' resources, in place of their number.
    :param engines: says of the name of a process whether it is an engine.
    """

    def __init__(
        self,
        members,
        *,
        seed=0,
        stacks=2,
        names=(),
        actions=('BACKUP', 'FAIL/OVER'),
        fail=(),
        silent=(),
        server_names=(),
        engines=nobody,
    ):
        keys.KeyKeeper.forget_abilities()
        self.random = random.Random(seed)
        self.engines = engines
        self.now = 1_800_000_000.0
        self.cluster = fake_swift.Cluster(clock=lambda: 0)
        self.cluster.now = lambda: self.now - 500_000
        self.cluster.before = self._before
        self.cluster.serve = self._losing(self.cluster.serve)
        self.heat = fake_heat.Heat()
        for name in _CHANGES:
            setattr(self.heat, name, self._losing(getattr(self.heat, name)))
        self.heat_ask = self.heat._ask
        self.heat._ask = self._ask
        names = names or [f's{n}' for n in range(stacks)]
        self.stacks = [self.heat.add_stack(name) for name in names]
        config = {
            'configs': [
                {'actions': ['CREATE'], 'tool': 'script', 'config': 'true'},
                *(
                    {'actions': [one], 'tool': 'script', 'config': 'true'}
                    for one in actions
                ),
            ]
        }
        self.members = []
        server_names = server_names or [f'server{n}' for n in range(members)]
        for n in range(members):
            stack = self.stacks[n % len(names)]
            row = self.heat.add_deployment(
                stack, name=f'db{n}', server=f'server-{n}', config=config
            )
            self.heat.add_resource(
                stack,
                server_names[n],
                'OS::Heat::DeployedServer',
                f'server-{n}',
                metadata={'role': 'db' if n % 2 else 'web'},
            )
            self.members.append(
                runs.RunTarget(
                    stack_id=stack.id,
                    stack_name=stack.name,
                    resource=f'db{n}',
                    deployment_id=row.id,
                    server_id=f'server-{n}',
                    server_name=server_names[n],
                )
            )
        #: By operation: what proves its records, the deployment by which
        #: engines find it, and the config of that with the stacks.
        self.seals, self.registered, self.bound = {}, {}, {}
        self.original = set(self.heat.rows)
        self.configs = set(self.heat.configs)
        self.fail, self.silent = set(fail), set(silent)
        #: What may go wrong, and how often per thousand requests.
        self.outage = 0
        #: The same for answers that are lost after a request was served.
        self.lost = 0
        #: Until when nothing is served at all.
        self.dark_until = 0.0
        self.kill_at = None
        self.requests = 0
        self.asking = ''
        self.stepping = None
        self.lag = 0.0
        self.appear = {}
        #: By server: the configs that it has begun with.
        self.begun = {}
        #: By run: how often a server has run it.
        self.executed = {}
        self.failures_begun = 0
        self.most_at_once = 0
        self.answers = []
        #: What servers print, in place of what tells them apart.
        self.stdout = ''

    # Processes

    def tools(self, who='ann'):
        store = self.cluster.store()
        return services.Services(
            heat=self.heat,
            records=operation_records.OperationRecords(
                store, pools.Pool(workers=1, wait=0)
            ),
            sign=lambda container: keys.KeyKeeper(
                store, secret=None, digests=('sha256',), overlap=None
            ).ensure(container),
            who=who,
            batches=self.heat if self.engines(who) else None,
            clock=lambda: self.now,
            monotonic=lambda: self.now,
            sleep=self.sleep,
        )

    def service(self, manager=None, **more):
        """Return the way to runs, as `osc.common.service` does."""
        return run_service.Runs(
            self.heat,
            self.cluster.store(),
            who='ann',
            clock=lambda: self.now,
            monotonic=lambda: self.now,
            sleep=self.sleep,
            **more,
        )

    def order(self, **limits):
        return operations.OperationOrder(
            id='20270115T080000Z-00c0ffee',
            action='BACKUP',
            limits=operations.OperationLimits(**limits),
            members=tuple(self.members),
            created_at=int(self.now),
            created_by='ann',
        )

    def advancer(self, order, who='ann'):
        tools = self.tools(who)
        if order.id not in self.seals:
            self._register(tools.records, order)
        return followers.Follower(tools, order, self.seals[order.id])

    def begin(self, order, who='ann'):
        """Record an operation; return what leads it."""
        advancer = self.advancer(order, who)
        advancer.begin(self.registered[order.id])
        return advancer

    def _register(self, book, order):
        """Let Heat know of an operation, which is no request of a test's."""
        self.seals[order.id] = seal = book.bind(order)
        config = self.heat.add_config(
            name=order.id,
            group=binding.GROUP,
            config=seal.text(order.stack_ids),
            inputs=[],
            outputs=[],
        )
        self.configs.add(config.id)
        self.bound[order.id] = config, order.stack_ids
        row = self.heat._row(
            config.id, order.id, order.action, 'IN_PROGRESS', 'registered'
        )
        self.registered[order.id] = row.id

    def rebind(self, operation_id, content):
        """Let Heat know of another order, as its creator could have."""
        seal = dataclasses.replace(
            self.seals[operation_id],
            order=hashlib.sha256(content).hexdigest(),
        )
        config, stacks = self.bound[operation_id]
        self.heat.configs[config.id] = dataclasses.replace(
            config, config=seal.text(stacks)
        )
        self.seals[operation_id] = seal

    # Time and servers

    def sleep(self, seconds):
        """Let time go by, and servers do their work."""
        self.now += seconds
        for place, at in list(self.appear.items()):
            if self.now >= at:
                del self.appear[place]
                self.cluster.lagging.discard(place)
        self._fetch()
        due = [one for one in self.answers if one[0] <= self.now]
        self.answers = [one for one in self.answers if one[0] > self.now]
        for _, url, body in due:
            # A server is not bothered by what ails our requests.
            outage, self.outage = self.outage, 0
            self.cluster.put_signed(url, json.dumps(body).encode())
            self.outage = outage

    def _fetch(self):
        """Let each server begin with what it is given."""
        for row in list(self.heat.rows.values()):
            is_told = row.id not in self.heat.untold
            if row.id in self.original or not (is_told and _is_of_run(row)):
                continue
            server = self.begun.setdefault(row.server_id, set())
            if row.config_id in server or self.random.random() < 0.5:
                continue
            server.add(row.config_id)
            run = row.reason.removeprefix('heat-plugins run ')
            self.executed[run] = self.executed.get(run, 0) + 1
            self._answer(row)

    def _answer(self, row):
        number = int(row.server_id.removeprefix('server-'))
        config = self.heat.configs[row.config_id]
        inputs = {one['name']: one['value'] for one in config.inputs}
        self.failures_begun += number in self.fail | self.silent
        if number in self.silent:
            return
        status = int(number in self.fail)
        at = self.now + self.random.uniform(0, 20)
        body = {
            'deploy_status_code': status,
            'deploy_stdout': self.stdout or f'n{number}',
        }
        self.answers.append((at, inputs['deploy_signal_id'], body))

    @property
    def given(self):
        """The rows that Heat has for runs."""
        return [
            one
            for key, one in self.heat.rows.items()
            if key not in self.original and _is_of_run(one)
        ]

    # What goes wrong

    def _before(self, request):
        if 'temp_url_sig' in request.url:
            self._hide(request)
            return
        self.asking = request.method
        self._count(errors.Unavailable)
        if request.method == 'PUT':
            self._hide(request)

    def _hide(self, request):
        """Let a listing not show an object for a while."""
        if not self.lag or '/operations/' not in request.url:
            return
        if self.random.random() < 0.3:
            name = request.url.partition(f'{CONTAINER}/')[2]
            place = CONTAINER, name.partition('?')[0]
            self.cluster.lagging.add(place)
            self.appear[place] = self.now + self.random.uniform(0, self.lag)

    def _ask(self, method, what):
        self.asking = method
        self._count(errors.Unavailable)
        self.heat_ask(method, what)
        more = {'create_deployment': 1, 'deliver': what}.get(method, 0)
        self.most_at_once = max(self.most_at_once, len(self.given) + more)

    def _losing(self, serve):
        """Return what serves requests, and loses some answers to ours."""

        def served(*args, **more):
            answer = serve(*args, **more)
            signed = args and args[0] is None
            if not signed and self.random.random() * 1000 < self.lost:
                raise errors.Unavailable('the answer was lost')
            return answer

        return served

    def _count(self, kind):
        self.requests += 1
        if self.kill_at is not None and self.requests >= self.kill_at:
            raise Killed
        if self.now < self.dark_until:
            raise kind('nothing is served')
        if self.random.random() * 1000 < self.outage:
            raise kind('out of order')


def _is_of_run(row):
    """Say whether Heat has a deployment for a run, not for an operation."""
    return row.reason.startswith('heat-plugins run ')


def run(world, advancers, most=100_000):
    """Advance an operation with some processes in turn, to its end."""
    for turn in range(most):
        one = world.stepping = advancers[turn % len(advancers)]
        try:
            found = one.step()
        except errors.Unavailable:
            world.sleep(1)
            continue
        if one.is_over:
            return found
        if not one.is_busy:
            world.sleep(1)
    raise AssertionError('it does not end')
