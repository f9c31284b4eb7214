# SPDX-License-Identifier: Apache-2.0
"""One member of an operation: what it is given, and what it answers."""

from collections import abc
import contextlib
import dataclasses
import threading
from typing import Any
import uuid

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import masking
from heat_plugins import stored
from heat_plugins import tokens
from heat_plugins.configs import hidden_inputs
from heat_plugins.deployments import deliveries
from heat_plugins.runs import attempts
from heat_plugins.runs import run_objects
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.start import orders
from heat_plugins.runs.start import targets
from heat_plugins.signals import live
from heat_plugins.signals import transport_names

# Bytes of what members print that are kept, unless it is said otherwise: of
# all together, and the least of each.
_LOGS, _LOG = 1_000_000_000, 1_000_000

# Seconds for which to believe what was found of targets; stacks are updated.
_FRESH = 120.0

# How the answer of a run comes: its config says where to.
_SIGNALLING = deliveries.Signalling(transport=transport_names.TEMP_URL_POLL)

# What the end of a run changes of its attempt.
_ENDED = ('state', 'reason', 'ended_at', 'outputs', 'cut', 'late')

# Names what Heat has of a run that an engine has delivered.
_NAMES = uuid.UUID('6c0f0d5e-3f0b-4c6e-9d52-7d1f2b8a4e10')


