# SPDX-License-Identifier: Apache-2.0
"""Plans are changed, read, exported and deleted."""

import dataclasses
import io
import tarfile
import threading

import testtools

from heat_plugins import errors
from heat_plugins.content import tarballs
from heat_plugins.plans import plan_claims
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import exporting
from tests.unit.plans import fakes

LOCK = 'plan-lock:plan'


class PlansCase(fakes.PlanCase):
    def setUp(self):
        super().setUp()
        self.sent = len(self.cloud.swift.seen)

    def written(self):
        """Return the paths that were written since the plan was made."""
        return [
            one.where.removeprefix('/plan/')
            for one in self.cloud.swift.seen[self.sent :]
            if one.method == 'PUT'
        ]


class UpdateTest(PlansCase):
    def test_only_what_is_different_is_sent(self):
        other = fakes.content(**{'base.yaml': b'{}', 'new.yaml': b'{}'})
        self.plans.update('plan', other)
        self.assertEqual({'base.yaml', 'new.yaml'}, set(self.written()))
        self.plans.update('plan', other)
        self.assertEqual(2, len(self.written()))

    def test_all_else_goes_if_asked_for(self):
        kept = {'root.yaml': b'{}', 'base.yaml': b'{}'}
        plan = self.plans.update('plan', kept, prune=True)
        self.assertEqual({*kept, 'plan-environment.yaml'}, set(plan.entries))

    def test_what_is_needed_does_not_go(self):
        for path in ('root.yaml', 'base.yaml'):
            error = self.assertRaises(
                errors.Invalid, self.plans.update, 'plan', {}, delete=[path]
            )
            self.assertIn(path, str(error))
        self.assertRaises(
            errors.Invalid,
            self.plans.update,
            'plan',
            {'root.yaml': b''},
            prune=True,
        )
        self.assertEqual(set(fakes.content()), set(self.cloud.objects()))

    def test_what_is_not_there_cannot_go(self):
        error = self.assertRaises(
            errors.Invalid, self.plans.update, 'plan', {}, delete=['nope']
        )
        self.assertIn('nope', str(error))

    def test_what_the_new_files_have_cannot_go(self):
        error = self.assertRaises(
            errors.Invalid,
            self.plans.update,
            'plan',
            {'scripts/run.sh': b'new'},
            delete=['./scripts/run.sh'],
        )
        self.assertIn('Cannot delete scripts/run.sh', str(error))
        self.assertNotEqual(b'new', self.cloud.objects()['scripts/run.sh'])

    def test_what_is_enabled_and_set_stays(self):
        self.plans.select('plan', {'environments/small.yaml': True})
        secret = self.plans.load('plan').environment.passwords['secret']
        plan = self.plans.update('plan', fakes.content(), prune=True)
        self.assertIn('environments/small.yaml', plan.environment.enabled)
        self.assertEqual(secret, plan.environment.passwords['secret'])

    def test_records_beside_the_files_stay(self):
        self.cloud.swift.store().put_object('plan', '.heat-plugins/x', b'1')
        plan = self.plans.update('plan', fakes.content(), prune=True)
        self.assertEqual(b'1', self.cloud.objects()['.heat-plugins/x'])
        self.assertNotIn('.heat-plugins/x', plan.entries)

    def rendered(self, **more):
        """Make a plan that is rendered; return its objects."""
        files = fakes.content(
            **{
                'roles_data.yaml': b'[{name: Web}, {name: Db}]',
                'environments/tier.role.j2.yaml': b'{}',
                'deep/all.j2.yaml': b"{% include 'part' %}",
                'deep/part': b"first {% include 'deep/deeper.txt' %}",
                'deep/deeper.txt': b'second',
                **more,
            }
        )
        self.plans.create('other', files, render=True)
        return self.cloud.objects('other')

    def test_what_includes_a_file_that_changes_is_rendered_again(self):
        objects = self.rendered()
        self.assertEqual(b'first second', objects['deep/all.yaml'])
        self.plans.update('other', {'deep/deeper.txt': b'third'})
        self.assertEqual(b'first third', objects['deep/all.yaml'])

    def test_what_was_made_for_a_role_goes_with_it(self):
        objects = self.rendered()
        self.assertIn('environments/db-tier.yaml', objects)
        plan = self.plans.update(
            'other', {'roles_data.yaml': b'[{name: Web}, {name: New}]'}
        )
        self.assertNotIn('environments/db-tier.yaml', plan.entries)
        self.assertNotIn('environments/db-tier.yaml', objects)
        self.assertIn('environments/new-tier.yaml', objects)

    def test_what_was_made_of_a_template_goes_with_it(self):
        objects = self.rendered()
        self.plans.update(
            'other', {}, delete=['environments/tier.role.j2.yaml']
        )
        self.assertNotIn('environments/web-tier.yaml', objects)
        self.assertIn('deep/all.yaml', objects)

    def test_what_was_made_and_is_given_by_hand_now_stays(self):
        objects = self.rendered()
        self.plans.update(
            'other',
            {'deep/all.yaml': b'mine'},
            delete=['deep/all.j2.yaml'],
        )
        self.assertEqual(b'mine', objects['deep/all.yaml'])

    def test_what_is_enabled_does_not_go_with_its_role(self):
        objects = self.rendered()
        path = 'environments/db-tier.yaml'
        self.plans.select('other', {path: True})
        error = self.assertRaises(
            errors.Invalid,
            self.plans.update,
            'other',
            {'roles_data.yaml': b'[{name: Web}]'},
        )
        self.assertIn(path, str(error))
        self.assertIn(b'Db', objects['roles_data.yaml'])

    def test_what_a_new_template_hides_gets_a_password(self):
        before = self.plans.load('plan').environment.passwords
        template = fakes.TEMPLATE.replace(
            b'resources:', b'  more: {type: string, hidden: true}\nresources:'
        )
        after = self.plans.update('plan', {'root.yaml': template})
        passwords = after.environment.passwords
        self.assertEqual({'secret', 'more'}, set(passwords))
        self.assertEqual(before['secret'], passwords['secret'])
        self.assertEqual(32, len(passwords['more']))
        again = self.plans.update('plan', {'root.yaml': template + b'#'})
        self.assertEqual(passwords, again.environment.passwords)


