# SPDX-License-Identifier: Apache-2.0
"""The two ways to work on nodes: through Mistral, or from here."""

import contextlib
import json
import time

from osc_lib import exceptions

from heat_plugins.clients import ironic
from heat_plugins.nodes import operations
from heat_plugins.osc.plans import plan_ways
from heat_plugins.plans import codes
from heat_plugins.plans import errors

# Seconds between two looks at an execution.
_INTERVAL = 1.0

# How often Ironic may be out of order, one look after the other.
_PATIENCE = 60

# How often to look, a second each, whether what has just begun can be stopped.
_STOPPING = 30


def way(manager, from_here):
    """Return a way.

    :param manager: the client manager of a command.
    :param from_here: whether it goes past Mistral's actions.
    """
    plans = plan_ways.way(manager, from_here)
    core = operations.Operations(
        ironic.Baremetal(
            manager.session,
            interface=manager.interface or 'public',
            region_name=manager.region_name,
        ),
        plans.store,
    )
    return FromHere(core) if from_here else ThroughMistral(core, plans)


class Failed(Exception):
    """Not all nodes have come to their end.

    :ivar found: what there is to be shown all the same.
    """

    def __init__(self, reason, found):
        super().__init__(reason)
        self.found = found


class FromHere:
    """Does it all in this process.

    :param core: the operations.
    """

    sleep = staticmethod(time.sleep)

    def __init__(self, core):
        self.core = core

    def list(self):
        return self.core.list()

    def abort(self, nodes):
        return self.core.abort(nodes)

    def register(self, nodes, show, *, manage, provide, timeout, **options):
        """Register the nodes of a file; return what has become of each.

        :raises Failed: not all of them are where they should be.
        """
        found = self.core.register(nodes, **options)
        reasons = [] if found['success'] else ['Not all nodes are registered']
        moved = []
        if manage and not options['dry_run']:
            ready = found['manageable']
            report = self._lead(show, 'manage', found['enrolled'], timeout)
            moved += report['convoy']['members']
            reasons.append(report['reason'])
            if provide:
                ready = [*ready, *report['done']]
                report = self._lead(show, 'provide', ready, timeout)
                moved += report['convoy']['members']
                reasons.append(report['reason'])
        return _checked({'nodes': found['nodes'], 'moved': moved}, reasons)

    def introspect(self, nodes, show, *, provide, timeout, **options):
        """Let nodes be inspected; return how each stands, and what was found.

        :raises Failed: not all of them were.
        """
        report = self._lead(show, 'inspect', nodes, timeout, **options)
        found = {
            'nodes': report['convoy']['members'],
            'found': self.core.summaries(report['done']),
        }
        reasons = [report['reason']]
        if provide:
            report = self._lead(show, 'provide', report['done'], timeout)
            reasons.append(report['reason'])
        return _checked(found, reasons)

    def provide(self, nodes, show, *, timeout):
        """Let nodes become available; return how each stands.

        :raises Failed: not all of them have.
        """
        report = self._lead(show, 'provide', nodes, timeout)
        members = report['convoy']['members']
        return _checked({'nodes': members}, [report['reason']])

    def _lead(self, show, verb, nodes, timeout, **options):
        """Lead nodes to their end; stop them where we are interrupted."""
        report = self.core.begin(verb, nodes, timeout=timeout, **options)
        try:
            while report['success'] is None:
                report = self._step(report)
                show(report)
                self.sleep(report['next_look'])
        except KeyboardInterrupt:
            self.core.stop(report['convoy'])
            if verb == 'inspect':
                members = report['convoy']['members']
                _stop(self, [one['uuid'] for one in members])
            raise
        return report

    def _step(self, report):
        for attempt in range(_PATIENCE):
            try:
                return self.core.step(report['convoy'])
            except errors.Unavailable:
                if attempt == _PATIENCE - 1:
                    raise
                self.sleep(report['next_look'])


class ThroughMistral:
    """Lets Mistral's workflows do it.

    :param core: for what asks Ironic alone.
    :param plans: the way to plans.
    """

    sleep = staticmethod(time.sleep)

    def __init__(self, core, plans):
        self.core = core
        self._plans = plans

    def list(self):
        return self._plans.executions.run_action('nodes.list', {}, 'nodes')

    def register(self, nodes, show, **options):
        # Mistral keeps the input of a workflow, and shows it.
        with self._plans.upload(json.dumps(nodes).encode()) as place:
            return self._run('register', {'nodes': place, **options}, show)

    def introspect(self, nodes, show, **options):
        begun = self.core.begin('inspect', nodes)
        nodes = [one['uuid'] for one in begun['convoy']['members']]
        try:
            return self._run('introspect', {'nodes': nodes, **options}, show)
        except KeyboardInterrupt:
            _stop(self, nodes)
            raise

    def provide(self, nodes, show, **options):
        arguments = {'verb': 'provide', 'nodes': nodes, **options}
        return self._run('move', arguments, show)

    def abort(self, nodes):
        return self._plans.executions.run_action(
            'nodes.abort', {'nodes': nodes}, 'nodes'
        )

    def _run(self, operation, arguments, show):
        """Run a workflow to its end; return its output."""
        executions = self._plans.executions
        execution_id = executions.start_workflow(
            f'nodes.{operation}', arguments, 'nodes'
        )
        show({'execution': execution_id})
        try:
            while True:
                self.sleep(_INTERVAL)
                # It goes on, whether somebody can look or not.
                with contextlib.suppress(errors.Unavailable):
                    found = executions.execution(execution_id)
                    if found.ended:
                        return self._judged(found)
        except KeyboardInterrupt:
            executions.cancel(execution_id)
            raise

    def _judged(self, found):
        if found.success:
            return found.output
        said = found.output.get('error')
        # Where an executor has died it is a text of Mistral's.
        ours = isinstance(said, dict) and said.get('message')
        if found.output.get('nodes'):
            raise Failed(ours or found.reason, found.output)
        if ours:
            raise codes.error(said)
        raise exceptions.CommandError(
            f'Execution {found.id} of Mistral: {found.reason}'
        )


def _stop(way, nodes):
    """Stop inspections, also of nodes that have only just been sent."""
    for _ in range(_STOPPING):
        if not way.abort(nodes)['moving']:
            return
        way.sleep(1)


def _checked(found, reasons):
    reasons = [reason for reason in reasons if reason]
    if reasons:
        raise Failed('; '.join(reasons), found)
    return found
