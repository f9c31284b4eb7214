# SPDX-License-Identifier: Apache-2.0
"""Marks that programs read, at the end of texts in Heat's database.

Heat has a column for the reason of a status, and none for what a heat-engine
must remember. So a reason is a sentence for people, and may end in a mark. No
program reads the rest of it. Views leave marks out; see `shown`.

Releases before 0.2 wrote some of the sentences without a mark. `Token.former`
recognizes these until release 0.4; no deployment of theirs can still be in
progress then.
"""

import dataclasses
import re

_ANY = re.compile(r' ?\[hp:[a-z-]+\]$')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Token:
    """A mark; see the module.

    :ivar text: what a text ends in.
    :ivar former: how sentences of former releases that mean the same begin
        and end.
    """

    text: str
    former: tuple[tuple[str, str], ...] = ()

    def marks(self, text: str | None) -> bool:
        """Say whether a text has the mark, or is such a sentence."""
        full = text or ''
        return full.endswith(self.text) or any(
            full.startswith(start) and full.endswith(end)
            for start, end in self.former
        )

    def after(self, sentence: str) -> str:
        """Return a sentence with the mark."""
        return f'{sentence} {self.text}'


#: A deployment in progress: its server has started the action.
STARTED = Token(
    text='[hp:started]',
    former=tuple(
        (each, each)
        for each in (
            'The server has started the action',
            'The server is at it',
        )
    ),
)

#: A complete deployment: the next update must run it again.
UNHEALTHY = Token(text='[hp:unhealthy]')

#: A deployment whose CREATE or DELETE has failed: the resource that replaces
#: it has run CREATE on the same server. Its own DELETE would undo that.
REPLACED = Token(text='[hp:replaced]')

#: A failed resource: a scan took it from an engine that has died.
ENGINE_DIED = Token(
    text='[hp:engine-died]', former=(('Engine ', ' has died'),)
)


def shown(text: str) -> str:
    """Return a text as people see it, without a mark."""
    return _ANY.sub('', text)
