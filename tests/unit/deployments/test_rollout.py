# SPDX-License-Identifier: Apache-2.0
"""An action goes through all members of a group, whatever dies meanwhile."""

import dataclasses
import itertools
import types
from unittest import mock

import pytest

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import metrics
from heat_plugins import retrying
from heat_plugins import tokens
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import fleets
from heat_plugins.deployments import rollout
from heat_plugins.signals import body
from heat_plugins.signals import signal_names
from tests import pages
from tests.unit import counted
from tests.unit.deployments import fake_fleet

ALL = ('CREATE', 'UPDATE', 'DELETE', 'SUSPEND', 'RESUME')


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


class Group:
    """A group as its resource drives it, from one engine to the next."""

    def __init__(self, *keys, actions=ALL, **pace):
        self.clock = Clock()
        self.fleet = fake_fleet.Fleet(self.clock)
        self.servers = {key: f'server-{key}' for key in keys}
        self.actions = actions
        self.pace = fleets.RolloutPace(**pace)
        self.told = []
        self.tool = 'script'

    def runs(self, action):
        return action in self.actions

    def wanted(self):
        return fleets.wanted(fake_fleet.GROUP, self.servers)

    def asked(self):
        """Return an update that may repeat one that has failed."""
        return fleets.Update(
            runs=self.runs, transport=self.fleet.transport, changed=None
        )

    def rollout(self, action, tasks):
        return rollout.Rollout(
            deliveries.Work(
                action=action,
                source=heat_values.DerivedConfig(
                    group=self.tool, config='', outputs=[]
                ),
                terms=types.SimpleNamespace(transport='TEMP_URL_POLL'),
            ),
            tasks,
            self.fleet,
            self.fleet.watcher,
            self.pace,
            deliveries.of_group,
            self.told.append,
            self.clock,
        )

    def updates(self, wanted=None):
        return fleets.to_update(
            self.wanted() if wanted is None else wanted,
            dict(self.fleet.rows),
            self.asked(),
            self.fleet.draft,
        )

    def undoing(self):
        return self.rollout('DELETE', fleets.to_undo(dict(self.fleet.rows)))

    def idle(self, change, seconds):
        for _ in range(seconds):
            self.clock.now += 1
            assert not change.step()

    def begun(self):
        """Return a rollout of CREATE to all, of which nothing is done."""
        return self.rollout('CREATE', self.updates())

    def waiting(self):
        """Return such a rollout, whose servers do not answer yet."""
        self.fleet.answer = lambda key: None
        change = self.begun()
        assert not change.step()
        self.fleet.work()
        return change

    def change_rows(self, **values):
        for row in list(self.fleet.rows.values()):
            self.fleet.change(row, **values)

    def send(self, found):
        self.fleet.signals |= dict.fromkeys(self.signals(), found)

    def signals(self):
        return {
            signal_names.signal(row.id, row.config.id)
            for row in self.fleet.rows.values()
        }

    def drive(self, change, seconds=300):
        for _ in range(seconds):
            self.clock.now += 1
            self.fleet.work()
            if change.step():
                return change
        raise AssertionError('it goes on and on')

    def fails(self, change, said):
        with pytest.raises(deliveries.ActionFailed, match=said):
            self.drive(change)

    def update(self, action='UPDATE'):
        """Bring the members up to date, and let those go that must."""
        wanted, rows = self.wanted(), dict(self.fleet.rows)
        self.drive(self.rollout(action, self.updates()))
        self.let_go({k: row for k, row in rows.items() if k not in wanted})

    def let_go(self, rows):
        tasks = fleets.to_undo(rows) if self.runs('DELETE') else []
        self.drive(self.rollout('DELETE', tasks))
        rollout.remove(self.fleet, rows)

    def delete(self):
        self.let_go(dict(self.fleet.rows))

    def act(self, action, *, repeats=False):
        rows = dict(self.fleet.rows)
        tasks = fleets.to_act(self.wanted(), rows, action, repeats=repeats)
        self.drive(self.rollout(action, tasks))

    def through_crashes(self, step, do):
        """Do something, though an engine may die before some step.

        :returns: whether it has died.
        """
        self.fleet.steps, self.fleet.crash_at = 0, step
        try:
            do()
        except fake_fleet.Crash:
            # The servers go on meanwhile.
            self.fleet.work()
            self.fleet.restart()
            self.fleet.crash_at = None
            do()
            return True
        self.fleet.crash_at = None
        return False

    def change_key(self, key='second'):
        self.fleet.dead.add(self.fleet.signer)
        self.fleet.signer = dataclasses.replace(self.fleet.signer, key=key)

    def states(self):
        return {
            fleets.Member.of_row(row).key: (row.action, row.status)
            for row in self.fleet.rows.values()
        }

    def assert_nothing_left(self):
        assert not self.fleet.rows
        assert not self.fleet.configs
        assert not any(self.fleet.told.values())
        assert not len(self.fleet.watcher)


