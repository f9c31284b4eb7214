# SPDX-License-Identifier: Apache-2.0
"""What a check of a resource must know of other checks of it."""

from typing import Any

from heat.common import exception
from heat.objects import resource as resource_objects


def reject_stale_update(
    resource: Any, checked_for: tuple[Any, Any] | None
) -> None:
    """Raise if an update is not what is to be done any more.

    A check that meets another one at work tries again a moment later, and
    Heat lets it do what was to be done before. The server would be given the
    same UPDATE twice; and the stack, complete after the first, would fail of
    the template that the second still refers to, where the database looks at
    that.

    :param resource: of Heat.
    :param checked_for: the template that it is checked for, and the version
        of the row that was read for that; None without convergence.
    :raises exception.UpdateInProgress: another check does it, or has done so.
    """
    if checked_for is None:
        return
    template_id, version = checked_for
    if resource._atomic_key == version:
        return
    found = resource_objects.Resource.get_obj(
        resource.context, resource.id, refresh=True
    )
    is_done = (
        found.current_template_id == template_id and found.status == 'COMPLETE'
    )
    if is_done or (found.action, found.status) == ('CREATE', 'FAILED'):
        raise exception.UpdateInProgress(resource_name=resource.name)
