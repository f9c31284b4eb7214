# SPDX-License-Identifier: Apache-2.0
"""What a resource has in Mistral, what it wants there, and by which names.

Mistral keeps the workflows of a project in one list, so that two stacks
from one template need different names. They are ``<stack>.<resource>.<name
in the definition>``, as far as Mistral's language and its limit allow.
"""

from collections.abc import Collection, Mapping
import dataclasses
import hashlib
import json
import re
import secrets
import time
from typing import Any, Final
import uuid

from heat_plugins import stored
from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import renaming

#: The most bytes of a record: a column of a database holds 65535.
BYTES: Final = 60000

#: Names of dropped workflows that are kept to find their executions by.
FORMER: Final = 50


@dataclasses.dataclass(frozen=True, kw_only=True)
class DefinitionRecord:
    """What a resource has in Mistral.

    :ivar names: name in Mistral by name in the definition.
    :ivar book: the name of the workbook, if it is one.
    :ivar actions: its ad-hoc actions.
    :ivar left: workflows that may be there and are to go.
    :ivar left_actions: likewise for actions.
    :ivar left_books: likewise for workbooks.
    :ivar former: names that workflows had; executions may bear them.
    :ivar mark: what the ids of the resource's executions begin with.
    """

    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    book: str | None = None
    actions: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    left_actions: tuple[str, ...] = ()
    left_books: tuple[str, ...] = ()
    former: tuple[str, ...] = ()
    mark: str = ''

    @classmethod
    def read(cls, text: str | None) -> 'DefinitionRecord':
        return stored.read(cls, json.loads(text or '{}'))

    def write(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names under which there may be executions."""
        return once(*self.names.values(), *self.left, *self.former)

    def dropped(self) -> 'DefinitionRecord':
        """Return a record by which everything is to go."""
        books = () if self.book is None else (self.book,)
        return dataclasses.replace(
            self,
            names={},
            book=None,
            actions=(),
            left=once(*self.names.values(), *self.left),
            left_actions=once(*self.actions, *self.left_actions),
            left_books=once(*books, *self.left_books),
            former=once(*self.names.values(), *self.former)[:FORMER],
        )

    def execution_id(self) -> str:
        """Return an id for an execution that the resource begins.

        It begins with the mark, so that the resource knows its executions
        again without keeping a list: signals come in several at a time, and
        to different engines. Then comes the time, so that later ids sort
        after earlier ones, where Mistral's own times are in seconds.
        """
        rest = f'{time.time_ns():016x}{secrets.token_hex(1)}'
        # The digits for the version and the variant belong to all UUIDs.
        return str(uuid.UUID(hex=f'{self.mark}8{rest[:3]}8{rest[3:]}'))

    def began(self, execution_id: str) -> bool:
        plain = execution_id.replace('-', '')
        return bool(self.mark) and plain.startswith(self.mark)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WantedDefinition:
    """A definition and the names that it gets in Mistral.

    :ivar defaults: of inputs, for every run of whatever declares them.
    """

    definition: definition_reading.Definition
    names: Mapping[str, str]
    book: str | None
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        definition: definition_reading.Definition,
        stack: str,
        resource: str,
        explicit: str | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> 'WantedDefinition':
        where = (definition, stack, resource, explicit)
        return cls(
            definition=definition,
            names=workflow_names(*where),
            book=book_name(*where) if definition.workbook else None,
            defaults=defaults or {},
        )

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of a workbook's actions in Mistral."""
        return tuple(
            f'{self.book}.{action}' for action in self.definition.actions
        )

    def text(self, only: Collection[str] | None = None) -> str:
        """Return what Mistral is given, of some of the workflows or all."""
        if self.book is not None:
            return renaming.render_book(
                self.definition, self.book, self.defaults
            )
        return renaming.render(
            self.definition, self.names, only, self.defaults
        )


def once(*names: str) -> tuple[str, ...]:
    """Return names in their order, without those that came before."""
    return tuple(dict.fromkeys(names))


#: The most characters that Mistral takes.
NAME_LIMIT: Final = 255

_DIGITS: Final = 10


def workflow_names(
    definition: definition_reading.Definition,
    stack: str,
    resource: str,
    explicit: str | None = None,
) -> dict[str, str]:
    """Return the name in Mistral for each name in the definition.

    :param explicit: what the template says: the name of an only workflow,
        or what the names of several begin with.
    """
    shorts = list(definition.workflows)
    if definition.workbook:
        # Mistral itself joins these two names.
        book = book_name(definition, stack, resource, explicit)
        return {short: f'{book}.{short}' for short in shorts}
    if explicit and len(shorts) == 1:
        return {shorts[0]: explicit}
    first = explicit or f'{stack}.{resource}'
    return {short: _fit(f'{first}.{short}', NAME_LIMIT) for short in shorts}


def book_name(
    definition: definition_reading.Definition,
    stack: str,
    resource: str,
    explicit: str | None = None,
) -> str:
    """Return the name of a workbook in Mistral.

    It is so short that the longest name in the workbook still fits.
    """
    members = [*definition.workflows, *definition.actions]
    longest = max(len(member) for member in members)
    first = explicit or f'{stack}.{resource}'
    return _fit(first, max(NAME_LIMIT - 1 - longest, _DIGITS + 1))


def _fit(name: str, limit: int) -> str:
    """Make a name fit; what is changed gets a hash of what it was.

    Mistral reads the call of a workflow up to the first blank, bracket or
    equals sign, all of which Heat allows in the name of a resource.
    """
    fitting = re.sub(r'[^\w.-]', '_', name)
    if fitting == name and len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f'{fitting[: limit - _DIGITS - 1]}-{digest}'
