# SPDX-License-Identifier: Apache-2.0
"""The members of a group that is one resource, and what each must run.

A member has no record but its deployment's row. Its id begins with that of
its group and ends in a hash of its key and its server, so that one query
finds all rows of a group, and another server is another member. The ids of
the configs derived for members begin like that too: one that no row names
is a leftover.
"""

from collections import abc
import dataclasses
import functools
import hashlib
import json
import secrets

from heat_plugins.deployments import deliveries
from heat_plugins.deployments import updates
from heat_plugins.runs import orchestration
from heat_plugins.signals import group_ids

CREATE, UPDATE, DELETE = 'CREATE', 'UPDATE', 'DELETE'
SUSPEND, RESUME = 'SUSPEND', 'RESUME'

# The inputs that tell whose derived config it is.
_KEY_INPUT, _SERVER_INPUT = 'deploy_resource_name', 'deploy_server_id'


def new_config_id(group_id: str) -> str:
    """Return an id for a config of a member."""
    return group_ids.below(group_id, secrets.token_hex(8))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Member:
    """A member of a group.

    :ivar key: its name, by which the property ``servers`` has the server.
    """

    group_id: str
    key: str
    server_id: str

    @property
    def id(self) -> str:
        """The id of its deployment."""
        text = json.dumps([self.key, self.server_id])
        digest = hashlib.sha256(text.encode()).hexdigest()
        return group_ids.below(self.group_id, digest)

    @classmethod
    def of(cls, group_id: str, row: deliveries.Row) -> 'Member':
        """Return the member that a row is of."""
        inputs = row.inputs
        return cls(
            group_id=group_id,
            key=str(inputs.get(_KEY_INPUT)),
            server_id=str(inputs.get(_SERVER_INPUT)),
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """What a member must do.

    :ivar before: its row; None if it has none.
    :ivar delivers: whether its server must be given a config. Otherwise it
        has it, and only the result is missing.
    """

    member: Member
    action: str
    before: deliveries.Row | None
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
Draft = abc.Callable[[Member, str], orchestration.Draft]


def wanted(group_id: str, servers: abc.Mapping[str, str]) -> dict[str, Member]:
    """Return the members that a template asks for, by id."""
    found = [
        Member(group_id=group_id, key=key, server_id=server_id)
        for key, server_id in servers.items()
    ]
    return {member.id: member for member in found}


def to_update(
    members: abc.Mapping[str, Member],
    rows: abc.Mapping[str, deliveries.Row],
    update: updates.Update,
    draft: Draft,
    known: abc.Container[str] = (),
) -> list[Task]:
    """Return what the wanted members must do to be up to date.

    That serves CREATE too, where there are no rows, or those that a dead
    engine has left.

    :param known: the ids of those that were members before. If their config
        does not run CREATE they may have no row, and still run UPDATE.
    """
    first = CREATE if update.runs(CREATE) else UPDATE
    tasks = []
    for member in members.values():
        row = rows.get(member.id)
        step = update.step(
            row,
            functools.partial(draft, member),
            first if member.id in known else CREATE,
        )
        if step is not None:
            tasks.append(
                Task(
                    member=member,
                    action=step.action,
                    before=row,
                    delivers=step.delivers,
                )
            )
    return tasks


def to_act(
    members: abc.Mapping[str, Member],
    rows: abc.Mapping[str, deliveries.Row],
    action: str,
    *,
    repeats: bool,
) -> list[Task]:
    """Return what members must do for SUSPEND, RESUME or another action.

    :param repeats: whether the action has failed before, and those that have
        completed it need not repeat it.
    """
    steps = {
        key: updates.repeated(action, rows.get(key), repeats=repeats)
        for key in members
    }
    return [
        Task(
            member=members[key],
            action=action,
            before=rows.get(key),
            delivers=step.delivers,
        )
        for key, step in steps.items()
        if step is not None
    ]


def to_undo(
    group_id: str, rows: abc.Mapping[str, deliveries.Row]
) -> list[Task]:
    """Return the DELETE of each member that goes and must still run it."""
    gone = {key: Member.of(group_id, row) for key, row in rows.items()}
    return to_act(gone, rows, DELETE, repeats=True)
