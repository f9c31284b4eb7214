# SPDX-License-Identifier: Apache-2.0
"""Runs in Heat's database, as two tables."""

from concurrent import futures
import contextlib
import multiprocessing
import threading
import time
import traceback
from unittest import mock

import fixtures
from heat.db import api as db_api
from heat.db import models
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_db.sqlalchemy import engines
import sqlalchemy

from heat_plugins import errors
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import run_tables
from heat_plugins.engine.database import schedule_rows
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from tests.unit import databases
from tests.unit import heat_fixture
from tests.unit.runs import store_contract

HEATS = (
    *('software_deployment', 'software_config', 'resource_data'),
    *('resource', 'stack', 'raw_template'),
)
NIGHTLY = {
    'heat_template_version': '2021-04-16',
    'resources': {'nightly': {'type': 'OS::Heat::None'}},
}
PROJECT, ENGINE = store_contract.PROJECT, store_contract.ENGINE


def at_once(call, values):
    barrier = threading.Barrier(len(values))

    def wait(value):
        barrier.wait()
        try:
            return call(value)
        except (run_store.Stale, run_store.KeysTaken, errors.Exists) as exc:
            return exc

    with futures.ThreadPoolExecutor(len(values)) as pool:
        return list(pool.map(wait, values))


class RowsCase(heat_fixture.HeatTestCase):
    def setUp(self):
        super().setUp()
        self.store = run_rows.RunRows()

    def deployments(self):
        query = sqlalchemy.select(
            models.SoftwareDeployment.id, models.SoftwareDeployment.status
        )
        return dict(map(tuple, rows.select(self.heat.context, query)))

    def configure(self, **options):
        for name, value in options.items():
            cfg.CONF.set_override(name, value, 'heat_plugins')


