# SPDX-License-Identifier: Apache-2.0

import json
import shlex
from urllib import parse

import pytest

from heat_plugins import masking

SECRET = 'hunter2 it\'s "so" $afe\\ é'

FORMS = {
    'as it is': SECRET,
    'JSON': json.dumps(SECRET),
    'JSON without escapes': json.dumps(SECRET, ensure_ascii=False),
    'JSON in JSON': json.dumps({'body': json.dumps({'a': SECRET})}),
    'repr': repr(SECRET),
    'repr of a map': repr({'a': SECRET}),
    'ascii': ascii(SECRET),
    "repr of bytes, as Heat's hooks log": repr(SECRET.encode()),
    'shell': shlex.quote(SECRET),
    "a shell's trace": "'" + SECRET.replace("'", r"'\''") + "'",
    'URL': f'https://u:{parse.quote(SECRET, safe="")}@h/',
    'form': parse.urlencode({'password': SECRET}),
}


@pytest.mark.parametrize('text', FORMS.values(), ids=FORMS)
def test_a_secret_is_masked_in_the_forms_that_programs_write(text):
    shown = masking.Mask([SECRET]).text(f'before {text} after')
    assert 'hunter2' not in shown
    assert 'afe' not in shown
    assert shown.startswith('before ') and shown.endswith(' after')
    assert masking.MASK in shown


def test_each_secret_of_some_length_is_masked_whole_or_line_by_line():
    mask = masking.Mask(['-----BEGIN KEY-----\nc2VjcmV0\n}\n'])
    assert mask.text('> c2VjcmV0\n> }') == '> ******\n> }'
    # One that is a part of another shows nothing of that.
    mask = masking.Mask(['cdef', 'abcdefghi', 'abcdef'])
    assert mask.text('-abcdefghi-abcdef-cdef') == '-******-******-******'
    # What is shorter than four characters stays.
    mask = masking.Mask(masking.texts(['abc', 123, True, None, '']))
    assert mask.text('abc 123 True None') == 'abc 123 True None'


def test_too_many_secrets_hide_the_whole_text():
    mask = masking.Mask(f'secret-{i}' for i in range(masking.MOST_FORMS + 1))
    assert mask.text('harmless') == masking.MASK
    assert mask.value({'a': ['harmless', 1]}) == {'a': [masking.MASK, 1]}


def test_values_show_short_secrets_in_texts_and_outputs_show_none():
    mask = masking.Mask(['admin', 'hunter2-long', '123456'])
    assert mask.value(
        {'user': 'admin', 'path': '/home/admin', 'url': 'x:hunter2-long@h'}
    ) == {
        'user': masking.MASK,
        'path': '/home/admin',
        'url': f'x:{masking.MASK}@h',
    }
    assert mask.output({'admin': ['an admin', 123456, 7, None, True]}) == {
        masking.MASK: [f'an {masking.MASK}', masking.MASK, 7, None, True]
    }


@pytest.mark.parametrize(
    'url',
    [
        'https://h/v1/AUTH_x/c/o?temp_url_sig=SIG&temp_url_expires=1',
        'https://h/v1/AUTH_x/c/o?temp_url_expires=1&TEMP_URL_SIG=SIG',
        'https://h/v1/signal/arn?Signature=SIG&AWSAccessKeyId=abc',
        'https://h/v1/signal/arn?a=1&amp;Signature=SIG&amp;b=2',
        r'https://h/v1/signal/arn?a=1\u0026Signature=SIG\u0026b=2',
        'https://h/b/k?X-Amz-Signature=SIG',
        'https://h/?next=http%3A%2F%2Fh%3Ftemp_url_sig%3DSIG%26b%3D2',
        'https://h/?next=http%3A%2F%2Fh%3Fa%3D1%26Signature%3DSIG',
    ],
)
def test_the_signature_of_a_url_is_masked_and_the_rest_stays(url):
    for signature in ('0123456789abcdef', 'ab%2Fc%3D', 'ab/c+d='):
        for quote in ('{}', '"{}"', "curl '{}' failed", '<{}>\n'):
            text = quote.format(url.replace('=SIG', f'={signature}'))
            shown = quote.format(url.replace('=SIG', '=***'))
            text = text.replace('3DSIG', f'3D{signature}')
            shown = shown.replace('3DSIG', '3D***')
            assert masking.signatures(text) == shown


def test_other_text_stays():
    for text in ('a=b&', 'Signature=valid', 'temp_url_sig', '?signature'):
        assert masking.signatures(text) == text


def test_a_search_that_takes_too_long_hides_all(monkeypatch):
    monkeypatch.setattr(masking, 'MOST_WORK', 2**20)
    text = 'x' * (masking.MOST_WORK + 1)
    assert masking.Mask().text(text) == text
    assert masking.Mask(['secret']).text(text) == masking.MASK
    # One text.
    forms = [f'{"a" * length}b' for length in range(500, 1500)]
    mask = masking.Mask(forms)
    longest = masking.MOST_WORK // len(forms)
    assert mask.text('a' * longest) == 'a' * longest
    assert mask.text('a' * (longest + 1)) == masking.MASK
    # Many short ones, together.
    mask = masking.Mask(f'secret-{number}' for number in range(1000))
    for masked in (mask.output, mask.value):
        assert masked(['a', {'b': 'secret-123'}]) == ['a', {'b': masking.MASK}]
        assert masked(['a'] * 1000) == masking.MASK
        assert masked([{'a': 1}] * 1000) == masking.MASK
        assert masked(['a'] * 5) == ['a'] * 5
