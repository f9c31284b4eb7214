# SPDX-License-Identifier: Apache-2.0
"""Runs in Heat's database, as two tables."""

from concurrent import futures
import contextlib
import subprocess
import sys
import threading
import time
import traceback
from unittest import mock

import fixtures
from heat.db import api as db_api
from heat.db import models
from oslo_config import cfg
from oslo_config import fixture as config_fixture
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

MAKE_TABLES = """
import sys
from oslo_db.sqlalchemy import engines
from heat_plugins.engine.database import run_tables
engine = engines.create_engine(sys.argv[1])
print('ready', flush=True)
sys.stdin.readline()
run_tables.upgrade(engine)
"""

PROJECT, ENGINE = store_contract.PROJECT, store_contract.ENGINE


class RunRowsTest(store_contract.WholeContract, heat_fixture.HeatTestCase):
    def setUp(self):
        super().setUp()
        self.conf = self.useFixture(config_fixture.Config(cfg.CONF))
        self.store = run_rows.RunRows()

    def deployments(self):
        query = sqlalchemy.select(
            models.SoftwareDeployment.id, models.SoftwareDeployment.status
        )
        return dict(map(tuple, rows.select(self.heat.context, query)))

    def keep(self, targets):
        self.conf.config(group='heat_plugins', run_targets_kept=targets)

    def keep_record(self, text):
        """Let a resource keep the record of a schedule; return its number."""
        with db_api.context_manager.writer.using(self.heat.context) as session:
            datum = session.query(models.ResourceData).first()
            if datum is None:
                stack = models.Stack(
                    name='shop',
                    raw_template=models.RawTemplate(template={}),
                    disable_rollback=True,
                )
                session.add(stack)
                session.flush()
                resource = models.Resource(name='nightly', stack_id=stack.id)
                session.add(resource)
                session.flush()
                datum = models.ResourceData(
                    resource_id=resource.id, key=schedule_rows.KEY
                )
                session.add(datum)
            datum.value = text
            session.flush()
            return datum.resource_id

    def record(self):
        query = sqlalchemy.select(models.ResourceData.value)
        ((text,),) = rows.select(self.heat.context, query)
        return text

    def test_a_project_keeps_the_bytes_of_outputs_that_it_may(self):
        self.conf.config(group='heat_plugins', run_outputs_kept=1)
        self.conf.config(group='heat_plugins', run_output_limit=10**6)
        yesterday = int(time.time()) - 2 * 86400
        for number, size in enumerate((600_000, 300_000, 600_000)):
            self.print_and_end(f'run-{number}', size, yesterday + number)
        assert self.purge() == 1
        assert sorted(self.ids()) == ['run-1', 'run-2']
        assert self.purge() == 0

    def test_what_a_run_of_today_has_printed_stays(self):
        self.conf.config(group='heat_plugins', run_outputs_kept=1)
        self.conf.config(group='heat_plugins', run_output_limit=2 * 10**6)
        self.print_and_end('run-0', 1_200_000, int(time.time()))
        assert self.purge() == 0

    def print_and_end(self, run_id, size, ended_at):
        self.begin(run_id)
        done = self.done(outputs={'deploy_stdout': 'x' * size})
        self.store.answer({self.key(run_id=run_id): done})
        kept = self.store.load(run_id)
        after = kept.run.attempted(
            {1: {'state': run_records.State.COMPLETE}}
        ).changed(phase=run_records.Phase.COMPLETE, ended_at=ended_at)
        assert self.purge() == 0
        self.store.step(kept, after, 'end')


