# SPDX-License-Identifier: Apache-2.0
"""The operations on nodes, and many nodes in one transition, step by step."""

import dataclasses
import json

import pytest

from heat_plugins import errors
from heat_plugins import stored
from heat_plugins.nodes import moves
from heat_plugins.nodes import moving
from heat_plugins.nodes import node_operations
from heat_plugins.objectstore import parcels
from tests.unit import fake_swift
from tests.unit.nodes import fake_ironic


class Nodes:
    """The operations on the nodes of a cloud.

    :ivar repeats: how often each step is taken, as after crashes.
    """

    def __init__(self):
        self.ironic = fake_ironic.Ironic()
        self.store = fake_swift.Cluster().store()
        self.core = node_operations.NodeOperations(
            self.ironic, self.store, clock=lambda: 1000.0
        )
        self.repeats = 1

    def send(self, content):
        return parcels.send(self.store, json.dumps(content).encode())

    def work(self, kind, **given):
        state = None
        while True:
            for _ in range(self.repeats):
                step = self.core.work(kind, given, state)
            step = json.loads(json.dumps(step))
            if step['success'] is not None:
                return step
            state = step['state']
            self.ironic.finish_all({})


@pytest.fixture
def cloud():
    return Nodes()


def nodes(b='fake-hardware'):
    """Return a file of the nodes a and b; b has a hardware type."""
    return {
        'nodes': [
            {'name': name, 'pm_type': kind, 'mac': [f'52:54:00:00:00:0{name}']}
            for name, kind in (('a', 'fake-hardware'), ('b', b))
        ]
    }


def test_registering_reports_each_node_and_all(cloud):
    found = json.loads(json.dumps(cloud.core.register(nodes(b='nope'))))
    assert [
        (one['name'], one['action'], one['success']) for one in found['nodes']
    ] == [('a', 'created', True), ('b', 'failed', False)]
    assert not found['success']
    row = cloud.ironic.row('a')
    assert (found['enrolled'], found['manageable']) == ([row['uuid']], [])
    row['provision_state'] = 'manageable'
    found = cloud.core.register(nodes(b='nope'))
    assert (found['enrolled'], found['manageable']) == ([], [row['uuid']])


def test_no_upload_with_passwords_outlives_its_use(cloud):
    def is_there(place):
        return bool(cloud.store.list_objects(place['container'], ''))

    place = cloud.send(nodes())
    assert len(cloud.core.register(place)['nodes']) == 2
    assert not is_there(place)
    # A step that is repeated reads it again, until the nodes are recorded.
    place = cloud.send(nodes())
    for _ in range(2):
        step = cloud.core.work('register', {'nodes': place})
        assert len(step['state']['nodes']) == 2
    assert is_there(place)
    cloud.core.work('register', {'nodes': place}, step['state'])
    assert not is_there(place)
    place = cloud.send({'nodes': []})
    with pytest.raises(errors.Invalid):
        cloud.core.work('register', {'nodes': place})
    assert not is_there(place)


def test_nodes_are_listed_by_name_without_passwords(cloud):
    for name in 'ba':
        secret = {'ipmi_password': 'hunter22'}
        cloud.ironic.add(f'id-{name}', name=name, driver_info=secret)
    found = cloud.core.list()
    assert [one['name'] for one in found] == ['a', 'b']
    assert found[0]['provision_state'] == 'enroll'
    assert 'driver_info' not in found[0]


def test_a_move_of_the_nodes_that_can_goes_step_by_step(cloud):
    cloud.ironic.populate(a='manageable', b='active', c='inspect wait')
    found = cloud.core.begin('inspect', ['a', 'id-a'])
    assert found['success'] is None
    found = cloud.core.step(found['convoy'])
    assert found['next_look'] == 10
    cloud.ironic.finish('a')
    found = cloud.core.step(found['convoy'])
    done = {'done': ['id-a'], 'success': True, 'reason': '', 'next_look': 0}
    assert done.items() <= found.items()
    members = cloud.core.begin('inspect')['convoy']['members']
    assert [one['name'] for one in members] == ['a', 'c']


def test_a_wrong_move_is_refused(cloud):
    for kind, arguments, options in (
        (errors.Invalid, ('fly',), {}),
        (errors.Invalid, ('inspect',), {'concurrency': 0}),
        (errors.NotFound, ('inspect', ['x']), {}),
    ):
        with pytest.raises(kind):
            cloud.core.begin(*arguments, **options)
    found = cloud.core.begin('inspect')
    assert (found['success'], found['next_look']) == (True, 0)
    assert cloud.work('move', verb='provide', nodes=None)['success']


def test_only_inspections_are_aborted(cloud):
    cloud.ironic.populate(a='inspect wait', b='clean wait', c='inspecting')
    assert cloud.core.abort() == {'nodes': ['id-a'], 'moving': ['id-c']}
    assert cloud.ironic.sent == [('a', 'abort')]


