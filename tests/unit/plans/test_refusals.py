# SPDX-License-Identifier: Apache-2.0
"""What Heat refuses is explained, remembered, and foreseen."""

from heat_plugins import errors
from heat_plugins.plans.deploy import comparing
from heat_plugins.plans.deploy import deploying
from heat_plugins.plans.parameters import refusals
from tests.unit.plans import fakes
from tests.unit.plans import test_settings

DEEP = errors.OverHeatLimit(
    'Recursion depth exceeds 5', 400, 'max_nested_stack_depth'
)
NETWORK = b"""\
heat_template_version: 2021-04-16
resources:
  net: {type: OS::Neutron::Net}
  server: {type: OS::Nova::Server}
"""
GROUP = b"""\
heat_template_version: 2021-04-16
resources:
  all:
    type: OS::Heat::ResourceGroup
    properties:
      resource_def: {type: Shop::Node}
"""
REGISTRY = b'resource_registry: {"Shop::Node": nodes/node.yaml}'


class RefusalTest(test_settings.SettingsCase):
    def show(self, kind, **more):
        exc = self.assertRaises(kind, self.settings.show, 'plan', **more)
        return str(exc)

    def test_a_refusal_is_remembered_for_the_same_content(self):
        for refusal in (errors.ServiceError('bad', 400), DEEP):
            self.heat.answer = refusal
            self.show(errors.ServiceError, refresh=True)
            asked = self.validations()
            said = self.show(errors.ServiceError)
            self.assertIn(str(refusal), said)
            self.assertIn('parameter list --refresh plan', said)
            self.assertEqual(asked, self.validations())
        self.heat.answer = test_settings.fake_heat.answer
        self.settings.show('plan', refresh=True)
        self.settings.show('plan')

    def test_another_content_is_asked_for_anew(self):
        self.heat.answer = DEEP
        self.show(errors.OverHeatLimit)
        self.plans.update('plan', {'scripts/new.sh': b''})
        self.heat.answer = test_settings.fake_heat.answer
        self.settings.show('plan')

    def test_what_may_pass_is_not_remembered(self):
        for refusal in (errors.Unavailable('x', 503), errors.Denied('x', 403)):
            self.heat.answer = refusal
            self.show(type(refusal))
        self.heat.answer = test_settings.fake_heat.answer
        self.settings.show('plan')

    def test_values_that_heat_refuses_are_held_against_no_plan(self):
        self.settings.show('plan', refresh=True)
        self.cloud.heat.answer = errors.ServiceError('bad', 400)
        self.refused({'who': 'me'}, kind=errors.ServiceError)
        self.cloud.heat.answer = test_settings.fake_heat.answer
        self.update({'who': 'me'})

    def test_the_depth_that_is_needed_is_named(self):
        self.heat.answer = DEEP
        self.plans.update(
            'plan',
            {
                'root.yaml': GROUP.replace(b'Shop::Node', b'tiers/web.yaml'),
                'tiers/web.yaml': GROUP,
                'base.yaml': REGISTRY,
            },
        )
        self.assertTrue(self.show(errors.OverHeatLimit).endswith(' 5 to 4'))

    def test_templates_in_a_circle_have_a_depth(self):
        self.plans.update(
            'plan', {'root.yaml': GROUP.replace(b'Shop::Node', b'root.yaml')}
        )
        content = self.plans.resolve(self.plans.load('plan'))
        self.assertLessEqual(refusals.depth(content), 202)

    def test_a_service_that_is_missing_is_named_with_the_way_back(self):
        self.plans.update(
            'plan',
            {
                'nodes/node.yaml': NETWORK,
                'root.yaml': GROUP,
                'base.yaml': REGISTRY,
            },
        )
        self.heat.answer = errors.NotFound(
            'Heat answered 404 to POST of validation: Not found'
        )
        said = self.show(errors.Refused)
        self.assertIn(
            'resource net of nodes/node.yaml (OS::Neutron::Net)', said
        )
        self.assertNotIn('OS::Nova::Server', said)
        self.assertIn('capability set plan --disable base.yaml', said)
        self.assertIn('To ask Heat again', self.show(errors.Refused))

    def test_what_a_template_names_comes_with_its_environment(self):
        self.plans.update(
            'plan',
            {
                'root.yaml': GROUP,
                'base.yaml': REGISTRY,
                'nodes/node.yaml': fakes.TEMPLATE.replace(
                    b'nodes/node.yaml', b'net.yaml'
                ),
                'nodes/net.yaml': NETWORK,
            },
        )
        self.heat.answer = errors.NotFound('Not found')
        said = self.show(errors.Refused)
        self.assertIn('resource net of nodes/net.yaml', said)
        self.assertIn('capability set plan --disable base.yaml', said)

    def test_no_environment_brings_what_the_root_template_has(self):
        self.plans.update('plan', {'root.yaml': NETWORK})
        self.heat.answer = errors.NotFound('Not found')
        said = self.show(errors.Refused)
        self.assertIn('resource net of root.yaml', said)
        self.assertTrue(
            said.endswith('No enabled environment adds these resources')
        )


