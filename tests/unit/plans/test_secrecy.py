# SPDX-License-Identifier: Apache-2.0
"""One rule says what of a plan is secret: lists, exports and errors follow."""

import dataclasses
import io

import testtools

from heat_plugins import masking
from heat_plugins.content import tarballs
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import secrecy
from heat_plugins.plans.parameters import settings
from tests.unit.plans import fakes


class NamesTest(testtools.TestCase):
    def test_a_name_is_hidden_by_a_template_or_has_a_password(self):
        """The whole value of a secret is secret."""
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
        values = {'Who': {'a': 'visible'}, 'Keys': {'a': ['heimlich']}}
        assert set(found.texts(values)) == {'heimlich'}
        assert found.without(values) == {'Who': {'a': 'visible'}}


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
        shown = str(dataclasses.asdict(root))
        assert 'geheim' not in shown
        assert 'visible' in shown
        hidden = {name for name in found if found[name][0].hidden}
        assert hidden == {'PcsdPassword', 'MysqlRoot'}
        assert found['Extra'][0].value == {'a': 1}
        assert found['PcsdPassword'][0].default == masking.MASK
        file = io.BytesIO()
        left_out = self.plans.export('plan', file)
        file.seek(0)
        text = tarballs.read(file)['plan-environment.yaml'].decode()
        assert 'geheim' not in text
        assert 'visible' in text
        assert 'a: 1' in text
        assert left_out.values == ('Gone', 'MysqlRoot', 'PcsdPassword', 'a')
