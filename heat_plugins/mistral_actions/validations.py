# SPDX-License-Identifier: Apache-2.0
"""Actions on validations: ``validations.*``.

``validations.run`` lasts as long as its playbooks do; workflows of that name,
and ``validations.run_group``, are there for whoever wants to wait. When the
execution that it is part of ends before, be it cancelled or deleted, so do
the playbooks.

What goes wrong is a map of ``code`` and ``message``.
"""

import dataclasses

from mistral_lib import actions
from oslo_config import cfg

from heat_plugins import config
from heat_plugins.clients import heat_servers
from heat_plugins.clients import heat_stacks
from heat_plugins.clients import mistral_executions
from heat_plugins.clients import mistral_registry
from heat_plugins.mistral_actions import plans
from heat_plugins.mistral_actions import results
from heat_plugins.mistral_actions import sessions
from heat_plugins.objectstore import errors as store_errors
from heat_plugins.plans import codes
from heat_plugins.plans import errors
from heat_plugins.plans import service
from heat_plugins.runs import errors as session_errors
from heat_plugins.validations import operations

CONF = cfg.CONF


def core(context):
    """Return the core, with the credentials of a context."""
    session = sessions.session(context.security)
    options = sessions.options(context.security)
    objects = plans.store(context)
    stacks = heat_stacks.HeatStacks(session, **options)
    registry = mistral_registry.Registry(session, **options)
    return operations.Operations(
        service.Plans(objects, registry, stacks),
        objects,
        stacks,
        heat_servers.HeatServers(session, **options),
    )


class _ValidationAction(actions.Action):
    """Calls the operation of that name with its own arguments."""

    _operation = ''

    def run(self, context):
        try:
            return self._act(context)
        except (
            errors.PlanError,
            session_errors.RunError,
            store_errors.SignalError,
        ) as exc:
            return actions.Result(error=codes.report(exc))
        except Exception as exc:
            return actions.Result(error=results.unexpected(self, context, exc))

    def _act(self, context):
        return getattr(core(context), self._operation)(**vars(self))


_arguments = dataclasses.dataclass(eq=False, repr=False)


@_arguments
class List(_ValidationAction):
    """List validations; one of plan, object and package says which.

    :param plan: a plan, in whose folder validations they are.
    :param container: of the object.
    :param object: a tarball with playbooks.
    :param package: a Python package that is installed here.
    :param groups: a list of groups; only those in one of them.
    :returns: a map of validations and warnings.
    """

    _operation = 'list'
    plan: str = None
    container: str = None
    object: str = None
    package: str = None
    groups: list = ()


@_arguments
class Required(_ValidationAction):
    """Say which groups have to pass before a plan is deployed.

    :param plan: its name.
    :returns: a map of groups.
    """

    _operation = 'required'
    plan: str


@_arguments
class Run(_ValidationAction):
    """Run validations, and wait for their end.

    The operator of this Mistral has to allow it.

    :param plan: a plan, in whose folder validations they are.
    :param container: of the object.
    :param object: a tarball with playbooks.
    :param package: a Python package that is installed here.
    :param validations: a list of names; without it, and groups, all.
    :param groups: a list of groups.
    :param stack: whose servers are meant; by default the plan's stack, if
        there is one. Empty: the machine of the executor alone.
    :param host_groups: a map of groups that playbooks name: for each a list
        of hosts, such as localhost; an empty one means all.
    :param connection: to the servers, ssh or local.
    :param user: to log in as.
    :param variables: a map of variables. Mistral shows them.
    :param secrets: a reference to a map of variables and ssh_key, which
        nobody is to see: a map of container, object and bytes.
    :param at_once: so many playbooks at once.
    :param timeout: the most seconds that each of them may take.
    :param run_id: of the new run; by default one is made up.
    :returns: the run, without the details of its validations.
    """

    _operation = 'run'
    plan: str = None
    container: str = None
    object: str = None
    package: str = None
    validations: list = ()
    groups: list = ()
    stack: str = None
    host_groups: dict = None
    connection: str = 'ssh'
    user: str = ''
    variables: dict = None
    secrets: dict = None
    at_once: int = 4
    timeout: int = 1800
    run_id: str = None

    def _act(self, context):
        config.register_opts(CONF)
        if not CONF.heat_plugins.run_validations:
            raise errors.Refused(
                'The operator of this Mistral does not let it run playbooks '
                '([heat_plugins] run_validations in mistral.conf); with '
                '--local the commands run them from where they are'
            )
        return core(context).run(**vars(self), abandoned=_abandoned(context))


@_arguments
class Stop(_ValidationAction):
    """Ask whoever runs validations to end their playbooks.

    :param run_id: the run.
    :returns: the run, which may not have ended yet.
    """

    _operation = 'stop'
    run_id: str


@_arguments
class Results(_ValidationAction):
    """List the runs of validations that are kept, the latest first.

    :param plan: only those of a plan.
    """

    _operation = 'results'
    plan: str = None


@_arguments
class Result(_ValidationAction):
    """Show a run of validations, or all about a validation in it.

    :param run_id: the run.
    :param validation: the name of a validation.
    """

    _operation = 'result'
    run_id: str
    validation: str = None


def _abandoned(context):
    """Return what says whether the execution around an action has ended."""
    execution_id = context.execution.workflow_execution_id
    if execution_id is None:
        return lambda: False
    executions = mistral_executions.Executions(
        sessions.session(context.security),
        **sessions.options(context.security),
    )

    def ended():
        try:
            return executions.execution(execution_id).ended
        except errors.ServiceError as exc:
            if exc.status == 404:
                return True
            raise

    return ended
