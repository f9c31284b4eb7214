# SPDX-License-Identifier: Apache-2.0
"""How a deployment learns that its server has begun."""

from heat_plugins import heat_values
from heat_plugins.signals import body
from tests.unit.resources import deployments

OTHERS = ('HEAT_SIGNAL', 'CFN_SIGNAL')


def report(config):
    return {body.REPORT: {}, body.CONFIG_ID: config['id']}


class BeginningTestCase(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        self.heat.auth.endpoints['cloudformation'] = 'http://cfn.invalid/v1'

    def given(self):
        """Return the inputs that the server was handed last."""
        return deployments.inputs(self.handed[-1])

    def report(self, body=b'{}'):
        """PUT a report, as the server would."""
        url = self.given()['deploy_progress_url']
        return self.swift.put_signed(url, body)

    def begun(self, stack):
        """Return the events that say that a server has begun."""
        return [
            event
            for event in deployments.events(stack)
            if heat_values.event_kind(event) is heat_values.EventKind.STARTED
        ]

    def reason(self):
        (row,) = self.deployment_rows()
        return row.status_reason


class ReportTest(BeginningTestCase):
    def test_a_report_is_told_once(self):
        stack, task = self.waiting(deployments.template(timeout=60))
        # It is an object beside the result.
        given = self.given()
        assert given['deploy_signal_timeout'] == '60'
        paths = [
            given[name].partition('?')[0]
            for name in ('deploy_signal_id', 'deploy_progress_url')
        ]
        assert paths[1] == f'{paths[0]}.progress'
        assert self.begun(stack) == []
        self.report()
        self.step(task, 10)
        self.report(b'{"message": "half of it"}')
        self.step(task, 10)
        (event,) = self.begun(stack)
        assert event == 'Started: CREATE on server server'
        assert (
            self.reason() == 'The server has started the action [hp:started]'
        )
        reason = self.failed(task, stack)
        assert 'The server reported the start' in reason
        assert f'{self.handed[0]["id"]}.notify.json' in reason

    def test_a_signal_that_is_a_report_or_late_ends_nothing(self):
        for transport in OTHERS:
            stack, task = self.waiting(
                deployments.template(signal_transport=transport)
            )
            resource = self.heat.load(stack)['deployment']
            # A result, or a report, of what came before.
            late = {'deploy_status_code': 1, body.CONFIG_ID: 'c0'}
            resource.signal(late)
            resource.signal({'deploy_progress': {}, 'deploy_config_id': 'c0'})
            assert not self.step(task, 9)
            assert self.begun(stack) == []
            for _ in range(2):
                resource.signal(report(self.handed[-1]))
                assert not self.step(task, 9)
            assert self.begun(stack) == [
                'Signal: Started: CREATE on server server'
            ]
            resource.signal({**late, body.CONFIG_ID: self.handed[-1]['id']})
            assert 'is 1' in self.failed(task, stack)
            self.delete(stack)


class DeliveryTest(BeginningTestCase):
    """The time in which a server has to report."""

    def test_a_server_that_does_not_report_fails_it(self):
        for transport in ('TEMP_URL_POLL', *OTHERS):
            stack, task = self.waiting(
                deployments.template(
                    delivery_timeout=30, signal_transport=transport
                )
            )
            before = self.now
            reason = self.failed(task, stack)
            assert 'not reported within 30 s' in reason
            assert '"delivery_timeout"' in reason
            assert self.now - before < 40
            assert self.in_metadata(stack) == []
            self.delete(stack)
