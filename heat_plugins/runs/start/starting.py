# SPDX-License-Identifier: Apache-2.0
"""Handing a run to its server; what was made is undone if a step fails."""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins.configs import actions
from heat_plugins.configs import hidden_inputs
from heat_plugins.runs import attempts
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs.fleet import exclusions
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.start import schema
from heat_plugins.runs.start import targets
from heat_plugins.signals import body
from heat_plugins.signals import transport_names

LOG = foreign.logger(__name__)


def derive(
    target: targets.Target,
    action: targets.TargetAction,
    values: abc.Mapping[str, Any],
    *,
    own_inputs: abc.Mapping[str, str],
    timeout: int,
) -> heat_values.DerivedConfig:
    """Return the config of a run, with the inputs that agents expect.

    What the stack's own config holds to signal Heat with, passwords among
    it, is left out: this server is to signal here and nowhere else.

    :param own_inputs: by which its server sends, and asks; see
        `run_objects.RunObjects.inputs`.
    """
    config = target.config
    declared = {str(each['name']): each for each in target.declared}
    own = [
        # A default would be checked against the type once more, for nothing.
        {
            'name': name,
            'type': declared.get(name, {}).get('type') or 'String',
            'value': value,
        }
        for name, value in values.items()
    ]
    added = {
        'deploy_server_id': target.server_id,
        'deploy_action': action.name,
        'deploy_stack_id': target.current.get('deploy_stack_id') or '',
        'deploy_resource_name': target.resource_name,
        'deploy_signal_transport': transport_names.TEMP_URL_POLL,
        'deploy_signal_verb': 'PUT',
        body.TIMEOUT_INPUT: str(timeout),
        **own_inputs,
    }
    inputs = actions.agent_inputs(
        [
            *(each for each in own if each['name'] not in added),
            *(
                {'name': n, 'value': v, 'type': 'String'}
                for n, v in added.items()
            ),
        ],
        action.tool,
    )
    return heat_values.DerivedConfig(
        name=f'{config.name or target.resource_name}-{action.name}',
        group=config.group,
        config=actions.for_server(config.group, config.config),
        inputs=inputs,
        outputs=config.outputs,
        options=hidden_inputs.changed(config.options, target.current, inputs),
    )


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


def check(
    target: targets.Target, order: RunOrder
) -> tuple[targets.TargetAction, dict[str, Any]]:
    """Return the action that is wanted, and the values of its inputs.

    :raises errors.Refused: there is no such action, or the inputs do not
        fit.
    """
    action = target.action(order.action)
    values = schema.values(target.declared, order.inputs, target.current)
    return action, values


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
        action, values = check(target, order)
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
                **vars(target.with_action(action.name, known)),
                'timeout': timeout or runs.DEFAULT_TIMEOUT,
                'delivery_timeout': (
                    order.delivery_timeout or target.delivery_timeout
                ),
            },
            action=action.name,
            state=runs.State.STARTING,
            reason='heat-plugins is delivering it to the server',
            started_at=int(now),
            started_by=self._tools.who,
            # What is ours to say is left out.
            inputs={
                name: value
                for name, value in order.inputs.items()
                if name not in schema.RESERVED
            },
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
        return self._hand_over(store, run, target, values)

    def _hand_over(
        self,
        store: records.Records,
        run: runs.Run,
        target: targets.Target,
        values: abc.Mapping[str, Any],
    ) -> runs.Run:
        limit = self._tools.keep.log_limit
        try:
            run = self._attempts.deliver(
                run,
                lambda: derive(
                    target,
                    target.action(run.action),
                    values,
                    own_inputs=self._attempts.own_inputs(run, limit),
                    timeout=run.timeout,
                ),
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
