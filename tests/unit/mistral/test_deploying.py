# SPDX-License-Identifier: Apache-2.0
"""Bringing definitions to Mistral, changing and removing them."""

import dataclasses
import uuid

import pytest

from heat_plugins import errors
from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import definition_records
from heat_plugins.mistral.definitions import publishing
from tests.unit.mistral import fake_service

A = 'a: {tasks: {t: {action: std.noop}}}\n'
B = 'b: {tasks: {t: {workflow: a}}}\n'
C = 'c: {tasks: {t: {action: std.noop}}}\n'
BOOK = (
    'name: x\nactions: {act: {base: std.noop}}\n'
    'workflows:\n  a: {tasks: {t: {action: act}}}\n'
)


def wanted(text, explicit=None):
    return definition_records.WantedDefinition.of(
        definition_reading.read(text), 's', 'r', explicit
    )


class House:
    """A resource as far as its record goes."""

    def __init__(self, retry_seconds=0):
        self.service = fake_service.FakeService()
        self.record = definition_records.DefinitionRecord(mark='0123456789ab')
        self.mine = ()
        self.deployer = publishing.Publisher(
            self.service, self.save, retry_seconds, lambda names: self.mine
        )

    def save(self, record):
        # As a database would.
        self.record = definition_records.DefinitionRecord.read(record.write())
        assert self.record == record

    def bring(self, text, explicit=None):
        self.service.calls.clear()
        self.deployer.bring(self.record, wanted(text, explicit))

    def fail(self, text, *faults):
        self.service.faults = list(faults)
        with pytest.raises(errors.ServiceError) as caught:
            self.bring(text)
        self.service.faults = []
        return str(caught.value)

    def remove(self):
        self.save(self.deployer.sweep(self.record.dropped()))


@pytest.fixture
def house():
    return House()


def fault(method, done=False, error=None):
    return method, error or fake_service.unavailable(), done


def test_workflows_are_made_at_one_go(house):
    house.bring(A + B)
    assert house.record.names == {'a': 's.r.a', 'b': 's.r.b'}
    assert set(house.service.workflows) == {'s.r.a', 's.r.b'}
    assert house.service.methods() == ['find', 'create']
    assert house.record.left == ()


def test_update_adds_changes_and_drops(house):
    house.bring(A + B)
    house.bring(A.replace('noop', 'echo') + C)
    assert house.record.names == {'a': 's.r.a', 'c': 's.r.c'}
    assert set(house.service.workflows) == {'s.r.a', 's.r.c'}
    assert 'echo' in house.service.workflows['s.r.a']
    assert house.record.former == ('s.r.b',)


def test_other_name_is_an_update_too(house):
    house.bring(A)
    house.bring(A, 'mine')
    assert set(house.service.workflows) == {'mine'}


def test_everything_goes(house):
    house.bring(A + B)
    house.remove()
    assert house.service.workflows == {}
    assert house.record.names == {}
    assert set(house.record.all_names) == {'s.r.a', 's.r.b'}


def test_dropped_workflow_stays_while_an_execution_may_call_it(house):
    house.bring(A + B)
    house.service.add('s.r.b')
    house.bring(B)
    assert set(house.service.workflows) == {'s.r.a', 's.r.b'}
    assert house.record.left == ('s.r.a',)
    house.service.rows[0]['state'] = 'SUCCESS'
    house.bring(B)
    assert set(house.service.workflows) == {'s.r.b'}
    assert house.record.left == ()


def test_dropped_workflow_may_come_back(house):
    house.bring(A + B)
    house.service.add('s.r.b')
    house.bring(B)
    house.bring(A + B)
    assert house.record.left == ()
    assert set(house.service.workflows) == {'s.r.a', 's.r.b'}


def test_name_of_a_public_workflow_is_refused(house):
    house.service.public.add('mine')
    with pytest.raises(publishing.ConflictError, match='a public workflow'):
        house.bring(A, 'mine')


def test_what_cannot_be_undone_is_written_down_and_goes_later(house):
    house.fail(A, fault('create', done=True), fault('delete'))
    assert house.service.workflows
    assert house.record.left == ('s.r.a',)
    house.remove()
    assert house.service.workflows == {}


