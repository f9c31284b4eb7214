# SPDX-License-Identifier: Apache-2.0
"""Engines tell webhooks how runs end, of schedules and others."""

import dataclasses
import json
import logging
import types

import fixtures
from heat.common import exception
from heat.db import api as db_api
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins import stored
from heat_plugins.clients import webhooks
from heat_plugins.engine import process
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.runs import run_fleet
from heat_plugins.engine.runs import run_scans
from heat_plugins.runs import notifying
from heat_plugins.runs import overview
from heat_plugins.runs import run_store
from heat_plugins.runs import telling
from tests.unit import counted
from tests.unit import heat_fixture
from tests.unit import threads
from tests.unit.engine import run_world
from tests.unit.engine import test_schedule_keeping as keeping
from tests.unit.resources import deployments
from tests.unit.resources import test_software_schedule as base

HOUR = keeping.HOUR
WANTED = notifying.NoticeOrder(
    to='https://hooks.example.com',
    url='https://hooks.example.com/p4th?t0ken',
    secret='a s3cret of the team',
    waits=60,
)
SECRET = WANTED.secret
NOTIFY = {'url': WANTED.url, 'secret': SECRET}
DEAD = errors.Unavailable('https://hooks.example.com is dead')


class Receiving:
    """A test case with a receiver.

    :ivar sent: what came.
    :ivar refuses: why it is not taken.
    """

    def setUp(self):
        super().setUp()
        config.register_opts(cfg.CONF)
        self.permit('hooks.example.com')
        self.addCleanup(cfg.CONF.clear_override, 'notify_hosts', config.GROUP)
        self.patch(webhooks, 'send', self.receive)
        self.renew_senders()
        self.sent, self.refuses = [], None

    def permit(self, *hosts):
        cfg.CONF.set_override('notify_hosts', hosts, config.GROUP)

    def renew_senders(self):
        self.patch(run_scans, 'PLACES', process.Places(32, 2))

    def receive(self, webhook, hosts, headers, body):
        assert webhook.target == '/p4th?t0ken'
        assert notifying.SIGNATURE_HEADER in headers
        self.sent.append(json.loads(body))
        if self.refuses is not None:
            raise self.refuses

    def told(self):
        return [body['event'] for body in self.sent]


