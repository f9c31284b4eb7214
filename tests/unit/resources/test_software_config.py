# SPDX-License-Identifier: Apache-2.0
"""The config types: as Heat's, and checked while they are validated."""

from heat.common import exception
from heat.engine.resources.openstack.heat import (
    software_component as heats_component,
)
from heat.engine.resources.openstack.heat import software_config as heats
from heat.engine.resources.openstack.heat import (
    structured_config as heats_structured,
)
import pytest

from heat_plugins.resources import software_config
from tests.unit import heat_fixture

CONFIG, STRUCTURED, COMPONENT = TYPES = {
    'OS::Heat::SoftwareConfig': software_config.SoftwareConfig,
    'OS::Heat::StructuredConfig': software_config.StructuredConfig,
    'OS::Heat::SoftwareComponent': software_config.SoftwareComponent,
}

SH = '#!/bin/sh\necho $who\n'
FULL = {
    'group': 'script',
    'config': SH,
    'inputs': [
        {'name': 'who', 'default': 'world'},
        {'name': 'n', 'type': 'Number', 'default': 3},
    ],
    'outputs': [{'name': 'trouble', 'error_output': True}],
    'options': {'anything': [1, 2]},
}
TWICE = [{'name': 'a'}, {'name': 'a'}]
LATE = {'get_attr': ['late', 'value']}
#: A condition that never holds.
NEVER = {'not': {'equals': [1, 1]}}


def entry(*actions, **more):
    return {'tool': 'script', 'config': SH, 'actions': [*actions], **more}


def configs(*entries, **properties):
    return {'configs': [*entries], **properties}


def template(kind, properties, **sections):
    return {
        'heat_template_version': '2021-04-16',
        **sections,
        'resources': {
            'config': {'type': kind, 'properties': properties},
            'late': {
                'type': 'OS::Heat::Value',
                'properties': {'value': 'LATE'},
            },
        },
    }


@pytest.mark.parametrize(
    ('ours', 'theirs'),
    [
        (software_config.SoftwareConfig, heats.SoftwareConfig),
        (software_config.StructuredConfig, heats_structured.StructuredConfig),
        (software_config.SoftwareComponent, heats_component.SoftwareComponent),
    ],
)
def test_each_has_heats_properties_and_attributes(ours, theirs):
    assert ours.properties_schema == theirs.properties_schema
    # A resource adds those that all types have to its class's own.
    named = {*theirs.attributes_schema, *theirs.ATTRIBUTES}
    named -= {*theirs.base_attributes_schema}
    assert named <= {*ours.attributes_schema}


