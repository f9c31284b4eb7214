# SPDX-License-Identifier: Apache-2.0
"""Parameters of plans are read from Heat's validation, shown and set."""

import dataclasses
import json
from unittest import mock

import testtools

from heat_plugins import errors
from heat_plugins import masking
from heat_plugins import stored
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import heat_validation
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import settings
from tests.unit.plans import fake_heat
from tests.unit.plans import fakes

ROOT = b"""\
parameters:
  who: {type: string, default: world}
  size: {type: number, default: 1, limits: {MaxValue: 9}}
  secret: {type: string, hidden: true}
  ComputeCount: {type: number, default: 1}
  ComputeParameters: {type: json, default: {}}
resources: {}
"""


class SettingsTest(fakes.PlanCase):
    FILES = {'root.yaml': ROOT}

    def show(self, **options):
        return settings.show(self.plans, self.plans.load('plan'), **options)

    def update(self, values=None, unset=(), **more):
        return settings.update(self.plans, 'plan', values or {}, unset, **more)

    def refused(self, *arguments, kind=errors.Invalid, **more):
        before = dict(self.cloud.objects())
        exc = self.assertRaises(kind, self.update, *arguments, **more)
        path = 'plan-environment.yaml'
        assert self.cloud.objects()[path] == before[path]
        return str(exc)

    @property
    def set(self):
        plan = self.plans.load('plan')
        return dict(plan.environment.parameter_defaults)

    def value(self, name):
        root = self.show().root
        return parameters.effective(root)[name][0].value

    def validations(self):
        return self.heat.asked.count('validate')

    def test_heat_is_asked_once_for_one_content(self):
        password = self.plans.load('plan').environment.passwords['secret']
        first = self.show()
        assert self.show() == first
        assert self.validations() == 1
        assert self.value('secret') == masking.MASK
        assert password not in repr(dataclasses.asdict(first))
        self.plans.update('plan', {'base.yaml': fakes.environment(who='me')})
        assert self.value('who') == 'me'
        assert self.validations() == 2
        # The answer for a former content goes; an unreadable one is replaced.
        [name] = [n for n in self.cloud.objects() if 'parameters/' in n]
        self.cloud.objects()[name] = b'not gzip'
        self.show()
        self.show(refresh=True)
        assert self.validations() == 4
        # A reader cannot keep the answer.
        self.cloud.swift.fail(times=9, status=403, method='PUT')
        self.show(refresh=True)

    def test_references_to_missing_files_are_warnings(self):
        broken = b'resource_registry: {"A::B": gone.yaml}\n'
        self.plans.update('plan', {'base.yaml': broken})
        (warning,) = self.show().warnings
        assert 'gone.yaml' in warning

    def test_what_is_set_counts_over_environments(self):
        self.update({'who': 'me', 'size': '7'})
        assert self.set == {'who': 'me', 'size': 7}
        before = self.validations()
        assert self.value('who') == 'me'
        assert self.validations() == before
        self.update({'size': 2}, ['who'])
        assert self.set == {'size': 2}
        assert self.value('who') == 'you'

    def test_a_value_that_does_not_fit_is_not_written(self):
        for wrong, said in (
            ({'who': 'me', 'size': 10}, "Parameter 'size' is invalid"),
            ({'who': None}, "Parameter 'who' is invalid"),
            ({'wo': 'me'}, 'has no parameter wo; did you mean "who"?'),
        ):
            assert said in self.refused(wrong)
        assert 'who is not set' in self.refused({}, ['who'])
        assert 'Storage' in self.refused({'Count': 3}, role='Storage')
        assert self.set == {}

    def test_what_heat_does_not_take_is_not_written(self):
        def answer(content):
            if 'plan-environment.yaml#parameter_defaults' in content.files:
                raise errors.ServiceError('resources.node: no hunter22')
            return fake_heat.answer(content)

        self.heat.answer = answer
        said = self.refused({'secret': 'hunter22'}, kind=errors.ServiceError)
        assert 'resources.node' in said
        assert 'hunter22' not in said

    def test_heat_checks_what_is_set_alone_and_may_refuse_it(self):
        seen = []

        def refuse(name, content):
            seen.append(content)
            text = f'Heat refuses stack {name}: no {content.files}'
            raise errors.ServiceError(text, 400)

        self.heat.preview = refuse
        said = self.refused({'secret': 'hunter22', 'who': 'visible'})
        assert said.startswith('no {')
        assert 'visible' in said
        assert 'hunter22' not in said
        assert 'size' not in f'{seen[0].template}{seen[0].files}'
        self.refused({'size': 3})
        assert 'MaxValue: 9' in seen[1].template
        quota = errors.ServiceError('You have reached the maximum', 400)
        quota.kind = 'RequestLimitExceeded'
        away = errors.Unavailable('Heat is away')
        self.heat.preview = mock.Mock(side_effect=[away, quota])
        self.refused({'who': 'me'}, kind=errors.Unavailable)
        # No value is checked where a project has reached its quota.
        self.update({'who': 'me'})
        assert self.set == {'who': 'me'}

    def test_values_may_be_texts_of_yaml_and_entries_of_maps(self):
        self.update({'size': '7', 'ComputeParameters': '{a: 1}', 'who': '7'})
        entries = {'ComputeParameters': {'a': 1}}
        assert self.set == {'size': 7, 'who': '7', **entries}
        self.update({'ComputeParameters.b': '2'}, ['size', 'who'])
        self.update(unset=['ComputeParameters.a'])
        assert self.set == {'ComputeParameters': {'b': '2'}}

    def test_those_of_a_role_or_of_no_template_can_be_unset(self):
        self.update({'Count': 3, 'ntp': 'a'}, role='Compute')
        ntp = {'ntp': 'a'}
        assert self.set == {'ComputeCount': 3, 'ComputeParameters': ntp}
        self.update({}, ['Count', 'ntp'], role='Compute')
        self.update({'who': 'me'})
        less = ROOT.replace(b'  who:', b'  other:')
        self.plans.update('plan', {'root.yaml': less})
        self.update(unset=['who'])
        assert self.set == {}


