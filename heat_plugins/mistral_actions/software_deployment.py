# SPDX-License-Identifier: Apache-2.0
"""Actions on running stacks: ``software_deployment.*``."""

from collections import abc

from mistral_lib import actions

from heat_plugins.clients import heat
from heat_plugins.clients import swift
from heat_plugins.mistral_actions import results
from heat_plugins.mistral_actions import sessions
from heat_plugins.objectstore import errors as store_errors
from heat_plugins.objectstore import store as store_module
from heat_plugins.runs import errors
from heat_plugins.runs import service as services
from heat_plugins.runs.start import starting


def service(context):
    """Return the core, with the credentials of an action's context."""
    security = context.security
    session = sessions.session(security)
    options = sessions.options(security)
    who = sessions.user_name(session)
    execution = context.execution.workflow_execution_id
    return services.Runs(
        heat.Heat(session, **options),
        store_module.ObjectStore(swift.KeystoneTransport(session, **options)),
        who=f'{who}, by workflow execution {execution}' if execution else who,
    )


class _RunAction(actions.Action):
    """An action that ends with a run, or with an error."""

    def run(self, context):
        try:
            return results.run(self._act(service(context)))
        except (errors.RunError, store_errors.SignalError) as exc:
            return actions.Result(error=results.error(exc))
        except Exception as exc:
            return actions.Result(error=results.unexpected(self, context, exc))


class Trigger(_RunAction):
    """Start an action, such as BACKUP, on a server of a stack.

    :param stack: name or ID of the stack.
    :param resource: the deployment: name, path in nested stacks
        (parent.child) or physical ID.
    :param action: the action.
    :param input_values: a map of inputs that are to have other values than
        the stack gives them. Mistral shows them to everybody in the project.
    :param timeout: the most seconds that the run may take; by default those
        of the deployment's property "timeout", or 3600.
    :param delivery_timeout: the most seconds until the server reports that
        it has begun; only for actions that report.
    :returns: the run, which has not ended yet.
    """

    def __init__(
        self,
        stack,
        resource,
        action,
        input_values=None,
        timeout=None,
        delivery_timeout=None,
    ):
        self.stack = stack
        self.resource = resource
        self.action = action
        self.input_values = input_values
        self.timeout = timeout
        self.delivery_timeout = delivery_timeout

    def _act(self, service):
        order = self._order()
        found = service.find(self.stack, self.resource)
        if len(found) != 1:
            raise errors.Refused(
                f'{self.resource} holds {len(found)} deployments; name one '
                f'of them: {", ".join(target.path for target in found)}'
            )
        return service.start(found[0], order)

    def _order(self):
        inputs = self.input_values or {}
        if not isinstance(inputs, abc.Mapping):
            # Whatever it is: not to be quoted.
            raise errors.Refused(
                'input_values should be a map of inputs: name: value'
            )
        return starting.Order(
            action=self.action,
            inputs=inputs,
            timeout=_seconds('timeout', self.timeout),
            delivery_timeout=_seconds(
                'delivery_timeout', self.delivery_timeout
            ),
        )


class Show(_RunAction):
    """Look what has become of a run.

    :param stack: name or ID of its stack; the ID if it was deleted.
    :param run_id: the run.
    :returns: the run.
    """

    def __init__(self, stack, run_id):
        self.stack = stack
        self.run_id = run_id

    def _act(self, service):
        return service.show(self.stack, self.run_id)


class Cancel(_RunAction):
    """Take a run back from its server.

    A server that has not fetched it never runs it; one that has is not
    stopped.

    :param stack: name or ID of its stack.
    :param run_id: the run.
    :returns: the run.
    """

    def __init__(self, stack, run_id):
        self.stack = stack
        self.run_id = run_id

    def _act(self, service):
        return service.cancel(self.stack, self.run_id)


def _seconds(name, value):
    """Return a number of seconds that a workflow has given, or None."""
    if value is None:
        return None
    try:
        seconds = int(value)
    except (TypeError, ValueError):
        seconds = 0
    if seconds < 1:
        raise errors.Refused(f'{name} should be 1 or more seconds: {value!r}')
    return seconds
