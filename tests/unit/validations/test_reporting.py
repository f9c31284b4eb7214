# SPDX-License-Identifier: Apache-2.0
"""What the process of a playbook writes of Ansible's events."""

import json
import pathlib
import tempfile

import testtools

from heat_plugins.validations import guard
from heat_plugins.validations import playbook_folder


class ReporterTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def report(self, *events, status='successful', **options):
        job = playbook_folder.PlaybookJob(
            playbook='a.yaml', timeout=1, **options
        )
        with guard.Reporter(self.folder, job) as reporter:
            for event in events:
                self.assertFalse(reporter.event(event))
            self.overflown = reporter.overflown
            reporter.end(status, 0)
        text = (self.folder / playbook_folder.EVENTS).read_text()
        self.lines = [json.loads(line) for line in text.splitlines()]
        return self.lines

    def result(self, event, res=None, **data):
        data = {'host': 'a', 'task': 't', 'play': 'p', 'res': res, **data}
        [found, _] = self.report({'event': event, 'event_data': data})
        (self.folder / playbook_folder.EVENTS).unlink()
        return found['state'], found['message']

    def test_each_result_of_a_task_has_its_state(self):
        for event, res, data, state in (
            ('runner_on_ok', {}, {}, 'ok'),
            ('runner_on_ok', {'changed': True}, {}, 'changed'),
            ('runner_on_failed', {}, {}, 'failed'),
            ('runner_on_failed', {}, {'ignore_errors': True}, 'ignored'),
            ('runner_on_skipped', None, {}, 'skipped'),
            ('runner_on_unreachable', {}, {}, 'unreachable'),
        ):
            self.assertEqual(state, self.result(event, res, **data)[0])

    def test_its_message_is_what_the_task_says_first(self):
        for res, message in (
            ({'msg': 'no', 'stderr': 'x'}, 'no'),
            ({'msg': '', 'stderr': 'bad', 'stdout': 'x'}, 'bad'),
            ({'msg': ['a', 1]}, '["a", 1]'),
            ({'msg': 'x' * 9000}, 'x' * 4000),
            ({'censored': 'hidden', 'msg': 'x'}, 'hidden'),
            ('text', ''),
        ):
            self.assertEqual(message, self.result('runner_on_ok', res)[1])

    def test_events_of_other_kinds_are_no_matter(self):
        self.assertEqual(
            ['end'],
            [
                one['kind']
                for one in self.report(
                    {'event': 'new', 'event_data': None}, {'event': 'verbose'}
                )
            ],
        )

    def test_tasks_and_plays_without_hosts_are_told(self):
        found = self.report(
            {'event': 'playbook_on_task_start', 'event_data': {'name': 't'}},
            {'event': 'playbook_on_no_hosts_matched'},
        )
        self.assertEqual(
            [{'kind': 'task', 'task': 't'}, {'kind': 'no-hosts'}], found[:2]
        )

    def test_secrets_are_masked_everywhere(self):
        self.report(
            {
                'event': 'runner_on_ok',
                'stdout': 'say hunter2',
                'event_data': {
                    'task': 'hunter2',
                    'host': 'a',
                    'res': {'msg': 'is hunter2'},
                },
            },
            secrets=('hunter2',),
        )
        self.assertNotIn('hunter2', json.dumps(self.lines))
        self.assertIn('say ******', json.dumps(self.lines))

    def test_there_is_an_end_to_what_may_be_printed(self):
        self.report(*[{'stdout': 'x' * 60}] * 3, output=100)
        self.assertTrue(self.overflown)
        printed = [one for one in self.lines if one['kind'] == 'stdout']
        self.assertEqual(100, sum(len(one['text']) for one in printed))
        self.assertEqual('overflow', self.lines[-1]['status'])