def test_inspections_are_summarized(cloud):
    cloud.ironic.populate(a='manageable', b='manageable')
    cloud.ironic.inventories['id-a'] = fake_ironic.INVENTORY
    first, second = cloud.core.summaries(['a', 'b'])
    sizes = {'cpus': 4, 'memory_mb': 8192, 'disks_gb': [40]}
    kind = {'architecture': 'x86_64', 'product': 'KVM'}
    named = {'uuid': 'id-a', 'name': 'a', 'macs': ['52:54:00:00:00:01']}
    assert first == {**sizes, **kind, **named}
    assert second['cpus'] is None
    assert cloud.core.inventory('a') == fake_ironic.INVENTORY
    with pytest.raises(errors.NotFound):
        cloud.core.inventory('b')


@pytest.mark.parametrize('repeats', [1, 3])
def test_nodes_of_a_file_are_inspected_and_become_available(cloud, repeats):
    cloud.repeats = repeats
    step = cloud.work('register', nodes=nodes(), provide=True)
    assert step['success']
    verbs = [one['verb'] for one in step['state']['moves']]
    assert verbs == ['manage', 'provide']
    assert cloud.ironic.named() == {'a': 'available', 'b': 'available'}
    for name in 'ab':
        cloud.ironic.row(name)['provision_state'] = 'manageable'
    step = cloud.work('introspect', nodes=None, provide=True)
    assert step['success']
    names = sorted(one['name'] for one in step['output']['found'])
    assert names == ['a', 'b']
    assert cloud.ironic.named() == {'a': 'available', 'b': 'available'}
    assert cloud.ironic.sent.count(('a', 'inspect')) == 1


ABORTED = 'Inspection was aborted by request.'


@pytest.fixture
def ironic():
    made = fake_ironic.Ironic()
    made.populate(a='manageable', b='manageable', c='manageable')
    return made


def plan(names='a', verb='inspect', **options):
    members = (moving.NodeMember(uuid=f'id-{n}', name=n) for n in names)
    return moving.NodeMove(verb=verb, members=tuple(members), **options)


def step(ironic, move, phases, reason=None, now=1000.0):
    """Take a step, with the move as JSON has it in between."""
    move = moving.advance(ironic, move, now)
    text = json.dumps(dataclasses.asdict(move))
    move = stored.read(moving.NodeMove, json.loads(text))
    assert ' '.join(one.phase for one in move.members) == phases
    assert reason in (None, move.members[0].reason)
    return move


def test_only_so_many_are_in_transition_at_a_time(ironic):
    move = step(ironic, plan('abc', concurrency=2), 'moving moving waiting')
    move = step(ironic, move, 'moving moving waiting')
    ironic.finish('b')
    step(ironic, move, 'moving done moving')


def test_a_failed_node_is_sent_again_and_an_aborted_one_is_not(ironic):
    move = step(ironic, plan(), 'moving')
    ironic.finish('a', 'disk on fire')
    move = step(ironic, move, 'moving', 'disk on fire')
    ironic.finish('a')
    step(ironic, move, 'done', '')
    for error, phase in ('disk on fire', 'failed'), (ABORTED, 'aborted'):
        ironic.row('a')['provision_state'] = 'manageable'
        attempts = 1 if phase == 'failed' else 3
        move = step(ironic, plan(attempts=attempts), 'moving')
        ironic.finish('a', error)
        step(ironic, move, phase, error)


def test_all_attempts_together_have_a_time_limit(ironic):
    first = step(ironic, plan(timeout=60, attempts=9), 'moving')
    row = ironic.row('a')
    row['provision_state'] = 'inspect wait'
    step(ironic, first, 'moving', now=1059)
    said = 'It was still inspect wait after 60 s'
    step(ironic, first, 'timed-out', said, now=1060)
    # It was aborted.
    assert row['provision_state'] == 'inspect failed'
    row['last_error'] = 'disk on fire'
    step(ironic, first, 'timed-out', 'disk on fire', now=1060)


def test_a_node_in_another_state_is_not_sent(ironic):
    ironic.row('a')['provision_state'] = 'inspecting'
    step(ironic, plan(), 'moving')
    step(ironic, plan('b', verb='manage'), 'done')
    assert ironic.sent == []
    ironic.row('a')['provision_state'] = 'active'
    said = 'It is active: only a manageable node is inspected'
    step(ironic, plan('abx'), 'failed moving failed', said)


def test_a_locked_node_is_sent_later_until_its_time_is_over(ironic):
    ironic.failing['set_state'] = [errors.NodeLocked('locked')] * 2
    first = step(ironic, plan(timeout=60), 'waiting')
    step(ironic, first, 'timed-out', now=1060)
    ironic.failing.clear()
    move = step(ironic, first, 'moving')
    assert move.members[0].attempts == 1


def test_errors_of_ironic(ironic):
    ironic.failing['set_state'] = [errors.Refused('no boot image')]
    step(ironic, plan('ab'), 'failed moving', 'no boot image')
    ironic.failing['nodes'] = [errors.Unavailable('503')]
    with pytest.raises(errors.Unavailable):
        step(ironic, plan(), '')


def test_no_state_means_two_things():
    for move in moves.BY_VERB.values():
        assert move.ready & move.moving == frozenset()
        assert move.there & move.moving == frozenset()
        assert move.stoppable <= move.moving
