# SPDX-License-Identifier: Apache-2.0
"""The tasks of an action, and the port to its servers, rows and signals.

A `Fleet` is the server of one deployment, or the servers of a group. Its real
implementations are in `heat_plugins.engine`.

What servers must run is one rule for all deployments, from their rows alone. A
single deployment has one member, a group has one for each of its servers, and
a member that is a resource of a nested stack is a single deployment. An update
runs UPDATE if it changes what the server must run or how the server answers,
if a user has marked the deployment unhealthy, or if its last action has not
completed.

A member of a group has no record but its deployment's row. Its id begins with
that of its group and ends in a hash of its key and its server, so that one
query finds all rows of a group, and another server is another member. The ids
of the configs derived for members begin like that too: one that no row names
is a leftover.
"""

from collections import abc
import dataclasses
import hashlib
import json
import secrets
from typing import Protocol

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import wording
from heat_plugins.configs import actions
from heat_plugins.deployments import deliveries
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import live
from heat_plugins.signals import signal_names
from heat_plugins.signals import watcher

CREATE, UPDATE, DELETE = 'CREATE', 'UPDATE', 'DELETE'

# After one of these that has not completed, the server starts from nothing.
_FIRST = (CREATE, DELETE)

# The inputs that tell whose derived config it is.
_KEY_INPUT, _SERVER_INPUT = 'deploy_resource_name', 'deploy_server_id'

#: The properties of Heat's own classes whose change runs UPDATE, as it does
#: there. A transport counts if it is not the one that the server has.
PROPERTIES = frozenset({'actions', 'config', 'input_values', 'name'})

