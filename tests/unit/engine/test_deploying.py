# SPDX-License-Identifier: Apache-2.0
"""What heat-engine reads of a stack for a run, and says of failures."""

from heat.common import exception
from heat.engine import environment
from heat.engine import stack as heat_stack
from heat.engine import template
from oslo_db import exception as db_exception
import testtools

from heat_plugins import errors
from heat_plugins.engine.database import stack_reading
from tests.unit import heat_fixture


class ParametersTest(heat_fixture.HeatTestCase):
    def test_a_value_comes_from_the_environment_else_from_the_template(self):
        declared = {'type': 'string', 'default': 'template'}
        whole = {
            'heat_template_version': '2021-04-16',
            'parameters': {'a': declared, 'b': declared, 'c': declared},
        }
        given = {'parameters': {'a': 'given'}}
        given['parameter_defaults'] = {'a': 'default', 'b': 'default'}
        stack = heat_stack.Stack(
            self.heat.context,
            'web',
            template.Template(whole, env=environment.Environment(given)),
        )
        stack.store()
        read = stack_reading.ProjectStacks(self.heat.context).stack('web')
        assert read.parameters == {
            'a': 'given',
            'b': 'default',
            'c': 'template',
        }


class FailureTest(testtools.TestCase):
    def told(self, error, kind):
        def fail():
            with stack_reading.translated('read stack 4f'):
                raise error

        return str(self.assertRaises(kind, fail))

    def test_it_names_what_was_to_be_done_and_none_of_heats_words(self):
        assert (
            self.told(exception.Error('hunter2'), errors.ServiceError)
            == 'Heat cannot read stack 4f: Error'
        )
        assert (
            self.told(db_exception.DBError('hunter2'), errors.Unavailable)
            == 'Heat cannot read stack 4f now: DBError'
        )

    def test_a_limit_of_the_project_is_told_with_its_remedy(self):
        error = exception.RequestLimitExceeded(message='Delete some.')
        assert 'Delete some.' in self.told(error, errors.ServiceError)
