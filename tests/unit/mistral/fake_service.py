# SPDX-License-Identifier: Apache-2.0
"""A Mistral in memory, with the rules of the real one and faults on order."""

from collections.abc import Collection, Iterator, Mapping
import contextlib
import itertools
from typing import Any

from heat_plugins import errors
from heat_plugins.mistral import workflow_service
from heat_plugins.mistral.definitions import definition_reading


def unavailable() -> errors.ServiceError:
    return errors.Unavailable('Mistral answers 503: busy')


class FakeService:
    """Implements :class:`service.Service`.

    :ivar workflows: the text of each workflow, by name.
    :ivar public: names of public workflows of other projects.
    :ivar clock: the workflow of each cron trigger.
    :ivar rows: the executions, as Mistral shows them.
    :ivar calls: (method, first argument) of every call.
    :ivar faults: (method, error, whether it is done nevertheless), taken
        one for each call of that method.
    """

    def __init__(self) -> None:
        self.workflows: dict[str, str] = {}
        self.public: set[str] = set()
        self.books: dict[str, str] = {}
        self.actions: set[str] = set()
        self.clock: dict[str, str] = {}
        self.rows: list[dict[str, Any]] = []
        self.calls: list[tuple[str, Any]] = []
        self.faults: list[tuple[str, errors.ServiceError, bool]] = []
        self.refuse: Any = lambda text, workbook: None
        self._times = itertools.count()

    @contextlib.contextmanager
    def _call(self, method: str, argument: Any) -> Iterator[None]:
        self.calls.append((method, argument))
        for fault in self.faults:
            if fault[0] == method:
                self.faults.remove(fault)
                if fault[2]:
                    yield
                raise fault[1]
        yield

    def methods(self) -> list[str]:
        return [method for method, _ in self.calls]

    def refusal(self, text: str, workbook: bool) -> str | None:
        with self._call('refusal', text):
            found = self.refuse(text, workbook)
        return found

    def find(
        self, names: Collection[str]
    ) -> Mapping[str, workflow_service.Found]:
        with self._call('find', tuple(names)):
            found = {
                name: workflow_service.Found(
                    id=f'id of {name}', name=name, own=name in self.workflows
                )
                for name in names
                if name in self.workflows or name in self.public
            }
        return found

    def create(self, text: str) -> None:
        with self._call('create', text):
            names = definition_reading.read(text).workflows
            if taken := names.keys() & self.workflows.keys():
                raise _refused(errors.Conflict, f'Duplicate entry {taken}')
            self.workflows.update(dict.fromkeys(names, text))

    def update(self, text: str) -> None:
        with self._call('update', text):
            names = definition_reading.read(text).workflows
            if missing := names.keys() - self.workflows.keys():
                raise _refused(errors.NotFound, f'not found {missing}')
            self.workflows.update(dict.fromkeys(names, text))

    def delete(self, workflow_id: str) -> None:
        with self._call('delete', workflow_id):
            name = workflow_id.removeprefix('id of ')
            if name in self.clock.values():
                raise _refused(errors.ServiceError, 'cron triggers associated')
            if self.workflows.pop(name, None) is None:
                raise _refused(errors.NotFound, 'not found')

    def has_book(self, name: str) -> bool:
        with self._call('has_book', name):
            found = name in self.books
        return found

    def create_book(self, text: str) -> None:
        with self._call('create_book', text):
            if definition_reading.read(text).book in self.books:
                raise _refused(errors.Conflict, 'Duplicate entry')
            self._fill(text)

    def update_book(self, text: str) -> None:
        with self._call('update_book', text):
            if definition_reading.read(text).book not in self.books:
                raise _refused(errors.NotFound, 'not found')
            self._fill(text)

    def _fill(self, text: str) -> None:
        book = definition_reading.read(text)
        assert book.book
        self.books[book.book] = text
        for name in book.workflows:
            self.workflows[f'{book.book}.{name}'] = text
        self.actions |= {f'{book.book}.{name}' for name in book.actions}

    def delete_book(self, name: str) -> None:
        with self._call('delete_book', name):
            if self.books.pop(name, None) is None:
                raise _refused(errors.NotFound, 'not found')

    def delete_action(self, name: str) -> None:
        with self._call('delete_action', name):
            if name not in self.actions:
                raise _refused(errors.NotFound, 'not found')
            self.actions.remove(name)

    def start(
        self,
        execution_id: str,
        name: str,
        workflow_input: Mapping[str, Any],
        params: Mapping[str, Any],
        description: str,
    ) -> None:
        with self._call('start', execution_id):
            if execution_id in [row['id'] for row in self.rows]:
                return
            if name not in self.workflows:
                raise _refused(errors.NotFound, f'Workflow not found [{name}]')
            self.add(name, id=execution_id, input=dict(workflow_input))
            self.rows[-1]['params'] = dict(params)
            self.rows[-1]['description'] = description

    def add(self, name: str, **values: Any) -> None:
        """Let somebody run a workflow."""
        number = next(self._times)
        self.rows.append(
            {
                'id': f'{number:032x}',
                'workflow_name': name,
                'state': 'RUNNING',
                'state_info': None,
                'input': {},
                'output': '{}',
                'created_at': f'2026-01-01 00:00:{number:02d}',
                'updated_at': None,
                **values,
            }
        )

    def triggers(self, names: Collection[str]) -> Mapping[str, str]:
        with self._call('triggers', tuple(names)):
            found = {
                trigger: name
                for trigger, name in self.clock.items()
                if name in names
            }
        return found

    def executions(
        self, names: Collection[str], limit: int
    ) -> list[dict[str, Any]]:
        with self._call('executions', tuple(names)):
            rows = [row for row in self.rows if row['workflow_name'] in names]
        return rows[::-1][:limit]

    def begun(self, names: Collection[str]) -> list[workflow_service.Begun]:
        with self._call('begun', tuple(names)):
            rows = [row for row in self.rows if row['workflow_name'] in names]
        return [
            workflow_service.Begun(
                id=row['id'],
                state=row['state'],
                by_trigger=row.get('by_trigger', False),
            )
            for row in rows
        ]

    def running(self, names: Collection[str]) -> bool:
        with self._call('running', tuple(names)):
            rows = [row for row in self.rows if row['workflow_name'] in names]
        return any(row['state'] == 'RUNNING' for row in rows)

    def cancel(self, execution_id: str) -> None:
        with self._call('cancel', execution_id):
            self._row(execution_id)['state'] = 'CANCELLED'

    def delete_execution(self, execution_id: str) -> None:
        with self._call('delete_execution', execution_id):
            self.rows.remove(self._row(execution_id))

    def _row(self, execution_id: str) -> dict[str, Any]:
        for row in self.rows:
            if row['id'] == execution_id:
                return row
        raise _refused(errors.NotFound, 'not found')


def _refused(
    kind: type[errors.ServiceError], said: str
) -> errors.ServiceError:
    return kind(f'Mistral says: {said}')
