# SPDX-License-Identifier: Apache-2.0
"""Work on plans, nodes and validations in this process."""

from collections import abc
import json
import time
from typing import Any

from heat_plugins.clients import mistral_executions
from heat_plugins.content import sources
from heat_plugins.nodes import leading
from heat_plugins.nodes import node_operations
from heat_plugins.objectstore import store as store_module
from heat_plugins.osc import progress
from heat_plugins.plans import plan_operations
from heat_plugins.plans.deploy import attending
from heat_plugins.plans.deploy import stack_following
from heat_plugins.validations import origins
from heat_plugins.validations import validation_operations

Report = dict[str, Any]

#: Is told how many files are done, and of how many.
Files = abc.Callable[[int, int], None]


class Local:
    """Does it in this process.

    :ivar plans: the operations on plans, with the session of the command.
    """

    def __init__(
        self,
        *,
        store: store_module.ObjectStore,
        plans: plan_operations.Operations,
        nodes: node_operations.Operations,
        validations: validation_operations.Operations,
        executions: mistral_executions.Executions,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self.store = store
        self.plans = plans
        self.nodes = nodes
        self.validations = validations
        self.executions = executions
        self.sleep = sleep

    def call(self, operation: str, **arguments: Any) -> Any:
        """Call an operation of the core, such as plan.show."""
        room, _, name = operation.partition('.')
        core = {
            'plan': self.plans,
            'nodes': self.nodes,
            'validations': self.validations,
        }[room]
        found = getattr(core, name)(**arguments)
        # As JSON has it, and so as the other way has it.
        return json.loads(json.dumps(found))

    # Plans

    def update_parameters(self, values: Any, **arguments: Any) -> Any:
        """Set and unset parameters; see `plans.operations.Operations`."""
        return self.call('plan.update_parameters', values=values, **arguments)

    def create(
        self,
        plan: str,
        content: sources.Content | str,
        progress: Files,
        **options: Any,
    ) -> Report:
        """Make a plan of files, or of the container with a name."""
        plans: Any = self.plans.plans
        is_name = isinstance(content, str)
        create = plans.create_from_container if is_name else plans.create
        create(plan, content, progress=progress, **options)
        return self._shown(plan)

    def update(
        self,
        plan: str,
        content: sources.Content,
        progress: Files,
        **options: Any,
    ) -> Report:
        """Change the files of a plan; see `service.Plans.update`."""
        self.plans.plans.update(plan, content, progress=progress, **options)
        return self._shown(plan)

    def delete(self, plan: str, progress: Files) -> None:
        """Delete a plan."""
        self.plans.plans.delete(plan, progress=progress)

    def deploy(
        self, plan: str, show: attending.Show, *, wait: bool, **options: Any
    ) -> None:
        """Deploy a plan; see `attending.deploy`."""
        attending.deploy(
            plan,
            show,
            deployer=self.plans.deployer,
            stacks=self.plans.plans.stacks,
            validations=self.validations,
            runner=self.executions,
            wait=wait,
            sleep=self.sleep,
            **options,
        )

    def follow(self, plan: str, stack_id: str, show: attending.Show) -> None:
        """Wait until nothing of a plan's stack is in progress."""
        self._follower(plan, stack_id).follow(show.changed)

    def _follower(
        self, plan: str, stack_id: str, **more: Any
    ) -> stack_following.Follower:
        return stack_following.Follower(
            self.plans.plans.stacks,
            stack_id,
            mask=self.plans.deployer.mask(plan),
            sleep=self.sleep,
            **more,
        )

    def _shown(self, plan: str) -> Report:
        found: Report = self.call('plan.show', plan=plan)
        return found

    # Nodes

    def register(
        self, nodes: Any, show: leading.Show, **options: Any
    ) -> Report:
        """Register nodes; see `leading.Leader`."""
        return self._leader().register(nodes, show, **options)

    def introspect(
        self,
        nodes: abc.Collection[str] | None,
        show: leading.Show,
        **options: Any,
    ) -> Report:
        """Let nodes be inspected; see `leading.Leader`."""
        return self._leader().introspect(nodes, show, **options)

    def provide(
        self,
        nodes: abc.Collection[str] | None,
        show: leading.Show,
        **options: Any,
    ) -> Report:
        """Let nodes become available; see `leading.Leader`."""
        return self._leader().provide(nodes, show, **options)

    def _leader(self) -> leading.Leader:
        return leading.Leader(self.nodes, sleep=self.sleep)

    # Validations

    def validate(
        self,
        source: abc.Mapping[str, Any],
        content: sources.Content | None,
        show: progress.Validations,
        *,
        wait: bool,
        **options: Any,
    ) -> Report:
        """Run validations; return the run.

        :param source: what names them, as the operation takes it.
        :param content: files instead of that; None if there are none.
        """

        def tell(run: Any) -> None:
            show.changed(validation_operations.report(run))

        if content is None:
            return self.validations.run(**source, **options, tell=tell)
        given = origins.Source(name='files', content=content)
        return self.validations.run(source=given, **options, tell=tell)