def test_another_server_of_a_key_is_another_member():
    group = Group('a')
    group.update('CREATE')
    group.servers['a'] = 'another'
    group.update()
    assert group.fleet.actions() == {'a': ['CREATE', 'CREATE', 'DELETE']}
    assert [row.server_id for row in group.fleet.rows.values()] == ['another']
    assert not group.fleet.told['server-a']
    assert not group.fleet.signals


def test_a_crash_at_no_step_of_a_creation_is_noticed():
    for step in itertools.count(1):
        group = Group('a', 'b', 'c', batch=2)
        crashed = group.through_crashes(step, group.update)
        assert group.states() == dict.fromkeys('abc', ('CREATE', 'COMPLETE'))
        # Nothing runs twice, not even where an engine died in between.
        assert group.fleet.actions() == {key: ['CREATE'] for key in 'abc'}
        group.delete()
        group.assert_nothing_left()
        if not crashed:
            break
    assert step > 10


def test_nor_one_of_an_update_or_a_deletion():
    for step in itertools.count(1):
        group = Group('a', 'b', 'c')
        group.update('CREATE')
        group.fleet.who = 'moon'
        del group.servers['b']
        group.servers['d'] = 'server-d'
        crashed = group.through_crashes(step, group.update)
        assert group.fleet.actions() == {
            'a': ['CREATE', 'UPDATE'],
            'b': ['CREATE', 'DELETE'],
            'c': ['CREATE', 'UPDATE'],
            'd': ['CREATE'],
        }
        assert group.states().keys() == {'a', 'c', 'd'}
        crashed |= group.through_crashes(step, group.delete)
        group.assert_nothing_left()
        ran = group.fleet.actions()
        assert [ran[key].count('DELETE') for key in 'acd'] == [1, 1, 1]
        if not crashed:
            break
    assert step > 20


def test_those_that_wait_may_answer_a_while_longer():
    group = Group('a', 'b')
    group.fleet.answer = lambda key: fake_fleet.BAD if key == 'a' else None
    began = group.clock.now
    with pytest.raises(deliveries.ActionFailed, match='1 have not answered'):
        group.update('CREATE')
    assert rollout.GRACE <= group.clock.now - began < rollout.GRACE + 5
    assert not len(group.fleet.watcher)
    # What comes later still counts.
    group.fleet.ran.clear()
    group.fleet.answer = lambda key: fake_fleet.OK
    group.update()
    assert group.states() == dict.fromkeys('ab', ('CREATE', 'COMPLETE'))


def test_each_end_is_counted():
    group = Group('a', 'b', 'c', timeout=30)
    answers = {'a': fake_fleet.BAD, 'b': fake_fleet.OK, 'c': None}
    group.fleet.answer = answers.get
    with counted.Counted() as counts, pytest.raises(deliveries.ActionFailed):
        group.update('CREATE')
    assert counts.of(metrics.RESULTS) == {
        'complete': 1,
        'failed': 1,
        'unanswered': 1,
    }


def test_of_many_failures_some_are_named():
    boom = deliveries.Failure(reason='boom')
    said = deliveries.of_group(dict.fromkeys('abcdefgh', boom), 9)
    assert said == (
        '8 of 9 members failed. 8 members (a, b, c, and 5 more): boom'
    )
    each = {k: deliveries.Failure(reason=f'no {k}{k}') for k in 'abcd'}
    said = deliveries.of_group(each, 9)
    assert said == (
        '4 of 9 members failed. a: no aa; b: no bb; and 2 members more: see '
        'the attribute "members"'
    )


def test_the_page_on_groups_has_a_reason_as_it_is():
    full, missing = (
        body.outcome(
            {'deploy_status_code': code, 'deploy_stderr': stderr}, ()
        ).reason
        for code, stderr in (
            (1, 'No space left on device\n'),
            (127, 'backup: not found\n'),
        )
    )
    reasons = {
        key: deliveries.Failure(reason=reason)
        for key, reason in [
            *((f'web{n}', full) for n in range(1, 6)),
            ('db', missing),
        ]
    }
    (example,) = pages.blocks(pages.read('groups', 'When members fail'))
    assert example == f'{deliveries.of_group(reasons, 40)}\n'