class RunTest(Receiving, heat_fixture.HeatTestCase):
    def setUp(self):
        super().setUp()
        self.world = run_world.World(2)
        self.do_at_once(lambda do: do())

    def do_at_once(self, do):
        self.patch(process, 'threading', threads.stand_in(do))
        self.renew_senders()

    def start(self, answer=0, wanted=WANTED):
        self.world.answers = lambda server_id: answer
        self.world.start(notify=wanted.to, webhook=stored.dump(wanted))

    def end(self):
        self.start(1)
        self.world.finish()

    def look(self, seconds=0, engine_id='engine'):
        self.world.now += seconds
        leader = types.SimpleNamespace(engine_id=engine_id)
        run_scans.tell(leader, self.world.store, lambda: self.world.now)

    def shown(self):
        shown = overview.of(self.world.run(), self.world.now)
        return [(each['event'], each['state']) for each in shown['notices']]

    def due(self):
        return self.world.store.with_notices('x', self.world.now + HOUR, 10)

    def test_a_failure_is_told_once_with_its_servers(self):
        self.end()
        self.look()
        (body,) = self.sent
        expected = {'run': run_world.RUN, 'project': run_world.PROJECT}
        expected |= {'event': 'failure', 'action': 'BACKUP'}
        assert expected.items() <= body.items()
        assert body['stack']['name'] == 's0'
        servers = {each['server']: each['state'] for each in body['servers']}
        assert servers == {'server-0': 'failed', 'server-1': 'failed'}
        assert 'hunter2' not in str(body)
        assert self.shown() == [('failure', 'delivered')]
        assert self.due() == {}
        self.look(HOUR)
        assert self.told() == ['failure']
        # A retry that is complete is told, too.
        self.world.answers = lambda server_id: 0
        self.world.ask('retry')
        self.world.leaders[0].wake(run_world.RUN)
        self.world.finish()
        self.look()
        assert self.told() == ['failure', 'recovery']
        assert len({body['id'] for body in self.sent}) == 2

    def test_what_is_complete_cancelled_or_not_wanted_is_not_told(self):
        events = (notifying.NoticeEvent.WAITING,)
        others = dataclasses.replace(WANTED, events=events)
        for answer, wanted in ((0, WANTED), (None, WANTED), (1, others)):
            self.world = run_world.World(2)
            self.start(answer, wanted)
            if answer is None:
                self.world.ask('cancel')
            self.world.finish()
            self.look()
            assert (self.sent, self.due()) == ([], {})

    def test_what_waits_too_long_is_told_once(self):
        self.start(answer=None)
        self.world.pass_time(5)
        self.look()
        assert self.told() == []
        self.look(60)
        self.look(60)
        assert self.told() == ['waiting']
        assert len(self.sent[0]['servers']) == 2
        self.world.answers = lambda server_id: 0
        self.world.finish()
        self.look()
        assert self.told() == ['waiting', 'recovery']

    def test_it_is_recorded_before_it_is_sent(self):
        self.end()
        store = self.world.store
        store.aborts = 1
        self.look()
        assert self.sent == []
        # The commit has no answer, so nothing was sent; that is retried.
        store.silent = 1
        self.look()
        assert self.sent == []
        self.look(30)
        assert self.told() == ['failure']

    def test_a_dead_engine_has_a_successor(self):
        self.end()
        later = []
        self.do_at_once(later.append)
        self.look()
        self.do_at_once(lambda do: do())
        # The leader goes first.
        self.look(engine_id='other')
        assert self.sent == []
        self.look(run_store.NOTICE_LEAD, engine_id='other')
        assert self.told() == ['failure']
        # The leader was only slow.
        later[0]()
        assert self.told() == ['failure']

    def test_what_another_process_changes_meanwhile_is_recorded(self):
        self.end()
        receive = self.receive

        def receive_slowly(*given):
            receive(*given)
            self.world.ask('retry')

        self.patch(webhooks, 'send', receive_slowly)
        self.look()
        assert self.shown() == [('failure', 'delivered')]
        assert not self.world.run().ended

    def test_a_dead_receiver_is_given_up_in_an_hour(self):
        logger = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        counts = self.useFixture(counted.Counted())
        self.refuses = errors.Unavailable('hooks.example.com is dead')
        self.end()
        self.look()
        assert self.shown() == [('failure', 'pending')]
        for _ in range(80):
            self.look(60)
        assert self.told() == ['failure'] * 11
        assert logger.output.count('Gave up a notice') == 1
        assert counts.of(metrics.NOTIFICATIONS_FAILED) == {'': 1}
        assert 'p4th' not in logger.output
        assert self.shown() == [('failure', 'given-up')]
        (sent,) = self.world.run().control.notices.sent
        assert sent.why == 'hooks.example.com is dead'
        assert self.due() == {}

    def test_a_deleted_run_tells_nothing(self):
        self.end()
        later = []
        self.do_at_once(later.append)
        self.look()
        self.world.store.delete(run_world.PROJECT, run_world.RUN)
        later[0]()
        assert self.sent == []


class NoticeCase(Receiving, keeping.KeepingCase):
    def failed(self, hours=1, fail=(0,)):
        """Let a tick end, with failures on servers; no engine has seen it."""
        self.at(hours)
        keeper = self.keeper()
        keeper.look()
        self.finish(*self.ids(hours), fail=fail)
        self.now += 30
        return keeper

    def end(self, hours, fail=()):
        keeper = self.failed(hours, fail)
        keeper.look()
        keeper.look()
        return keeper


