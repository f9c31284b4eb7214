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


SOONEST = '/cron_triggers?limit=1&sort_keys=next_execution_time&sort_dirs=asc'


def session(*times, date=NOW, admin=False, status=200):
    """Return a session at a Mistral that has cron triggers."""

    def answer(request):
        path = request.url.removeprefix(URL)
        if status >= 300 or ('all_projects' in path and not admin):
            failed = status if status >= 300 else 403
            return failed, {'faultstring': 'why it fails'}, {'date': date}
        if path == '/workflows?limit=1':
            return 200, {'workflows': []}, {'date': date}
        assert path.startswith(SOONEST)
        rows = [
            {'id': time, 'name': f'at {time}', 'next_execution_time': time}
            for time in sorted(times)[:1]
        ]
        return 200, {'cron_triggers': rows}, {'date': date}

    service = web_service.Service()
    service.answer = answer
    return web_service.session(service, URL)


class ServiceTest(testtools.TestCase):
    def test_one_that_answers_is_good_and_one_that_fails_is_quoted(self):
        for there, code, said in (
            (session('2027-01-16 00:00:00'), Code.SUCCESS, 'Mistral answers.'),
            (session(status=503), Code.FAILURE, 'answers 503: why it fails'),
            (session(status=503), Code.FAILURE, '[clients_mistral]'),
        ):
            with mock.patch.object(mistral, 'check_trust'):
                found = mistral.service(there)
            assert found.code == code
            assert said in found.details

    def test_a_cloud_without_mistral_lacks_its_types(self):
        # The operator may want none.
        for check in (mistral.service, mistral.redelegation):
            found = check(web_service.session(web_service.Service(), None))
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
    def test_one_that_is_long_due_tells_that_none_fires(self):
        due, later = '2027-01-15 07:54:00', '2027-01-16 00:00:00'
        told = f'"at {due}" was due'
        long_ago = session('2001-01-01 00:00:00', date='')
        for code, text, there in (
            *(
                (Code.FAILURE, said, session(due, later, admin=admin))
                for admin in (True, False)
                for said in (told, '--server periodic')
            ),
            # Without triggers there is no evidence.
            (Code.SUCCESS, 'Cannot check whether', session()),
            (Code.SUCCESS, 'Cannot check whether', session(status=403)),
            (Code.WARNING, 'Mistral answers 500', session(status=500)),
            # Time is our own if Mistral does not tell its own.
            (Code.FAILURE, 'No cron trigger fires', long_ago),
        ):
            found = cloud.CheckReport()
            client = mistral_api.connect(rest.Cloud(there))
            mistral.check_cron_triggers(found, client)
            assert found.result().code == code
            assert text in found.result().details
