# SPDX-License-Identifier: Apache-2.0
"""Handing a run to its server; what was made is undone if a step fails."""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.configs import hidden_inputs
from heat_plugins.runs import attempts
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs.fleet import exclusions
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.start import schema
from heat_plugins.runs.start import targets

LOG = foreign.logger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOrder:
    """What to run.

    :ivar inputs: what differs from the stack's own values.
    :ivar timeout: seconds for the whole of it; None: as many as the
        deployment has, or `runs.DEFAULT_TIMEOUT`.
    :ivar delivery_timeout: seconds until the server must have reported, for
        those that do; None: as many as the deployment has.
    :ivar repeats: the id of the run that is repeated.
    """

    action: str
    inputs: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
    timeout: int | None = None
    delivery_timeout: int | None = None
    repeats: str | None = None


def check(target: targets.Target, order: RunOrder) -> None:
    """Check what is wanted.

    :raises errors.Refused: there is no such action, or the inputs do not
        fit.
    """
    target.tool(order.action)
    schema.values(target.declared, order.inputs, target.current)


class Starter:
    """Starts runs."""

    def __init__(self, tools: services.Services) -> None:
        self._tools = tools = tools.with_cached_signers()
        self._attempts = attempts.Attempts(tools)

    def start(self, target: targets.Target, order: RunOrder) -> runs.Run:
        """Start a run.

        :returns: the run; it has ended if another process ended it meanwhile.
        :raises errors.Refused: there is no such action, its inputs do not
            fit, or it runs already.
        :raises errors.NotFound: the stack is gone, or the deployment goes
            meanwhile.
        :raises errors.Error: Heat did not take it.
        :raises heat_plugins.errors.ServiceError: the object store
            did not.
        """
        check(target, order)
        # What was found may be long ago, and the container of a stack that
        # has gone would be made again, for good.
        if self._tools.heat.stack(target.stack_id).gone:
            raise errors.NotFound(
                f'Stack {target.stack_name} is deleted or being deleted'
            )
        now = self._tools.clock()
        store = records.Records(self._tools.store, target.stack_id)
        known, timeout = self._tools.known_hooks, order.timeout
        timeout = timeout or target.timeout
        run = runs.Run(
            id=record_names.new_run_id(now),
            **{
                **vars(target.with_action(order.action, known)),
                'timeout': timeout or runs.DEFAULT_TIMEOUT,
                'delivery_timeout': (
                    order.delivery_timeout or target.delivery_timeout
                ),
            },
            action=order.action,
            state=runs.State.STARTING,
            reason='heat-plugins is delivering it to the server',
            started_at=int(now),
            started_by=self._tools.who,
            inputs=dict(order.inputs),
            declared=[
                {
                    'name': output['name'],
                    'error_output': bool(output.get('error_output')),
                }
                for output in target.config.outputs
            ],
            hidden=hidden_inputs.names(target.config.options),
            repeats=order.repeats,
            standalone=target.standalone,
            guarded=target.guarded,
        )
        # A run is announced in the container, which this makes if need be.
        self._tools.sign(store.container)
        exclusions.claim(self._tools, store, run)
        return self._hand_over(store, run, target)

    def _hand_over(
        self,
        store: records.Records,
        run: runs.Run,
        target: targets.Target,
    ) -> runs.Run:
        limit = self._tools.keep.log_limit
        try:
            run = self._attempts.deliver(
                run, lambda: self._attempts.draft(run, target, limit)
            )
            if ended := _ended(store, run):
                # Who cancelled it may not have seen what we have made since.
                self._attempts.withdraw(run)
                return ended
            store.write(run)
            if not store.is_open(run.key):
                if ended := _ended(store, run):
                    return ended
                # Nor may who revoked the announcement; see `withdrawal`.
                raise errors.NotFound(
                    f'Deployment {run.resource} or its stack was deleted '
                    f'while {run.action} started on it'
                )
        except BaseException:
            self._undo(store, self._attempts.known(run))
            raise
        return run

    def _undo(self, store: records.Records, run: runs.Run) -> None:
        """Undo a run that was not delivered, as far as possible."""
        try:
            try:
                self._attempts.withdraw(run)
            except Exception:
                # The next process that reads it cleans up by its record.
                store.write(run)
                raise
            store.remove(run.key)
            store.close(run.key)
        except Exception as exc:
            LOG.warning(
                'Cannot clean up after run %(run)s, which did not start: '
                '%(error)s',
                {'run': run.id, 'error': exc},
            )


def _ended(store: records.Records, run: runs.Run) -> runs.Run | None:
    """Return a run as another process has ended it, if one has."""
    fresh = store.read(run.key)
    return fresh if fresh is not None and fresh.ended else None
