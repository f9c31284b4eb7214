# SPDX-License-Identifier: Apache-2.0
"""How a signal starts runs on the members of a group without nested stack."""

from typing import TYPE_CHECKING, Any, TypeAlias

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.engine import transports
from heat_plugins.engine.runs import run_ledgers
from heat_plugins.engine.runs import triggering
from heat_plugins.resources.software import group_members
from heat_plugins.runs import summary

LOG = foreign.logger(__name__)

if TYPE_CHECKING:
    _Base: TypeAlias = Any
else:
    _Base = object


class Triggers(_Base):
    """The part of a group that starts runs on its members."""

    def deployments(self) -> Any:
        """Return its members, on which a signal starts runs."""
        if not self._is_one():
            return super().deployments()
        with self.frozen_properties():
            # Outside of an action Heat resolves nothing for a template.
            properties = self.get_resource_def()
        return [
            group_members.make(self, state.member, properties)
            for state in self.states().values()
            # A server that was given nothing has no action to run.
            if state and state.row.server_id == state.member.server_id
        ]

    def _runs_of(self, states: Any) -> Any:
        """Return what has become of the last runs of each member."""
        ids = {key: state.row.id for key, state in states.items() if state}
        if not ids:
            return {key: [] for key in states}
        hub = transports.hub_for(self)
        ledger = run_ledgers.ledger_for(self, hub, None)
        try:
            found = hub.call(
                self.stack,
                lambda: ledger.latest_of(
                    hub.root_stack_id, ids.values(), triggering.SHOWN
                ),
            )
        except errors.Error as exc:
            # No stack is to fail of this.
            LOG.info(
                '%(group)s: cannot show the runs of its members: %(error)s',
                {'group': self.label, 'error': exc},
            )
            return dict.fromkeys(states)
        return {
            key: [summary.of(run) for run in found[ids[key]]]
            if key in ids
            else []
            for key in states
        }
