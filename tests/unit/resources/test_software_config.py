# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareConfig: as Heat's, and checked while it is validated."""

from heat.common import exception
from heat.engine.resources.openstack.heat import software_config as heats
import yaml

from heat_plugins.resources import software_config
from tests.unit import heat_fixture

OURS = {'OS::Heat::SoftwareConfig': software_config.SoftwareConfig}


def template(properties, resources=None, **sections):
    """Return a template with the resource ``config`` of these properties."""
    return {
        'heat_template_version': '2021-04-16',
        **sections,
        'resources': {
            'config': {
                'type': 'OS::Heat::SoftwareConfig',
                'properties': properties,
            },
            **(resources or {}),
        },
    }


def value(content):
    """Return a resource whose attribute ``value`` exists once it does."""
    return {'type': 'OS::Heat::Value', 'properties': {'value': content}}


FULL = yaml.safe_load("""
group: script
config: |
  #!/bin/sh
  echo $who
inputs:
- {name: who, default: world}
- {name: count, type: Number, default: 3, replace_on_change: true}
- {name: deploy_identifier}
outputs:
- {name: greeting}
- {name: trouble, error_output: true, description: what went wrong}
options: {anything: [1, 2]}
""")


class SoftwareConfigTest(heat_fixture.HeatTestCase):
    TYPES = OURS

    def validate(self, properties, resources=None, name='shop'):
        stack = self.heat.stack(template(properties, resources), name)
        stack.validate()
        return stack

    def refused(self, properties, resources=None):
        """Return the message with which a config is refused."""
        return self.why_invalid(template(properties, resources))

    def test_has_heats_properties_and_attributes(self):
        ours = software_config.SoftwareConfig
        assert ours.properties_schema == heats.SoftwareConfig.properties_schema
        assert ours.attributes_schema == heats.SoftwareConfig.attributes_schema

    def test_duplicates_are_refused_all_at_once_and_in_their_place(self):
        message = self.refused(
            {
                'inputs': [{'name': 'who'}, {'name': 'who'}],
                'outputs': [{'name': 'log'}, {'name': 'log'}],
            }
        )
        assert 'resources.config.properties: ' in message
        assert 'inputs[1]: the input "who" is declared 2' in message
        assert 'outputs[1]: the output "log" is declared 2' in message

    def test_doubts_are_logged_once_with_stack_and_resource(self):
        with self.assertLogs(software_config.__name__, 'DEBUG') as logs:
            self.validate(
                {
                    'group': 'scirpt',
                    'config': 'echo hi',
                    'outputs': [{'name': 'deploy_stdout'}],
                }
            )
        (warning,) = logs.records
        assert warning.levelname == 'WARNING'
        for text in (
            '"config"',
            '"shop"',
            'OS::Heat::SoftwareConfig',
            'deploy_stdout',
            'scirpt',
        ):
            assert text in warning.getMessage()

    def with_parameters(self, **options):
        return self.heat.stack(
            template(
                {
                    'inputs': [
                        {'name': {'get_param': 'first'}},
                        {'name': {'get_param': 'second'}},
                    ],
                },
                parameters={
                    'first': {'type': 'string', 'default': ''},
                    'second': {'type': 'string', 'default': ''},
                },
            ),
            **options,
        )

    def test_parameters_are_read_once_they_are_known(self):
        stack = self.with_parameters(
            parameters={'first': 'who', 'second': 'who'}
        )
        error = self.assertRaises(
            exception.StackValidationFailed, stack.validate
        )
        assert '"who"' in str(error)
        # Heat validates a nested stack so before it has the values.
        later = self.with_parameters(strict_validate=False, name='later')
        later.validate()
        later.validate(validate_res_tmpl_only=True)

    def test_what_a_condition_leaves_out_is_not_there(self):
        no = {'if': [{'not': {'equals': ['a', 'a']}}, [{'name': 'x'}]]}
        self.validate({'inputs': no}, name='whole')
        no = {'if': [{'not': {'equals': [1, 1]}}, {'name': 'a'}]}
        self.validate({'inputs': [{'name': 'a'}, no]}, name='one')

    def test_every_config_gets_a_name(self):
        stack = self.heat.create(template(FULL))
        assert stack['config'].FnGetAtt('config') == FULL['config']
        self.heat.update(stack, template({**FULL, 'config': '#!/bin/bash'}))
        self.heat.update(self.heat.load(stack), template({'config': None}))
        names = [
            call.arguments['name']
            for call in self.heat.rpc.calls
            if call.method == 'create_software_config'
        ]
        assert len(names) == 3
        for name in names:
            self.assertRegex(name, '^stack-config-[a-z0-9]+$')

        # One that is gone can be deleted, and has no attribute.
        again = self.heat.load(stack)
        number = again['config'].resource_id
        self.heat.rpc.delete_software_config(self.heat.context, number)
        assert again['config'].FnGetAtt('config') is None
        self.heat.delete(again)


class SameRowsTest(heat_fixture.HeatTestCase):
    """What Heat's class stores for a template, ours stores too."""

    def rows(self, types, properties):
        engine = heat_fixture.Heat(types)
        engine.setup()
        self.addCleanup(engine.cleanup)
        engine.create(template(properties))
        (call,) = engine.rpc.calls
        return {**call.arguments, 'name': 'differs'}

    def test_for_templates_full_and_bare(self):
        self.heat.cleanup()
        for properties in (FULL, {}, {'config': None}, {'inputs': None}):
            assert self.rows(OURS, properties) == self.rows({}, properties)
