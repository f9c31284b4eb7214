# SPDX-License-Identifier: Apache-2.0
"""What `run_rows.RunRows` promises, for one database after another."""

import dataclasses
import functools

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import stored
from heat_plugins.deployments import deliveries
from heat_plugins.runs import notifying
from heat_plugins.runs import ordering
from heat_plugins.runs import overview
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs import telling

PROJECT, ENGINE = 'project', 'engine-1'
NOW = 1_800_000_000

# After any test.
LATER = 2**33

State = run_records.State


def order(run_id='run-1', targets=2, **values):
    """Return an order; its targets are on servers of their own."""
    members = [
        run_records.RunTarget(
            stack_id=f'stack-{run_id}',
            stack_name='shop',
            resource=f'group.{number}.db',
            deployment_id=f'deployment-{number}',
            server_id=f'server-{number}',
            server_name=f'group.{number}.server',
        )
        for number in range(targets)
    ]
    usual = {'action': 'BACKUP', 'limits': run_records.RunLimits()}
    usual |= {'members': members, 'inputs': {'password': 'hunter2'}}
    made = {'created_at': NOW, 'created_by': 'ann', **usual, **values}
    return run_records.RunOrder(id=run_id, **made)


def run(run_id='run-1', targets=2, **values):
    return run_records.RunRecord.new(order(run_id, targets, **values))


def delivery(run_id, number):
    return deliveries.Delivery(
        deployment_id=f'{run_id}-row-{number}',
        server_id=f'server-{number}',
        config_id=f'{run_id}-config-{number}',
        action='BACKUP',
        draft=heat_values.DerivedConfig(
            name='backup', group='script', config='true', inputs=[], outputs=[]
        ),
        input_values=None,
        signalling=deliveries.Signalling(
            transport='CFN_SIGNAL',
            url=f'https://cfn.invalid/?Signature={run_id}/{number}',
        ),
        reading_project=None,
        before=None,
    )


def begun(kept, *numbers):
    """Return a run that has started on targets, and what they are given."""
    made = {number: delivery(kept.run.id, number) for number in numbers}
    changes = {
        number: {
            'number': kept.run.attempts[number].number + 1,
            'state': State.WAITING,
            'started_at': NOW,
            'row_id': made[number].deployment_id,
            'config_id': made[number].config_id,
        }
        for number in numbers
    }
    return kept.run.attempted(changes), made


def expired(run, number):
    ends = {'state': State.TIMED_OUT, 'ended_at': NOW + 6}
    return run.attempted({number: ends})


def ended(run):
    ends = {'state': State.COMPLETE, 'ended_at': NOW + 9}
    run = run.attempted(dict.fromkeys(range(len(run.attempts)), ends))
    return run.changed(phase=run_records.Phase.COMPLETE, ended_at=NOW + 9)