class SQLiteTest(RunRowsTest):
    """The same in a file, for several threads and processes at once."""

    def url(self):
        folder = self.useFixture(fixtures.TempDir()).path
        return f'sqlite:///{folder}/heat.sqlite?timeout=60'

    def setUp(self):
        super().setUp()
        url = self.url()
        engine = engines.create_engine(url)
        self.addCleanup(engine.dispose)
        self.addCleanup(db_api.context_manager.patch_engine(engine))
        models.BASE.metadata.create_all(engine)
        run_tables.upgrade(engine)
        self.addCleanup(self.empty, engine)

    def empty(self, engine):
        with engine.begin() as connection:
            for table in (
                *run_tables.METADATA.sorted_tables,
                models.SoftwareDeployment.__table__,
                models.SoftwareConfig.__table__,
                models.ResourceData.__table__,
                models.Resource.__table__,
                models.Stack.__table__,
                models.RawTemplate.__table__,
            ):
                connection.execute(sqlalchemy.delete(table))

    def test_two_that_begin_at_once_do_not_both_run(self):
        kept = [
            self.store.create(PROJECT, store_contract.run(run_id), ENGINE)
            for run_id in ('run-1', 'run-2', 'run-3', 'run-4')
        ]
        barrier = threading.Barrier(len(kept))

        def begin(each):
            after, given = store_contract.begun(each, 0, 1)
            barrier.wait()
            try:
                return self.store.step(each, after, 'begin', given=given)
            except run_store.KeysTaken as taken:
                return taken

        with futures.ThreadPoolExecutor(len(kept)) as pool:
            results = list(pool.map(begin, kept))
        begun = [
            each
            for each in results
            if not isinstance(each, run_store.KeysTaken)
        ]
        assert len(begun) == 1, results
        for each in results:
            if each is not begun[0]:
                assert {*each.runs.values()} == {begun[0].run.id}
        assert len(self.deployments()) == 2

    def test_of_engines_that_start_a_tick_at_once_one_does(self):
        tick = self.tick()
        engines_ = [f'engine-{number}' for number in range(6)]
        barrier = threading.Barrier(len(engines_))

        def start(engine_id):
            barrier.wait()
            try:
                self.store.create(
                    PROJECT, store_contract.run(), engine_id, tick=tick
                )
            except (run_store.Stale, errors.Exists):
                return None
            return engine_id

        with futures.ThreadPoolExecutor(len(engines_)) as pool:
            started = [each for each in pool.map(start, engines_) if each]
        assert [self.store.load('run-1').engine_id] == started
        assert self.record() == 'started'

    def test_of_two_steps_at_once_one_is_stale(self):
        kept = self.begin()
        names = [f'user-{number}' for number in range(6)]
        barrier = threading.Barrier(len(names))

        def pause(who):
            after = kept.run.changed(paused_by=who)
            barrier.wait()
            try:
                return self.store.step(kept, after, who).run.control.paused_by
            except run_store.Stale:
                return None

        with futures.ThreadPoolExecutor(len(names)) as pool:
            results = list(pool.map(pause, names))
        (winner,) = (each for each in results if each)
        found = self.store.load('run-1')
        assert (found.run.control.paused_by, found.version) == (
            winner,
            kept.version + 1,
        )

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
        for number in range(10):
            run_id = f'run-{number}'
            kept = self.begin(run_id)
            barrier = threading.Barrier(2)
            key = self.key(run_id=run_id)

            def answer(key=key, barrier=barrier):
                barrier.wait()
                return self.store.answer({key: self.done()})

            def expire(kept=kept, barrier=barrier):
                after = kept.run.attempted(
                    {0: {'state': run_records.State.TIMED_OUT, 'ended_at': 9}}
                )
                barrier.wait()
                try:
                    return self.store.step(kept, after, 'expire')
                except run_store.Stale:
                    return None

            with futures.ThreadPoolExecutor(2) as pool:
                answered, expired = pool.submit(answer), pool.submit(expire)
            attempt = self.store.load(run_id).run.attempts[0]
            is_complete = attempt.state is run_records.State.COMPLETE
            assert bool(answered.result()) == is_complete
            assert (expired.result() is None) == is_complete
            kept = self.store.load(run_id)
            self.store.step(kept, store_contract.ended(kept.run), 'end')

    def test_the_tables_are_made_by_several_at_once(self):
        engine = db_api.get_engine()
        run_tables.METADATA.drop_all(engine)
        with engine.begin() as connection:
            connection.execute(
                sqlalchemy.text('DROP TABLE heat_plugins_version')
            )
        url = engine.url.render_as_string(hide_password=False)
        made = [
            subprocess.Popen(
                [sys.executable, '-c', MAKE_TABLES, url],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(3)
        ]
        for each in made:
            assert each.stdout.readline() == 'ready\n'
        for each in made:
            each.stdin.write('\n')
            each.stdin.flush()
        for each in made:
            _, message = each.communicate(timeout=100)
            assert each.returncode == 0, message
        assert run_tables.is_ready(engine)
        self.begin()


class MariaDBTest(SQLiteTest):
    """The same in MariaDB."""

    server = staticmethod(databases.mariadb)

    def url(self):
        try:
            return self.server()
        except databases.Missing as missing:
            self.skipTest(f'This machine lacks {missing}')


class PostgreSQLTest(MariaDBTest):
    """The same in PostgreSQL."""

    server = staticmethod(databases.postgresql)


class FaultsTest(heat_fixture.HeatTestCase):
    """What a database does that is busy or away, or of another key."""

    def setUp(self):
        super().setUp()
        self.conf = self.useFixture(config_fixture.Config(cfg.CONF))
        self.store = run_rows.RunRows()
        self.useFixture(fixtures.MockPatch('time.sleep'))
        self.engine = db_api.get_engine()

    def deployments(self):
        query = sqlalchemy.select(models.SoftwareDeployment.id)
        return [row.id for row in rows.select(self.heat.context, query)]

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
        run = store_contract.run()
        with self.fault():
            kept = self.store.create(PROJECT, run, ENGINE)
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
            self.store.step(kept, end, 'end', taken=self.deployments())
        assert self.deployments() == []
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
        kept = self.store.create(PROJECT, store_contract.run(), ENGINE)
        secret = db_exception.DBConnectionError('hunter2')
        with self.failing(secret, 4):
            error = self.assertRaises(
                errors.Unavailable,
                self.store.step,
                kept,
                kept.run.changed(paused_by='ann'),
                'pause',
            )
        shown = ''.join(traceback.format_exception(error))
        assert 'hunter2' not in shown
        assert self.store.load('run-1') == kept

    def test_secrets_are_encrypted(self):
        self.store.create(PROJECT, store_contract.run(), ENGINE)
        (row,) = rows.select(
            self.heat.context,
            sqlalchemy.text('SELECT * FROM heat_plugins_run'),
        )
        assert 'hunter2' not in repr(row)

    def test_after_a_change_of_the_key_a_run_can_be_ended_and_deleted(self):
        run = store_contract.run(config={'config': 'uptime'})
        self.store.create(PROJECT, run, ENGINE)
        self.conf.config(auth_encryption_key='another' * 5)
        found = self.store.load('run-1', PROJECT)
        assert 'auth_encryption_key' in found.unreadable
        assert found.run.order.members == run.order.members
        assert found.run.order.inputs == {}
        (head,) = self.store.heads(PROJECT, ordering.Query())
        assert head.action == 'BACKUP'
        assert self.store.led_by(ENGINE) == {'run-1': 0}
        self.store.step(found, store_contract.ended(found.run), 'cancel')
        self.store.delete(PROJECT, 'run-1')

    def test_without_its_tables_it_says_what_to_do(self):
        run_tables.METADATA.drop_all(self.engine)
        with self.engine.begin() as connection:
            connection.execute(
                sqlalchemy.text('DROP TABLE heat_plugins_version')
            )
        self.addCleanup(run_tables.upgrade, self.engine)
        error = self.assertRaises(
            errors.ServiceError, self.store.load, 'run-1'
        )
        assert run_tables.COMMAND in str(error)
        assert not isinstance(error, errors.NotFound)

    def test_one_that_a_later_release_wrote_is_unreadable(self):
        self.store.create(PROJECT, store_contract.run(), ENGINE)
        with self.engine.begin() as connection:
            connection.execute(
                sqlalchemy.update(run_tables.RUN).values(
                    control={'phase': 'x'}, head={'id': 7}
                )
            )
        (head,) = self.store.heads(PROJECT, ordering.Query())
        assert (head.id, head.state) == ('run-1', None)
        self.assertRaises(errors.Unreadable, self.store.load, 'run-1')
        assert self.store.led_by(ENGINE) == {'run-1': 0}

    def test_the_last_runs_need_nothing_that_is_encrypted(self):
        self.store.create(PROJECT, store_contract.run(), ENGINE)
        with self.engine.begin() as connection:
            connection.execute(
                sqlalchemy.text("UPDATE heat_plugins_run SET ordered = '?'")
            )
        found = self.store.latest(PROJECT, ['deployment-1'], 1)
        assert [*found] == ['deployment-1']
        assert self.store.on_server(PROJECT, 'server-1') == []

    def test_many_targets_of_a_server_are_found_as_few_are(self):
        for number in range(4):
            run = store_contract.run(f'run-{number}', targets=2)
            self.store.create(PROJECT, run, ENGINE)
        for most in (1, 3, 100):
            with mock.patch.object(run_rows, '_FEW', most):
                for wanted, found in (('server-1', 4), ('server-7', 0)):
                    heads = self.store.heads(
                        PROJECT, ordering.Query(server=wanted)
                    )
                    assert len(heads) == found

    def test_the_projects_with_most_targets_are_named(self):
        for number, project_id in enumerate(('a', 'b', 'b')):
            run = store_contract.run(f'run-{number}', targets=3)
            self.store.create(project_id, run, ENGINE)
        assert self.store.most_kept(1) == {'b': 6}
