# SPDX-License-Identifier: Apache-2.0
"""What our deployment groups do that Heat's do not."""

from collections import abc
import dataclasses
from typing import TYPE_CHECKING, Any, TypeAlias

from heat.common.i18n import _
from heat.engine import resource
from heat.engine import rsrc_defn
from heat.engine.resources.openstack.heat import value
from heat.objects import stack as stack_objects

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.deployments import rollout
from heat_plugins.engine import callers
from heat_plugins.engine import run_room
from heat_plugins.engine import server_fleets
from heat_plugins.engine.database import rows
from heat_plugins.resources import bases
from heat_plugins.resources.software import deployment_schema
from heat_plugins.signals import presigned
from heat_plugins.signals import signal_names

LOG = foreign.logger(__name__)

# What Heat does first in the stack of the members, and what it does last.
_FIRST = 'before_all_members'
_LAST = 'after_all_members'

# Their type. An environment may map it to another.
_VALUE = 'OS::Heat::Value'


if TYPE_CHECKING:
    from heat.engine.resources.openstack.heat import resource_group

    _Group: TypeAlias = resource_group.ResourceGroup
else:
    _Group = object


class GroupMixin(_Group):
    """Goes before one of Heat's deployment groups."""

    def validate(self) -> None:
        """Validate as Heat does, and refuse options that this cloud lacks."""
        super().validate()
        # There may be no member yet that would raise this.
        deployment_schema.check(self, self.SERVERS)

    def _assemble_nested(
        self, names: abc.Iterable[str], *args: object, **kwargs: object
    ) -> Any:
        """Return the template of the members, all of which begin at once.

        Of what needs nothing else Heat begins one each second, and it deletes
        one each second of what nothing else needs: of 200 members the last
        began three minutes after the first.
        """
        template = super()._assemble_nested(names, *args, **kwargs)
        members = template.t.get(template.RESOURCES) or {}
        # Heat fills batches from the members that it has, and takes what the
        # template has of them. Whether that is ours or Heat's own class, it
        # must not find more in there than members.
        taken = {_FIRST, _LAST}.intersection(members)
        env, files = self.stack.env, self.stack.t.files
        if (
            members
            and not taken
            and issubclass(env.get_class(_VALUE, files=files), value.Value)
            and not any(
                self.update_policy.get(each)
                for each in (self.BATCH_CREATE, self.ROLLING_UPDATE)
            )
        ):
            for member in members.values():
                member[template.RES_DEPENDS_ON] = [_FIRST]
            for name, needs in ((_FIRST, []), (_LAST, list(members))):
                template.add_resource(
                    rsrc_defn.ResourceDefinition(
                        name, _VALUE, {'value': ''}, depends=needs
                    )
                )
        return template

    def _assemble_for_rolling_update(
        self, *args: object, **kwargs: object
    ) -> Any:
        """Return the template of a batch, which is of members alone.

        Heat's outputs name those of later batches, too.
        """
        template = super()._assemble_for_rolling_update(*args, **kwargs)
        members = template.t.get(template.RESOURCES) or {}
        for member in members.values():
            # The update has set the policy.
            member.pop(template.RES_DEPENDS_ON, None)
        for output in (template.t.get(template.OUTPUTS) or {}).values():
            shown = output[template.OUTPUT_VALUE]
            output[template.OUTPUT_VALUE] = {
                name: each for name, each in shown.items() if name in members
            }
        return template

    def _name_skiplist(self) -> set[str]:
        """Return the names in the stack of the members that are no member."""
        return {_FIRST, _LAST}.difference(self.properties[self.SERVERS])

    def get_resource_def(self, include_all: bool = False) -> Any:
        """Return the properties of a member; those that are set.

        Heat hands on all of them, and in a template a number that is null
        is 0: no time at all, in the case of ``timeout``. Of ours a type that
        an environment has put in the place of Heat's may know none.
        """
        properties = super().get_resource_def(include_all)
        absent = deployment_schema.OURS - self.properties.data.keys()
        return {
            k: v
            for k, v in properties.items()
            if v is not None and k not in absent | deployment_schema.OF_GROUP
        }

    def handle_signal(self, details: object) -> str:
        """Start a run with a target for each member."""
        room = run_room.room()
        if isinstance(
            details, presigned.Presigned
        ) and not room.looks_like_one(details):
            # What a member waits for has been taken before Heat knows of it.
            LOG.info('%s: ignoring a late result of a member', self)
            raise resource.NoActionRequired(self.name, _('it is late'))
        try:
            wanted = room.read(details)
            if wanted is None:
                raise errors.Refused(
                    _(
                        'a group accepts only signals that start an action: '
                        '{"trigger": "<action>"} or {"run": {…}}'
                    )
                )
            callers.check_may_start(
                callers.of(self.stack),
                servers_may=deployment_schema.permits_servers(self),
            )
            return str(room.start(self, wanted, self.deployments()))
        except Exception as exc:
            raise bases.refused(self, exc) from exc

    def deployments(self) -> list[Any]:
        """Return its members, on which a signal starts runs."""
        nested, skipped = self.nested(), self._name_skiplist()
        return [
            member
            for member in (nested or {}).values()
            if member.name not in skipped
        ]


@dataclasses.dataclass(kw_only=True)
class Nesting:
    """The update of a group that gets a nested stack.

    :ivar update: what Heat has called ``handle_update`` with.
    :ivar checkers: what Heat checks of the update, once the nested stack is
        there.
    """

    update: abc.Sequence[Any]
    checkers: Any = None


class Nestable(_Group):
    """The part of a group that gives it a nested stack; servers run nothing.

    The nested stack has the members of the group as they are: each takes over
    the row that its member has. The group's data say so until all have, for
    engines that continue this after a crash.
    """

    def _nest(self, *update: object) -> Nesting:
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
        return Nesting(update=update)

    def _stack_kwargs(
        self, user_params: Any, *args: object, **kwargs: object
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
            if change.checkers is None:
                if not self.check_create_complete(None):
                    return False
                change.checkers = self.handle_update(*change.update)
            change = change.checkers
        done = super().check_update_complete(change)
        if done and deployment_schema.FORMER_GROUP in self.data():
            self.data_delete(deployment_schema.FORMER_GROUP)
            # Members note it themselves, and have users of their own.
            self.data_delete(rows.CONTAINER_KEY)
            self._delete_user()
        return done

    def check_delete_complete(self, *args: object) -> Any:
        """Say whether all is gone, with rows that no member has taken."""
        if not super().check_delete_complete(*args):
            return False
        former = self.data().get(deployment_schema.FORMER_GROUP)
        if former is not None and not signal_names.is_group(self.resource_id):
            fleet = server_fleets.ServerFleet(
                self, self.member_properties, former
            )
            rollout.remove(fleet, fleet.all())
        self._delete_user()
        return True
