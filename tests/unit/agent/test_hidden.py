# SPDX-License-Identifier: Apache-2.0
"""What nobody is to see is masked in bytes that come in pieces."""

import pathlib
import random

import pytest

from heat_plugins import masking as ours
from heat_plugins.configs import hidden_inputs

from heat_config_supervisor import hidden  # isort: skip
from heat_config_supervisor import masking  # isort: skip

INPUTS = [
    {'name': 'password', 'value': 'correct horse'},
    {'name': 'text', 'value': 'user:opensesame@host'},
    {'name': 'open', 'value': 'visible'},
]
SECRETS = ['correct horse', 'opensesame']
OPTIONS = hidden_inputs.marked({}, INPUTS, SECRETS)


def stream(*secrets):
    return hidden.Stream(masking.Mask(secrets))


def masked(pieces, *secrets):
    found = stream(*secrets)
    return b''.join([found.feed(one) for one in pieces]) + found.close()


def test_the_copy_of_the_engines_module_is_the_same():
    theirs = pathlib.Path(masking.__file__).read_text()
    assert theirs == pathlib.Path(ours.__file__).read_text()


def test_what_the_engine_has_marked_is_masked_and_by_invalid_marks_all():
    found = hidden.Stream(hidden.mask(INPUTS, OPTIONS))
    said = found.feed(b'correct horse, opensesame, visible, user')
    assert said + found.close() == b'******, ******, visible, user'
    for options in (None, [], {'heat_plugins_hidden': 1}):
        found = hidden.Stream(hidden.mask(INPUTS, options))
        assert found.feed(b'correct horse ') == b'correct horse '
    options = {'heat_plugins_hidden': {'text': [[7, 0, 1]]}}
    found = hidden.Stream(hidden.mask(INPUTS, options))
    assert found.feed(b'<user:opensesame@host>') == b'<******>'


@pytest.mark.parametrize('seed', range(30))
def test_it_does_not_matter_where_it_is_cut(seed):
    chance = random.Random(seed)
    secrets = ['abcab', 'bcabc', 'aaaa', 'cabbage']
    parts = [*secrets, 'a', 'b', 'c', 'abca', ' ', '\n', 'cabb', 'x&Signature']
    parts += ['temp_url_sig=1f&', '?Signature=ab cd', 'temp_url_', '\0\xff']
    text = ''.join(chance.choice(parts) for _ in range(60)).encode('latin-1')
    cuts = sorted(chance.randrange(len(text)) for _ in range(20))
    pieces = [
        text[start:end]
        for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)
    ]
    whole = masked([text], *secrets)
    assert masked(pieces, *secrets) == whole
    assert masked([bytes([one]) for one in text], *secrets) == whole
    assert not [one for one in secrets if one.encode() in whole]


@pytest.mark.parametrize(
    'name', ['Signature', 'X-Amz-Signature', 'temp_url_sig']
)
@pytest.mark.parametrize(
    'mark', ['?', '&', '&amp;', r'\u0026', '%26', '%3F', '%3f']
)
@pytest.mark.parametrize('equals', ['=', '%3D'])
def test_signatures_are_masked_as_the_engine_does(mark, name, equals):
    text = f'{mark}{name}{equals}s3cr3t'
    assert 's3cr3t' not in ours.signatures(text)
    found = masked([bytes([one]) for one in f'{text}&b=5'.encode()])
    assert found == f'{mark}{name}{equals}******&b=5'.encode()


def test_where_all_is_secret_nothing_is_shown():
    found = hidden.Stream(masking.Mask(everything=True))
    assert found.feed(b'') == b''
    assert found.feed(b'a') + found.feed(b'b') + found.close() == b'******'
    # What is no secret is not held.
    found = stream('secret')
    assert found.feed(b'no ends: sec') == b'no ends: '
    assert found.feed(b'ond') == b'second'


def test_binary_stays_as_it_is_and_nothing_is_held_for_ever():
    content = bytes(range(256)) * 300
    assert masked([content[:1000], content[1000:]], 'secret') == content
    found = stream('aaaa')
    for _ in range(100):
        found.feed(b'a' * 1000)
    held = [each for each in vars(found).values() if isinstance(each, bytes)]
    assert held
    assert max(map(len, held)) < 4
