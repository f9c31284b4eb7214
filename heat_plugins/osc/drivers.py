# SPDX-License-Identifier: Apache-2.0
"""Work on plans, nodes and validations: in this process, or by Mistral.

Both drive the same operations and jobs, and have the same results.
"""

from collections import abc
import contextlib
import functools
import io
import json
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import jobs
from heat_plugins import retrying
from heat_plugins.clients import heat
from heat_plugins.clients import ironic
from heat_plugins.clients import mistral_api
from heat_plugins.clients import mistral_executions
from heat_plugins.clients import mistral_registry
from heat_plugins.clients import swift
from heat_plugins.content import sources
from heat_plugins.content import tarballs
from heat_plugins.nodes import node_jobs
from heat_plugins.nodes import node_operations
from heat_plugins.objectstore import parcels
from heat_plugins.objectstore import stores
from heat_plugins.osc import common
from heat_plugins.osc import progress as display
from heat_plugins.plans import local
from heat_plugins.plans import plan_operations
from heat_plugins.plans import plan_service
from heat_plugins.plans.deploy import deploying
from heat_plugins.plans.deploy import plan_deployment
from heat_plugins.plans.deploy import stack_following
from heat_plugins.validations import origins
from heat_plugins.validations import validation_ledger
from heat_plugins.validations import validation_operations

LOG = foreign.logger(__name__)

Report = dict[str, Any]

#: Is told how many files are done, and of how many.
Files = abc.Callable[[int, int], None]

# Seconds between two polls of a stack at most, and of an execution.
_MOST, _INTERVAL = 5.0, 2.0

# How often to poll, a second each, whether an inspection can be aborted.
_ABORTING = 30

# Arguments with secrets: Mistral keeps its input, and shows it.
_PRIVATE = {
    'nodes.register': 'nodes',
    'plan.update_parameters': 'values',
    'validations.run': 'secrets',
}

# What no plan has at its top.
_TOP = '.heat-plugins-upload'


