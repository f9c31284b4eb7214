# SPDX-License-Identifier: Apache-2.0
"""What plans hold, with a real Swift, Mistral and Heat behind them."""

import io

import pytest

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.clients import heat_plans
from heat_plugins.clients import mistral_plans
from heat_plugins.clients import swift
from heat_plugins.content import storage
from heat_plugins.content import tarballs
from heat_plugins.plans import plan_service
from heat_plugins.plans.content import selection
from tests import sample_plan
from tests.functional import running

TEMPLATE = b'heat_template_version: 2021-04-16\n'

FILES = {
    'plan-environment.yaml': b'template: root.yaml\npasswords: {Key: null}\n',
    'root.yaml': TEMPLATE + b'resources: {a: {type: n/node.yaml}}\n',
    'n/node.yaml': TEMPLATE + b'outputs: {a: {value: {get_file: ../a b}}}\n',
    'a b': 'é % ?\n'.encode(),
    'empty': b'',
}


@pytest.fixture(name='plans')
def no_plans(cloud):
    """The plans, none before and none after."""
    reached = running.logged_in(cloud)
    registry = mistral_plans.MistralRegistry(reached)
    found = plan_service.Plans(
        swift.connect(reached), registry, heat_plans.PlanStacks(reached)
    )
    assert found.summaries() == []
    yield found
    for one in found.summaries():
        found.delete(one.name)
    assert registry.find() == []


@pytest.mark.quick
def test_a_plan_is_made_changed_exported_and_deleted(plans):
    made = plans.create('plan', FILES, description='é')
    assert made.entries.keys() == FILES.keys()
    assert plans.load('plan') == made
    [found] = plans.summaries()
    assert (found.name, found.description) == ('plan', 'é')

    resolved = plans.resolve(made)
    assert resolved.files['a b'] == 'é % ?\n'
    assert set(resolved.files) == {
        'n/node.yaml',
        'a b',
        'plan-environment.yaml#passwords',
    }
    plans.stacks.validate(resolved)

    files = {**FILES, 'a b': b'other', 'new': b''}
    sent = []
    plans.update(
        'plan', files, progress=lambda done, every: sent.append(every)
    )
    assert sent == [2, 2], 'files were sent that had not changed'
    changed = plans.update('plan', {}, delete=['empty', 'new'])
    assert changed.entries.keys() == FILES.keys() - {'empty'}

    file = io.BytesIO()
    plans.export('plan', file)
    file.seek(0)
    content = tarballs.read(file)
    assert content.keys() == changed.entries.keys()
    secret = changed.environment.passwords['Key']
    assert secret.encode() not in b''.join(content.values())
    copy = plans.create('copy', content)
    assert copy.environment.passwords['Key'] not in (None, secret)

    plans.delete('plan')
    assert [one.name for one in plans.summaries()] == ['copy']
    with pytest.raises(errors.NotFound):
        plans.load('plan')
    assert not storage.Container(plans.store, 'plan', pools.Pool()).exists()


@pytest.mark.long
def test_a_plan_from_the_field_works(plans):
    plan = plans.create('sample', sample_plan.content(), render=True)
    assert len(plan.entries) == 1092
    offered = plans.capabilities(plan)
    assert len(offered.groups) - 1 == 33
    lost = 'environments/containers-default-parameters.yaml'
    assert len(offered.warnings) == 3
    assert lost in offered.warnings[0]
    roles = [role.name for role in plans.roles(plan)]
    assert roles[:2] == ['Controller', 'Compute']
    before = plan.environment
    tried = 0
    for path, one in offered.environments.items():
        if one.enabled or not one.present:
            continue
        after = selection.select(
            before, offered, {path: True}, requirements=True
        )
        assert path in after.enabled
        off = dict.fromkeys({*after.enabled} - {*before.enabled}, False)
        assert selection.select(after, offered, off) == before
        tried += 1
    assert tried == 200
    # It is larger than Heat takes by default, as it was written.
    path = 'environments/network-isolation.yaml'
    chosen = plans.select('sample', {path: True}, requirements=True)
    found = plans.resolve(chosen)
    assert found.warnings == ()
    validated = plans.stacks.validate(found)
    assert 'ControllerCount' in validated['Parameters']
    # A broken reference of an environment is a warning.
    path = 'environments/storage/cinder-netapp-config.yaml'
    [missing] = plans.resolve(plans.select('sample', {path: True})).warnings
    assert f'{path} refers to environments/puppet/services/' in missing
