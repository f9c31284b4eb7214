# SPDX-License-Identifier: Apache-2.0
"""Records of operations that others have written, or changed."""

import json
from unittest import mock
from urllib import parse

import pytest

from heat_plugins import errors
from heat_plugins.objectstore import clocks
from heat_plugins.objectstore import exclusive
from heat_plugins.objectstore import lease
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.fleet.records import operation_records
from heat_plugins.runs.records import record_names
from heat_plugins.runs.start import orders
from tests.unit.runs.fleet import simulation


class Case:
    """An operation of two targets, whose objects can be changed."""

    def __init__(self):
        self.world = simulation.World(2)
        self.order = self.world.order()
        self.id = self.order.id
        self.advancer = self.world.begin(self.order)
        self.door = fleets.Fleets(self.world.heat, self.world.tools())
        self.objects = self.world.cluster.container(
            simulation.CONTAINER
        ).objects

    def put(self, name, value):
        """Write a record as a user with a role in Heat can: with its proof."""
        if '/states/' in name or '/requests/' in name:
            value = self.world.seals[self.id].seal(name, value)
        self.write(name, json.dumps(value).encode())

    def write(self, name, content):
        self.objects[name] = content
        if name == layout.order(self.id):
            self.world.rebind(self.id, content)

    def values(self, name):
        found = json.loads(self.objects[name])
        return found['value'] if 'code' in found else found

    def change(self, name, **values):
        self.put(name, self.values(name) | values)

    def asked(self, call):
        """Return how many requests a call sends, and its error."""
        seen = self.world.cluster.seen
        before = len(seen)
        error = None
        try:
            call()
        except errors.Error as exc:
            error = exc
        return len(seen) - before, error


@pytest.fixture
def case():
    return Case()


@pytest.mark.parametrize(
    'names',
    [
        ['999999999'],
        ['999999'],
        ['x', '-1', '\uff11\uff12\uff13\uff14\uff15\uff16'],
        ['000003'],
    ],
)
def test_a_number_that_a_user_wrote_costs_no_requests(case, names):
    usual, _ = case.asked(lambda: case.door.show(case.id))
    for name in names:
        case.put(layout.leads(case.id) + name, {})
    number, error = case.asked(lambda: case.door.show(case.id))
    assert number <= usual
    assert error is None


def test_epochs_without_an_end_cost_few_requests(case):
    for epoch in range(1, 30):
        case.put(lease.name(epoch, layout.leads(case.id)), {})
    number, error = case.asked(lambda: case.door.show(case.id))
    assert number < 40
    assert 'processes that led it wrote nothing' in str(error)
    assert '"openstack software deployment operation delete' in str(error)


def test_too_many_epochs_are_listed_once(case, monkeypatch):
    monkeypatch.setattr(lease, '_EPOCHS', 10)
    monkeypatch.setattr(lease, '_LISTED', 10)
    for epoch in range(1, 2000):
        case.put(lease.name(epoch, layout.leads(case.id)), {})
    number, error = case.asked(lambda: case.door.show(case.id))
    assert number < 30
    assert 'more than 10 processes led it' in str(error)


def test_an_order_has_as_many_members_as_an_operation_may_have(
    case, monkeypatch
):
    monkeypatch.setattr(operations, 'MOST', 1)
    read = mock.patch.object(
        operation_records.stored, 'read', side_effect=AssertionError
    )
    with read, pytest.raises(errors.Unreadable, match='not 1 to 1 members'):
        case.door.show(case.id)
    with pytest.raises(errors.Refused, match='at most 1 targets'):
        case.world.tools().records.write_order(case.order)


def test_an_order_has_few_bytes_and_few_lists(case):
    name = layout.order(case.id)
    case.write(name, b'{"x": "' + b'x' * operation_records._ORDER + b'"}')
    with pytest.raises(errors.Unreadable, match='larger than'):
        case.door.show(case.id)
    case.write(name, b'[' + b'[],' * 100_000 + b'[]]')
    with (
        mock.patch.object(operation_records.json_records, 'bounds') as bounds,
        pytest.raises(errors.Unreadable, match='lists and maps'),
    ):
        case.door.show(case.id)
    bounds.read_json.assert_not_called()


