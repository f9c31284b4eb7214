# SPDX-License-Identifier: Apache-2.0
"""Actions on deployment plans: ``plan.*``.

The quick ones answer a call of Mistral's API for an action. For the long
ones, which are to create, update and delete a plan, there are workflows of
the same names, and ``plan.deploy``.

A result of more than 64 KiB comes as a reference: a map of ``container``,
``object`` and ``bytes``, for a text of JSON in the object store. What goes
wrong is a map of ``code`` and ``message``.
"""

import dataclasses
import time

from mistral_lib import actions
from oslo_config import cfg

from heat_plugins import config
from heat_plugins.clients import heat_stacks
from heat_plugins.clients import mistral_registry
from heat_plugins.clients import swift
from heat_plugins.mistral_actions import results
from heat_plugins.mistral_actions import sessions
from heat_plugins.objectstore import errors as store_errors
from heat_plugins.objectstore import parcels
from heat_plugins.objectstore import store as store_module
from heat_plugins.plans import codes
from heat_plugins.plans import errors
from heat_plugins.plans import operations
from heat_plugins.plans import service
from heat_plugins.plans.content import rendering
from heat_plugins.runs import errors as session_errors

CONF = cfg.CONF


def store(context):
    """Return the object store, with the credentials of a context."""
    session = sessions.session(context.security)
    options = sessions.options(context.security)
    return store_module.ObjectStore(
        swift.KeystoneTransport(session, **options)
    )


def core(context, objects):
    """Return the core, with the credentials of a context."""
    session = sessions.session(context.security)
    options = sessions.options(context.security)
    stacks = heat_stacks.HeatStacks(session, **options)
    registry = mistral_registry.Registry(session, **options)
    plans = service.Plans(objects, registry, stacks, limits=limits())
    return operations.Operations(plans, objects, stacks)


def limits():
    """Return the operator's limits of what templates may take."""
    config.register_opts(CONF)
    found = CONF[config.GROUP]
    return rendering.Limits(
        seconds=found.plan_render_seconds,
        memory=found.plan_render_memory * 1024**2,
        output=found.plan_render_output * 1024**2,
    )


class _PlanAction(actions.Action):
    """Calls the operation of that name with its own arguments."""

    _operation = ''

    def run(self, context):
        arguments = dict(vars(self))
        try:
            objects = store(context)
            found = getattr(core(context, objects), self._operation)(
                **arguments
            )
            container = arguments.get('plan')
            return parcels.pack(objects, container, found, time.time())
        except (
            errors.PlanError,
            session_errors.RunError,
            store_errors.SignalError,
        ) as exc:
            return actions.Result(error=codes.report(exc))
        except Exception as exc:
            return actions.Result(error=results.unexpected(self, context, exc))


# dataclasses write the __init__ that Mistral reads the arguments from.
_arguments = dataclasses.dataclass(eq=False, repr=False)


@_arguments
class Create(_PlanAction):
    """Make a plan of what lies in the object store.

    :param plan: its name.
    :param container: the objects in it are the plan's files.
    :param object: a tarball in the container, which has the files then.
    :param template: the root template, where the plan itself names none.
    :param description: of the plan.
    :param render: whether to render Jinja templates.
    :param resume: whether to go on where somebody has broken off.
    :returns: the plan, as plan.show shows it.
    """

    _operation = 'create'
    plan: str
    container: str
    object: str = None
    template: str = None
    description: str = None
    render: bool = False
    resume: bool = False


@_arguments
class Update(_PlanAction):
    """Change the files of a plan; what is enabled and set in it stays.

    :param plan: its name.
    :param container: where files to be put into it lie, if any.
    :param object: a tarball in the container, which has the files then.
    :param delete: a list of paths to take out.
    :param prune: whether to take out all that is not put in.
    :returns: the plan, as plan.show shows it.
    """

    _operation = 'update'
    plan: str
    container: str = None
    object: str = None
    delete: list = ()
    prune: bool = False


@_arguments
class Delete(_PlanAction):
    """Delete a plan that has no stack.

    :param plan: its name.
    """

    _operation = 'delete'
    plan: str


@_arguments
class List(_PlanAction):
    """List the plans of the project.

    :returns: a list of maps: name, description, created_at.
    """

    _operation = 'list'


@_arguments
class Show(_PlanAction):
    """Show what a plan is, without its content.

    :param plan: its name.
    """

    _operation = 'show'
    plan: str


@_arguments
class GetCapabilities(_PlanAction):
    """Show what can be chosen in a plan, and what is.

    :param plan: its name.
    """

    _operation = 'get_capabilities'
    plan: str


@_arguments
class UpdateCapabilities(_PlanAction):
    """Enable and disable environments of a plan.

    :param plan: its name.
    :param choices: a map of paths, each with true or false.
    :param requirements: whether to enable what is required, too.
    :returns: what is enabled then.
    """

    _operation = 'update_capabilities'
    plan: str
    choices: dict
    requirements: bool = False


@_arguments
class GetParameters(_PlanAction):
    """Show the parameters of a plan, for each of its templates.

    :param plan: its name.
    :param refresh: whether to ask Heat also where nothing has changed.
    """

    _operation = 'get_parameters'
    plan: str
    refresh: bool = False


@_arguments
class UpdateParameters(_PlanAction):
    """Set parameters of a plan, and take back what was set.

    :param plan: its name.
    :param values: a map of parameters and their values; or a reference to
        one, as Mistral keeps the input and shows it.
    :param unset: a list of parameters.
    :param role: do so for one role.
    :returns: the names of what is set then.
    """

    _operation = 'update_parameters'
    plan: str
    values: dict = None
    unset: list = ()
    role: str = None


@_arguments
class ListRoles(_PlanAction):
    """List the roles of a plan's servers.

    :param plan: its name.
    """

    _operation = 'list_roles'
    plan: str


@_arguments
class Preview(_PlanAction):
    """Let Heat check a plan, and say what a deployment would change.

    :param plan: its name.
    :param take_over: whether the stack may be one that no plan has made.
    """

    _operation = 'preview'
    plan: str
    take_over: bool = False


@_arguments
class Start(_PlanAction):
    """Begin to create or update the stack of a plan, and do not wait.

    The workflow plan.deploy waits, and runs what the plan names for after.

    :param plan: its name.
    :param timeout: the most minutes that Heat may take.
    :param take_over: whether the stack may be one that no plan has made.
    """

    _operation = 'start'
    plan: str
    timeout: int = None
    take_over: bool = False


@_arguments
class Look(_PlanAction):
    """Look how a deployment that has begun stands.

    :param stack_id: what plan.start has returned.
    :param before: what plan.start has returned.
    """

    _operation = 'look'
    stack_id: str
    before: str = ''


@_arguments
class Status(_PlanAction):
    """Show how the deployment of a plan stands.

    :param plan: its name.
    """

    _operation = 'status'
    plan: str


@_arguments
class Cancel(_PlanAction):
    """Stop the deployment of a plan where it stands.

    :param plan: its name.
    """

    _operation = 'cancel'
    plan: str


@_arguments
class Diff(_PlanAction):
    """Show what a deployment of a plan would change in its stack.

    :param plan: its name.
    """

    _operation = 'diff'
    plan: str