SHOP = {
    'parameters': {
        'Name': {'type': 'string'},
        'Size': {'type': 'number', 'default': 1},
        'Password': {'type': 'string', 'hidden': True},
    }
}
TIER = {
    'parameters': {
        'Size': {'type': 'number', 'default': 3},
        'Region': {'type': 'string', 'default': 'north'},
    }
}


def declared(type_, **more):
    texts = {'NoEcho': 'false', 'Description': '', 'Label': ''}
    return {'Type': type_, **texts, **more}


def read(handed=None, nested=None, **more):
    """Read what Heat says of the two, with an environment.

    :param handed: parameters that the nested template has, too.
    :param nested: what Heat says of templates that are nested in it.
    """
    tier = {
        'Type': 'Shop::Tier',
        'Description': 'No description',
        'Parameters': {
            'Size': declared('Number', Default=4, MaxValue=9),
            'Region': declared('String', Value='south'),
            'Password': declared('String', Default='secret'),
            **(handed or {}),
        },
        **({'NestedParameters': nested} if nested else {}),
    }
    answer = {
        'Description': 'A shop',
        'Parameters': {
            'Name': declared('String'),
            'Size': declared('Number', Default=4),
            'Password': declared('String', NoEcho='true', Default='secret'),
        },
        'NestedParameters': {'tier': tier},
        'Environment': {
            'parameter_defaults': {'Size': 4, 'Password': 'secret'},
            'resource_registry': {'Shop::Tier': 'tier.yaml'},
        },
    }
    environment = environments.PlanEnvironment(template='shop.yaml', **more)
    resolved = references.Resolved(
        template=json.dumps(SHOP),
        environments=(),
        files={'tier.yaml': json.dumps(TIER)},
    )
    return heat_validation.read(answer, resolved, environment)


class ReadTest(testtools.TestCase):
    def named(self, name, path='', **more):
        return next(
            parameter
            for template in read(**more).walk()
            for parameter in template.parameters
            if template.path == path and parameter.name == name
        )

    def test_the_tree_is_that_of_the_templates(self):
        root = read()
        assert root.description == 'A shop'
        places = [(one.path, one.type) for one in root.walk()]
        assert places == [('', ''), ('tier', 'Shop::Tier')]
        assert root.nested[0].description == ''
        text = json.dumps(dataclasses.asdict(root))
        kind = parameters.TemplateParameters
        assert stored.read(kind, json.loads(text)) == root
        # Each name once, with all its places.
        found = parameters.effective(root)
        assert list(found) == ['Name', 'Size', 'Password']
        assert found['Size'][1] == ('', 'tier')

    def test_values_are_those_of_the_place(self):
        root, tier = self.named('Size'), self.named('Size', 'tier')
        assert (root.default, tier.default, tier.value) == (1, 3, 4)
        assert root.constraints == {}
        assert tier.constraints == {'MaxValue': 9}

    def test_origins(self):
        size = {'Size': 4}
        generated = {'passwords': {'Password': 'secret'}}
        # An environment overrides a generated password.
        overridden = {'passwords': {'Password': 'other'}}
        for origin, name, path, more in (
            ('missing', 'Name', '', {}),
            ('environment', 'Size', '', {}),
            ('parent', 'Region', 'tier', {}),
            ('plan', 'Size', '', {'parameter_defaults': size}),
            ('derived', 'Size', '', {'derived_parameters': size}),
            ('generated', 'Password', '', generated),
            ('environment', 'Password', '', overridden),
        ):
            assert self.named(name, path, **more).origin == origin

    def test_what_one_template_hides_is_hidden_everywhere(self):
        assert 'secret' not in json.dumps(dataclasses.asdict(read()))
        assert self.named('Password', 'tier').value == masking.MASK

    def test_a_secret_is_masked_under_every_name_and_nothing_else_is(self):
        key = 'k' * 32
        given = {
            'Plain': (key, '******'),
            'Url': (f'http://me:{key}@host', 'http://me:******@host'),
            'Deep': ({'list': [1, key]}, {'list': [1, '******']}),
            'Number': (4711, '******'),
            'Set': ('secret', '******'),
            'Path': ('my-secret-path', 'my-secret-path'),
            'On': (True, True),
            'Port': (14711, 14711),
        }
        handed = {
            name: declared('Json', Value=value, Default=value)
            for name, (value, _) in given.items()
        }
        passwords = {'Key': key, 'Pin': 4711, 'Flag': True}
        [tier] = read(handed, passwords=passwords).nested
        found = {one.name: one.value for one in tier.parameters}
        expected = {name: shown for name, (_, shown) in given.items()}
        assert expected.items() <= found.items()
        # So is what a hidden parameter is handed.
        plain, token = (
            declared('String', NoEcho=hides, Value='made-up-of-it')
            for hides in ('false', 'true')
        )
        deep = {'deep': {'Type': 'x', 'Parameters': {'Plain': plain}}}
        shown = dataclasses.asdict(read({'Token': token}, deep))
        assert 'made-up-of-it' not in json.dumps(shown)
