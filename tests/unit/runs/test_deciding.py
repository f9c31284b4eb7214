# SPDX-License-Identifier: Apache-2.0
import testtools

from heat_plugins import errors
from heat_plugins.runs import deciding
from heat_plugins.runs import overview
from heat_plugins.runs import run_records

NOW = 1_800_000_000
_Phase = run_records.Phase
_State = run_records.State


def operation(members=6, **limits):
    return run_records.RunRecord.new(
        run_records.RunOrder(
            id='20270115T080000Z-00c0ffee',
            action='BACKUP',
            limits=run_records.RunLimits.asked(limits),
            members=tuple(
                run_records.RunTarget(
                    stack_id='s',
                    stack_name='shop',
                    resource=f'db{n}',
                    deployment_id=f'd{n}',
                    server_id=f'v{n}',
                )
                for n in range(members)
            ),
            created_at=NOW,
            created_by='ann',
        )
    )


def ended(found, *members, state=_State.COMPLETE, at=NOW):
    return found.attempted(
        {n: {'state': state, 'ended_at': at} for n in members}
    )


GONE = {'state': _State.CANCELLED, 'gone': True, 'ended_at': NOW}


class DecidingTestCase(testtools.TestCase):
    def advance(self, found, start=(), at=0):
        step = deciding.advance(found, NOW + at)
        assert tuple(start) == step.start
        return step.run

    def assert_ends(self, run, phase, reason):
        """Assert that a run ends, and how; return it."""
        run = self.advance(run, at=90)
        assert (run.control.phase, run.control.reason) == (phase, reason)
        return run

    def follow(self, found, what):
        wanted = run_records.Request(do=what, who='bob')
        return deciding.follow(found, wanted, NOW)

    def test_a_run_starts_as_another_one_ends(self):
        run = self.advance(operation(max_concurrent=2), (0, 1))
        run = self.advance(ended(run, 1), (2,))
        assert run.live == [0, 2]
        # A percentage is one run at least.
        self.advance(operation(max_concurrent='10%'), (0,))
        self.advance(operation(20, max_concurrent='10%'), (0, 1))

    def test_nothing_starts_after_too_many_failures(self):
        run = self.advance(operation(max_concurrent=2, max_errors=1), (0, 1))
        run = self.advance(ended(run, 0, state=_State.FAILED), (2,))
        run = self.advance(ended(run, 1, state=_State.TIMED_OUT))
        assert run.control.phase is _Phase.STOPPING
        self.assert_ends(
            ended(run, 2),
            _Phase.TIMED_OUT,
            'More failures than max-errors allows (1); 2 of 6 failed; 3 not '
            'started',
        )

    def test_canaries_come_first_and_all_must_succeed(self):
        found = operation(max_concurrent=4, canary=2, max_errors=5)
        found = self.advance(found, (0, 1))
        found = self.advance(ended(found, 0))
        self.advance(ended(found, 1), (2, 3, 4, 5))
        found = self.advance(ended(found, 1, state=_State.FAILED))
        assert _Phase.FAILED is found.control.phase
        assert 'A canary has failed' in found.control.reason

    def test_somebody_approves_after_the_canaries(self):
        found = operation(canary=1, approve_after_canary=True)
        found = ended(self.advance(found, (0,)), 0)
        found = self.advance(found)
        assert _Phase.APPROVAL is found.control.phase
        found = self.advance(self.follow(found, 'resume'), (1, 2, 3, 4, 5))
        assert _Phase.RUNNING is found.control.phase

    def test_a_pause_is_between_two_batches(self):
        found = self.advance(operation(max_concurrent=2, pause=30), (0, 1))
        found = self.advance(ended(found, 0, at=NOW + 5), at=5)
        found = ended(found, 1, at=NOW + 10)
        found = self.advance(found, at=39)
        self.advance(found, (2, 3), at=40)

    def test_what_runs_goes_on_while_it_is_paused(self):
        found = self.advance(operation(max_concurrent=2), (0, 1))
        found = ended(self.follow(found, 'pause'), 0)
        found = self.advance(found)
        assert _Phase.PAUSED is found.control.phase
        assert (
            'Paused by bob. To continue: openstack software deployment '
            f'run resume {found.id}' == found.control.reason
        )
        self.advance(self.follow(found, 'resume'), (2,))

    def test_a_cancelled_run_is_withdrawn(self):
        run = self.advance(operation(max_concurrent=2), (0, 1))
        step = deciding.advance(self.follow(run, 'cancel'), NOW)
        assert step.withdraw == (0, 1)
        self.assert_ends(
            ended(step.run, 0, 1, state=_State.CANCELLED),
            _Phase.CANCELLED,
            'Cancelled by bob; 4 not started',
        )

    def test_one_target_is_cancelled_and_the_others_continue(self):
        run = self.advance(operation(3, max_concurrent=2), (0, 1))
        wanted = run_records.Request(
            do='cancel-run', who='bob', only=run.run_id(1)
        )
        asked = deciding.follow(run, wanted, NOW)
        # A result that has come meanwhile counts.
        complete = self.advance(ended(asked, 0, 1), (2,))
        self.assert_ends(
            ended(complete, 2), _Phase.COMPLETE, 'All 3 succeeded'
        )
        step = deciding.advance(asked, NOW)
        assert step.withdraw == (1,)
        run = ended(step.run, 1, state=_State.CANCELLED)
        run = self.advance(run, (2,))
        # It has ended, and is asked for once more.
        assert deciding.follow(run, wanted, NOW) == run
        run = self.assert_ends(
            ended(run, 0, 2), _Phase.CANCELLED, '1 cancelled'
        )
        assert deciding.retriable(run) == [1]

    def test_the_deadline_is_for_the_whole(self):
        found = self.advance(operation(max_concurrent=1, deadline=60), (0,))
        step = deciding.advance(found, NOW + 60)
        assert step.withdraw == (0,)
        found = ended(step.run, 0, state=_State.CANCELLED)
        found = self.advance(found, at=61)
        assert _Phase.TIMED_OUT is found.control.phase

    CUT_OFF = 'No run starts after the cut-off of 60 s; {} not started'

    def test_nothing_starts_after_the_cut_off_and_what_runs_continues(self):
        run = self.advance(operation(3, max_concurrent=1, cut_off=60), (0,))
        run = self.advance(ended(run, 0), (1,), at=59)
        run = self.cut_off(run)
        run = self.assert_ends(
            ended(run, 1), _Phase.TIMED_OUT, self.CUT_OFF.format(1)
        )
        # With a window of its own.
        assert self.follow(run, 'retry').pending == [2]

    def cut_off(self, run):
        """Return a run that stops at its cut-off."""
        step = deciding.advance(run, NOW + 60)
        assert (step.start, step.withdraw) == ((), ())
        assert step.run.control.phase is _Phase.STOPPING
        return step.run

    def test_a_cut_off_matters_only_to_what_has_not_started(self):
        run = self.advance(operation(1, cut_off=60), (0,))
        run = ended(run, 0, state=_State.WAITING)
        run = self.advance(run, at=70)
        assert run.control.phase is _Phase.RUNNING
        self.assert_ends(ended(run, 0), _Phase.COMPLETE, 'It succeeded')

    def test_what_is_recorded_as_starting_may_be_cut_off(self):
        run = self.advance(operation(3, cut_off=60), (0, 1, 2))
        run = self.cut_off(ended(run, 0, state=_State.WAITING))
        # Their servers had them all.
        complete = ended(run, 0, 1, 2)
        self.assert_ends(complete, _Phase.COMPLETE, 'All 3 succeeded')
        not_started = {n: {'state': None, 'number': 0} for n in (1, 2)}
        self.assert_ends(
            ended(run.attempted(not_started), 0),
            _Phase.TIMED_OUT,
            self.CUT_OFF.format(2),
        )

    def test_what_is_gone_after_the_cut_off_is_not_left(self):
        run = self.advance(operation(2, max_concurrent=1, cut_off=60), (0,))
        run = ended(self.cut_off(run), 0).attempted({1: GONE})
        self.assert_ends(run, _Phase.COMPLETE, 'It succeeded')

    def test_the_deadline_comes_after_other_stops(self):
        limits = {'max_concurrent': 2, 'deadline': 120}
        failed = {'state': _State.FAILED, 'ended_at': NOW}
        for more, changed, why in (
            ({'cut_off': 60}, {}, 'No run starts after the cut-off of 60 s; '),
            ({}, {1: failed}, 'More failures than max-errors allows (0); '),
            (
                {'canary': 2, 'max_errors': 5},
                {1: failed},
                'A canary has failed; ',
            ),
        ):
            found = self.advance(operation(3, **limits, **more), (0, 1))
            found = self.advance(found.attempted(changed), at=60)
            assert why[:-2] == found.control.reason
            assert deciding.advance(found, NOW + 119).withdraw == ()
            step = deciding.advance(found, NOW + 120)
            assert tuple(found.live) == step.withdraw
            found = ended(step.run, 0, state=_State.CANCELLED)
            if not changed:
                found = ended(found, 1, state=_State.CANCELLED)
            found = self.advance(found, at=121)
            assert _Phase.TIMED_OUT is found.control.phase
            assert (
                f'{why}it has not ended within 120 s' in found.control.reason
            )
            found = self.follow(found, 'retry')
            assert found.control.stopped_before is None

    def test_what_has_ended_before_the_deadline_is_not_late(self):
        found = self.advance(operation(2, max_concurrent=1, deadline=60), (0,))
        found = self.advance(ended(found, 0, state=_State.FAILED), at=30)
        assert _Phase.FAILED is found.control.phase
        found = operation(2, max_concurrent=1, max_errors=0, deadline=60)
        found = self.advance(found, (0,)).changed(
            stopped=run_records.Stop.ERRORS
        )
        # Nothing was running any more when it passed.
        found = self.advance(ended(found, 0, state=_State.FAILED), at=61)
        assert _Phase.FAILED is found.control.phase

    def test_each_run_has_a_time_limit(self):
        found = self.advance(
            operation(1, timeout=60, delivery_timeout=20), (0,)
        )
        assert deciding.advance(found, NOW + 19).expire == ()
        assert deciding.advance(found, NOW + 20).expire == (0,)
        found = found.attempted({0: {'reported_at': NOW + 3}})
        assert deciding.advance(found, NOW + 20).expire == ()
        assert deciding.advance(found, NOW + 60).expire == (0,)

    def test_a_retry_runs_what_did_not_succeed_alone(self):
        run = self.advance(operation(3, max_concurrent=2), (0, 1))
        run = self.advance(ended(ended(run, 0), 1, state=_State.FAILED))
        assert run.control.phase is _Phase.FAILED
        run = self.advance(self.follow(run, 'retry'), (1, 2))
        assert [each.number for each in run.attempts] == [1, 2, 1]
        run = self.assert_ends(
            ended(run, 1, 2), _Phase.COMPLETE, 'All 3 succeeded'
        )
        assert self.follow(run, 'retry') == run

    def test_what_is_gone_does_not_count(self):
        run = self.advance(operation(2), (0, 1))
        run = ended(run, 1).attempted({0: GONE})
        self.assert_ends(run, _Phase.COMPLETE, 'It succeeded')
        self.assert_ends(
            run.attempted({1: GONE}),
            _Phase.CANCELLED,
            'Its stacks or deployments were deleted',
        )

    def test_a_request_that_makes_no_sense_changes_nothing(self):
        found = self.advance(operation(2), (0, 1))
        for what in ('resume', 'retry', 'shout', None):
            assert found == self.follow(found, what)


