# SPDX-License-Identifier: Apache-2.0
"""What works on a cloud, by what it has and lacks."""

from unittest import mock

from oslo_config import cfg
import pytest
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
        self.checks = {
            (engine, 'check_served'): lambda report, names: None,
            (engine, 'check_tables'): lambda report: True,
            (agents, 'check_transport'): lambda report, session, name: None,
            (object_store, 'connect'): lambda session: None,
            (object_store, 'check_temp_urls'): lambda *_, absent: None,
            (mistral, 'connect'): lambda report, session, absent: mock.Mock(),
            (mistral, 'check_trust'): lambda report, session: None,
            (mistral, 'check_cron_triggers'): lambda report, client: None,
        }

    def of(self, session='a session'):
        for (module, name), check in self.checks.items():
            self.patch(module, name, check)
        rows = features.features(session)
        return {row.name: (row.works, row.reason) for row in rows}

    def names(self, works, session='a session'):
        return {
            name for name, row in self.of(session).items() if row[0] is works
        }

    def test_schedules_need_an_engine_that_keeps_them(self):
        assert self.names(works=False) == set()
        cfg.CONF.set_override('rescue_interval', 0, config.GROUP)
        self.addCleanup(
            cfg.CONF.clear_override, 'rescue_interval', config.GROUP
        )
        assert self.names(works=False) == {'Schedules'}

    def test_a_cloud_that_has_all_does_all(self):
        rows = self.of()
        assert set(rows.values()) == {(True, '')}
        for name in (*DEPLOYMENTS, *OF_MISTRAL, *OF_THE_STORE):
            assert name in rows

    def test_without_an_object_store_its_features_say_so(self):
        def fail(report, transport, absent):
            absent('object-store')

        self.checks[object_store, 'check_temp_urls'] = fail
        assert self.names(False) == set(OF_THE_STORE)
        reason = f'{wording.no_service("object-store")}.'
        assert self.of()['Plans'] == (False, reason)

    def test_runs_need_the_object_store_or_heat_api_cfn(self):
        def fail(report, transport, absent):
            absent('object-store')

        def lacking(report, session, name):
            if name == 'CFN_SIGNAL':
                report.fail('There is no heat-api-cfn.')

        self.checks[agents, 'check_transport'] = lacking
        assert self.of()['Runs'][0]
        self.checks[object_store, 'check_temp_urls'] = fail
        for name in ('Runs', 'Schedules'):
            works, reason = self.of()[name]
            assert works is False
            assert 'no object store' in reason
            assert 'There is no heat-api-cfn.' in reason

    def test_a_part_in_doubt_is_no_yes(self):
        def unsure(report, client):
            report.unsure('There are none.')

        self.checks[mistral, 'check_cron_triggers'] = unsure
        assert self.of()['Cron triggers'] == (None, 'There are none.')
        assert self.names(None) == {'Cron triggers'}
        self.checks[engine, 'check_tables'] = lambda report: report.doubt(
            'They are not there yet.'
        )
        of_runs = {
            'Runs',
            'Live output and stopping of runs',
            'Schedules',
            'Actions by webhook',
        }
        assert self.names(None) - {'Cron triggers'} == of_runs

    def test_a_transport_that_fails_is_named_where_it_matters(self):
        def invalid(report, session, name):
            if name == 'CFN_SIGNAL':
                raise cfg.ConfigFileValueError('multi_cloud is no boolean')
            if name == 'ZAQAR_SIGNAL':
                report.fail('The catalogue has no messaging.')

        self.checks[agents, 'check_transport'] = invalid
        assert self.names(False) == {
            'Deployments by CFN_SIGNAL',
            'Deployments by ZAQAR_SIGNAL',
            'Actions by webhook',
        }
        _, reason = self.of()['Actions by webhook']
        assert reason == 'heat.conf is wrong: multi_cloud is no boolean'

    def test_without_credentials_only_what_is_certain_is_told(self):
        def broken(report, session, name):
            if name == 'HEAT_SIGNAL':
                report.fail('Heat cannot create users.')

        self.checks[agents, 'check_transport'] = broken
        rows = self.of(session=None)
        assert rows.pop('Deployments by HEAT_SIGNAL') == (
            False,
            'Heat cannot create users.',
        )
        assert {works for works, _ in rows.values()} == {None}
        for _, reason in rows.values():
            assert '--os-cloud' in reason
        reasons = {
            row.reason
            for row in features.features(None, 'Cannot get a token')
            if row.name in rows
        }
        assert reasons == {'Cannot get a token'}


@pytest.mark.parametrize(
    ('service_type', 'part', 'command', 'more'),
    [
        (
            commands.MISTRAL,
            'mistral_answers',
            'deployment plan validation run',
            (),
        ),
        (commands.SWIFT, 'object_store', 'deployment plan show', ('--local',)),
    ],
)
def test_commands_give_the_reason_of_the_table(
    service_type, part, command, more, tmp_path
):
    session = commands.session(service_type)
    (reason,) = features.report(part, session, '').failures
    said = commands.outcome(command, service_type, tmp_path, *more)
    assert said == wording.no_service(service_type)
    assert reason == f'{said}.'