class Driver:
    """Drives the work of a command.

    :ivar plans: the operations on plans, with the session of the command; so
        are those of nodes and validations.
    :ivar local: whether this process does the work, and not Mistral.
    """

    def __init__(
        self,
        *,
        store: stores.ObjectStore,
        plans: plan_operations.Operations,
        nodes: node_operations.Operations,
        validations: validation_operations.Operations,
        executions: mistral_executions.WorkflowExecutions,
        local: bool,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self.store = store
        self.plans = plans
        self.nodes = nodes
        self.validations = validations
        self.executions = executions
        self.local = local
        self.sleep = sleep

    def call(self, operation: str, **arguments: Any) -> Any:
        """Call an operation of the core, such as plan.show."""
        if self.local:
            room, _, name = operation.partition('.')
            core = {
                'plan': self.plans,
                'nodes': self.nodes,
                'validations': self.validations,
            }[room]
            return getattr(core, name)(**arguments)
        with self._sent(operation, arguments) as sent:
            result = self.executions.run_action(
                operation, sent, _description(operation, arguments)
            )
        return parcels.unpack(self.store, result)

    # Plans

    def create(
        self,
        plan: str,
        content: sources.Content | str,
        progress: Files,
        **options: Any,
    ) -> Report:
        """Make a plan of files, or of the container with a name."""
        if not self.local:
            return self._make('plan.create', plan, content, progress, options)
        plans: Any = self.plans.plans
        is_name = isinstance(content, str)
        create = plans.create_from_container if is_name else plans.create
        create(plan, content, progress=progress, **options)
        return self.plans.show(plan)

    def update(
        self,
        plan: str,
        content: sources.Content,
        progress: Files,
        **options: Any,
    ) -> Report:
        """Change the files of a plan; see `plan_service.Plans.update`."""
        if not self.local:
            return self._make('plan.update', plan, content, progress, options)
        self.plans.plans.update(plan, content, progress=progress, **options)
        return self.plans.show(plan)

    def delete(self, plan: str, progress: Files) -> None:
        """Delete a plan."""
        if self.local:
            self.plans.plans.delete(plan, progress=progress)
        else:
            self._finish('plan.delete', {'plan': plan})

    def deploy(
        self,
        plan: str,
        show: display.DeploymentProgress,
        *,
        wait: bool,
        **options: Any,
    ) -> None:
        """Deploy a plan; see `plan_deployment`.

        :raises errors.Failed: the deployment did not succeed.
        """
        if not self.local:
            self._deploy_by_mistral(plan, show, wait, options)
            return
        state = plan_deployment.Deployment(plan=plan, **options)
        step = self._deploy(state, show, wait=wait)
        if step.success is False:
            raise errors.Failed(step.reason)
        if step.success is None and step.state.started.steps:
            LOG.warning(
                "The plan's workflows and actions for after a deployment "
                'will not run, because the command does not wait for its end'
            )

    def follow(
        self, plan: str, stack_id: str, show: display.DeploymentProgress
    ) -> None:
        """Wait until nothing of a plan's stack is in progress."""
        state = plan_deployment.Deployment(
            plan=plan,
            phase=plan_deployment.Phase.FOLLOW,
            started=deploying.Started(stack_id=stack_id),
        )
        self._deploy(state, show, wait=True)

    def _deploy(
        self,
        state: plan_deployment.Deployment,
        show: display.DeploymentProgress,
        *,
        wait: bool,
    ) -> plan_deployment.Step:
        follower: stack_following.Follower | None = None

        def tell(step: plan_deployment.Step) -> bool:
            nonlocal follower
            started = step.state.started
            if not started.stack_id:
                return False
            show.begun(started.action, started.warnings)
            if wait:
                follower = follower or self._follower(state.plan, started)
                show.changed(follower.look())
            return not wait

        job = self.plans.deployment
        return jobs.drive(
            job,
            job.step(state, None),
            tell=tell,
            run=functools.partial(self._run_call, show),
            most=_MOST,
            sleep=self.sleep,
        )

    def _run_call(
        self, show: display.DeploymentProgress, call: jobs.Call
    ) -> jobs.Outcome:
        """Run a call of a deployment."""
        if call.name == plan_deployment.VALIDATIONS:
            show.step(f'validations of {", ".join(call.input["groups"])}')
            run = self.validations.run(**call.input)
            return jobs.Outcome(success=run['success'], reason=run['reason'])
        show.step(f'{call.kind} {call.name}')
        execution_id = self.executions.start(call, f'plan {show.plan}')
        return retrying.follow(
            functools.partial(self.executions.look, call, execution_id),
            lambda outcome: outcome.success is not None,
            interval=_INTERVAL,
            sleep=self.sleep,
        )

    def _deploy_by_mistral(
        self,
        plan: str,
        show: display.DeploymentProgress,
        wait: bool,
        options: Report,
    ) -> None:
        stacks = self.plans.plans.stacks
        former = stacks.find(plan)
        before = deploying.Started(stack_id=plan)
        if former is not None:
            before = deploying.Started(
                stack_id=plan,
                before=former.changed_at,
                after_event=stacks.last_event(former),
            )
        follower = self._follower(plan, before)

        def tell() -> None:
            stack = follower.look()
            if stack.status:
                show.changed(stack)

        with self._started('plan.deploy', {'plan': plan, **options}) as begun:
            show.begun(f'execution {begun}')
            if not wait:
                return
            execution = self._follow(begun, tell)
        show.warn(execution.output.get('warnings') or ())
        if not execution.success:
            error = execution.error()
            if not execution.own_error:
                raise error
            raise type(error)(f'{error} (execution {begun} of Mistral)')

    def _follower(
        self, plan: str, started: deploying.Started
    ) -> stack_following.Follower:
        """Return what reads the progress of a plan's deployment."""
        return stack_following.Follower(
            self.plans.plans.stacks,
            started.stack_id,
            before=started.before,
            after_event=started.after_event,
            mask=self.plans.deployer.mask(plan),
        )

    def _make(
        self,
        workflow: str,
        plan: str,
        content: sources.Content | str,
        progress: Files,
        options: Report,
    ) -> Report:
        """Let a workflow make or change a plan."""
        arguments = {'plan': plan, **options}
        if isinstance(content, str):
            arguments['container'], content = content, {}
        total = len(content)

        def tell() -> None:
            if total:
                progress(min(self._files(plan), total), total)

        output = self._finish(workflow, arguments, tell, content)
        made: Report = output['plan']
        return made

    def _files(self, plan: str) -> int:
        """Return how many objects the container of a plan has."""
        try:
            headers = self.store.head_container(plan)
        except errors.ServiceError:
            return 0
        return int(headers.get('x-container-object-count', 0))

    # Nodes

    def register(
        self, nodes: Any, show: display.Nodes, *, remove: bool, **options: Any
    ) -> Report:
        """Register nodes; return what has become of each, and why not all."""
        job = node_jobs.Jobs(
            self.nodes, nodes, remove=remove, dry_run=options['dry_run']
        )
        return self._work(
            job,
            node_jobs.registration(**options),
            show,
            'nodes.register',
            {'nodes': nodes, 'remove': remove, **options},
        )

    def introspect(
        self,
        nodes: abc.Collection[str] | None,
        show: display.Nodes,
        **options: Any,
    ) -> Report:
        """Let nodes be inspected; return how each stands, and what it has."""
        if not self.local:
            begun = self.nodes.begin('inspect', nodes)
            nodes = [one['uuid'] for one in begun['convoy']['members']]
        return self._work(
            node_jobs.Jobs(self.nodes),
            node_jobs.introspection(nodes, **options),
            show,
            'nodes.introspect',
            {'nodes': nodes, **options},
        )

    def provide(
        self,
        nodes: abc.Collection[str] | None,
        show: display.Nodes,
        **options: Any,
    ) -> Report:
        """Let nodes become available; return how each stands."""
        return self._work(
            node_jobs.Jobs(self.nodes),
            node_jobs.move(('provide',), nodes, **options),
            show,
            'nodes.move',
            {'verb': 'provide', 'nodes': nodes, **options},
        )

    def _work(
        self,
        job: node_jobs.Jobs,
        state: node_jobs.NodeWork,
        show: display.Nodes,
        workflow: str,
        arguments: Report,
    ) -> Report:
        """Work on nodes to the end; stop them if the user interrupts."""

        def tell(step: node_jobs.Step) -> None:
            nonlocal state
            state = step.state
            for convoy in state.convoys[-1:]:
                show.changed(convoy)

        try:
            if not self.local:
                return self._work_by_mistral(workflow, arguments, show)
            step = jobs.drive(
                job, job.step(state, None), tell=tell, sleep=self.sleep
            )
            return {**step.state.report(), 'reason': step.reason}
        except KeyboardInterrupt:
            if self.local:
                job.stop(state)
            if 'inspect' in state.verbs:
                self._abort_inspections(state)
            raise

    def _abort_inspections(self, state: node_jobs.NodeWork) -> None:
        """Abort inspections, also of nodes that have only just been sent."""
        uuids = state.chosen or ()
        if state.convoys:
            uuids = tuple(one.uuid for one in state.convoys[0].members)
        for _ in range(_ABORTING):
            if not self.call('nodes.abort', nodes=[*uuids])['moving']:
                return
            self.sleep(1)

    def _work_by_mistral(
        self,
        workflow: str,
        arguments: Report,
        show: display.Nodes,
    ) -> Report:
        with self._started(workflow, arguments) as begun:
            show.begun(begun)
            try:
                execution = self._follow(begun)
            except KeyboardInterrupt:
                self.executions.cancel(begun)
                raise
        output = {'reason': '', **execution.output}
        if not execution.success:
            if not output.get('nodes'):
                raise execution.error()
            message = execution.own_error.get('message')
            output['reason'] = str(message or execution.reason)
        return output

    # Validations

    def validate(
        self,
        source: abc.Mapping[str, Any],
        content: sources.Content | None,
        show: display.Validations,
        *,
        wait: bool,
        secrets: Report,
        **options: Any,
    ) -> Report:
        """Run validations; return the run.

        :param source: what names them, as the operation takes it.
        :param content: files instead of that; None if there are none.
        """
        arguments = {**source, **options, 'secrets': secrets or None}
        if not self.local:
            at = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
            arguments['run_id'] = run_id = validation_ledger.new_id(at)
            with self._started('validations.run', arguments, content) as begun:
                show.begun(run_id)
                return self._follow_run(begun, run_id, show, wait)
        if content is not None:
            given = origins.Source(name='files', content=content)
            arguments['source'] = given
        return self.validations.run(
            **arguments,
            tell=lambda run: show.changed(validation_operations.report(run)),
        )

    def _follow_run(
        self,
        execution_id: str,
        run_id: str,
        show: display.Validations,
        wait: bool,
    ) -> Report:
        """Follow a run of validations; return it."""

        def tell() -> bool:
            with contextlib.suppress(errors.Unavailable, errors.NotFound):
                show.changed(self.validations.result(run_id))
                return not wait
            return False

        execution = self._follow(execution_id, tell)
        with contextlib.suppress(errors.NotFound):
            run = self.validations.result(run_id)
            # An executor that has died has not said how it ends.
            if run['success'] is not None or not execution.ended:
                return run
        raise execution.error()

    # Mistral

    def _finish(
        self,
        workflow: str,
        arguments: Report,
        tell: abc.Callable[[], None] = lambda: None,
        content: sources.Content | None = None,
    ) -> abc.Mapping[str, Any]:
        """Run a workflow to its end; return its output.

        :raises errors.Error: it did not succeed.
        """
        with self._started(workflow, arguments, content) as begun:
            execution = self._follow(begun, tell)
        if not execution.success:
            raise execution.error()
        return execution.output

    @contextlib.contextmanager
    def _started(
        self,
        workflow: str,
        arguments: Report,
        content: sources.Content | None = None,
    ) -> abc.Iterator[str]:
        """Start a workflow; give the id of its execution."""
        with self._sent(workflow, arguments, content) as sent:
            yield self.executions.start_workflow(
                workflow, sent, _description(workflow, arguments)
            )

    def _follow(
        self,
        execution_id: str,
        tell: abc.Callable[[], bool | None] = lambda: None,
    ) -> mistral_executions.WorkflowExecution:
        return mistral_executions.follow(
            self.executions, execution_id, tell=tell, sleep=self.sleep
        )

    @contextlib.contextmanager
    def _sent(
        self,
        name: str,
        arguments: abc.Mapping[str, Any],
        content: sources.Content | None = None,
    ) -> abc.Iterator[Report]:
        """Give arguments with references to what must not go through Mistral.

        :param name: of the workflow or action.
        :param content: files, for the arguments container and object.
        """
        sent = dict(arguments)
        places = []

        def send(body: bytes) -> Report:
            places.append(parcels.send(self.store, body))
            return places[-1]

        try:
            if content:
                place = send(_packed(content))
                sent |= {key: place[key] for key in ('container', 'object')}
            private = _PRIVATE.get(name, '')
            if sent.get(private) is not None:
                sent[private] = send(json.dumps(sent[private]).encode())
            yield sent
        finally:
            for place in places:
                self._forget(place['container'], place['object'])

    def _forget(self, container: str, name: str) -> None:
        try:
            retrying.insist(self.store.delete_object, container, name)
        except errors.ServiceError as exc:
            # The work is done; the store deletes it in its time.
            LOG.warning(
                'Cannot delete object %s of container %s: %s',
                name,
                container,
                exc,
            )


def _description(name: str, arguments: abc.Mapping[str, Any]) -> str:
    """Return what lists of executions say of one."""
    room = name.partition('.')[0]
    for key, what in (('run_id', room), ('package', 'package')):
        if arguments.get(key):
            return f'{what} {arguments[key]}'
    if room == 'plan':
        return f'plan {arguments["plan"]}' if 'plan' in arguments else 'plans'
    return room


def _packed(content: sources.Content) -> bytes:
    file = io.BytesIO()
    with tarballs.writer(file) as add:
        for path in sorted(content):
            # A single folder at the top is taken off again, unless the plan
            # has one of that name.
            add(f'{_TOP}/{path}', content[path])
    return file.getvalue()


def driver(manager: Any, is_local: bool) -> Driver:
    """Return what drives the work of a command.

    :param is_local: whether it does without Mistral's actions.
    """
    cloud = common.cloud(manager)
    store = swift.connect(cloud)
    stacks = heat.Heat(cloud)
    if is_local and not mistral_api.is_there(cloud):
        LOG.info(
            'The catalogue has no Mistral; keeping names and locks of plans '
            'in the object store'
        )
        names: Any = local.Names(store)
    else:
        names = mistral_registry.Registry(cloud)
    plans = plan_service.Plans(store, names, stacks)
    return Driver(
        store=store,
        plans=plan_operations.Operations(plans),
        nodes=node_operations.Operations(ironic.BaremetalAPI(cloud), store),
        validations=validation_operations.Operations(plans, stacks),
        executions=mistral_executions.WorkflowExecutions(cloud),
        local=is_local,
    )
