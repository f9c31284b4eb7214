# SPDX-License-Identifier: Apache-2.0
"""Handing a run to its server; what was made is undone if a step fails."""

from collections import abc
import dataclasses
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import tokens
from heat_plugins.configs import hidden_inputs
from heat_plugins.configs import hooks
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores
from heat_plugins.runs import orchestration
from heat_plugins.runs import run_claims
from heat_plugins.runs import runs
from heat_plugins.runs import withdrawal
from heat_plugins.runs.fleet import other_operations
from heat_plugins.runs.fleet.records import books
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.start import derived
from heat_plugins.runs.start import schema
from heat_plugins.runs.start import targets
from heat_plugins.signals import live

LOG = foreign.logger(__name__)

#: Returns what signs the URLs of a container.
Sign = abc.Callable[[str], keys.Signer]

#: The digests to sign with, the most wanted first.
DIGESTS = ('sha256', 'sha512', 'sha1')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Order:
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


def check(
    target: targets.Target, order: Order
) -> tuple[targets.Action, dict[str, Any]]:
    """Return the action that is wanted, and the values of its inputs.

    :raises errors.Refused: there is no such action, or the inputs do not
        fit.
    """
    action = target.action(order.action)
    values = schema.values(target.declared, order.inputs, target.current)
    return action, values


class Starter:
    """Starts runs.

    :param who: the user in whose name it is, for people to read.
    :param sign: returns what signs the URLs of a container, and makes it
        if need be; None: with whatever key it has, such as the engine's.
    :param known_hooks: the hooks that servers are known to have.
    :param log_limit: the bytes of what a run prints that are kept.
    """

    def __init__(
        self,
        heat: orchestration.Deploying,
        store: stores.ObjectStore,
        *,
        who: str,
        sign: Sign | None = None,
        known_hooks: abc.Collection[str] = hooks.HOOKS,
        log_limit: int = live.LIMIT,
        clock: abc.Callable[[], float] | None = None,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._heat = heat
        self._store = store
        self._book = books.Book(store)
        self._who = who
        self._sign = sign or self._any_key
        self._known_hooks = known_hooks
        self._log_limit = log_limit
        self._clock = clock or store.now
        self._sleep = sleep

    def start(self, target: targets.Target, order: Order) -> runs.Run:
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
        action, values = check(target, order)
        # What was found may be long ago, and the container of a stack that
        # has gone would be made again, for good.
        if self._heat.stack(target.root.id).gone:
            raise errors.NotFound(
                f'Stack {target.root.name} is deleted or being deleted'
            )
        now = self._clock()
        found = records.Records(self._store, target.root.id)
        run = runs.Run(
            id=record_names.new_run_id(now),
            stack_id=target.root.id,
            stack_name=target.root.name,
            resource=target.path,
            deployment_id=target.deployment.id,
            server_id=target.deployment.server_id,
            server_name=target.server_name,
            action=action.name,
            state=runs.State.STARTING,
            reason='heat-plugins is delivering it to the server',
            started_at=int(now),
            started_by=self._who,
            timeout=order.timeout or target.timeout or runs.DEFAULT_TIMEOUT,
            delivery_timeout=(
                order.delivery_timeout or target.delivery_timeout
            ),
            inputs=derived.given(order.inputs),
            declared=[_declared(one) for one in target.config.outputs],
            hidden=hidden_inputs.names(target.config.options),
            repeats=order.repeats,
            standalone=target.standalone,
            guarded=target.guarded,
            unknown_hook=self._unknown_hook(action),
        )
        signer = self._sign(found.container)
        run_claims.Claims(
            found,
            other_operations.OtherOperations(
                self._heat, self._book, who=self._who, clock=self._clock
            ),
            clock=time.monotonic,
            sleep=self._sleep,
        ).claim(run)
        draft = derived.draft(
            target,
            action,
            values,
            own_inputs=found.objects(run.key).inputs(
                signer, run.deadline, self._log_limit
            ),
            timeout=run.timeout,
        )
        return self._hand_over(found, run, draft)

    def _unknown_hook(self, action: targets.Action) -> str | None:
        tool = action.tool or ''
        return None if hooks.is_known(tool, self._known_hooks) else tool

    def _any_key(self, container: str) -> keys.Signer:
        return keys.KeyKeeper(
            self._store, secret=None, digests=DIGESTS, overlap=None
        ).ensure(container)

    def _hand_over(
        self,
        found: records.Records,
        run: runs.Run,
        draft: orchestration.Draft,
    ) -> runs.Run:
        try:
            config_id = self._heat.create_config(draft)
            run = dataclasses.replace(run, config_id=config_id)
            row_id = self._heat.create_deployment(
                config_id=config_id,
                server_id=run.server_id,
                action=run.action,
                # By this it is found again if we die before the next line.
                reason=tokens.of_run(run.id),
            )
            run = dataclasses.replace(
                run,
                row_id=row_id,
                state=runs.State.WAITING,
                reason=runs.UNANSWERED,
            )
            if ended := _ended(found, run):
                # Who cancelled it may not have seen what we have made since.
                withdrawal.withdraw(self._heat, run)
                return ended
            found.write(run)
            if not found.is_open(run.key):
                if ended := _ended(found, run):
                    return ended
                # Nor may who revoked the announcement; see `withdrawal`.
                raise errors.NotFound(
                    f'Deployment {run.resource} or its stack was deleted '
                    f'while {run.action} started on it'
                )
        except BaseException:
            self._undo(found, run)
            raise
        return run

    def _undo(self, found: records.Records, run: runs.Run) -> None:
        """Undo a run that was not delivered, as far as possible."""
        try:
            try:
                withdrawal.withdraw(self._heat, run)
            except Exception:
                # The next process that reads it cleans up by its record.
                found.write(run)
                raise
            found.remove(run.key)
            found.close(run.key)
        except Exception as exc:
            LOG.warning(
                'Cannot clean up after run %(run)s, which did not start: '
                '%(error)s',
                {'run': run.id, 'error': exc},
            )


def _ended(found: records.Records, run: runs.Run) -> runs.Run | None:
    """Return a run as another process has ended it, if one has."""
    fresh = found.read(run.key)
    return fresh if fresh is not None and fresh.ended else None


def _declared(output: abc.Mapping[str, Any]) -> dict[str, Any]:
    return {
        'name': output['name'],
        'error_output': bool(output.get('error_output')),
    }
