# SPDX-License-Identifier: Apache-2.0
"""The tables of runs in Heat's database: made once, and by one of many."""

import logging
import pathlib
import subprocess
import sys
import tempfile
import threading
from unittest import mock

import fixtures
from heat.db import api as db_api
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_db.sqlalchemy import engines
from oslo_upgradecheck import upgradecheck
import sqlalchemy

from heat_plugins.checks import engine as checks
from heat_plugins.engine import patches
from heat_plugins.engine.database import run_tables
from tests.unit import heat_fixture

TABLES = {
    'heat_plugins_run',
    'heat_plugins_run_target',
    'heat_plugins_version',
}

Code = upgradecheck.Code


class Enough(BaseException):
    """The thread has waited as long as the test lets it."""


class RunTablesTest(heat_fixture.HeatTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, 'heat.db')
        self.url = f'sqlite:///{self.file}'
        self.engine = engines.create_engine(self.url)
        self.addCleanup(self.engine.dispose)
        self.addCleanup(db_api.context_manager.patch_engine(self.engine))
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        self.conf = self.useFixture(config_fixture.Config(cfg.CONF))
        self.pauses = []

    def tables(self):
        return {*sqlalchemy.inspect(self.engine).get_table_names()}

    def scan(self, pauses=0):
        """Do what heat-engine does in a thread after its start."""
        self.pauses.clear()

        def sleep(seconds):
            # The pool lets other threads run.
            self.pauses += [seconds] if seconds else []
            if len(self.pauses) > pauses:
                raise Enough

        with mock.patch('time.sleep', sleep):
            assert run_tables.SCAN.begin() is None

    def forbid(self):
        """Let the database refuse all statements that change tables."""

        def refuse(connection, cursor, statement, *args):
            if statement.strip().startswith(('CREATE', 'ALTER')):
                raise sqlalchemy.exc.OperationalError(
                    statement, {}, Exception('CREATE command denied')
                )

        event = (self.engine, 'before_cursor_execute', refuse)
        sqlalchemy.event.listen(*event)
        return lambda: sqlalchemy.event.remove(*event)

    def check(self):
        return checks.tables()

    def test_heat_engine_makes_them_in_a_thread_after_its_start(self):
        (patch,) = (
            each
            for each in patches.PATCHES
            if each.function == 'EngineService.start'
        )
        begun = []
        self.patch(
            threading.Thread, 'start', lambda each: begun.append(each.name)
        )
        # As if it were a process that has just been forked.
        with mock.patch('os.getpid', return_value=-1):
            patch.wrap(lambda engine: begun.append(engine))('Heat')
        # No scan of another, and no notice, without an option.
        assert begun == ['Heat', 'heat-plugins-tables']

    def test_they_are_made_once(self):
        assert not run_tables.is_ready(self.engine)
        self.scan()
        assert self.tables() == TABLES
        assert run_tables.is_ready(self.engine)
        self.scan()
        run_tables.upgrade(self.engine)
        assert self.log.output == ''

    def test_heats_own_revision_is_left_alone(self):
        with self.engine.begin() as connection:
            connection.execute(
                sqlalchemy.text('CREATE TABLE alembic_version (a VARCHAR)')
            )
            connection.execute(
                sqlalchemy.text("INSERT INTO alembic_version VALUES ('heat')")
            )
        self.scan()
        with self.engine.connect() as connection:
            found = connection.execute(
                sqlalchemy.text('SELECT a FROM alembic_version')
            )
            assert [*found.scalars()] == ['heat']

    def test_one_that_another_engine_has_begun_with_is_no_failure(self):
        run_tables.RUN.create(self.engine)
        self.scan()
        assert self.tables() == TABLES

    def test_a_later_release_has_been_there(self):
        self.scan()
        with self.engine.begin() as connection:
            connection.execute(
                sqlalchemy.text(
                    f"UPDATE {run_tables.VERSIONS} SET version_num = 'later'"
                )
            )
        assert run_tables.is_ready(self.engine)
        run_tables.upgrade(self.engine)
        self.scan()

    def test_a_user_without_the_right_gets_one_warning(self):
        permit = self.forbid()
        self.assertRaises(Enough, self.scan, 8)
        assert self.log.output.count('Cannot make') == 1
        assert run_tables.COMMAND in self.log.output
        assert max(self.pauses) < 60
        result = self.check()
        assert result.code == Code.WARNING
        assert run_tables.COMMAND in result.details
        permit()
        self.scan()
        assert self.tables() == TABLES

    def test_an_operator_forbids_it(self):
        self.conf.config(manage_tables=False, group='heat_plugins')
        self.assertRaises(Enough, self.scan, 8)
        assert self.log.output.count('manage_tables') == 1
        assert self.tables() == set()
        result = self.check()
        assert result.code == Code.FAILURE
        assert run_tables.COMMAND in result.details
        run_tables.upgrade(self.engine)
        self.scan()

    def test_a_database_that_is_away_is_waited_for(self):
        refuse = mock.Mock(
            side_effect=sqlalchemy.exc.OperationalError('', {}, Exception())
        )
        with mock.patch.object(self.engine, 'connect', refuse):
            self.assertRaises(Enough, self.scan, 2)
            assert self.check().code == Code.WARNING
        self.scan()
        assert self.tables() == TABLES

    def test_an_operator_makes_them(self):
        heat_conf = self.file.with_name('heat.conf')
        heat_conf.write_text('[database]\nconnection = sqlite:////no/where\n')
        owner = self.file.with_name('owner.conf')
        owner.write_text(f'[database]\nconnection = {self.url}\n')

        def run(*files):
            arguments = [f'--config-file={each}' for each in files]
            return subprocess.run(
                [sys.executable, '-m', 'heat_plugins', 'tables', *arguments],
                capture_output=True,
                text=True,
                check=False,
            )

        refused = run(heat_conf)
        assert refused.returncode == 1
        assert 'Cannot make the tables of runs' in refused.stderr
        done = run(heat_conf, owner)
        assert done.returncode == 0, done.stderr
        assert self.tables() == TABLES
        assert self.check().code == Code.SUCCESS
