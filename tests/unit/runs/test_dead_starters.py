# SPDX-License-Identifier: Apache-2.0
"""Nothing is left of a run that is cancelled after its starter has died."""

import contextlib
import dataclasses
import itertools

from heat_plugins import errors
from heat_plugins.runs import attempts
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs.records import record_names
from tests.unit.runs import base


class Killed(BaseException):
    """The process was killed."""


class DeadStarterTest(base.RunsTestCase):
    def setUp(self):
        super().setUp()
        self.configs = dict(self.heat.configs)
        # How many requests of the starter are left, and whether the last one
        # takes effect; None while other processes ask.
        self.left, self.is_served = None, False
        self.patch(self.cluster, 'serve', self.dying(self.cluster.serve))
        for name in ('create_config', 'create_deployment'):
            self.patch(self.heat, name, self.dying(getattr(self.heat, name)))

    def dying(self, serve):
        """Return what serves requests until the starter dies."""

        def served(*args, **more):
            if self.left is None:
                return serve(*args, **more)
            self.left -= 1
            if self.left > 0:
                return serve(*args, **more)
            if self.left == 0 and self.is_served:
                serve(*args, **more)
            raise Killed

        return served

    def start_and_die(self, number):
        """Let the starter die at a request; False if it made fewer."""
        self.left = number
        try:
            self.start()
        except Killed:
            return True
        finally:
            self.left = None
        return False

    def cancel_all(self):
        for key in self.records.keys():  # noqa: SIM118, no mapping
            with contextlib.suppress(errors.AlreadyEnded):
                self.service(who='bob').cancel('shop', key.run_id)

    def each_death(self, tidy):
        """Check that nothing is left, wherever the starter dies.

        :param tidy: what users do then.
        """
        deaths = 0
        for self.is_served in (False, True):
            for number in itertools.count(1):
                if not self.start_and_die(number):
                    break
                deaths += 1
                self.cancel_all()
                tidy()
                self.assertEqual([], self.heat.given())
                self.assertEqual(self.configs, self.heat.configs)
                self.assertEqual([], self.objects(record_names.OPEN))
            self.cancel_all()
            tidy()
        self.assertGreater(deaths, 20)

    def delete_all(self):
        for key in self.records.keys():  # noqa: SIM118, no mapping
            self.runs.delete('shop', key.run_id)

    def test_who_lists_runs_later_deletes_the_rest(self):
        def tidy():
            self.now += 181
            self.runs.history('shop', run_service.Filter())
            # One that was announced only has no record to list.
            self.cancel_next()

        self.each_death(tidy)

    def test_who_starts_the_next_one_later_deletes_the_rest(self):
        def tidy():
            self.now += 181
            self.cancel_next()

        self.each_death(tidy)

    def cancel_next(self):
        run = self.start()
        self.runs.cancel('shop', run.id)

    def test_who_deletes_the_run_at_once_deletes_the_rest(self):
        def tidy():
            self.delete_all()
            self.now += 181
            self.cancel_next()
            self.delete_all()

        self.each_death(tidy)

    def test_who_deletes_the_stack_at_once_deletes_the_rest(self):
        def tidy():
            attempts.withdraw_all(self.heat, self.records)
            # With the container of the stack.
            for name in self.objects():
                self.records.discard(name)

        self.each_death(tidy)

    def test_another_one_starts_at_once_after_the_cancel(self):
        self.is_served = True
        for number in itertools.count(1):
            if not self.start_and_die(number):
                break
            if not self.records.keys():
                # It has only announced that.
                self.now += 181
            self.cancel_all()
            self.assertEqual(runs.State.WAITING, self.start().state)
            self.cancel_all()
            self.delete_all()

    def test_what_waits_for_the_starter_asks_for_little(self):
        death = next(n for n in itertools.count(1) if self.has_config(n))
        self.assertGreater(death, 1)
        self.cancel_all()
        waiter = self.runs.waiter(self.stack.id, everything=True)
        self.cluster.seen.clear()
        for _ in range(10):
            asked = len(self.heat.asked)
            waiter.step()
            self.now += 5
        self.assertEqual(asked, len(self.heat.asked))

    def has_config(self, number):
        self.now += 181
        self.start_and_die(number)
        return len(self.heat.configs) > len(self.configs)

    def test_what_its_starter_closes_meanwhile_stays_closed(self):
        run = dataclasses.replace(
            self.start(),
            state=runs.State.STARTING,
            row_id=None,
            config_id=None,
        )
        self.records.write(run)
        withdraw = attempts.Attempts.withdraw

        def withdrawn(all_, run):
            withdraw(all_, run)
            # The starter sees that it was cancelled.
            self.records.close(run.key)

        self.patch(attempts.Attempts, 'withdraw', withdrawn)
        self.runs.cancel('shop', run.id)
        self.assertEqual([], self.objects(record_names.OPEN))