@pytest.mark.parametrize(
    ('limit', 'said'),
    [
        ('timeout', 'not signalled CREATE within 30'),
        ('delivery_timeout', 'not reported within 30'),
    ],
)
def test_a_member_that_is_late_is_withdrawn(limit, said):
    group = Group('a', **{limit: 30})
    group.fleet.answer = lambda key: None
    with pytest.raises(deliveries.ActionFailed, match=said):
        group.update('CREATE')
    assert group.states() == {'a': ('CREATE', 'FAILED')}
    assert not group.fleet.told['server-a']
    group.fleet.answer = lambda key: fake_fleet.OK
    group.delete()
    # Its server may have run some of it.
    assert group.fleet.actions() == {'a': ['CREATE', 'DELETE']}
    group.assert_nothing_left()


@pytest.mark.parametrize('is_listed', [True, False])
def test_one_that_has_started_has_its_time(is_listed):
    group = Group('a', delivery_timeout=30)
    change = group.waiting()
    group.fleet.lists = is_listed
    group.fleet.begun.add('server-a')
    group.clock.now += 29
    group.idle(change, 70)
    assert change.progress().started == len(group.fleet.noted) == 1


def test_a_result_counts_that_is_found_when_it_is_late():
    group = Group('a', timeout=30)
    change = group.waiting()
    fetch = group.fleet.fetch
    group.fleet.fetch = lambda names: [errors.Unavailable('503')]
    group.clock.now += 30
    assert not change.step()
    assert change.outage is not None
    group.fleet.fetch = fetch
    group.send(b'{}')
    assert group.drive(change).complete


@pytest.mark.parametrize('is_listed', [True, False])
def test_so_does_what_another_engine_settles_meanwhile(is_listed):
    group = Group('a', timeout=30, allowed=1)
    change = group.waiting()
    group.send(b'{}')
    fetched = group.fleet.fetch(list(group.fleet.signals))
    if not is_listed:
        group.fleet.signals.clear()

    def settle(outcomes):
        group.change_rows(status='FAILED', reason='boom')
        return ()

    group.fleet.fetch, group.fleet.settle = lambda names: fetched, settle
    group.clock.now += 30
    assert change.step()
    assert change.failures == {
        'a': deliveries.Failure(reason='boom', is_result=True)
    }


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        (lambda group: group.change_rows(status='COMPLETE'), None),
        (
            lambda group: group.change_rows(status='FAILED', reason='boom'),
            'a: boom',
        ),
        # Heat's API lets its users write any status.
        (lambda group: group.change_rows(status='WEIRD'), 'status WEIRD'),
        (lambda group: group.fleet.rows.clear(), 'withdrew the deployment'),
    ],
)
def test_what_another_process_ends_has_ended(change, said):
    group = Group('a')
    waiting = group.waiting()
    change(group)
    if said is None:
        assert group.drive(waiting).complete
    else:
        group.fails(waiting, said)


def test_what_the_poll_has_forgotten_is_polled_for_again():
    group = Group('a')
    change = group.waiting()
    group.fleet.watcher.forget(*group.fleet.rows)
    assert not change.step()
    group.send(b'{}')
    assert group.drive(change).complete


@pytest.mark.parametrize(
    ('found', 'fetches'),
    # A listing may go on showing what has expired.
    [(errors.NotFound('no object'), 1), (errors.Unavailable('503'), 5)],
)
def test_a_result_that_cannot_be_fetched_now_is_fetched_later(found, fetches):
    group = Group('a')
    change = group.waiting()
    group.send(found)
    fetch = mock.Mock(side_effect=group.fleet.fetch)
    group.fleet.fetch = fetch
    group.idle(change, 5)
    assert fetch.call_count == fetches
    group.send(b'{}')
    assert group.drive(change).complete


def test_one_that_is_no_result_is_a_failure():
    group = Group('a')
    change = group.waiting()
    group.send(errors.TooLarge('it is too large'))
    group.fails(change, 'it is too large')


@pytest.mark.parametrize(
    ('broken', 'seconds'),
    [(errors.Unavailable('it says no'), 60), (errors.Denied('it says no'), 0)],
)
def test_an_outage_is_given_up_after_the_budget(broken, seconds):
    group = Group('a', budget=60)
    group.fleet.broken = broken
    change, began = group.begun(), group.clock.now
    group.fails(change, 'it says no')
    assert seconds < group.clock.now - began < seconds + 5


