# SPDX-License-Identifier: Apache-2.0
"""What of a plan is secret, its passwords, and the roles of its servers."""

import dataclasses
import io
import json
import re

import pytest

from heat_plugins import errors
from heat_plugins import masking
from heat_plugins.content import tarballs
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import references
from heat_plugins.plans.content import roles
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import secrecy
from heat_plugins.plans.parameters import settings
from tests.unit.plans import fakes


def test_a_name_is_hidden_by_a_template_or_has_a_password():
    hidden = {'hidden': True}
    declared = (
        {'Root': hidden, 'Password': {}, 'Own': {}, 'Keys': hidden},
        {'Root': {}, 'Who': {'hidden': 'false'}},
    )
    plan = environments.PlanEnvironment(
        template='root.yaml', passwords={'Own': None}
    )
    content = references.Resolved(template='{}', environments=(), files={})
    found = secrecy.SecretNames.of(content, plan, declared)
    assert found.secret == {'Root', 'Own', 'Keys'}
    assert found.known == {'Root', 'Password', 'Who', 'Own', 'Keys'}
    # The whole value of a secret is secret.
    values = {'Who': {'a': 'visible'}, 'Keys': {'a': ['heimlich']}}
    assert set(found.texts(values)) == {'heimlich'}
    assert [name for name in values if found.may_be_seen(name)] == ['Who']


class FieldTest(fakes.PlanCase):
    """A plan whose nested template hides what its root does not."""

    FILES = {
        'root.yaml': b"""\
heat_template_version: 2021-04-16
parameters:
  who: {type: string, default: world}
  PcsdPassword: {type: string, default: changeme, hidden: true}
  Extra: {type: json, default: {}}
  MysqlRoot: {type: string}
resources:
  passwords: {type: default_passwords.yaml}
""",
        'default_passwords.yaml': b"""\
heat_template_version: 2021-04-16
parameters:
  MysqlRoot: {type: string, hidden: true}
""",
    }
    SET = {
        'who': 'visible',
        'PcsdPassword': 'geheim-1',
        'Extra': {'a': 1},
        'MysqlRoot': 'geheim-3',
        'Gone': 'geheim-2',
    }

    def test_a_list_of_parameters_and_an_export(self):
        plan = self.change(
            parameter_defaults=self.SET,
            workflow_parameters={'a': {'b_password': 'geheim-4'}},
        )
        root = settings.show(self.plans, plan).root
        found = parameters.effective(root)
        hidden = {name for name in found if found[name][0].hidden}
        assert hidden == {'PcsdPassword', 'MysqlRoot'}
        assert found['Extra'][0].value == {'a': 1}
        assert found['PcsdPassword'][0].default == masking.MASK
        file = io.BytesIO()
        left_out = self.plans.export('plan', file)
        file.seek(0)
        text = tarballs.read(file)['plan-environment.yaml'].decode()
        for shown in (str(dataclasses.asdict(root)), text):
            assert 'geheim' not in shown
            assert 'visible' in shown
        assert 'a: 1' in text
        assert left_out.values == ('Gone', 'MysqlRoot', 'PcsdPassword', 'a')


def passwords(parameters, **sections):
    plan = environments.PlanEnvironment(template='root.yaml', **sections)
    root = json.dumps({'parameters': parameters}).encode()
    return secrecy.with_passwords(plan, {'root.yaml': root}).passwords


SECRET = {'type': 'string', 'hidden': True}


def test_a_hidden_text_without_a_default_needs_one():
    for more, needs in (
        ({}, True),
        ({'hidden': 'true'}, True),
        ({'hidden': 'false'}, False),
        ({'type': 'json'}, False),
        ({'default': ''}, False),
        # Those are left to the user.
        ({'constraints': [{'length': {'max': 16}}]}, False),
        ({'constraints': [1]}, False),
    ):
        assert bool(passwords({'Key': {**SECRET, **more}})) == needs


def test_it_is_long_and_plain_and_made_once():
    found = passwords({'B': SECRET}, passwords={'A': None})
    assert all(re.fullmatch('[A-Za-z0-9]{32}', found[name]) for name in 'AB')
    assert found['B'] != found['A']
    # A value stays, and a set parameter needs none.
    given = {'A': 'mine', 'B': ''}
    found = passwords(
        dict.fromkeys('ABC', SECRET),
        passwords=given,
        parameter_defaults={'C': 'mine'},
    )
    assert found == {**given, 'C': None}


def test_roles_are_read():
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
    assert (role.description, role.count) == ('Serves pages', 3)
    assert (role.tags, role.networks) == (('front',), ('Public',))
    assert role.services == ('OS::A::B',)
    assert role.data['ImageDefault'] == 'img'


def test_what_is_no_list_of_roles_is_refused():
    for text in ('{a: b}', '[1]', '[{}]', 'a: ['):
        with pytest.raises(errors.Invalid):
            roles.from_roles_data(text)


def test_groups_of_a_template_are_roles():
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
    counts = {role.name: role.count for role in found}
    assert counts == {'A': 2, 'B': None, 'C': 5}
    assert found[0].description == 'Some'
