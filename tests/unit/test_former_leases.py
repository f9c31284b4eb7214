# SPDX-License-Identifier: Apache-2.0
"""What release 0.1 has stored to be alone with something still counts.

Each sample is what the code of that release wrote; only IDs of stacks and
deployments are filled in. A process of that release that lives keeps others
away, and what it has left when it died is taken over and finished.
"""

import gzip

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.objectstore import exclusive
from heat_plugins.objectstore import lease
from heat_plugins.plans import plan_claims
from heat_plugins.validations import validation_ledger
from tests.unit.runs import base

#: When they were written, in seconds since the epoch: the clock of a test.
AT = 1_800_000_000.0

LEADS = b'{"who": "ann", "at": 1800000000.0, "released": false}'
RELEASED = b'{"who": "ann", "at": 1800000000.0, "released": true}'

NAMES = 'heat-plugins-plan-names-project-1'
CLAIM = (
    b'{"description": "a shop", "values": {"heat_plugins_plan": {"version": '
    b'1, "container": "shop", "since": "2027-01-15T08:00:00+00:00", "token": '
    b'"c316da00-67fb-46ba-83ee-c829ac75cfc9"}}}'
)

ANNOUNCED = b'{}'

VALIDATIONS = 'heat-plugins-validations-project-1'
VALIDATING = (
    b'{"id": "20270115T080000Z-0c0ffe", "source": "plan shop", "plan": '
    b'"shop", "stack": "", "content_hash": "", "started_at": '
    b'"2027-01-15T08:00:00Z", "seconds": 0.0, "state": "RUNNING", "reason": '
    b'"", "outcomes": [{"validation": "ping", "name": "Ping", "groups": [], '
    b'"state": "WAITING", "reason": "", "seconds": 0.0, "under_way": "", '
    b'"hosts": {}}]}'
)


class FormerTestCase(base.RunsTestCase):
    def setUp(self):
        super().setUp()
        self.assertEqual(AT, self.now)
        self.store = self.cluster.store()

    def put(self, container, **objects):
        self.store.put_container(container, {})
        for name, content in objects.items():
            self.store.put_object(container, name, content)


class LeadershipTest(FormerTestCase):
    def lead(self, content):
        """Return the next leader, and the result of its attempt."""
        self.put('box', **{'leads/000001': content})
        return self.acquire()

    def acquire(self):
        ours = lease.Lease(
            lease.objects(self.store, 'box', 'leads/'),
            who='bob',
            clock=lambda: self.now,
            monotonic=lambda: self.now,
        )
        last = lease.last(self.store, 'box', 'leads/')
        return ours.acquire(last), ours.epoch

    def test_a_leader_leads_until_its_lease_expires(self):
        self.assertEqual((False, None), self.lead(LEADS))
        self.now += lease.EXPIRY + 2
        self.assertEqual((True, 2), self.acquire())
        self.assertEqual((False, None), self.acquire())

    def test_another_leads_at_once_what_was_released(self):
        self.assertEqual((True, 2), self.lead(RELEASED))


class PlanTest(FormerTestCase):
    def setUp(self):
        super().setUp()
        self.names = plan_claims.Names(self.store, sleep=self.sleep)

    def test_the_name_of_a_plan_is_taken_until_it_is_released(self):
        self.put(NAMES, shop=CLAIM)
        claims = plan_claims.Claims(self.names, clock=lambda: self.now)
        self.assertEqual(['shop'], [one.name for one in claims.summaries()])
        self.assertIsNone(claims.take('shop', 'another'))
        claim = claims.find('shop')
        self.assertEqual('c316da00-67fb-46ba-83ee-c829ac75cfc9', claim.token)
        self.assertTrue(claims.has(claim))
        claims.release(claim)
        self.assertIsNotNone(claims.take('shop', 'another'))


class CreationTest(FormerTestCase):
    def test_a_candidate_for_an_object_is_given_way_until_it_has_died(self):
        place = '.heat-plugins/claims/a/1800000000.000000-' + 32 * 'a'
        self.put('box', **{place: ANNOUNCED})

        def create():
            return exclusive.create(
                self.store,
                'box',
                'a',
                b'',
                now=lambda: self.now,
                clock=lambda: self.now,
                sleep=self.sleep,
            )

        self.now += 1
        self.assertFalse(create())
        self.now += 300
        self.assertTrue(create())
        self.assertEqual({'a': b''}, self.cluster.container('box').objects)


class ValidationsTest(FormerTestCase):
    def setUp(self):
        super().setUp()
        self.run_id = '20270115T080000Z-0c0ffe'
        name = f'{self.run_id}/run.json'
        self.put(VALIDATIONS, **{name: gzip.compress(VALIDATING, mtime=0)})
        self.ledger = validation_ledger.Ledger(
            self.store, pools.Pool(attempts=1)
        )

    def state(self):
        return self.ledger.find(self.run_id).state

    def test_a_run_lasts_while_its_process_reports(self):
        self.assertIs(validation_ledger.ValidationState.RUNNING, self.state())
        again = self.ledger.find(self.run_id)
        self.assertRaises(errors.Exists, self.ledger.begin, again)

    def test_the_run_of_a_dead_process_is_lost_and_not_repeated(self):
        before = self.ledger.find(self.run_id)
        self.now += 102
        self.assertIs(validation_ledger.ValidationState.LOST, self.state())
        self.assertRaises(errors.Exists, self.ledger.begin, before)
        self.assertEqual(['ping'], [one.validation for one in before.outcomes])
