# SPDX-License-Identifier: Apache-2.0
"""Engines tell webhooks of schedules."""

import contextlib
import itertools
import json
import logging
import pathlib
import socket
import subprocess
import sys
import time

import fixtures
from heat.common import exception
from heat.db import api as db_api
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins.clients import webhooks
from heat_plugins.engine import process
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.runs import run_fleet
from heat_plugins.engine.runs import run_scans
from heat_plugins.runs import telling
from tests.unit.engine import test_schedule_keeping as keeping
from tests.unit.resources import deployments
from tests.unit.resources import test_software_schedule as base

EXAMPLE = pathlib.Path(keeping.__file__).parents[3] / (
    'contrib/examples/notices/receiver.py'
)
HOUR = keeping.HOUR
URL = 'https://hooks.example.com/p4th?t0ken'
SECRET = 'a s3cret of the team'
NOTIFY = {'url': URL, 'secret': SECRET}

_numbers = itertools.count()


class NoticeCase(keeping.KeepingCase):
    def setUp(self):
        super().setUp()
        hosts = ['hooks.example.com']
        cfg.CONF.set_override('notify_hosts', hosts, config.GROUP)
        self.patch(run_scans, 'PLACES', process.Places(32, 2))
        self.patch(webhooks, 'send', self.send)
        #: What the receiver was sent: headers and bodies.
        self.sent = []
        #: Why it does not take that.
        self.refuses = None

    def send(self, webhook, hosts, headers, body):
        assert webhook.target == '/p4th?t0ken'
        self.sent.append((headers, json.loads(body)))
        if self.refuses is not None:
            raise self.refuses

    def told(self):
        return [body['event'] for _, body in self.sent]

    def end(self, hours, fail=(), keeper=None):
        """Let a tick end, with failures on some servers."""
        keeper = keeper or self.keeper()
        self.at(hours, keeper)
        self.finish(*self.ids(hours), fail=fail)
        self.after(30, keeper)
        keeper.look()


