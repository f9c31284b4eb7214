# SPDX-License-Identifier: Apache-2.0
"""End the executions of a resource that goes away."""

from collections.abc import Callable, Collection
import enum
from typing import Final

from heat_plugins.workflows import records
from heat_plugins.workflows import service as service_module

#: So many executions are ended at a time.
AT_A_TIME: Final = 20


_Kind = service_module.Kind

# How Mistral tells that there is nothing to cancel any more.
_ENDED: Final = (_Kind.MISSING, _Kind.CONFLICT, _Kind.REFUSED)


class Way(enum.Enum):
    """What becomes of executions when their resource is deleted."""

    #: Those that the resource or a trigger of Mistral began are cancelled.
    CANCEL = 'cancel'
    #: Whatever runs its workflows is cancelled, whoever began it.
    CANCEL_ALL = 'cancel_all'
    #: Those that run go on; what has finished is removed.
    LEAVE = 'leave'


def end(
    service: service_module.Service,
    record: records.Record,
    way: Way,
    others: Collection[str] = (),
) -> bool:
    """End and remove some executions; return whether none are left.

    :param others: ids of executions that the resource began, and that do
        not bear its mark.
    """
    taken = 0
    for one in service.begun(record.all_names):
        # Mistral keeps a workflow as long as it has a trigger, so whatever
        # one began is over and done with.
        ours = record.began(one.id) or one.by_trigger or one.id in others
        if not ours and way is not Way.CANCEL_ALL:
            continue
        if not one.finished and way is Way.LEAVE:
            continue
        if taken == AT_A_TIME:
            return False
        taken += 1
        if not one.finished:
            # It may finish, or be removed, just now.
            _unless(service.cancel, one.id, *_ENDED)
        _unless(service.delete_execution, one.id, _Kind.MISSING)
    return True


def _unless(
    function: Callable[[str], None], what: str, *kinds: service_module.Kind
) -> None:
    try:
        function(what)
    except service_module.MistralError as error:
        if error.kind not in kinds:
            raise
