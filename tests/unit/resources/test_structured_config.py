# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::StructuredConfig: as Heat's, and checked."""

from heat.engine.resources.openstack.heat import structured_config as heats

from heat_plugins.resources import software_config
from tests.unit import heat_fixture


def template(properties):
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            'config': {
                'type': 'OS::Heat::StructuredConfig',
                'properties': properties,
            },
        },
    }


class StructuredConfigTest(heat_fixture.HeatTestCase):
    TYPES = {'OS::Heat::StructuredConfig': software_config.StructuredConfig}

    BODY = {'datafiles': {'common': {'who': {'get_input': 'who'}}}}

    def test_has_heats_properties_and_attributes(self):
        ours = software_config.StructuredConfig
        assert (
            ours.properties_schema == heats.StructuredConfig.properties_schema
        )
        assert (
            ours.attributes_schema == heats.StructuredConfig.attributes_schema
        )

    def test_a_map_is_stored_and_is_an_attribute(self):
        stack = self.heat.create(
            template(
                {
                    'group': 'hiera',
                    'config': self.BODY,
                    'inputs': [{'name': 'who'}],
                }
            )
        )
        config = stack['config']
        assert isinstance(config, software_config.StructuredConfig)
        assert config.FnGetAtt('config') == self.BODY

    def test_a_component_written_as_a_map_is_checked_as_one(self):
        message = self.why_invalid(
            template(
                {
                    'group': 'component',
                    'inputs': [{'name': 'deploy_signal_id'}],
                    'outputs': [{'name': 'a'}, {'name': 'a'}],
                    'config': {
                        'configs': [
                            {'actions': ['BACKUP'], 'tool': 'ansible'},
                            {'actions': ['BACKUP', ''], 'tool': 'ansible'},
                        ]
                    },
                }
            )
        )
        assert '"deploy_signal_id"' in message
        assert 'outputs[1]' in message
        assert '"BACKUP" already has a config' in message
        assert 'the action "" is blank' in message
