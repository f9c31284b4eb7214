# SPDX-License-Identifier: Apache-2.0
"""Whether Mistral answers, and whether cron triggers fire."""

from unittest import mock

from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_upgradecheck import upgradecheck
import testtools

from heat_plugins.checks import cloud
from heat_plugins.checks import mistral
from heat_plugins.clients import mistral_api
from heat_plugins.clients import rest
from tests.unit import web_service

Code = upgradecheck.Code

NOW = 'Fri, 15 Jan 2027 08:00:00 GMT'
URL = 'http://mistral.example.com/v2'


class Wire(web_service.Service):
    """Answers as Mistral does to one who is no administrator."""

    def __init__(self, *times, date=NOW, admin=False, status=200):
        super().__init__()
        self._times = times
        self._date = date
        self._admin = admin
        self._status = status

    def answer(self, request):
        path = request.url.removeprefix(URL)
        status = self._status
        if 'all_projects' in path and not self._admin:
            status = 403
        body = {'workflows': []}
        if path != '/workflows?limit=1':
            assert path.startswith(
                '/cron_triggers?limit=1&sort_keys=next_execution_time'
                '&sort_dirs=asc'
            )
            rows = [
                {'id': time, 'name': f'at {time}', 'next_execution_time': time}
                for time in sorted(self._times)[:1]
            ]
            body = {'cron_triggers': rows}
        if status >= 300:
            body = {'faultstring': 'why it fails'}
        return status, body, {'date': self._date}


def session(service):
    return web_service.session(service, URL)


class ServiceTest(testtools.TestCase):
    def test_one_that_answers_is_good_and_one_that_fails_is_quoted(self):
        for wire, code, said in (
            (Wire('2027-01-16 00:00:00'), Code.SUCCESS, 'Mistral answers.'),
            (Wire(status=503), Code.FAILURE, 'answers 503: why it fails'),
            (Wire(status=503), Code.FAILURE, '[clients_mistral]'),
        ):
            with mock.patch.object(mistral, 'check_trust'):
                found = mistral.service(session(wire))
            assert found.code == code
            assert said in found.details

    def test_a_cloud_without_mistral_lacks_its_types(self):
        # The operator may want none.
        for check in (mistral.service, mistral.redelegation):
            found = check(web_service.session(Wire(), None))
            assert found.code == Code.SUCCESS
            assert 'Not here: This region has no Mistral' in found.details


class RedelegationTest(testtools.TestCase):
    def test_mistral_has_trusts_where_heat_acts_by_trusts(self):
        conf = self.useFixture(config_fixture.Config(cfg.CONF))
        for method, allowed, roles, code, said in (
            ('', False, [], Code.SUCCESS, 'may not create trusts'),
            ('trusts', False, [], Code.WARNING, 'No stack can have'),
            ('', True, [], Code.WARNING, 'has no effect'),
            ('trusts', True, [], Code.SUCCESS, 'may create trusts'),
            ('trusts', True, ['a', 'b'], Code.WARNING, 'only a, b'),
        ):
            conf.config(
                reauthentication_auth_method=method,
                allow_trusts_redelegation=allowed,
                trusts_delegated_roles=roles,
            )
            found = mistral.redelegation(None)
            assert found.code == code
            assert said in found.details


class CronTriggerTest(testtools.TestCase):
    def assert_told(self, code, text, wire):
        found = cloud.CheckReport()
        client = mistral_api.connect(rest.Cloud(session(wire)))
        mistral.check_cron_triggers(found, client)
        assert found.result().code == code
        assert text in found.result().details

    def test_one_that_is_long_due_tells_that_none_fires(self):
        due, later = '2027-01-15 07:54:00', '2027-01-16 00:00:00'
        for admin in (True, False):
            for said in (f'"at {due}" was due', '--server periodic'):
                wire = Wire(due, later, admin=admin)
                self.assert_told(Code.FAILURE, said, wire)

    def test_each_other_answer_is_told(self):
        long_ago = Wire('2001-01-01 00:00:00', date='')
        for code, text, wire in (
            # Without triggers there is no evidence.
            (Code.SUCCESS, 'Cannot check whether', Wire()),
            (Code.SUCCESS, 'Cannot check whether', Wire(status=403)),
            (Code.WARNING, 'Mistral answers 500', Wire(status=500)),
            # Time is our own if Mistral does not tell its own.
            (Code.FAILURE, 'No cron trigger fires', long_ago),
        ):
            self.assert_told(code, text, wire)
