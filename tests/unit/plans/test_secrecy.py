# SPDX-License-Identifier: Apache-2.0
"""One rule says what of a plan is secret: lists, exports and errors follow."""

import dataclasses
import io
import json

import testtools

from heat_plugins import masking
from heat_plugins.content import tarballs
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import references
from heat_plugins.plans.deploy import comparing
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import secrecy
from heat_plugins.plans.parameters import settings
from tests.unit.plans import fake_heat
from tests.unit.plans import fakes


def names(passwords=None, **files):
    """Return the secret names of a plan.

    :param files: what a template declares of its parameters, by its path.
    """
    content = references.Resolved(
        template='{}',
        environments=(),
        files={
            path: json.dumps(
                {'heat_template_version': '2021-04-16', 'parameters': declared}
            )
            for path, declared in files.items()
        },
    )
    plan = environments.PlanEnvironment(
        template='root.yaml', passwords=passwords or {}
    )
    return secrecy.SecretNames.of(content, plan)


class NamesTest(testtools.TestCase):
    def test_a_name_is_hidden_by_a_template_or_has_a_password(self):
        found = names(
            a={'Root': {'hidden': True}, 'Password': {}, 'Own': {}},
            b={'Root': {}, 'Who': {'hidden': 'false'}},
            passwords={'Own': None},
        )
        assert found.secret == {'Root', 'Own'}
        assert found.known == {'Root', 'Password', 'Who', 'Own'}

    def test_the_whole_value_of_a_secret_is_secret(self):
        found = names(a={'Keys': {'hidden': True}, 'Extra': {}})
        values = {'Extra': {'a': 'visible'}, 'Keys': {'a': ['heimlich']}}
        assert set(found.texts(values)) == {'heimlich'}
        assert found.without(values) == {'Extra': {'a': 'visible'}}


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

    def setUp(self):
        super().setUp()
        self.change(
            parameter_defaults=self.SET,
            workflow_parameters={'a': {'b_password': 'geheim-4'}},
        )

    def assert_shows(self, found, *parts):
        assert 'geheim' not in str(found)
        for part in ('visible', *parts):
            assert part in str(found)

    def test_a_list_of_parameters(self):
        root = settings.show(self.plans, self.plans.load('plan')).root
        found = parameters.effective(root)
        self.assert_shows(dataclasses.asdict(root))
        hidden = {name for name in found if found[name][0].hidden}
        assert hidden == {'PcsdPassword', 'MysqlRoot'}
        assert found['Extra'][0].value == {'a': 1}
        assert found['PcsdPassword'][0].default == masking.MASK

    def test_an_export(self):
        file = io.BytesIO()
        left_out = self.plans.export('plan', file)
        file.seek(0)
        text = tarballs.read(file)['plan-environment.yaml'].decode()
        self.assert_shows(text, 'a: 1')
        assert left_out.values == ('Gone', 'MysqlRoot', 'PcsdPassword', 'a')

    def test_a_difference(self):
        content = self.plans.resolve(self.plans.load('plan'))
        self.heat.become('plan', 'CREATE_COMPLETE')
        former = fake_heat.answer(content)['Environment']
        former['parameter_defaults'] = {
            'who': 'geheim-0',
            'PcsdPassword': 'geheim-0',
            'MysqlRoot': 'geheim-5',
        }
        self.heat.contents['plan'] = ({}, former, {})
        found = comparing.differences(self.plans, 'plan')
        self.assert_shows(found, 'PcsdPassword', 'MysqlRoot')
