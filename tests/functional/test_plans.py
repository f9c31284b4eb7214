# SPDX-License-Identifier: Apache-2.0
"""What plans hold, with a real Swift, Mistral and Heat behind them."""

import dataclasses
import io

from keystoneauth1 import session as ks_session
from keystoneauth1.identity import v3
import pytest

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.clients import heat_plans
from heat_plugins.clients import mistral_plans
from heat_plugins.clients import rest
from heat_plugins.clients import swift
from heat_plugins.content import storage
from heat_plugins.content import tarballs
from heat_plugins.objectstore import stores
from heat_plugins.plans import plan_claims
from heat_plugins.plans import plan_service
from tests import sample_plan

TEMPLATE = b'heat_template_version: 2021-04-16\n'

FILES = {
    'plan-environment.yaml': b'template: root.yaml\npasswords: {Key: null}\n',
    'root.yaml': TEMPLATE + b'resources: {a: {type: n/node.yaml}}\n',
    'n/node.yaml': TEMPLATE + b'outputs: {a: {value: {get_file: ../a b}}}\n',
    'a b': 'é % ?\n'.encode(),
    'empty': b'',
    'environments/one.yaml': b'parameter_defaults: {}\n',
    'environments/two.yaml': b'parameter_defaults: {}\n',
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class User:
    """What a user has of a cloud."""

    store: stores.ObjectStore
    registry: mistral_plans.MistralRegistry
    stacks: heat_plans.PlanStacks

    def plans(self, registry=None):
        return plan_service.Plans(
            self.store, registry or self.registry, self.stacks
        )


@pytest.fixture(scope='module')
def user(cloud):
    env = cloud.env()
    session = ks_session.Session(
        auth=v3.Password(
            auth_url=env['OS_AUTH_URL'],
            username=env['OS_USERNAME'],
            password=env['OS_PASSWORD'],
            project_name=env['OS_PROJECT_NAME'],
            user_domain_id='default',
            project_domain_id='default',
        ),
        verify=env.get('OS_CACERT') or True,
    )
    reached = rest.Cloud(session)
    return User(
        store=swift.connect(reached),
        registry=mistral_plans.MistralRegistry(reached),
        stacks=heat_plans.PlanStacks(reached),
    )


@pytest.fixture(name='plans')
def no_plans(user):
    """The plans, none before and none after."""
    found = user.plans()
    assert found.summaries() == []
    yield found
    for one in found.summaries():
        found.delete(one.name)
    assert user.registry.find() == []


def exported(plans, name):
    file = io.BytesIO()
    plans.export(name, file)
    file.seek(0)
    return tarballs.read(file)


@pytest.mark.quick
def test_a_plan_is_made_changed_exported_and_deleted(user, plans):
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
    user.stacks.validate(resolved)

    files = {**FILES, 'a b': b'other', 'new': b''}
    with pytest.raises(errors.Invalid, match='Cannot delete empty'):
        plans.update('plan', files, delete=['empty'])
    assert plans.load('plan') == made
    sent = []
    plans.update(
        'plan', files, progress=lambda done, every: sent.append(every)
    )
    assert sent == [2, 2], 'files were sent that had not changed'
    changed = plans.update('plan', {}, delete=['empty', 'new'])
    assert changed.entries.keys() == FILES.keys() - {'empty'}

    content = exported(plans, 'plan')
    assert content.keys() == changed.entries.keys()
    secret = changed.environment.passwords['Key']
    assert secret.encode() not in b''.join(content.values())
    copy = plans.create('copy', content)
    assert copy.environment.passwords['Key'] not in (None, secret)

    plans.delete('plan')
    assert [one.name for one in plans.summaries()] == ['copy']
    with pytest.raises(errors.NotFound):
        plans.load('plan')
    assert not storage.Container(user.store, 'plan', pools.Pool()).exists()


def test_plans_without_mistral_are_kept_in_swift(user):
    names = plan_claims.Names(user.store)
    plans = user.plans(names)
    plans.create('plan', FILES)
    with pytest.raises(errors.Refused):
        user.plans(names).create('plan', FILES)
    plans.select('plan', {'environments/one.yaml': True})
    assert [one.name for one in plans.summaries()] == ['plan']
    plans.delete('plan')
    assert plans.summaries() == []
    container = f'{plan_claims.CONTAINER}-{user.store.project_id}'
    user.store.delete_container(container)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_plan_from_the_field_works(user, plans):
    plan = plans.create('sample', sample_plan.content(), render=True)
    assert len(plan.entries) == 1092
    found = plans.capabilities(plan)
    assert len(found.warnings) == 3

    path = 'environments/network-isolation.yaml'
    chosen = plans.select('sample', {path: True}, requirements=True)
    assert path in chosen.environment.enabled
    resolved = plans.resolve(chosen)
    assert resolved.warnings == ()
    # It is larger than Heat takes by default, as it was written.
    validated = user.stacks.validate(resolved)
    assert 'ControllerCount' in validated['Parameters']

    before = plan.environment
    assert plans.select('sample', {path: False}).environment == before
