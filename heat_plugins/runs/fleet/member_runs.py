# SPDX-License-Identifier: Apache-2.0
"""One member of an operation: what it is given, and what it answers."""

from collections import abc
import contextlib
import dataclasses
import threading
from typing import Any
import uuid

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import masking
from heat_plugins import stored
from heat_plugins import tokens
from heat_plugins.configs import hidden_inputs
from heat_plugins.deployments import deliveries
from heat_plugins.runs import run_objects
from heat_plugins.runs import services
from heat_plugins.runs import withdrawal
from heat_plugins.runs.fleet import operation_runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.start import starting
from heat_plugins.runs.start import targets
from heat_plugins.signals import body
from heat_plugins.signals import live
from heat_plugins.signals import transport_names

LOG = foreign.logger(__name__)

_States = operations.State

# Bytes of what members print that are kept, unless it is said otherwise: of
# all together, and the least of each.
_LOGS, _LOG = 1_000_000_000, 1_000_000

# Seconds for which to believe what was found of targets; stacks are updated.
_FRESH = 120.0

# How the answer of a run comes: its config says where to.
_SIGNALLING = deliveries.Signalling(transport=transport_names.TEMP_URL_POLL)

# Names what Heat has of a run that an engine has delivered.
_NAMES = uuid.UUID('6c0f0d5e-3f0b-4c6e-9d52-7d1f2b8a4e10')