class MemberRuns:
    """Gives members of an operation their part; safe for threads.

    Those that change something return what changes of the attempt.

    :param order: of the operation.
    :param check: raises if another process may lead the operation.
    :param chosen: targets as they were chosen a moment ago, by deployment.
    :ivar attempts: what it delivers the runs with, and ends them.
    """

    def __init__(
        self,
        tools: services.Services,
        order: operations.OperationOrder,
        check: abc.Callable[[], None] = lambda: None,
        chosen: abc.Iterable[targets.Target] = (),
    ) -> None:
        self._tools = tools
        self._order = order
        self._check = check
        self.attempts = attempts.Attempts(
            tools, check, self._as_stack_has_it, is_proved=True
        )
        self._chosen = {each.deployment_id: each for each in chosen}
        self._fresh_until = tools.clock() + _FRESH
        self._sources: dict[str, heat_values.Config | None] = {}
        self._lock = threading.Lock()
        # By ID, as they were read for one delivery: what servers were given,
        # and what an engine has derived again.
        self._rows: abc.Mapping[str, heat_values.DeploymentRow] = {}
        self._derived: services.Derived | None = None

    def start(
        self, operation: operations.Operation, member: int
    ) -> dict[str, Any]:
        """Give a member its run.

        :raises errors.Error: Heat refuses it, or its inputs no longer fit.
        """
        run = overview.run_of(operation, member)
        return self._waiting(
            self.attempts.deliver(run, lambda: self._draft(run, member))
        )

    def _waiting(self, run: runs.Run) -> dict[str, Any]:
        return {**_given(run), 'started_at': int(self._tools.clock())}

    def start_together(
        self,
        operation: operations.Operation,
        members: abc.Sequence[int],
        batches: services.Batching,
    ) -> dict[int, dict[str, Any] | errors.Error]:
        """Give members their runs with one delivery.

        Heat takes each just once, since its IDs follow from that of the run.

        :returns: what changes of each attempt, or why it has no run; nothing
            for those that `start` has a config for.
        :raises errors.Error: see `services.Batching.deliver`.
        """
        if self._order.config is None:
            chosen = [self._order.members[n] for n in members]
            rows = batches.read([each.deployment_id for each in chosen])
            self._rows = rows
            self._derived = self._derive(
                [each for each in chosen if each.deployment_id not in rows]
            )
        made: dict[int, deliveries.Delivery] = {}
        outcomes: dict[int, dict[str, Any] | errors.Error] = {}
        for n in members:
            run = overview.run_of(operation, n)
            if self.attempts.has_config(run):
                # Heat may have its deployment already; see `start`.
                continue
            try:
                self._check()
                named = self._named(run)
                made[n] = deliveries.Delivery(
                    deployment_id=str(named.row_id),
                    server_id=named.server_id,
                    config_id=str(named.config_id),
                    action=named.action,
                    draft=self._draft(named, n),
                    input_values=None,
                    signalling=_SIGNALLING,
                    reading_project=None,
                    before=None,
                    reason=tokens.of_run(named.id),
                )
            except errors.Error as exc:
                outcomes[n] = exc
        self._rows, self._derived = {}, None
        self._check()
        batches.deliver(list(made.values()))
        for n in made:
            run = self._named(overview.run_of(operation, n))
            outcomes[n] = self._waiting(run)
        return outcomes

    def _named(self, run: runs.Run) -> runs.Run:
        """Return a run with the IDs that an engine has for what it makes."""
        return dataclasses.replace(
            run,
            row_id=self._id(run, 'deployment'),
            config_id=self._id(run, 'config'),
        )

    def _id(self, run: runs.Run, kind: str) -> str:
        name = f'{self._tools.records.container}/{run.id}/{kind}'
        return str(uuid.uuid5(_NAMES, name))

    def adopt(
        self,
        operation: operations.Operation,
        member: int,
        *,
        resumes: bool = False,
    ) -> dict[str, Any] | None:
        """Find what another process has given a member; None for nothing.

        :param resumes: see `attempts.Attempts.adopt`.
        """
        run = overview.run_of(operation, member)
        adopted = self.attempts.adopt(run, resumes=resumes)
        return None if adopted is None else _given(adopted)

    def delete_undelivered(
        self, operation: operations.Operation, members: abc.Sequence[int]
    ) -> None:
        """Delete configs that a dead process has made and not delivered.

        :param members: for whose runs Heat has no deployment.
        """
        lost = [overview.run_of(operation, n) for n in members]
        attempts.delete_undelivered(
            self._tools.heat,
            [run for run in lost if not self.attempts.has_config(run)],
            {each.config_id for each in operation.attempts},
            attempts.LAST,
        )

    def give_up(self, operation: operations.Operation, member: int) -> None:
        """Delete what was made for a run that no longer is to start."""
        run = overview.run_of(operation, member)
        if self.attempts.has_config(run):
            self.end(run)

    def over(self, operation: operations.Operation, member: int) -> runs.Run:
        """Return the run of a member as a request or its time ends it.

        It continues if its server has sent a report that no listing shows.
        """
        run = overview.run_of(operation, member)
        control = operation.control
        who = operation.attempts[member].cancelled_by
        if who or control.stopped is operations.Stop.CANCELLED:
            who = who or control.stopped_by or 'unknown'
            return self.attempts.cancelled(run, runs.cancelled(run, who))
        if control.stopped is operations.Stop.DEADLINE:
            return self.attempts.cancelled(
                run, 'The deadline of the operation has passed'
            )
        return self.attempts.expired(run)

    def end(self, run: runs.Run) -> dict[str, Any]:
        """Take a run that has ended from its server."""
        # An engine may have died between its deployment and its config.
        config_id = self.attempts.known(run).config_id
        was_there = self.attempts.withdraw(
            dataclasses.replace(
                run, config_id=config_id or self._id(run, 'config')
            )
        )
        is_known = was_there or config_id is not None
        if not is_known and run.state in runs.REPORTED:
            # So may a command, whose configs have other IDs.
            attempts.delete_undelivered(
                self._tools.heat, [run], looks=attempts.LAST
            )
        return _ended(run)

    def end_together(
        self, ended: abc.Mapping[int, runs.Run], batches: services.Batching
    ) -> dict[int, dict[str, Any]]:
        """Take runs that have ended from their servers with one withdrawal.

        :param ended: those whose deployments are known.
        """
        self._check()
        batches.withdraw_runs(list(ended.values()))
        for run in ended.values():
            self.attempts.forget(run)
        return {n: _ended(run) for n, run in ended.items()}

    def _draft(self, run: runs.Run, member: int) -> heat_values.DerivedConfig:
        target = self._target(self._order.members[member])
        return self.attempts.draft(run, target, _log_limit(self._order))

    def _target(self, member: runs.RunTarget) -> targets.Target:
        order = self._order
        chosen = self._chosen.pop(member.deployment_id, None)
        if chosen is not None and self._tools.clock() < self._fresh_until:
            # The stack may have been updated since.
            with contextlib.suppress(errors.NotFound):
                return targets.with_own_config(self._tools.heat, chosen)
        try:
            config = self._config_of(member)
        except errors.NotFound:
            withdrawn = self._withdrawn(member)
            if withdrawn is None:
                raise
            return withdrawn
        declared: abc.Sequence[abc.Mapping[str, Any]] = config.inputs
        if order.config is None:
            source = self._source(member.source_id)
            declared = targets.declared_inputs(source, config)
        return targets.Target(
            **vars(member),
            config=config,
            config_id=config.id,
            declared=declared,
            standalone=order.config is not None,
        )

    def _config_of(self, member: runs.RunTarget) -> heat_values.Config:
        """Return the user's own config, or what a server was given last."""
        if self._order.config is not None:
            return stored.read(heat_values.Config, self._order.config)
        row = self._rows.get(member.deployment_id)
        if row is not None:
            return row.config
        deployment = self._tools.heat.deployment(member.deployment_id)
        return self._tools.heat.config(deployment.config_id)

    def _withdrawn(self, member: runs.RunTarget) -> targets.Target | None:
        """Return a target whose deployment Heat has only withdrawn.

        Its config is gone; an engine can derive it again.
        """
        derived = self._derived
        if derived is None:
            derived = self._derive([member])
        target = derived.get(member.deployment_id)
        if isinstance(target, errors.Error):
            raise target
        return target

    def _derive(
        self, members: abc.Sequence[runs.RunTarget]
    ) -> services.Derived:
        """Let an engine derive what servers were given once more."""
        if self._tools.batches is None or not members:
            return {}
        order = self._order
        return self._tools.batches.withdrawn(
            members,
            orders.RunOrder(action=order.action, inputs=order.inputs),
        )

    def _source(self, source_id: str | None) -> heat_values.Config | None:
        if source_id is None:
            return None
        with self._lock:
            if source_id not in self._sources:
                self._sources[source_id] = None
                with contextlib.suppress(errors.NotFound):
                    self._sources[source_id] = self._tools.heat.config(
                        source_id
                    )
            return self._sources[source_id]

    def _as_stack_has_it(self, run: runs.Run) -> run_objects.Expected:
        """Return what a member may have been given, by the stack's config.

        Without its own config the hidden values are unknown.
        """
        _, member, _ = layout.attempt_of(run.id)
        try:
            config = self._config_of(self._order.members[member])
        except errors.NotFound:
            everything = masking.Mask(everything=True)
            return run_objects.Expected(declared=(), mask=everything)
        return attempts.recorded(
            dataclasses.replace(
                run,
                declared=config.outputs,
                hidden=hidden_inputs.names(config.options),
            )
        )


def _given(run: runs.Run) -> dict[str, Any]:
    """Return what changes of an attempt that was delivered."""
    return {
        'state': runs.State.WAITING,
        'row_id': run.row_id,
        'config_id': run.config_id,
    }


def _ended(run: runs.Run) -> dict[str, Any]:
    """Return what changes of the attempt of a run that has ended."""
    changes = {name: getattr(run, name) for name in _ENDED}
    return {**changes, 'row_id': None, 'config_id': None}


def _log_limit(order: operations.OperationOrder) -> int:
    """Return how many bytes are kept of what each member prints."""
    if order.log_limit is not None:
        return order.log_limit
    return min(live.LIMIT, max(_LOG, _LOGS // len(order.members)))
