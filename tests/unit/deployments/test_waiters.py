# SPDX-License-Identifier: Apache-2.0
"""One action of one deployment, from its delivery to its end."""

import dataclasses

import pytest

from heat_plugins import errors
from heat_plugins.deployments import failures
from heat_plugins.deployments import histories
from heat_plugins.signals import signal_names
from tests.unit.deployments import fake_engine


@pytest.fixture
def cloud(monkeypatch):
    return fake_engine.Cloud(monkeypatch)


def test_an_action_ends_with_the_signal_of_its_server(cloud):
    waiter = cloud.waiter()
    assert not waiter.begin()
    assert not cloud.ends(waiter)
    cloud.answer(answer='42')
    assert cloud.ends(waiter)
    assert cloud.row.outputs['answer'] == '42'
    assert cloud.signals.objects == {}
    assert len(cloud.signals.watcher) == 0


def test_without_a_signal_to_come_it_has_ended_at_once(monkeypatch):
    cloud = fake_engine.Cloud(monkeypatch, transport='NO_SIGNAL')
    assert cloud.waiter().begin()
    assert cloud.row.status == 'COMPLETE'


def test_what_the_database_may_have_lost_is_delivered_by_another_name(cloud):
    cloud.rows.away = [True, False]
    waiter = cloud.waiter()
    assert not waiter.begin()
    assert waiter.pause
    assert not cloud.ends(waiter, 3)
    assert waiter.pause is None
    assert list(cloud.rows.configs) == [cloud.row.config.id]
    cloud.answer()
    assert cloud.ends(waiter)


def test_what_was_written_though_the_database_failed_is_withdrawn(cloud):
    cloud.rows.away = [True] * 100
    waiter = cloud.waiter()
    waiter.begin()
    waiter.withdraw()
    assert cloud.rows.there == {}
    assert cloud.rows.configs == {}


def test_an_engine_that_settles_first_has_the_say(cloud):
    waiter = cloud.waiter()
    waiter.begin()
    cloud.answer(deploy_status_code=1)
    row = cloud.row
    cloud.rows.there[row.id] = dataclasses.replace(row, status='COMPLETE')
    assert cloud.ends(waiter)


def test_another_action_on_the_server_ends_the_wait(cloud):
    waiter = cloud.waiter()
    waiter.begin()
    cloud.waiter('UPDATE').begin()
    assert 'Another process withdrew' in cloud.failure(waiter)


def test_a_cancelled_action_leaves_nothing_on_its_server(cloud):
    waiter = cloud.waiter()
    waiter.begin()
    name = signal_names.signal(cloud.row.id, cloud.row.config.id)
    cloud.stack.cancelled = True
    assert 'CREATE was cancelled before server web' in cloud.failure(waiter)
    assert cloud.signals.stopped == [name]
    assert cloud.rows.there == {}
    assert cloud.rows.configs == {}
    # What it may have done is to be undone.
    assert cloud.resource.kept[histories.UNDO_KEY] == 'CREATE'


def test_time_is_up_with_where_to_look(cloud):
    waiter = cloud.waiter(timeout=60)
    waiter.begin()
    told = cloud.failure(waiter)
    assert told.startswith(
        'Error: Server web has not signalled CREATE within 60 s'
    )
    assert cloud.row.config.id in told


def test_a_signal_that_the_listing_lacks_is_found_at_the_end(cloud):
    waiter = cloud.waiter(timeout=40)
    waiter.begin()
    cloud.signals.names = lambda wanted: set()
    cloud.answer()
    assert cloud.ends(waiter, 40)


def test_a_server_that_never_starts_is_told_of_early(cloud):
    cloud.template.tool = 'pupet'
    waiter = cloud.waiter(delivery_timeout=20)
    waiter.begin()
    assert any('Unknown hook' in each for each in cloud.resource.told)
    told = cloud.failure(waiter, 30)
    assert 'has not reported within 20 s' in told
    assert told.endswith('heat-agents have no hook "pupet"')


def test_without_a_transport_nothing_is_delivered(cloud):
    cloud.template.missing = [failures.NoAnswer('none')]
    with pytest.raises(failures.NoAnswer):
        cloud.waiter().begin()
    assert cloud.rows.configs == {}


def test_over_the_budget_nobody_could_answer(cloud):
    cloud.template.missing = [errors.Unavailable('503')] * 100
    waiter = cloud.waiter()
    waiter.begin()
    told = cloud.failure(waiter)
    assert told.startswith('NoAnswer: heat-engine could not deliver CREATE')
    assert cloud.row is None


def test_a_store_that_fails_to_list_is_ridden_out(cloud):
    waiter = cloud.waiter()
    waiter.begin()
    cloud.signals.is_away = True
    assert not cloud.ends(waiter, 20)
    cloud.signals.is_away = False
    cloud.answer()
    assert cloud.ends(waiter)


@pytest.mark.parametrize('tool', ['puppet', 'script'])
def test_a_changed_key_has_delivered_again_what_does_no_harm(cloud, tool):
    cloud.template.tool = tool
    waiter = cloud.waiter()
    waiter.begin()
    before = cloud.row.config.id
    cloud.signals.changed_keys.add('first')
    cloud.template.key = 'second'
    assert not cloud.ends(waiter)
    (told,) = cloud.resource.told
    assert ('delivers the action again' in told) == (tool == 'puppet')
    assert (cloud.row.config.id == before) == (tool == 'script')
    cloud.answer()
    assert cloud.ends(waiter)