class MemberRuns:
    """Gives members of an operation their part; safe for threads.

    :param check: raises if another process may lead the operation.
    :param chosen: targets as they were chosen a moment ago, by deployment.
    """

    def __init__(
        self,
        tools: services.Services,
        check: abc.Callable[[], None],
        chosen: abc.Iterable[targets.Target] = (),
    ) -> None:
        self._tools = tools
        self._check = check
        self._chosen = {each.deployment.id: each for each in chosen}
        self._fresh_until = tools.clock() + _FRESH
        self._sources: dict[str, heat_values.Config | None] = {}
        self._lock = threading.Lock()
        # By run: what it was given, and the config that was made for it.
        self._given: dict[str, run_objects.Expected] = {}
        self._configs: dict[str, str] = {}
        # By ID, as they were read for one delivery.
        self._rows: abc.Mapping[str, heat_values.DeploymentRow] = {}

    def start(
        self,
        operation: operations.Operation,
        member: int,
    ) -> dict[str, Any]:
        """Give a member its run; return what changes of its attempt.

        Called again after Heat has not answered, it gives the server the
        same config: an agent runs none twice.

        :raises errors.Error: Heat refuses it, or its inputs no longer fit.
        """
        order, target = operation.order, operation.order.members[member]
        run_id = operation.run_id(member)
        if (config_id := self._configs.get(run_id)) is None:
            draft = self._draft(operation, member)
            config_id = self._tools.heat.create_config(draft)
            self._configs[run_id] = config_id
        self._check()
        row_id = self._tools.heat.create_deployment(
            config_id=config_id,
            server_id=target.server_id,
            action=order.action,
            reason=tokens.of_run(run_id),
        )
        return self._waiting(row_id, config_id)

    def _waiting(self, row_id: str | None, config_id: str) -> dict[str, Any]:
        return {
            'state': _States.WAITING,
            'started_at': int(self._tools.clock()),
            'row_id': row_id,
            'config_id': config_id,
        }

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
        order = operation.order
        if order.config is None:
            self._rows = batches.read(
                [order.members[n].deployment_id for n in members]
            )
        made: dict[int, deliveries.Delivery] = {}
        outcomes: dict[int, dict[str, Any] | errors.Error] = {}
        for n in members:
            if operation.run_id(n) in self._configs:
                # Heat may have its deployment already; see `start`.
                continue
            try:
                made[n] = self._delivery(operation, n)
            except errors.Error as exc:
                outcomes[n] = exc
        self._rows = {}
        self._check()
        batches.deliver(list(made.values()))
        for n, each in made.items():
            outcomes[n] = self._waiting(each.deployment_id, each.config_id)
        return outcomes

    def _delivery(
        self, operation: operations.Operation, member: int
    ) -> deliveries.Delivery:
        run_id = operation.run_id(member)
        return deliveries.Delivery(
            deployment_id=self._id(run_id, 'deployment'),
            server_id=operation.order.members[member].server_id,
            config_id=self._id(run_id, 'config'),
            action=operation.order.action,
            draft=self._draft(operation, member),
            input_values=None,
            signalling=_SIGNALLING,
            reading_project=None,
            before=None,
            reason=tokens.of_run(run_id),
        )

    def _id(self, run_id: str, kind: str) -> str:
        """Return the ID of what an engine has made for a run."""
        name = f'{self._tools.records.container}/{run_id}/{kind}'
        return str(uuid.uuid5(_NAMES, name))

    def adopt(
        self,
        operation: operations.Operation,
        member: int,
        *,
        resumes: bool = False,
    ) -> dict[str, Any] | None:
        """Find what another process has given a member; None for nothing.

        :param resumes: whether that process may have died before it has told
            the server.
        """
        target = operation.order.members[member]
        self._check()
        rows = withdrawal.marked(
            self._tools.heat, target.server_id, operation.run_id(member)
        )
        if not rows:
            return None
        if resumes:
            self._tell(rows[0])
        # A withdrawal finds what was delivered twice.
        row_id = rows[0].id if len(rows) == 1 else None
        return {
            'state': _States.WAITING,
            'row_id': row_id,
            'config_id': rows[0].config_id,
        }

    def _tell(self, row: heat_values.Deployment) -> None:
        """Tell a server again what it must run.

        A refusal must not keep other members from their runs; if the server
        was never told, the run times out.
        """
        try:
            self._tools.heat.tell(row)
        except errors.Unavailable:
            raise
        except errors.NotFound:
            pass
        except errors.Error as exc:
            LOG.warning(
                'Cannot tell server %(server)s again what it must run: '
                '%(error)s',
                {'server': row.server_id, 'error': exc},
            )

    def settle(
        self, operation: operations.Operation, member: int
    ) -> dict[str, Any] | None:
        """Read the answer of a server, and take the run from it.

        :returns: what changes of the attempt; None if there is no answer.
        """
        attempt = operation.attempts[member]
        objects = self._objects(operation, member)
        now, begun = self._tools.clock(), attempt.started_at or 0
        try:
            result = objects.fetch(
                lambda: self._known(operation, member),
                operation.order.inputs,
                now,
            )
        except errors.NoObject:
            return None
        timeout = operation.timeout(member)
        if result.is_late(begun + timeout):
            late = result.late(f'The result came after {timeout} s')
            return self.end(operation, member, _States.TIMED_OUT, **late)
        return self.end(
            operation,
            member,
            result.state,
            result.outcome.reason,
            ended_at=max(int(result.at), begun),
            **objects.keep(result.outcome),
        )

    def settle_late(
        self, operation: operations.Operation, member: int
    ) -> dict[str, Any] | None:
        """Read the result of a run that has ended without it.

        :returns: what changes of the attempt; None if there is no result.
        """
        try:
            result = self._objects(operation, member).fetch(
                lambda: self._known(operation, member),
                operation.order.inputs,
                self._tools.clock(),
            )
        except errors.NoObject:
            return None
        return result.late(operation.attempts[member].reason)

    def end(
        self,
        operation: operations.Operation,
        member: int,
        state: operations.State,
        reason: str,
        **more: Any,
    ) -> dict[str, Any]:
        """Take a run from its server; return what changes of its attempt."""
        self._check()
        run = operation_runs.run_of(operation, member)
        if run.config_id is None:
            # An engine may have died between its deployment and its config.
            config_id = self._configs.get(run.id) or self._id(run.id, 'config')
            run = dataclasses.replace(run, config_id=config_id)
        withdrawal.withdraw(self._tools.heat, run, is_proved=True)
        self._given.pop(run.id, None)
        self._configs.pop(run.id, None)
        return {
            'ended_at': int(self._tools.clock()),
            **more,
            'state': state,
            'reason': reason,
            'row_id': None,
            'config_id': None,
        }

    def stop(self, operation: operations.Operation, member: int) -> bool:
        """Tell a server that has started to stop; True if that is done."""
        attempt = operation.attempts[member]
        if attempt.state is _States.RUNNING:
            self._objects(operation, member).request_stop()
        return True

    def explained(self, operation: operations.Operation, member: int) -> str:
        """Say what is known of a run without a result."""
        attempt = operation.attempts[member]
        return body.explained(
            started=attempt.reported_at is not None,
            config_id=attempt.config_id,
        )

    def _draft(
        self, operation: operations.Operation, member: int
    ) -> heat_values.DerivedConfig:
        with self._lock:
            # The first of many threads asks for all.
            signer = self._tools.sign(self._tools.records.container)
        order, its = operation.order, operation.order.members[member]
        target = self._target(order, its)
        action, values = starting.check(
            target, starting.RunOrder(action=order.action, inputs=order.inputs)
        )
        timeout = operation.timeout(member)
        draft = starting.derive(
            target,
            action,
            values,
            own_inputs=self._objects(operation, member).inputs(
                signer, self._tools.clock() + timeout, _log_limit(order)
            ),
            timeout=timeout,
        )
        self._given[operation.run_id(member)] = run_objects.Expected.by(draft)
        return draft

    def _target(
        self,
        order: operations.OperationOrder,
        member: operations.OperationMember,
    ) -> targets.Target:
        chosen = self._chosen.pop(member.deployment_id, None)
        if chosen is not None and self._tools.clock() < self._fresh_until:
            return chosen
        if order.config is not None:
            config = stored.read(heat_values.Config, order.config)
            deployment = heat_values.Deployment(
                id=member.server_id,
                server_id=member.server_id,
                config_id=config.id,
            )
            declared = config.inputs
        else:
            deployment, config = self._stored(member.deployment_id)
            source = self._source(member.source_id)
            declared = targets.declared_inputs(source, config)
        return targets.Target(
            root=heat_values.Stack(
                id=member.stack_id,
                name=member.stack_name,
                status='',
                parent=None,
            ),
            path=member.resource,
            resource=heat_values.Resource(
                name=member.resource.rpartition('.')[2],
                type='',
                physical_id=member.deployment_id,
                status='',
                stack_id=member.stack_id,
            ),
            deployment=deployment,
            config=config,
            declared=declared,
            server_name=member.server_name,
            standalone=order.config is not None,
        )

    def _stored(
        self, deployment_id: str
    ) -> tuple[heat_values.Deployment, heat_values.Config]:
        row = self._rows.get(deployment_id)
        if row is None:
            deployment = self._tools.heat.deployment(deployment_id)
            return deployment, self._tools.heat.config(deployment.config_id)
        deployment = heat_values.Deployment(
            id=row.id,
            server_id=row.server_id,
            config_id=row.config.id,
            action=row.action,
            status=row.status,
            reason=row.reason,
        )
        return deployment, row.config

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

    def _objects(
        self, operation: operations.Operation, member: int
    ) -> run_objects.RunObjects:
        number = operation.attempts[member].number
        return self._tools.records.objects(operation.id, member, number)

    def _known(
        self, operation: operations.Operation, member: int
    ) -> run_objects.Expected:
        """Return what another process may have given a member."""
        given = self._given.get(operation.run_id(member))
        if given is not None:
            return given
        config_id = operation.attempts[member].config_id
        try:
            if config_id is None:
                adopted = self.adopt(operation, member) or {}
                config_id = adopted['config_id']
            config = self._tools.heat.config(str(config_id))
        except (KeyError, errors.NotFound):
            return self._as_the_stack_has_it(operation, member)
        return run_objects.Expected.by(config)

    def _as_the_stack_has_it(
        self, operation: operations.Operation, member: int
    ) -> run_objects.Expected:
        """Return what a member may have been given, by the stack's config.

        Without its own config the hidden values are unknown.
        """
        everything = masking.Mask(everything=True)
        try:
            target = self._target(
                operation.order, operation.order.members[member]
            )
        except errors.NotFound:
            return run_objects.Expected(declared=(), mask=everything)
        config = target.config
        hides = hidden_inputs.names(config.options)
        return run_objects.Expected(
            declared=config.outputs,
            mask=everything if hides else masking.Mask(),
        )


def _log_limit(order: operations.OperationOrder) -> int:
    """Return how many bytes are kept of what each member prints."""
    if order.log_limit is not None:
        return order.log_limit
    return min(live.LIMIT, max(_LOG, _LOGS // len(order.members)))
