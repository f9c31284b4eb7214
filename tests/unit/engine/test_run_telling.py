# SPDX-License-Identifier: Apache-2.0
"""Engines tell webhooks how runs end, and which wait too long."""

import json
import logging
import types

import fixtures
from heat.db import api as db_api
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import testtools

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins import stored
from heat_plugins.clients import webhooks
from heat_plugins.engine import process
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import run_tables
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_scans
from heat_plugins.runs import notifying
from heat_plugins.runs import overview
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from tests.unit import threads
from tests.unit.engine import heat_door
from tests.unit.engine import run_world
from tests.unit.resources import deployments
from tests.unit.resources import test_deployment_triggers as triggers

HOUR = 3600
WANTED = notifying.NoticeOrder(
    to='https://hooks.example.com',
    url='https://hooks.example.com/p4th',
    secret='a s3cret of the team',
    waits=60,
)


class Receiving:
    """A test case with a receiver.

    :ivar sent: what came.
    :ivar refuses: why it is not taken.
    """

    def setUp(self):
        super().setUp()
        self.conf = self.useFixture(config_fixture.Config(cfg.CONF))
        config.register_opts(cfg.CONF)
        self.permit('hooks.example.com')
        self.patch(webhooks, 'send', self.receive)
        self.do_at_once(lambda do: do())
        self.sent, self.refuses = [], None

    def permit(self, *hosts):
        self.conf.config(group='heat_plugins', notify_hosts=hosts)

    def do_at_once(self, do):
        self.patch(process, 'threading', threads.stand_in(do))
        self.patch(run_scans, 'PLACES', process.Places(32, 2))

    def receive(self, webhook, hosts, headers, body):
        assert webhook.target == '/p4th'
        assert notifying.SIGNATURE_HEADER in headers
        self.sent.append(json.loads(body))
        if self.refuses is not None:
            raise self.refuses


class TellingTest(Receiving, testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.world = run_world.World(2)

    def start(self, answer=0, wanted=WANTED):
        """Start a run whose servers answer with a status; None: nothing."""
        self.world.answers = lambda server_id: answer
        self.world.start(notify=wanted.to, webhook=stored.dump(wanted))

    def end(self, answer=1):
        """Let a run end, of which all targets fail by default."""
        self.start(answer)
        self.world.finish()

    def look(self, seconds=0, engine_id='engine'):
        self.world.now += seconds
        self.world.store.now = self.world.now
        leader = types.SimpleNamespace(engine_id=engine_id)
        run_scans.tell(leader, self.world.store, lambda: self.world.now)

    def told(self):
        return [body['event'] for body in self.sent]

    def shown(self):
        shown = overview.of(self.world.run(), self.world.now)
        return [(each['event'], each['state']) for each in shown['notices']]

    def due(self):
        return self.world.store.with_notices('x', self.world.now + HOUR, 10)

    def test_a_failure_is_told_once_with_its_servers(self):
        self.end()
        self.look()
        (body,) = self.sent
        assert (
            body['run'],
            body['project'],
            body['event'],
            body['stack']['name'],
            body['action'],
        ) == (run_world.RUN, run_world.PROJECT, 'failure', 's0', 'BACKUP')
        assert {
            (each['server'], each['state']) for each in body['servers']
        } == {('server-0', 'failed'), ('server-1', 'failed')}
        assert 'hunter2' not in str(body)
        assert self.shown() == [('failure', 'delivered')]
        assert self.due() == {}
        self.look(HOUR)
        assert self.told() == ['failure']

    def test_what_is_complete_at_once_is_not_told(self):
        self.end(answer=0)
        self.look()
        assert (self.sent, self.due()) == ([], {})

    def test_what_a_user_cancels_is_not_told(self):
        self.start(answer=None)
        self.world.ask('cancel')
        self.world.finish()
        self.look()
        assert (self.sent, self.due()) == ([], {})

    def test_a_retry_that_is_complete_is_told(self):
        self.end()
        self.look()
        self.world.answers = lambda server_id: 0
        self.world.ask('retry')
        self.world.leaders[0].wake(run_world.RUN)
        self.world.finish()
        self.look()
        assert self.told() == ['failure', 'recovery']
        assert len({body['id'] for body in self.sent}) == 2

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

    def test_only_what_is_wanted_is_told(self):
        events = (notifying.NoticeEvent.WAITING,)
        self.world.answers = lambda server_id: 1
        wanted = stored.dump(
            notifying.NoticeOrder(
                to='', url=WANTED.url, secret=WANTED.secret, events=events
            )
        )
        self.world.start(webhook=wanted)
        self.world.finish()
        self.look()
        assert (self.sent, self.due()) == ([], {})

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

    def test_of_two_engines_one_tells(self):
        self.end()
        store, other = self.world.store, []
        load = store.load

        def load_late(run_id):
            found = load(run_id)
            if not other:
                other.append(True)
                self.look(engine_id='third')
            return found

        self.world.now += HOUR
        self.patch(store, 'load', load_late)
        self.patch(run_scans, 'PLACES', self.places())
        self.look()
        assert self.told() == ['failure']

    def places(self):
        """Return places that two engines do not share."""
        places = process.Places(32, 2)
        places.take = lambda key, project_id: True
        return places

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
        counted = []
        self.addCleanup(metrics.install, {})
        failed = metrics.NOTIFICATIONS_FAILED
        metrics.install({(failed, ''): counted.append})
        self.refuses = errors.Unavailable('hooks.example.com is dead')
        self.end()
        self.look()
        assert self.shown() == [('failure', 'pending')]
        for _ in range(80):
            self.look(60)
        assert self.told() == ['failure'] * 11
        assert logger.output.count('Gave up a notice') == 1
        assert counted == [1]
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


class ScanTest(Receiving, testtools.TestCase):
    def test_the_engine_of_this_process_tells(self):
        world = run_world.World(1)
        # Before now, by the clock of this machine.
        world.now = world.store.now = 1_700_000_000.0
        world.answers = lambda server_id: 1
        leader = world.start(webhook=stored.dump(WANTED))
        world.finish()
        leading.install(leader)
        self.addCleanup(leading.install, None)
        self.patch(db_api, 'get_engine', lambda: None)
        self.patch(run_tables, 'is_ready', lambda engine: True)
        self.patch(run_rows, 'RunRows', lambda: world.store)
        run_scans.NOTICES.begin()()
        assert len(self.sent) == 1


class DoorTest(Receiving, heat_door.DoorCase):
    def test_a_run_that_was_ordered_through_the_door_is_told(self):
        stack = self.created(
            deployments.template(resources={'config': triggers.CONFIG})
        )
        notify = {'url': WANTED.url, 'secret': WANTED.secret}
        run = self.runs.start('BACKUP', stacks=[stack.name], notify=notify)
        now = int(heat_door.NOW)
        self.change(
            run.id, phase=run_records.Phase.FAILED, ended_at=now, reason='so'
        )
        leader = types.SimpleNamespace(engine_id=heat_door.ENGINE)
        run_scans.tell(leader, self.store, lambda: heat_door.NOW)
        (body,) = self.sent
        assert (body['run'], body['event'], body['stack']) == (
            run.id,
            'failure',
            {'id': stack.id, 'name': stack.name},
        )
        shown = self.runs.show(run.id)
        assert shown.notify == 'https://hooks.example.com'
        assert shown.notices == [
            {
                'event': 'failure',
                'state': 'delivered',
                'at': '2027-01-15T08:00:00Z',
                'tries': 1,
                'reason': '',
            }
        ]
        run_scans.tell(leader, self.store, lambda: heat_door.NOW)
        assert len(self.sent) == 1