class SQLiteTest(store_contract.RunStoreContract, RowsCase):
    """In a file, for several threads and processes at once."""

    stack = None

    def setUp(self):
        super().setUp()
        engine = engines.create_engine(self.url())
        self.addCleanup(engine.dispose)
        self.addCleanup(db_api.context_manager.patch_engine(engine))
        models.BASE.metadata.create_all(engine)
        run_tables.upgrade(engine)
        self.addCleanup(self.empty, engine)

    def url(self):
        folder = self.useFixture(fixtures.TempDir()).path
        return f'sqlite:///{folder}/heat.sqlite?timeout=60'

    def empty(self, engine):
        with engine.begin() as connection:
            heats = models.BASE.metadata.tables
            for table in (
                *run_tables.METADATA.sorted_tables,
                *(heats[name] for name in HEATS),
            ):
                connection.execute(sqlalchemy.delete(table))

    def keep(self, targets):
        self.configure(run_targets_kept=targets)

    def keep_record(self, text):
        """Let a resource keep the record of a schedule; return its number."""
        if self.stack is None:
            self.stack = self.heat.stack(NIGHTLY)
            self.stack['nightly'].store()
        self.stack['nightly'].data_set(schedule_rows.KEY, text)
        return self.stack['nightly'].id

    def record(self):
        query = sqlalchemy.select(models.ResourceData.value)
        ((text,),) = rows.select(self.heat.context, query)
        return text

    def test_a_project_keeps_the_bytes_of_outputs_that_it_may(self):
        self.configure(run_outputs_kept=1, run_output_limit=2 * 10**6)
        now = int(time.time())
        for number, size in enumerate((600_000, 300_000, 600_000)):
            self.print_and_end(f'run-{number}', size, now - 2 * 86400 + number)
        assert self.purge() == 1
        assert sorted(self.ids()) == ['run-1', 'run-2']
        assert self.purge() == 0
        # What a run of today has printed stays.
        self.print_and_end('run-3', 1_200_000, now)
        assert self.purge() == 2
        assert self.ids() == ['run-3']

    def print_and_end(self, run_id, size, ended_at):
        self.begin(run_id)
        done = self.done(outputs={'deploy_stdout': 'x' * size})
        self.store.answer({self.key(run_id=run_id): done})
        kept = self.store.load(run_id)
        done = {'state': run_records.State.COMPLETE}
        after = kept.run.attempted({1: done}).changed(
            phase=run_records.Phase.COMPLETE, ended_at=ended_at
        )
        assert self.purge() == 0
        self.store.step(kept, after, 'end')

    def test_two_that_begin_at_once_do_not_both_run(self):
        def begin(each):
            after, given = store_contract.begun(each, 0, 1)
            return self.store.step(each, after, 'begin', given=given)

        kept = [self.create(f'run-{number}') for number in range(4)]
        results = at_once(begin, kept)
        taken = [e for e in results if isinstance(e, run_store.KeysTaken)]
        (begun,) = (each for each in results if each not in taken)
        for each in taken:
            assert {*each.runs.values()} == {begun.run.id}
        assert len(self.deployments()) == 2

    def test_of_engines_that_start_a_tick_at_once_one_does(self):
        tick = self.tick()
        results = at_once(
            lambda engine_id: self.create(engine_id=engine_id, tick=tick),
            [f'engine-{number}' for number in range(6)],
        )
        (made,) = (e for e in results if not isinstance(e, Exception))
        assert self.store.load('run-1').engine_id == made.engine_id
        assert self.record() == 'started'

    def test_of_two_steps_at_once_one_is_stale(self):
        def pause(who):
            return self.store.step(kept, kept.run.changed(paused_by=who), who)

        kept = self.begin()
        results = at_once(pause, [f'user-{number}' for number in range(6)])
        (made,) = (e for e in results if not isinstance(e, Exception))
        assert self.store.load('run-1') == made
        assert made.version == kept.version + 1

    def test_many_answers_at_once_are_all_kept(self):
        self.begin(targets=24)
        done = self.done()

        def answer(number):
            return self.store.answer({self.key(number): done})

        with futures.ThreadPoolExecutor(4) as pool:
            results = list(pool.map(answer, range(24)))
        assert all(results), results
        run = self.store.load('run-1').run
        assert run.count(run_records.State.COMPLETE) == 24
        assert {*self.deployments().values()} == {'COMPLETE'}

    def test_of_an_answer_and_a_timeout_at_once_one_counts(self):
        late = {0: {'state': run_records.State.TIMED_OUT, 'ended_at': 9}}
        for number in range(10):
            kept = self.begin(f'run-{number}')
            answers = {self.key(run_id=kept.run.id): self.done()}
            ended = kept, kept.run.attempted(late), 'expire'
            answered, expired = at_once(
                lambda do: do(),
                [
                    lambda answers=answers: self.store.answer(answers),
                    lambda ended=ended: self.store.step(*ended),
                ],
            )
            kept = self.store.load(kept.run.id)
            state = kept.run.attempts[0].state
            is_complete = state is run_records.State.COMPLETE
            assert bool(answered) == is_complete
            assert isinstance(expired, run_store.Stale) == is_complete
            self.store.step(kept, store_contract.ended(kept.run), 'end')

    def test_the_tables_are_made_by_several_at_once(self):
        engine = db_api.get_engine()
        drop_tables(engine)
        url = engine.url.render_as_string(hide_password=False)
        context = multiprocessing.get_context('fork')
        barrier = context.Barrier(3)

        def make():
            own = engines.create_engine(url)
            barrier.wait(60)
            run_tables.upgrade(own)

        made = [context.Process(target=make) for _ in range(3)]
        for each in made:
            each.start()
        for each in made:
            each.join(100)
        assert [each.exitcode for each in made] == [0] * 3
        assert run_tables.is_ready(engine)
        self.begin()


class MariaDBTest(SQLiteTest):
    server = staticmethod(databases.mariadb)

    def url(self):
        try:
            return self.server()
        except databases.Missing as missing:
            self.skipTest(f'This machine lacks {missing}')


class PostgreSQLTest(MariaDBTest):
    server = staticmethod(databases.postgresql)