class LackingTest(test_settings.SettingsCase):
    """Heat's own words are one type, and nothing at all for a validation."""

    SAID = (
        'Heat answered 400 to POST of stack plan: HEAT-E99001 Service neutron '
        'is not available for resource type OS::Neutron::Net, reason: neutron '
        'network endpoint is not in service catalog.'
    )

    def setUp(self):
        super().setUp()
        self.deployer = deploying.Deployer(self.plans)
        self.plans.update(
            'plan',
            {
                'root.yaml': GROUP + b'parameters: {}\n',
                'base.yaml': REGISTRY,
                'nodes/node.yaml': NETWORK,
            },
        )

    def refuse(self, *_, **__):
        raise errors.ServiceError(self.SAID, 400)

    def warnings(self, **more):
        return self.settings.show('plan', **more).warnings

    def assert_explains(self, said):
        self.assertIn(
            'This cloud lacks the service for resource net of nodes/node.yaml '
            '(OS::Neutron::Net). To leave out what needs it: '
            'openstack deployment plan capability set plan --disable '
            'base.yaml',
            said,
        )

    def test_a_deployment_is_refused_with_the_resources_and_the_remedy(self):
        self.heat.create = self.heat.preview = self.refuse
        for call in (self.deployer.start, self.deployer.preview):
            exc = self.assertRaises(errors.Refused, call, 'plan')
            self.assertIn('not in service catalog. This cloud', str(exc))
            self.assert_explains(str(exc))

    def test_so_is_an_update(self):
        self.deployer.start('plan')
        self.heat.become('plan', 'CREATE_COMPLETE')
        self.heat.replace = self.heat.preview_replace = self.refuse
        for call in (self.deployer.start, self.deployer.preview):
            exc = self.assertRaises(errors.Refused, call, 'plan')
            self.assert_explains(str(exc))

    def test_so_is_a_difference(self):
        self.deployer.start('plan')
        self.heat.answer = errors.NotFound('Not found')
        comparer = comparing.Comparer(self.plans)
        exc = self.assertRaises(errors.Refused, comparer.differences, 'plan')
        self.assert_explains(str(exc))

    def test_a_list_of_parameters_warns_of_it(self):
        for _ in range(2):
            (warning,) = self.warnings()
            self.assert_explains(warning)

    def test_what_a_condition_may_leave_out_is_no_warning(self):
        maybe = NETWORK.replace(b'Net}', b'Net, condition: never}')
        self.plans.update('plan', {'nodes/node.yaml': maybe})
        self.assertEqual((), self.warnings())
        self.heat.create = self.refuse
        exc = self.assertRaises(errors.Refused, self.deployer.start, 'plan')
        self.assert_explains(str(exc))

    def test_what_no_resource_uses_is_no_warning(self):
        unused = b'resource_registry: {"Shop::Other": nodes/node.yaml}'
        self.plans.update(
            'plan',
            {
                'base.yaml': unused,
                'root.yaml': b'parameters: {}\nresources: {}\n',
            },
        )
        self.assertEqual((), self.warnings())

    def test_what_stands_for_a_type_of_the_service_is_named(self):
        alias = (
            b'resource_registry:\n'
            b'  Shop::Node: Shop::Net\n'
            b'  Shop::Net: OS::Neutron::Net\n'
        )
        self.plans.update('plan', {'base.yaml': alias})
        (warning,) = self.warnings()
        self.assertIn('resource all of root.yaml (OS::Neutron::Net)', warning)
        self.assertIn('--disable base.yaml', warning)

    def test_what_stands_in_for_the_service_s_own_type_is_enough(self):
        instead = b'"OS::Neutron::Net": OS::Heat::None, '
        registry = REGISTRY.replace(b'{', b'{' + instead)
        self.plans.update('plan', {'base.yaml': registry})
        self.assertEqual((), self.warnings())

    def test_of_two_environments_both_have_to_go(self):
        also = b'resource_registry: {"Shop::Also": ../nodes/node.yaml}'
        root = GROUP + b'  also: {type: Shop::Also}\nparameters: {}\n'
        self.plans.update(
            'plan', {'root.yaml': root, 'environments/backup.yaml': also}
        )
        self.plans.select(
            'plan', {'environments/backup.yaml': True}, requirements=True
        )
        (warning,) = self.warnings()
        self.assertIn(
            '--disable base.yaml --disable environments/backup.yaml', warning
        )

    def test_without_heat_s_list_of_types_its_own_words_stay(self):
        self.heat.create = self.refuse

        def unavailable():
            raise errors.Unavailable('Heat cannot be reached', 503)

        self.heat.resource_types = unavailable
        self.assertEqual((), self.warnings())
        exc = self.assertRaises(errors.Refused, self.deployer.start, 'plan')
        self.assertEqual(self.SAID, str(exc))

    def test_the_depth_that_a_deployment_needs_is_named(self):
        def refuse(*_, **__):
            raise DEEP

        self.heat.create = refuse
        exc = self.assertRaises(
            errors.OverHeatLimit, self.deployer.start, 'plan'
        )
        self.assertTrue(str(exc).endswith(' 5 to 2'), str(exc))


class ForeseenTest(test_settings.SettingsCase):
    def test_a_wrong_name_or_type_is_told_before_heat_is_asked(self):
        self.heat.answer = DEEP
        for values, said in (
            ({'whoo': 'me'}, 'did you mean "who"?'),
            ({'size': 'many'}, 'it is not a number'),
        ):
            self.assertIn(said, self.refused(values))
        self.assertEqual(0, self.validations())
        said = self.refused({'secret': ['geheim']})
        self.assertIn('a hidden value cannot be the value of secret', said)
