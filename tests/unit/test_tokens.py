# SPDX-License-Identifier: Apache-2.0
"""What heat-engines remember behind the reasons that people read."""

import pytest

from heat_plugins import tokens

ALL = (tokens.STARTED, tokens.UNHEALTHY, tokens.ENGINE_DIED)


@pytest.mark.parametrize('token', ALL)
def test_only_what_ends_in_it_has_it_and_people_do_not_see_it(token):
    text = token.after('It is so')
    assert tokens.shown(text) == 'It is so'
    assert [each for each in ALL if each.marks(text)] == [token]
    assert not token.marks(f'{text}.')
    assert not token.marks(None)
    assert tokens.shown('Left [hp:x] as it is') == 'Left [hp:x] as it is'


def test_sentences_of_former_releases_are_understood():
    for token, text in (
        (tokens.STARTED, 'The server is at it'),
        (tokens.STARTED, 'The server has started the action'),
        (tokens.ENGINE_DIED, 'Engine 5f1c has died'),
    ):
        assert token.marks(text)
        assert not token.marks(f'{text}, and the stack has failed')
        assert not token.marks(f'Not so: {text}')
