# SPDX-License-Identifier: Apache-2.0
"""Runs whose stack goes."""

import dataclasses

from heat_plugins import errors
from heat_plugins.runs import attempts
from heat_plugins.runs import runs
from tests.unit.runs import base


class OrphanTest(base.RunsTestCase):
    def test_those_that_have_not_ended_are_taken_from_their_servers(self):
        ended = self.start()
        self.answer()
        self.show(ended)
        run = self.start(action='FAIL/OVER')
        before = self.objects()
        self.assertEqual(
            [run.id], attempts.withdraw_all(self.heat, self.records)
        )
        self.assertEqual([], self.heat.given())
        self.assertNotIn(run.config_id, self.heat.configs)
        self.assertEqual(before, self.objects())

    def _withdraw_after(self, method, **failing):
        """Let the stack go when Heat has been asked something for a run."""
        ask = getattr(self.heat, method)

        def ask_and_lose(*args, **values):
            made = ask(*args, **values)
            attempts.withdraw_all(self.heat, self.records)
            self.heat.failing = failing
            return made

        setattr(self.heat, method, ask_and_lose)

    def test_one_on_its_way_goes_though_its_starter_may_do_nothing_more(self):
        before = dict(self.heat.configs)
        self._withdraw_after(
            'create_deployment',
            # With a stack go the trusts that its triggers run with.
            delete_deployment=errors.Denied('no'),
        )
        self.assertRaises(errors.NotFound, self.start)
        self.assertEqual([], self.heat.given())
        self.assertEqual(before, self.heat.configs)

    def test_one_that_is_handed_over_after_that_is_undone_by_its_starter(self):
        before = dict(self.heat.configs)
        self._withdraw_after('create_config')
        exc = self.assertRaises(errors.NotFound, self.start)
        self.assertIn('was deleted while BACKUP started', str(exc))
        self.assertEqual([], self.heat.given())
        self.assertEqual(before, self.heat.configs)
        self.assertEqual([], self.objects())

    def test_one_on_its_way_is_found_again_by_who_has_to_go_on(self):
        run = self.start()
        # Whoever started it has died before it could say what it had made.
        self.records.write(
            dataclasses.replace(
                run, state=runs.State.STARTING, row_id=None, config_id=None
            )
        )

        def before(request):
            if request.method != 'GET':
                self.cluster.before = lambda request: None
                self.cluster.fail(1, 503, 'GET')

        self.cluster.before = before
        self.assertRaises(
            errors.Unavailable,
            attempts.withdraw_all,
            self.heat,
            self.records,
        )
        self.assertEqual(
            [run.id], attempts.withdraw_all(self.heat, self.records)
        )
        self.assertEqual([], self.heat.given())

    def _withdraw_all_but_one(self, failure):
        run = self.start()
        other = self.start(action='FAIL/OVER')
        delete = self.heat.delete_deployment

        def refuse(deployment_id, *server):
            if deployment_id == run.row_id:
                raise failure
            delete(deployment_id, *server)

        self.patch(self.heat, 'delete_deployment', refuse)
        withdrawn = attempts.withdraw_all(self.heat, self.records)
        self.assertEqual([other.id], withdrawn)
        self.assertNotIn(other.config_id, self.heat.configs)

    def test_one_that_cannot_be_taken_back_keeps_none_of_the_others(self):
        self._withdraw_all_but_one(errors.Denied('no'))

    def test_nor_does_one_with_which_something_unforeseen_happens(self):
        self._withdraw_all_but_one(RuntimeError('no'))

    def test_a_server_is_told_again_of_one_that_was_deleted_before(self):
        for is_proved in (False, True):
            run = self.start()
            # Who deleted it has told nobody.
            del self.heat.rows[run.row_id]
            attempts.withdraw(self.heat, run, is_proved=is_proved)
            self.assertEqual(['server-1'], self.heat.told_again)
            self.heat.told_again.clear()
            self.records.close(run.key)

    def test_one_that_cannot_be_read_is_taken_back_and_deleted(self):
        before = dict(self.heat.configs)
        garbled = self.start()
        run = self.start(action='FAIL/OVER')
        self.garble(garbled)
        self.assertEqual(
            {garbled.id, run.id},
            set(attempts.withdraw_all(self.heat, self.records)),
        )
        self.assertEqual([], self.heat.given())
        self.assertEqual(before, self.heat.configs)
        self.assertEqual([run.key], self.records.keys())
        self.assertEqual([run.key], self.records.opened())

    def test_so_it_is_when_heat_has_forgotten_its_deployment(self):
        garbled = self.start()
        self.garble(garbled)
        self.heat.delete_deployment(self.row.id)
        attempts.withdraw_all(
            self.heat, self.records, server=lambda: 'server-1'
        )
        self.assertEqual([], self.heat.given())

    def test_a_container_that_is_gone_has_none(self):
        self.assertEqual([], attempts.withdraw_all(self.heat, self.records))
