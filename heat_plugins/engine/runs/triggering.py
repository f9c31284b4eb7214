# SPDX-License-Identifier: Apache-2.0
"""How signals start runs of deployments, and how servers answer by signals.

The first half is what deployments ask of runs; see `run_room`.
"""

from collections import abc
import contextlib
import time
from typing import Any

from heat.common import context as heat_context
from heat.common import exception
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import masking
from heat_plugins import wording
from heat_plugins.engine import heat_types
from heat_plugins.engine import run_room
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import servers
from heat_plugins.engine.database import stack_reading
from heat_plugins.engine.runs import door
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_fleet
from heat_plugins.runs import ordering
from heat_plugins.runs import overview
from heat_plugins.runs import run_objects
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs import stepping
from heat_plugins.runs.targets import targets
from heat_plugins.signals import body
from heat_plugins.signals import live
from heat_plugins.signals import presigned
from heat_plugins.signals import signal_names

LOG = foreign.logger(__name__)

#: Who has started a run, for people: Heat does not tell a resource who has
#: sent a signal.
WHO = 'a signal'

#: The most runs of a deployment that an attribute lists, and of all members of
#: a group. A group that has many shows fewer of each.
SHOWN, _SHOWN_TOGETHER = 10, 1000

read = ordering.read_signal
looks_like_one = ordering.looks_like_one
cannot_be_result = ordering.cannot_be_result


def start(
    resource: heat_types.Resource,
    wanted: ordering.Start,
    members: abc.Collection[Any],
) -> str:
    """Start a run; return the text of the event of the signal.

    :param resource: what was signalled.
    :param members: the deployments to run the action on; those that refuse it
        are left out.
    :raises errors.Error: it cannot be started.
    """
    if refusal := transports.refusal_of_runs(resource):
        raise errors.Refused(refusal)
    offered, refusals = [], []
    for member in members:
        try:
            offered.append(member.run_target(wanted))
        except errors.Refused as exc:
            if len(members) == 1:
                raise
            refusals.append(f'{member.name}: {exc}')
    if not offered:
        raise errors.Refused([*refusals, 'it has no deployments'][0])
    order = run_records.RunOrder(
        id=wanted.run,
        action=wanted.action,
        limits=run_records.RunLimits.asked(wanted.limits),
        members=(),
        created_at=int(time.time()),
        created_by=WHO,
        targets=resource.name,
        inputs=wanted.inputs,
        log_limit=cfg.CONF.heat_plugins.run_log_limit,
    )
    leading.leader().start(
        resource.context.project_id, door.new_run(order, offered)
    )
    begun = (
        f'run {order.id} of {order.action} has started on '
        + wording.counted(len(offered), 'server')
    )
    LOG.info('%s: a signal: %s', resource.label, begun)
    return '; left out: '.join([begun, *refusals[:1]])


def target(
    subject: run_room.Subject, wanted: ordering.Start
) -> targets.Target:
    """Return a deployment as the target of a run.

    :raises errors.Refused: nothing can be started on it, or not that.
    """
    deployment = subject.resource
    if deployment.status == 'IN_PROGRESS':
        raise errors.Refused(
            f'the deployment is {deployment.action}_{deployment.status}; '
            'send the signal again when that has ended'
        )
    if subject.deployment_id is None:
        raise errors.Refused(
            'heat-engine has delivered no config to its server; a '
            'component needs an entry for CREATE, even an empty one'
        )
    root_stack_id = transports.root_stack_id(deployment)
    known = servers.Servers(deployment, root_stack_id)
    server = known.find(subject.terms.server_id)
    if not known.is_there(server):
        raise errors.Refused(
            f'server {known.name_of(server)} no longer exists'
        )
    if refusal := servers.refusal(server, root_stack_id):
        raise errors.Refused(refusal)
    row = subject.row
    if row is not None and row.server_id != server.id:
        server = known.find(row.server_id)
    name = known.name_of(server)
    if row is not None:
        config = row.config
    else:
        # What it takes to be signalled is not made: a run has its own.
        config = heat_values.Config(
            id='', **vars(subject.draft(wanted.action))
        )
    root = stack_reading.OwnHeat(deployment.context).stack(root_stack_id)
    above = deployment.stack.path_in_stack()
    path = [*(name for name, _stack in above if name), *subject.names]
    found = targets.Target(
        stack_id=root.id,
        stack_name=root.name,
        resource='.'.join(path),
        name=subject.name,
        deployment_id=subject.deployment_id,
        server_id=server.id,
        config_id=config.id,
        config=config,
        declared=targets.declared_inputs(subject.named_config(), config),
        server_name=None if name == server.id else name,
        timeout=subject.terms.timeout,
        delivery_timeout=subject.terms.delivery_timeout,
    )
    found.check(wanted.action, wanted.inputs)
    return found


