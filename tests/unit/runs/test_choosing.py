# SPDX-License-Identifier: Apache-2.0
"""Which deployments stacks have, and which of them are targets of a run."""

import dataclasses

import pytest
import testtools

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.runs.targets import selecting
from tests.unit.runs import fake_heat

FRONT = {'role': 'web', 'tier': 'front'}
SERVERS = {f'n{number}': f'server-{number}' for number in range(6)}


@pytest.fixture
def heat():
    heat = fake_heat.Heat()
    heat.root = heat.add_stack('s0')
    heat.group = heat.add_group(heat.root, 'fleet', SERVERS)
    heat.asked.clear()
    return heat


def change(heat, *names, inputs=(), **values):
    """Let servers have been given something else.

    :param inputs: the values that differ, by name.
    :param values: of the config.
    """
    for name in names:
        row = heat.rows[heat.group[name].id]
        changed = [
            each | {'value': dict(inputs).get(each['name'], each['value'])}
            for each in row.config.inputs
        ]
        config = dataclasses.replace(row.config, inputs=changed, **values)
        heat.rows[row.id] = dataclasses.replace(row, config=config)


def without_backup(heat, *names):
    """Let servers have been given a config without an action."""
    first = fake_heat.COMPONENT['configs'][:1]
    change(heat, *names, config={'configs': first})


def choose(heat, action='BACKUP', inputs=None, **wanted):
    given = {'stacks': ['s0'], 'inputs': inputs or {}, **wanted}
    order = ordering.Start(run='', action=action, **given)
    return selecting.Chooser(heat).choose(order)


def test_each_target_has_its_own_values(heat):
    for name in SERVERS:
        change(heat, name, inputs={'database': f'db of {name}'})
    chosen = choose(heat)
    assert len(set(chosen.variants)) == 1
    found = {e.resource: e.current['database'] for e in chosen.targets}
    assert found == {f'fleet.{name}': f'db of {name}' for name in SERVERS}


@pytest.mark.parametrize(
    ('wanted', 'said'),
    [
        ({'action': 'BAKCUP'}, 'did you mean "BACKUP"'),
        ({'inputs': {'levle': 9}}, 'did you mean "level"'),
        ({'inputs': {'level': 'x'}}, 'must be a number'),
    ],
)
def test_a_mistake_is_told_before_anything_starts(heat, wanted, said):
    with pytest.raises(errors.Error, match=said):
        choose(heat, **wanted)


def test_what_lacks_the_action_is_left_out(heat):
    without_backup(heat, 'n2', 'n5')
    chosen = choose(heat)
    left_out = {each['resource']: each['reason'] for each in chosen.left_out}
    reason = 'it has no action BACKUP (it has: none)'
    assert left_out == {'fleet.n2': reason, 'fleet.n5': reason}
    assert len(chosen.targets) == 4
    names = ['fleet', 'fleet.n2', 'gone', 'gone*']
    assert choose(heat, resources=names).unmet == ['fleet.n2', 'gone']
    without_backup(heat, *SERVERS)
    with pytest.raises(errors.NotFound, match='only Heat runs CREATE'):
        choose(heat, 'CREATE')


def test_what_has_no_config_now_is_no_target(heat):
    del heat.rows[heat.group['n4'].id]
    targets = {each.resource for each in choose(heat).targets}
    assert targets == {f'fleet.{name}' for name in SERVERS} - {'fleet.n4'}


def test_a_resource_stands_for_what_it_contains(heat):
    for n in range(2):
        nested = heat.add_stack(f'nested{n}', heat.root.id)
        place = 'OS::Heat::Stack', nested.id, nested.id
        heat.add_resource(heat.root, f'tier{n}', *place)
        heat.add_deployment(nested)
    for wanted, expected in (
        ('tier1', ['tier1.db']),
        ('tier*', ['tier0.db', 'tier1.db']),
        (nested.id, ['tier1.db']),
        (heat.group['n3'].id, ['fleet.n3']),
    ):
        chosen = choose(heat, resources=[wanted])
        assert [each.resource for each in chosen.targets] == expected


