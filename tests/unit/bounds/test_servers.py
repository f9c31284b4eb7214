# SPDX-License-Identifier: Apache-2.0
"""Reading what servers and services send is linear."""

import contextlib
import gzip
import io
import tarfile

import pytest

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.content import tarballs
from heat_plugins.mistral import outcome
from heat_plugins.osc.runs import following
from heat_plugins.runs import run_objects
from heat_plugins.runs.targets import targets
from heat_plugins.signals import body
from tests.unit import growth

# Signals

STATUS, SIGNED = b'{"deploy_status_code": "', b'temp_url_sig='

BODIES = {
    'open brackets': lambda size: b'[' * size,
    'brackets': lambda size: b'{"a": ' + b'[' * size + b']' * size + b'}',
    'maps': lambda size: b'{"a":' * size + b'1' + b'}' * size,
    'a list': lambda size: b'{"a": [' + b'[],' * (size // 3) + b'1]}',
    'digits': lambda size: b'{"a": ' + b'9' * size + b'}',
    'a fraction': lambda size: b'{"a": 0.' + b'9' * size + b'}',
    'an exponent': lambda size: b'{"a": 1e' + b'9' * size + b'}',
    'escapes': lambda size: b'{"a": "' + b'\\u0061' * (size // 6) + b'"}',
    'blanks': lambda size: b' ' * size,
    'a status': lambda size: STATUS + b'0' * size + b'x"}',
    'a padded status': lambda size: STATUS + b'1.' + b'0' * size + b'"}',
    'the same key': lambda size: b'{' + b'"a":1,' * (size // 6) + b'"a":1}',
    'signatures': lambda size: b'{"a": "' + SIGNED * (size // 13) + b'"}',
    'a message': lambda size: b'{"message": "' + b'\\n a' * size + b'"}',
    'progress': lambda size: b'{"progress": ' + b'9' * size + b'}',
}

DECLARED = [{'name': 'a', 'error_output': True}]


def refusing(read):
    """Return a reader that takes an error of its own for an answer."""
    refusals = (ValueError, errors.Refused, errors.BadContent, errors.Invalid)

    def call(value):
        with contextlib.suppress(*refusals):
            read(value)

    return call


def repeated(text):
    return lambda size: text * (size // len(text))


def kept(content):
    run_objects.shortened(body.outcome(body.parse(content), DECLARED))


@pytest.mark.parametrize('made', BODIES.values(), ids=BODIES)
@pytest.mark.parametrize('read', [kept, run_objects.parse_report])
def test_what_a_server_sends_costs_no_more_than_its_size(read, made):
    growth.check(refusing(read), made, largest=2**17)


@pytest.mark.parametrize('text', ['x', 'x\n', '\x1b', 'é', '\n', ' '])
def test_output_costs_no_more_than_its_size(text):
    def say(*shown):
        assert all(len(line) <= foreign.LINE for line in shown)

    def show(content):
        lines = following.Lines(say, 'shop db')
        lines.show(content)
        lines.end()

    growth.check(show, repeated(text.encode()), largest=2**24)


@pytest.mark.parametrize(
    'text', ['temp_url_sig=', '?temp_url_sig=a', '&Signature=', '%26', "'"]
)
def test_signatures_cost_no_more_than_the_text(text):
    growth.check(
        lambda output: body.outcome({body.STDOUT: output}, []), repeated(text)
    )


# Inputs of runs


def test_unknown_inputs_are_not_all_compared_and_are_told_in_a_few_words():
    def read(size):
        declared = [{'name': f'input{number}'} for number in range(size)]
        given = {f'inptu{number:05}': 1 for number in range(size)}
        targets.values(declared, given, {'x': 1})

    growth.check(refusing(read), int, start=64, largest=2**12)
    with pytest.raises(errors.Refused) as caught:
        read(2000)
    said = str(caught.value)
    assert 'did you mean "input' in said
    assert said.endswith('and 3990 more')
    assert len(said) < 4000


# What was packed


def test_what_unpacks_without_end_or_not_at_all_is_no_record():
    packed = gzip.compress(b'0' * 10**6)
    assert bounds.gunzip(packed, 10**6) == b'0' * 10**6
    with pytest.raises(ValueError, match='more than 1000 bytes'):
        bounds.gunzip(packed, 1000)
    for content in (b'x', gzip.compress(b'a' * 99, mtime=0)[:-9]):
        with pytest.raises(ValueError, match='not gzip'):
            bounds.gunzip(content, 1000)


def header(kind, content, name='h'):
    found = tarfile.TarInfo(name)
    found.type, found.size = kind, len(content)
    filler = bytes(-len(content) % tarfile.BLOCKSIZE)
    return found.tobuf() + content + filler


def pax(number):
    return f'{len(str(number)) + 7} c{number:d}=x\n'.encode()


LONG_NAME = header(tarfile.GNUTYPE_LONGNAME, b'a')

TARBALLS = {
    'digits': lambda size: header(tarfile.XHDTYPE, b'1' * size),
    'records': lambda size: header(
        tarfile.XHDTYPE, b''.join(map(pax, range(size // 16)))
    ),
    'a global header and files': lambda size: b''.join(
        [
            header(tarfile.XGLTYPE, b'6 a=b\n' * (size // 64)),
            *(
                header(tarfile.REGTYPE, b'', f'f{n}')
                for n in range(size // 1024)
            ),
        ]
    ),
    'headers': lambda size: header(tarfile.XHDTYPE, b'') * (size // 512),
    'long names': lambda size: LONG_NAME * (size // 512),
}


@pytest.mark.parametrize('made', TARBALLS.values(), ids=TARBALLS)
def test_the_headers_of_a_tarball_cost_no_more_than_their_size(made):
    read = refusing(lambda packed: tarballs.read(io.BytesIO(packed)))
    growth.check(read, made, start=2**14, largest=2**21)


def test_what_an_action_returns_may_be_nested_without_end():
    for depth in (100, 900, 10**6):
        deep = '{"a":' * depth + '1' + '}' * depth
        assert outcome.mapping(deep) == {}
