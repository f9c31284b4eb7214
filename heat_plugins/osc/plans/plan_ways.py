# SPDX-License-Identifier: Apache-2.0
"""The two ways to work on plans: through Mistral, or from here.

Both call the same operations of the core, and have the same results.
"""

import contextlib
import io
import json
import time

from osc_lib import exceptions

from heat_plugins import foreign
from heat_plugins import pool
from heat_plugins.clients import failures
from heat_plugins.clients import heat_servers
from heat_plugins.clients import heat_stacks
from heat_plugins.clients import mistral_executions
from heat_plugins.clients import mistral_registry
from heat_plugins.clients import rest
from heat_plugins.clients import swift
from heat_plugins.content import tarballs
from heat_plugins.objectstore import errors as store_errors
from heat_plugins.objectstore import parcels
from heat_plugins.objectstore import store as store_module
from heat_plugins.plans import codes
from heat_plugins.plans import errors
from heat_plugins.plans import local
from heat_plugins.plans import operations
from heat_plugins.plans import service
from heat_plugins.plans.deploy import following
from heat_plugins.plans.deploy import steps
from heat_plugins.validations import operations as validations

LOG = foreign.logger(__name__)

# What no plan has at its top.
_TOP = '.heat-plugins-upload'

# Seconds between two looks at an execution.
_INTERVAL = 1.0


def way(manager, from_here):
    """Return a way.

    :param manager: the client manager of a command.
    :param from_here: whether it goes past Mistral's actions.
    """
    return (_FromHere if from_here else _ThroughMistral)(manager)


class _Way:
    """What both have in common.

    :ivar core: the operations, with the session of the command.
    :ivar validations: those on validations.
    """

    sleep = staticmethod(time.sleep)

    def __init__(self, manager):
        self._session = manager.session
        self._options = {
            'interface': manager.interface or 'public',
            'region_name': manager.region_name,
        }
        self.store = store_module.ObjectStore(
            swift.KeystoneTransport(self._session, **self._options)
        )
        stacks = heat_stacks.HeatStacks(self._session, **self._options)
        self.core = operations.Operations(
            service.Plans(self.store, self._registry(), stacks),
            self.store,
            stacks,
        )
        self.validations = validations.Operations(
            self.core.plans,
            self.store,
            stacks,
            heat_servers.HeatServers(self._session, **self._options),
        )
        self.executions = mistral_executions.Executions(
            self._session, **self._options
        )

    def follow(self, plan, stack_id, show):
        """Wait until nothing of a plan's stack is in progress."""
        self.follower(plan, stack_id).follow(show.changed)

    def follower(self, plan, stack_id, **more):
        """Return what follows the stack of a plan."""
        return following.Follower(
            self.core.stacks,
            stack_id,
            mask=self.core.deployer.mask(plan),
            sleep=self.sleep,
            **more,
        )

    def _registry(self):
        return mistral_registry.Registry(self._session, **self._options)


class _FromHere(_Way):
    """Does it all in this process."""

    def call(self, operation, **arguments):
        """Call an operation of the core; return what it returns."""
        found = getattr(self.core, operation)(**arguments)
        # As JSON has it, and so as the other way has it.
        return json.loads(json.dumps(found))

    def update_parameters(self, **arguments):
        """Set and unset parameters; see `operations.Operations`."""
        return self.call('update_parameters', **arguments)

    def create(self, plan, content, progress, **options):
        """Make a plan of files; see `service.Plans.create`."""
        self.core.plans.create(plan, content, progress=progress, **options)
        return self.call('show', plan=plan)

    def create_from_container(self, plan, container, progress, **options):
        """Make a plan of a container."""
        self.core.plans.create_from_container(
            plan, container, progress=progress, **options
        )
        return self.call('show', plan=plan)

    def update(self, plan, content, progress, **options):
        """Change the files of a plan; see `service.Plans.update`."""
        self.core.plans.update(plan, content, progress=progress, **options)
        return self.call('show', plan=plan)

    def delete(self, plan, progress):
        """Delete a plan."""
        self.core.plans.delete(plan, progress=progress)

    def deploy(self, plan, show, *, wait, **options):
        """Deploy a plan.

        :param show: what shows the progress; see `progress.Deployment`.
        :raises errors.Failed: the deployment did not succeed.
        """
        self._validate(plan, show)
        begun = self.core.start(plan, **options)
        wanted = [
            steps.Step(**{**one, 'kind': steps.Kind(one['kind'])})
            for one in begun['steps']
        ]
        show.begun(begun['action'], begun['warnings'])
        if not wait:
            if wanted:
                LOG.warning(
                    'What the plan names for after a deployment will not '
                    'run: nobody waits for the end of it'
                )
            return
        found = self.follower(
            plan,
            begun['stack_id'],
            before=begun['before'],
            after_event=begun['after_event'],
        ).follow(show.changed)
        if not found.success:
            raise errors.Failed(f'{found.status}: {found.reason}')
        steps.run(
            wanted,
            self.executions,
            f'plan {plan}',
            tell=lambda step: show.step(f'{step.kind} {step.name}'),
            sleep=self.sleep,
        )

    def _validate(self, plan, show):
        """Run what has to pass before a deployment.

        :raises errors.Refused: it does not.
        """
        groups = self.validations.required(plan)['groups']
        if not groups:
            return
        show.step(f'validations of {", ".join(groups)}')
        run = self.validations.run(plan, groups=groups)
        if not run['success']:
            raise errors.Refused(
                f'What the plan requires has not passed: {run["reason"]}'
            )

    def _registry(self):
        """Return Mistral's environments, or names in the object store."""
        mistral = rest.Rest(rest.MISTRAL, self._session, **self._options)
        try:
            if mistral.endpoint():
                return super()._registry()
        except rest.Failure as exc:
            raise failures.error(exc) from exc
        LOG.info(
            'The catalogue has no Mistral; names and locks of plans are kept '
            'in the object store'
        )
        return local.Names(self.store)


