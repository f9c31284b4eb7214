# SPDX-License-Identifier: Apache-2.0
"""Whatever lies where the records of operations, runs and validations do.

Nothing is left of the seals of operations here: a user with a role in Heat can
write these records, too.
"""

import contextlib
import dataclasses
import io
import json
import logging
import types
from unittest import mock

import hypothesis
from hypothesis import strategies as st
from osc_lib import exceptions
import pytest

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.engine import process
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.objectstore import clocks
from heat_plugins.objectstore import lease
from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.plans import plan_claims
from heat_plugins.plans import plan_names
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import layout
from heat_plugins.validations import validation_ledger
from heat_plugins.validations import validation_operations
from tests.unit import fake_swift
from tests.unit import threads
from tests.unit.bad_input import anything
from tests.unit.osc import base
from tests.unit.runs.fleet import simulation

ID = '20270115T080000Z-00c0ffee'

#: The records of an operation, and a request.
NAMES = {
    'order': layout.order(ID),
    'head': layout.head(ID),
    'control': layout.control(ID, 1),
    'attempts': layout.shard(ID, 1, 0),
    'lease': lease.name(1, layout.leads(ID)),
    'request': f'{layout.requests(ID)}1800000000.000000-00000000',
}

#: What Heat holds of an operation, as one of them.
BINDING = 'binding'

#: A value of any field; some of them are nearly right.
value = st.one_of(
    anything.json_value,
    st.sampled_from(['running', 'complete', 'retry', 'db0', ID, 1, 2**36]),
    st.just('x' * 100_000),
    st.just([{}] * 20_000),
)


class Cloud:
    """An operation whose process has died; its objects can be changed."""

    def __init__(self):
        self.world = simulation.World(2)
        first = self.world.begin(self.world.order())
        first.step()
        first.release()
        self.container = self.world.cluster.container(simulation.CONTAINER)
        self.put('request', {'do': 'pause', 'who': 'bob'})

    def read(self, what):
        """Return a record without its seal."""
        values = json.loads(self.container.objects[NAMES[what]])
        return values['value'] if 'code' in values else values

    def put(self, what, values):
        self.container.objects[NAMES[what]] = json.dumps(values).encode()

    def bind(self, text):
        """Let Heat hold another text of the operation."""
        config, _ = self.world.bound[ID]
        self.world.heat.configs[config.id] = dataclasses.replace(
            config, config=text
        )

    def fleets(self, manager=None):
        return fleets.Fleets(self.world.heat, self.world.tools())


def changed(draw, values):
    """Return a record with one part that is not as it was."""
    if isinstance(values, list):
        values = list(values)
        at = draw(st.integers(0, len(values) - 1))
        values[at] = changed(draw, values[at])
        return values
    if not isinstance(values, dict):
        return draw(value)
    names = sorted(values) or ['x']
    name = draw(st.one_of(st.sampled_from(names), anything.odd_text))
    rest = {key: one for key, one in values.items() if key != name}
    if draw(st.integers(0, 4)) == 0:
        return rest
    inner = values.get(name)
    if isinstance(inner, dict | list) and inner and draw(st.booleans()):
        return rest | {name: changed(draw, inner)}
    return rest | {name: draw(value)}


@st.composite
def hostile(draw):
    """Return a cloud in which one record, or two, are not as they were."""
    cloud = Cloud()
    for what in draw(
        st.lists(
            st.sampled_from([BINDING, *sorted(NAMES)]),
            min_size=1,
            max_size=2,
            unique=True,
        )
    ):
        kind = draw(st.integers(0, 5))
        if what == BINDING:
            text = json.loads(bound_text(cloud.world))
            cloud.bind(json.dumps(changed(draw, text)))
        elif kind == 0:
            cloud.container.objects[NAMES[what]] = draw(anything.body)
        elif kind == 1:
            cloud.put(what, {'version': draw(value)})
        elif kind == 2:
            cloud.container.objects.pop(NAMES[what], None)
        elif NAMES[what] in cloud.container.objects:
            cloud.put(what, changed(draw, cloud.read(what)))
    return cloud


def bound_text(world):
    """Return what Heat holds of an operation."""
    config, _ = world.bound[ID]
    return world.heat.configs[config.id].config


