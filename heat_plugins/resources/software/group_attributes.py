# SPDX-License-Identifier: Apache-2.0
"""What a group without nested stack shows of its members."""

import contextlib
from typing import Any

from heat.common import exception
from heat.common import timeutils
from heat.common.i18n import _
from heat.engine import attributes
from heat.objects import software_config as config_objects

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import tokens
from heat_plugins.configs import config_checking
from heat_plugins.engine import deriving
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import servers
from heat_plugins.engine.runs import run_ledgers
from heat_plugins.engine.runs import triggering
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import group_kinds
from heat_plugins.runs import summary

# What an attribute of the group is for a member.
_SHOWN = {
    'deploy_stdouts': 'deploy_stdout',
    'deploy_stderrs': 'deploy_stderr',
    'deploy_status_codes': 'deploy_status_code',
}

LOG = foreign.logger(__name__)


class Attributes(group_kinds.Kinds):
    """The part of a group that resolves its attributes."""

    def get_attribute(self, key: Any, *path: Any) -> Any:
        """Return a map of the members' values, by key.

        An output that the config declares comes before what we add.

        :raises exception.InvalidTemplateAttribute: there is no such one.
        """
        if self._is_one():
            return attributes.select_from_attribute(self._values(key), path)
        if key == deployment_schema.MEMBERS and not self._declares(key):
            return attributes.select_from_attribute(self._shown(), path)
        return super().get_attribute(key, *path)

    def _resolve_attribute(self, name: Any) -> Any:
        # For who asks the API; templates come by `get_attribute`.
        if self._is_one() or name == deployment_schema.MEMBERS:
            return self.get_attribute(name)
        return super()._resolve_attribute(name)

    def states(self) -> Any:
        """Return what is known of the members, by key.

        Their keys and servers are those of the rows: outside of an action,
        Heat does not resolve what the template refers to. None stands for a
        member that has been given nothing.
        """
        stored = deployment_rows.MemberRows(self.context, self.resource_id)
        # Of several of a key, one goes and the last one stays.
        shown = {state.member.key: state for state in stored.states()}
        return {
            key: shown.get(key) for key in self.properties[self.SERVERS] or {}
        }

    def _values(self, key: Any) -> Any:
        states = self.states()
        output = _SHOWN.get(key, key)
        if not self._is_output(output, states):
            ours = self._ours(key, states)
            if ours is None:
                raise exception.InvalidTemplateAttribute(
                    resource=self.name, key=key
                )
            return ours
        return {
            name: state and state.row.outputs.get(output)
            for name, state in states.items()
        }

    def _ours(self, key: Any, states: Any) -> Any:
        """Return the map of an attribute that is no output, or None."""
        if key == deployment_schema.MEMBERS:
            return self._shown()
        if key == deployment_schema.TRIGGER_URL:
            return dict.fromkeys(states)
        if key == deployment_schema.RUNS_ATTR:
            return self._runs_of(states)
        if key == deployment_schema.TRANSPORT_ATTR:
            return {
                name: state and state.row.transport
                for name, state in states.items()
            }
        return None

    def _runs_of(self, states: Any) -> Any:
        """Return what has become of the last runs of each member."""
        ids = {key: state.row.id for key, state in states.items() if state}
        if not ids:
            return {key: [] for key in states}
        hub = transports.hub_for(self)
        ledger = run_ledgers.ledger_for(self, hub, None)
        try:
            latest = hub.call(
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
            key: [summary.of(run) for run in latest[ids[key]]]
            if key in ids
            else []
            for key in states
        }

    def _is_output(self, name: Any, states: Any) -> Any:
        return (
            name in config_checking.BUILT_IN_OUTPUTS
            or any(
                state
                and any(
                    output['name'] == name
                    for output in state.row.config.outputs
                )
                for state in states.values()
            )
            or self._declares(name)
        )

    def _declares(self, output: Any) -> Any:
        """Say whether the template's config declares an output."""
        config = None
        with contextlib.suppress(exception.NotFound):
            config = config_objects.SoftwareConfig.get_by_id(
                self.context, self.properties[self.CONFIG]
            )
        declared = config.config['outputs'] if config else ()
        return any(each['name'] == output for each in declared or ())

    def _shown(self) -> Any:
        states = self.states()
        return {name: _shown(state) for name, state in states.items()}

    def check_members(self) -> Any:
        """Check that the members have rows, and their servers exist.

        :raises exception.Error: it names those that have not.
        """
        states = self.states()
        ids = {state.member.server_id for state in states.values() if state}
        known = resources.find_all(self.context, ids)
        # While a stack is adopted there may be no config yet.
        runs_create = any(states.values())
        with self.rpc_client().ignore_error_by_name('NotFound'):
            runs_create = self.runs(deriving.load_source(self), self.CREATE)
        missing = [
            key for key, state in states.items() if runs_create and not state
        ]
        there = servers.Servers(
            self, transports.root_stack_id(self)
        ).all_there(known.values())
        gone = [
            key
            for key, state in states.items()
            if state and state.member.server_id not in there
        ]
        rows.mark_unhealthy(self.context, [states[key].row.id for key in gone])
        for keys, reason in (
            (missing, _('These members have no deployment: %s')),
            (gone, _('The servers of these members do not exist: %s')),
        ):
            if keys:
                raise exception.Error(reason % bounds.listed(keys))

    def check_adoptable(self, allowed: Any) -> Any:
        """Check that no member waits, and not too many have failed.

        :param allowed: how many may.
        :raises exception.Error: it names those that keep it from that.
        """
        rows = {
            key: state.row for key, state in self.states().items() if state
        }
        waiting = [key for key, row in rows.items() if row.in_progress]
        failed = [
            key
            for key, row in rows.items()
            if row.status == heat_values.FAILED
        ]
        if waiting or len(failed) > allowed:
            raise exception.Error(
                _(
                    'Cannot adopt the group, because these members are not '
                    'COMPLETE: %s'
                )
                % bounds.listed(waiting + failed)
            )


def _shown(state: Any) -> Any:
    if state is None:
        return dict.fromkeys(
            (
                'server',
                'deployment',
                'config',
                'action',
                'status',
                'status_reason',
                'delivered_at',
                'ended_at',
            )
        )
    row = state.row
    return {
        'server': state.member.server_id,
        'deployment': row.id,
        # That of a server from which it was withdrawn is not the member's.
        'config': (
            row.config.id if row.server_id == state.member.server_id else None
        ),
        'action': row.action,
        'status': row.status,
        'status_reason': row.reason and tokens.shown(row.reason),
        'delivered_at': timeutils.isotime(state.delivered_at),
        'ended_at': (
            None if row.in_progress else timeutils.isotime(state.changed_at)
        ),
    }
