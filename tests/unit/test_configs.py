# SPDX-License-Identifier: Apache-2.0
"""What configs offer, and what is found wrong with them."""

import testtools

from heat_plugins.configs import actions
from heat_plugins.configs import config_checking
from heat_plugins.configs import hooks

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
        self.assertEqual(
            ('CREATE', 'UPDATE', 'BACKUP', 'DELETE'),
            actions.actions('component', config),
        )

    def test_each_action_is_offered_once(self):
        config = component(['CREATE', 'CREATE'], ['CREATE', 'BACKUP'])
        self.assertEqual(
            ('CREATE', 'BACKUP'), actions.actions('component', config)
        )

    def test_an_entry_that_names_no_actions_has_heats_default(self):
        for entry in ({'tool': 'script'}, {'tool': 'script', 'actions': None}):
            self.assertEqual(
                ('CREATE', 'UPDATE'),
                actions.actions('component', component(entry)),
            )

    def test_a_config_that_is_no_component_offers_none_and_serves_all(self):
        self.assertEqual((), actions.actions('script', SH))
        self.assertEqual((), actions.actions(None, component(['CREATE'])))
        self.assertTrue(actions.serves('script', SH, 'BACKUP'))

    def test_a_component_serves_what_it_names_letter_by_letter(self):
        config = component(['CREATE'], ['BACKUP'])
        self.assertTrue(actions.serves('component', config, 'BACKUP'))
        self.assertFalse(actions.serves('component', config, 'backup'))
        self.assertFalse(actions.serves('component', config, 'DELETE'))

    def test_the_first_entry_with_the_action_is_the_one_that_runs(self):
        config = component(['CREATE'], ['BACKUP'], ['BACKUP', 'DELETE'])
        self.assertIs(config['configs'][1], actions.entry(config, 'BACKUP'))
        self.assertIs(config['configs'][2], actions.entry(config, 'DELETE'))
        self.assertIsNone(actions.entry(config, 'UPDATE'))

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
            self.assertEqual((), actions.actions('component', config))
            self.assertIsNone(actions.entry(config, 'CREATE'))

    def test_a_server_gets_a_text_where_the_template_had_no_config(self):
        config = component(
            {'actions': ['CREATE'], 'tool': 'puppet', 'config': None},
            {'actions': ['DELETE'], 'tool': 'puppet'},
            ['BACKUP'],
        )
        handed = actions.for_server('component', config)
        self.assertEqual(
            ['', '', SH], [e['config'] for e in handed['configs']]
        )
        self.assertIsNone(config['configs'][0]['config'])

    def test_a_server_gets_any_other_config_as_it_is(self):
        for group, config in (
            ('script', SH),
            ('script', None),
            ('hiera', {'configs': [{'config': None}]}),
            ('component', component(['CREATE'])),
            ('component', None),
        ):
            self.assertIs(config, actions.for_server(group, config))


class CheckCase(testtools.TestCase):
    def check(self, group='script', config=SH, inputs=None, outputs=None):
        return config_checking.check(
            group=group, config=config, inputs=inputs, outputs=outputs
        )

    def check_component(self, *entries, **sections):
        return self.check('component', component(*entries), **sections)

    def assert_one(self, expected, problems, *, says=()):
        """Hold that there is one problem, and what its message names."""
        self.assertEqual(
            [expected],
            [f'{p.severity.value} {p.code} {p.where}' for p in problems],
        )
        for text in says:
            self.assertIn(text, problems[0].message)

    def names(self, *names):
        return [{'name': name, 'type': 'String'} for name in names]


