# SPDX-License-Identifier: Apache-2.0
"""The tables of runs in Heat's database: made once, and by one of many."""

import logging
import pathlib
import subprocess
import sys
import threading
from unittest import mock

import fixtures
from heat.db import api as db_api
from oslo_config import cfg
from oslo_db.sqlalchemy import engines
from oslo_upgradecheck import upgradecheck
import sqlalchemy

from heat_plugins import __main__
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
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.url = f'sqlite:///{self.folder}/heat.db'
        self.engine = engines.create_engine(self.url)
        self.addCleanup(self.engine.dispose)
        self.addCleanup(db_api.context_manager.patch_engine(self.engine))
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
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

    def execute(self, *statements):
        with self.engine.begin() as connection:
            for each in statements:
                result = connection.execute(sqlalchemy.text(each))
            return [*result.scalars()] if result.returns_rows else None

    def assert_missing(self, code):
        """Hold that the engine waits, and that both ways to learn it do so."""
        self.assertRaises(Enough, self.scan, 8)
        assert self.log.output.count('Cannot make') == 1
        result = checks.tables()
        assert result.code == code
        for said in (self.log.output, result.details):
            assert run_tables.COMMAND in said

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

    def test_they_are_made_once_and_heats_own_revision_is_left_alone(self):
        assert not run_tables.is_ready(self.engine)
        self.execute(
            'CREATE TABLE alembic_version (a VARCHAR)',
            "INSERT INTO alembic_version VALUES ('heat')",
        )
        # Another engine has begun with them.
        run_tables.RUN.create(self.engine)
        self.scan()
        assert self.tables() == {*TABLES, 'alembic_version'}
        assert run_tables.is_ready(self.engine)
        self.scan()
        run_tables.upgrade(self.engine)
        assert self.log.output == ''
        assert self.execute('SELECT a FROM alembic_version') == ['heat']

    def test_a_later_release_has_been_there(self):
        self.scan()
        self.execute(f"UPDATE {run_tables.VERSIONS} SET version_num = 'later'")
        assert run_tables.is_ready(self.engine)
        run_tables.upgrade(self.engine)
        self.scan()

    def test_a_user_without_the_right_gets_one_warning(self):
        def refuse(connection, cursor, statement, *args):
            if statement.strip().startswith(('CREATE', 'ALTER')):
                raise sqlalchemy.exc.OperationalError(
                    statement, {}, Exception('CREATE command denied')
                )

        event = (self.engine, 'before_cursor_execute', refuse)
        sqlalchemy.event.listen(*event)
        self.assert_missing(Code.WARNING)
        assert max(self.pauses) < 60
        sqlalchemy.event.remove(*event)
        self.scan()
        assert self.tables() == TABLES

    def test_an_operator_forbids_it(self):
        cfg.CONF.set_override('manage_tables', False, 'heat_plugins')
        self.assert_missing(Code.FAILURE)
        assert 'manage_tables' in self.log.output
        assert self.tables() == set()
        run_tables.upgrade(self.engine)
        self.scan()

    def test_a_database_that_is_away_is_waited_for(self):
        refuse = mock.Mock(
            side_effect=sqlalchemy.exc.OperationalError('', {}, Exception())
        )
        with mock.patch.object(self.engine, 'connect', refuse):
            self.assertRaises(Enough, self.scan, 2)
            assert checks.tables().code == Code.WARNING
        self.scan()
        assert self.tables() == TABLES

    def test_an_operator_makes_them(self):
        heat_conf, owner = self.folder / 'heat.conf', self.folder / 'own.conf'
        heat_conf.write_text('[database]\nconnection = sqlite:////no/where\n')
        owner.write_text(f'[database]\nconnection = {self.url}\n')
        files = [f'--config-file={each}' for each in (heat_conf, owner)]
        command = [sys.executable, '-m', 'heat_plugins', 'tables', *files]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        assert self.tables() == TABLES
        assert checks.tables().code == Code.SUCCESS
        refuse = mock.Mock(side_effect=OSError('no such file'))
        self.patch(run_tables, 'upgrade', refuse)
        told = self.assertRaises(SystemExit, __main__.main, ['tables'])
        assert str(told) == (
            'Cannot make the tables of runs: OSError: no such file'
        )
