# SPDX-License-Identifier: Apache-2.0
"""Templates for Heat's own workflow class mean the same to ours."""

from unittest import mock

from heat.common import exception
from heat.engine.resources.openstack.mistral import workflow as heats
import yaml

from heat_plugins.resources import workflow
from tests.unit import heat_fixture
from tests.unit.mistral import fake_service

#: Each value in a form that Heat's class takes, with functions among them.
PROPERTIES = {
    'type': 'direct',
    'description': {'get_param': 'text'},
    'tags': ['a', {'get_param': 'text'}],
    'input': {'x': {'get_param': 'number'}, 'y': None},
    'output': {'o': '<% $.o %>'},
    'task_defaults': {
        'on_error': ['last'],
        'retry': {'count': 2, 'delay': 1},
        'wait_before': '1',
        'wait_after': 2,
        'pause_before': 'false',
        'timeout': {'get_param': 'number'},
    },
    'tasks': [
        {
            'name': 'first',
            'description': 'why',
            'action': {'get_param': 'action'},
            'input': {'output': {'get_param': 'number'}},
            'publish': {'o': '<% task().result %>'},
            'on_success': [{'get_param': 'last'}],
            'on_error': ['last', 'noop'],
            'on_complete': [],
            'wait_before': 0,
            'wait_after': '3',
            'pause_before': 'True',
            'timeout': {'get_param': 'number'},
            'with_items': 'i in <% $.x %>',
            'concurrency': '2',
            'keep_result': 'false',
            'target': 'there',
        },
        {
            'name': 'last',
            'action': 'std.echo output=1',
            'join': 'all',
            'policies': {'retry': {'count': 3, 'delay': 1}},
        },
    ],
}

PARAMETERS = {
    'text': {'type': 'string', 'default': 'a text'},
    'number': {'type': 'number', 'default': 5},
    'action': {'type': 'string', 'default': 'std.echo'},
    'last': {'type': 'string', 'default': 'last'},
}


class HeatsTemplatesTest(heat_fixture.HeatTestCase):
    TYPES = {
        'OS::Mistral::Workflow': workflow.Workflow,
        'Heats::Own': heats.Workflow,
    }

    def setUp(self):
        super().setUp()
        available = classmethod(lambda *_: (True, None))
        for cls, name, value in (
            (
                workflow.Workflow,
                '_service',
                lambda _: fake_service.FakeService(),
            ),
            (workflow.Workflow, 'is_service_available', available),
            (heats.Workflow, 'is_service_available', available),
        ):
            patch = mock.patch.object(cls, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def resources(self, **changed):
        """Return a resource of each class, ours first."""
        properties = {'name': 'w', **PROPERTIES, **changed}
        content = {
            'heat_template_version': '2021-04-16',
            'parameters': PARAMETERS,
            'resources': {
                kind: {'type': kind, 'properties': properties}
                for kind in self.TYPES
            },
        }
        stack = self.heat.stack(content, name=self.getUniqueString())
        # It knows its resources no longer than it lives itself.
        self.addCleanup(lambda: stack)
        return [stack[kind] for kind in self.TYPES]

    def task(self, **changed):
        first = {**PROPERTIES['tasks'][0], **changed}
        first = {key: value for key, value in first.items() if value != '-'}
        return {'tasks': [first, PROPERTIES['tasks'][1]]}

    def test_mistral_is_told_the_same(self):
        ours, heats_own = self.resources()
        ours.validate()
        heats_own.validate()
        told = yaml.safe_load(ours._wanted(ours.properties).text())['w']
        expected = yaml.safe_load(
            heats_own.prepare_properties(heats_own.properties)
        )['w']
        # Ours has the values as well, which are the defaults of a run.
        self.assertEqual([{'x': 5}, {'y': None}], told.pop('input'))
        self.assertEqual(['x', 'y'], expected.pop('input'))
        # Heat's class leaves out what is false in the one, and writes what
        # is empty in the other.
        self.assertIs(False, told['task-defaults'].pop('pause-before'))
        first = expected['tasks']['first']
        self.assertEqual([], first.pop('on-complete'))
        self.assertEqual(expected, told)

    def test_what_heats_class_refuses_is_refused(self):
        for changed in (
            {'type': 'sideways'},
            {'tasks': []},
            {'type': 'reverse'},
            self.task(action='-'),
            self.task(workflow='other'),
            self.task(requires=['last']),
            self.task(policies={'timeout': 3}),
            self.task(with_items='-'),
            self.task(name='-'),
            self.task(unknown=1),
            self.task(publish='text'),
        ):
            for one in self.resources(**changed):
                self.assertRaises(exception.HeatException, one.validate)