def test_a_server_that_takes_nothing_is_a_failure():
    group = Group('a', 'b')
    group.fleet.refusals['a'] = 'its policy forbids it'
    with pytest.raises(
        deliveries.ActionFailed, match='a: its policy forbids it'
    ):
        group.update('CREATE')
    assert group.states() == {'b': ('CREATE', 'COMPLETE')}
    # But none of a DELETE.
    group = Group('a', 'b')
    group.update('CREATE')
    group.fleet.refusals['a'] = 'its server is gone'
    change = group.drive(group.undoing())
    assert change.skipped == {'a': 'its server is gone'}
    group.delete()
    assert group.fleet.actions() == {
        'a': ['CREATE'],
        'b': ['CREATE', 'DELETE'],
    }
    group.assert_nothing_left()


def test_suspend_runs_on_each_and_is_repeated_where_it_failed():
    group = Group('a', 'b')
    group.update('CREATE')
    group.fleet.answer = {'a': fake_fleet.BAD, 'b': fake_fleet.OK}.get
    with pytest.raises(deliveries.ActionFailed):
        group.act('SUSPEND')
    group.fleet.answer = lambda key: fake_fleet.OK
    group.act('SUSPEND', repeats=True)
    assert group.fleet.actions() == {
        'a': ['CREATE', 'SUSPEND', 'SUSPEND'],
        'b': ['CREATE', 'SUSPEND'],
    }


def test_a_suspend_that_servers_have_is_waited_for_after_a_crash():
    group = Group('a')
    group.update('CREATE')
    group.fleet.answer = {}.get
    with pytest.raises(AssertionError):
        group.act('SUSPEND')
    group.fleet.restart()
    group.send(b'{}')
    group.act('SUSPEND', repeats=True)
    assert group.fleet.actions() == {'a': ['CREATE', 'SUSPEND']}


def test_a_hook_that_servers_may_lack_is_told_of_once():
    group = Group('a', 'b', batch=1)
    group.tool = 'scirpt'
    group.update('CREATE')
    (told,) = group.fleet.events
    assert told.startswith('Unknown hook: "scirpt" is not a hook')


def test_what_a_dead_engine_has_delivered_is_stopped_before_another_action():
    group = Group('a', 'b')
    group.waiting()
    group.fleet.restart()
    waiting = group.signals()
    group.fleet.who = 'moon'
    group.fleet.answer = lambda key: fake_fleet.OK
    group.update()
    assert set(group.fleet.stopped) == waiting
    # So it is before its rows go.
    group = Group('a', actions=('CREATE',))
    group.waiting()
    group.fleet.restart()
    group.delete()
    assert len(group.fleet.stopped) == 1
    group.assert_nothing_left()


def changed_key(tool='puppet'):
    """Return a group whose servers have URLs that are refused; its rollout."""
    group = Group('a', 'b')
    group.tool = tool
    change = group.waiting()
    group.change_key()
    group.fleet.answer = lambda key: fake_fleet.OK
    return group, change


@pytest.mark.parametrize('tool', ['puppet', 'script'])
def test_urls_of_a_changed_key_are_made_again_where_a_repetition_is_safe(tool):
    group, change = changed_key(tool)
    change.step()
    (told,) = group.fleet.events
    assert '2 servers can no longer send the result of CREATE' in told
    assert ('delivers the action again' in told) == (tool == 'puppet')
    group.fleet.work()
    expected = ['CREATE'] * (2 if tool == 'puppet' else 1)
    assert group.fleet.actions() == {'a': expected, 'b': expected}


def test_keys_that_go_on_changing_do_not_repeat_it_for_ever():
    group = Group('a')
    group.tool = 'puppet'
    change = group.waiting()
    for number in range(8):
        group.change_key(f'key {number}')
        assert not change.step()
        group.fleet.work()
    assert group.fleet.actions() == {'a': ['CREATE'] * 4}


def test_progress_is_told_once_in_a_while():
    group = Group('a', 'b', timeout=60)
    group.fleet.answer = lambda key: fake_fleet.OK if key == 'a' else None
    with pytest.raises(deliveries.ActionFailed):
        group.update('CREATE')
    assert [str(each) for each in group.told] == [
        'CREATE: 1 of 2 members complete, 1 waiting for their servers'
    ]


