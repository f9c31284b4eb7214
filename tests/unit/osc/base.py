# SPDX-License-Identifier: Apache-2.0
"""Commands as ``openstack`` runs them, over the fakes of the core."""

import contextlib
import io
import json
import time
import types

from osc_lib import exceptions
import testtools

from heat_plugins.osc import common
from heat_plugins.osc.runs import operation_following
from tests.unit.runs import base

#: Seconds for which another thread is waited for.
PATIENCE = 60


def until(text, what):
    """Wait until a text, which another thread writes, has something in it.

    :param text: returns it.
    """
    end = time.monotonic() + PATIENCE
    while what not in text():
        assert time.monotonic() < end, text()
        time.sleep(0.01)


class Terminal(io.StringIO):
    """A standard error that somebody looks at."""

    def isatty(self):
        return True


class CommandCase(testtools.TestCase):
    """A test of commands.

    :ivar stderr: what they print there.
    """

    def setUp(self):
        super().setUp()
        self.stderr = io.StringIO()

    def run_command(self, command, *arguments, encoding='utf-8', name=None):
        """Run a command; return its exit code and what it printed."""
        stdout = io.TextIOWrapper(
            io.BytesIO(), encoding=encoding, write_through=True
        )
        app = types.SimpleNamespace(client_manager=None, stdout=stdout)
        made = command(app, None)
        made.cmd_name = name
        with contextlib.redirect_stderr(self.stderr):
            parsed = made.get_parser('openstack').parse_args(list(arguments))
            code = made.run(parsed)
        return code, stdout.buffer.getvalue().decode(encoding)

    def json(self, command, *arguments):
        code, output = self.run_command(command, *arguments, '-f', 'json')
        return code, json.loads(output)

    def refused(self, command, *arguments):
        """Run a command that must fail; return its message."""
        exc = self.assertRaises(
            exceptions.CommandError, self.run_command, command, *arguments
        )
        return str(exc)


class CommandTestCase(CommandCase, base.RunsTestCase):
    """A test of commands on runs."""

    def setUp(self):
        super().setUp()
        self.patch(
            common, 'service', lambda manager, **more: self.service(**more)
        )
        self.patch(common, 'fleets', lambda manager: self.fleets())
        self.patch(
            operation_following,
            'time',
            types.SimpleNamespace(
                time=lambda: self.now,
                monotonic=lambda: self.now,
                sleep=lambda seconds: self.sleep(seconds),
            ),
        )

    def soon(self, act):
        """Let the server do something as soon as somebody waits."""

        def sleep(seconds):
            self.now += seconds
            self.soon_done = getattr(self, 'soon_done', False) or act() or True

        self.sleep = sleep
