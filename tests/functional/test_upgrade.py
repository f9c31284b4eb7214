# SPDX-License-Identifier: Apache-2.0
"""Stacks of Heat's own classes go on under ours, and the other way round."""

import time

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

pytestmark = pytest.mark.long

#: A new engine tells the one before dead after seconds.
CONF = """\
[DEFAULT]
periodic_interval = 5

[heat_plugins]
rescue_interval = 5
"""

#: Under both, whatever they know: a stack of each kind.
KINDS = ('complete', 'waiting', 'going')

MISTRAL = 'workflowv2'

#: Both know this name.
TEMPLATE = base.software(signal_transport='TEMP_URL_SIGNAL')


@pytest.fixture(scope='module')
def changing(request, tmp_path_factory):
    """A cloud, with Heat's own classes so far; and what changes them."""
    conf = tmp_path_factory.mktemp('conf') / 'heat.conf'
    conf.write_text(CONF)
    for cloud in conftest.clouds(
        request, 'upgrade', plugin='none', conf=[conf]
    ):

        def change(plugin, cloud=cloud):
            cloud.up(plugin=plugin, conf=[conf])
            shown = cloud.session().get(
                'orchestration', '/resource_types/OS::Heat::SoftwareDeployment'
            )
            assert shown.ok, shown
            # Ours alone have it.
            ours = 'signal_url_lifetime' in shown.json()['properties']
            assert ours == (plugin != 'none')

        yield cloud, change


@pytest.fixture
def stacks(changing):
    """A stack of each kind, made by the classes that there are now."""
    cloud, _ = changing
    made = {}

    def make():
        session = cloud.session()
        for kind in KINDS:
            made[kind] = base.Stack(session, TEMPLATE, name=kind)
        waiting = {kind: stack.waiting() for kind, stack in made.items()}
        for kind in ('complete', 'going'):
            assert waiting[kind].put(servers.body(greeting='before')) == 201
            made[kind].wait('CREATE_COMPLETE')
        return made, waiting['waiting']

    before = base.Leftovers.of(cloud)
    yield make
    base.purge([*made.values()])
    for name in base.Leftovers.of(cloud).containers:
        # Heat's own classes do not know of it.
        assert name.startswith('heat-plugins-')
        base.delete_container(cloud.session(), name)
    before.hold(cloud)


def _handed(stack, action, before):
    """Wait until an action has been handed to the server, by now's classes."""

    def found():
        now = stack.deployment()
        if now is None or now.status != 'IN_PROGRESS':
            return None
        return now if now.config['id'] != before else None

    handed = base.until(found, 90)
    assert handed.action == action
    return handed


def _updates(stack):
    """Update a stack, and answer in the server's place."""
    before = stack.deployment()
    stack.update(TEMPLATE, who='moon')
    handed = _handed(stack, 'UPDATE', before and before.config['id'])
    assert handed.inputs['who'] == 'moon'
    assert handed.put(servers.body(greeting='after')) == 201
    stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'after'


# Heat looks for the signals of its own itself, also then.
@conftest.trusted
def test_stacks_of_heats_own_classes_go_on_under_ours(changing, stacks):
    _, change = changing
    change('none')
    made, waiting = stacks()
    change(base.ROOT)
    _updates(made['complete'])
    made['going'].delete()
    made['going'].wait('DELETE_COMPLETE')
    # What was in mid-flight is handed out again; the answer to what Heat's
    # own class had handed out is not taken for that of ours.
    assert waiting.put(servers.body(greeting='to heat')) == 201
    again = _handed(made['waiting'], 'CREATE', waiting.config['id'])
    assert again.put(servers.body(greeting='to ours')) == 201
    made['waiting'].wait('CREATE_COMPLETE')
    assert made['waiting'].outputs['deployment_greeting'] == 'to ours'
    _updates(made['waiting'])


def test_stacks_of_ours_go_on_under_heats_own_classes(changing, stacks):
    _, change = changing
    change(base.ROOT)
    made, waiting = stacks()
    change('none')
    _updates(made['complete'])
    made['going'].delete()
    made['going'].wait('DELETE_COMPLETE')
    # What was waiting stays in progress, as Heat has it, until an update.
    waiting.put(servers.body(greeting='late'))
    stack = made['waiting']
    assert stack.status == 'CREATE_IN_PROGRESS'
    stack.update(TEMPLATE)
    again = _handed(stack, 'CREATE', waiting.config['id'])
    # Heat looks at the time, in whole seconds, of what it finds.
    assert again.put(servers.body(greeting='again')) == 201
    stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'again'