@contextlib.contextmanager
def warnings():
    """Collect what is logged as a warning."""
    said = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger('heat_plugins')
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


@pytest.fixture(autouse=True)
def unsealed(monkeypatch):
    """Take the seals for broken, as they are for who has their keys."""
    check_order, unseal = binding.Binding.check_order, binding.Binding.open

    def checked(seal, name, content):
        with contextlib.suppress(errors.Tampered):
            check_order(seal, name, content)

    def opened(seal, name, stored):
        with contextlib.suppress(errors.Tampered):
            unseal(seal, name, stored)
        return binding.Unchecked.open(seal, name, stored)

    monkeypatch.setattr(binding.Binding, 'check_order', checked)
    monkeypatch.setattr(binding.Binding, 'open', opened)
    # The clock of the simulated store is another one on purpose.
    monkeypatch.setattr(clocks, '_warned', {'host', 'other'})


def typed(cloud, line):
    """Type a command; it ends in an error at the worst."""
    case = base.CommandCase('run_command')
    case.stderr = io.StringIO()
    world = cloud.world
    clock = types.SimpleNamespace(
        time=lambda: world.now, monotonic=lambda: world.now, sleep=world.sleep
    )
    with (
        mock.patch.object(common, 'fleets', cloud.fleets),
        mock.patch.object(common, 'orchestration', return_value=world.heat),
        mock.patch.object(common, 'service', world.service),
        mock.patch.object(following, 'time', clock),
        contextlib.suppress(exceptions.CommandError),
    ):
        _, output = case.run_command(line)
        _, more = case.run_command(line, '-f', 'json')
        json.loads(more)
        return output
    return None


LINES = [
    'operation list',
    f'operation show {ID}',
    f'operation show {ID} --targets',
    f'operation wait {ID} --timeout 5',
    'run list s0',
    f'run show s0 {ID}.0.1',
    f'run output s0 {ID}.0.1',
]


def with_order(digest):
    """Return a cloud whose Heat holds another digest of the order."""
    cloud = Cloud()
    text = json.loads(bound_text(cloud.world)) | {'order': digest}
    cloud.bind(json.dumps(text))
    return cloud


@hypothesis.given(st.sampled_from(LINES), hostile())
@hypothesis.example(f'operation show {ID}', with_order('é'))
def test_a_command_ends_with_a_message_at_the_worst(line, cloud):
    before = len(cloud.world.cluster.seen)
    with warnings() as said:
        shown = typed(cloud, line)
    # The command is typed twice.
    assert len(said) <= 2, said
    assert len(cloud.world.cluster.seen) - before < 400
    if line == 'operation list' and NAMES['head'] in cloud.container.objects:
        assert ID in shown


@hypothesis.given(hostile())
def test_an_engine_puts_it_aside_and_serves_another_project(cloud):
    good = simulation.World(2)
    first = good.begin(good.order())
    first.step()
    first.release()
    # In projects of their own.
    stacks = {
        'project-1': (good.heat, good.cluster.store()),
        'project-2': (cloud.world.heat, cloud.world.cluster.store()),
    }
    held = [
        fleet_watching._registered(
            project,
            ID,
            project,
            {'config': bound_text(world)},
            None,
            f'row of {project}',
        )
        for project, world in (('project-2', cloud.world), ('project-1', good))
    ]
    found = [one for one in held if one is not None]
    led = []
    targets = []

    def stack(stack_ids, project_id):
        heat, store = stacks[project_id]
        return types.SimpleNamespace(
            context=heat,
            clients=types.SimpleNamespace(client=lambda name: store),
        )

    with (
        warnings() as said,
        mock.patch.object(
            process, 'threading', threads.stand_in(targets.append)
        ),
        mock.patch.multiple(
            fleet_watching,
            ADVANCED=process.Places(32, 4),
            BACKOFF=fleet_watching.Backoff(lambda: 0.0),
            _WORKERS=process.Places(16, 16),
            _PROJECTS=process.Places(16, 1),
            registered=lambda context: found,
            first_stack=stack,
            _step_on=lambda advancer, project_id: led.append(advancer),
            shuffled=list,
        ),
        mock.patch.object(
            fleet_watching.member_batches,
            'MemberBatches',
            lambda context: context,
        ),
        mock.patch.object(own_heat, 'OwnHeat', lambda rpc, context: context),
        mock.patch.object(
            fleet_watching.rpc_client, 'EngineClient', return_value=None
        ),
        mock.patch.object(fleet_watching.scans, 'delete_unregistered'),
        mock.patch.object(
            fleet_watching.heat_context,
            'get_admin_context',
            return_value=None,
        ),
    ):
        began, asked = good.now, len(cloud.world.cluster.seen)
        while targets or not led:
            if not targets:
                fleet_watching.look()
            targets.pop(0)()
            assert len(led) < 10
        fleet_watching.look()
    # One of the operation, and one of its requests.
    assert len(said) <= 2, said
    assert sum('Cannot advance' in one for one in said) <= 1
    # The first of them without waiting for anything.
    assert any(one._tools.heat is good.heat for one in led)
    assert good.now - began <= 1
    assert len(cloud.world.cluster.seen) - asked < 150