class DeleteTest(PlansCase):
    def test_nothing_is_left(self):
        self.cloud.swift.store().put_object('plan', '.heat-plugins/x', b'1')
        self.plans.delete('plan')
        self.assertIsNone(self.cloud.objects())
        self.assertEqual({}, self.cloud.registry.records)
        self.assertRaises(errors.NotFound, self.plans.delete, 'plan')

    def test_a_plan_with_a_stack_in_any_state_stays(self):
        for status in (
            'CREATE_FAILED',
            'UPDATE_COMPLETE',
            'DELETE_IN_PROGRESS',
            'DELETE_FAILED',
        ):
            self.cloud.heat.become('plan', status)
            error = self.assertRaises(
                errors.PlanInUse, self.plans.delete, 'plan'
            )
            self.assertIn(status, str(error))
        self.plans.load('plan')

    def test_a_container_that_is_no_plan_stays(self):
        self.cloud.swift.store().put_container('theirs', {})
        self.assertRaises(errors.NotFound, self.plans.delete, 'theirs')
        self.assertEqual({}, self.cloud.objects('theirs'))

    def test_a_container_stays_that_a_name_without_a_plan_leads_to(self):
        record = self.cloud.registry.records['plan']
        self.plans.delete('plan')
        self.cloud.registry.records['plan'] = record
        self.cloud.swift.store().put_container('plan', {})
        self.plans.delete('plan')
        self.assertEqual({}, self.cloud.objects())
        self.assertEqual({}, self.cloud.registry.records)

    def test_an_environment_of_somebody_else_stays(self):
        theirs = plan_claims.Record(name='plan', description='', values={})
        self.cloud.registry.records['plan'] = theirs
        self.plans.delete('plan')
        self.assertEqual({'plan': theirs}, self.cloud.registry.records)

    def test_more_objects_go_than_a_listing_has(self):
        self.cloud.objects().update({f'x/{n}': b'' for n in range(10001)})
        self.plans.delete('plan')
        self.assertIsNone(self.cloud.objects())

    def test_its_progress_is_told(self):
        seen = []
        self.plans.delete('plan', lambda done, all_: seen.append((done, all_)))
        files = len(fakes.content())
        self.assertEqual((files, files), seen[-1])

    def test_a_listing_that_lags_is_waited_for(self):
        self.cloud.swift.lagging.add(('plan', 'base.yaml'))

        def catch_up(request):
            if request.method == 'DELETE' and request.url.endswith('/plan'):
                self.cloud.swift.before = lambda request: None
                self.cloud.swift.fail(status=409, method='DELETE')
                self.cloud.swift.lagging.clear()

        self.cloud.swift.before = catch_up
        self.plans.delete('plan')
        self.assertIsNone(self.cloud.objects())

    def test_what_broke_off_is_told_and_can_be_ended(self):
        self.cloud.swift.fail(times=20, status=403, method='DELETE')
        self.assertRaises(errors.Denied, self.plans.delete, 'plan')
        self.cloud.swift.heal()
        error = self.assertRaises(
            errors.PlanUnfinished, self.plans.load, 'plan'
        )
        self.assertIn('deleting', str(error))
        self.assertRaises(
            errors.PlanUnfinished,
            self.plans.create,
            'plan',
            fakes.content(),
            resume=True,
        )
        self.plans.delete('plan')
        self.assertIsNone(self.cloud.objects())