class TellingTest(NoticeCase):
    def test_a_failure_says_what_where_and_on_which_servers(self):
        self.scheduled(notify=NOTIFY)
        self.end(1, fail=[0])
        ((headers, body),) = self.sent
        (made,) = self.ids(1)
        assert 'Heat-Plugins-Signature' in headers
        uuid = self.heat.load(self.made)['nightly'].uuid
        assert {k: v for k, v in body.items() if k != 'servers'} == {
            'version': 1,
            'id': f'{made}.failure',
            'event': 'failure',
            'why': 'The run has failed.',
            'project': self.made.tenant_id,
            'stack': {'id': self.made.id, 'name': self.made.name},
            'schedule': {'id': uuid, 'name': 'nightly'},
            'run': made,
            'action': 'BACKUP',
            'due': '2027-01-15T09:00:00Z',
            'failures': 1,
            'more_servers': 0,
        }
        assert body['servers'] == [
            {
                'stack': 's0',
                'resource': 'db0',
                'server': 'server0',
                'state': 'failed',
            }
        ]
        assert self.kept(self.made).book.notices == ()
        self.end(2)
        assert self.told() == ['failure', 'recovery']
        self.end(3)
        assert self.told() == ['failure', 'recovery']

    def test_what_waits_too_long_names_the_servers_that_do(self):
        self.scheduled(notify={**NOTIFY, 'waits': 600})
        keeper = self.keeper()
        self.at(1)
        assert keeper.look() < 60
        keeper.look()
        self.after(601, keeper)
        ((_, body),) = self.sent
        assert body['event'] == 'waiting'
        assert {s['state'] for s in body['servers']} == {'pending'}
        assert len(body['servers']) == 4

    def test_servers_that_cannot_be_read_are_unknown(self):
        self.scheduled(notify=NOTIFY)
        self.at(1)
        keeper = self.keeper()
        keeper.look()
        (made,) = self.ids(1)
        self.finish(made, fail=[0])
        self.later = []
        self.after(30, keeper)
        self.store.delete(self.made.tenant_id, made)
        for send in self.later:
            send()
        ((_, body),) = self.sent
        assert (body['event'], body['servers']) == ('failure', None)

    def test_a_dead_receiver_delays_no_tick_and_is_given_up_in_an_hour(self):
        logger = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        counted = self.count_given_up()
        self.refuses = errors.Unavailable('https://hooks.example.com is dead')
        self.scheduled(notify=NOTIFY)
        keeper = self.keeper()
        self.end(1, fail=[0], keeper=keeper)
        for minute in range(1, 58):
            self.now = base.NOW + HOUR + minute * 60
            keeper.look()
        assert self.told() == ['failure'] * 10
        self.at(2, keeper)
        assert self.runs() == self.ids(1, 2)
        for minute in range(1, 9):
            self.now = base.NOW + 2 * HOUR + minute * 60
            keeper.look()
        assert self.kept(self.made).book.notices == ()
        assert (
            self.get(self.made, 'notify_error')
            == 'https://hooks.example.com is dead'
        )
        said = [
            line
            for line in logger.output.splitlines()
            if 'Gave up a notice of schedule nightly' in line
        ]
        assert len(said) == 1
        assert counted == [1]
        (event,) = (
            each
            for each in deployments.events(self.made)
            if each.startswith('Not told')
        )
        assert 'failure: https://hooks.example.com is dead' in event
        self.refuses = None
        self.finish(*self.ids(2))
        self.after(60, keeper)
        keeper.look()
        assert self.told()[-1] == 'recovery'
        assert self.get(self.made, 'notify_error') == ''

    def count_given_up(self):
        counted = []
        self.addCleanup(metrics.install, {})
        failed = metrics.NOTIFICATIONS_FAILED
        metrics.install({(failed, ''): counted.append})
        return counted

    def test_what_another_engine_has_delivered_is_not_given_up(self):
        counted = self.count_given_up()
        self.scheduled(notify=NOTIFY)
        self.refuses = errors.Unavailable('https://hooks.example.com is dead')
        self.end(1, fail=[0])
        self.now += HOUR
        self.later = []
        self.keeper().look()
        stuck, *others = self.later
        self.later, self.refuses = None, None
        for do in others:
            do()
        self.patch(run_scans, 'PLACES', process.Places(32, 2))
        self.after(HOUR, self.keeper())
        assert self.told() == ['failure'] * 2
        self.refuses = errors.Unavailable('https://hooks.example.com is dead')
        stuck()
        assert self.told() == ['failure'] * 3
        assert self.get(self.made, 'notify_error') == ''
        assert counted == []

    def test_the_action_is_the_one_that_is_stored(self):
        self.scheduled(notify=NOTIFY)

        def changed(*args):
            stack = self.load_stack(*args)
            # As in the midst of an update.
            stack['nightly'].properties = {'action': 'OTHER'}
            return stack

        self.patch(run_fleet, 'load_stack', changed)
        self.at(3.5, self.keeper())
        ((_, body),) = self.sent
        assert body['action'] == 'BACKUP'

    def test_what_is_not_permitted_any_longer_reads_nothing(self):
        self.scheduled(notify=NOTIFY)
        self.at(1)
        keeper = self.keeper()
        keeper.look()
        self.finish(*self.ids(1), fail=[0])
        self.now += 30
        cfg.CONF.set_override('notify_hosts', ['a.org'], config.GROUP)
        read = []
        self.patch(telling, 'servers', lambda *given: read.append(given))
        keeper.look()
        (left,) = self.kept(self.made).book.notices
        assert (left.tries, self.sent, read) == (1, [], [])

    def test_the_url_and_the_secret_are_nowhere(self):
        logger = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))
        self.refuses = ValueError(f'{URL} {SECRET}')
        self.scheduled(notify=NOTIFY)
        self.end(1, fail=[0])
        self.after(3700, self.keeper())
        shown = self.get(self.made, 'show')
        assert shown['notify'] == 'https://hooks.example.com'
        assert shown['notify_error'] == 'ValueError'
        found = [
            logger.output,
            str(shown),
            str(deployments.events(self.made)),
            self.kept(self.made).text(),
            str(self.sent[0][1]),
        ]
        assert {*self.stored_events()} == {(None, None)}
        for text in found:
            for secret in ('p4th', 't0ken', 's3cret'):
                assert secret not in text

    def stored_events(self):
        """Return the properties that the API shows with events."""
        context = self.heat.context
        with db_api.context_manager.reader.using(context):
            return [
                (each.resource_properties, each.rsrc_prop_data)
                for each in db_api.event_get_all_by_stack(
                    context, self.made.id
                )
            ]

    def test_a_dead_engine_that_was_about_to_tell_has_a_successor(self):
        self.scheduled(notify=NOTIFY)
        self.at(1)
        keeper = self.keeper()
        keeper.look()
        self.finish(*self.ids(1), fail=[0])
        self.now += 30
        self.later = []
        keeper.look()
        # Its threads never run.
        assert self.later != []
        self.later = None
        self.patch(run_scans, 'PLACES', process.Places(32, 2))
        successor = self.keeper()
        assert successor.look() <= 30
        assert self.sent == []
        self.after(31, successor)
        assert self.told() == ['failure']
        self.keeper().look()
        assert self.told() == ['failure']

    def test_an_update_loses_no_notice_and_sends_it_to_another_receiver(self):
        self.refuses = errors.Unavailable('https://hooks.example.com is dead')
        given = {'cron': '@hourly', 'stack_tag': 'prod', 'notify': NOTIFY}
        self.scheduled(notify=NOTIFY)
        self.end(1, fail=[0])
        assert self.told() == ['failure']
        self.heat.update(self.made, base.template(**given, note='a note'))
        (left,) = self.kept(self.made).book.notices
        assert left.tries == 1
        given['notify'] = {**NOTIFY, 'secret': 'another s3cret of theirs'}
        self.heat.update(self.made, base.template(**given))
        self.refuses = None
        self.after(1, self.keeper())
        assert self.told() == ['failure'] * 2
        self.end(2)
        assert self.told() == ['failure'] * 2 + ['recovery']

    def test_one_projects_receivers_take_few_threads(self):
        self.scheduled(notify=NOTIFY)
        for key in 'ab':
            run_scans.PLACES.take(key, self.made.tenant_id)
        self.end(1, fail=[0])
        assert self.sent == []
        run_scans.PLACES.leave('a')
        self.after(7, self.keeper())
        assert self.told() == ['failure']

    def test_what_is_not_recorded_is_not_sent(self):
        self.scheduled(notify=NOTIFY)
        self.at(1)
        keeper = self.keeper()
        keeper.look()
        self.finish(*self.ids(1), fail=[0])
        self.now += 30
        self.patch(schedule_rows, 'replace', lambda *args: False)
        keeper.look()
        assert self.sent == []
        assert run_scans.PLACES.take(self.rows()[0].id, 'any')


