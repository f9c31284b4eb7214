# SPDX-License-Identifier: Apache-2.0
"""What heat-engine reads of a stack for a run, and says of failures."""

from heat.common import exception
from heat.engine import environment
from heat.engine import stack as heat_stack
from heat.engine import template
from oslo_db import exception as db_exception
import pytest

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


@pytest.mark.parametrize(
    ('error', 'kind', 'said'),
    [
        (exception.Error('SQL'), errors.ServiceError, 'read 4f: Error'),
        (
            db_exception.DBError('SQL'),
            errors.Unavailable,
            'read 4f now: DBError',
        ),
        # A limit of the project is told with its remedy.
        (
            exception.RequestLimitExceeded(message='Delete some.'),
            errors.ServiceError,
            'Delete some.',
        ),
    ],
)
def test_a_failure_names_what_was_to_be_done_and_no_values(error, kind, said):
    with pytest.raises(kind) as raised, stack_reading.translated('read 4f'):
        raise error
    assert said in str(raised.value)
    assert 'SQL' not in str(raised.value)