class ScheduleTest(NoticeCase):
    def test_a_failure_says_what_where_and_on_which_servers(self):
        self.scheduled(notify=NOTIFY)
        self.end(1, fail=[0])
        (body,) = self.sent
        (made,) = self.ids(1)
        uuid = self.heat.load(self.made)['nightly'].uuid
        assert body == {
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
            'servers': [
                {
                    'stack': 'shop',
                    'resource': 'group.0.db',
                    'server': 'group.0.server',
                    'state': 'failed',
                }
            ],
        }
        assert self.kept(self.made).book.notices == ()
        self.end(2)
        assert self.told() == ['failure', 'recovery']

    def test_servers_that_cannot_be_read_are_unknown(self):
        self.scheduled(notify=NOTIFY)
        keeper = self.failed()
        self.later = []
        keeper.look()
        self.store.delete(self.made.tenant_id, *self.ids(1))
        for send in self.later:
            send()
        (body,) = self.sent
        assert (body['event'], body['servers']) == ('failure', None)

    def test_a_dead_receiver_delays_no_tick_and_is_given_up_in_an_hour(self):
        logger = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        counts = self.useFixture(counted.Counted())
        self.refuses = DEAD
        self.scheduled(notify=NOTIFY)
        keeper = self.end(1, fail=[0])
        self.at(1.9, keeper)
        self.at(2, keeper)
        assert self.runs() == self.ids(1, 2)
        self.at(2.1, keeper)
        assert self.told() == ['failure'] * 4
        assert self.kept(self.made).book.notices == ()
        assert self.get(self.made, 'notify_error') == str(DEAD)
        assert logger.output.count('Gave up a notice of schedule nightly') == 1
        assert counts.of(metrics.NOTIFICATIONS_FAILED) == {'': 1}
        assert f'Not told: failure: {DEAD}' in str(
            deployments.events(self.made)
        )

    def test_the_action_is_the_one_that_is_stored(self):
        self.scheduled(notify=NOTIFY)

        def changed(*args):
            stack = self.load_stack(*args)
            # As in the midst of an update.
            stack['nightly'].properties = {'action': 'OTHER'}
            return stack

        self.patch(run_fleet, 'load_stack', changed)
        self.at(3.5, self.keeper())
        (body,) = self.sent
        assert body['action'] == 'BACKUP'

    def test_what_is_not_permitted_any_longer_reads_nothing(self):
        self.scheduled(notify=NOTIFY)
        keeper = self.failed()
        self.permit('a.org')
        read = []
        self.patch(telling, 'servers', lambda *given: read.append(given))
        keeper.look()
        (left,) = self.kept(self.made).book.notices
        assert (left.tries, self.sent, read) == (1, [], [])

    def test_the_url_and_the_secret_are_nowhere(self):
        logger = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))
        self.refuses = ValueError(str(NOTIFY))
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
            str(self.sent[0]),
        ]
        with db_api.context_manager.reader.using(self.heat.context):
            for each in db_api.event_get_all_by_stack(
                self.heat.context, self.made.id
            ):
                # The API shows the properties that are stored with it.
                assert each.resource_properties is None
                assert each.rsrc_prop_data is None
        for text in found:
            for secret in ('p4th', 't0ken', 's3cret'):
                assert secret not in text

    def test_an_update_loses_no_notice_and_sends_it_to_another_receiver(self):
        self.refuses = DEAD
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
        keeper = self.failed()
        self.patch(schedule_rows, 'replace', lambda *args: False)
        keeper.look()
        assert self.sent == []
        assert run_scans.PLACES.take(self.rows()[0].id, 'any')


class PropertyTest(NoticeCase):
    def refused(self, said, notify, **resources):
        content = base.template(notify=notify)
        content['resources'].update(resources)
        stack = self.heat.stack(content, name=self.getUniqueString())
        try:
            stack.validate()
        except exception.StackValidationFailed as exc:
            why = str(exc)
        else:
            stack.create()
            why = stack.status_reason
        assert said in why
        assert 's3cret' not in why

    def test_a_mistake_is_named_before_the_night(self):
        for said, changed in (
            ('The URL of a webhook', {'url': 'hooks.example.com/s3cret'}),
            ('does not permit', {'url': 'https://other.net/s3cret'}),
            ('16 to', {'secret': 's3cret'}),
            ('map with the texts', {'url': ['https://a/s3cret']}),
        ):
            self.refused(said, {**NOTIFY, **changed})
        self.refused('map with the texts', ['a s3cret'])
        value = {
            'type': 'OS::Heat::Value',
            'properties': {'value': {'url': 'https://other.net/s3cret'}},
        }
        url = {'get_attr': ['value', 'value', 'url']}
        self.refused('does not permit', {**NOTIFY, 'url': url}, value=value)
        self.permit()
        self.refused('[heat_plugins] notify_hosts of heat.conf is', NOTIFY)

    def test_an_update_replaces_and_removes_it(self):
        self.permit('*.example.com')
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