class CheckTest(CheckCase):
    def test_nothing_is_said_about_a_good_config(self):
        self.assertEqual(
            (),
            self.check(
                inputs=self.names('who', 'deploy_identifier', 'DEPLOY_ACTION'),
                outputs=self.names('greeting', 'deploy_log'),
            ),
        )

    def test_nothing_is_said_about_a_good_component(self):
        self.assertEqual(
            (),
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
            'error duplicate-input inputs[2]',
            self.check(inputs=self.names('a', 'b', 'a')),
            says=['"a"', 'inputs[0], inputs[2]', 'uses the last'],
        )

    def test_each_duplicate_is_told_once(self):
        problems = self.check(inputs=self.names('a', 'a', 'b', 'a', 'b'))
        self.assertEqual(
            ['inputs[1]', 'inputs[4]'], [p.where for p in problems]
        )
        self.assertIn('3 times', problems[0].message)

    def test_an_output_declared_twice_is_an_error(self):
        self.assert_one(
            'error duplicate-output outputs[1]',
            self.check(outputs=self.names('a', 'a')),
            says=['"a"', 'outputs[0], outputs[1]'],
        )

    def test_an_input_and_an_output_may_have_one_name(self):
        self.assertEqual(
            (), self.check(inputs=self.names('a'), outputs=self.names('a'))
        )

    def test_names_are_compared_as_the_texts_that_heat_makes_of_them(self):
        self.assert_one(
            'error duplicate-output outputs[1]',
            self.check(outputs=self.names(5, '5')),
        )

    def test_the_inputs_of_every_deployment_are_reserved(self):
        self.assertEqual(14, len(config_checking.RESERVED_INPUTS))
        for name in config_checking.RESERVED_INPUTS:
            self.assert_one(
                'error reserved-input inputs[0]',
                self.check(inputs=self.names(name)),
                says=[f'"{name}"', 'rename'],
            )

    def test_outputs_that_are_there_anyway_are_a_warning(self):
        for name in ('deploy_stdout', 'deploy_stderr', 'deploy_status_code'):
            self.assert_one(
                'warning built-in-output outputs[0]',
                self.check(outputs=self.names(name)),
                says=[f'"{name}"'],
            )

    def test_a_reserved_input_is_free_as_an_output(self):
        self.assertEqual((), self.check(outputs=self.names('deploy_action')))

    def test_the_hooks_own_variable_is_a_warning(self):
        self.assert_one(
            'warning hidden-input inputs[0]',
            self.check(inputs=self.names('heat_outputs_path')),
        )

    def test_a_script_cannot_have_an_input_that_is_no_variable(self):
        for name in ('a=b', 'a\0b'):
            self.assert_one(
                'error impossible-variable inputs[0]',
                self.check(inputs=self.names(name)),
                says=[repr(name)],
            )
            self.assertEqual(
                (), self.check('ansible', inputs=self.names(name))
            )

    def test_a_component_with_one_script_cannot_either(self):
        problems = self.check_component(
            {'tool': 'ansible', 'actions': ['CREATE'], 'config': ''},
            ['DELETE'],
            inputs=self.names('a=b'),
        )
        self.assert_one('error impossible-variable inputs[0]', problems)

    def test_an_input_that_a_shell_cannot_read_is_a_note(self):
        self.assert_one(
            'note not-a-shell-variable inputs[0]',
            self.check(inputs=self.names('my-input')),
        )

    def test_a_null_default_is_a_warning_and_none_at_all_is_not(self):
        self.assert_one(
            'warning null-default inputs[0]',
            self.check(inputs=[{'name': 'a', 'default': None}]),
        )
        for inputs in ([{'name': 'a'}], [{'name': 'a', 'default': ''}]):
            self.assertEqual((), self.check(inputs=inputs))

    def test_blanks_around_a_name_are_a_warning(self):
        problems = self.check(
            'ansible', inputs=self.names(' a'), outputs=self.names('b\t')
        )
        self.assertEqual(
            [('padded-name', 'inputs[0]'), ('padded-name', 'outputs[0]')],
            [(p.code, p.where) for p in problems],
        )

    def test_a_blank_name_is_a_warning(self):
        for name in ('', ' '):
            self.assert_one(
                'warning blank-name inputs[0]',
                self.check(inputs=self.names(name)),
            )

    def test_an_output_that_can_be_no_file_fails_where_files_are_read(self):
        outputs = self.names('a\0b')
        for tool in ('script', 'ansible', 'puppet', 'chef'):
            self.assert_one(
                'error impossible-file outputs[0]',
                self.check(tool, outputs=outputs),
            )
        for tool in ('salt', 'docker-cmd', 'my-own-hook'):
            self.assertNotIn(
                'impossible-file',
                [p.code for p in self.check(tool, outputs=outputs)],
            )

    def test_an_output_in_a_folder_or_of_great_length_is_a_warning(self):
        self.assert_one(
            'warning output-in-folder outputs[0]',
            self.check(outputs=self.names('../../etc/passwd')),
        )
        self.assert_one(
            'warning long-output outputs[0]',
            self.check(outputs=self.names('a' * 219)),
        )
        self.assertEqual((), self.check(outputs=self.names('a' * 218, '..')))

    def test_two_configs_for_one_action_are_an_error(self):
        self.assert_one(
            'error action-twice configs[2].actions',
            self.check_component(['CREATE', 'BACKUP'], ['DELETE'], ['BACKUP']),
            says=['"BACKUP"', 'configs[0]', 'only runs the first'],
        )

    def test_the_default_actions_count_as_well(self):
        problems = self.check_component(
            {'tool': 'script', 'config': SH}, ['UPDATE']
        )
        self.assert_one('error action-twice configs[1].actions', problems)

    def test_an_action_may_be_repeated_within_one_entry(self):
        self.assertEqual((), self.check_component(['CREATE', 'CREATE']))

    def test_an_empty_action_is_an_error(self):
        for action in ('', ' ', None):
            self.assert_one(
                'error empty-action configs[0].actions[1]',
                self.check_component(['CREATE', action]),
            )

    def test_an_empty_list_of_actions_is_an_error(self):
        self.assert_one(
            'error no-action configs[1].actions',
            self.check_component(['CREATE'], []),
        )

    def test_no_config_for_create_is_a_warning(self):
        self.assert_one(
            'warning no-create configs',
            self.check_component(['BACKUP'], ['DELETE']),
            says=['BACKUP, DELETE', 'without running anything'],
        )

    def test_an_action_that_resembles_one_of_heats_is_a_warning(self):
        for action in ('delete', 'Delete', 'DELETE '):
            self.assert_one(
                'warning action-case configs[0].actions[1]',
                self.check_component(['CREATE', action]),
                says=[f'"{action}"', '"DELETE"'],
            )

    def test_blanks_around_an_action_are_a_warning(self):
        self.assert_one(
            'warning padded-name configs[0].actions[1]',
            self.check_component(['CREATE', ' BACKUP']),
        )

    def test_a_tool_that_can_name_no_hook_is_an_error_in_a_component(self):
        for tool in ('', '::', '/'):
            self.assert_one(
                'error impossible-tool configs[0].tool',
                self.check_component(
                    {'tool': tool, 'actions': ['CREATE'], 'config': 'x'}
                ),
                says=[f'"{tool}"', 'sends no signal'],
            )

    def test_and_a_warning_elsewhere_for_user_data_needs_no_hook(self):
        self.assert_one('warning impossible-tool group', self.check('::'))

    def test_a_misspelt_hook_is_a_warning(self):
        for group in ('Script', 'scirpt', 'ansibel', 'docker_cmd'):
            self.assert_one(
                'warning unknown-tool group',
                self.check(group),
                says=[f'"{group}"', 'id you mean'],
            )

    def test_a_hook_of_ones_own_is_a_note(self):
        self.assert_one('note unknown-tool group', self.check('terraform'))

    def test_every_hook_of_heat_agents_is_known(self):
        for hook in hooks.HOOKS:
            self.assertEqual((), self.check(hook))

    def test_no_group_is_a_note(self):
        for group in (None, '', 'Heat::Ungrouped'):
            self.assert_one('note no-group group', self.check(group))

    def test_a_script_without_an_interpreter_is_a_warning(self):
        for config in ('echo hi', '', None, '\n#!/bin/sh', '\ufeff#!/bin/sh'):
            self.assert_one(
                'warning no-interpreter config',
                self.check(config=config),
                says=['#!/bin/sh'],
            )
        self.assertEqual((), self.check(config='#! /bin/sh\necho hi'))
        self.assertEqual((), self.check('ansible', config='- hosts: all'))

    def test_a_script_with_windows_line_ends_is_a_warning(self):
        self.assert_one(
            'warning carriage-returns config',
            self.check(config='#!/bin/sh\r\necho hi\r\n'),
        )

    def test_the_script_of_each_entry_is_looked_at(self):
        self.assert_one(
            'warning no-interpreter configs[1].config',
            self.check_component(
                ['CREATE'],
                {'actions': ['DELETE'], 'tool': 'script', 'config': 'rm x'},
            ),
        )

    def test_a_component_by_group_alone_is_checked_as_one(self):
        self.assert_one(
            'warning not-a-component group', self.check('component')
        )

    def test_errors_come_first(self):
        problems = self.check(
            config='echo', inputs=self.names('my-input', 'b', 'b')
        )
        self.assertEqual(
            ['error', 'warning', 'note'],
            [p.severity.value for p in problems],
        )

    def test_a_problem_reads_with_its_place(self):
        (problem,) = self.check(outputs=self.names('a', 'a'))
        self.assertTrue(str(problem).startswith('outputs[1]: the output "a"'))


