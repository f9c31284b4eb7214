# SPDX-License-Identifier: Apache-2.0
"""Names are kept in the object store where there is no Mistral."""

import pytest

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.plans import plan_claims
from heat_plugins.plans import plan_service
from tests.unit import fake_swift
from tests.unit.plans import fake_heat
from tests.unit.plans import fakes


def record(name, **values):
    return plan_claims.Record(name=name, description='é', values=values)


@pytest.fixture(params=[fake_swift.Cluster, fake_swift.ceph])
def store(request):
    return request.param().store()


@pytest.fixture
def names(store):
    return plan_claims.Names(store, pools.Pool(wait=0))


def test_a_name_is_taken_and_given_back_once(store, names):
    assert names.find() == []
    assert names.get('b') is None
    assert names.create(record('b', x=1))
    assert not names.create(record('b', x=2))
    assert names.get('b') == record('b', x=1)
    for name in ('plan-lock:a', 'a'):
        names.create(record(name))
    found = [one.name for one in names.find()]
    assert found == ['a', 'b', 'plan-lock:a']
    assert names.delete('a')
    assert not names.delete('a')
    for body in (b'', b'[]', b'{"values": 1}', b'x' * 70000):
        store.put_object(f'{plan_claims.CONTAINER}-project-1', 'b', body)
        with pytest.raises(errors.ServiceError, match='delete it'):
            names.get('b')


def test_a_plan_keeps_its_record_and_a_lock_keeps_others_out(store, names):
    slept = []
    plans = plan_service.Plans(
        store,
        names,
        fake_heat.Heat(),
        clock=lambda: 1e9 + len(slept),
        sleep=slept.append,
    )
    plans.create('plan', fakes.content())
    before = names.get('plan')
    with pytest.raises(errors.Exists):
        plans.create('plan', fakes.content())
    assert names.get('plan') == before
    with plans.lock('plan'), pytest.raises(errors.PlanBusy):
        plans.delete('plan')
    plans.delete('plan')
    assert names.find() == []
