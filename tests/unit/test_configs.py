# SPDX-License-Identifier: Apache-2.0
"""What configs offer, and what is found wrong with them."""

import testtools

from heat_plugins.configs import actions
from heat_plugins.configs import config_checking

SH = '#!/bin/sh\n'


def component(*entries):
    """Return a component's config; an entry may be a list of actions."""
    return {
        'configs': [
            e
            if isinstance(e, dict)
            else {'actions': e, 'tool': 'script', 'config': SH}
            for e in entries
        ]
    }


class ActionsTest(testtools.TestCase):
    def test_a_component_offers_its_entries_actions_in_order(self):
        config = component(['CREATE', 'UPDATE'], ['BACKUP'], ['DELETE'])
        assert actions.actions('component', config) == (
            'CREATE',
            'UPDATE',
            'BACKUP',
            'DELETE',
        )

    def test_each_action_is_offered_once(self):
        config = component(['CREATE', 'CREATE'], ['CREATE', 'BACKUP'])
        assert actions.actions('component', config) == ('CREATE', 'BACKUP')

    def test_an_entry_that_names_no_actions_has_heats_default(self):
        for entry in ({'tool': 'script'}, {'tool': 'script', 'actions': None}):
            assert actions.actions('component', component(entry)) == (
                'CREATE',
                'UPDATE',
            )

    def test_a_config_that_is_no_component_offers_none_and_serves_all(self):
        assert actions.actions('script', SH) == ()
        assert actions.actions(None, component(['CREATE'])) == ()
        assert actions.serves('script', SH, 'BACKUP')

    def test_the_first_entry_with_the_action_is_the_one_that_runs(self):
        config = component(['CREATE'], ['BACKUP'], ['BACKUP', 'DELETE'])
        assert actions.entry(config, 'BACKUP') is config['configs'][1]
        assert actions.entry(config, 'DELETE') is config['configs'][2]
        assert actions.entry(config, 'UPDATE') is None

    def test_what_is_no_component_at_all_offers_nothing(self):
        for config in (
            None,
            '',
            SH,
            [],
            {},
            {'configs': None},
            {'configs': 5},
            {'configs': 'CREATE'},
            {'configs': [None, 'x', 3]},
            {'configs': [{'actions': 'CREATE'}]},
            {'configs': [{'actions': [None, {}]}]},
            {'configs': config_checking.UNKNOWN},
            config_checking.UNKNOWN,
        ):
            assert actions.actions('component', config) == ()
            assert actions.entry(config, 'CREATE') is None

    def test_a_server_gets_a_text_where_the_template_had_no_config(self):
        config = component(
            {'actions': ['CREATE'], 'tool': 'puppet', 'config': None},
            {'actions': ['DELETE'], 'tool': 'puppet'},
            ['BACKUP'],
        )
        handed = actions.for_server('component', config)
        assert [e['config'] for e in handed['configs']] == ['', '', SH]
        assert config['configs'][0]['config'] is None

    def test_a_server_gets_any_other_config_as_it_is(self):
        for group, config in (
            ('script', SH),
            ('script', None),
            ('hiera', {'configs': [{'config': None}]}),
            ('component', component(['CREATE'])),
            ('component', None),
        ):
            assert actions.for_server(group, config) is config


class CheckCase(testtools.TestCase):
    def check(self, group='script', config=SH, inputs=None, outputs=None):
        return config_checking.check(
            group=group, config=config, inputs=inputs, outputs=outputs
        )

    def check_component(self, *entries, **sections):
        return self.check('component', component(*entries), **sections)

    def assert_good(self, findings):
        assert findings == config_checking.Findings()

    def assert_one(self, expected, findings, *, says=()):
        """Hold that there is one finding, where, and what it names."""
        listed = [
            *(f'error {text}' for text in findings.errors),
            *(f'warning {text}' for text in findings.warnings),
        ]
        assert [text.partition(': ')[0] for text in listed] == [expected]
        for text in says:
            assert text in listed[0]

    def names(self, *names):
        return [{'name': name, 'type': 'String'} for name in names]