@pytest.mark.parametrize(
    'values',
    [
        {'members': []},
        {'members': {}},
        {'members': None},
        {'limits': 3},
        {'limits': {'canary': -1}},
        {'config': {}},
        {'id': '20270115T080000Z-00bad000'},
        {'created_at': 10**30},
    ],
)
def test_an_invalid_order_names_its_object_and_the_remedy(case, values):
    case.change(layout.order(case.id), **values)
    with pytest.raises(errors.Unreadable) as caught:
        case.door.show(case.id)
    assert layout.order(case.id) in str(caught.value)
    assert 'operation delete --force' in str(caught.value)


@pytest.mark.parametrize(
    'name',
    [
        layout.order('{id}'),
        layout.control('{id}', 1),
    ],
)
def test_a_record_of_a_later_release_asks_for_an_upgrade(case, name):
    case.change(name.format(id=case.id), version=2, more='x')
    with pytest.raises(errors.LaterRelease, match='upgrade heat-plugins'):
        case.door.show(case.id)


def test_records_have_versions_and_those_without_are_read(case):
    for name in (
        layout.order(case.id),
        layout.head(case.id),
        layout.control(case.id, 1),
        lease.name(1, layout.leads(case.id)),
    ):
        values = case.values(name)
        assert values.pop('version') == 1, name
        case.put(name, values)
    assert case.door.show(case.id).order.action == 'BACKUP'
    (head,) = case.door.history(fleets.Filter())
    assert head.targets == 2


@pytest.mark.parametrize(
    'head',
    [
        {'counts': None},
        {'ended_at': 'z'},
        {'stacks': 5},
        {'state': None},
        {'id': 'x'},
        {'version': 7},
        {'created_at': 10**20},
    ],
)
def test_an_unreadable_head_is_one_row(case, head):
    case.change(layout.head(case.id), **head)
    (found,) = case.door.history(fleets.Filter())
    row = overview.of_head(found)
    assert (row['id'], row['state']) == (case.id, 'unreadable')
    assert layout.head(case.id) in row['reason']
    assert row['created_at'] == '2027-01-15T08:00:00Z'
    assert case.door.history(fleets.Filter(action='BACKUP')) == []


def test_a_head_that_is_no_json_is_a_row_too(case):
    case.objects[layout.head(case.id)] = b'{"id": "x"'
    (found,) = case.door.history(fleets.Filter())
    assert found.state is None


def create(case):
    chosen = fleet_targets.Chooser(case.world.heat, case.door.pool).choose(
        fleet_targets.Wanted(stacks=['s0']), orders.RunOrder(action='BACKUP')
    )
    return case.door.create(
        chosen,
        operations.OperationLimits(),
        orders.RunOrder(action='BACKUP'),
    )


def test_what_follows_on_the_record_does_not_fail_the_creation(case, caplog):
    with mock.patch.object(
        fleets.Fleets, 'forget_surplus', side_effect=KeyError('state')
    ):
        created = create(case)
    assert created.is_leading
    assert 'the next operation retries' in caplog.text


def test_what_cannot_be_withdrawn_is_not_called_a_failure_alone(case):
    case.world.cluster.fail(times=100, method='PUT')
    with (
        mock.patch.object(
            fleets.binding,
            'forget',
            side_effect=errors.Unavailable('Heat is down'),
        ),
        pytest.raises(errors.Failed, match='may start nevertheless') as caught,
    ):
        create(case)
    assert 'Heat is down' in str(caught.value)
    assert 'operation show' in str(caught.value)


def test_an_unreadable_head_is_never_surplus(case):
    case.put(layout.head(case.id), {'id': 'x'})
    door = fleets.Fleets(
        case.world.heat,
        case.world.tools(),
        record_names.Retention(number=0),
    )
    door.forget_surplus()
    assert layout.order(case.id) in case.objects


@pytest.mark.parametrize(
    ('renewal', 'is_held'),
    [
        ({}, False),
        ({'who': 'x', 'at': 'y'}, False),
        ({'version': 2}, True),
        ({'who': 'x', 'at': 1, 'released': True}, False),
        ({'who': 'x', 'at': 1}, True),
    ],
)
def test_a_lease_that_says_nothing_is_not_held(case, renewal, is_held):
    case.world.sleep(3)
    case.put(lease.name(1, layout.leads(case.id)), renewal)
    case.world.cluster.container(simulation.CONTAINER).times[
        lease.name(1, layout.leads(case.id))
    ] = case.world.cluster.now() - 2
    after = case.world.advancer(case.order, 'bob')
    after.step()
    assert after.is_leading is not is_held