# Inputs that differ from one delivery of the same to the next.
_OF_ONE_DELIVERY = (
    body.REPORT_INPUTS
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Member:
    """A server and the deployment on it.

    :ivar id: of the deployment.
    :ivar key: the name of the resource; in a group, the name by which the
        property ``servers`` has the server.
    """

    id: str
    key: str
    server_id: str

    @classmethod
    def of_group(cls, group_id: str, key: str, server_id: str) -> 'Member':
        """Return the member of a group that a server is."""
        text = json.dumps([key, server_id])
        digest = hashlib.sha256(text.encode()).hexdigest()
        return cls(
            id=signal_names.id_in_group(group_id, digest),
            key=key,
            server_id=server_id,
        )

    @classmethod
    def of_row(cls, row: heat_values.DeploymentRow) -> 'Member':
        """Return the member of a group that a row is of.

        Its own server may have been taken from the row.
        """
        inputs = row.inputs
        return cls(
            id=row.id,
            key=str(inputs.get(_KEY_INPUT)),
            server_id=str(inputs.get(_SERVER_INPUT)),
        )


def new_config_id(deployment_id: str) -> str:
    """Return an id for a config that belongs to a deployment."""
    return signal_names.id_in_group(deployment_id, secrets.token_hex(8))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """The next action of a member.

    :ivar before: its row; None if it has none.
    :ivar delivers: whether its server must be given a config. Otherwise it
        has it, and only the result is missing.
    """

    member: Member
    action: str
    before: heat_values.DeploymentRow | None
    delivers: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why a member can be given nothing.

    :ivar fails: whether that is a failure; a DELETE continues without it.
    """

    task: Task
    reason: str
    fails: bool = True


#: Returns what a member would be given for an action.
Draft = abc.Callable[[Member, str], heat_values.DerivedConfig]


def repeated(
    member: Member,
    row: heat_values.DeploymentRow | None,
    action: str,
    *,
    repeats: bool,
) -> Task | None:
    """Return the task of a member for SUSPEND, RESUME or another action.

    :param repeats: whether the action has failed before; a server that has
        completed it then runs nothing.
    :returns: None if it has.
    """
    task = Task(member=member, action=action, before=row)
    if row is None or row.action != action:
        return task
    if repeats and row.status == heat_values.COMPLETE:
        return _untold(member, row)
    return dataclasses.replace(task, delivers=not row.is_awaitable)


def _untold(member: Member, row: heat_values.DeploymentRow) -> Task | None:
    """Return the task that reports the end of a failed action.

    Without a signal, that says nothing: the engine that wrote the row may
    have died before it told the server.
    """
    return None if row.is_signalled else _resumed(member, row)


def _resumed(member: Member, row: heat_values.DeploymentRow) -> Task:
    """Return the task to go on waiting for what a server was given."""
    return Task(member=member, action=row.action, before=row, delivers=False)


def is_resumable(row: heat_values.DeploymentRow | None) -> bool:
    """Say whether a failed CREATE resumes in place, as its row can tell.

    Its engine has died: it withdraws what it cancels, and fails what fails.
    """
    return (
        row is not None
        and row.action == CREATE
        and not row.is_heats
        and row.status in (heat_values.IN_PROGRESS, heat_values.COMPLETE)
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Update:
    """The wanted state of an update's members.

    :ivar runs: says whether servers run anything for an action.
    :ivar transport: the canonical name.
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

    def task(
        self,
        member: Member,
        row: heat_values.DeploymentRow | None,
        draft: Draft,
        absent: str,
    ) -> Task | None:
        """Return the task of a member; None if it is up to date.

        :param row: of its deployment, or None.
        :param absent: the action that replaces a missing row.
        """

        def asked(action: str) -> Task | None:
            task = Task(member=member, action=action, before=row)
            return task if self.runs(action) else None

        if row is None:
            return asked(absent)
        if row.status == heat_values.COMPLETE and row.action != DELETE:
            if row.is_unhealthy:
                return asked(UPDATE) or asked(CREATE)
            # Heat says what has changed since the last update, if that has
            # succeeded.
            is_known = self.changed is not None and self.is_after_update
            is_up_to_date = (
                self._has_transport(row)
                and PROPERTIES.isdisjoint(self.changed or ())
                and (is_known or is_given(row, draft(member, row.action)))
            )
            if is_up_to_date:
                return _untold(member, row) if self.changed is None else None
            return asked(UPDATE)
        if (
            row.is_awaitable
            and row.action in (CREATE, UPDATE)
            and self._has_transport(row)
            and is_given(row, draft(member, row.action))
        ):
            return _resumed(member, row)
        if row.action in _FIRST:
            return asked(CREATE)
        # One that was withdrawn has nothing.
        return asked(UPDATE) or (asked(CREATE) if row.is_withdrawn else None)

    def _has_transport(self, row: heat_values.DeploymentRow) -> bool:
        """Say whether a server answers by the transport of the template."""
        if self.transport == heat_values.AUTO:
            return row.is_signalled
        return heat_values.canonical(str(row.transport)) == self.transport


def is_given(
    row: heat_values.DeploymentRow, draft: heat_values.DerivedConfig
) -> bool:
    """Return whether a server's config equals the one derived now."""
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


def refreshed(
    given: heat_values.DerivedConfig, draft: heat_values.DerivedConfig
) -> heat_values.DerivedConfig:
    """Derive a server's config again, with its present signalling."""
    signalling = [
        each for each in given.inputs if each['name'] in _OF_ONE_DELIVERY
    ]
    return dataclasses.replace(
        draft, inputs=[*_lasting(draft.inputs), *signalling]
    )


def _lasting(
    inputs: abc.Iterable[abc.Mapping[str, object]],
) -> list[abc.Mapping[str, object]]:
    """Return inputs without those that each delivery has again."""
    return [each for each in inputs if each['name'] not in _OF_ONE_DELIVERY]


def wanted(group_id: str, servers: abc.Mapping[str, str]) -> dict[str, Member]:
    """Return the members that the template of a group asks for, by id."""
    members = [
        Member.of_group(group_id, key, server_id)
        for key, server_id in servers.items()
    ]
    return {member.id: member for member in members}


def to_update(
    members: abc.Mapping[str, Member],
    rows: abc.Mapping[str, heat_values.DeploymentRow],
    update: Update,
    draft: Draft,
    known: abc.Container[str] = (),
) -> list[Task]:
    """Return the tasks that bring a group's wanted members up to date.

    That serves CREATE too, where there are no rows, or those that a dead
    engine has left.

    :param known: the ids of those that were members before. If their config
        does not run CREATE they may have no row, and still run UPDATE.
    """
    first = CREATE if update.runs(CREATE) else UPDATE
    tasks = (
        update.task(
            member,
            rows.get(number),
            draft,
            first if number in known else CREATE,
        )
        for number, member in members.items()
    )
    return [*filter(None, tasks)]


def to_act(
    members: abc.Mapping[str, Member],
    rows: abc.Mapping[str, heat_values.DeploymentRow],
    action: str,
    *,
    repeats: bool,
) -> list[Task]:
    """Return the tasks of members for an action; see `repeated`."""
    tasks = (
        repeated(member, rows.get(number), action, repeats=repeats)
        for number, member in members.items()
    )
    return [*filter(None, tasks)]


def to_undo(rows: abc.Mapping[str, heat_values.DeploymentRow]) -> list[Task]:
    """Return the DELETE of each member that goes and must still run it."""
    leaving = {number: Member.of_row(row) for number, row in rows.items()}
    return to_act(leaving, rows, DELETE, repeats=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Withdrawal:
    """A config to withdraw from a server.

    :ivar config_id: of the action that must still be in progress.
    :ivar reason: why the action fails; None if the row goes, whatever it
        says.
    """

    deployment_id: str
    server_id: str
    config_id: str
    reason: str | None = None

    @classmethod
    def of_row(
        cls, row: heat_values.DeploymentRow, reason: str | None = None
    ) -> 'Withdrawal':
        """Return the withdrawal of a row's config from its server."""
        return cls(
            deployment_id=row.id,
            # A row that was taken from its server names another.
            server_id=Member.of_row(row).server_id,
            config_id=row.config.id,
            reason=reason,
        )


class Answers(Protocol):
    """The answers of servers, and their rows; see `Fleet` for the errors."""

    def read(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, heat_values.DeploymentRow]:
        """Read rows; those that are gone are left out."""

    def fetch(
        self, names: abc.Sequence[str]
    ) -> abc.Sequence[bytes | errors.ServiceError]:
        """Fetch signals, some at a time."""

    def discard(self, names: abc.Sequence[str]) -> None:
        """Delete signals that were taken, before long."""

    def settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.SignalOutcome]
    ) -> abc.Collection[watcher.Ticket]:
        """Store outcomes; return the tickets that still waited for theirs."""

    def begin(self, started: abc.Sequence[deliveries.Delivery]) -> None:
        """Write that servers have started."""


