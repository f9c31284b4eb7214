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
        self.assertEqual('60', given['deploy_signal_timeout'])
        paths = [
            given[name].partition('?')[0]
            for name in ('deploy_signal_id', 'deploy_progress_url')
        ]
        self.assertEqual(f'{paths[0]}.progress', paths[1])
        self.assertEqual([], self.begun(stack))
        self.report()
        self.step(task, 10)
        self.report(b'{"message": "half of it"}')
        self.step(task, 10)
        (event,) = self.begun(stack)
        self.assertEqual('Started: CREATE on server server', event)
        self.assertEqual(
            'The server has started the action [hp:started]', self.reason()
        )
        reason = self.failed(task, stack)
        self.assertIn('The server reported the start', reason)
        self.assertIn(f'{self.handed[0]["id"]}.notify.json', reason)

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
            self.assertFalse(self.step(task, 9))
            self.assertEqual([], self.begun(stack))
            for _ in range(2):
                resource.signal(report(self.handed[-1]))
                self.assertFalse(self.step(task, 9))
            self.assertEqual(
                ['Signal: Started: CREATE on server server'],
                self.begun(stack),
            )
            resource.signal({**late, body.CONFIG_ID: self.handed[-1]['id']})
            self.assertIn('is 1', self.failed(task, stack))
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
            self.assertIn('not reported within 30 s', reason)
            self.assertIn('"delivery_timeout"', reason)
            self.assertLess(self.now - before, 40)
            self.assertEqual([], self.in_metadata(stack))
            self.delete(stack)
