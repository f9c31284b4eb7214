# SPDX-License-Identifier: Apache-2.0
"""Stacks of Heat's own classes go on under ours, and the other way round."""

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import flows

pytestmark = pytest.mark.long

#: Both know this name.
TEMPLATE = base.software(signal_transport='TEMP_URL_SIGNAL')

MEMBERS = {'member0', 'member1', 'member2'}


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
    handed.answer(greeting='after')
    stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'after'


def _in_mistral(cloud, stack):
    """Return the texts of a stack's workflows, and its triggers' patterns."""
    return [
        one[text]
        for kind, text in (
            ('workflows', 'definition'),
            ('cron_triggers', 'pattern'),
        )
        for one in cloud.session().get(flows.MISTRAL, f'/{kind}').json()[kind]
        if one['name'].startswith(f'{stack.name}-')
    ]


def _given(stack):
    """Return the IDs of the three configs that a server is given."""
    found = base.until(lambda: len(each := stack.metadata()) == 3 and each)
    return {config['id'] for config in found}


class Shop:
    """Stacks that the classes which there are now have made."""

    def __init__(self, cloud, made):
        self._cloud = cloud
        session = cloud.session()
        software = [base.Stack(session, TEMPLATE) for _ in range(3)]
        self._complete, self._going, self.waiting = software
        self._flows = [
            base.Stack(session, flows.scheduled(1)) for _ in range(2)
        ]
        made += [*software, *self._flows]
        first, second, self.handed = [each.waiting() for each in software]
        for handed in (first, second):
            handed.answer(greeting='before')
        for stack in (self._complete, self._going, *self._flows):
            stack.wait('CREATE_COMPLETE')

    def goes_on(self):
        """Hold that what waits for nothing is updated and deleted."""
        _updates(self._complete)
        self._going.remove()
        updated, deleted = self._flows
        updated.updated(flows.scheduled(2))
        text, pattern = _in_mistral(self._cloud, updated)
        assert 'for month 2' in text
        assert pattern == '0 0 1 2 *'
        assert len(_in_mistral(self._cloud, deleted)) == 2
        for stack in self._flows:
            stack.remove()
            assert _in_mistral(self._cloud, stack) == []


# Heat looks for the signals of its own itself, also then.
@conftest.trusted
def test_stacks_go_on_in_both_directions(alone):
    cloud, session, made = alone, alone.session(), []
    before = base.Leftovers.of(cloud)

    def change(plugin):
        cloud.again(plugin=plugin)
        assert base.has_ours(cloud) == (plugin != 'none')

    change('none')
    try:
        group = base.group(3)
        grouped = base.Stack(session, group)
        made.append(grouped)
        shop = Shop(cloud, made)
        grouped.wait('CREATE_COMPLETE')

        change(base.ROOT)
        shop.goes_on()
        grouped.updated(group, who='moon')
        helpers = {'before_all_members', 'after_all_members'}
        assert grouped.members('group') == MEMBERS | helpers
        # What was in mid-flight is handed out again; the answer to what Heat's
        # own class had handed out is not taken for that of ours.
        stack, handed = shop.waiting, shop.handed
        handed.answer(greeting='to heat')
        again = _handed(stack, 'CREATE', handed.config['id'])
        again.answer(greeting='to ours')
        stack.wait('CREATE_COMPLETE')
        assert stack.outputs['deployment_greeting'] == 'to ours'
        _updates(stack)

        # A command nests a group that is one resource, and runs nothing.
        single = base.Stack(session, group).created()
        made.append(single)
        given = _given(single)
        nest = 'software', 'deployment', 'group', 'nest'
        assert 'single' in cloud.openstack(*nest, '--dry-run')
        assert not single.members('group')
        assert 'nested' in cloud.openstack(*nest, '--yes')
        assert single.members('group') >= MEMBERS
        assert _given(single) == given

        shop = Shop(cloud, made)
        # Of a type that Heat lacks.
        run = flows.scheduled(1)
        run['resources']['run'] = {
            'type': 'OS::Mistral::Execution',
            'properties': {'workflow': {'get_resource': 'workflow'}},
        }
        updated, deleted = lacking = [
            base.Stack(session, run) for _ in range(2)
        ]
        made += lacking
        for stack in lacking:
            stack.wait('CREATE_COMPLETE')

        change('none')
        shop.goes_on()
        for stack in (grouped, single):
            stack.updated(group, who='mars')
            assert stack.members('group') == MEMBERS
        assert not _given(single) & given
        # What was waiting stays in progress, as Heat has it, until an update.
        stack, handed = shop.waiting, shop.handed
        handed.put(base.body(greeting='late'))
        assert stack.status == 'CREATE_IN_PROGRESS'
        stack.update(TEMPLATE)
        again = _handed(stack, 'CREATE', handed.config['id'])
        again.answer(greeting='again')
        stack.wait('UPDATE_COMPLETE')
        assert stack.outputs['deployment_greeting'] == 'again'
        for stack in lacking:
            with pytest.raises(
                base.NotShown, match=r'Execution.*not be found'
            ):
                stack.show()
        path = f'/stacks/{deleted.name}/{deleted.id}'
        assert session.delete('orchestration', path).status == 204
        updated.update(flows.scheduled(2))
        base.until(lambda: updated.status == 'UPDATE_IN_PROGRESS')

        change(base.ROOT)
        # Heat calls it failed if the engine that ends has it locked.
        assert deleted.status in ('DELETE_IN_PROGRESS', 'DELETE_FAILED')
        updated.updated(flows.scheduled(2))
        for stack in lacking:
            stack.remove()
            assert _in_mistral(cloud, stack) == []
    finally:
        base.purge(made)
    left = base.Leftovers.of(cloud).containers
    for name in set(left) - set(before.containers):
        # Heat's own classes do not know of it.
        assert name.startswith('heat-plugins-')
        base.delete_container(session, name)
    before.hold(cloud)
