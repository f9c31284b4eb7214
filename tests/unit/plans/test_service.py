# SPDX-License-Identifier: Apache-2.0
"""Plans are changed, read, exported and deleted."""

import contextlib
import dataclasses
import io
import tarfile

import pytest

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.content import tarballs
from heat_plugins.plans import plan_claims
from heat_plugins.plans import plan_service
from heat_plugins.plans.content import environments
from tests.unit import fake_swift
from tests.unit.plans import fakes

LOCK = 'plan-lock:plan'


class PlansTest(fakes.PlanCase):
    def setUp(self):
        super().setUp()
        self.sent = len(self.cloud.swift.seen)

    def written(self):
        """Return the paths that were written since the plan was made."""
        return sorted(
            one.where.removeprefix('/plan/')
            for one in self.cloud.swift.seen[self.sent :]
            if one.method == 'PUT'
        )

    def test_only_changes_are_sent(self):
        other = fakes.content(**{'base.yaml': b'{}', 'new.yaml': b'{}'})
        for _ in range(2):
            self.plans.update('plan', other)
            assert self.written() == ['base.yaml', 'new.yaml']
        kept = {'root.yaml': b'{}', 'base.yaml': b'{}'}
        plan = self.plans.update('plan', kept, prune=True)
        assert set(plan.entries) == {*kept, 'plan-environment.yaml'}
        # A new hidden parameter gets a password.
        root = b'parameters: {more: {type: string, hidden: true}}'
        plan = self.plans.update('plan', {'root.yaml': root})
        passwords = plan.environment.passwords
        assert set(passwords) == {'secret', 'more'}
        former = self.plan.environment.passwords
        assert passwords['secret'] == former['secret']
        again = self.plans.update('plan', {'root.yaml': root + b'#'})
        assert again.environment.passwords == passwords

    def test_a_refused_update_changes_nothing(self):
        for path, said in (
            ('root.yaml', 'root.yaml'),
            ('base.yaml', 'base.yaml'),
            ('nope', 'has no nope to delete'),
            ('./scripts/run.sh', 'Cannot delete scripts/run.sh'),
        ):
            update = self.plans.update, 'plan', {'scripts/run.sh': b'new'}
            assert said in self.refused(*update, delete=[path])
        update = self.plans.update, 'plan', {'root.yaml': b''}
        assert 'root.yaml' in self.refused(*update, prune=True)
        small = 'environments/small.yaml'
        self.cloud.objects()[small] = b'[1]'
        select = self.plans.select, 'plan', {small: True}
        assert 'no environment' in self.refused(*select)
        assert self.written() == []
        assert set(self.cloud.objects()) == set(fakes.content())

    def test_the_environment_and_records_stay(self):
        self.plans.select('plan', {'environments/small.yaml': True})
        self.cloud.swift.store().put_object('plan', '.heat-plugins/x', b'1')
        before = self.plans.load('plan').environment
        plan = self.plans.update('plan', fakes.content(), prune=True)
        assert plan.environment == before
        assert self.cloud.objects()['.heat-plugins/x'] == b'1'
        assert '.heat-plugins/x' not in plan.entries

    def test_a_rendered_plan_is_rendered_again(self):
        files = {
            'roles_data.yaml': b'[{name: Web}, {name: Db}]',
            'environments/tier.role.j2.yaml': b'{}',
            'deep/all.j2.yaml': b"{% include 'part' %}",
            'deep/part': b'first',
        }
        self.plans.create('other', fakes.content(**files), render=True)
        objects = self.cloud.objects('other')
        names = ('web', 'db', 'new')
        web, db, new = (f'environments/{n}-tier.yaml' for n in names)
        assert objects['deep/all.yaml'] == b'first'
        self.plans.update('other', {'deep/part': b'second'})
        assert objects['deep/all.yaml'] == b'second'
        # Rendered files are removed with their role, unless they are enabled.
        self.plans.select('other', {db: True})
        roles = {'roles_data.yaml': b'[{name: Web}, {name: New}]'}
        assert db in self.refused(self.plans.update, 'other', roles)
        assert b'Db' in objects['roles_data.yaml']
        self.plans.select('other', {db: False})
        self.plans.update('other', roles)
        assert db not in objects
        assert new in objects
        # And with their template, unless they are given by hand.
        gone = ['environments/tier.role.j2.yaml']
        self.plans.update('other', {}, delete=gone)
        assert web not in objects
        mine = {'deep/all.yaml': b'mine'}
        self.plans.update('other', mine, delete=['deep/all.j2.yaml'])
        assert objects['deep/all.yaml'] == b'mine'

    def test_nothing_is_left(self):
        seen = []
        self.cloud.objects().update({f'x/{n}': b'' for n in range(1001)})
        self.plans.delete('plan', lambda done, all_: seen.append((done, all_)))
        assert seen[-1][1] == seen[-1][0]
        assert self.cloud.objects() is None
        assert self.cloud.registry.records == {}
        self.assertRaises(errors.NotFound, self.plans.delete, 'plan')

    def test_a_plan_with_a_stack_in_any_state_stays(self):
        for status in ('CREATE_FAILED', 'UPDATE_COMPLETE', 'DELETE_FAILED'):
            self.cloud.heat.become('plan', status)
            with pytest.raises(errors.PlanInUse, match=status):
                self.plans.delete('plan')
        self.plans.load('plan')

    def test_a_container_of_another_user_stays(self):
        self.cloud.swift.store().put_container('theirs', {})
        self.assertRaises(errors.NotFound, self.plans.delete, 'theirs')
        assert self.cloud.objects('theirs') == {}
        # Also one for which a name was claimed.
        record = self.cloud.registry.records['plan']
        self.plans.delete('plan')
        self.cloud.registry.records['plan'] = record
        self.cloud.swift.store().put_container('plan', {})
        self.plans.delete('plan')
        assert self.cloud.objects() == {}
        assert self.cloud.registry.records == {}
        # And a record of another user, also one that came in between.
        self.plans.create('other', fakes.content())
        theirs = dataclasses.replace(record, name='other', values={})
        self.cloud.registry.records['other'] = theirs
        self.plans.delete('other')
        assert self.cloud.objects('other') is None
        assert self.cloud.registry.records.pop('other') == theirs
        claims = plan_claims.Claims(self.cloud.registry)
        for values in ({}, {'heat_plugins_plan': {'token': 'theirs'}}):
            claim = claims.take('other', '')
            theirs = dataclasses.replace(record, name='other', values=values)
            self.cloud.registry.records['other'] = theirs
            claims.release(claim)
            assert self.cloud.registry.records.pop('other') == theirs

    def test_a_listing_that_lags_is_waited_for(self):
        self.cloud.swift.lagging.add(('plan', 'base.yaml'))

        def catch_up(request):
            if request.method == 'DELETE' and request.url.endswith('/plan'):
                self.cloud.swift.before = lambda request: None
                self.cloud.swift.fail(status=409, method='DELETE')
                self.cloud.swift.lagging.clear()

        self.cloud.swift.before = catch_up
        self.plans.delete('plan')
        assert self.cloud.objects() is None

    def test_an_interrupted_deletion_can_be_finished(self):
        self.cloud.swift.fail(times=20, status=403, method='DELETE')
        self.assertRaises(errors.Denied, self.plans.delete, 'plan')
        self.cloud.swift.heal()
        kind = {'kind': errors.PlanUnfinished}
        assert 'deleting' in self.refused(self.plans.load, 'plan', **kind)
        create = self.plans.create, 'plan', fakes.content()
        self.refused(*create, **kind, resume=True)
        self.plans.delete('plan')
        assert self.cloud.objects() is None

    def test_a_lock_is_waited_for_and_then_its_holder_is_named(self):
        with contextlib.ExitStack() as other:
            other.enter_context(self.cloud.service().lock('plan'))
            self.cloud.while_waiting = other.close
            self.change(description='new')
        assert self.cloud.slept == [0.5]
        self.cloud.slept.clear()
        with self.plans.lock('plan'):
            delete = self.cloud.service().delete
            said = self.refused(delete, 'plan', kind=errors.PlanBusy)
            assert [p.name for p in self.plans.summaries()] == ['plan']
        assert LOCK in said
        assert 'since 2027-01-15T08:00:00' in said
        self.assertAlmostEqual(30, sum(self.cloud.slept), delta=2)
        # Its release is retried, and hides no error.
        update, failing = self.plans.update, [errors.Unavailable('away')] * 2

        def before(method, name):
            if method == 'delete' and failing:
                raise failing.pop()

        self.cloud.registry.before = before
        self.refused(update, 'nope', {}, kind=errors.NotFound)
        assert set(self.cloud.registry.records) == {'plan'}
        # An unreadable one is none.
        for values in ({}, {'heat_plugins_plan_lock': {'at': 'soon'}}):
            self.cloud.registry.records[LOCK] = plan_claims.Record(
                name=LOCK, description='', values=values
            )
            self.change(description='new')
            assert LOCK not in self.cloud.registry.records
        self.cloud.registry.failing['delete'] = errors.Denied('away')
        with self.assertLogs('heat_plugins.plans.plan_claims') as logs:
            self.refused(update, 'plan', {}, delete=['nope'])
        assert 'release the lock of plan plan: away' in logs.output[0]
        assert LOCK in logs.output[0]
        self.cloud.registry.failing.clear()
        self.assertRaises(errors.PlanBusy, self.plans.delete, 'plan')
        self.cloud.now += 900
        self.plans.delete('plan')

    def test_one_dead_after_the_other_is_succeeded_and_not_waited_for(self):
        longest = 'x' * 180
        self.plans.create(longest, fakes.content())
        # Whoever is forgotten gives its lock back.
        dead = []
        for name in ('plan', longest):
            for _ in range(3):
                dead.append(self.cloud.service().lock(name))
                dead[-1].__enter__()
                self.cloud.now += 901
            self.plans.delete(name)
        assert self.cloud.slept == []
        assert self.cloud.registry.records == {}

    def test_reading_and_an_empty_change_write_nothing(self):
        assert self.change() == self.plan
        assert self.written() == []
        self.sent = len(self.cloud.swift.seen)
        self.plans.capabilities(self.plan)
        self.plans.roles(self.plan)
        self.plans.resolve(self.plan)
        self.plans.summaries()
        self.refused(self.plans.load, 'nope', kind=errors.NotFound)
        methods = {one.method for one in self.cloud.swift.seen[self.sent :]}
        assert methods == {'GET', 'HEAD'}

    def exported(self, **options):
        file = io.BytesIO()
        left_out = self.plans.export('plan', file, **options)
        file.seek(0)
        return left_out, file

    def test_secrets_are_in_it_only_on_request(self):
        """Which values are secret is in the tests of secrecy."""
        data = {'parameter_defaults': {'secret': 'geheim'}}
        entry = environments.Entry(data=data)
        self.change(
            parameter_defaults={'who': 'me', 'secret': 'geheim'},
            environments=(*self.plan.environment.environments, entry),
        )
        secret = self.plan.environment.passwords['secret']
        for secrets, left in (
            (False, plan_service.LeftOut(values=('secret',), passwords=1)),
            (True, plan_service.LeftOut()),
        ):
            left_out, file = self.exported(secrets=secrets)
            assert left_out == left
            text = tarballs.read(file)['plan-environment.yaml'].decode()
            found = environments.PlanEnvironment.from_text(text)
            assert found.passwords == {'secret': secret if secrets else None}
            assert text.count('geheim') == 2 * secrets
        assert secret not in repr((self.plan, self.plans.resolve(self.plan)))
        # It is the same each time, without records.
        self.cloud.write_past_checks('.heat-plugins/x', b'1')
        (_, one), (_, other) = self.exported(), self.exported()
        assert other.getvalue() == one.getvalue()
        with tarfile.open(fileobj=one) as tarball:
            assert tarball.getnames() == sorted(fakes.content())
        # Nothing that is set leaves a plan that cannot be read.
        self.cloud.write_past_checks('root.yaml', b'a: [')
        assert self.exported()[0].values == ('secret', 'who')

    def test_plans_are_listed_without_the_object_store(self):
        self.plans.create('one', fakes.content())
        self.cloud.registry.records['x'] = plan_claims.Record(
            name='x', description='', values={'heat_plugins_plan': 'no'}
        )
        self.cloud.swift.locked_out.add('project-1')
        self.cloud.registry.asked.clear()
        at = '2027-01-15T08:00:00+00:00'
        assert [
            (one.name, one.state, one.description, one.created_at)
            for one in self.plans.summaries()
        ] == [(name, 'unknown', 'A test', at) for name in ('one', 'plan')]
        assert self.cloud.registry.asked == ['find']

    def test_what_is_half_made_shows(self):
        self.plans.create('half', fakes.content())
        mark = {'x-container-meta-heat-plugins-plan': 'creating'}
        self.cloud.swift.store().post_container('half', mark)
        plan_claims.Claims(self.cloud.registry).take('named', '')
        states = {one.name: one.state for one in self.plans.summaries()}
        half = dict.fromkeys(['half', 'named'], 'creating')
        assert states == {'plan': 'ready', **half}


def record(name, **values):
    return plan_claims.Record(name=name, description='é', values=values)


@pytest.mark.parametrize('made', [fake_swift.Cluster, fake_swift.ceph])
def test_a_name_is_taken_and_given_back_once(made):
    store = made().store()
    names = plan_claims.Names(store, pools.Pool(wait=0))
    assert names.find() == []
    assert names.get('b') is None
    assert names.create(record('b', x=1))
    assert not names.create(record('b', x=2))
    assert names.get('b') == record('b', x=1)
    for name in ('plan-lock:a', 'a'):
        names.create(record(name))
    found = [one.name for one in names.find()]
    assert found == ['a', 'b', 'plan-lock:a']
    assert names.delete('a')
    assert not names.delete('a')
    for body in (b'', b'[]', b'{"values": 1}', b'x' * 70000):
        store.put_object(f'{plan_claims.CONTAINER}-project-1', 'b', body)
        with pytest.raises(errors.ServiceError, match='delete it'):
            names.get('b')
