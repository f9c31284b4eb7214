# SPDX-License-Identifier: Apache-2.0
"""Work on plans, nodes and validations: in this process, or by Mistral.

Both drive the same operations and jobs, and have the same results.
"""

from collections import abc
import contextlib
import dataclasses
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
from heat_plugins.clients import mistral_plans
from heat_plugins.clients import swift
from heat_plugins.content import sources
from heat_plugins.content import tarballs
from heat_plugins.nodes import node_jobs
from heat_plugins.nodes import node_operations
from heat_plugins.objectstore import parcels
from heat_plugins.objectstore import stores
from heat_plugins.osc import common
from heat_plugins.osc import progress as display
from heat_plugins.plans import plan_names
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ended:
    """The end of a job, or its state where the command does not wait.

    :ivar output: that of its workflow; see `jobs.Job.output`.
    :ivar error: why it did not succeed.
    """

    output: abc.Mapping[str, Any]
    reason: str = ''
    error: errors.Error | None = None


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
        plans: plan_operations.PlanOperations,
        nodes: node_operations.NodeOperations,
        validations: validation_operations.ValidationOperations,
        executions: mistral_plans.WorkflowExecutions,
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
            return self._operation(operation)(**arguments)
        with self._sent(operation, arguments) as sent:
            result = self.executions.run_action(
                operation, sent, _description(operation, arguments)
            )
        return parcels.unpack(self.store, result)

    def _operation(self, name: str) -> abc.Callable[..., Any]:
        room, _, method = name.partition('.')
        cores = {
            'plan': self.plans,
            'nodes': self.nodes,
            'validations': self.validations,
        }
        operation: abc.Callable[..., Any] = getattr(cores[room], method)
        return operation

    def change(
        self,
        operation: str,
        plan: str,
        content: sources.Content | None,
        progress: Files,
        **options: Any,
    ) -> Report:
        """Create, update or delete a plan; return how it is shown then.

        :param operation: such as plan.create; see `plan_operations`.
        :param content: its files; None if `options` say where they are.
        """
        if self.local:
            if content is not None:
                options['content'] = content
            change = self._operation(operation)
            return change(plan, progress=progress, **options) or {}
        total = len(content or ())

        def tell() -> None:
            if total:
                progress(min(self._files(plan), total), total)

        arguments = {'plan': plan, **options}
        execution = self._follow(operation, arguments, tell, content=content)
        if not execution.success:
            raise execution.error()
        return execution.output.get('plan') or {}

    def _files(self, plan: str) -> int:
        """Return how many objects the container of a plan has."""
        try:
            headers = self.store.head_container(plan)
        except errors.ServiceError:
            return 0
        return int(headers.get('x-container-object-count', 0))

    # Jobs

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
        started = deploying.Started()
        if not self.local:
            started = self._ask(show, self.plans.deployer.observe, plan)
        follower: stack_following.StackFollower | None = None

        def tell(step: plan_deployment.Step | None = None) -> bool:
            nonlocal started, follower
            if step and not step.state.has_started:
                return False
            started = step.state.started if step else started
            follower = follower or self._follower(plan, started)
            if started.action:
                show.note(started.action)
            show.warn(started.warnings)
            if wait:
                show.changed(follower.look())
            elif started.steps:
                LOG.warning(
                    "The plan's workflows and actions for after a deployment "
                    'will not run, because the command does not wait for its '
                    'end'
                )
            return not wait

        arguments = {'plan': plan, **options}
        state = plan_deployment.PlanDeployment(**arguments)
        ended = self._drive(
            'plan.deploy',
            arguments,
            (self.plans.deployment, state),
            tell,
            show,
        )
        show.warn(ended.output.get('warnings') or ())
        if ended.error:
            raise ended.error

    def follow(
        self, plan: str, stack_id: str, show: display.DeploymentProgress
    ) -> None:
        """Wait until nothing of a plan's stack is in progress."""
        started = deploying.Started(stack_id=stack_id)
        look = self._follower(plan, started).look

        def has_ended(stack: stack_following.StackProgress) -> bool:
            show.changed(stack)
            return stack.ended

        retrying.follow(look, has_ended, interval=_INTERVAL, sleep=self.sleep)

    def _follower(
        self, plan: str, started: deploying.Started
    ) -> stack_following.StackFollower:
        """Return what reads the progress of a plan's deployment."""
        return stack_following.StackFollower(
            self.plans.plans.stacks,
            started.stack_id,
            before=started.before,
            after_event=started.after_event,
            mask=self.plans.deployer.mask(plan),
        )

    def work(self, kind: str, show: display.Nodes, **arguments: Any) -> Report:
        """Register, introspect or move nodes; return how each stands.

        :param kind: see `node_jobs.begin`, which takes `arguments`.
        """
        if kind == 'introspect':
            # So that an interrupt aborts no inspections of other callers.
            gathered = self._ask(
                show, self.nodes.begin, 'inspect', arguments['nodes']
            )
            members = gathered['convoy']['members']
            arguments['nodes'] = [member['uuid'] for member in members]

        def tell(step: node_jobs.Step | None = None) -> None:
            for convoy in step.state.convoys[-1:] if step else ():
                show.changed(convoy)

        begun = node_jobs.begin(self.nodes, kind, arguments)
        try:
            ended = self._drive(f'nodes.{kind}', arguments, begun, tell, show)
        except KeyboardInterrupt:
            if show.execution_id:
                self.executions.cancel(show.execution_id)
            if kind == 'introspect':
                self._abort_inspections(arguments['nodes'])
            raise
        if ended.error and not ended.output.get('nodes'):
            raise ended.error
        return {**ended.output, 'reason': ended.reason}

    def _abort_inspections(self, nodes: abc.Collection[str]) -> None:
        """Abort inspections, also of nodes that have only just been sent."""
        for _ in range(_ABORTING):
            if not self.call('nodes.abort', nodes=nodes)['moving']:
                return
            self.sleep(1)

    def _drive(
        self,
        workflow: str,
        arguments: Report,
        begun: tuple[jobs.Job[Any], Any],
        tell: abc.Callable[..., bool | None],
        show: display.JobProgress,
    ) -> Ended:
        """Drive a job, here or by its workflow.

        :param begun: the job and its first state.
        :param tell: is called with each step that is taken here, and with
            none while the workflow works; True ends the waiting.
        """
        if not self.local:
            execution = self._follow(workflow, arguments, tell, show.executes)
            return _ended(execution)
        job, state = begun
        step = jobs.drive(
            job,
            state,
            tell=tell,
            run=functools.partial(self._run, show),
            note=show.note,
            most=_MOST,
            sleep=self.sleep,
        )
        return Ended(
            output=job.output(step.state),
            reason=step.reason,
            error=(
                errors.Failed(step.reason) if step.success is False else None
            ),
        )

    def _run(
        self, show: display.JobProgress, call: jobs.Call
    ) -> jobs.CallOutcome:
        """Run a call of a job."""
        if call.name == plan_deployment.VALIDATIONS:
            show.note(f'validations of {", ".join(call.input["groups"])}')
            run = self.validations.run(**call.input)
            return jobs.CallOutcome(
                success=run['success'], reason=run['reason']
            )
        show.note(f'{call.kind} {call.name}')
        execution_id = self.executions.start(call, show.what)
        return retrying.follow(
            functools.partial(self.executions.look, call, execution_id),
            lambda outcome: outcome.success is not None,
            interval=_INTERVAL,
            sleep=self.sleep,
        )

    def _ask(
        self,
        show: display.JobProgress,
        ask: abc.Callable[..., Any],
        *arguments: Any,
    ) -> Any:
        """Ask a service for what a job then begins with."""
        return retrying.OutageBudget(show.note).insist(
            ask, *arguments, pause=_INTERVAL, sleep=self.sleep
        )

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
        if self.local:
            if content is not None:
                given = origins.PlaybookSource(name='files', content=content)
                arguments['source'] = given
            return self.validations.run(
                **arguments,
                tell=lambda run: show.changed(
                    validation_operations.report(run)
                ),
            )
        at = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
        run_id = validation_ledger.new_id(at)

        def tell() -> bool:
            with contextlib.suppress(errors.Unavailable, errors.NotFound):
                show.changed(self.validations.result(run_id))
                return not wait
            return False

        execution = self._follow(
            'validations.run',
            {**arguments, 'run_id': run_id},
            tell,
            lambda execution_id: show.begun(run_id),
            content,
        )
        with contextlib.suppress(errors.NotFound):
            run = self.validations.result(run_id)
            # An executor that has died has not said how it ends.
            if run['success'] is not None or not execution.ended:
                return run
        raise execution.error()

    # Mistral

    def _follow(
        self,
        workflow: str,
        arguments: abc.Mapping[str, Any],
        tell: abc.Callable[[], bool | None],
        begun: abc.Callable[[str], None] = lambda execution_id: None,
        content: sources.Content | None = None,
    ) -> mistral_plans.WorkflowExecution:
        """Start a workflow, and follow it to its end.

        :param tell: is called at each poll; True ends the waiting.
        :param begun: is called with the id of the execution.
        """
        goes_on = False
        with self._sent(workflow, arguments, content, lambda: goes_on) as sent:
            execution_id = self.executions.start_workflow(
                workflow, sent, _description(workflow, arguments)
            )
            goes_on = True
            begun(execution_id)
            execution = mistral_plans.follow(
                self.executions, execution_id, tell=tell, sleep=self.sleep
            )
            goes_on = not execution.ended
        return execution

    @contextlib.contextmanager
    def _sent(
        self,
        name: str,
        arguments: abc.Mapping[str, Any],
        content: sources.Content | None = None,
        goes_on: abc.Callable[[], bool] = lambda: False,
    ) -> abc.Iterator[Report]:
        """Give arguments with references to what must not go through Mistral.

        :param name: of the workflow or action.
        :param content: files, for the arguments container and object.
        :param goes_on: says at the end whether it may still need them, such as
            for a repetition. Then secrets go with it, and all after a day.
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
            for place in [] if goes_on() else places:
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


def _ended(execution: mistral_plans.WorkflowExecution) -> Ended:
    if execution.success or not execution.ended:
        return Ended(output=execution.output)
    error = execution.error()
    if execution.own_error:
        error = type(error)(f'{error} (execution {execution.id} of Mistral)')
    reason = execution.own_error.get('message') or execution.reason
    return Ended(output=execution.output, reason=str(reason), error=error)


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
        names: Any = plan_names.Names(store)
    else:
        names = mistral_plans.Registry(cloud)
    plans = plan_service.Plans(store, names, stacks)
    return Driver(
        store=store,
        plans=plan_operations.PlanOperations(plans),
        nodes=node_operations.NodeOperations(
            ironic.BaremetalAPI(cloud), store
        ),
        validations=validation_operations.ValidationOperations(plans, stacks),
        executions=mistral_plans.WorkflowExecutions(cloud),
        local=is_local,
    )