class CheckTest(CheckCase):
    def test_nothing_is_said_about_a_good_component(self):
        self.assert_good(
            self.check_component(
                ['CREATE', 'UPDATE'],
                ['DELETE', 'SUSPEND', 'RESUME'],
                ['BACKUP', 'back up', 'Restore'],
                inputs=self.names('who'),
                outputs=self.names('greeting'),
            ),
        )

    def test_an_input_declared_twice_is_an_error(self):
        self.assert_one(
            'error inputs[2]',
            self.check(inputs=self.names('a', 'b', 'a')),
            says=['"a"', 'inputs[0], inputs[2]', 'uses the last'],
        )

    def test_names_are_compared_as_the_texts_that_heat_makes_of_them(self):
        self.assert_one(
            'error outputs[1]',
            self.check(outputs=self.names(5, '5')),
        )

    def test_the_inputs_of_every_deployment_are_reserved(self):
        assert len(config_checking.RESERVED_INPUTS) == 14
        for name in config_checking.RESERVED_INPUTS:
            self.assert_one(
                'error inputs[0]',
                self.check(inputs=self.names(name)),
                says=[f'"{name}"', 'rename'],
            )

    def test_outputs_that_are_there_anyway_are_a_warning(self):
        for name in ('deploy_stdout', 'deploy_stderr', 'deploy_status_code'):
            self.assert_one(
                'warning outputs[0]',
                self.check(outputs=self.names(name)),
                says=[f'"{name}"'],
            )

    def test_two_configs_for_one_action_are_an_error(self):
        self.assert_one(
            'error configs[2].actions',
            self.check_component(['CREATE', 'BACKUP'], ['DELETE'], ['BACKUP']),
            says=['"BACKUP"', 'configs[0]', 'only runs the first'],
        )

    def test_an_empty_action_is_an_error(self):
        for action in ('', ' ', None):
            self.assert_one(
                'error configs[0].actions',
                self.check_component(['CREATE', action]),
            )

    def test_an_empty_list_of_actions_is_an_error(self):
        self.assert_one(
            'error configs[1].actions',
            self.check_component(['CREATE'], []),
        )

    def test_no_config_for_create_is_a_warning(self):
        self.assert_one(
            'warning configs',
            self.check_component(['BACKUP'], ['DELETE']),
            says=['BACKUP, DELETE', 'without running anything'],
        )

    def test_an_action_that_resembles_one_of_heats_is_a_warning(self):
        for action in ('delete', 'Delete', 'DELETE '):
            self.assert_one(
                'warning configs[0].actions',
                self.check_component(['CREATE', action]),
                says=[f'"{action}"', '"DELETE"'],
            )

    def test_a_misspelt_hook_is_a_warning(self):
        for group in ('Script', 'scirpt', 'ansibel', 'docker_cmd'):
            self.assert_one(
                'warning group',
                self.check(group),
                says=[f'"{group}"', 'id you mean'],
            )

    def test_a_hook_of_ones_own_and_no_group_are_no_mistakes(self):
        for group in ('terraform', None, '', 'Heat::Ungrouped'):
            self.assert_good(self.check(group))


class UnknownTest(CheckCase):
    """What is not there yet is never held against a config."""

    def test_no_section_needs_to_be_known(self):
        unknown = config_checking.UNKNOWN
        self.assert_good(self.check(unknown, unknown, unknown, unknown))
        self.assert_good(self.check('script', unknown))
        self.assert_good(self.check('component', unknown))
        self.assert_good(self.check('component', {'configs': unknown}))

    def test_what_is_known_beside_them_is_checked(self):
        self.assert_one(
            'error inputs[2]',
            self.check(inputs=self.names('a', config_checking.UNKNOWN, 'a')),
        )

    def test_unknown_actions_are_not_taken_for_the_default(self):
        self.assert_good(
            self.check_component(
                {'actions': config_checking.UNKNOWN, 'tool': 'ansible'},
                {'actions': config_checking.UNKNOWN, 'tool': 'ansible'},
            ),
        )

    def test_an_unknown_action_may_yet_be_create(self):
        for entry in (
            ['DELETE', config_checking.UNKNOWN],
            config_checking.UNKNOWN,
        ):
            self.assert_good(self.check_component(['BACKUP'], entry))


class HeatsNamesTest(testtools.TestCase):
    """What is written down here of Heat is what Heat has."""

    def test_reserved_inputs(self):
        from heat.engine.resources.openstack.heat import software_deployment

        assert {
            *software_deployment.SoftwareDeployment.DERIVED_CONFIG_INPUTS
        } == config_checking.RESERVED_INPUTS

    def test_lifecycle_actions_and_outputs(self):
        from heat.engine.resources.openstack.heat import software_deployment

        deployment = software_deployment.SoftwareDeployment
        assert {*actions.LIFECYCLE} == {*deployment.ALLOWED_DEPLOY_ACTIONS}
        assert {*deployment.ATTRIBUTES} == config_checking.BUILT_IN_OUTPUTS

    def test_defaults(self):
        from heat.engine.resources.openstack.heat import software_component
        from heat.engine.resources.openstack.heat import software_config

        entry = software_component.SoftwareComponent.config_schema.schema
        assert entry['actions'].default == [*actions.DEFAULT]
        group = software_config.SoftwareConfig.properties_schema['group']
        assert group.default == config_checking.UNGROUPED