@pytest.mark.parametrize(
    ('wanted', 'expected'),
    [
        ({'stacks': ['s1']}, ['s1']),
        ({'tags': ['prod']}, ['s2']),
        ({'stacks': ['s1'], 'tags': ['prod']}, ['s1', 's2']),
        ({}, ['s1', 's2']),
    ],
)
def test_only_where_no_stack_is_named_all_stacks_are_meant(
    heat, wanted, expected
):
    for name in 's1', 's2':
        heat.add_deployment(heat.add_stack(name))
    heat.tags[heat.stack('s2').id] = ['prod']
    chosen = choose(heat, resources=['db'], **{'stacks': [], **wanted})
    assert [each.stack_name for each in chosen.targets] == expected


def test_a_script_runs_on_servers_also_of_a_type_of_the_stacks_own(heat):
    config = heat_values.Config(
        id='', name='c', group='script', config='id', outputs=()
    )
    kinds = 'OS::Heat::DeployedServer', 'My::Server', 'OS::Heat::Value'
    for number, kind in enumerate(kinds):
        heat.add_resource(heat.root, f'r{number}', kind, f'id-{number}')
        shown = {'cfn': {}} if 'Server' in kind else None
        heat.attributes[f'r{number}', 'os_collect_config'] = shown
    for resource, expected in (
        ('r0', ['r0']),
        ('r1', ['r1']),
        # Of several, those that are servers for sure.
        ('r*', ['r0']),
    ):
        given = {'run': '', 'action': '', 'stacks': ['s0']}
        order = ordering.Start(**given, resources=[resource])
        chosen = selecting.Chooser(heat).choose(order, config)
        assert [each.resource for each in chosen.targets] == expected
    order = dataclasses.replace(order, resources=['r2'])
    with pytest.raises(errors.NotFound):
        selecting.Chooser(heat).choose(order, config)


def test_deployments_are_found_whatever_they_offer(heat):
    without_backup(heat, 'n2')
    chooser = selecting.Chooser(heat)
    found = chooser.deployments(ordering.Wanted(stacks=['s0']))
    assert len(found) == len(SERVERS)
    wanted = ordering.Wanted(stacks=['s0'], resources=['flete'])
    with pytest.raises(errors.NotFound, match=r'Its deployments: fleet\.n0'):
        chooser.deployments(wanted)
    said = 'BACKUP in stack s0, resource flete: an action'
    with pytest.raises(errors.NotFound, match=said):
        choose(heat, resources=['flete'])


@pytest.mark.parametrize(
    ('template', 'nova', 'is_target'),
    [
        ('web', {'metadata': {'tier': 'front', 'role': 'other'}}, True),
        ('web', {'metadata': {'tier': 'back'}}, False),
        ('web', {'metadata': None}, False),
        ('web', None, False),
        # Heat alone resolves a function.
        ({'get_attr': ['a']}, {'metadata': FRONT}, True),
    ],
)
def test_metadata_is_the_template_s_and_nova_s(
    heat, template, nova, is_target
):
    heat.add_deployment(heat.root, 'far', 'of no resource')
    heat.add_deployment(heat.root, 'db', 'id-9')
    given = {'metadata': {'role': template}}
    heat.add_resource(heat.root, 'nova', 'OS::Nova::Server', 'id-9', **given)
    heat.attributes['nova', 'show'] = nova
    if is_target:
        (target,) = choose(heat, metadata=FRONT).targets
        assert target.resource == 'db'
    else:
        with pytest.raises(errors.NotFound, match='has other metadata'):
            choose(heat, metadata=FRONT)


@pytest.mark.parametrize(
    ('wanted', 'said'),
    [
        ({'stacks': []}, 'No targets are selected'),
        ({'stacks': [], 'tags': ['none']}, 'No stack has the tag none'),
        ({}, '6 targets are more than'),
        ({'action': 'CREATE'}, 'action CREATE; there are'),
    ],
)
def test_what_has_no_targets_or_too_many_is_refused(
    heat, monkeypatch, wanted, said
):
    monkeypatch.setattr(run_records, 'MOST', 1)
    with pytest.raises(errors.Error, match=said):
        choose(heat, **wanted)


class FindTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.heat = fake_heat.Heat()
        self.stack = self.heat.add_stack('shop')
        self.heat.add_deployment(self.stack)
        self.nested = self.heat.add_stack('shop-tier', parent=self.stack.id)
        kind, nested = 'OS::Heat::SoftwareDeploymentGroup', self.nested.id
        self.heat.add_resource(self.stack, 'tier.one', kind, nested, nested)
        self.heat.add_deployment(self.nested, '0', 'server-2')
        self.heat.add_deployment(self.nested, '1', 'server-3')

    def find(self, stack, *resources):
        wanted = ordering.Wanted(stacks=(stack,), resources=resources)
        return selecting.Chooser(self.heat).deployments(wanted)

    def paths(self, *resources, stack='shop'):
        return [one.resource for one in self.find(stack, *resources)]

    def test_by_path_through_nested_stacks_of_which_each_leads_to_all(self):
        assert self.paths() == self.paths(stack=self.nested.id)
        for stack in 'shop', self.nested.id:
            (target,) = self.find(stack, 'tier.one.1')
            assert target.server_id == 'server-3'
            assert self.stack.id == target.stack_id
        # A type of the stack's own environment may be a deployment.
        kind = 'My::Deployment'
        self.heat.add_deployment(self.stack, 'own', 'server-4', kind=kind)
        assert self.paths('own') == ['own']

    def test_what_is_not_there(self):
        for stack, resource in (
            ('shop', 'nothing'),
            ('shop', 'db_config'),
            ('of-another-project', 'db'),
        ):
            self.assertRaises(errors.NotFound, self.find, stack, resource)
        exc = self.assertRaises(errors.NotFound, self.find, 'shpo')
        assert '; did you mean "shop"?' in str(exc)
        self.heat.failing = {'stack_names': errors.Denied('no', 403)}
        exc = self.assertRaises(errors.NotFound, self.find, 'shpo')
        assert 'no stack shpo' in str(exc)

    def test_actions_and_their_inputs(self):
        (target,) = self.find('shop', 'db')
        assert list(target.actions) == ['CREATE', 'BACKUP', 'FAIL/OVER']
        assert target.offered == ['BACKUP', 'FAIL/OVER']
        assert target.tool('FAIL/OVER') == 'ansible'
        assert list(target.inputs) == fake_heat.INPUTS
        assert list(target.declared) == fake_heat.INPUTS
        # What the stack gives undeclared.
        level = [{'name': 'level'}]
        self.heat.add_deployment(self.stack, 'other', inputs=level)
        (target,) = self.find('shop', 'other')
        names = [one['name'] for one in target.declared]
        assert names == ['level', 'password']

    def test_time_limits_are_the_templates(self):
        self.stack = self.heat.add_stack('timed', limit='300', key='******')
        for name, properties, found in (
            ('own', {'timeout': 7, 'delivery_timeout': '9'}, (7, 9)),
            ('given', {'timeout': {'get_param': 'limit'}}, (300, None)),
            ('none', {}, (None, None)),
            # What only Heat can work out: as the server was told.
            ('joined', {'timeout': {'str_split': [',', '5', 0]}}, (60, None)),
            ('hidden', {'timeout': {'get_param': 'key'}}, (60, None)),
            ('endless', {'timeout': '9' * 5000}, (60, None)),
        ):
            given = {'properties': properties}
            row = self.heat.add_deployment(self.stack, name, **given)
            told = {'name': 'deploy_signal_timeout', 'value': '60'}
            row.config.inputs.append(told)
            (target,) = self.find('timed', name)
            assert found == (target.timeout, target.delivery_timeout), name

    def test_members_of_a_group_that_has_no_resources(self):
        servers = {'a': 'server-2', 'b.c': 'server-3'}
        members = self.heat.add_group(
            self.stack, 'fleet', servers, properties={'timeout': 77}
        )
        assert self.paths('fleet.b.c') == ['fleet.b.c']
        (target,) = self.find('shop', members['a'].id)
        assert (target.resource, target.timeout) == ('fleet.a', 77)
        assert target.server_id == 'server-2'
        # Its config was withdrawn from its server.
        row = members['a']
        self.heat.rows[row.id] = dataclasses.replace(row, server_id='group')
        self.heat.attributes['fleet', 'members']['a']['config'] = None
        assert self.paths('fleet') == ['fleet.b.c']
