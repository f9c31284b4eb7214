# SPDX-License-Identifier: Apache-2.0
"""Commands as ``openstack`` runs them, over the fakes of the core."""

import configparser
import contextlib
import functools
import importlib
import io
import json
import os
import pathlib
import shlex
import tempfile
import time
import types
from unittest import mock

from osc_lib import exceptions
import testtools

ROOT = pathlib.Path(__file__).parents[3]


@functools.cache
def commands():
    """Return the targets of the commands of setup.cfg, by name."""
    found = configparser.ConfigParser()
    found.optionxform = str
    found.read(ROOT / 'setup.cfg')
    text = found['entry_points']['openstack.orchestration.v1']
    lines = [line.partition('=') for line in text.strip().splitlines()]
    return {name.strip(): target.strip() for name, _, target in lines}


def command(name):
    module, _, attribute = commands()[name].partition(':')
    return getattr(importlib.import_module(module), attribute)


def typed(line):
    """Return the class of a command, and its arguments.

    :param line: what a user types, without the words that all commands share.
    """
    words = shlex.split(line)
    for begin in ('software_deployment', 'deployment_plan'):
        for length in (3, 2, 1):
            name = '_'.join([begin, *words[:length]])
            if name in commands():
                return command(name), words[length:]
    raise AssertionError(f'There is no command "{line}"')


def until(text, what):
    """Wait until a text, which another thread writes, has something in it.

    :param text: returns it.
    """
    end = time.monotonic() + 60
    while what not in text():
        assert time.monotonic() < end, text()
        time.sleep(0.01)


@contextlib.contextmanager
def local_zone(name):
    with mock.patch.dict(os.environ, TZ=name):
        time.tzset()
        yield
    time.tzset()


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
        """Run a command; return its exit code and what it printed.

        :param command: a class, or a line for `typed`.
        """
        words = []
        if isinstance(command, str):
            command, words = typed(command)
        stdout = io.TextIOWrapper(
            io.BytesIO(), encoding=encoding, write_through=True
        )
        app = types.SimpleNamespace(client_manager=None, stdout=stdout)
        made = command(app, None)
        made.cmd_name = name
        with contextlib.redirect_stderr(self.stderr):
            parser = made.get_parser('openstack')
            code = made.run(parser.parse_args([*words, *arguments]))
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

    def assert_refused(self, line, *said):
        message = self.refused(line)
        for one in said:
            assert one in message


class FolderCase(CommandCase):
    """A test of commands.

    :ivar folder: an empty one.
    """

    def setUp(self):
        super().setUp()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.folder = pathlib.Path(folder)
