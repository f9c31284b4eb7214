# SPDX-License-Identifier: Apache-2.0
"""Passwords are made once, for those that need one."""

import re

import testtools

from heat_plugins import errors
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import roles
from heat_plugins.plans.parameters import secrecy


def wanted(**parameter):
    parameter = {'type': 'string', 'hidden': True, **parameter}
    lines = ''.join(
        f'    {key}: {value}\n' for key, value in parameter.items()
    )
    root = f'parameters:\n  Key:\n{lines}'
    made = secrecy.with_passwords(plan(), {'root.yaml': root.encode()})
    return tuple(made.passwords)


def plan(**sections):
    return environments.PlanEnvironment(template='root.yaml', **sections)


class WantedTest(testtools.TestCase):
    def test_a_hidden_text_without_a_default_needs_one(self):
        assert wanted() == ('Key',)
        assert wanted(hidden='false') == ()
        assert wanted(type='json') == ()
        assert wanted(default="''") == ()

    def test_one_with_constraints_is_left_to_the_user(self):
        for constraints in ('[{length: {max: 16}}]', '[1]', '{a: b}'):
            assert wanted(constraints=constraints) == ()


class FillTest(testtools.TestCase):
    def made(self, *names, **sections):
        """Return the passwords for a root template that hides parameters."""
        lines = ''.join(
            f'  {name}: {{type: string, hidden: true}}\n' for name in names
        )
        files = {'root.yaml': f'parameters:\n{lines}'.encode()}
        return secrecy.with_passwords(plan(**sections), files).passwords

    def test_a_password_is_long_and_plain_and_no_two_are_the_same(self):
        found = self.made('B', passwords={'A': None})
        assert set(found) == {'A', 'B'}
        for value in found.values():
            assert re.fullmatch('[A-Za-z0-9]{32}', value)
        assert found['B'] != found['A']

    def test_a_value_stays_and_a_set_parameter_needs_none(self):
        given = {'A': 'mine', 'B': ''}
        found = self.made(
            'A', 'B', 'C', passwords=given, parameter_defaults={'C': 'mine'}
        )
        assert found == {**given, 'C': None}


class RolesTest(testtools.TestCase):
    def test_roles_are_read(self):
        [role] = roles.from_roles_data(
            '- name: Web\n'
            '  description: |\n'
            '    Serves\n'
            '    pages\n'
            '  CountDefault: 3\n'
            '  tags: [front]\n'
            '  networks: {Public: {subnet: x}}\n'
            '  ServicesDefault: [OS::A::B]\n'
            '  ImageDefault: img\n'
        )
        assert role.description == 'Serves pages'
        assert role.count == 3
        assert role.tags == ('front',)
        assert role.networks == ('Public',)
        assert role.services == ('OS::A::B',)
        assert role.data['ImageDefault'] == 'img'

    def test_what_is_no_list_of_roles_is_refused(self):
        for text in (
            '{a: b}',
            '[1]',
            '[{}]',
            'a: [',
        ):
            self.assertRaises(errors.Invalid, roles.from_roles_data, text)

    def test_groups_of_a_template_are_roles(self):
        found = roles.from_template(
            'parameters:\n'
            '  Count: {type: number, default: 2}\n'
            '  None: {type: number}\n'
            'resources:\n'
            '  A:\n'
            '    type: OS::Heat::ResourceGroup\n'
            '    description: Some\n'
            '    properties: {count: {get_param: Count}}\n'
            '  B:\n'
            '    type: OS::Heat::ResourceGroup\n'
            '    properties: {count: {get_param: None}}\n'
            '  C:\n'
            '    type: OS::Heat::AutoScalingGroup\n'
            '    properties: {desired_capacity: 5}\n'
            '  D: {type: OS::Heat::Value}\n',
            'root.yaml',
        )
        assert [(role.name, role.count) for role in found] == [
            ('A', 2),
            ('B', None),
            ('C', 5),
        ]
        assert found[0].description == 'Some'
