# SPDX-License-Identifier: Apache-2.0
"""A group without nested stack gets one, and its servers run nothing again.

The nested stack has the members of the group as they are: each takes over the
row that its member has. The group's data say so until all have, for engines
that continue this after a crash.
"""

from collections import abc
from typing import TYPE_CHECKING, Any, TypeAlias

from heat.objects import stack as stack_objects

from heat_plugins.deployments import rollout
from heat_plugins.engine import server_fleets
from heat_plugins.engine.database import rows
from heat_plugins.resources.software import deployment_schema
from heat_plugins.signals import signal_names

if TYPE_CHECKING:
    from heat.engine.resources.openstack.heat import resource_group

    _Group: TypeAlias = resource_group.ResourceGroup
else:
    _Group = object


class Nesting:
    """The update of a group that gets a nested stack.

    :param update: what Heat has called ``handle_update`` with.
    """

    def __init__(self, group: Any, update: abc.Sequence[Any]) -> None:
        self._group = group
        self._update = update
        # What Heat checks of the update, once the nested stack is there.
        self._checkers: Any = None

    def step(self) -> bool:
        """Say whether the nested stack is there, and up to date."""
        if self._checkers is None:
            if not self._group.check_create_complete(None):
                return False
            self._checkers = self._group.handle_update(*self._update)
        return bool(self._group.check_update_complete(self._checkers))


class Nestable(_Group):
    """The part of a group that gives it a nested stack."""

    def _nest(self, *update: Any) -> Nesting:
        """Create the nested stack, with the properties before the update."""
        self.data_set(deployment_schema.FORMER_GROUP, self.resource_id)
        name = self.physical_resource_name()
        # An engine that has died may have created it.
        there = stack_objects.Stack.get_by_name_and_owner_id(
            self.context, name, self.stack.id
        )
        if there is None:
            names = self._resource_names()
            self.create_with_template(self._assemble_nested(names), {})
        else:
            self.resource_id_set(there.id)
        return Nesting(self, update)

    def _stack_kwargs(
        self, user_params: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Tell members of the nested stack that rows may wait for them."""
        former = self.data().get(deployment_schema.FORMER_GROUP)
        if former is not None:
            hint = {deployment_schema.FORMER_GROUP: former}
            user_params = {'parameter_defaults': hint}
        return super()._stack_kwargs(user_params, *args, **kwargs)

    def check_update_complete(self, change: Any) -> Any:
        """Say whether the members are up to date."""
        if isinstance(change, Nesting):
            return change.step()
        done = super().check_update_complete(change)
        if done and deployment_schema.FORMER_GROUP in self.data():
            self.data_delete(deployment_schema.FORMER_GROUP)
            # Members note it themselves.
            self.data_delete(rows.CONTAINER_KEY)
        return done

    def check_delete_complete(self, *args: Any) -> Any:
        """Say whether all is gone, with rows that no member has taken."""
        if not super().check_delete_complete(*args):
            return False
        former = self.data().get(deployment_schema.FORMER_GROUP)
        if former is not None and not signal_names.is_group(self.resource_id):
            fleet = server_fleets.GroupFleet(self, former)
            rollout.remove(fleet, fleet.all())
        return True