def latest(
    resource: heat_types.Resource, ids: abc.Collection[str]
) -> abc.Mapping[str, list[dict[str, Any]]] | None:
    """Return the states of the last runs of deployments, by ID.

    The newest come first. None if the database does not tell: that must not
    keep a stack from being shown or updated.
    """
    most = max(1, min(SHOWN, _SHOWN_TOGETHER // max(1, len(ids))))
    try:
        known = run_rows.RunRows().latest(
            resource.context.project_id, ids, most
        )
    except errors.Error as exc:
        LOG.info(
            '%(resource)s: cannot show its runs: %(error)s',
            {'resource': resource.label, 'error': exc},
        )
        return None
    return {
        each: [
            {
                'id': run.id,
                'action': run.order.action,
                'started_by': run.order.created_by,
                **overview.target(run, 0),
            }
            for run in known.get(each, ())
        ]
        for each in ids
    }


def head(project_id: str, run_id: str) -> run_records.Head | None:
    """Return how a run stands; None if it is not there.

    :raises errors.Unavailable: the database does not tell.
    """
    return run_rows.RunRows().heads_of({run_id: project_id}).get(run_id)


def has_left(resource: heat_types.Resource, root_stack_id: str) -> bool:
    """Say whether servers have nothing of the runs of a deployment that goes.

    The leaders of such runs end them. Those of all deployments must have ended
    if the whole stack goes: its credentials go, too.
    """
    held = _held_in(root_stack_id)
    if held and not run_fleet.is_gone(
        stack_reading.OwnHeat(resource.context), root_stack_id
    ):
        theirs = signal_names.folder_name(resource.resource_id).rstrip('/')
        held = {
            run_id: ids
            for run_id, ids in held.items()
            if any(each.startswith(theirs) for each in ids)
        }
    for leader in leading.leaders:
        leader.check_targets(held)
    return not held


def needs_container(resource: heat_types.Resource, root_stack_id: str) -> bool:
    """Say whether runs still use the container of a root stack.

    They do while servers have URLs to it, or a deployment can show its runs.
    """
    if run_fleet.is_gone(
        stack_reading.OwnHeat(resource.context), root_stack_id
    ):
        return False
    if _held_in(root_stack_id):
        return True
    if not resources.has_deployments(resource.context, root_stack_id):
        return False
    wanted = ordering.Query(stack=root_stack_id, limit=1)
    with contextlib.suppress(errors.ServiceError):
        return bool(
            run_rows.RunRows().heads(resource.context.project_id, wanted)
        )
    return False


def _held_in(root_stack_id: str) -> abc.Mapping[str, abc.Set[str]]:
    """Return `run_store.RunStore.held_in`; nothing if that cannot be told.

    A stack must be deleted all the same; leaders end its runs in any case.
    """
    try:
        return run_rows.RunRows().held_in(root_stack_id)
    except errors.ServiceError as exc:
        LOG.info(
            'Cannot read which runs of stack %(stack)s are in progress: '
            '%(error)s',
            {'stack': root_stack_id, 'error': exc},
        )
        return {}


# Answers of runs that servers send by way of heat-api-cfn


def _answer_run(
    service: Any,
    cnxt: heat_types.Context,
    stack_identity: abc.Mapping[str, Any],
    details: object,
) -> None:
    """Take an answer by a signal to `run_fleet.RESOURCE`.

    heat-api-cfn has checked the signature of the URL, and hands it to the
    engine. The target of a run that has it is settled before Heat loads any
    stack. heat-api-cfn makes 400 or 500 of the errors.
    """
    signature = presigned.checked(cnxt.aws_creds)
    try:
        found = signature and run_rows.RunRows().awaiting(signature)
        if found and isinstance(details, dict):
            is_live = found.run.attempts[0].is_live
            taken = _answer(found, details) if is_live else None
            if taken is None or not leading.leader().take(found, taken):
                LOG.info(
                    'An answer for target %d of run %s no longer counts, and '
                    'is ignored',
                    found.number,
                    found.key.run_id,
                )
            return
    except errors.Error as exc:
        # An agent may send it again.
        raise exception.Error(str(exc)) from exc
    LOG.info(
        'An answer to a run is refused: %s',
        f'that for run {found.key.run_id} is no JSON map'
        if found
        else 'no target of a run has the signature of its URL',
    )
    raise exception.ResourceNotFound(
        resource_name=run_fleet.RESOURCE,
        stack_name=foreign.line(str(stack_identity.get('stack_name')), 80),
    )


answer: abc.Callable[..., None] = heat_context.request_context(_answer_run)


def _answer(
    found: run_store.Awaiting, details: dict[str, Any]
) -> stepping.Answer | None:
    """Return the answer of a server; None if its deployment is gone."""
    attempt = found.run.attempts[0]
    if body.is_report(details):
        is_meant = body.is_for(details, str(attempt.config_id))
        return stepping.Answer() if is_meant else None
    row_id = str(attempt.row_id)
    with deployment_rows.guarded(everything=True):
        context = run_fleet.project_context(found.project_id)
        row = rows.visible(context, [row_id]).get(row_id)
    if row is None:
        return None
    expected = run_objects.Expected.by(row.config)
    try:
        outcome = body.outcome(
            body.as_map(details),
            expected.declared,
            expected.mask,
            secrets=masking.texts(found.run.order.inputs),
        )
    except errors.BadSignal as exc:
        outcome = body.failure(str(exc))
    stopped = live.WAYS.get(str(details.get(live.STOPPED)))
    return stepping.Answer(
        result=run_objects.Result(
            outcome=outcome, at=time.time(), stopped=stopped
        )
    )
