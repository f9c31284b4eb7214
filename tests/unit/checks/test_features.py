# SPDX-License-Identifier: Apache-2.0
"""What works on a cloud, by what it has and lacks."""

from unittest import mock

from oslo_config import cfg
from oslo_config import fixture as config_fixture
import testtools

from heat_plugins import config
from heat_plugins import wording
from heat_plugins.checks import agents
from heat_plugins.checks import engine
from heat_plugins.checks import features
from heat_plugins.checks import mistral
from heat_plugins.checks import object_store
from tests.unit.osc import test_missing_services as commands

DEPLOYMENTS = (
    'Deployments by TEMP_URL_POLL',
    'Deployments by CFN_SIGNAL',
    'Deployments by HEAT_SIGNAL',
    'Deployments by ZAQAR_SIGNAL',
)
OF_MISTRAL = ('Workflows', 'Cron triggers', 'Plans by workflow')
OF_THE_STORE = (
    'Deployments by TEMP_URL_POLL',
    'Live output and stopping of runs',
    'Machines that join',
    'Plans',
    'Plans by workflow',
)


class FeaturesTest(testtools.TestCase):
    """A cloud that has all; each test takes something away."""

    def setUp(self):
        super().setUp()
        places = [(engine, 'check_served'), (agents, 'check_transport')]
        for name in ('connect', 'check_temp_urls'):
            places.append((object_store, name))
        places += [(mistral, 'check_trust'), (mistral, 'check_cron_triggers')]
        self.checks = dict.fromkeys(places, mock.Mock(return_value=None))
        self.checks[engine, 'check_tables'] = lambda report: True
        self.checks[mistral, 'connect'] = mock.Mock()

    def of(self, session='a session'):
        for (module, name), check in self.checks.items():
            self.patch(module, name, check)
        rows = features.features(session)
        return {row.name: (row.works, row.reason) for row in rows}

    def names(self, works):
        return {name for name, row in self.of().items() if row[0] is works}

    def test_schedules_need_an_engine_that_keeps_them(self):
        rows = self.of()
        assert set(rows.values()) == {(True, '')}
        assert rows.keys() >= {*DEPLOYMENTS, *OF_MISTRAL, *OF_THE_STORE}
        conf = self.useFixture(config_fixture.Config(cfg.CONF))
        conf.config(group=config.GROUP, rescue_interval=0)
        assert self.names(works=False) == {'Schedules'}

    def lack_the_store(self):
        def fail(report, transport, absent):
            absent('object-store')

        self.checks[object_store, 'check_temp_urls'] = fail

    def fail_transport(self, name, said):
        self.checks[agents, 'check_transport'] = lambda report, _, asked: (
            report.fail(said) if asked == name else None
        )

    def test_without_an_object_store_its_features_say_so(self):
        self.lack_the_store()
        assert self.names(False) == set(OF_THE_STORE)
        reason = f'{wording.no_service("object-store")}.'
        assert self.of()['Plans'] == (False, reason)

    def test_runs_need_the_object_store_or_heat_api_cfn(self):
        self.fail_transport('CFN_SIGNAL', 'There is no heat-api-cfn.')
        assert self.of()['Runs'][0]
        self.lack_the_store()
        for name in ('Runs', 'Schedules'):
            works, reason = self.of()[name]
            assert works is False
            assert 'no object store' in reason
            assert 'There is no heat-api-cfn.' in reason

    def test_a_part_in_doubt_is_no_yes(self):
        self.checks[mistral, 'check_cron_triggers'] = lambda report, client: (
            report.unsure('There are none.')
        )
        assert self.of()['Cron triggers'] == (None, 'There are none.')
        assert self.names(None) == {'Cron triggers'}
        self.checks[engine, 'check_tables'] = lambda report: report.doubt(
            'They are not there yet.'
        )
        of_runs = {'Runs', 'Live output and stopping of runs', 'Schedules'}
        of_runs |= {'Actions by webhook', 'Cron triggers'}
        assert self.names(None) == of_runs

    def test_a_transport_that_fails_is_named_where_it_matters(self):
        def invalid(report, session, name):
            if name == 'CFN_SIGNAL':
                raise cfg.ConfigFileValueError('multi_cloud is no boolean')

        self.checks[agents, 'check_transport'] = invalid
        failing = {'Actions by webhook', 'Deployments by CFN_SIGNAL'}
        assert self.names(False) == failing
        _, reason = self.of()['Actions by webhook']
        assert reason == 'heat.conf is wrong: multi_cloud is no boolean'

    def test_without_credentials_only_what_is_certain_is_told(self):
        said = 'Heat cannot create users.'
        self.fail_transport('HEAT_SIGNAL', said)
        rows = self.of(session=None)
        assert rows.pop('Deployments by HEAT_SIGNAL') == (False, said)
        assert {works for works, _ in rows.values()} == {None}
        for _, reason in rows.values():
            assert '--os-cloud' in reason
        reasons = {
            row.reason
            for row in features.features(None, 'Cannot get a token')
            if row.name in rows
        }
        assert reasons == {'Cannot get a token'}


def test_a_service_that_is_lacking_is_the_reason():
    for service_type, part in (
        (commands.MISTRAL, 'mistral_answers'),
        (commands.SWIFT, 'object_store'),
    ):
        session = commands.session(service_type)
        (reason,) = features.report(part, session, '').failures
        assert reason == f'{wording.no_service(service_type)}.'
