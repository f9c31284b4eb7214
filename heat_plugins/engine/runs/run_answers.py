# SPDX-License-Identifier: Apache-2.0
"""Answers of runs that servers send by way of heat-api-cfn; see `run_urls`.

heat-api-cfn has checked the signature of the URL, and hands it to the engine.
The target of a run that has it is settled before Heat loads any stack.
"""

from collections import abc
import time
from typing import Any

from heat.common import context as heat_context
from heat.common import exception

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import masking
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_fleet
from heat_plugins.engine.runs import run_urls
from heat_plugins.runs import run_objects
from heat_plugins.runs import run_store
from heat_plugins.runs import stepping
from heat_plugins.signals import body
from heat_plugins.signals import live
from heat_plugins.signals import presigned

LOG = foreign.logger(__name__)


def answered(
    resource_signal: abc.Callable[..., Any],
) -> abc.Callable[..., Any]:
    """Let signals to the resource of `run_urls` be answers of runs."""
    answer = heat_context.request_context(_answer_run)

    def take(
        service: Any,
        cnxt: heat_types.Context,
        stack_identity: Any,
        resource_name: str,
        details: object,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if resource_name != run_urls.RESOURCE:
            return resource_signal(
                service,
                cnxt,
                stack_identity,
                resource_name,
                details,
                *args,
                **kwargs,
            )
        return answer(service, cnxt, stack_identity, details)

    return take


def _answer_run(
    service: Any,
    cnxt: heat_types.Context,
    stack_identity: abc.Mapping[str, Any],
    details: object,
) -> None:
    """Take an answer; heat-api-cfn makes 400 or 500 of what this raises."""
    try:
        refusal = take(presigned.checked(cnxt.aws_creds), details)
    except errors.Error as exc:
        # An agent may send it again.
        raise exception.Error(str(exc)) from exc
    if refusal is not None:
        LOG.info('An answer to a run is refused: %s', refusal)
        raise exception.ResourceNotFound(
            resource_name=run_urls.RESOURCE,
            stack_name=foreign.line(str(stack_identity.get('stack_name')), 80),
        )


def take(signature: str | None, details: object) -> str | None:
    """Take what a server has sent; return why that is refused, if so.

    What comes too late, or twice, is ignored.

    :raises errors.Error: it cannot be stored now.
    """
    found = signature and run_rows.RunRows().awaiting(signature)
    if not found:
        return 'no target of a run has the signature of its URL'
    key, attempt = found.key, found.run.attempts[0]
    label = f'target {key.number} of run {key.run_id}'
    if not isinstance(details, dict):
        return f'that for {label} is no JSON map'
    if not attempt.is_live:
        LOG.info('An answer for %s came after its end, and is ignored', label)
        return None
    answer = _answer(found, details)
    if answer is None or not leading.leader().take(found, answer):
        LOG.info('An answer for %s no longer counts, and is ignored', label)
    return None


def _answer(
    found: run_store.Awaiting, details: dict[str, Any]
) -> stepping.Answer | None:
    """Return what a server says; None if its deployment is no longer there."""
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
