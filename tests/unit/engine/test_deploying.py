# SPDX-License-Identifier: Apache-2.0
"""What a failure of Heat says to who has started a run."""

from heat.common import exception
from oslo_db import exception as db_exception
import testtools

from heat_plugins import errors
from heat_plugins.engine.database import stack_reading


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
