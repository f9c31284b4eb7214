# SPDX-License-Identifier: Apache-2.0
"""Create, change and remove the workflows of a definition in Mistral.

The record lists each object before Mistral is asked to create it, so that it
can be removed after a crash.

Mistral deletes no workflow that a cron trigger runs. So such triggers are
looked up before any change. Those of the same stack change with the stack; a
workflow with triggers of others stays as it is, and so do these triggers.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
import contextlib
import dataclasses
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins.mistral import workflow_service
from heat_plugins.mistral.definitions import definition_records

#: Given names of cron triggers, returns those that the same stack has made.
Mine = Callable[[Collection[str]], Collection[str]]


def refuse_if_triggered(
    service: workflow_service.WorkflowService,
    names: Collection[str],
    mine: Mine,
) -> Mapping[str, str]:
    """Refuse to remove workflows that other users' triggers run.

    :returns: the workflow for each trigger of the same stack.
    :raises errors.Conflict: it names the triggers of others.
    """
    triggers = service.triggers(names) if names else {}
    own = mine(triggers) if triggers else ()
    others = {
        trigger: triggers[trigger]
        for trigger in triggers
        if trigger not in own
    }
    if others:
        raise errors.Conflict(explain_triggers(others))
    return triggers


def explain_triggers(triggers: Mapping[str, str]) -> str:
    """Return why workflows cannot be removed, and the remedy.

    :param triggers: the workflow for each trigger.
    """
    listed = bounds.listed(
        [f'"{name}" ({workflow})' for name, workflow in triggers.items()]
    )
    return (
        'Mistral refuses to delete a workflow that a cron trigger runs. '
        'Delete these triggers, or let them run other workflows, then retry: '
        f'{listed}'
    )


LOG = foreign.logger(__name__)


class ConflictError(Exception):
    """A name is taken."""


Save = Callable[[definition_records.DefinitionRecord], None]


class Publisher:
    """Creates, changes and removes definitions in Mistral.

    :param save: stores a record so that it outlives this process.
    :param retry_seconds: for how long it retries after temporary failures.
    :param mine: returns which cron triggers the same stack has created.
    """

    def __init__(
        self,
        service: workflow_service.WorkflowService,
        save: Save,
        retry_seconds: float = 15,
        mine: Mine = lambda names: (),
    ) -> None:
        self._service = service
        self._save = save
        self._retry_seconds = retry_seconds
        self._mine = mine

    def bring(
        self,
        record: definition_records.DefinitionRecord,
        wanted: definition_records.WantedDefinition,
    ) -> definition_records.DefinitionRecord:
        """Create or change what is wanted in Mistral; return the new record.

        :raises ConflictError: a name belongs to another object.
        :raises errors.ServiceError: Mistral has failed. New objects have been
            removed as far as Mistral allows; existing ones are unchanged.
        """
        names = set(wanted.names.values())
        mine = {*record.names.values(), *record.left}
        there = self.persist(self._service.find, names)
        self._refuse_clashes(wanted, there, mine)
        dropped = _without(record.names.values(), names)
        self.persist(refuse_if_triggered, self._service, dropped, self._mine)
        book_there = bool(wanted.book) and self.persist(
            self._service.has_book, wanted.book
        )
        books = {record.book, *record.left_books}
        if book_there and wanted.book not in books:
            raise ConflictError(
                f'Mistral has a workbook "{wanted.book}" already, which does '
                'not belong to this resource; choose another name'
            )
        new = [
            short
            for short, name in wanted.names.items()
            if not (name in there and there[name].own)
        ]
        begun = dataclasses.replace(
            record,
            left=definition_records.once(
                *record.left, *(wanted.names[short] for short in new)
            ),
            left_actions=definition_records.once(
                *record.left_actions, *wanted.actions
            ),
            left_books=definition_records.once(
                *record.left_books, *([wanted.book] if wanted.book else [])
            ),
        )
        self._save(begun)
        try:
            if wanted.book:
                self._bring_book(wanted, wanted.book, book_there)
            else:
                self._bring_workflows(wanted, new)
        except errors.ServiceError:
            self._undo(begun, record)
            raise
        return self._settle(begun, record, wanted)

    def _refuse_clashes(
        self,
        wanted: definition_records.WantedDefinition,
        there: Mapping[str, workflow_service.Found],
        mine: set[str],
    ) -> None:
        for name in wanted.names.values():
            if name not in there or name in mine:
                continue
            if there[name].own:
                raise ConflictError(
                    f'Mistral has a workflow "{name}" already, which does '
                    'not belong to this resource; choose another name or a '
                    'namespace'
                )
            raise ConflictError(
                f'there is a public workflow "{name}" of another project in '
                'Mistral, so it would be unclear which of the two runs; '
                'choose another name'
            )

    def _bring_workflows(
        self, wanted: definition_records.WantedDefinition, new: list[str]
    ) -> None:
        old = [short for short in wanted.names if short not in new]
        if new:
            names = {wanted.names[short] for short in new}
            self._create(wanted.text(new), names)
        if old:
            self.persist(self._service.update, wanted.text(old))

    def _create(self, text: str, names: set[str]) -> None:
        asked_before = False

        def create() -> None:
            nonlocal asked_before
            # The request may have succeeded although its answer got lost.
            if asked_before:
                existing = self._service.find(names)
                if all(
                    name in existing and existing[name].own for name in names
                ):
                    return
            asked_before = True
            self._service.create(text)

        self.persist(create)

    def _bring_book(
        self,
        wanted: definition_records.WantedDefinition,
        name: str,
        there: bool,
    ) -> None:
        text = wanted.text()

        def bring() -> None:
            if there or self._service.has_book(name):
                self._service.update_book(text)
            else:
                self._service.create_book(text)

        self.persist(bring)

    def _undo(
        self,
        begun: definition_records.DefinitionRecord,
        before: definition_records.DefinitionRecord,
    ) -> None:
        """Remove new objects; those that remain stay in the record."""
        new = definition_records.DefinitionRecord(
            left=_without(begun.left, (*_values(before), *before.left)),
            left_actions=_without(
                begun.left_actions, (*before.actions, *before.left_actions)
            ),
            left_books=_without(
                begun.left_books, (before.book, *before.left_books)
            ),
        )
        try:
            new = self.sweep(new)
        except errors.ServiceError as error:
            _log_left(new, error)
        self._save(
            dataclasses.replace(
                before,
                left=(*before.left, *new.left),
                left_actions=(*before.left_actions, *new.left_actions),
                left_books=(*before.left_books, *new.left_books),
            )
        )

    def _settle(
        self,
        begun: definition_records.DefinitionRecord,
        before: definition_records.DefinitionRecord,
        wanted: definition_records.WantedDefinition,
    ) -> definition_records.DefinitionRecord:
        names = wanted.names.values()
        after = dataclasses.replace(
            begun,
            names=dict(wanted.names),
            book=wanted.book,
            actions=wanted.actions,
            left=_without((*begun.left, *_values(before)), names),
            left_actions=_without(
                (*begun.left_actions, *before.actions), wanted.actions
            ),
            left_books=_without(
                (*begun.left_books, *([before.book] if before.book else [])),
                [wanted.book],
            ),
            former=definition_records.once(*_values(before), *begun.former)[
                : definition_records.FORMER
            ],
        )
        after = dataclasses.replace(
            after, former=_without(after.former, names)
        )
        self._save(after)
        return self.tidy(after)

    def tidy(
        self, record: definition_records.DefinitionRecord
    ) -> definition_records.DefinitionRecord:
        """Remove dropped objects that are not in use; return the new record.

        Those that cannot be removed yet stay in the record until the next
        call.
        """
        try:
            # A running execution may still call it.
            if record.left and self._service.running(record.all_names):
                return record
            if refuse_if_triggered(self._service, record.left, self._mine):
                return record
            after = self.sweep(record)
        except errors.ServiceError as error:
            _log_left(record, error)
            return record
        if after != record:
            self._save(after)
        return after

    def sweep(
        self, record: definition_records.DefinitionRecord
    ) -> definition_records.DefinitionRecord:
        """Remove dropped objects; return the record of the rest.

        :raises errors.ServiceError: some of them cannot be removed.
        """
        for name in record.left_books:
            self._gone(self._service.delete_book, name)
        left = (
            self.persist(self._service.find, record.left)
            if record.left
            else {}
        )
        for workflow in left.values():
            if workflow.own:
                self._gone(self._service.delete, workflow.id)
        for name in record.left_actions:
            self._gone(self._service.delete_action, name)
        return dataclasses.replace(
            record, left=(), left_actions=(), left_books=()
        )

    def _gone(self, delete: Callable[[str], None], what: str) -> None:
        with contextlib.suppress(errors.NotFound):
            self.persist(delete, what)

    def persist(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a method of the service, and retry temporary failures."""
        return retrying.insist(
            function, *args, seconds=self._retry_seconds, wait=0.25, most=4
        )


def _log_left(
    record: definition_records.DefinitionRecord, error: Exception
) -> None:
    LOG.info(
        'Workflows %s are to go from Mistral later: %s',
        bounds.listed(record.left),
        error,
    )


def _values(record: definition_records.DefinitionRecord) -> tuple[str, ...]:
    return tuple(record.names.values())


def _without(
    names: Iterable[str], unwanted: Iterable[str | None]
) -> tuple[str, ...]:
    excluded = set(unwanted)
    return definition_records.once(
        *(name for name in names if name not in excluded)
    )
