# SPDX-License-Identifier: Apache-2.0
"""What Heat's validation says, as parameters that can be shown."""

import dataclasses
import json

import testtools

from heat_plugins import masking
from heat_plugins import stored
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import references
from heat_plugins.plans.parameters import heat_validation
from heat_plugins.plans.parameters import parameters

ROOT = {
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
    }
    if nested:
        tier['NestedParameters'] = nested
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
        template=json.dumps(ROOT),
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
        for name, (_, shown) in given.items():
            assert found[name] == shown
        # So is what a hidden parameter is handed.
        plain, token = (
            declared('String', NoEcho=hides, Value='made-up-of-it')
            for hides in ('false', 'true')
        )
        deep = {'deep': {'Type': 'x', 'Parameters': {'Plain': plain}}}
        shown = dataclasses.asdict(read({'Token': token}, deep))
        assert 'made-up-of-it' not in json.dumps(shown)
