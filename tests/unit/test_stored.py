# SPDX-License-Identifier: Apache-2.0
"""Dataclasses as they were stored, or as others have left them."""

from collections import abc
import dataclasses
import enum
import json
from typing import Any

import pytest

from heat_plugins import stored


class Size(enum.StrEnum):
    BIG = 'big'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inner:
    name: str
    nested: tuple['Inner', ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outer:
    size: Size
    inner: Inner | None = None
    number: int = 0
    share: float = 0.0
    many: abc.Sequence[str] = ()
    counts: abc.Mapping[str, int] = dataclasses.field(default_factory=dict)
    more: Any = None


WHOLE = Outer(
    size=Size.BIG,
    inner=Inner(name='a', nested=(Inner(name='b'),)),
    number=7,
    share=1.5,
    many=['x'],
    counts={'y': 1},
    more=[{'z': None}],
)
VALUES = json.loads(json.dumps(dataclasses.asdict(WHOLE)))


def test_what_was_stored_is_read_as_it_was():
    assert stored.read(Outer, VALUES) == WHOLE
    # A whole number is a share, too.
    assert stored.read(Outer, {**VALUES, 'share': 2}).share == 2
    # What is missing has its default; what is later is left out.
    found = stored.read(Outer, {'size': 'big', 'later': 1})
    assert found == Outer(size=Size.BIG)


@pytest.mark.parametrize(
    ('name', 'values'),
    [
        ('size', ['small', None]),
        ('inner', ['a', {}, {'name': 'a', 'nested': [{'name': 1}]}]),
        ('number', ['7', -1, 2**40]),
        ('share', ['much']),
        ('many', ['x', [1]]),
        ('counts', [[], {'y': 'z'}]),
    ],
)
def test_what_is_of_another_type_or_no_record_is_refused(name, values):
    for value in values:
        with pytest.raises(ValueError, match=r'.'):
            stored.read(Outer, {**VALUES, name: value})
    for found in (None, [], 'text', 7, {}):
        with pytest.raises(ValueError, match='Outer'):
            stored.read(Outer, found)