class Fleet(Answers, Protocol):
    """Servers, their rows, and the signals and the action of their stack.

    Each may raise `errors.ServiceError`; `errors.Unavailable` if the database
    does not answer, which may have written the change all the same.
    """

    @property
    def label(self) -> str:
        """The resource's names and IDs as the log shows them."""

    def server_name(self, member: Member) -> str:
        """Return the readable name of a member's server."""

    # What servers are given

    def derive(
        self, tasks: abc.Sequence[Task]
    ) -> abc.Sequence[deliveries.Delivery | Refusal]:
        """Derive the servers' configs, with the signalling of each.

        :raises failures.NoAnswer: no transport can be used.
        """

    def write(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Write configs and rows, all or none; delete unused configs."""

    def push(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Write the configs of rows to the metadata of their servers."""

    def request_stop(self, names: abc.Sequence[str]) -> None:
        """Ask servers to stop the actions of these tickets; log failures."""

    def withdraw(
        self, withdrawals: abc.Sequence[Withdrawal]
    ) -> abc.Collection[str]:
        """Take actions from their servers.

        :returns: the ids of the deployments whose action had not ended.
        """

    def erase(self, ids: abc.Collection[str]) -> None:
        """Delete rows that no server has, and the configs of none."""

    def gone(self, server_ids: abc.Collection[str]) -> abc.Collection[str]:
        """Return which servers no longer exist; doubt counts as no."""

    # How they answer

    def poll_queue(
        self, delivery: deliveries.Delivery
    ) -> heat_values.DeploymentRow | None:
        """Settle a deployment by the messages in its queue; return its row."""

    def key_holds(self, signer: keys.Signer) -> bool:
        """Say whether URLs of a signer still work."""

    # The stack

    def tell(self, action: str, reason: str) -> None:
        """Write an event of an action in progress, and log it; never fail."""

    def is_cancelled(self, since: float) -> bool:
        """Say whether the stack's action was cancelled or is rolled back.

        :param since: when the action began, by `time.monotonic`.
        """

    def renew_access(self) -> None:
        """Take other stored credentials, if the present ones were refused."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RolloutPace:
    """How fast an action goes from member to member.

    :ivar batch: members at a time; None: all.
    :ivar pause: seconds between two batches.
    :ivar allowed: how many members may fail.
    :ivar timeout: seconds for a member to answer; None: as the stack has.
    :ivar delivery_timeout: seconds for it to report the start; None: it
        need not.
    :ivar budget: seconds for which the object store or the database may fail.
    :ivar known_hooks: those that servers are known to have.
    """

    batch: int | None = None
    pause: float = 0.0
    allowed: int = 0
    timeout: float | None = None
    delivery_timeout: float | None = None
    budget: float = 300.0
    known_hooks: abc.Collection[str] = actions.HOOKS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Progress:
    """How far an action is, in members."""

    action: str
    all: int
    complete: int
    failed: int
    waiting: int
    started: int

    def __str__(self) -> str:
        members = wording.counted(self.all, 'member')
        parts = [f'{self.complete} of {members} complete']
        for number, what in (
            (self.failed, 'failed'),
            (self.waiting, 'waiting for their servers'),
            (self.started, 'of these started'),
        ):
            if number:
                parts.append(f'{number} {what}')
        return f'{self.action}: {", ".join(parts)}'
