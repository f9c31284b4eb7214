# SPDX-License-Identifier: Apache-2.0
"""The names in Mistral of a resource's workflows, present and wanted.

Mistral keeps the workflows of a project in one list, so two stacks from one
template need different names: ``<stack>.<resource>.<name in the definition>``,
as far as Mistral's language and its limit allow.
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
    """The objects in Mistral that belong to a resource.

    :ivar names: name in Mistral by name in the definition.
    :ivar book: the name of the workbook, if it is one.
    :ivar actions: its ad-hoc actions.
    :ivar left: workflows to remove, which may exist.
    :ivar left_actions: likewise for actions.
    :ivar left_books: likewise for workbooks.
    :ivar former: former names of workflows; executions may have them.
    :ivar mark: the prefix of the IDs of the resource's executions.
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
        """Return a record that lists all objects for removal."""
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
        """Return an ID for an execution that the resource starts.

        It begins with the mark, so the resource recognises its executions
        without a list of them: several engines may handle signals at the same
        time. The time follows, so later IDs sort after earlier ones; Mistral's
        own times have a resolution of one second.
        """
        rest = f'{time.time_ns():016x}{secrets.token_hex(1)}'
        # The digits for the version and the variant belong to all UUIDs.
        return str(uuid.UUID(hex=f'{self.mark}8{rest[:3]}8{rest[3:]}'))

    def began(self, execution_id: str) -> bool:
        plain = execution_id.replace('-', '')
        return bool(self.mark) and plain.startswith(self.mark)


@dataclasses.dataclass(frozen=True, kw_only=True)
class WantedDefinition:
    """A definition and its names in Mistral.

    :ivar defaults: of inputs, for every workflow that declares them.
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
        """Return the text for Mistral, of some or all workflows."""
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

    :param explicit: from the template: the name of a single workflow, or the
        prefix of the names of several.
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

    It leaves room for the longest name in the workbook.
    """
    members = [*definition.workflows, *definition.actions]
    longest = max(len(member) for member in members)
    first = explicit or f'{stack}.{resource}'
    return _fit(first, max(NAME_LIMIT - 1 - longest, _DIGITS + 1))


def _fit(name: str, limit: int) -> str:
    """Shorten and clean a name; a changed one gets a hash of the original.

    Mistral reads the call of a workflow up to the first blank, bracket or
    equals sign, all of which Heat allows in the name of a resource.
    """
    fitting = re.sub(r'[^\w.-]', '_', name)
    if fitting == name and len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f'{fitting[: limit - _DIGITS - 1]}-{digest}'