class LockTest(PlansCase):
    def setUp(self):
        super().setUp()
        self.dead = []

    def test_two_changes_at_once_are_both_kept(self):
        begun, waiting = threading.Event(), threading.Event()

        def slowly(environment):
            begun.set()
            assert waiting.wait(10)
            return with_parameter(environment, 'a')

        first = threading.Thread(
            target=self.plans.change, args=('plan', slowly)
        )
        first.start()
        begun.wait(10)
        self.cloud.while_waiting = lambda: (waiting.set(), first.join(10))
        self.plans.change('plan', lambda found: with_parameter(found, 'b'))
        self.assertEqual(
            {'a': 1, 'b': 1},
            self.plans.load('plan').environment.parameter_defaults,
        )

    def test_somebody_else_is_waited_for_and_then_named(self):
        with self.plans.lock('plan'):
            error = self.assertRaises(
                errors.PlanBusy, self.cloud.service().delete, 'plan'
            )
        self.assertIn(LOCK, str(error))
        self.assertAlmostEqual(30, sum(self.cloud.slept), delta=2)
        self.plans.delete('plan')

    def test_who_has_died_is_not_waited_for(self):
        with self.plans.lock('plan'):
            self.cloud.now += 1000
            with self.cloud.service().lock('plan'):
                other = self.cloud.registry.records[LOCK]
        self.assertEqual([], self.cloud.slept)
        self.assertNotEqual(None, other)

    def test_who_was_taken_for_dead_leaves_the_lock_of_the_other(self):
        other = self.cloud.service().lock('plan')
        with self.plans.lock('plan'):
            self.cloud.now += 1000
            other.__enter__()
        self.assertIn(LOCK, self.cloud.registry.records)
        other.__exit__(None, None, None)
        self.assertNotIn(LOCK, self.cloud.registry.records)

    def test_of_two_who_find_one_dead_one_goes_on(self):
        self.die_with_lock()
        held = []

        def overtake(method, name):
            # Both have read the dead one's lock; the other is faster.
            if method == 'create' and name != LOCK:
                self.cloud.registry.before = lambda method, name: None
                other = self.cloud.service().lock('plan')
                other.__enter__()
                held.append(other)

        self.cloud.registry.before = overtake
        self.assertRaises(errors.PlanBusy, self.plans.delete, 'plan')
        held[0].__exit__(None, None, None)
        self.assertEqual({'plan'}, set(self.cloud.registry.records))
        self.plans.delete('plan')

    def test_a_chain_that_was_given_back_meanwhile_is_no_lock(self):
        self.die_with_lock()
        seen = []

        def overtake(method, name):
            # Somebody comes and goes, and a third has the lock then.
            if method == 'create' and name != LOCK:
                self.cloud.registry.before = lambda method, name: None
                with self.cloud.service().lock('plan'):
                    seen.append(name)
                third = self.cloud.service().lock('plan')
                third.__enter__()
                self.addCleanup(third.__exit__, None, None, None)

        self.cloud.registry.before = overtake
        self.assertRaises(errors.PlanBusy, self.plans.delete, 'plan')
        self.assertEqual(1, len(seen))
        self.assertEqual({'plan', LOCK}, set(self.cloud.registry.records))

    def test_who_comes_late_leaves_all_to_who_comes_next(self):
        with self.plans.lock('plan'):
            self.cloud.now += 890
        self.assertIn(LOCK, self.cloud.registry.records)
        self.cloud.now += 20
        self.plans.delete('plan')
        self.assertEqual({}, self.cloud.registry.records)

    def test_a_lock_that_somebody_has_garbled_is_none(self):
        for values in ({}, {'heat_plugins_plan_lock': {'until': 'soon'}}):
            self.cloud.registry.records[LOCK] = plan_claims.Record(
                name=LOCK, description='', values=values
            )
            self.plans.change('plan', lambda found: found)
            self.assertNotIn(LOCK, self.cloud.registry.records)

    def test_one_dead_after_the_other_is_succeeded(self):
        for _ in range(3):
            self.die_with_lock()
        self.plans.delete('plan')
        self.assertEqual({}, self.cloud.registry.records)

    def test_who_takes_a_lock_that_was_taken_away_by_hand_keeps_it(self):
        with self.plans.lock('plan'):
            del self.cloud.registry.records[LOCK]
            other = self.cloud.service().lock('plan')
            other.__enter__()
        self.assertIn(LOCK, self.cloud.registry.records)
        other.__exit__(None, None, None)

    def test_what_is_done_stays_done_if_the_lock_cannot_be_given_back(self):
        self.cloud.registry.failing['delete'] = errors.Unavailable('away')
        with self.assertLogs(
            'heat_plugins.plans.plan_claims', 'WARNING'
        ) as logs:
            self.plans.change('plan', lambda found: with_parameter(found, 'a'))
        self.assertIn(
            'Cannot release the lock of plan plan: away', logs.output[0]
        )
        self.assertIn(LOCK, logs.output[0])
        self.cloud.registry.failing.clear()
        self.assertRaises(errors.PlanBusy, self.plans.delete, 'plan')
        self.cloud.now += 900
        self.plans.delete('plan')

    def test_a_lock_is_given_back_as_soon_as_mistral_answers_again(self):
        failures = iter([errors.Unavailable('away')] * 2)

        def before(method, name):
            if method == 'delete':
                for failure in failures:
                    raise failure

        self.cloud.registry.before = before
        self.plans.change('plan', lambda found: with_parameter(found, 'a'))
        self.assertEqual({'plan'}, set(self.cloud.registry.records))

    def test_an_error_is_not_replaced_by_that_of_the_lock(self):
        self.cloud.registry.failing['delete'] = errors.Denied('away')
        self.assertRaises(
            errors.Invalid, self.plans.update, 'plan', {}, delete=['nope']
        )

    def test_the_longest_name_can_be_locked_and_taken_over(self):
        name = 'x' * 180
        self.plans.create(name, fakes.content())
        self.die_with_lock(name)
        self.plans.delete(name)

    def die_with_lock(self, name='plan'):
        """Leave the lock of somebody who is taken for dead."""
        dead = self.cloud.service().lock(name)
        dead.__enter__()
        # Whoever is forgotten gives it back.
        self.dead.append(dead)
        self.cloud.now += 901

    def test_a_lock_is_given_back_by_what_fails(self):
        self.assertRaises(errors.NotFound, self.plans.update, 'nope', {})
        self.assertEqual({'plan'}, set(self.cloud.registry.records))

    def test_locks_are_no_plans(self):
        with self.plans.lock('plan'):
            self.assertEqual(
                ['plan'], [one.name for one in self.plans.summaries()]
            )


