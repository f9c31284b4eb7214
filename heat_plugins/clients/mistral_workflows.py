# SPDX-License-Identifier: Apache-2.0
"""Mistral's workflows and executions, through mistralclient."""

from collections.abc import Collection, Iterator, Mapping
import json
from typing import Any, Final

from heat_plugins import errors
from heat_plugins.clients import mistral_api
from heat_plugins.mistral import workflow_service
from heat_plugins.mistral.executions import outcome

#: Names per URL.
_NAMES: Final = 20


class Workflows:
    """The real `workflow_service.WorkflowService`.

    :param client: the result of ``mistralclient.api.client.client()``.

    Definitions must begin with ``version:`` or ``name:``: mistralclient reads
    a text that is a path or a URL as that file.
    """

    def __init__(self, client: Any, project: str, namespace: str = '') -> None:
        self._client = client
        self._project = project
        self._namespace = namespace

    def refusal(self, text: str, workbook: bool) -> str | None:
        client = self._client
        validate = (
            client.workbooks if workbook else client.workflows
        ).validate
        answer = mistral_api.ask(validate, text)
        if answer.get('valid'):
            return None
        return str(answer.get('error') or 'it is not valid')

    def find(
        self, names: Collection[str]
    ) -> dict[str, workflow_service.Found]:
        workflows: dict[str, workflow_service.Found] = {}
        for value in _any_of(names):
            for row in mistral_api.ask(
                self._client.workflows.list,
                name=value,
                namespace=f'eq:{self._namespace}',
                fields=['id', 'name', 'project_id'],
            ):
                # A system's workflows belong to no project.
                own = getattr(row, 'project_id', None) == self._project
                if own or row.name not in workflows:
                    workflows[row.name] = workflow_service.Found(
                        id=row.id, name=row.name, own=own
                    )
        return workflows

    def create(self, text: str) -> None:
        mistral_api.ask(self._client.workflows.create, text, self._namespace)

    def update(self, text: str) -> None:
        mistral_api.ask(self._client.workflows.update, text, self._namespace)

    def delete(self, workflow_id: str) -> None:
        mistral_api.ask(
            self._client.workflows.delete, workflow_id, self._namespace
        )

    def has_book(self, name: str) -> bool:
        try:
            mistral_api.ask(self._client.workbooks.get, name, self._namespace)
        except errors.NotFound:
            return False
        return True

    def create_book(self, text: str) -> None:
        mistral_api.ask(self._client.workbooks.create, text, self._namespace)

    def update_book(self, text: str) -> None:
        mistral_api.ask(self._client.workbooks.update, text, self._namespace)

    def delete_book(self, name: str) -> None:
        mistral_api.ask(self._client.workbooks.delete, name, self._namespace)

    def delete_action(self, name: str) -> None:
        mistral_api.ask(self._client.actions.delete, name, self._namespace)

    def start(
        self,
        execution_id: str,
        name: str,
        workflow_input: Mapping[str, Any],
        params: Mapping[str, Any],
        description: str,
    ) -> None:
        # mistralclient sends no id, and takes parameters of the execution
        # for its own where they have the same name.
        body = {
            'id': execution_id,
            'workflow_name': name,
            'workflow_namespace': self._namespace,
            'input': json.dumps(dict(workflow_input)),
            'params': json.dumps(dict(params)),
            'description': description,
        }
        mistral_api.ask(self._client.executions.begin, body)

    def triggers(self, names: Collection[str]) -> dict[str, str]:
        ids = {
            workflow.id
            for workflow in self.find(names).values()
            if workflow.own
        }
        return {
            row.name: row.workflow_name
            for value in _any_of(names)
            for row in mistral_api.ask(
                self._client.cron_triggers.list,
                workflow_name=value,
                fields=['name', 'workflow_name', 'workflow_id'],
            )
            # The same name may be there in other namespaces.
            if row.workflow_id in ids
        }

    def executions(
        self, names: Collection[str], limit: int
    ) -> list[dict[str, Any]]:
        rows = [
            row.to_dict()
            for value in _any_of(names)
            for row in mistral_api.ask(
                self._client.executions.list,
                workflow_name=value,
                nulls='task_execution_id',
                include_output=True,
                sort_keys='created_at,id',
                sort_dirs='desc,desc',
                limit=limit,
            )
            if (getattr(row, 'workflow_namespace', '') or '')
            == self._namespace
        ]
        rows.sort(
            key=lambda row: (str(row.get('created_at')), str(row.get('id'))),
            reverse=True,
        )
        return rows[:limit]

    def begun(
        self, names: Collection[str]
    ) -> Iterator[workflow_service.Begun]:
        for row in self._executions(names, nulls='task_execution_id'):
            yield workflow_service.Begun(
                id=row.id,
                state=row.state,
                by_trigger=_by_trigger(getattr(row, 'description', None)),
            )

    def running(self, names: Collection[str]) -> bool:
        return any(
            row.state not in outcome.FINISHED
            for row in self._executions(names)
        )

    def _executions(
        self, names: Collection[str], **filters: str
    ) -> Iterator[Any]:
        for value in _any_of(names):
            for row in mistral_api.each(
                self._client.executions.list,
                workflow_name=value,
                fields=['id', 'state', 'workflow_namespace', 'description'],
                sort_keys='created_at,id',
                **filters,
            ):
                space = getattr(row, 'workflow_namespace', '') or ''
                if space == self._namespace:
                    yield row

    def cancel(self, execution_id: str) -> None:
        mistral_api.ask(
            self._client.executions.update, execution_id, 'CANCELLED'
        )

    def delete_execution(self, execution_id: str) -> None:
        mistral_api.ask(
            self._client.executions.delete, execution_id, force=True
        )


# What begins executions that belong to the workflow.
_TRIGGERS = ('cron_trigger', 'event_trigger')


def _any_of(names: Collection[str]) -> Iterator[str]:
    """Return Mistral's filters for some names."""
    simple = sorted(name for name in names if ',' not in name)
    for start in range(0, len(simple), _NAMES):
        yield f'in:{",".join(simple[start : start + _NAMES])}'
    for name in names:
        if ',' in name:
            yield f'eq:{name}'


def _by_trigger(description: str | None) -> bool:
    """Say whether Mistral's description of an execution names a trigger."""
    cause = outcome.mapping(description).get('triggered_by')
    return outcome.mapping(cause).get('type') in _TRIGGERS