def test_failed_update_leaves_what_waits_to_be_dropped(house):
    house.bring(A + B)
    house.service.add('s.r.b')
    house.bring(B)
    house.fail(B + C, fault('update'))
    assert set(house.service.workflows) == {'s.r.a', 's.r.b'}
    assert house.record.left == ('s.r.a',)


def test_drop_that_fails_is_made_up_for(house):
    house.bring(A + B)
    house.service.faults = [fault('delete')]
    house.bring(B)
    assert house.record.left == ('s.r.a',)
    house.bring(B)
    assert set(house.service.workflows) == {'s.r.b'}


@pytest.mark.parametrize('method', ['find', 'create', 'update'])
@pytest.mark.parametrize('done', [True, False])
def test_passing_errors_are_ridden_out(method, done):
    house = House(retry_seconds=5)
    house.bring(A)
    house.service.faults = [fault(method, done)]
    house.bring(A + B)
    assert house.service.faults == []
    assert set(house.service.workflows) == {'s.r.a', 's.r.b'}


@pytest.mark.parametrize('done', [True, False])
def test_passing_errors_are_ridden_out_for_workbooks(done):
    house = House(retry_seconds=5)
    house.service.faults = [fault('create_book', done), fault('has_book')]
    house.bring(BOOK)
    assert set(house.service.books) == {'s.r'}
    assert house.record.left == ()


def test_other_errors_are_not():
    house = House(retry_seconds=60)
    house.fail(A, fault('create', error=errors.ServiceError('no')))
    assert house.service.methods().count('create') == 1


def test_workbook_goes_with_its_workflows_and_actions(house):
    house.bring(BOOK)
    assert set(house.service.workflows) == {'s.r.a'}
    assert house.service.actions == {'s.r.act'}
    house.remove()
    assert not house.service.workflows
    assert not house.service.actions
    assert not house.service.books


def test_workbook_becomes_workflows_and_back(house):
    house.bring(BOOK)
    house.bring(A + B)
    assert not house.service.books
    assert not house.service.actions
    assert set(house.service.workflows) == {'s.r.a', 's.r.b'}
    house.bring(BOOK)
    assert set(house.service.workflows) == {'s.r.a'}
    assert set(house.service.books) == {'s.r'}


def test_workbook_that_fails_leaves_nothing(house):
    house.fail(BOOK, fault('create_book', done=True))
    assert not house.service.workflows
    assert not house.service.actions
    assert not house.service.books


def test_workbook_of_somebody_else_is_refused(house):
    house.service.books['s.r'] = 'theirs'
    with pytest.raises(publishing.ConflictError, match='a workbook'):
        house.bring(BOOK)
    assert house.service.books == {'s.r': 'theirs'}


def test_executions_are_known_by_their_ids(house):
    ids = [house.record.execution_id() for _ in range(3)]
    assert len(set(ids)) == 3
    assert all(house.record.began(one) for one in ids)
    assert all(str(uuid.UUID(one)) == one for one in ids)
    assert not house.record.began(str(uuid.uuid4()))
    unmarked = dataclasses.replace(house.record, mark='')
    assert not unmarked.began(str(uuid.uuid4()))


def test_record_of_a_later_release_is_read():
    assert (
        definition_records.DefinitionRecord.read(
            '{"names": {}, "new": 1}'
        ).names
        == {}
    )
    assert (
        definition_records.DefinitionRecord.read(None)
        == definition_records.DefinitionRecord()
    )


def test_workflow_that_a_trigger_of_others_runs_is_not_dropped(house):
    house.bring(A + B)
    house.service.clock = {'weekly': 's.r.b'}
    before = dict(house.service.workflows)
    said = house.fail(A)
    assert '"weekly" (s.r.b)' in said
    assert house.service.workflows == before
    assert house.record.names == {'a': 's.r.a', 'b': 's.r.b'}
    assert house.record.left == ()


def test_one_that_a_trigger_of_the_stack_runs_goes_later(house):
    house.bring(A + B)
    house.service.clock = {'ours': 's.r.b'}
    house.mine = {'ours'}
    house.bring(A)
    assert house.record.left == ('s.r.b',)
    assert 's.r.b' in house.service.workflows
    house.service.clock = {}
    house.deployer.tidy(house.record)
    assert house.record.left == ()
    assert set(house.service.workflows) == {'s.r.a'}
