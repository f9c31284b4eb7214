# SPDX-License-Identifier: Apache-2.0
"""End the executions of a resource that goes away."""

from collections.abc import Collection, Iterator
import contextlib
import enum
import itertools
from typing import Final

from heat_plugins import errors
from heat_plugins.mistral import workflow_service as service_module
from heat_plugins.mistral.definitions import definition_records

#: Executions that are ended at a time.
AT_A_TIME: Final = 20

# One more says that some are left; those after it are not listed.
_LOOKED: Final = AT_A_TIME + 1


class Way(enum.Enum):
    """What happens to executions when their resource is deleted."""

    #: Those that the resource or a trigger of Mistral began are cancelled.
    CANCEL = 'cancel'
    #: All executions of its workflows are cancelled, those of others too.
    CANCEL_ALL = 'cancel_all'
    #: Those that run go on; what has finished is removed.
    LEAVE = 'leave'


def end(
    service: service_module.Service,
    record: definition_records.Record,
    way: Way,
    others: Collection[str] = (),
) -> bool:
    """End and remove some executions; return whether none are left.

    :param others: ids of executions that the resource began, and that do
        not bear its mark.
    """
    due = list(itertools.islice(_due(service, record, way, others), _LOOKED))
    for one in due[:AT_A_TIME]:
        if not one.finished:
            _cancel(service, one.id)
        with contextlib.suppress(errors.NotFound):
            service.delete_execution(one.id)
    return len(due) <= AT_A_TIME


def _due(
    service: service_module.Service,
    record: definition_records.Record,
    way: Way,
    others: Collection[str],
) -> Iterator[service_module.Begun]:
    """Yield the executions to end and remove."""
    for one in service.begun(record.all_names):
        # Mistral keeps a workflow as long as it has a trigger, so whatever
        # one began is over and done with.
        ours = record.began(one.id) or one.by_trigger or one.id in others
        if (ours or way is Way.CANCEL_ALL) and (
            one.finished or way is not Way.LEAVE
        ):
            yield one


def _cancel(service: service_module.Service, execution_id: str) -> None:
    try:
        service.cancel(execution_id)
    except errors.Unavailable:
        raise
    except errors.ServiceError:
        # It has finished, or was removed, just now.
        pass
