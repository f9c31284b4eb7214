# SPDX-License-Identifier: Apache-2.0
"""Parameters of plans are shown, set and taken back."""

import dataclasses
from unittest import mock

from heat_plugins import errors
from heat_plugins import masking
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

    def test_a_parameter_that_no_template_has_can_be_unset(self):
        self.update({'who': 'me'})
        less = ROOT.replace(b'  who:', b'  other:')
        self.plans.update('plan', {'root.yaml': less})
        self.update(unset=['who'])
        assert self.set == {}

    def test_by_role(self):
        self.update({'Count': 3, 'ntp': 'a'}, role='Compute')
        ntp = {'ntp': 'a'}
        assert self.set == {'ComputeCount': 3, 'ComputeParameters': ntp}
        self.update({}, ['Count', 'ntp'], role='Compute')
        assert self.set == {}