class RunStoreContract:
    """Tests of a store.

    Others say `self.store`; `deployments()`: the statuses of the deployments
    in Heat that steps have written, by ID; `keep()`: how many targets a
    project may have; `keep_record()`: the record of a schedule, whose resource
    it returns; and `record()` returns that record.
    """

    def begin(self, run_id='run-1', *numbers, targets=2, **values):
        """Store a run that has started on targets, by default on all."""
        kept = self.create(run_id, targets, **values)
        after, made = begun(kept, *(numbers or range(targets)))
        return self.store.step(kept, after, 'begin', given=made)

    def create(
        self,
        run_id='run-1',
        targets=2,
        *,
        made=None,
        project_id=PROJECT,
        engine_id=ENGINE,
        tick=None,
        **values,
    ):
        made = made or run(run_id, targets, **values)
        due = {'tick': tick} if tick else {}
        return self.store.create(project_id, made, engine_id, **due)

    def key(self, number=0, attempt=1, run_id='run-1'):
        return run_store.TargetKey(
            run_id=run_id, number=number, attempt=attempt
        )

    def done(self, state=State.COMPLETE, **values):
        made = run_records.Attempt(
            state=state, ended_at=NOW + 5, outputs={'deploy_stdout': 'hello'}
        )
        return dataclasses.replace(made, **values)

    # Orders

    def test_an_order_is_read_as_it_was_given_and_is_there_once(self):
        config = {'config': 'echo 🗄', 'group': 'script'}
        given = run(action='🗄\0\ud800', created_by='Änn', config=config)
        kept = self.create(made=given)
        found = self.store.load('run-1', PROJECT)
        assert given == kept.run == found.run
        assert (found.project_id, found.engine_id) == (PROJECT, ENGINE)
        assert (found.version, found.unreadable) == (0, '')
        # Another engine has selected its targets a second later.
        self.create('run-2')
        again = run('run-2', targets=1, created_at=NOW + 1)
        found = self.create(made=again, engine_id='engine-2')
        assert (run('run-2'), ENGINE) == (found.run, found.engine_id)
        assert self.store.heads(PROJECT, ordering.Query())[0].targets == 2
        self.assert_exists(made=run('run-2', inputs={'password': 'other'}))
        self.assert_exists(made=given, project_id='another project')

    def assert_exists(self, *args, **values):
        self.assertRaises(errors.Exists, self.create, *args, **values)

    def test_a_project_sees_its_own_runs_alone(self):
        self.create(made=ended(run()))
        load, delete, other = self.store.load, self.store.delete, 'another'
        self.assertRaises(errors.NotFound, load, 'run-1', other)
        self.assertRaises(errors.NotFound, delete, other, 'run-1')
        assert self.store.heads(other, ordering.Query()) == []

    # Lists

    def ids(self, project_id=PROJECT, **wanted):
        found = self.store.heads(project_id, ordering.Query(**wanted))
        return [head.id for head in found]

    def test_a_list_has_the_newest_first_in_pages(self):
        for number in range(5):
            self.create(f'run-{number}', created_at=NOW + number)
        # Of the same second.
        self.create('run-1b', created_at=NOW + 1)
        assert self.ids(limit=3) == ['run-4', 'run-3', 'run-2']
        assert self.ids(limit=2, after='run-2') == ['run-1b', 'run-1']
        assert self.ids(limit=2, after='run-1') == ['run-0']
        self.assertRaises(errors.NotFound, self.ids, after='gone')

    def test_a_list_is_filtered(self):
        self.create('run-1', targets=1)
        other = {'action': 'backup', 'created_by': 'Bob'}
        self.create(made=ended(run('run-2', created_at=NOW + 5, **other)))
        early = {'until': NOW + 4.5}
        for only, *every in (
            ('run-1', {'run': 'run-1'}, {'stack': 'stack-run-1'}, early),
            ('run-1', {'action': 'BACKUP'}, {'state': ['running', 'paused']}),
            ('run-1', {**early, 'stack': 'shop'}),
            ('run-2', {'server': 'server-1'}, {'server': 'group.1.server'}),
            ('run-2', {'action': 'backup'}, {'state': ['complete']}),
            ('run-2', {'who': 'Bob'}),
            ('run-2', {'since': NOW + 1}),
            (None, {'who': 'bob'}, {'stack': 'Shop'}),
        ):
            for wanted in every:
                found = self.ids(**wanted)
                assert ([only] if only else []) == found, wanted
        assert self.ids(stack='shop') == ['run-2', 'run-1']

    def test_a_run_is_read_again_only_if_it_is_newer(self):
        kept = self.begin('run-1', 0, 1, targets=3)
        wanted = {'run': 'run-1', 'newer_than': kept.version}
        assert self.ids(**wanted) == []
        self.store.step(kept, kept.run.changed(paused_by='ann'), 'pause')
        assert self.ids(**wanted) == ['run-1']
        self.store.answer({self.key(1): self.done()})
        (head,) = self.store.heads(PROJECT, ordering.Query())
        assert dict(head.counts) == {'pending': 1, 'waiting': 1, 'complete': 1}
        assert overview.of_head(head)['percent'] == 33

    # Steps

    def test_of_two_steps_one_is_stale_and_a_repeated_one_succeeds(self):
        kept = self.create()
        after, made = begun(kept, 0, 1)
        first = self.store.step(kept, after, 'same', given=made)
        assert first == self.store.step(kept, after, 'same', given=made)
        assert (first, 1) == (self.store.load('run-1'), first.version)
        rows = {'run-1-row-0': 'IN_PROGRESS', 'run-1-row-1': 'IN_PROGRESS'}
        assert self.deployments() == rows
        self.store.step(first, first.run.changed(paused_by='ann'), 'ann')
        late, taken = first.run.changed(paused_by='bob'), ['run-1-row-0']
        step = functools.partial(self.store.step, taken=taken)
        self.assertRaises(run_store.Stale, step, first, late, 'bob')
        assert self.store.load('run-1').run.control.paused_by == 'ann'
        assert self.deployments() == rows

    def test_a_step_loses_against_the_answer_of_a_target_it_changes(self):
        kept = self.begin()
        self.store.answer({self.key(0): self.done()})
        late = kept, expired(kept.run, 0), 'expire'
        self.assertRaises(run_store.Stale, self.store.step, *late)
        # What it does not change it leaves alone.
        self.store.step(kept, expired(kept.run, 1), 'other')
        first, second = self.store.load('run-1').run.attempts
        assert (first.state, second.state) == (State.COMPLETE, State.TIMED_OUT)

    # Live keys

    def test_an_action_runs_once_at_a_time_on_a_deployment(self):
        first = self.begin('run-1', 1)
        second = self.create('run-2')
        after, made = begun(second, 0, 1)
        begin = functools.partial(self.store.step, second, after, given=made)
        error = self.assertRaises(run_store.KeysTaken, begin, 'second')
        assert dict(error.runs) == {1: 'run-1'}
        # Nothing of the step is stored.
        assert second == self.store.load('run-2')
        assert [*self.deployments()] == ['run-1-row-1']
        self.store.step(first, ended(first.run), 'end')
        begin('third')

    def test_a_key_is_held_until_the_end_or_the_answer(self):
        script = {'group': 'script', 'config': 'uptime'}
        kept = self.begin('run-1')
        asked = kept.run.attempted({0: {'cancelled_by': 'ann'}})
        self.store.step(kept, asked, 'cancel')
        self.assertRaises(run_store.KeysTaken, self.begin, 'run-2', 0)
        self.store.answer({self.key(0): self.done()})
        assert self.store.load('run-1').run.attempts[0].cancelled_by == 'ann'
        self.begin('run-3', 0)
        # Others are not in the way, nor are scripts of users.
        self.begin('run-4', action='CHECK')
        self.begin('run-5', config=script)
        self.begin('run-6', config=script)
        kept = self.create('run-7', project_id='another project')
        after, made = begun(kept, 0)
        self.store.step(kept, after, 'begin', given=made)

    # Answers

    def test_an_answer_settles_the_target_and_its_row(self):
        kept = self.begin()
        counted = self.store.answer(
            {
                self.key(0): self.done(),
                self.key(1): self.done(State.FAILED, reason='exit 1'),
                self.key(7): self.done(),
                self.key(0, attempt=2): self.done(),
                self.key(run_id='gone'): self.done(),
            }
        )
        assert {self.key(0), self.key(1)} == set(counted)
        found = self.store.load('run-1')
        assert kept.version == found.version
        first, second = found.run.attempts
        assert (first.state, first.ended_at) == (State.COMPLETE, NOW + 5)
        assert first.outputs == {'deploy_stdout': 'hello'}
        assert (second.reason, second.started_at) == ('exit 1', NOW)
        rows = {'run-1-row-0': 'COMPLETE', 'run-1-row-1': 'FAILED'}
        assert self.deployments() == rows
        # The first of two counts, also that of a commit without an answer.
        other = {self.key(0): self.done(State.FAILED)}
        assert set() == set(self.store.answer(other))
        same = {self.key(0): self.done()}
        assert {self.key(0)} == set(self.store.answer(same))

    def test_a_server_says_that_it_has_started(self):
        kept = self.begin()
        report = run_records.Attempt(state=State.RUNNING, reported_at=NOW + 1)
        self.store.answer({self.key(0): report})
        found = self.store.load('run-1')
        attempt = found.run.attempts[0]
        assert (attempt.state, attempt.reported_at) == (State.RUNNING, NOW + 1)
        assert attempt.row_id == 'run-1-row-0'
        assert self.deployments()['run-1-row-0'] == 'IN_PROGRESS'
        # A second report is no change.
        self.store.answer({self.key(0): report})
        assert found == self.store.load('run-1')
        assert kept.revisions != found.revisions

    def test_an_ended_attempt_takes_a_late_result_once(self):
        kept = self.begin()
        self.store.step(kept, expired(kept.run, 0), 'expire')

        def answer(at):
            late = run_records.Late(
                at=at, status='COMPLETE', reason='', outputs={}
            )
            return self.store.answer({self.key(0): self.done(late=late)})

        assert {self.key(0)} == set(answer(NOW + 7))
        assert set() == set(answer(NOW + 8))
        attempt = self.store.load('run-1').run.attempts[0]
        assert (attempt.state, attempt.late.at) == (State.TIMED_OUT, NOW + 7)

    def test_outputs_are_kept_up_to_a_limit(self):
        self.begin()
        text = 'a' * 200_000 + 'the end'
        outputs = {'small': 1, 'deploy_stdout': text}
        self.store.answer({self.key(0): self.done(outputs=outputs)})
        attempt = self.store.load('run-1').run.attempts[0]
        assert attempt.outputs['small'] == 1
        kept = attempt.outputs['deploy_stdout']
        assert kept.endswith('the end'), kept[-99:]
        assert len(kept) < 64 * 1024
        assert {'deploy_stdout': len(text)} == dict(attempt.cut)

    def test_what_a_server_may_be_busy_with_is_found(self):
        kept = self.begin('run-1')
        self.begin('run-2', 1, action='CHECK')
        self.create('run-3', project_id='another project')
        found = self.store.on_server(PROJECT, 'server-1')
        assert sorted(e.id for e in found) == ['run-1', 'run-2']
        for each in found:
            assert [e.server_id for e in each.order.members] == ['server-1']
        self.store.step(kept, ended(kept.run), 'end')
        (other,) = self.store.on_server(PROJECT, 'server-1')
        assert other.attempts[0].state == State.WAITING

    # Leaders

    def test_an_engine_leads_what_is_in_progress_until_it_is_dead(self):
        kept = self.begin('run-1')
        self.create(made=ended(run('run-2')))
        self.create('run-4', engine_id='engine-3')
        self.create('run-3')
        assert dict(self.store.led_by(ENGINE)) == {'run-1': 1, 'run-3': 0}
        assert {ENGINE, 'engine-3'} == set(self.store.leaders())
        first = self.store.take_over(ENGINE, 'engine-2', 1)
        second = self.store.take_over(ENGINE, 'engine-2', 9)
        assert sorted([*first, *second]) == ['run-1', 'run-3']
        assert self.store.take_over(ENGINE, 'engine-3', 9) == []
        # The dead one was only slow.
        late = kept, kept.run, 'late'
        self.assertRaises(run_store.Stale, self.store.step, *late)
        found = self.store.load('run-1')
        assert found.engine_id == 'engine-2'
        led = {'run-1': found.version, 'run-3': 1}
        assert dict(self.store.led_by('engine-2')) == led
        kept = self.store.step(found, ended(found.run), 'end')
        assert dict(self.store.led_by('engine-2')) == {'run-3': 1}
        # Whoever retries a run leads it.
        running = {'phase': run_records.Phase.RUNNING, 'ended_at': None}
        again = kept.run.changed(round=1, **running)
        after = self.store.step(kept, again, 'retry', engine_id='engine-4')
        assert after.engine_id == 'engine-4'
        assert dict(self.store.led_by('engine-4')) == {'run-1': after.version}
        others = {'engine-2', 'engine-3', 'engine-4'}
        assert others == set(self.store.leaders())
        assert after == self.store.load('run-1')

    # Notices

    def test_a_run_has_something_to_tell_until_that_is_recorded(self):
        wanted = notifying.NoticeOrder(
            to='https://a.org', url='https://a.org/x', secret='s' * 16, waits=9
        )
        kept = self.begin(webhook=stored.dump(wanted))
        self.begin('run-2', action='CHECK')

        def due(now, engine_id=ENGINE):
            return dict(self.store.with_notices(engine_id, now, 9))

        assert due(NOW + 8) == {}
        assert due(NOW + 9) == {'run-1': PROJECT}
        # The leader goes first.
        assert due(NOW + 10, 'engine-2') == {}
        later = NOW + 9 + run_store.NOTICE_LEAD
        assert due(later, 'engine-2') == {'run-1': PROJECT}
        failed = ended(kept.run).changed(phase=run_records.Phase.FAILED)
        kept = self.store.step(kept, failed, 'end')
        assert due(NOW + 9) == {'run-1': PROJECT}
        told, notice = telling.tried(telling.noted(kept.run, NOW), NOW)
        kept = self.store.step(kept, told, 'tried')
        assert due(NOW + 9) == {}
        assert due(NOW + 60) == {'run-1': PROJECT}
        assert kept == self.store.load('run-1')
        book = kept.run.control.notices.told(notice, '', NOW)
        told = kept.run.changed(notices=book)
        after = self.store.step(kept, told, 'told')
        assert due(LATER) == {}
        assert after == self.store.load('run-1')
        # A deleted run has nothing to tell.
        failed = failed.changed(ended_at=NOW)
        third = order('run-3', webhook=stored.dump(wanted))
        self.create(made=dataclasses.replace(failed, order=third))
        assert due(LATER) == {'run-3': PROJECT}
        self.store.delete(PROJECT, 'run-3')
        assert due(LATER) == {}

    # Schedules, URLs, and what goes

    def test_a_time_of_a_schedule_has_one_run(self):
        self.create('run-1', tick=self.tick())
        # The second time a user asks for that time again.
        for run_id in 'run-2', 'run-1':
            self.assert_exists(run_id, tick=self.tick())
            assert self.record() == 'due'
        self.create('run-3', tick=self.tick(due_at=NOW + 1))
        assert self.ids(schedule='nightly') == ['run-3', 'run-1']

    def test_what_is_refused_changes_no_record(self):
        self.create(project_id='another project')
        self.keep(3)
        # A run of another one, and no room.
        for made in (run(), run('run-2', targets=4)):
            exc = self.assertRaises(
                errors.Refused, self.create, made=made, tick=self.tick()
            )
            assert not isinstance(exc, errors.Exists)
            assert self.record() == 'due'
        tick = self.tick()
        self.keep_record('paused')
        self.assertRaises(run_store.Stale, self.create, tick=tick)
        assert self.record() == 'paused'
        assert self.ids() == []

    def test_the_record_of_a_schedule_is_stored_with_its_run(self):
        tick = self.tick()
        made = self.create(tick=tick)
        assert self.record() == 'started'
        # Its answer was lost.
        assert made == self.create(tick=tick)
        other = {'engine_id': 'engine-2', 'tick': tick}
        self.assertRaises(run_store.Stale, self.create, **other)

    def tick(self, due_at=NOW):
        """Return a time of a schedule whose record says that it is due."""
        return run_store.Tick(
            schedule='nightly',
            due_at=due_at,
            resource=self.keep_record('due'),
            before='due',
            after='started',
        )

    def end(self, run_id, ended_at, **values):
        done = ended(run(run_id, **values)).changed(ended_at=ended_at)
        self.create(made=done)

    def test_a_run_is_refused_if_those_in_progress_leave_no_room(self):
        self.keep(5)
        self.begin('run-1')
        self.end('run-2', LATER)
        self.begin('run-3', action='CHECK')
        error = self.assertRaises(errors.Refused, self.create, 'run-4')
        assert not isinstance(error, errors.Exists)
        self.create('run-5', project_id='another project')
        # One that is repeated needs no room.
        assert self.create('run-1').run.id == 'run-1'

    def test_how_runs_of_any_project_stand(self):
        self.create('run-1')
        self.create(made=ended(run('run-2')), project_id='another project')
        self.create('run-3', project_id='another project')
        wanted = dict.fromkeys(['run-1', 'run-3', 'gone'], PROJECT)
        heads = self.store.heads_of({**wanted, 'run-2': 'another project'})
        found = {run_id: head.state.name for run_id, head in heads.items()}
        assert found == {'run-1': 'RUNNING', 'run-2': 'COMPLETE'}
        assert self.store.heads_of({}) == {}

    def test_the_last_runs_of_deployments_are_found(self):
        author = 'Änn, by workflow execution 1'
        for number in range(4):
            shown = {'action': '🗄', 'created_by': author}
            self.create(f'run-{number}', created_at=NOW + number, **shown)
        self.create('run-9', project_id='other')
        chosen = ['deployment-1', 'deployment-9']
        found = self.store.latest(PROJECT, chosen, 3)
        assert [*found] == ['deployment-1']
        latest = found['deployment-1']
        assert [each.id for each in latest] == ['run-3', 'run-2', 'run-1']
        (member,), (attempt,) = latest[0].order.members, latest[0].attempts
        assert member.server_id == 'server-1'
        assert attempt.state is None
        assert latest[0].order.inputs == {}
        assert latest[0].order.created_by == author
        assert latest[0].order.action == '🗄'

    def test_a_step_deletes_what_servers_no_longer_run(self):
        kept = self.begin('run-1', 1)
        assert {'run-1': {'deployment-1'}} == self.store.held_in('stack-run-1')
        assert self.store.held_in('stack-run-2') == {}
        nothing = {'state': State.CANCELLED, 'row_id': None, 'config_id': None}
        after = kept.run.attempted({1: nothing})
        self.store.step(kept, after, 'end', taken=['run-1-row-1'])
        assert self.store.held_in('stack-run-1') == {}
        assert self.deployments() == {}

    def test_a_target_is_found_by_the_signature_of_its_url(self):
        kept = self.begin('run-1', 1)
        self.begin('run-2', action='CHECK')
        found = self.store.awaiting('run-1/1')
        assert self.key(1) == found.key
        assert (kept.run.attempts[1],) == found.run.attempts
        assert [kept.run.order.members[1]] == [*found.run.order.members]
        assert kept.run.order.inputs == found.run.order.inputs
        for unknown in ('run-1/0', 'RUN-1/1', ''):
            assert self.store.awaiting(unknown) is None
        self.store.answer({self.key(1): self.done()})
        found = self.store.awaiting('run-1/1')
        assert found.run.attempts[0].state == State.COMPLETE
        kept = self.store.load('run-1')
        self.store.step(kept, ended(kept.run), 'end')
        self.store.delete(PROJECT, 'run-1')
        assert self.store.awaiting('run-1/1') is None

    def test_a_run_that_has_ended_is_deleted(self):
        kept = self.begin()
        self.assertRaises(errors.Refused, self.store.delete, PROJECT, 'run-1')
        self.store.step(kept, ended(kept.run), 'end')
        self.store.delete(PROJECT, 'run-1')
        self.assertRaises(errors.NotFound, self.store.load, 'run-1')
        self.assertRaises(errors.NotFound, self.store.delete, PROJECT, 'run-1')
        late = kept, kept.run, 'late'
        self.assertRaises(errors.NotFound, self.store.step, *late)
        assert self.ids() == []
        # An order that comes late starts nothing again.
        self.assertRaises(errors.Exists, self.create)
        (surplus,) = self.store.surplus()
        assert surplus.run_id == 'run-1'
        assert [*surplus.stack_ids] == ['stack-run-1']
        self.store.remove(surplus)
        assert self.store.surplus() == []
        self.store.remove(surplus)

    def test_many_targets_are_one_transaction(self):
        kept = self.create(targets=1200)
        assert kept == self.store.load('run-1')
        after = kept.run.attempted({n: {'round': 1} for n in range(1200)})
        kept = self.store.step(kept, after, 'all')
        assert kept == self.store.load('run-1')
        kept = self.store.step(kept, ended(kept.run), 'end')
        self.store.delete(PROJECT, 'run-1')
        self.purge()

    def purge(self):
        surplus = self.store.surplus()
        for each in surplus:
            self.store.remove(each)
        return len(surplus)

    def test_old_and_surplus_runs_are_deleted_but_not_what_is_retried(self):
        self.end('old', 1)
        for number in range(4):
            self.end(f'run-{number}', LATER - number)
        self.create('run-5', created_at=1)
        assert self.purge() == 1
        assert self.purge() == 0
        self.keep(6)
        first, second = self.store.surplus()
        kept = self.store.load(first.run_id)
        again = {'phase': run_records.Phase.RUNNING, 'ended_at': None}
        self.store.step(kept, kept.run.changed(**again), 'retry')
        for each in (first, second):
            self.store.remove(each)
        left = {'run-0', 'run-1', 'run-5', first.run_id}
        assert set(self.ids()) == left