class ChangeTest(PlansCase):
    def test_what_does_not_change_is_not_written(self):
        plan = self.plans.change('plan', lambda found: found)
        self.assertEqual(self.plan, plan)
        self.assertEqual([], self.written())

    def test_reading_changes_nothing(self):
        self.plans.capabilities(self.plan)
        self.plans.roles(self.plan)
        self.plans.resolve(self.plan)
        self.plans.summaries()
        self.assertEqual(
            {'GET', 'HEAD'},
            {one.method for one in self.cloud.swift.seen[self.sent :]},
        )

    def test_a_file_that_is_no_environment_is_not_enabled(self):
        self.cloud.objects()['environments/small.yaml'] = b'[1]'
        error = self.assertRaises(
            errors.Invalid,
            self.plans.select,
            'plan',
            {'environments/small.yaml': True},
        )
        self.assertIn('no environment', str(error))
        self.assertEqual([], self.written())

    def test_no_password_is_shown(self):
        secret = self.plan.environment.passwords['secret']
        self.assertNotIn(secret, repr(self.plan))
        self.assertNotIn(secret, repr(self.plans.resolve(self.plan)))

    def test_a_user_who_lacks_a_role_is_told_no_more_than_that(self):
        self.cloud.swift.fail(times=9, status=403, method='HEAD')
        error = self.assertRaises(errors.Denied, self.plans.load, 'plan')
        self.assertNotIn('another', str(error).lower())

    def test_roles_are_those_of_the_root_template_without_a_list(self):
        self.cloud.objects()['root.yaml'] = (
            b'resources:\n'
            b'  Web: {type: OS::Heat::ResourceGroup, properties: {count: 2}}\n'
        )
        [role] = self.plans.roles(self.plans.load('plan'))
        self.assertEqual(('Web', 2), (role.name, role.count))
        self.plans.update('plan', {'roles_data.yaml': b'[{name: Db}]'})
        [role] = self.plans.roles(self.plans.load('plan'))
        self.assertEqual('Db', role.name)


