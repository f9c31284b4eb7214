# SPDX-License-Identifier: Apache-2.0
"""What heat-engines remember behind the reasons that people read."""

import pytest

from heat_plugins import tokens

ALL = (tokens.STARTED, tokens.UNHEALTHY, tokens.ENGINE_DIED)


@pytest.mark.parametrize('token', ALL)
def test_only_what_ends_in_it_has_it(token):
    text = token.after('Anything at all')
    assert token.marks(text)
    assert not token.marks(f'{text}.')
    assert not token.marks(None)
    assert [each for each in ALL if each.marks(text)] == [token]


@pytest.mark.parametrize(
    ('token', 'text'),
    [
        (tokens.STARTED, 'The server is at it'),
        (tokens.STARTED, 'The server has started the action'),
        (tokens.ENGINE_DIED, 'Engine 5f1c has died'),
    ],
)
def test_sentences_of_former_releases_are_understood(token, text):
    assert token.marks(text)
    assert not token.marks(f'{text}, and the stack has failed')
    assert not token.marks(f'Not so: {text}')


def test_people_do_not_see_them():
    for token in ALL:
        assert tokens.shown(token.after('It is so')) == 'It is so'
    assert tokens.shown('Left [hp:x] as it is') == 'Left [hp:x] as it is'