class ExampleTest(NoticeCase):
    """The example of a receiver, and all of the way to it."""

    def setUp(self):
        send = webhooks.send
        super().setUp()
        self.patch(webhooks, 'send', send)
        # Notices are of now.
        self.patch(
            run_scans.notifying,
            'headers',
            self.signed(run_scans.notifying.headers),
        )

    def signed(self, headers):
        return lambda body, secret, now: headers(body, secret, time.time())

    def received(self, port, secret=SECRET):
        """Run the example; return what it has printed."""
        process = subprocess.Popen(
            [sys.executable, str(EXAMPLE), str(port)],
            env={'NOTICE_SECRET': secret},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        for _ in range(100):
            with contextlib.suppress(OSError):
                socket.create_connection(('127.0.0.1', port)).close()
                break
            time.sleep(0.1)
        return process

    def permitted(self):
        """Return a free port to which an engine may send."""
        with socket.create_server(('127.0.0.1', 0)) as found:
            port = found.getsockname()[1]
        hosts = [f'http://127.0.0.1:{port}']
        cfg.CONF.set_override('notify_hosts', hosts, config.GROUP)
        return port

    def test_it_verifies_what_it_prints(self):
        port = self.permitted()
        url = f'http://127.0.0.1:{port}/p4th'
        self.scheduled(notify={**NOTIFY, 'url': url})
        # No process listens.
        self.end(1, fail=[0])
        process = self.received(port)
        keeper = self.keeper()
        self.after(31, keeper)
        told = json.loads(process.stdout.readline())
        (made,) = self.ids(1)
        assert told['id'] == f'{made}.failure'
        assert self.kept(self.made).book.notices == ()

    def test_it_refuses_another_signature(self):
        port = self.permitted()
        self.received(port, 'another secret, also long')
        url = f'http://127.0.0.1:{port}/p4th'
        self.scheduled(notify={**NOTIFY, 'url': url})
        self.end(1, fail=[0])
        self.after(3700, self.keeper())
        assert (
            self.get(self.made, 'notify_error')
            == 'http://127.0.0.1 answers 403'
        )


class PropertyTest(base.ScheduleCase):
    def setUp(self):
        super().setUp()
        hosts = ['*.example.com']
        cfg.CONF.set_override('notify_hosts', hosts, config.GROUP)

    def refused(self, said, **given):
        self.refused_whole(said, {**NOTIFY, **given})

    def refused_whole(self, said, given):
        content = base.template(notify=given)
        stack = self.heat.stack(content, name=f'n{next(_numbers)}')
        exc = self.assertRaises(
            exception.StackValidationFailed, stack.validate
        )
        assert said in str(exc)
        assert 's3cret' not in str(exc)

    def test_a_mistake_is_named_before_the_night(self):
        self.refused('The URL of a webhook', url='hooks.example.com/s3cret')
        self.refused('does not permit', url='https://other.net/s3cret')
        self.refused('permits https alone', url='http://a.example.com/s3cret')
        self.refused('16 to', secret='s3cret')
        self.refused('map with the texts', url=['https://a/s3cret'])
        self.refused('map with the texts', secret={'a': 's3cret'})
        for given in ('https://a.example.com/s3cret', ['a s3cret']):
            self.refused_whole('map with the texts', given)
        self.refused('events', events=['succes'])
        self.refused('after', after=0)
        cfg.CONF.set_override('notify_hosts', [], config.GROUP)
        self.refused('[heat_plugins] notify_hosts of heat.conf is empty')

    def test_what_another_resource_supplies_is_checked_when_it_is_there(self):
        for url, said in (
            ('https://other.net/s3cret', 'does not permit'),
            (['s3cret'], 'map with the texts'),
        ):
            content = base.template()
            content['resources']['value'] = {
                'type': 'OS::Heat::Value',
                'properties': {'value': {'url': url}},
            }
            url = {'get_attr': ['value', 'value', 'url']}
            schedule = content['resources']['nightly']['properties']
            schedule['notify'] = {**NOTIFY, 'url': url}
            stack = self.heat.stack(content, name=f'n{next(_numbers)}')
            stack.validate()
            stack.store()
            stack.create()
            assert stack.status == 'FAILED'
            assert said in stack.status_reason
            assert 's3cret' not in stack.status_reason

    def test_an_update_replaces_and_removes_it(self):
        stack = self.created(notify=NOTIFY)
        assert self.kept(stack).rules.to == 'https://hooks.example.com'
        other = {**NOTIFY, 'url': 'https://b.example.com', 'after': 3}
        self.heat.update(stack, base.template(notify=other))
        rules = self.kept(stack).rules
        assert (rules.to, rules.after) == ('https://b.example.com', 3)
        receiver = self.heat.load(stack)['nightly'].receiver()
        assert receiver['url'] == 'https://b.example.com'
        self.heat.update(stack, base.template())
        assert self.kept(stack).rules is None
        assert self.get(stack, 'show')['notify'] == ''
        self.assertRaises(
            errors.Refused, self.heat.load(stack)['nightly'].receiver
        )