class _ThroughMistral(_Way):
    """Lets Mistral's actions and workflows do it."""

    def call(self, operation, **arguments):
        found = self.executions.run_action(
            f'plan.{operation}', arguments, _description(arguments)
        )
        return parcels.unpack(self.store, found)

    def update_parameters(self, values, **arguments):
        # Mistral keeps the input of an action, and shows it.
        with self.upload(json.dumps(values).encode()) as place:
            return self.call('update_parameters', values=place, **arguments)

    def create(self, plan, content, progress, **options):
        return self._sent('create', plan, content, progress, options)

    def create_from_container(self, plan, container, progress, **options):
        arguments = {'plan': plan, 'container': container, **options}
        return self._run('create', arguments)['plan']

    def update(self, plan, content, progress, **options):
        if not content:
            return self._run('update', {'plan': plan, **options})['plan']
        return self._sent('update', plan, content, progress, options)

    def delete(self, plan, progress):
        self._run('delete', {'plan': plan})

    def deploy(self, plan, show, *, wait, **options):
        stacks = self.core.stacks
        before = stacks.find(plan)
        follower = self.follower(
            plan,
            plan,
            before=before.changed_at if before else '',
            after_event=stacks.last_event(before) if before else None,
        )
        execution_id = self._start('deploy', {'plan': plan, **options})
        show.begun(f'execution {execution_id}', ())
        if not wait:
            return

        def tick():
            found = follower.look()
            if found.status:
                show.changed(found)

        found = self._ended(execution_id, tick)
        show.warn(found.output.get('warnings') or ())
        try:
            self._judge(found)
        except errors.PlanError as exc:
            raise type(exc)(
                f'{exc} (execution {execution_id} of Mistral)'
            ) from exc

    def _sent(self, operation, plan, content, progress, options):
        """Hand content to a workflow, in a tarball in the object store."""

        def tick():
            progress(min(self._files(plan), len(content)), len(content))

        with self.upload(packed(content)) as place:
            arguments = {'plan': plan, **options}
            arguments['container'] = place['container']
            arguments['object'] = place['object']
            return self._run(operation, arguments, tick)['plan']

    @contextlib.contextmanager
    def upload(self, content):
        """Put what is not to go through Mistral where its actions find it."""
        place = parcels.send(self.store, content)
        try:
            yield place
        finally:
            try:
                pool.Pool().insist(
                    lambda name: self.store.delete_object(
                        place['container'], name
                    ),
                    place['object'],
                )
            except store_errors.SignalError as exc:
                # The work is done; the store deletes it in its time.
                LOG.warning(
                    'Object %s of container %s could not be deleted: %s',
                    place['object'],
                    place['container'],
                    exc,
                )

    def _files(self, plan):
        """Return how many objects the container of a plan has by now."""
        try:
            headers = self.store.head_container(plan)
        except store_errors.SignalError:
            return 0
        return int(headers.get('x-container-object-count', 0))

    def _start(self, operation, arguments):
        return self.executions.start_workflow(
            f'plan.{operation}', arguments, _description(arguments)
        )

    def _run(self, operation, arguments, tick=lambda: None):
        """Run a workflow to its end; return its output."""
        return self._follow(self._start(operation, arguments), tick)

    def _follow(self, execution_id, tick):
        """Wait for the end of an execution; return its output."""
        found = self._ended(execution_id, tick)
        self._judge(found)
        return found.output

    def _ended(self, execution_id, tick):
        while True:
            found = self._look(execution_id, tick)
            if found is not None and found.ended:
                return found
            self.sleep(_INTERVAL)

    def _look(self, execution_id, tick):
        try:
            found = self.executions.execution(execution_id)
            tick()
        except errors.Unavailable:
            # It goes on, whether somebody can look or not.
            return None
        return found

    @staticmethod
    def _judge(found):
        """Raise the error that an execution has ended with, if any."""
        if found.success:
            return
        said = found.output.get('error')
        if isinstance(said, dict) and said.get('message'):
            raise codes.error(said)
        raise exceptions.CommandError(
            f'Execution {found.id} of Mistral: {found.reason}'
        )


def _description(arguments):
    return f'plan {arguments["plan"]}' if 'plan' in arguments else 'plans'


def packed(content):
    file = io.BytesIO()
    with tarballs.writer(file) as add:
        for path in sorted(content):
            # A single folder at the top is taken off again, unless the plan
            # has one of that name.
            add(f'{_TOP}/{path}', content[path])
    return file.getvalue()