class UnknownTest(CheckCase):
    """What is not there yet is never held against a config."""

    def test_no_section_needs_to_be_known(self):
        unknown = config_checking.UNKNOWN
        self.assertEqual((), self.check(unknown, unknown, unknown, unknown))
        self.assertEqual((), self.check('script', unknown))
        self.assertEqual((), self.check('component', unknown))
        self.assertEqual((), self.check('component', {'configs': unknown}))

    def test_unknown_names_are_not_taken_for_equal(self):
        names = self.names(config_checking.UNKNOWN, config_checking.UNKNOWN)
        self.assertEqual((), self.check(inputs=names, outputs=names))

    def test_unknown_declarations_are_passed_over(self):
        items = [
            config_checking.UNKNOWN,
            *self.names('a'),
            config_checking.UNKNOWN,
        ]
        self.assertEqual((), self.check(inputs=items, outputs=items))

    def test_what_is_known_beside_them_is_checked(self):
        self.assert_one(
            'error duplicate-input inputs[2]',
            self.check(inputs=self.names('a', config_checking.UNKNOWN, 'a')),
        )

    def test_unknown_actions_are_not_taken_for_the_default(self):
        self.assertEqual(
            (),
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
            self.assertEqual((), self.check_component(['BACKUP'], entry))

    def test_unknown_tools_and_texts_are_passed_over(self):
        self.assertEqual(
            (),
            self.check_component(
                {
                    'actions': ['CREATE'],
                    'tool': config_checking.UNKNOWN,
                    'config': config_checking.UNKNOWN,
                },
                {
                    'actions': ['DELETE'],
                    'tool': 'script',
                    'config': config_checking.UNKNOWN,
                },
            ),
        )

    def test_a_default_that_is_not_there_yet_is_no_null(self):
        self.assertEqual(
            (),
            self.check(
                inputs=[{'name': 'a', 'default': config_checking.UNKNOWN}]
            ),
        )

    def test_values_of_any_type_are_survived(self):
        odd = (
            None,
            0,
            1.5,
            True,
            'text',
            b'x',
            [],
            {},
            [[]],
            [None],
            [{}],
            [{'name': None}],
            [{'name': []}],
            {'configs': [{}]},
            {'configs': [{'tool': 5, 'actions': 5, 'config': 5}]},
            {'configs': [{'actions': {'a': 1}}]},
            config_checking.UNKNOWN,
        )
        for value in odd:
            for group in ('script', 'component', None, 5, [], {}):
                config_checking.check(
                    group=group, config=value, inputs=value, outputs=value
                )


class HeatsNamesTest(testtools.TestCase):
    """What is written down here of Heat is what Heat has."""

    def test_reserved_inputs(self):
        from heat.engine.resources.openstack.heat import software_deployment

        self.assertEqual(
            {*software_deployment.SoftwareDeployment.DERIVED_CONFIG_INPUTS},
            config_checking.RESERVED_INPUTS,
        )

    def test_lifecycle_actions_and_outputs(self):
        from heat.engine.resources.openstack.heat import software_deployment

        deployment = software_deployment.SoftwareDeployment
        self.assertEqual(
            {*deployment.ALLOWED_DEPLOY_ACTIONS}, {*actions.LIFECYCLE}
        )
        self.assertEqual(
            {*deployment.ATTRIBUTES}, config_checking.BUILT_IN_OUTPUTS
        )

    def test_defaults(self):
        from heat.engine.resources.openstack.heat import software_component
        from heat.engine.resources.openstack.heat import software_config

        entry = software_component.SoftwareComponent.config_schema.schema
        self.assertEqual([*actions.DEFAULT], entry['actions'].default)
        group = software_config.SoftwareConfig.properties_schema['group']
        self.assertEqual(config_checking.UNGROUPED, group.default)