class ConfigTest(heat_fixture.HeatTestCase):
    TYPES = TYPES

    def attribute(self, stack, name):
        loaded = self.heat.load(stack)
        return loaded['config'].FnGetAtt(name)

    def row_of(self, types, kind, properties):
        engine = heat_fixture.Heat(types)
        engine.setup()
        self.addCleanup(engine.cleanup)
        engine.create(template(kind, properties))
        (call,) = engine.rpc.calls
        return {**call.arguments, 'name': 'differs'}

    def test_they_store_what_heats_classes_store(self):
        self.heat.cleanup()
        more = {'inputs': [{'name': 'a', 'default': 'b'}], 'options': {'b': 1}}
        entries = entry('CREATE'), {'tool': 'ansible', 'actions': ['DELETE']}
        for kind, properties in (
            (CONFIG, FULL),
            (CONFIG, {}),
            (CONFIG, {'config': None, 'inputs': None}),
            (STRUCTURED, {'group': 'hiera', 'config': {'a': {'b': 'c'}}}),
            (COMPONENT, configs(*entries, **more)),
        ):
            ours = self.row_of(TYPES, kind, properties)
            assert ours == self.row_of({}, kind, properties)

    def test_a_change_is_another_row_and_a_lost_one_is_no_trouble(self):
        stack = self.heat.create(template(CONFIG, FULL))
        assert self.attribute(stack, 'config') == SH
        before = stack['config'].resource_id
        self.heat.update(stack, template(CONFIG, {'config': None}))
        again = self.heat.load(stack)
        number = again['config'].resource_id
        assert number != before
        self.heat.rpc.delete_software_config(self.heat.context, number)
        assert again['config'].FnGetAtt('config') is None
        self.heat.delete(again)

    def test_all_mistakes_are_named_at_once_and_doubts_are_logged(self):
        twice = 'outputs[1]: the output "a" is declared 2'
        entries = [entry('BACKUP'), entry('DELETE', 'BACKUP')]
        structured = {'group': 'component', 'config': configs(*entries)}
        double, where = '"BACKUP" already has', 'resources.config.properties: '
        both = {'inputs': TWICE, 'outputs': TWICE}
        for kind, properties, *said in (
            (CONFIG, both, where, 'inputs[1]: the input "a" is', twice),
            (STRUCTURED, structured, double),
            (COMPONENT, configs(*entries, **both), where, twice, double),
        ):
            message = self.why_invalid(template(kind, properties))
            for text in said:
                assert text in message
        doubt = {'group': 'scirpt', 'outputs': [{'name': 'deploy_stdout'}]}
        create = configs(entry('create'))
        for kind, properties, *said in (
            (CONFIG, doubt, 'deploy_stdout', 'scirpt'),
            (COMPONENT, create, 'is not "CREATE"', 'no entry serves CREATE'),
        ):
            stack = self.heat.stack(template(kind, properties), name=kind[10:])
            with self.assertLogs(software_config.__name__, 'DEBUG') as logs:
                stack.validate()
            (warning,) = logs.records
            assert warning.levelname == 'WARNING'
            for text in (*said, f'{kind} "config" in stack "{kind[10:]}"'):
                assert text in warning.getMessage()

    def test_what_is_not_known_or_left_out_is_not_checked(self):
        parameters = {'a': {'type': 'string', 'default': ''}}
        names = [{'name': {'get_param': 'a'}}] * 2
        content = template(CONFIG, {'inputs': names}, parameters=parameters)
        stack = self.heat.stack(content, 'known', {'a': 'who'})
        error = self.assertRaises(
            exception.StackValidationFailed, stack.validate
        )
        assert '"who"' in str(error)
        # Heat validates a nested stack so before it has the values.
        self.heat.stack(content, 'nested', strict_validate=False).validate()
        late = [entry(actions=LATE), entry(actions=LATE)]
        for kind, properties in (
            (COMPONENT, configs(*late)),
            (CONFIG, {'inputs': {'if': [NEVER, TWICE]}}),
            (CONFIG, {'inputs': [TWICE[0], {'if': [NEVER, TWICE[0]]}]}),
        ):
            self.heat.stack(
                template(kind, properties), self.getUniqueString()
            ).validate()

    def test_a_components_configs_and_actions_are_attributes(self):
        # A condition leaves actions out; then Heat's default counts.
        left_out = {'if': [NEVER, ['CREATE']]}
        entries = [entry(actions=left_out), entry('BACKUP', 'BACKUP')]
        outputs = {
            'second': {'value': {'get_attr': ['config', 'actions', 1]}},
            'tool': {'value': {'get_attr': ['config', 'configs', 0, 'tool']}},
        }
        stack = self.heat.stack(
            template(COMPONENT, configs(*entries), outputs=outputs)
        )
        assert stack['config'].FnGetAtt('actions') is None
        self.heat.run(stack, 'CREATE')
        actions = self.attribute(stack, 'actions')
        assert actions == ['CREATE', 'UPDATE', 'BACKUP']
        shown = self.heat.outputs(self.heat.load(stack))
        assert shown == {'second': 'UPDATE', 'tool': 'script'}
        self.heat.rpc.delete_software_config(
            self.heat.context, stack['config'].resource_id
        )
        assert self.attribute(stack, 'actions') is None
