# SPDX-License-Identifier: Apache-2.0
"""What every command takes on its command line, and says of itself."""

import contextlib
import io
import shlex

import pytest

from tests.unit.osc import base


@pytest.mark.parametrize('name', base.commands())
def test_the_help_has_an_example_that_can_be_typed_and_is_ascii(name):
    parser = base.command(name)(None, None).get_parser('openstack')
    lead, _, example = parser.epilog.partition(' openstack ')
    assert lead == 'Example:'
    assert example
    assert '\nExample: openstack ' in parser.format_help()
    assert parser.format_help().isascii()
    parser.parse_args(shlex.split(example))


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        ('--canary two', 'must be a number, at least 0'),
        ('--max-errors few', 'such as 10, or a percentage'),
        ('--server-metadata role', 'expected <name>=<value>'),
        ('--timeout 0', 'must be a number, at least 1'),
        ('--no-such-option', 'unrecognized arguments: --no-such-option'),
    ],
)
def test_a_value_that_cannot_be_is_an_error_that_says_why(given, said):
    command, words = base.typed(f'run start BACKUP {given}')
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr), pytest.raises(SystemExit):
        command(None, None).get_parser('openstack').parse_args(words)
    assert said in stderr.getvalue()