def fail_once(fleet, name, *, after):
    """Let a method of the fleet fail, before or after its work."""
    real = getattr(fleet, name)

    def failing(*args):
        setattr(fleet, name, real)
        if after:
            real(*args)
        raise errors.Unavailable('503')

    setattr(fleet, name, failing)


@pytest.mark.parametrize('after', [True, False])
@pytest.mark.parametrize('name', ['derive', 'write', 'push'])
def test_a_server_runs_once_what_an_outage_has_interrupted(name, after):
    group = Group('a', 'b')
    change = group.begun()
    fail_once(group.fleet, name, after=after)
    assert not change.step()
    assert change.outage is not None
    group.fleet.work()
    group.drive(change)
    assert group.fleet.actions() == {'a': ['CREATE'], 'b': ['CREATE']}
    assert change.outage is None


@pytest.mark.parametrize('name', ['write', 'push'])
def test_what_an_outage_has_interrupted_is_withdrawn_when_cancelled(name):
    group = Group('a', 'b', 'c', batch=2)
    change = group.begun()
    fail_once(group.fleet, name, after=True)
    assert not change.step()
    change.withdraw('CREATE was cancelled')
    assert group.states() == dict.fromkeys('ab', ('CREATE', 'FAILED'))
    assert not any(group.fleet.told.values())
    assert change.step()


def test_what_a_dead_engine_has_left_for_a_later_batch_is_withdrawn_too():
    group = Group('a', 'b')
    group.waiting()
    group.fleet.restart()
    group.pace = dataclasses.replace(group.pace, batch=1)
    change = group.rollout('UPDATE', group.updates())
    assert not change.step()
    change.withdraw('UPDATE was cancelled')
    assert group.states() == dict.fromkeys('ab', ('CREATE', 'FAILED'))
    assert len(group.fleet.stopped) == 2


def test_an_outage_that_outlasts_the_time_says_that_nothing_was_delivered():
    group = Group('a', timeout=30)
    group.fleet.broken = errors.Unavailable('503')
    change, began = group.begun(), group.clock.now
    with pytest.raises(deliveries.NoAnswer, match='to server a within 30 s'):
        group.drive(change)
    assert group.clock.now - began == 31


@pytest.mark.parametrize('name', ['read', 'derive', 'write', 'push'])
def test_a_repeated_delivery_rides_out_an_outage(name):
    group, change = changed_key()
    fail_once(group.fleet, name, after=True)
    assert not change.step()
    group.drive(change)
    assert group.states() == dict.fromkeys('ab', ('CREATE', 'COMPLETE'))
    assert group.fleet.actions() == dict.fromkeys('ab', ['CREATE'] * 2)
    # They run it, and could not read that they must not.
    assert not group.fleet.stopped


@pytest.mark.parametrize('after', [True, False])
@pytest.mark.parametrize('name', ['derive', 'write', 'push'])
def test_it_is_withdrawn_when_it_is_cancelled_in_one(name, after):
    group, change = changed_key()
    fail_once(group.fleet, name, after=after)
    assert not change.step()
    change.withdraw('CREATE was cancelled')
    assert group.states() == dict.fromkeys('ab', ('CREATE', 'FAILED'))


def test_what_has_come_under_the_former_key_is_not_run_again():
    group, change = changed_key()
    # No listing has shown it.
    group.fleet.lists = False
    group.send(b'{}')
    group.fleet.signals.popitem()
    assert not change.step()
    group.drive(change)
    repeated = [run for run in group.fleet.actions().values() if run[1:]]
    assert len(repeated) == 1
    assert group.states() == dict.fromkeys('ab', ('CREATE', 'COMPLETE'))


def test_the_time_of_a_member_is_not_prolonged_by_that():
    group = Group('a', timeout=30)
    group.tool = 'puppet'
    change, began = group.waiting(), group.clock.now
    group.clock.now += 20
    group.change_key()
    group.fails(change, 'not signalled')
    assert group.clock.now - began <= 31


def test_a_report_that_cannot_be_fetched_now_may_be_there():
    group = Group('a', delivery_timeout=30)
    change = group.waiting()
    fetch = group.fleet.fetch
    group.fleet.fetch = lambda names: [
        errors.Unavailable('503')
        if name.endswith('.progress')
        else errors.NotFound('none')
        for name in names
    ]
    group.clock.now += 30
    assert not change.step()
    assert not change.failures
    group.fleet.fetch = fetch
    group.fails(change, 'not reported')