@pytest.mark.parametrize(('age', 'warnings'), [(2, 1), (3600, 0)])
def test_a_lease_of_long_ago_is_no_warning(
    case, age, warnings, monkeypatch, caplog
):
    monkeypatch.setattr(clocks, '_warned', {'host'})
    name = lease.name(1, layout.leads(case.id))
    case.put(name, {'who': 'x', 'at': case.world.now + 600})
    container = case.world.cluster.container(simulation.CONTAINER)
    container.times[name] = case.world.cluster.now() - age
    case.world.tools().is_led(case.id)
    assert caplog.text.count('clock of x is 600 s') == warnings


@pytest.mark.parametrize('request_', [[], {}, {'do': 5}, {'version': 2}, 'x'])
def test_an_invalid_request_changes_nothing(case, request_):
    name = layout.new_request(case.id, case.world.now)
    case.put(name, request_)
    case.world.sleep(2)
    found = case.advancer.step()
    assert found.control.handled == ()
    assert found.control.paused_by is None
    assert name not in case.objects


def test_junk_requests_are_followed_a_few_at_a_time(case):
    for n in range(100):
        case.put(f'{layout.requests(case.id)}{n:03}', {'do': 'x'})
    case.world.sleep(2)
    number, _ = case.asked(case.advancer.step)
    assert number < 60


def test_what_lies_below_a_result_hides_no_other_result(case):
    """Ceph's gateway unpacks an archive there, in a single request."""
    mine = layout.result(case.id, 0, 1)
    junk = {f'{mine}/{number:06d}': b'' for number in range(5000)}
    case.objects.update(junk)
    case.put(layout.new_request(case.id, case.world.now), {'do': 'cancel'})
    case.advancer.step()
    control = case.advancer.operation.control
    assert control.stopped is operations.Stop.CANCELLED
    for _ in range(60):
        case.world.sleep(1)
        case.advancer.step()
    assert case.advancer.operation.ended


def test_an_operation_is_created_whatever_a_user_has_written(
    case, monkeypatch, caplog
):
    monkeypatch.setattr(fleets, '_SIZE', 40_000)
    case.door._keep = record_names.Retention(number=2)
    name = '20270115T080100Z-00c0ff{:02}'
    for n in range(10):
        case.put(layout.head(name.format(n)), {'action': 'x' * 20_000})
    before = len(case.world.cluster.seen)
    assert create(case).is_leading
    assert 'takes more than 40000 bytes' in caplog.text
    assert len(case.world.cluster.seen) - before < 25


def test_junk_heads_are_listed_up_to_a_limit(case, monkeypatch):
    monkeypatch.setattr(operation_records, '_READ', 5)
    for n in range(40):
        case.put(layout.head(f'20270115T0900{n:02}Z-00c0ffee'), {'id': 'x'})
    number, _ = case.asked(
        lambda: case.door.history(fleets.Filter(state='complete'))
    )
    assert number <= 10


def test_a_list_of_runs_reads_few_operations(case, monkeypatch):
    monkeypatch.setattr(overview, '_READ', 5)
    head = json.loads(case.objects[layout.head(case.id)])
    for n in range(40):
        other = f'20270115T0900{n:02}Z-00c0ffee'
        case.put(layout.head(other), head | {'id': other})
    book = case.world.tools().records
    wanted = dict.fromkeys(('action', 'since', 'limit'))
    stack_id = case.world.stacks[0].id
    number, _ = case.asked(
        lambda: overview.OperationRuns(book, case.world.heat).history(
            stack_id, lambda run: True, **wanted
        )
    )
    # Each head, and the order of a few.
    assert number < 41 + 10


def test_candidates_without_an_end_are_refused(case):
    name = parse.quote(lease.name(2, layout.leads(case.id)), safe='')
    for n in range(exclusive.CANDIDATES + 1):
        case.put(f'{exclusive.FOLDER}{name}/{n}', {})
    case.advancer.release()
    number, error = case.asked(case.world.advancer(case.order, 'bob').step)
    assert isinstance(error, errors.TooManyObjects)
    assert number < 20