class RetryTest(testtools.TestCase):
    """Every attempt is kept, and so is who has asked for what."""

    def setUp(self):
        super().setUp()
        self.found = operation(5).attempted(
            {
                n: {
                    'number': 1,
                    'state': state,
                    'reason': 'exit 1',
                    'ended_at': NOW,
                }
                for n, state in enumerate(
                    (_State.COMPLETE, _State.FAILED, _State.TIMED_OUT)
                )
            }
        )
        self.found = self.found.attempted({4: {'round': -1}}).changed(
            phase=_Phase.FAILED, ended_at=NOW
        )

    def retried(self, only=None):
        return deciding.retry(self.found, NOW, 'bob', only)

    def test_the_failure_is_kept(self):
        again = deciding.advance(self.retried(), NOW).run
        again = ended(again, 1)
        shown = overview.target(again, 1)['attempts']
        assert [(each['attempt'], each['state']) for each in shown] == [
            (1, 'failed'),
            (2, 'complete'),
        ]
        assert len(overview.target(again, 0)['attempts']) == 1

    def test_it_runs_what_is_named(self):
        for only, members in (
            (None, [1, 2, 3, 4]),
            ('failed', [1]),
            ('timed-out', [2]),
            ('not-started', [3, 4]),
            ('db2', [2]),
            ('v3', [3]),
            ('shop db3', [3]),
        ):
            assert members == self.retried(only).pending, only

    def test_what_it_leaves_alone_is_not_pending(self):
        assert overview.counts(self.retried('failed')) == {
            'complete': 1,
            'pending': 1,
            'timed-out': 1,
            'not-started': 2,
        }

    def test_one_of_nothing_is_refused(self):
        for only in ('complete', 'db0', 'no-such', ''):
            assert 'no target without success' in deciding.refusal(
                self.found, deciding.RETRY, only=only
            )

    def test_the_last_attempts_are_kept(self):
        for _ in range(8):
            self.found = deciding.advance(self.retried('db1'), NOW).run
            self.found = ended(self.found, 1, state=_State.FAILED)
        numbers = [each.number for each in self.found.attempts[1].every]
        assert numbers == [4, 5, 6, 7, 8, 9]

    def test_long_outputs_of_former_attempts_are_cut(self):
        outputs = {f'o{n}': 'x' * 4096 for n in range(6)}
        self.found = self.found.attempted(
            {1: {'outputs': outputs, 'cut': {'o0': 5000}}}
        )
        former = self.retried().attempts[1].every[0]
        assert [*former.outputs][:3] == ['o0', 'o1', 'o2']
        assert sum(map(len, former.outputs.values())) < 16 * 1024
        assert former.cut == {'o0': 5000, 'o3': 4096, 'o4': 4096, 'o5': 4096}

    def test_it_is_kept_who_cancelled_an_attempt(self):
        self.found = self.found.attempted(
            {1: {'state': _State.CANCELLED}}
        ).changed(stopped_by='ann')
        attempt = self.retried().attempts[1].every[0]
        assert attempt.cancelled_by == 'ann'


class LimitsTestCase(testtools.TestCase):
    def test_what_was_written_can_be_read(self):
        limits = run_records.RunLimits(
            max_concurrent=run_records.Share.parse('20%'), canary=2
        )
        assert limits == run_records.RunLimits.asked(limits.shown())

    def test_what_is_no_limit_is_refused(self):
        for values in (
            {'max_concurrent': 'many'},
            {'max_concurrent': '0%'},
            {'max_errors': '101%'},
            {'canary': -1},
            {'pause': 'long'},
            {'timeout': 0},
            {'cut_off': 0},
            {'approve_after_canary': 'yes'},
        ):
            self.assertRaises(
                errors.Refused, run_records.RunLimits.asked, values
            )
