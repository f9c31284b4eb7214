# SPDX-License-Identifier: Apache-2.0
"""The next step that the leader of a run stores, with deliveries.

See `deciding` for what comes next at all. Everything here is pure.
"""

from collections import abc
import dataclasses
from typing import Any, TypeAlias

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import masking
from heat_plugins import stored
from heat_plugins.configs import actions
from heat_plugins.configs import hidden_inputs
from heat_plugins.deployments import deliveries
from heat_plugins.runs import deciding
from heat_plugins.runs import run_objects
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs.targets import targets
from heat_plugins.signals import body
from heat_plugins.signals import live

#: Seconds for which a service may be out of order for a target that starts, or
#: whose time is over.
BUDGET = 300.0

# Seconds until another run of the action may have ended.
_WAIT = 10

_FULL = (
    'Waits for room: the project has as many software configs or deployments '
    'as Heat permits (max_software_deployments_per_tenant in heat.conf)'
)

_State = run_records.State

#: What targets may be given, or why they are given nothing.
Prepared: TypeAlias = abc.Mapping[int, deliveries.Delivery | errors.Error]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decision:
    """The content of a step.

    :ivar given: what servers are given, by number of the target.
    :ivar taken: the targets whose runs are taken from their servers.
    """

    after: run_records.RunRecord
    given: abc.Mapping[int, deliveries.Delivery]
    taken: tuple[int, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of a server to an attempt.

    :ivar result: what the server has sent; None if there is none.
    :ivar lost: why the attempt ends without a result; None if it does not: its
        server has reported that it has started.
    :ivar state: as what it ends without a result.
    """

    result: run_objects.Result | None = None
    lost: str | None = None
    state: _State = _State.CANCELLED


def ending(
    run: run_records.RunRecord,
    step: deciding.Step,
    reasons: abc.Collection[int],
) -> list[int]:
    """Return the targets that are about to be withdrawn from servers."""
    return sorted({*step.expire, *step.withdraw, *reasons} & {*run.live})


def may_wait(
    run: run_records.RunRecord, step: deciding.Step, now: float
) -> bool:
    """Say whether timed-out targets still wait for a store that is down.

    They wait for a store that is out of order, but not for ever.
    """
    times = [over[0] for n in step.expire if (over := run.overdue(n, now))]
    return not step.withdraw and now - max(times, default=0) < BUDGET


def decide(
    stored: run_store.StoredRun,
    now: float,
    reasons: abc.Mapping[int, abc.Mapping[str, object]],
    prepared: Prepared,
    room: float,
) -> Decision:
    """Return the step of a run to store.

    A run ends in a step of its own, once servers were told what was taken
    from them.

    :param reasons: what changes of targets that cannot go on.
    :param prepared: what targets that may start are given, or why they are
        given nothing.
    """
    before = stored.run
    going = {*before.live, *before.pending}
    run = before.attempted(
        {n: change for n, change in reasons.items() if n in going}
    )
    step = deciding.advance(run, now)
    while step.expire or step.withdraw:
        run = step.run.attempted(
            {
                n: withdrawn(step.run, n, now) or overdue(step.run, n, now)
                for n in (*step.expire, *step.withdraw)
            }
        )
        step = deciding.advance(run, now)
    given, changes = {}, {}
    for n in step.start:
        outcome = prepared.get(n)
        if isinstance(outcome, deliveries.Delivery):
            given[n] = outcome
        changes[n] = _begun(run, n, outcome, now)
    after = step.run.attempted(changes)
    taken = tuple(
        n
        for n, attempt in enumerate(after.attempts)
        if attempt.row_id and not attempt.is_live
    )
    if taken and after.ended:
        after = run
    is_full = len(step.start) > room
    if after.control.phase is run_records.Phase.RUNNING:
        others = after.control.reason.removeprefix(_FULL)
        after = after.changed(reason=_FULL if is_full else others)
    nothing = {'row_id': None, 'config_id': None}
    return Decision(
        after=after.attempted(dict.fromkeys(taken, nothing)),
        given=given,
        taken=taken,
    )


def _begun(
    run: run_records.RunRecord,
    number: int,
    outcome: deliveries.Delivery | errors.Error | None,
    now: float,
) -> abc.Mapping[str, object]:
    """Return the changes of a target that may start."""
    if isinstance(outcome, deliveries.Delivery):
        return {
            'state': _State.WAITING,
            'reason': run_records.UNANSWERED,
            'row_id': outcome.deployment_id,
            'config_id': outcome.config_id,
            'transport': outcome.signalling.transport,
        }
    before = vars(run.attempts[number])
    if outcome is None or isinstance(outcome, errors.Unavailable):
        return before
    ended = {'reason': str(outcome), 'ended_at': int(now)}
    if isinstance(outcome, errors.AlreadyRunning):
        if run.order.limits.if_running == run_records.SKIP:
            return {**ended, 'state': _State.SKIPPED, 'started_at': None}
        return {
            **before,
            'reason': str(outcome),
            'wait_until': int(now) + _WAIT,
        }
    if isinstance(outcome, errors.NotFound):
        ended['reason'] = deployment_gone(run.order.members[number])
        return {**ended, 'state': _State.CANCELLED, 'gone': True}
    return {**ended, 'state': _State.FAILED}


def answered(
    run: run_records.RunRecord, number: int, answer: Answer, now: float
) -> run_records.Attempt | None:
    """Return an attempt with an answer; None if it takes none."""
    attempt = run.attempts[number]
    if answer.result is not None:
        change = settled(run, number, answer.result)
    elif not attempt.is_live:
        return None
    elif answer.lost is not None:
        change = {
            'state': answer.state,
            'reason': answer.lost,
            'ended_at': int(now),
        }
    else:
        change = {
            'state': _State.RUNNING,
            'reason': 'The server has started the action',
            'reported_at': attempt.reported_at or int(now),
        }
    return dataclasses.replace(attempt, **change)


# Bytes of what members print that are kept, unless it is said otherwise: of
# all together, and the least of each.
_LOGS, _LOG = 1_000_000_000, 1_000_000


_SENT_ONCE = (
    'heat-api-cfn refuses results over 1 MiB, and an agent without '
    'heat-config-supervisor sends a result only once'
)


def deployment_gone(target: run_records.RunTarget) -> str:
    """Return the reason for a target without deployment in Heat.

    The stack may still have the resource: Heat withdraws the deployment of an
    action that times out, and creates it again for the next one.
    """
    return (
        f'Deployment {target.resource} of stack {target.stack_name} was '
        'deleted or withdrawn from its server'
    )


def draft(
    run: run_records.RunRecord,
    number: int,
    target: targets.Target,
    own_inputs: abc.Mapping[str, str],
) -> heat_values.DerivedConfig:
    """Return the config of an attempt, with the inputs that agents expect.

    What the stack's own config holds to signal Heat with, passwords among
    it, is left out: this server is to signal here and nowhere else.

    :param own_inputs: those by which its server sends, and asks.
    :raises errors.Refused: the inputs of the run do not fit.
    """
    config, action = target.config, run.order.action
    values = targets.values(target.declared, run.order.inputs, target.current)
    added = {
        'deploy_server_id': target.server_id,
        'deploy_action': action,
        'deploy_stack_id': target.current.get('deploy_stack_id') or '',
        'deploy_resource_name': target.resource_name,
        body.TIMEOUT_INPUT: str(run.timeout(number)),
        **own_inputs,
    }
    types = {
        each['name']: each.get('type')
        for each in target.declared
        if each['name'] in values
    }
    inputs = actions.agent_inputs(
        [
            # A default would be checked against the type once more, for
            # nothing.
            {
                'name': name,
                'type': types.get(name) or 'String',
                'value': value,
            }
            for name, value in {**values, **added}.items()
        ],
        target.tool(action),
    )
    return heat_values.DerivedConfig(
        name=f'{config.name or target.resource_name}-{action}',
        group=config.group,
        config=actions.for_server(config.group, config.config),
        inputs=inputs,
        outputs=config.outputs,
        options=hidden_inputs.changed(config.options, target.current, inputs),
    )


def overdue(
    run: run_records.RunRecord, number: int, now: float
) -> dict[str, Any]:
    """Return the changes of an attempt after its time limit; else {}."""
    over = run.overdue(number, now)
    if over is None:
        return {}
    attempt, hook = (
        run.attempts[number],
        run.order.members[number].unknown_hook,
    )
    started = attempt.reported_at is not None
    parts = [
        f'{over[1]}.',
        body.explained(started=started, config_id=attempt.config_id),
    ]
    if hook and not started:
        parts.append(actions.hook_warning(hook))
    if attempt.transport == heat_values.CFN_SIGNAL:
        parts.append(_SENT_ONCE)
    return {
        'state': run_records.State.TIMED_OUT,
        'reason': ' '.join(parts),
        'ended_at': over[0],
    }


def withdrawn(
    run: run_records.RunRecord, number: int, now: float
) -> dict[str, Any]:
    """Return the changes of an attempt that a user or the deadline ends.

    {} if neither does.
    """
    attempt, control = run.attempts[number], run.control
    who = attempt.cancelled_by
    if who or control.stopped is run_records.Stop.CANCELLED:
        reason = f'Cancelled by {who or control.stopped_by or "unknown"}'
        if attempt.state is run_records.State.RUNNING:
            reason += ' after the server had begun'
        if attempt.is_live and attempt.transport == heat_values.CFN_SIGNAL:
            reason += (
                '; without an object store, heat-engine cannot stop a script '
                'that has started'
            )
    elif control.stopped is run_records.Stop.DEADLINE:
        reason = 'The deadline of the run has passed'
    else:
        return {}
    return {
        'state': run_records.State.CANCELLED,
        'reason': reason,
        'ended_at': int(now),
    }


def settled(
    run: run_records.RunRecord, number: int, result: run_objects.Result
) -> dict[str, Any]:
    """Return the changes of an attempt by a result, with ends of outputs."""
    attempt = run.attempts[number]
    if not attempt.is_live:
        return result.late(attempt.reason)
    started_at = attempt.started_at or run.order.created_at
    deadline = started_at + run.timeout(number)
    # Ages of objects are told in whole seconds.
    if result.at > deadline + 1.0:
        ended = overdue(run, number, deadline)
        return ended | result.late(ended['reason'])
    outputs, cut = run_objects.shortened(result.outcome)
    if attempt.transport == heat_values.CFN_SIGNAL:
        # There is no other place for them.
        outputs, cut = run_objects.shown(result.outcome), {}
    return {
        'state': result.state,
        'reason': result.outcome.reason,
        'ended_at': max(int(result.at), started_at),
        'outputs': outputs,
        'cut': cut,
    }


def target(
    order: run_records.RunOrder,
    member: run_records.RunTarget,
    row: heat_values.DeploymentRow | None,
    derived: targets.Target | errors.Error | None,
    source: heat_values.Config | None,
) -> targets.Target:
    """Return a member as the target of the action, as Heat has it now.

    :param row: what its server was given last.
    :param derived: the same, derived again where Heat has withdrawn it.
    :param source: the config that the stack names.
    :raises errors.Error: it has no config now, or Heat refuses it.
    """
    is_own = order.config is not None
    if is_own:
        config = stored.read(heat_values.Config, order.config)
    elif row is not None and not row.is_withdrawn:
        config = row.config
    elif isinstance(derived, errors.Error):
        raise derived
    elif derived is not None:
        return derived
    else:
        raise errors.NotFound(f'Heat has no deployment {member.deployment_id}')
    return targets.Target(
        **vars(member),
        config=config,
        config_id=config.id,
        declared=config.inputs
        if is_own
        else targets.declared_inputs(source, config),
        standalone=is_own,
    )


def log_limit(order: run_records.RunOrder) -> int:
    """Return the most bytes of live output to keep of each member."""
    if order.log_limit is not None:
        return order.log_limit
    return min(live.LIMIT, max(_LOG, _LOGS // len(order.members)))


def delivery(
    run: run_records.RunRecord,
    number: int,
    *,
    deployment_id: str,
    config_id: str,
    draft: heat_values.DerivedConfig,
) -> deliveries.Delivery:
    """Return the delivery of an attempt, with the way of its answer."""
    attempt = run.attempts[number].number
    given = {each['name']: each.get('value') for each in draft.inputs}
    if given.get(heat_values.TRANSPORT_INPUT) == heat_values.CFN_SIGNAL:
        signalling = deliveries.Signalling(
            transport=heat_values.CFN_SIGNAL,
            answers_by=deliveries.AnswersBy.ROW,
            verb='POST',
            url=str(given.get(run_objects.SIGNAL_ID)),
        )
    else:
        result = run_objects.result_name(run.id, number, attempt)
        signalling = deliveries.Signalling(
            transport=heat_values.TEMP_URL_POLL,
            object_name=result,
            report_name=body.report_name(result),
        )
    return deliveries.Delivery(
        deployment_id=deployment_id,
        server_id=run.order.members[number].server_id,
        config_id=config_id,
        action=run.order.action,
        draft=draft,
        input_values=None,
        signalling=signalling,
        reading_project=None,
        before=None,
        reason=f'heat-plugins run {run.run_id(number)}',
        secrets=tuple(masking.texts(run.order.inputs)),
    )
