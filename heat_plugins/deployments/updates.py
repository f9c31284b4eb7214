# SPDX-License-Identifier: Apache-2.0
"""What an update of a stack runs on a server; one rule for all deployments.

A single deployment, a member of a group, and a member that is a resource of a
nested stack ask here. An update runs UPDATE if it changes what the server must
run or how the server answers, if a user has marked the deployment unhealthy,
or if its last action has not completed.
"""

from collections import abc
import dataclasses

from heat_plugins.deployments import deliveries
from heat_plugins.runs import orchestration
from heat_plugins.signals import beginning
from heat_plugins.signals import live
from heat_plugins.signals import transport_names

CREATE, UPDATE, DELETE = 'CREATE', 'UPDATE', 'DELETE'

# After one of these that has not completed, the server starts from nothing.
_FIRST = (CREATE, DELETE)

#: The properties of Heat's own classes whose change runs UPDATE, as it does
#: there. A transport counts if it is not the one that the server has.
PROPERTIES = frozenset({'actions', 'config', 'input_values', 'name'})

# Inputs that differ from one delivery of the same to the next.
_OF_ONE_DELIVERY = (
    beginning.INPUTS
    | live.INPUTS
    | {
        'deploy_auth_url',
        'deploy_password',
        'deploy_project_id',
        'deploy_queue_id',
        'deploy_region_name',
        'deploy_signal_id',
        'deploy_signal_transport',
        'deploy_signal_verb',
        # An adopted stack has another one.
        'deploy_stack_id',
        'deploy_user_id',
        'deploy_username',
    }
)

#: Returns what a server would be given for an action.
Draft = abc.Callable[[str], orchestration.Draft]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """What one server must run.

    :ivar delivers: whether it must be given a config. Otherwise it has it,
        and only the result is missing.
    """

    action: str
    delivers: bool = True


def repeated(
    action: str, row: deliveries.Row | None, *, repeats: bool
) -> Step | None:
    """Return what a server must run for SUSPEND, RESUME or another action.

    :param repeats: whether the action has failed before; a server that has
        completed it then runs nothing.
    :returns: None if it has.
    """
    if row is None or row.action != action:
        return Step(action=action)
    if repeats and row.status == deliveries.COMPLETE:
        return _told(row)
    return Step(action=action, delivers=not row.is_awaitable)


def _told(row: deliveries.Row) -> Step | None:
    """Return what a server must run that has completed a failed action.

    Without a signal, that says nothing: the engine that wrote the row may
    have died before it told the server.
    """
    if row.is_signalled:
        return None
    return Step(action=row.action, delivers=False)


def is_resumable(row: deliveries.Row | None) -> bool:
    """Say whether a failed CREATE resumes in place, as its row can tell.

    Its engine has died: it withdraws what it cancels, and fails what fails.
    """
    return (
        row is not None
        and row.action == CREATE
        and not row.is_heats
        and row.status in (deliveries.IN_PROGRESS, deliveries.COMPLETE)
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Update:
    """What a template asks for.

    :ivar runs: says whether servers run anything for an action.
    :ivar transport: the canonical name; see `transport_names`.
    :ivar changed: the properties that the update changes. None if it repeats
        one that has failed: servers may have the change already, and are
        compared with what they would be given.
    :ivar is_after_update: whether the state before is that of an update or
        of the creation. After another action Heat no longer tells whether the
        last update has failed; servers are then compared, too.
    """

    runs: abc.Callable[[str], bool]
    transport: str
    changed: abc.Collection[str] | None
    is_after_update: bool = True

    def step(
        self, row: deliveries.Row | None, draft: Draft, absent: str
    ) -> Step | None:
        """Return what a server must run; None if it is up to date.

        :param row: of its deployment, or None.
        :param absent: the action that replaces a missing row.
        """
        if row is None:
            return self._if_runs(absent)
        if row.status == deliveries.COMPLETE and row.action != DELETE:
            if row.is_unhealthy:
                return self._if_runs(UPDATE) or self._if_runs(CREATE)
            if self._is_up_to_date(row, draft):
                return _told(row) if self.changed is None else None
            return self._if_runs(UPDATE)
        if self._is_at_work(row, draft):
            return Step(action=row.action, delivers=False)
        return self._if_runs(CREATE if row.action in _FIRST else UPDATE)

    def _if_runs(self, action: str) -> Step | None:
        return Step(action=action) if self.runs(action) else None

    def _is_up_to_date(self, row: deliveries.Row, draft: Draft) -> bool:
        if not self._has_transport(row):
            return False
        if not PROPERTIES.isdisjoint(self.changed or ()):
            return False
        if self.changed is not None and self.is_after_update:
            return True
        return _is_given(row, draft(row.action))

    def _is_at_work(self, row: deliveries.Row, draft: Draft) -> bool:
        return (
            row.is_awaitable
            and row.action in (CREATE, UPDATE)
            and self._has_transport(row)
            and _is_given(row, draft(row.action))
        )

    def _has_transport(self, row: deliveries.Row) -> bool:
        given = transport_names.canonical(str(row.transport))
        if self.transport == transport_names.AUTO:
            return given != transport_names.NO_SIGNAL
        return given == self.transport


def _is_given(row: deliveries.Row, draft: orchestration.Draft) -> bool:
    """Say whether a server was given what it would be given now."""
    given = row.config
    return (given.name, given.group, given.config, given.options or {}) == (
        draft.name,
        draft.group,
        draft.config,
        draft.options or {},
    ) and (_lasting(given.inputs), list(given.outputs or ())) == (
        _lasting(draft.inputs),
        list(draft.outputs or ()),
    )


def _lasting(
    inputs: abc.Iterable[abc.Mapping[str, object]],
) -> list[abc.Mapping[str, object]]:
    return [one for one in inputs if one['name'] not in _OF_ONE_DELIVERY]