@pytest.mark.timeout(300)
def test_nested_by_the_command_groups_go_on_under_heats_own_classes(changing):
    cloud, change = changing
    before = base.Leftovers.of(cloud)
    template = base.group(3, signal_transport='TEMP_URL_SIGNAL')
    change(base.ROOT)
    stack = base.Stack(cloud.session(), template, name='group')

    def given(action, count=3):
        """Wait until the server has an action of each member."""

        def there():
            found = {
                config['id']: config
                for config in stack.metadata()
                if base.value(config, 'deploy_action') == action
            }
            return found if len(found) == count else None

        return base.until(there)

    def answer(configs):
        # Heat looks at the time, in whole seconds, of what it finds.
        time.sleep(1.1)
        for config in configs.values():
            body = servers.body(greeting='hello')
            assert base.put(base.signal_url(config), body) == 201

    try:
        created = given('CREATE')
        answer(created)
        stack.wait('CREATE_COMPLETE')
        nest = ['software', 'deployment', 'group', 'nest']
        assert 'single' in cloud.openstack(*nest, '--dry-run')
        assert not stack.members('group')
        assert 'nested' in cloud.openstack(*nest, '--yes')
        members = {'member0', 'member1', 'member2'}
        assert members <= stack.members('group')
        assert given('CREATE') == created
        change('none')
        stack.update(template, who='moon')
        updated = given('UPDATE')
        assert not updated.keys() & created.keys()
        answer(updated)
        stack.wait('UPDATE_COMPLETE')
        assert stack.members('group') == members
        assert len(base.Leftovers.of(cloud).deployments) == 3
    finally:
        stack.purge()
    after = base.Leftovers.of(cloud)
    assert (after.deployments, after.configs) == ((), ())
    for name in set(after.containers) - set(before.containers):
        base.delete_container(cloud.session(), name)


def _scheduled(month):
    """Return a template of a workflow and its trigger, as both know them."""
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            'workflow': {
                'type': 'OS::Mistral::Workflow',
                'properties': {
                    'type': 'direct',
                    'description': f'for month {month}',
                    'tasks': [{'name': 'task', 'action': 'std.noop'}],
                },
            },
            'trigger': {
                'type': 'OS::Mistral::CronTrigger',
                'properties': {
                    'pattern': f'0 0 1 {month} *',
                    'workflow': {'name': {'get_resource': 'workflow'}},
                },
            },
        },
    }


def _in_mistral(cloud, stack):
    """Return the texts of a stack's workflows, and its triggers' patterns."""
    return [
        one[text]
        for kind, text in (
            ('workflows', 'definition'),
            ('cron_triggers', 'pattern'),
        )
        for one in cloud.session().get(MISTRAL, f'/{kind}').json()[kind]
        if one['name'].startswith(f'{stack.name}-')
    ]


@pytest.mark.timeout(400)
def test_groups_workflows_and_triggers_go_on_in_both_directions(changing):
    cloud, change = changing
    change('none')
    session = cloud.session()
    group = base.group(3)
    members = {'member0', 'member1', 'member2'}
    grouped = base.Stack(session, group, name='group')
    made = [grouped]

    def make():
        stacks = [base.Stack(session, _scheduled(1)) for _ in range(2)]
        made.extend(stacks)
        for stack in (*stacks, grouped):
            stack.wait()
        return stacks

    def go_on(updated, deleted, who, expected):
        grouped.update(group, who=who)
        updated.update(_scheduled(2))
        for stack in (grouped, updated):
            stack.wait('UPDATE_COMPLETE')
        assert grouped.members('group') == expected
        text, pattern = _in_mistral(cloud, updated)
        assert 'for month 2' in text
        assert pattern == '0 0 1 2 *'
        assert len(_in_mistral(cloud, deleted)) == 2
        for stack in (updated, deleted):
            stack.remove()
            assert _in_mistral(cloud, stack) == []

    try:
        heats = make()
        change(base.ROOT)
        helpers = {'before_all_members', 'after_all_members'}
        go_on(*heats, 'moon', members | helpers)
        ours = make()
        change('none')
        go_on(*ours, 'mars', members)
    finally:
        base.purge(made)


@pytest.mark.timeout(360)
def test_a_type_that_heat_lacks_holds_up_its_stack_until_it_is_back(changing):
    cloud, change = changing
    change(base.ROOT)
    template = _scheduled(1)
    template['resources']['run'] = {
        'type': 'OS::Mistral::Execution',
        'properties': {'workflow': {'get_resource': 'workflow'}},
    }
    session = cloud.session()
    updated, deleted = made = [base.Stack(session, template) for _ in range(2)]
    try:
        for stack in made:
            stack.wait('CREATE_COMPLETE')
        change('none')
        for stack in made:
            with pytest.raises(
                base.NotShown, match=r'Execution.*not be found'
            ):
                stack.show()
        path = f'/stacks/{deleted.name}/{deleted.id}'
        assert session.delete('orchestration', path).status == 204
        updated.update(_scheduled(2))
        base.until(lambda: updated.status == 'UPDATE_IN_PROGRESS')
        change(base.ROOT)
        # Heat calls it failed if the engine that ends has it locked.
        assert deleted.status in ('DELETE_IN_PROGRESS', 'DELETE_FAILED')
        updated.updated(_scheduled(2))
        for stack in made:
            stack.delete()
        for stack in made:
            stack.wait('DELETE_COMPLETE')
            assert _in_mistral(cloud, stack) == []
    finally:
        change(base.ROOT)
        base.purge(made)
