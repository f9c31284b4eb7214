# SPDX-License-Identifier: Apache-2.0
"""What a failure of Heat says to who has started a run."""

from heat.common import exception
from oslo_db import exception as db_exception
import testtools

from heat_plugins import errors
from heat_plugins.engine.database import own_heat


class Failing:
    """Heat's RPC client, where one call fails."""

    def __init__(self, error):
        self._error = error

    def create_software_deployment(self, cnxt, **values):
        raise self._error


class FailureTest(testtools.TestCase):
    def told(self, error, kind):
        heat = own_heat.OwnHeat(Failing(error), None)
        found = self.assertRaises(
            kind,
            heat.create_deployment,
            config_id='c1',
            server_id='4f',
            action='BACKUP',
            reason='',
        )
        return str(found)

    def test_it_names_what_was_to_be_done_and_none_of_heats_words(self):
        self.assertEqual(
            'Heat cannot deliver BACKUP to server 4f: Error',
            self.told(exception.Error('hunter2'), errors.ServiceError),
        )
        self.assertEqual(
            'Heat cannot deliver BACKUP to server 4f now: DBError',
            self.told(db_exception.DBError('hunter2'), errors.Unavailable),
        )

    def test_a_limit_of_the_project_is_told_with_its_remedy(self):
        error = exception.RequestLimitExceeded(message='Delete some.')
        self.assertIn('Delete some.', self.told(error, errors.ServiceError))