class ExportTest(PlansCase):
    def exported(self, **options):
        file = io.BytesIO()
        self.plans.export('plan', file, **options)
        file.seek(0)
        return file

    def test_it_holds_generated_passwords_only_if_asked_for(self):
        secret = self.plan.environment.passwords['secret']

        def environment(**options):
            content = tarballs.read(self.exported(**options))
            return environments.PlanEnvironment.from_text(
                content['plan-environment.yaml'].decode()
            )

        self.assertEqual({'secret': None}, environment().passwords)
        self.assertEqual(
            {'secret': secret}, environment(secrets=True).passwords
        )

    def test_it_holds_what_is_set_for_hidden_parameters_only_if_asked(self):
        def set_all(environment):
            return dataclasses.replace(
                environment,
                parameter_defaults={
                    'who': 'me',
                    'secret': 'geheim',
                    'nobody_knows': 'verborgen',
                },
                environments=(
                    *environment.environments,
                    environments.Entry(
                        data={'parameter_defaults': {'secret': 'geheim'}}
                    ),
                ),
            )

        self.plans.change('plan', set_all)
        file = io.BytesIO()
        left_out = self.plans.export('plan', file)
        self.assertEqual(('nobody_knows', 'secret'), left_out.values)
        self.assertEqual(1, left_out.passwords)
        text = tarballs.read(self.exported())['plan-environment.yaml']
        self.assertNotIn(b'geheim', text)
        self.assertNotIn(b'verborgen', text)
        self.assertIn(b'who: me', text)
        whole = tarballs.read(self.exported(secrets=True))
        self.assertEqual(2, whole['plan-environment.yaml'].count(b'geheim'))
        self.assertEqual(
            exporting.LeftOut(), self.plans.export('plan', file, secrets=True)
        )

    def test_nothing_that_is_set_leaves_a_plan_that_cannot_be_read(self):
        self.plans.change(
            'plan', lambda environment: with_parameter(environment, 'who')
        )
        self.cloud.swift.store().put_object('plan', 'root.yaml', b'a: [')
        left_out = self.plans.export('plan', io.BytesIO())
        self.assertEqual(('who',), left_out.values)

    def test_it_is_the_same_each_time(self):
        self.cloud.swift.store().put_object('plan', '.heat-plugins/x', b'1')
        self.assertEqual(
            self.exported().getvalue(), self.exported().getvalue()
        )
        with tarfile.open(fileobj=self.exported()) as tarball:
            names = tarball.getnames()
        self.assertEqual(sorted(fakes.content()), names)


class ListTest(testtools.TestCase):
    def test_plans_are_listed_without_the_object_store(self):
        cloud = fakes.Cloud()
        for name in ('two', 'one'):
            cloud.plans.create(name, fakes.content())
        cloud.registry.records['x'] = plan_claims.Record(
            name='x', description='', values={'heat_plugins_plan': 'no'}
        )
        cloud.swift.locked_out.add('project-1')
        cloud.registry.asked.clear()
        found = cloud.plans.summaries()
        self.assertEqual(['one', 'two'], [one.name for one in found])
        self.assertEqual({'unknown'}, {one.state for one in found})
        self.assertEqual(['find'], cloud.registry.asked)
        self.assertEqual('A test', found[0].description)
        self.assertEqual('2027-01-15T08:00:00+00:00', found[0].created_at)

    def test_what_is_half_made_shows(self):
        cloud = fakes.Cloud()
        for name in ('made', 'half'):
            cloud.plans.create(name, fakes.content())
        cloud.swift.store().post_container(
            'half', {'x-container-meta-heat-plugins-plan': 'creating'}
        )
        cloud.plans._claims.take('named', '')
        self.assertEqual(
            {'made': 'ready', 'half': 'creating', 'named': 'creating'},
            {one.name: one.state for one in cloud.plans.summaries()},
        )


def with_parameter(environment, name):
    return dataclasses.replace(
        environment,
        parameter_defaults={**environment.parameter_defaults, name: 1},
    )
