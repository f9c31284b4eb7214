# SPDX-License-Identifier: Apache-2.0
"""Let Mistral work on plans, nodes and validations."""

from collections import abc
import contextlib
import io
import json
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins.clients import mistral_executions
from heat_plugins.content import sources
from heat_plugins.content import tarballs
from heat_plugins.nodes import leading
from heat_plugins.objectstore import parcels
from heat_plugins.osc import local_way
from heat_plugins.osc import progress
from heat_plugins.plans.deploy import attending
from heat_plugins.validations import validation_ledger

LOG = foreign.logger(__name__)

# What no plan has at its top.
_TOP = '.heat-plugins-upload'


class Remote(local_way.Local):
    """Lets Mistral do it; what it does not do is done in this process."""

    def call(self, operation: str, **arguments: Any) -> Any:
        """Run the action of an operation."""
        found = self.executions.run_action(
            operation, arguments, _description(operation, arguments)
        )
        return parcels.unpack(self.store, found)

    # Plans

    def update_parameters(self, values: Any, **arguments: Any) -> Any:
        """Set and unset parameters, past what Mistral keeps and shows."""
        with self._upload(json.dumps(values).encode()) as place:
            return self.call(
                'plan.update_parameters', values=place, **arguments
            )

    def create(
        self,
        plan: str,
        content: sources.Content | str,
        progress: local_way.Files,
        **options: Any,
    ) -> local_way.Report:
        if isinstance(content, str):
            arguments = {'plan': plan, 'container': content, **options}
            return self._plan(self._ended('plan.create', arguments))
        return self._sent('plan.create', plan, content, progress, options)

    def update(
        self,
        plan: str,
        content: sources.Content,
        progress: local_way.Files,
        **options: Any,
    ) -> local_way.Report:
        if content:
            return self._sent('plan.update', plan, content, progress, options)
        return self._plan(
            self._ended('plan.update', {'plan': plan, **options})
        )

    def delete(self, plan: str, progress: local_way.Files) -> None:
        self._ended('plan.delete', {'plan': plan})

    def deploy(
        self, plan: str, show: attending.Show, *, wait: bool, **options: Any
    ) -> None:
        """Deploy a plan.

        :raises errors.Error: what the workflow says, with its execution.
        """
        stacks = self.plans.plans.stacks
        before = stacks.find(plan)
        follower = self._follower(
            plan,
            plan,
            before=before.changed_at if before else '',
            after_event=stacks.last_event(before) if before else None,
        )
        execution_id = self._start('plan.deploy', {'plan': plan, **options})
        show.begun(f'execution {execution_id}', ())
        if not wait:
            return

        def tell() -> None:
            found = follower.look()
            if found.status:
                show.changed(found)

        found = self._follow(execution_id, tell)
        show.warn(found.output.get('warnings') or ())
        if not found.success:
            error = found.error()
            if not found.said:
                raise error
            raise type(error)(f'{error} (execution {execution_id} of Mistral)')

    def _sent(
        self,
        workflow: str,
        plan: str,
        content: sources.Content,
        progress: local_way.Files,
        options: abc.Mapping[str, Any],
    ) -> local_way.Report:
        """Hand content to a workflow, in a tarball in the object store."""

        def tell() -> None:
            progress(min(self._files(plan), len(content)), len(content))

        with self._upload(_packed(content)) as place:
            arguments = {'plan': plan, **options, **_object(place)}
            return self._plan(self._ended(workflow, arguments, tell))

    def _files(self, plan: str) -> int:
        """Return how many objects the container of a plan has."""
        try:
            headers = self.store.head_container(plan)
        except errors.ServiceError:
            return 0
        return int(headers.get('x-container-object-count', 0))

    @staticmethod
    def _plan(found: mistral_executions.Execution) -> local_way.Report:
        plan: local_way.Report = found.output['plan']
        return plan

    # Nodes

    def register(
        self, nodes: Any, show: leading.Show, **options: Any
    ) -> local_way.Report:
        # Mistral keeps the input of a workflow, and shows it.
        with self._upload(json.dumps(nodes).encode()) as place:
            arguments = {'nodes': place, **options}
            return self._lead('nodes.register', arguments, show)

    def introspect(
        self,
        nodes: abc.Collection[str] | None,
        show: leading.Show,
        **options: Any,
    ) -> local_way.Report:
        begun = self.nodes.begin('inspect', nodes)
        uuids = [one['uuid'] for one in begun['convoy']['members']]
        arguments = {'nodes': uuids, **options}
        try:
            return self._lead('nodes.introspect', arguments, show)
        except KeyboardInterrupt:
            leading.stop(
                lambda nodes: self.call('nodes.abort', nodes=nodes),
                uuids,
                self.sleep,
            )
            raise

    def provide(
        self,
        nodes: abc.Collection[str] | None,
        show: leading.Show,
        **options: Any,
    ) -> local_way.Report:
        arguments = {'verb': 'provide', 'nodes': nodes, **options}
        return self._lead('nodes.move', arguments, show)

    def _lead(
        self, workflow: str, arguments: local_way.Report, show: leading.Show
    ) -> local_way.Report:
        """Run a workflow to its end; cancel it if the user interrupts.

        :raises leading.Failed: it has led some nodes to their end.
        """
        execution_id = self._start(workflow, arguments)
        show({'execution': execution_id})
        try:
            found = self._follow(execution_id)
        except KeyboardInterrupt:
            self.executions.cancel(execution_id)
            raise
        output = dict(found.output)
        if found.success:
            return output
        if output.get('nodes'):
            reason = str(found.said.get('message') or found.reason)
            raise leading.Failed(reason, output)
        raise found.error()

    # Validations

    def validate(
        self,
        source: abc.Mapping[str, Any],
        content: sources.Content | None,
        show: progress.Validations,
        *,
        wait: bool,
        **options: Any,
    ) -> local_way.Report:
        at = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
        run_id = validation_ledger.new_id(at)
        arguments = {**source, **options, 'run_id': run_id}
        secrets = arguments.pop('secrets')
        with contextlib.ExitStack() as uploads:
            if content is not None:
                place = uploads.enter_context(self._upload(_packed(content)))
                arguments |= _object(place)
            if secrets:
                # Mistral keeps the input of a workflow, and shows it.
                arguments['secrets'] = uploads.enter_context(
                    self._upload(json.dumps(secrets).encode())
                )
            execution_id = self._start('validations.run', arguments)
            show.begun(run_id)
            return self._run(execution_id, run_id, show, wait)

    def _run(
        self,
        execution_id: str,
        run_id: str,
        show: progress.Validations,
        wait: bool,
    ) -> local_way.Report:
        """Follow a run of validations; return it."""

        def tell() -> bool:
            with contextlib.suppress(errors.Unavailable, errors.NotFound):
                show.changed(self.validations.result(run_id))
                return not wait
            return False

        execution = self._follow(execution_id, tell)
        with contextlib.suppress(errors.NotFound):
            found = self.validations.result(run_id)
            # An executor that has died has not said how it ends.
            if found['success'] is not None or not execution.ended:
                return found
        raise execution.error()

    # What these share

    def _start(self, workflow: str, arguments: local_way.Report) -> str:
        return self.executions.start_workflow(
            workflow, arguments, _description(workflow, arguments)
        )

    def _follow(
        self,
        execution_id: str,
        tell: abc.Callable[[], bool | None] = lambda: None,
    ) -> mistral_executions.Execution:
        return mistral_executions.follow(
            self.executions, execution_id, tell=tell, sleep=self.sleep
        )

    def _ended(
        self,
        workflow: str,
        arguments: local_way.Report,
        tell: abc.Callable[[], None] = lambda: None,
    ) -> mistral_executions.Execution:
        """Run a workflow to its end.

        :raises errors.Error: it did not succeed.
        """
        found = self._follow(self._start(workflow, arguments), tell)
        if not found.success:
            raise found.error()
        return found

    @contextlib.contextmanager
    def _upload(self, content: bytes) -> abc.Iterator[local_way.Report]:
        """Put what must not go through Mistral where its actions find it."""
        place = parcels.send(self.store, content)
        try:
            yield place
        finally:
            try:
                retrying.insist(
                    self.store.delete_object,
                    place['container'],
                    place['object'],
                )
            except errors.ServiceError as exc:
                # The work is done; the store deletes it in its time.
                LOG.warning(
                    'Cannot delete object %s of container %s: %s',
                    place['object'],
                    place['container'],
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


def _object(place: abc.Mapping[str, Any]) -> local_way.Report:
    return {name: place[name] for name in ('container', 'object')}


def _packed(content: sources.Content) -> bytes:
    file = io.BytesIO()
    with tarballs.writer(file) as add:
        for path in sorted(content):
            # A single folder at the top is taken off again, unless the plan
            # has one of that name.
            add(f'{_TOP}/{path}', content[path])
    return file.getvalue()
