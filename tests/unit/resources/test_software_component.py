# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareComponent: its actions, and what is refused."""

from heat.engine.resources.openstack.heat import software_component as heats

from heat_plugins.resources import software_config
from tests.unit import heat_fixture

OURS = {'OS::Heat::SoftwareComponent': software_config.SoftwareComponent}

SH = '#!/bin/sh\n'


def entry(*actions, **more):
    return {'tool': 'script', 'config': SH, 'actions': [*actions], **more}


def template(*entries, **properties):
    late = {'type': 'OS::Heat::Value', 'properties': {'value': 'LATE'}}
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            'component': {
                'type': 'OS::Heat::SoftwareComponent',
                'properties': {'configs': [*entries], **properties},
            },
            'late': late,
        },
    }


LATE = {'get_attr': ['late', 'value']}


class Cases:
    """What holds of our class and not of Heat's own."""

    def test_configs_and_actions_are_attributes(self):
        entries = [entry('CREATE', 'UPDATE'), entry('BACKUP', 'BACKUP')]
        stack = self.heat.create(template(*entries))
        component = stack['component']
        assert component.FnGetAtt('configs') == entries
        assert component.FnGetAtt('actions') == ['CREATE', 'UPDATE', 'BACKUP']

    def test_actions_that_are_not_there_yet_are_not_taken_for_equal(self):
        stack = self.heat.stack(
            template(
                {**entry(), 'actions': {'get_attr': ['late', 'value']}},
                {**entry(), 'actions': {'get_attr': ['late', 'value']}},
            )
        )
        stack.validate()

    def test_two_configs_for_an_action_are_refused_and_it_is_named(self):
        said = self.why_invalid(
            template(entry('CREATE'), entry('DELETE', 'CREATE'))
        )
        assert '"CREATE" already has a config' in said
        assert 'resources.component.properties' in said


class SoftwareComponentTest(Cases, heat_fixture.HeatTestCase):
    TYPES = OURS

    def test_has_heats_properties_and_all_its_attributes(self):
        ours = software_config.SoftwareComponent
        theirs = heats.SoftwareComponent
        assert ours.properties_schema == theirs.properties_schema
        assert {*theirs.attributes_schema, *theirs.ATTRIBUTES} <= {
            *ours.attributes_schema
        }

    def test_the_attributes_can_be_read_in_a_template(self):
        source = template(entry('CREATE'), entry('BACKUP'))
        source['outputs'] = {
            'all': {'value': {'get_attr': ['component', 'actions']}},
            'second': {'value': {'get_attr': ['component', 'actions', 1]}},
            'a': {'value': {'get_attr': ['component', 'configs', 0, 'tool']}},
        }
        stack = self.heat.load(self.heat.create(source))
        assert self.heat.outputs(stack) == {
            'all': ['CREATE', 'BACKUP'],
            'second': 'BACKUP',
            'a': 'script',
        }

    def test_an_entry_without_actions_offers_heats_default(self):
        bare = {'tool': 'script', 'config': SH}
        no = {'not': {'equals': [1, 1]}}
        for number, (entries, expected) in enumerate(
            (
                ([bare], []),
                ([{**bare, 'actions': None}], []),
                # As where a condition leaves them out.
                (
                    [
                        {**entry(), 'actions': {'if': [no, ['CREATE']]}},
                        entry('BACKUP', {'if': [no, 'CREATE']}),
                    ],
                    ['BACKUP'],
                ),
            )
        ):
            stack = self.heat.create(template(*entries), f'stack{number}')
            assert stack['component'].FnGetAtt('actions') == [
                'CREATE',
                'UPDATE',
                *expected,
            ]

    def test_attributes_are_none_before_and_after_the_row(self):
        stack = self.heat.stack(template(entry('CREATE')))
        assert stack['component'].FnGetAtt('actions') is None
        self.heat.run(stack, 'CREATE')
        self.heat.rpc.delete_software_config(
            self.heat.context, stack['component'].resource_id
        )
        again = self.heat.load(stack)
        assert again['component'].FnGetAtt('actions') is None
        assert again['component'].FnGetAtt('configs') is None

    def test_inputs_and_outputs_are_checked_too(self):
        said = self.why_invalid(
            template(
                entry('CREATE'),
                inputs=[{'name': 'deploy_action'}],
                outputs=[{'name': 'a'}, {'name': 'a'}],
            )
        )
        assert 'inputs[0]' in said
        assert 'outputs[1]' in said

    def test_what_is_hardly_meant_is_logged(self):
        stack = self.heat.stack(template(entry('create')))
        with self.assertLogs(software_config.__name__, 'WARNING') as logs:
            stack.validate()
        (record,) = logs.records
        for text in ('"create" is not "CREATE"', 'no entry serves CREATE'):
            assert text in record.getMessage()

    def test_stores_what_heats_class_stores(self):
        source = template(
            entry('CREATE'),
            {'tool': 'ansible', 'actions': ['DELETE']},
            inputs=[{'name': 'a', 'default': 'b'}],
            options={'tags': 'x'},
        )
        rows = []
        for types in ({}, OURS):
            engine = heat_fixture.Heat(types)
            engine.setup()
            self.addCleanup(engine.cleanup)
            engine.create(source)
            (call,) = engine.rpc.calls
            rows.append({**call.arguments, 'name': 'differs'})
        self.assertEqual(*rows)


@heat_fixture.fails_with_heats(Cases)
class HeatsOwnTest(Cases, heat_fixture.HeatTestCase):
    """The same against Heat's own class, which must fail."""
