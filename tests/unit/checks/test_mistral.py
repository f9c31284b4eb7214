# SPDX-License-Identifier: Apache-2.0
"""Whether cron triggers fire, as far as Mistral's API tells."""

from keystoneauth1 import exceptions
from oslo_upgradecheck import upgradecheck
import requests
import testtools

from heat_plugins.checks import mistral
from heat_plugins.checks import report

Code = upgradecheck.Code

NOW = 'Fri, 15 Jan 2027 08:00:00 GMT'


class Session:
    """Answers as Mistral does to one who is no administrator."""

    def __init__(self, *times, date=NOW, admin=False):
        self._times = times
        self._date = date
        self._admin = admin
        self.failure = None

    def get(self, path, endpoint_filter, **options):
        if self.failure:
            raise self.failure
        if 'all_projects' in path and not self._admin:
            raise exceptions.Forbidden
        assert 'limit=1&sort_keys=next_execution_time&sort_dirs=asc' in path
        answer = requests.Response()
        answer.headers['date'] = self._date
        rows = [
            {'id': time, 'name': f'at {time}', 'next_execution_time': time}
            for time in sorted(self._times)[:1]
        ]
        answer.json = lambda: {'cron_triggers': rows}
        return answer


class CronTriggerTest(testtools.TestCase):
    def check(self, session):
        found = report.Report()
        mistral._check_cron_triggers(found, session, {})
        return found.result()

    def assert_told(self, code, text, session):
        found = self.check(session)
        self.assertEqual(code, found.code)
        self.assertIn(text, found.details)

    def test_one_that_is_long_due_tells_that_none_fires(self):
        for admin in (True, False):
            session = Session(
                '2027-01-15 07:54:00', '2027-01-16 00:00:00', admin=admin
            )
            self.assert_told(
                Code.FAILURE, '"at 2027-01-15 07:54:00" was due', session
            )
            self.assert_told(Code.FAILURE, '--server periodic', session)

    def test_a_little_delay_is_no_matter(self):
        session = Session('2027-01-15 07:56:00')
        self.assert_told(Code.SUCCESS, 'is overdue', session)

    def test_without_triggers_there_is_no_evidence(self):
        self.assert_told(Code.SUCCESS, 'is not known', Session())

    def test_time_is_our_own_if_mistral_does_not_tell_it(self):
        session = Session('2001-01-01 00:00:00', date='')
        self.assert_told(Code.FAILURE, 'No cron trigger fires', session)

    def test_who_may_list_none_is_not_blamed(self):
        session = Session()
        session.failure = exceptions.Forbidden()
        self.assert_told(Code.SUCCESS, 'is not known', session)

    def test_a_failure_of_mistral_is_told(self):
        session = Session()
        session.failure = exceptions.InternalServerError()
        self.assert_told(Code.WARNING, 'InternalServerError', session)
