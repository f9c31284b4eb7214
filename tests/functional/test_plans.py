# SPDX-License-Identifier: Apache-2.0
"""What plans hold, with a real Swift, Mistral and Heat behind them."""

from collections.abc import Callable, Iterator
from concurrent import futures
import contextlib
import dataclasses
import io
from typing import Any

from keystoneauth1 import session as ks_session
from keystoneauth1.identity import v3
import pytest

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.clients import heat_plans
from heat_plugins.clients import mistral_plans
from heat_plugins.clients import rest
from heat_plugins.clients import swift
from heat_plugins.content import sources
from heat_plugins.content import storage
from heat_plugins.content import tarballs
from heat_plugins.objectstore import stores
from heat_plugins.plans import plan_claims
from heat_plugins.plans import plan_service
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import selection
from heat_plugins.plans.parameters import secrecy
from tests import sample_plan
from tests.functional import base

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

    def plans(self, registry: Any = None) -> plan_service.Plans:
        return plan_service.Plans(
            self.store, registry or self.registry, self.stacks
        )


@pytest.fixture(scope='module')
def user(cloud: base.minicloud_client.Cloud) -> User:
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
def no_plans(user: User) -> Iterator[plan_service.Plans]:
    """The plans, none before and none after."""
    found = user.plans()
    assert found.summaries() == []
    yield found
    for one in found.summaries():
        found.delete(one.name)
    assert user.registry.find() == []


def exported(plans: plan_service.Plans, name: str) -> Any:
    file = io.BytesIO()
    plans.export(name, file)
    file.seek(0)
    return tarballs.read(file)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Call functions at once; return what each returned or raised."""

    def caught(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except errors.Error as error:
            return error

    with futures.ThreadPoolExecutor(len(calls)) as executor:
        return list(executor.map(caught, calls))


@pytest.mark.quick
def test_a_plan_is_made_changed_exported_and_deleted(
    user: User, plans: plan_service.Plans
) -> None:
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
    sent: list[int] = []
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


def test_of_two_who_make_a_plan_at_once_one_is_told(
    user: User, plans: plan_service.Plans
) -> None:
    results = at_once(
        *(
            lambda number=number: user.plans().create(
                'plan', {**FILES, 'who': b'%d' % number}
            )
            for number in range(3)
        )
    )
    [winner] = [
        number
        for number, result in enumerate(results)
        if not isinstance(result, errors.Error)
    ]
    told = [one for one in results if isinstance(one, errors.Error)]
    assert all(isinstance(one, errors.Refused) for one in told), told
    assert plans.read(plans.load('plan'), 'who') == f'{winner}'


def test_changes_at_once_are_all_kept(
    user: User, plans: plan_service.Plans
) -> None:
    plans.create('plan', FILES)

    def change(edit: Callable[[Any], Any]) -> None:
        service = user.plans()
        with service.lock('plan') as plan:
            service.write(plan, edit(plan.environment))

    at_once(
        lambda: user.plans().select('plan', {'environments/one.yaml': True}),
        lambda: user.plans().select('plan', {'environments/two.yaml': True}),
        lambda: change(
            lambda old: secrecy.with_passwords(
                dataclasses.replace(
                    old, passwords={**old.passwords, 'Other': None}
                ),
                {},
            )
        ),
        lambda: change(
            lambda old: dataclasses.replace(old, parameter_defaults={'a': 1})
        ),
    )
    found = plans.load('plan').environment
    assert set(found.enabled) == {
        'environments/one.yaml',
        'environments/two.yaml',
    }
    assert found.parameter_defaults == {'a': 1}
    assert found.passwords.keys() == {'Key', 'Other'}


def test_what_breaks_off_leaves_nothing(
    user: User, plans: plan_service.Plans
) -> None:
    def break_off(done: int, every: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plans.create('plan', FILES, progress=break_off)
    assert user.registry.find() == []
    assert not storage.Container(user.store, 'plan', pools.Pool()).exists()


def test_a_plan_with_a_stack_stays(
    plans: plan_service.Plans, stacks: Callable[..., base.Stack]
) -> None:
    plans.create('plan', FILES)
    stack = stacks({'heat_template_version': '2021-04-16'}, name='plan')
    with pytest.raises(errors.PlanInUse):
        plans.delete('plan')
    stack.wait('CREATE_COMPLETE')
    with pytest.raises(errors.PlanInUse, match='CREATE_COMPLETE'):
        plans.delete('plan')
    stack.purge()
    plans.delete('plan')


def test_a_plan_is_a_copy_of_a_container_that_stays(
    user: User, plans: plan_service.Plans
) -> None:
    user.store.put_container('theirs', {})
    for path, content in FILES.items():
        user.store.put_object('theirs', path, content)
    with pytest.raises(errors.Exists):
        plans.create('theirs', FILES)
    with pytest.raises(errors.NotFound):
        plans.delete('theirs')
    assert len(user.store.list_objects('theirs', '')) == len(FILES)
    theirs = storage.Container(user.store, 'theirs', pools.Pool())
    made = plans.create('ours', sources.from_container(theirs))
    assert made.entries.keys() == FILES.keys()
    plans.delete('ours')
    assert theirs.entries().keys() == FILES.keys()
    theirs.remove()


def test_plans_without_mistral_are_kept_in_swift(user: User) -> None:
    names = plan_claims.Names(user.store)
    results = at_once(*[lambda: user.plans(names).create('plan', FILES)] * 2)
    assert sorted(isinstance(one, errors.Refused) for one in results) == [
        False,
        True,
    ]
    plans = user.plans(names)
    plans.select('plan', {'environments/one.yaml': True})
    assert [one.name for one in plans.summaries()] == ['plan']
    plans.delete('plan')
    assert plans.summaries() == []
    container = f'{plan_claims.CONTAINER}-{user.store.project_id}'
    user.store.delete_container(container)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_plan_from_the_field_works(
    user: User, plans: plan_service.Plans
) -> None:
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
    plan = plans.select('sample', {path: False})
    assert plan.environment == before
    switch_many(plans, plan)


def switch_many(plans: plan_service.Plans, plan: plans.Plan) -> None:
    """Enable as many environments as go together, and disable them again.

    Each by itself is what the unit tests of the same plan enable.
    """
    offered = plans.capabilities(plan)
    before = wanted = plan.environment
    batch = []
    for path, one in sorted(offered.environments.items()):
        if (
            one.present
            and not one.enabled
            and path != sample_plan.NO_ENVIRONMENT
        ):
            with contextlib.suppress(errors.Invalid):
                wanted = selection.select(
                    wanted, offered, {path: True}, requirements=True
                )
                batch.append(path)
    assert len(batch) > 100
    found = plans.select(
        'sample', dict.fromkeys(batch, True), requirements=True
    )
    added = {*found.environment.enabled} - {*before.enabled}
    assert added == {*wanted.enabled} - {*before.enabled}
    found = plans.select('sample', dict.fromkeys(added, False))
    assert found.environment == before
