# SPDX-License-Identifier: Apache-2.0
"""Actions on bare metal nodes: ``nodes.*``.

``nodes.register`` writes to Ironic what a file says. What Ironic then does
with nodes takes long; ``nodes.begin`` gathers nodes, and ``nodes.step`` looks
and sends, until ``next_look`` is 0. The workflows ``nodes.register``,
``nodes.introspect`` and ``nodes.move`` do so and wait in between.

What goes wrong is a map of ``code`` and ``message``.
"""

import dataclasses

from mistral_lib import actions

from heat_plugins.clients import ironic
from heat_plugins.mistral_actions import plans
from heat_plugins.mistral_actions import results
from heat_plugins.mistral_actions import sessions
from heat_plugins.nodes import operations
from heat_plugins.objectstore import errors as store_errors
from heat_plugins.plans import codes
from heat_plugins.plans import errors
from heat_plugins.runs import errors as session_errors


def core(context):
    """Return the core, with the credentials of a context."""
    session = sessions.session(context.security)
    options = sessions.options(context.security)
    return operations.Operations(
        ironic.Baremetal(session, **options), plans.store(context)
    )


class _NodeAction(actions.Action):
    """Calls the operation of that name with its own arguments."""

    _operation = ''

    def run(self, context):
        try:
            return getattr(core(context), self._operation)(**vars(self))
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
class List(_NodeAction):
    """List the nodes that the project may see."""

    _operation = 'list'


@_arguments
class Register(_NodeAction):
    """Let Ironic have the nodes of a file.

    :param nodes: what the file holds; or a reference to it, as Mistral keeps
        the input and shows it, passwords and all.
    :param remove: whether nodes that it does not name go, if nobody uses
        them.
    :param dry_run: whether only to say what would be done.
    :returns: a map: nodes, each with what was done; success; and the uuids
        of those that are enrolled, or manageable, now.
    """

    _operation = 'register'
    nodes: dict
    remove: bool = False
    dry_run: bool = False


@_arguments
class Begin(_NodeAction):
    """Gather nodes for a way, and send none yet.

    :param verb: manage, inspect or provide.
    :param nodes: a list of uuids or names; null for all that can be sent.
    :param concurrency: the most nodes on their way at a time.
    :param attempts: how often a node is sent, if it fails.
    :param timeout: seconds that a node may take, all in all.
    :returns: as nodes.step.
    """

    _operation = 'begin'
    verb: str
    nodes: list = None
    concurrency: int = operations.CONCURRENCY
    attempts: int = operations.ATTEMPTS
    timeout: float = operations.TIMEOUT


@_arguments
class Step(_NodeAction):
    """Judge the nodes that are on their way, and send others.

    :param convoy: what nodes.begin or the last nodes.step has returned.
    :returns: a map: convoy; done, the uuids of those that have arrived;
        next_look, in seconds, 0 at the end; success, null before that; and
        the reason.
    """

    _operation = 'step'
    convoy: dict


@_arguments
class Abort(_NodeAction):
    """Stop inspections, whoever has begun them.

    :param nodes: a list of uuids or names; null for all.
    :returns: a map: nodes, the uuids of those that were asked to stop; and
        moving, of those that cannot be stopped just now.
    """

    _operation = 'abort'
    nodes: list = None


@_arguments
class Summaries(_NodeAction):
    """Show what the last inspections of nodes have found, in few numbers.

    :param nodes: a list of uuids or names.
    """

    _operation = 'summaries'
    nodes: list
