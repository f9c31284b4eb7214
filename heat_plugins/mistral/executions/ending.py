# SPDX-License-Identifier: Apache-2.0
"""End and delete the executions of a resource that is deleted."""

from collections.abc import Collection, Iterator
import contextlib
import enum
import itertools
from typing import Final

from heat_plugins import errors
from heat_plugins.mistral import workflow_service
from heat_plugins.mistral.definitions import definition_records

#: Executions that are ended at a time.
AT_A_TIME: Final = 20

# One more says that some are left; those after it are not listed.
_LOOKED: Final = AT_A_TIME + 1


class OnDelete(enum.Enum):
    """What happens to executions when their resource is deleted."""

    #: Those that the resource or a trigger of Mistral began are cancelled.
    CANCEL = 'cancel'
    #: All executions of its workflows are cancelled, also those of others.
    CANCEL_ALL = 'cancel_all'
    #: Running executions continue; finished ones are removed.
    LEAVE = 'leave'


def end(
    service: workflow_service.WorkflowService,
    record: definition_records.DefinitionRecord,
    on_delete: OnDelete,
    others: Collection[str] = (),
) -> bool:
    """End and delete some executions; return whether none remain.

    :param others: IDs of executions of the resource that lack its mark.
    """
    due = list(
        itertools.islice(_due(service, record, on_delete, others), _LOOKED)
    )
    for execution in due[:AT_A_TIME]:
        if not execution.finished:
            _cancel(service, execution.id)
        with contextlib.suppress(errors.NotFound):
            service.delete_execution(execution.id)
    return len(due) <= AT_A_TIME


def _due(
    service: workflow_service.WorkflowService,
    record: definition_records.DefinitionRecord,
    on_delete: OnDelete,
    others: Collection[str],
) -> Iterator[workflow_service.Begun]:
    """Yield the executions to end and delete."""
    for execution in service.begun(record.all_names):
        # Mistral keeps a workflow as long as it has a trigger, so whatever
        # one began is over and done with.
        ours = (
            record.began(execution.id)
            or execution.by_trigger
            or execution.id in others
        )
        if (ours or on_delete is OnDelete.CANCEL_ALL) and (
            execution.finished or on_delete is not OnDelete.LEAVE
        ):
            yield execution


def _cancel(
    service: workflow_service.WorkflowService, execution_id: str
) -> None:
    try:
        service.cancel(execution_id)
    except errors.Unavailable:
        raise
    except errors.ServiceError:
        # It has finished, or was removed, just now.
        pass