class FaultsTest(RowsCase):
    """What a database does that is busy or away, or of another key."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MockPatch('time.sleep'))
        self.engine = db_api.get_engine()

    def create(self, **values):
        run = store_contract.run(**values)
        return self.store.create(PROJECT, run, ENGINE)

    def execute(self, statement):
        with self.engine.begin() as connection:
            connection.execute(statement)

    @contextlib.contextmanager
    def failing(self, error, times=1, *, committed=False):
        """Let the next commits fail, or their answers be lost."""
        commit, left = self.engine.dialect.do_commit, [error] * times

        def fail(connection):
            if committed or not left:
                commit(connection)
            if left:
                raise left.pop()

        with mock.patch.object(self.engine.dialect, 'do_commit', fail):
            yield
        assert left == []

    def stored(self):
        """Store, change and delete runs; each commit may fail."""
        with self.fault():
            kept = self.create()
        assert self.store.load('run-1') == kept
        after, given = store_contract.begun(kept, 0, 1)
        with self.fault():
            kept = self.store.step(kept, after, 'begin', given=given)
        assert self.store.load('run-1') == kept
        assert len(self.deployments()) == 2
        key = run_store.TargetKey(run_id='run-1', number=0, attempt=1)
        done = run_records.Attempt(
            state=run_records.State.COMPLETE, ended_at=9
        )
        with self.fault():
            assert {*self.store.answer({key: done})} == {key}
        with self.fault():
            self.store.take_over(ENGINE, 'engine-2', 9)
        kept = self.store.load('run-1')
        assert (kept.engine_id, kept.version) == ('engine-2', 2)
        end = store_contract.ended(kept.run)
        with self.fault():
            self.store.step(kept, end, 'end', taken=[*self.deployments()])
        assert self.deployments() == {}
        configs = sqlalchemy.select(models.SoftwareConfig.id)
        assert rows.select(self.heat.context, configs) == []

    def test_a_commit_that_is_cut_off_is_repeated(self):
        self.fault = lambda: self.failing(db_exception.DBDeadlock(), 2)
        self.stored()
        with self.fault():
            self.store.delete(PROJECT, 'run-1')
        self.assertRaises(errors.NotFound, self.store.load, 'run-1')

    def test_a_commit_without_an_answer_has_been_made_once(self):
        error = db_exception.DBConnectionError()
        self.fault = lambda: self.failing(error, committed=True)
        self.stored()

    def test_a_database_that_is_away_may_be_asked_again(self):
        kept = self.create()
        secret = db_exception.DBConnectionError('hunter2')
        paused = kept.run.changed(paused_by='ann')
        with self.failing(secret, 4):
            step = self.store.step, kept, paused, 'pause'
            error = self.assertRaises(errors.Unavailable, *step)
        shown = ''.join(traceback.format_exception(error))
        assert 'hunter2' not in shown
        assert self.store.load('run-1') == kept

    def test_secrets_are_encrypted_and_a_run_ends_without_the_key(self):
        order = self.create(config={'config': 'uptime'}).run.order
        (row,) = rows.select(
            self.heat.context,
            sqlalchemy.text('SELECT * FROM heat_plugins_run'),
        )
        assert 'hunter2' not in repr(row)
        cfg.CONF.set_override('auth_encryption_key', 'another' * 5)
        found = self.store.load('run-1', PROJECT)
        assert 'auth_encryption_key' in found.unreadable
        assert found.run.order.members == order.members
        assert found.run.order.inputs == {}
        (head,) = self.store.heads(PROJECT, ordering.Query())
        assert head.action == 'BACKUP'
        assert self.store.led_by(ENGINE) == {'run-1': 0}
        self.store.step(found, store_contract.ended(found.run), 'cancel')
        self.store.delete(PROJECT, 'run-1')

    def test_without_its_tables_it_says_what_to_do(self):
        drop_tables(self.engine)
        self.addCleanup(run_tables.upgrade, self.engine)
        error = self.assertRaises(
            errors.ServiceError, self.store.load, 'run-1'
        )
        assert run_tables.COMMAND in str(error)
        assert not isinstance(error, errors.NotFound)

    def test_one_that_a_later_release_wrote_is_unreadable(self):
        self.create()
        self.execute(
            sqlalchemy.update(run_tables.RUN).values(
                control={'phase': 'x'}, head={'id': 7}
            )
        )
        (head,) = self.store.heads(PROJECT, ordering.Query())
        assert (head.id, head.state) == ('run-1', None)
        self.assertRaises(errors.Unreadable, self.store.load, 'run-1')
        assert self.store.led_by(ENGINE) == {'run-1': 0}

    def test_the_last_runs_need_nothing_that_is_encrypted(self):
        self.create()
        self.execute(
            sqlalchemy.text("UPDATE heat_plugins_run SET ordered = '?'")
        )
        found = self.store.latest(PROJECT, ['deployment-1'], 1)
        assert [*found] == ['deployment-1']
        assert self.store.on_server(PROJECT, 'server-1') == []

    def test_many_targets_of_a_server_are_found_as_few_are(self):
        for number in range(4):
            self.create(run_id=f'run-{number}')
        for most in (1, 3, 100):
            with mock.patch.object(run_rows, '_FEW', most):
                for server, found in (('server-1', 4), ('server-7', 0)):
                    wanted = ordering.Query(server=server)
                    assert len(self.store.heads(PROJECT, wanted)) == found

    def test_the_projects_with_most_targets_are_named(self):
        for number, project_id in enumerate(('a', 'b', 'b')):
            run = store_contract.run(f'run-{number}', targets=3)
            self.store.create(project_id, run, ENGINE)
        assert self.store.most_kept(1) == {'b': 6}


def drop_tables(engine):
    run_tables.METADATA.drop_all(engine)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text('DROP TABLE heat_plugins_version'))