class Environments:
    """A registry in which one record lies."""

    def __init__(self, *records):
        self.records = {one.name: one for one in records}

    def find(self):
        return list(self.records.values())

    def get(self, name):
        return self.records.get(name)

    def create(self, record):
        return self.records.setdefault(record.name, record) is record

    def delete(self, name):
        self.records.pop(name, None)


def environment(name, key, values):
    return plan_names.Record(name=name, description='', values={key: values})


claimed = anything.map_of(
    version=value, container=value, since=value, token=value
)


@hypothesis.given(claimed)
@hypothesis.example({'version': 2})
def test_a_list_of_plans_has_each_claim(values):
    registry = Environments(environment('shop', 'heat_plugins_plan', values))
    claims = plan_claims.Claims(registry)
    found = claims.summaries()
    assert len(found) == isinstance(values, dict)
    json.dumps([dataclasses.asdict(one) for one in found])
    with contextlib.suppress(errors.Error):
        claims.release(claims.find('shop'))


@hypothesis.given(
    anything.map_of(version=value, token=value, since=value, until=value)
)
@hypothesis.example({'until': 10**400})
@hypothesis.example({'version': 2})
@hypothesis.example({'token': 'a', 'since': 'b', 'until': float('inf')})
def test_a_lock_that_is_invalid_is_held_or_not(values):
    registry = Environments(
        environment('plan-lock:shop', 'heat_plugins_plan_lock', values)
    )
    now = [1_800_000_000.0]

    def sleep(seconds):
        now[0] += seconds

    locks = plan_claims.Locks(registry, clock=lambda: now[0], sleep=sleep)
    with contextlib.suppress(errors.PlanBusy), locks.lock('shop'):
        pass
    assert now[0] < 1_800_000_100


def test_locks_that_follow_each_other_in_a_circle_hold_the_plan():
    lock = {'version': 1, 'token': 'a' * 36, 'since': 'then', 'until': 0.0}
    registry = Environments(
        environment('plan-lock:shop', 'heat_plugins_plan_lock', lock)
    )
    follows = 'plan-lock:shop~aaaaaaaa'
    registry.records[follows] = environment(
        follows, 'heat_plugins_plan_lock', lock
    )
    now = [1_800_000_000.0]

    def sleep(seconds):
        now[0] += seconds

    locks = plan_claims.Locks(registry, clock=lambda: now[0], sleep=sleep)
    with pytest.raises(errors.PlanBusy), locks.lock('shop'):
        pass


validation = st.one_of(
    anything.map_of(
        id=st.one_of(st.just('20270115T080000Z-00c0ff'), value),
        source=value,
        started_at=value,
        state=value,
        outcomes=value,
        version=value,
    ).map(lambda values: json.dumps(values).encode()),
    anything.body,
)


@hypothesis.given(validation)
def test_a_list_of_validations_has_each_run(content):
    store = fake_swift.Cluster().store()
    container = 'heat-plugins-validations-project-1'
    store.put_container(container, {})
    run_id = '20270115T080000Z-00c0ff'
    store.put_object(container, f'{run_id}/run.json', content)
    ledger = validation_ledger.Ledger(store, pools.Pool(workers=1, wait=0))
    (run,) = ledger.every()
    assert run.id == run_id
    json.dumps(validation_operations.report(run))
    ledger.tidy(kept=0)
    with contextlib.suppress(errors.Error):
        ledger.stop(run_id)
