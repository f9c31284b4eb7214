# SPDX-License-Identifier: Apache-2.0
"""Whatever lies where the records of plans and validations do."""

import contextlib
import dataclasses
import json

import hypothesis
from hypothesis import strategies as st

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.plans import plan_claims
from heat_plugins.validations import validation_ledger
from heat_plugins.validations import validation_operations
from tests.unit import fake_swift
from tests.unit.bad_input import anything

#: A value of any field; some of them are nearly right.
value = st.one_of(
    anything.json_value,
    st.sampled_from(['running', 'complete', 'retry', 'db0', 1, 2**36]),
    st.just('x' * 100_000),
    st.just([{}] * 20_000),
)


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
    return plan_claims.Record(name=name, description='', values={key: values})


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


@hypothesis.given(anything.map_of(version=value, who=value, at=value))
@hypothesis.example({'who': 'a', 'at': 10**400})
@hypothesis.example({'who': 'a', 'at': -1e300})
@hypothesis.example({'who': 'a', 'at': 1, 'version': 2})
@hypothesis.example({'who': 'a', 'at': float('inf')})
def test_a_lock_that_is_invalid_is_held_or_not(values):
    registry = Environments(
        environment('plan-lock:shop', 'heat_plugins_plan_lock', values)
    )
    now = [1_800_000_000.0]

    def sleep(seconds):
        now[0] += seconds

    locks = plan_claims.Claims(registry, clock=lambda: now[0], sleep=sleep)
    with contextlib.suppress(errors.PlanBusy), locks.lock('shop'):
        pass
    assert now[0] < 1_800_000_100


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
def test_a_list_of_validations_has_each_readable_run(content):
    store = fake_swift.Cluster().store()
    container = 'heat-plugins-validations-project-1'
    store.put_container(container, {})
    run_id = '20270115T080000Z-00c0ff'
    store.put_object(container, f'{run_id}/run.json', content)
    ledger = validation_ledger.Ledger(store, pools.Pool(workers=1, wait=0))
    for run in ledger.every():
        assert run.id == run_id
        json.dumps(validation_operations.report(run))
    ledger.tidy(kept=0)
    with contextlib.suppress(errors.Error):
        ledger.stop(run_id)
