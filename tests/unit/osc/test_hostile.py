# SPDX-License-Identifier: Apache-2.0
"""Whatever a command is told, a terminal only shows it."""

import contextlib
import io
import json
import logging
import threading
import types

import pytest

from heat_plugins import errors
from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.osc import progress
from heat_plugins.osc.runs import following
from tests.unit.osc import base

HOSTILE = (
    'web\x1b]0;title\x07\x1b[2J\u202eevil\x9b31m\u2066\u200b\ud800\x00'
    '\n| forged | row |\r\nand another\x85end'
)

#: One command of each base. What is no report is bytes that servers sent.
KINDS = {
    command.__bases__: command
    for command in map(base.command, base.commands())
    if issubclass(command, common.Report)
}.values()
every_kind = pytest.mark.parametrize('command', KINDS)


class Screen(io.StringIO):
    """A terminal, or a pipe."""

    encoding = 'utf-8'

    def __init__(self, terminal):
        super().__init__()
        self.isatty = lambda: terminal


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    # No command takes so long that it shows a line on how it gets on.
    monkeypatch.setattr(progress.Display, 'delay', threading.TIMEOUT_MAX)


def run(command, act, *arguments, terminal=True):
    """Run a command that does something else; return what it prints.

    :param act: called with the command in place of its `take_action`.
    """

    class Acts(command):
        shared = arguments = ()
        produce_output = common.Report.produce_output

        def take_action(self, parsed_args):
            return act(self)

    stdout, stderr = Screen(terminal), Screen(terminal)
    made = Acts(
        types.SimpleNamespace(client_manager=None, stdout=stdout), None
    )
    handler = logging.StreamHandler(stderr)
    made.log.addHandler(handler)
    try:
        with contextlib.redirect_stderr(stderr):
            parsed = made.get_parser('x').parse_args(list(arguments))
            try:
                made.run(parsed)
            except Exception as exc:
                # As the shell prints it.
                print(exc, file=stderr)
    finally:
        made.log.removeHandler(handler)
    return stdout.getvalue(), stderr.getvalue()


def assert_harmless(text):
    # The line feeds of blocks are meant.
    bad = {c for c in text if not c.isprintable()} - {'\n', '\t'}
    assert not bad, (bad, text)


def test_nor_does_output_that_is_shown_as_it_is():
    for terminal in (True, False):
        stream = Screen(terminal)
        stream.buffer = io.BytesIO()
        raw = following.Raw(stream)
        sent = HOSTILE.encode(errors='surrogatepass') + 'é'.encode()
        # A character may come in two parts, and the last one in half.
        for part in (sent[:-1], sent[-1:], sent[-2:-1]):
            raw.show(part)
        raw.end()
        assert_harmless(stream.getvalue())
        if terminal:
            assert stream.getvalue().endswith('é\ufffd')
        else:
            assert stream.buffer.getvalue() == sent + sent[-2:-1]


def rows(_):
    return ('Name', 'What'), [
        (HOSTILE, columns.Outputs({HOSTILE: HOSTILE, 'b': [HOSTILE]})),
        (columns.NamesCell([HOSTILE]), columns.Value({'a': HOSTILE})),
        (columns.SentencesCell([HOSTILE]), {'a': HOSTILE}),
        (columns.Value(HOSTILE), None),
    ]


def thing(_):
    return (HOSTILE, 'out'), common.One((HOSTILE, columns.Value(HOSTILE)))


@every_kind
@pytest.mark.parametrize('form', ['table', 'value', 'csv', 'yaml', 'json'])
@pytest.mark.parametrize('what', [rows, thing])
def test_nothing_that_a_command_shows_commands_a_terminal(command, form, what):
    output, said = run(command, what, '-f', form)
    assert_harmless(output)
    assert 'forged' in output
    assert said == ''
    if form == 'table':
        # No row can be forged.
        output, _ = run(command, lambda _: (('Name', 'What'), [(HOSTILE, 1)]))
        assert len(output.splitlines()) == 5
    if (form, what) == ('json', thing):
        # Programs get the true values.
        assert json.loads(output) == {HOSTILE: HOSTILE, 'out': HOSTILE}


@pytest.mark.parametrize('form', ['value', 'csv'])
def test_a_pipe_gets_the_bytes_as_they_are(form):
    text = HOSTILE.replace('\ud800', '')
    one = ('Name',), common.One((text,))
    output, _ = run(common.Report, lambda _: one, '-f', form, terminal=False)
    assert text in output


@every_kind
@pytest.mark.parametrize('error', [errors.Refused, OSError])
def test_no_error_or_warning_commands_a_terminal(command, error):
    def fail(found):
        found.log.warning('Note: %s', HOSTILE)
        found.log.error(HOSTILE)
        raise error(HOSTILE)

    _, said = run(command, fail)
    assert_harmless(said)
    # Nor does one forge a line.
    warned, failed, *_ = said.splitlines()
    assert 'forged' in warned
    assert 'forged' in failed
    assert said.count('forged') == 3
