# SPDX-License-Identifier: Apache-2.0
"""Options may stand before and after the arguments of every command."""

import argparse
import contextlib
import io
import re
import shlex

import pytest

from tests.unit.osc import base

# Values that the types of options take.
_VALUES = (
    '7',
    '1000000',
    'name=value',
    'chart.svg',
    'run.html',
    '2026-11-20T22:00:00',
)


@pytest.fixture(scope='module', params=base.commands())
def parser(request):
    return base.command(request.param)(None, None).get_parser('openstack')


def value(parser, action):
    if action.choices:
        return next(iter(action.choices))
    for text in _VALUES:
        with contextlib.suppress(argparse.ArgumentError):
            parser._get_value(action, text)
            return text
    raise AssertionError(f'no value for {action.dest}')


def positionals(parser):
    """Return a value for each argument, two where it takes several."""
    found = parser._get_positional_actions()
    return [
        value(parser, action)
        for action in found
        for _ in range(2 if action.nargs in ('*', '+') else 1)
    ]


def option(parser, action):
    name = action.option_strings[-1]
    takes = action.nargs != 0
    return [name, value(parser, action)] if takes else [name]


def required(parser, chosen):
    """Return an option of each group of which one is needed."""
    return [
        word
        for group in parser._mutually_exclusive_groups
        if group.required and chosen not in group._group_actions
        for word in option(parser, group._group_actions[0])
    ]


def parsed(parser, line):
    """Return what a line says, without the addresses of its values."""
    return re.sub(' at 0x[0-9a-f]+', '', str(parser.parse_args(line)))


def test_options_may_stand_before_and_after_arguments(parser):
    words = positionals(parser)
    for action in parser._get_optional_actions():
        if isinstance(action, argparse._HelpAction):
            continue
        given = option(parser, action) + required(parser, action)
        expected = parsed(parser, [*given, *words])
        assert parsed(parser, [*words, *given]) == expected


def test_an_unknown_option_is_an_error_with_the_usage(parser):
    words = [*positionals(parser), *required(parser, None)]
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr), pytest.raises(SystemExit) as exc:
        parser.parse_args([*words, '--no-such-option'])
    assert exc.value.code == 2
    assert 'unrecognized arguments: --no-such-option' in stderr.getvalue()
    assert stderr.getvalue().startswith('usage: openstack [-h]')


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        ('--canary two', 'must be a number, 0 or more'),
        ('--max-errors few', 'such as 10, or a percentage'),
        ('--server-metadata role', 'expected <name>=<value>'),
    ],
)
def test_a_value_that_cannot_be_is_an_error_that_says_why(given, said):
    command, words = base.typed(f'run start BACKUP {given}')
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr), pytest.raises(SystemExit):
        command(None, None).get_parser('openstack').parse_args(words)
    assert said in stderr.getvalue()


def test_what_follows_two_dashes_is_no_option(parser):
    words = positionals(parser)
    if words[-1:] != ['7']:
        # Of a type of its own.
        return
    given = required(parser, None)
    assert '-7' in parsed(parser, [*given, '--', *words[:-1], '-7'])


def test_the_help_has_an_example_that_can_be_typed(parser):
    lead, _, example = parser.epilog.partition(' openstack ')
    assert lead == 'Example:'
    assert example
    assert '\nExample: openstack ' in parser.format_help()
    parser.parse_args(shlex.split(example))


def test_the_help_can_be_printed_anywhere(parser):
    assert parser.format_help().isascii()
