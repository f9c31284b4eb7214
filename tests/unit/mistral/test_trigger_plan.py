# SPDX-License-Identifier: Apache-2.0
"""How a cron trigger is changed."""

import dataclasses
import datetime

import testtools

from heat_plugins.mistral.triggers import cron_triggers
from heat_plugins.mistral.triggers import trigger_plan

NOW = datetime.datetime(2030, 1, 1, 12, 0, 30)

WANTED = cron_triggers.TriggerOrder(
    name='nightly',
    workflow='tidy',
    input={'what': 'all'},
    params={},
    pattern='0 * * * *',
    first_time=None,
    count=5,
)

LIVE = cron_triggers.LiveTrigger(
    id='1',
    name='nightly',
    workflow_name='tidy',
    workflow_id='2',
    input={'what': 'all'},
    params={},
    pattern='0 * * * *',
    first_time=None,
    next_time='2030-01-01 13:00:00',
    remaining=3,
)


def at(hour, minute, second=0):
    return datetime.datetime(2030, 1, 1, hour, minute, second)


class PlanTest(testtools.TestCase):
    def plan(self, live=LIVE, now=NOW, before=WANTED, known=None, **changed):
        wanted = dataclasses.replace(WANTED, **changed)
        return trigger_plan.plan(wanted, before, live, now, **(known or {}))

    def test_what_is_as_it_should_be_is_kept(self):
        self.assertEqual(trigger_plan.Keep(), self.plan())

    def test_unless_it_must_be_recreated(self):
        order = self.plan(known={'recreate': True})
        self.assertEqual(3, order.count)

    def test_of_what_was_lost_the_runs_that_were_left_are_known(self):
        order = self.plan(live=None, known={'lost': LIVE})
        self.assertEqual(3, order.count)

    def test_after_the_last_run_there_is_nothing_to_make(self):
        over = {'live': None, 'known': {'ran_out': True}}
        self.assertEqual(trigger_plan.Done(), self.plan(**over))
        self.assertEqual(
            trigger_plan.Done(), self.plan(pattern='5 * * * *', **over)
        )
        self.assertEqual(9, self.plan(count=9, **over).count)

    def test_a_run_about_to_begin_is_waited_for(self):
        soon = at(12, 59, 58)
        self.assertEqual(
            trigger_plan.WaitForRun(2),
            self.plan(now=soon, pattern='5 * * * *'),
        )
        order = self.plan(now=soon, count=9)
        self.assertIsInstance(order, trigger_plan.WaitForRun)

    def test_but_not_where_there_always_is_one(self):
        live = dataclasses.replace(
            LIVE, pattern='* * * * * */2', next_time='2030-01-01 12:00:32'
        )
        order = self.plan(live=live, pattern='5 * * * *')
        self.assertIsInstance(order, cron_triggers.TriggerOrder)

    def test_a_first_time_that_the_pattern_meets_anyway_is_left_out(self):
        order = self.plan(
            now=at(12, 59, 30), first_time='2030-01-01 13:00', count=None
        )
        self.assertIsNone(order.first_time)

    def single(self, first_time, live=LIVE):
        single = dataclasses.replace(
            WANTED, pattern=None, first_time=first_time, count=None
        )
        changed = dataclasses.replace(single, workflow='other')
        return trigger_plan.plan(changed, single, live, NOW)

    def test_a_single_run_that_mistral_forgets_to_begin(self):
        error = self.assertRaises(
            cron_triggers.TriggerRefused, self.single, '2030-01-01 11:00'
        )
        self.assertIn('periodic process of Mistral runs', str(error))

    def test_one_that_is_due_is_waited_for_and_one_to_come_is_made(self):
        soon = self.single('2030-01-01 12:01')
        self.assertIsInstance(soon, trigger_plan.WaitForRun)
        gone = self.single('2030-01-01 12:00', live=None)
        self.assertEqual(trigger_plan.Done(), gone)
        later = self.single('2030-01-01 13:00', live=None)
        self.assertEqual('2030-01-01 13:00', later.first_time)


class InputTest(testtools.TestCase):
    DECLARED = ['what', {'where': 'here'}]

    def refused(self, given):
        error = self.assertRaises(
            cron_triggers.TriggerRefused,
            trigger_plan.check_input,
            'tidy',
            self.DECLARED,
            given,
        )
        return str(error)

    def test_what_is_missing_and_what_is_unknown_is_named(self):
        self.assertIn('needs the input "what"', self.refused({}))
        self.assertIn(
            'no input "who"; it has "what", "where"',
            self.refused({'what': 1, 'who': 2}),
        )

    def test_what_is_not_known_is_not_checked(self):
        trigger_plan.check_input('tidy', None, {'any': 1})


class AgainTest(testtools.TestCase):
    """What was there is made again, later on."""

    def single(self, first_time, now):
        live = dataclasses.replace(
            LIVE, pattern=None, first_time=first_time, remaining=1
        )
        return live.again(now)

    def test_a_first_time_ahead_stays(self):
        order = self.single('2030-01-01 13:00:00', NOW)
        self.assertEqual('2030-01-01 13:00', order.first_time)

    def test_a_run_that_was_missed_is_made_up_for(self):
        for now, pattern in (
            (at(12, 0, 30), '1 12 1 1 *'),
            (at(12, 0, 50), '2 12 1 1 *'),
        ):
            order = self.single('2030-01-01 12:00:00', now)
            self.assertEqual(pattern, order.pattern)


class MemoryTest(testtools.TestCase):
    def test_what_is_written_down_can_be_read(self):
        for size in (1, 60000):
            wanted = dataclasses.replace(WANTED, input={'what': 'x' * size})
            order = LIVE.again(NOW)
            note = cron_triggers.Note(order=order, wanted=wanted, old=LIVE)
            text = cron_triggers.dumps(note)
            self.assertLess(len(text), 40000)
            self.assertEqual(note, cron_triggers.read_note(text))
            record = cron_triggers.TriggerRecord(
                id='1', wanted=wanted, order=order, made=NOW.isoformat()
            )
            text = cron_triggers.dumps(record)
            self.assertEqual(record, cron_triggers.read_record(text))

    def test_an_order_recognises_what_came_of_it(self):
        order = LIVE.again(NOW)
        self.assertTrue(order.matches(LIVE))
        for other in (
            {'name': 'x'},
            {'pattern': '5 * * * *'},
            {'remaining': 4},
            {'remaining': None},
            {'input': {}},
            {'workflow_name': 'x', 'workflow_id': 'y'},
        ):
            self.assertFalse(
                order.matches(dataclasses.replace(LIVE, **other)), other
            )
