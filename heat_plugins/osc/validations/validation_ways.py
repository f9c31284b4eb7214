# SPDX-License-Identifier: Apache-2.0
"""The two ways to run validations: through Mistral, or from here."""

import contextlib
import json
import time

from osc_lib import exceptions

from heat_plugins.objectstore import errors as store_errors
from heat_plugins.osc.plans import plan_ways
from heat_plugins.plans import codes
from heat_plugins.plans import errors
from heat_plugins.validations import ledger as ledgers
from heat_plugins.validations import operations
from heat_plugins.validations import origins

# Seconds between two looks at a run.
_INTERVAL = 1.0


def way(manager, from_here):
    """Return a way.

    :param manager: the client manager of a command.
    :param from_here: whether playbooks run on this machine.
    """
    kind = _FromHere if from_here else _ThroughMistral
    return kind(plan_ways.way(manager, from_here))


class _FromHere:
    """Runs playbooks on this machine.

    :param plans: the way to plans.
    """

    def __init__(self, plans):
        self._plans = plans
        self.core = plans.validations

    def packaged(self, package, groups):
        """List the validations of a package."""
        return self.core.list(package=package, groups=groups)

    def run(self, source, content, show, *, wait, **options):
        """Run validations; return the run.

        :param source: what names them, as `operations` takes it.
        :param content: files instead of that; None if there are none.
        :param show: is told how the run stands.
        """

        def tell(run):
            show.changed(operations.report(run))

        if content is None:
            return self.core.run(**source, **options, tell=tell)
        given = origins.Source(name='files', content=content)
        return self.core.carry_out(given, **options, tell=tell)


class _ThroughMistral:
    """Lets one of Mistral's executors run them."""

    sleep = staticmethod(time.sleep)

    def __init__(self, plans):
        self._plans = plans
        self.core = plans.validations

    def packaged(self, package, groups):
        return self._plans.executions.run_action(
            'validations.list',
            {'package': package, 'groups': groups},
            f'package {package}',
        )

    def run(self, source, content, show, *, wait, secrets, **options):
        run_id = ledgers.new_id(time.strftime('%Y%m%dT%H%M%SZ', time.gmtime()))
        arguments = {**source, **options, 'run_id': run_id}
        with contextlib.ExitStack() as uploads:
            if content is not None:
                packed = plan_ways.packed(content)
                place = uploads.enter_context(self._plans.upload(packed))
                arguments['container'] = place['container']
                arguments['object'] = place['object']
            if secrets:
                # Mistral keeps the input of a workflow, and shows it.
                arguments['secrets'] = uploads.enter_context(
                    self._plans.upload(json.dumps(secrets).encode())
                )
            execution_id = self._plans.executions.start_workflow(
                'validations.run', arguments, f'validations {run_id}'
            )
            show.begun(run_id)
            return self._follow(execution_id, run_id, show, wait)

    def _follow(self, execution_id, run_id, show, wait):
        while True:
            self.sleep(_INTERVAL)
            with contextlib.suppress(
                store_errors.Unavailable, errors.NotFound
            ):
                found = self.core.result(run_id)
                show.changed(found)
                if not wait:
                    return found
            # It goes on, whether somebody can look or not.
            with contextlib.suppress(errors.Unavailable):
                execution = self._plans.executions.execution(execution_id)
                if execution.ended:
                    return self._judged(execution, run_id)

    def _judged(self, execution, run_id):
        with contextlib.suppress(errors.NotFound):
            found = self.core.result(run_id)
            # An executor that has died has not said how it ends.
            if found['success'] is not None:
                return found
        said = execution.output.get('error')
        if isinstance(said, dict) and said.get('message'):
            raise codes.error(said)
        raise exceptions.CommandError(
            f'Execution {execution.id} of Mistral: {execution.reason}'
        )
