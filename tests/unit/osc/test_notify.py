# SPDX-License-Identifier: Apache-2.0
"""``--notify`` of the commands that start operations."""

import dataclasses
import io
import json
import sys

import fixtures

from heat_plugins import tokens
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import notice_orders
from tests.unit.osc import test_run_start as base

SECRET = 'a s3cret of the team'
URL = 'https://hooks.example.com/p4th'


class NotifyTest(base.StartCase):
    def setUp(self):
        super().setUp()
        folder = self.useFixture(fixtures.TempDir())
        self.file = folder.join('notify.yaml')
        self.answers = tokens.TELLS.after('heat-engine sends notices')
        self.before = len(self.heat.rows), len(self.heat.configs)
        set_status = self.heat.set_status

        def answer(deployment_id, status):
            reason = set_status(deployment_id, status)
            is_asked = self.heat.rows[deployment_id].action == 'NOTIFY'
            return self.answers if is_asked and self.answers else reason

        self.patch(self.heat, 'set_status', answer)

    def write(self, **values):
        with open(self.file, 'w') as file:
            json.dump({'url': URL, 'secret': SECRET, **values}, file)

    def assert_nothing(self):
        self.assertEqual(
            self.before, (len(self.heat.rows), len(self.heat.configs))
        )

    def test_engines_know_whom_to_tell_before_it_starts(self):
        self.write(events=['failure'], waits=600)
        code, shown = self.begin(f'BACKUP --stack shop --notify {self.file}')
        # One target is an operation, too.
        self.assertEqual((0, 1), (code, shown['targets']))
        self.assertEqual('https://hooks.example.com', shown['notify'])
        (config,) = (
            each
            for each in self.heat.configs.values()
            if each.group == binding.NOTICES
        )
        order = notice_orders.read(config.config)
        self.assertEqual(
            (URL, SECRET, ('failure',), 600, (self.stack.id,)),
            (order.url, order.secret, order.events, order.waits, order.stacks),
        )
        _, again = self.json(f'operation show {shown["id"]}')
        self.assertEqual([*shown], [*again])
        (row,) = (
            each for each in self.heat.rows.values() if each.action == 'NOTIFY'
        )
        found = str([shown, again, self.stderr.getvalue(), row.reason, order])
        for secret in ('p4th', 's3cret'):
            self.assertNotIn(secret, found)
        self.json(f'operation cancel {shown["id"]}')
        self.json(f'operation delete {shown["id"]}')
        self.assert_nothing()

    def test_what_was_given_up_is_shown(self):
        self.write()
        _, shown = self.begin(f'BACKUP --stack shop --notify {self.file}')
        record = notice_orders.NoticeRecord(
            book=notice_orders.notifying.NoticeBook(error='it is dead')
        )
        (row,) = (
            each for each in self.heat.rows.values() if each.action == 'NOTIFY'
        )
        for reason, said in ((record.text(), 'dead'), ('x', 'unreadable')):
            self.heat.rows[row.id] = dataclasses.replace(row, reason=reason)
            _, again = self.json(f'operation show {shown["id"]}')
            self.assertIn(said, again['notify_error'])

    def test_nothing_starts_if_no_engine_sends(self):
        self.write()
        for answers, said in (
            ('', '[heat_plugins] rescue_interval'),
            (tokens.REFUSES.after('notify_hosts is empty'), 'hosts is empty'),
        ):
            self.answers = answers
            line = f'run start BACKUP --stack shop --notify {self.file}'
            self.assert_refused(line, 'Nothing was started', said)
            self.assert_nothing()
            self.assertEqual([], self.json('operation list')[1])

    def test_a_mistake_is_named_and_not_quoted(self):
        for values, said in (
            ({'url': 'hooks/s3cret'}, 'The URL of a webhook'),
            ({'secret': 's3cret'}, '16 to'),
            ({'secret': None}, 'needs the texts'),
            ({'events': ['failur']}, 'failure'),
            ({'waits': -1}, 'seconds'),
            ({'secrets': 's3cret'}, 'did you mean "secret"'),
            ({'stacks': ['s3cret']}, 'no key stacks'),
        ):
            self.write(**values)
            message = self.refused(
                f'run start BACKUP --stack shop --notify {self.file}'
            )
            self.assertIn(said, message)
            self.assertNotIn('s3cret', message)
        self.assert_nothing()

    def test_standard_input_has_it_alone(self):
        text = json.dumps({'url': URL, 'secret': SECRET})
        self.patch(sys, 'stdin', io.StringIO(text))
        line = 'run start BACKUP --stack shop --notify -'
        self.assert_refused(f'{line} --inputs-file -', 'cannot both')
        code, _ = self.json(line)
        self.assertEqual(0, code)