def test_a_result_that_comes_as_it_is_withdrawn_counts():
    group = Group('a', timeout=30)
    change = group.waiting()
    withdraw = group.fleet.withdraw

    def late(withdrawals):
        group.change_rows(status='COMPLETE')
        return withdraw(withdrawals)

    group.fleet.withdraw = late
    group.clock.now += 30
    assert change.step()
    assert change.complete
    assert group.fleet.told['server-a']


def test_a_server_that_goes_while_it_runs_delete_is_left_out():
    group = Group('a', 'b')
    group.update('CREATE')
    group.fleet.answer = lambda key: fake_fleet.OK if key == 'b' else None
    group.fleet.lost.add('server-a')
    change = group.drive(group.undoing(), 40)
    assert change.skipped == {'a': 'Server server-a no longer exists'}
    assert not change.failures


BY_OTHERS = pytest.mark.parametrize(
    'transport', ['CFN_SIGNAL', 'ZAQAR_SIGNAL']
)


@BY_OTHERS
def test_an_answer_comes_through_the_row_as_well(transport):
    group = Group('a', delivery_timeout=30, timeout=60)
    group.fleet.transport = transport
    change = group.waiting()
    group.change_rows(reason=tokens.STARTED.after('It has started'))
    group.idle(change, 40)
    assert not change.failures
    group.change_rows(status='COMPLETE')
    assert group.drive(change).complete


@BY_OTHERS
def test_no_object_is_asked_for_where_none_will_come(transport):
    group = Group('a', timeout=30)
    assert group.waiting().may_block
    group = Group('a', timeout=30)
    group.fleet.transport = transport
    change = group.waiting()
    # Nothing wakes a rollout whose answer lies in a queue.
    assert change.may_block == (transport == 'CFN_SIGNAL')
    with (
        mock.patch.object(group.fleet, 'fetch', side_effect=AssertionError),
        pytest.raises(deliveries.ActionFailed, match='not signalled'),
    ):
        group.drive(change)
    assert not group.fleet.stopped


def test_an_object_store_that_is_away_is_nothing_to_other_transports():
    group = Group('a', budget=10)
    group.fleet.transport = 'CFN_SIGNAL'
    change = group.waiting()
    # Others of the stack wait for objects.
    group.fleet.watcher._note = lambda outage: None  # noqa: SLF001
    group.fleet.watcher.outage = retrying.Outage.of(
        errors.Unavailable('503'), None
    )
    group.idle(change, 30)
    assert change.outage is None


def test_what_is_refused_when_it_is_repeated_is_taken_back():
    group, change = changed_key()
    group.fleet.refusals['a'] = 'its policy forbids it'
    group.fails(change, 'its policy forbids it')
    assert group.states()['a'] == ('CREATE', 'FAILED')
    assert not group.fleet.told['server-a']


def test_a_server_is_told_of_a_withdrawal_though_it_fails_once():
    group = Group('a', timeout=30)
    change = group.waiting()
    group.fleet.breaks_as_it_tells = True
    group.clock.now += 30
    assert not change.step()
    group.fails(change, 'not signalled')
    assert not group.fleet.told['server-a']


def test_a_server_that_goes_in_an_outage_is_left_out_of_a_delete():
    group = Group('a', budget=300)
    group.update('CREATE')
    group.fleet.answer = lambda key: None
    change = group.undoing()
    assert not change.step()
    group.send(errors.Unavailable('503'))
    group.fleet.lost.add('server-a')
    assert group.drive(change, 40).skipped


def test_what_waits_in_a_later_batch_is_left_when_another_fails():
    group = Group('a', 'b')
    group.fleet.answer = lambda key: fake_fleet.BAD if key == 'a' else None
    with pytest.raises(deliveries.ActionFailed):
        group.update('CREATE')
    group.pace = dataclasses.replace(group.pace, batch=1)
    tasks = sorted(group.updates(), key=lambda task: task.member.key)
    change = group.rollout('UPDATE', tasks)
    group.fails(change, 'a: ')
    change.withdraw('UPDATE failed')
    assert group.states()['b'] == ('CREATE', 'IN_PROGRESS')
    assert not group.fleet.stopped


def test_a_few_servers_of_a_delete_are_asked_for_at_a_time():
    group = Group(*(f'k{number}' for number in range(50)))
    group.update('CREATE')
    group.fleet.answer = lambda key: None
    asked = []
    group.fleet.gone = lambda ids: asked.append(set(ids)) or set()
    group.idle(group.undoing(), 100)
    assert [len(each) for each in asked] == [20, 20, 10]
    assert len(set.union(*asked)) == 50
