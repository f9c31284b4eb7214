# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Workflow."""

from collections import abc
import contextlib
import dataclasses
import functools
import itertools
import json
import secrets
import time
from typing import Any
import uuid

from heat.common import exception
from heat.engine import resource
from heat.engine.resources.openstack.mistral import workflow
from oslo_utils import timeutils

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import retrying
from heat_plugins import stored
from heat_plugins.clients import mistral_api
from heat_plugins.engine import callers
from heat_plugins.engine import heat_types
from heat_plugins.mistral import calling
from heat_plugins.mistral import definitions
from heat_plugins.mistral import outcome
from heat_plugins.mistral import workflow_requests
from heat_plugins.resources.workflows import mistral_calls
from heat_plugins.resources.workflows import workflow_schema

LOG = foreign.logger(__name__)

# The key of a resource's data for its `_Record`.
_RECORD = 'workflows'

# Names of former workflows that are kept to find their executions by.
_FORMER = 50

# Characters of Mistral's words about a definition.
_SAID = 500

# Names in a query.
_NAMES = 20

# Executions that a step of a delete ends.
_AT_A_TIME = 20

# Executions that the attribute lists, and characters of their values.
_SHOWN = 20
_SHOWN_SIZE = 1000000

_EXECUTION_KEYS = (
    'id',
    'workflow_name',
    'state',
    'state_info',
    'input',
    'output',
    'created_at',
    'updated_at',
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Record:
    """The workflows of a resource in Mistral.

    :ivar names: name in Mistral by name in the definition.
    :ivar former: dropped workflows, which may still exist or have executions.
    :ivar left: likewise, of a former release.
    :ivar book: the workbook of a former release, with its ``actions``.
    :ivar left_books: workbooks of a former release to delete, with
        ``left_actions``.
    :ivar mark: the prefix of the IDs of the resource's executions.
    """

    names: abc.Mapping[str, str] = dataclasses.field(default_factory=dict)
    former: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    book: str | None = None
    left_books: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    left_actions: tuple[str, ...] = ()
    mark: str = ''

    @property
    def all_names(self) -> list[str]:
        """The names of all workflows that it has in Mistral."""
        return list(
            dict.fromkeys([*self.names.values(), *self.left, *self.former])
        )

    def renamed(self, names: abc.Mapping[str, str]) -> '_Record':
        """Return the record for a change, before it begins."""
        dropped = [*self.names.values(), *self.left, *self.former[:_FORMER]]
        former = dict.fromkeys(
            name for name in dropped if name not in names.values()
        )
        books = [] if self.book is None else [self.book]
        return _Record(
            names=names,
            former=tuple(former),
            left_books=(*books, *self.left_books),
            left_actions=(*self.actions, *self.left_actions),
            mark=self.mark,
        )


class Workflow(mistral_calls.MistralCalls, workflow.Workflow):
    """One or several workflows of Mistral.

    Write them either in Mistral's own language, in ``definition``, or in the
    properties of Heat's class. The same as Heat's class, but

    - Mistral checks the workflows when heat-engine validates the stack;
    - each signal has an event, with the ID of the execution or the reason why
      there is none;
    - an update changes the workflows in place, and running executions
      continue;
    - a delete cancels the executions that the resource has started.
    """

    properties_schema = workflow_schema.PROPERTIES

    attributes_schema = workflow_schema.ATTRIBUTES

    # What Heat's class writes of a task.
    _TASKS_KEYS = (
        *workflow.Workflow._TASKS_KEYS,
        *workflow_schema.TASK_ADDITIONS,
    )

    #: Seconds to retry a signal while Mistral fails.
    RETRY_SECONDS = 15

    # Definition -----------------------------------------------------------

    def validate(self) -> None:
        """Validate as Heat does, then let Mistral validate the definition.

        :raises StackValidationFailed: it is invalid.
        """
        given = self.properties.data
        if workflow_schema.DEFINITION in given:
            # Heat's class needs the tasks, of which there are none.
            super(workflow.Workflow, self).validate()
            if both := [
                name for name in workflow_schema.STRUCTURE if name in given
            ]:
                raise heat_types.invalid(
                    self,
                    '"definition" describes the workflows completely; '
                    f'remove {", ".join(both)}',
                )
        elif {self.TYPE, self.TASKS} <= given.keys():
            super().validate()
        else:
            raise heat_types.invalid(
                self, 'set "definition", or both "type" and "tasks"'
            )
        if self.pending(
            *workflow_schema.STRUCTURE,
            workflow_schema.DEFINITION,
            workflow_schema.DEFAULT_WORKFLOW,
            self.INPUT,
        ):
            return
        try:
            workflows = self._workflows(self.properties)
            self._check_use(workflows)
            self._refuse_invalid(workflows, self.validate_by)
        except definitions.InvalidDefinition as exc:
            raise heat_types.invalid(self, exc) from exc

    def _workflows(
        self, props: heat_types.Properties
    ) -> dict[str, definitions.Spec]:
        """Return the workflows by their names in the definition.

        :raises InvalidDefinition: they are invalid.
        """
        text = props[workflow_schema.DEFINITION]
        if text is not None:
            return definitions.read(text)
        workflows = definitions.read(self.prepare_properties(props))
        (spec,) = workflows.values()
        for key in (workflow_schema.OUTPUT_ON_ERROR, workflow_schema.VARS):
            if props[key]:
                spec[key.replace('_', '-')] = props[key]
        for name, task in spec['tasks'].items():
            spec['tasks'][name] = definitions.typed(task)
        if defaults := spec.get('task-defaults'):
            spec['task-defaults'] = definitions.typed(defaults)
        return workflows

    def _check_use(
        self, workflows: abc.Mapping[str, definitions.Spec]
    ) -> None:
        """Refuse a default or an input that no workflow has."""
        props = self.properties
        default = props[workflow_schema.DEFAULT_WORKFLOW]
        if default is not None and default not in workflows:
            raise definitions.InvalidDefinition(
                f'"default_workflow" is "{default}", but the definition has '
                f'only {bounds.listed(workflows)}'
            )
        declared = {
            name
            for spec in workflows.values()
            for name in definitions.inputs(spec)
        }
        if unknown := (props[self.INPUT] or {}).keys() - declared:
            raise definitions.InvalidDefinition(
                f'"input" has {bounds.listed(sorted(unknown))}, which no '
                'workflow of the definition declares'
            )

    def _refuse_invalid(
        self,
        workflows: abc.Mapping[str, definitions.Spec],
        ask: abc.Callable[..., Any],
    ) -> None:
        """Refuse workflows that Mistral finds invalid."""
        answer = ask(
            self.client().workflows.validate, definitions.dump(workflows)
        )
        if answer is not None and not answer.get('valid', True):
            raise definitions.InvalidDefinition(
                f'workflow {bounds.listed(workflows)}: Mistral says: '
                f'{bounds.shortened(foreign.line(answer.get("error")), _SAID)}'
            )

    # Life -----------------------------------------------------------------

    def _record(self) -> _Record:
        """Return the names of the workflows that it has in Mistral."""
        text = self.data().get(_RECORD)
        record = stored.read(_Record, json.loads(text or '{}'))
        if text is None and self.resource_id is not None:
            # It was made by Heat's own class.
            names = {self.resource_id: self.resource_id}
            record = dataclasses.replace(record, names=names)
        # The same in every engine.
        mark = record.mark or (self.uuid or '').replace('-', '')[:12]
        return dataclasses.replace(record, mark=mark)

    @property
    def _namespace(self) -> str:
        return self.properties[workflow_schema.NAMESPACE] or ''

    def _existing(
        self, budget: calling.RetryBudget, names: abc.Collection[str]
    ) -> dict[str, mistral_api.Row]:
        """Return the existing workflows by name, ours before public ones."""
        rows: dict[str, mistral_api.Row] = {}
        for names_filter in _any_of(names):
            for row in self.ask(
                budget,
                'cannot list the workflows',
                self.client().workflows.list,
                name=names_filter,
                namespace=f'eq:{self._namespace}',
                fields=['id', 'name', 'project_id'],
            ):
                if self._is_ours(row) or row.name not in rows:
                    rows[row.name] = row
        return rows

    def _is_ours(self, row: mistral_api.Row) -> bool:
        """Say whether a workflow belongs to the stack's project."""
        # A system's workflows belong to no project.
        project = getattr(row, 'project_id', None)
        return bool(project == self.context.project_id)

    def _publish(
        self, budget: calling.RetryBudget, props: heat_types.Properties
    ) -> bool:
        """Create and change the workflows in Mistral.

        The record has their names before: after a crash, they are found.
        """
        workflows = self._workflows(props)
        explicit = props[self.NAME]
        if props[workflow_schema.DEFINITION] is None:
            explicit = self._workflow_name()
        names = definitions.workflow_names(
            workflows, f'{self.stack.name}.{self.name}', explicit
        )
        record = self._record()
        there = self._existing(budget, names.values())
        if taken := there.keys() - record.all_names:
            raise errors.Conflict(
                f'Mistral has another workflow {bounds.listed(sorted(taken))} '
                'already, of this project or a public one; choose another '
                'name or a namespace'
            )
        self._refuse_invalid(
            workflows,
            functools.partial(
                self.ask, budget, 'cannot validate the workflows'
            ),
        )
        record = record.renamed(names)
        self.data_set(_RECORD, json.dumps(dataclasses.asdict(record)))
        calls = self.client().workflows
        new = [short for short in names if names[short] not in there]
        old = [short for short in names if names[short] in there]
        for what, call, only in (
            ('cannot create the workflows', calls.create, new),
            ('cannot change the workflows', calls.update, old),
        ):
            if only:
                text = definitions.write(
                    workflows, names, props[self.INPUT] or {}, only
                )
                self.ask(budget, what, call, text, self._namespace)
        first, *others = names.values()
        self.resource_id_set(first.rpartition('.')[0] if others else first)
        self._tidy(budget, record)
        return True

    def _tidy(self, budget: calling.RetryBudget, record: _Record) -> None:
        """Remove dropped workflows, as far as nothing uses them."""
        former = self._existing(budget, [*record.left, *record.former])
        if not former and not record.left_books:
            return
        kept = ''
        if any(
            row.state not in outcome.FINISHED
            for row in self._executions(record.all_names)
        ):
            kept = 'an execution that may call them is running'
        else:
            try:
                self._remove(budget, former)
                self._remove_books(budget, record)
            except errors.Unavailable:
                raise
            except errors.ServiceError as exc:
                kept = str(exc)
        if kept:
            reason = (
                f'Mistral keeps {bounds.listed(former)}, and a later check or '
                f'update of the stack deletes them: {kept}'
            )
            self._add_event(
                self.action,
                self.status,
                bounds.shortened(reason, heat_values.EVENT_LIMIT),
            )

    def _remove(
        self,
        budget: calling.RetryBudget,
        rows: abc.Mapping[str, mistral_api.Row],
    ) -> None:
        """Delete workflows in Mistral."""
        for name, row in rows.items():
            if self._is_ours(row):
                self.find(
                    budget,
                    f'cannot delete the workflow "{name}"',
                    self.client().workflows.delete,
                    row.id,
                    self._namespace,
                )

    def _remove_books(
        self, budget: calling.RetryBudget, record: _Record
    ) -> None:
        """Remove the workbooks of a former release, and their actions."""
        client = self.client()
        for call, names in (
            (client.workbooks.delete, record.left_books),
            (client.actions.delete, record.left_actions),
        ):
            for name in names:
                self.find(
                    budget,
                    'cannot delete a part of the former workbook',
                    call,
                    name,
                    self._namespace,
                )

    def handle_create(self) -> calling.RetryBudget:
        """Create the user for signals, as Heat's class does."""
        super(workflow.Workflow, self).handle_create()
        return self.retry_budget()

    def check_create_complete(self, budget: calling.RetryBudget) -> bool:
        return self._publish(budget, self.properties)

    def check_update_complete(self, update: mistral_calls.Update) -> bool:
        return self._publish(*update)

    def get_live_resource_data(self) -> None:
        """Return None: an update creates missing workflows in Mistral."""

    def check_check_complete(self, budget: calling.RetryBudget) -> bool:
        """Check that all workflows exist, and remove dropped ones."""
        record = self._record()
        self._tidy(budget, record)
        names = record.names.values()
        if missing := set(names) - self._existing(budget, names).keys():
            raise errors.NotFound(
                'no longer in Mistral; an update of the stack creates them '
                f'again: {bounds.listed(sorted(missing))}'
            )
        return True

    def check_delete_complete(self, budget: calling.RetryBudget) -> bool:
        """Remove the workflows, end executions, then remove the user."""
        record = self._record().renamed({})
        self._remove(budget, self._existing(budget, record.former))
        self._remove_books(budget, record)
        due = self.ask(budget, 'cannot list the executions', self._due, record)
        calls = self.client().executions
        for row in due[:_AT_A_TIME]:
            if row.state not in outcome.FINISHED:
                what = 'cannot cancel an execution'
                try:
                    self.ask(budget, what, calls.update, row.id, 'CANCELLED')
                except errors.Unavailable:
                    raise
                except errors.ServiceError:
                    # It has just ended.
                    pass
            what = 'cannot delete an execution'
            self.find(budget, what, calls.delete, row.id, force=True)
        if len(due) > _AT_A_TIME:
            return False
        # What is left to Heat's own class is the user and its keys: the
        # workflow is gone, and its name may be that of a public one.
        self.resource_id_set(None)
        self.data_delete(self.EXECUTIONS)
        workflow.Workflow.handle_delete(self)
        return True

    def _due(self, record: _Record) -> list[mistral_api.Row]:
        """Return executions to end and delete: at most one more than now."""
        on_delete = self.properties[workflow_schema.EXECUTIONS_ON_DELETE]
        # Of Heat's own class.
        heats = (self.data().get(self.EXECUTIONS) or '').split(',')
        rows = (
            row
            for row in self._executions(record.all_names)
            if on_delete == workflow_schema.CANCEL_ALL
            or row.id in heats
            or (
                record.mark and row.id.replace('-', '').startswith(record.mark)
            )
            # A trigger of Mistral has started it.
            or outcome.mapping(
                outcome.mapping(row.description).get('triggered_by')
            ).get('type')
            in ('cron_trigger', 'event_trigger')
        )
        if on_delete == workflow_schema.LEAVE:
            rows = (row for row in rows if row.state in outcome.FINISHED)
        return list(itertools.islice(rows, _AT_A_TIME + 1))

    def _executions(
        self, names: abc.Collection[str]
    ) -> abc.Iterator[mistral_api.Row]:
        """Yield the executions of workflows that no other one has started."""
        for names_filter in _any_of(names):
            for row in mistral_api.each(
                self.client().executions.list,
                workflow_name=names_filter,
                nulls='task_execution_id',
                fields=['id', 'state', 'workflow_namespace', 'description'],
                sort_keys='created_at,id',
            ):
                if (row.workflow_namespace or '') == self._namespace:
                    yield row

    # Signals --------------------------------------------------------------

    def handle_signal(self, details: object = None) -> str:
        """Run a workflow; the event names its execution, or the error."""
        entry: dict[str, Any] = {
            'time': timeutils.utcnow().strftime('%Y-%m-%dT%H:%M:%SZ'),
            'workflow': None,
            'execution_id': None,
            'error': None,
            'ignored': [],
        }
        try:
            # The URL of an alarm is signed as the servers' signals are.
            callers.check_may_start(callers.of(self.stack), servers_may=True)
            self._run(details, entry)
        except (
            definitions.InvalidDefinition,
            workflow_requests.RunError,
            errors.Refused,
            errors.ServiceError,
        ) as error:
            entry['error'] = str(error)
            self._remember(entry)
            # Heat writes no event when a signal fails.
            reason = heat_values.event_reason(
                heat_values.EventKind.SIGNAL_FAILED, foreign.line(error)
            )
            self._add_event('SIGNAL', self.FAILED, reason)
            raise resource.NoActionRequired(self.name, str(error)) from error
        self._remember(entry)
        result = (
            f'execution {entry["execution_id"]} of {entry["workflow"]} has '
            'started'
        )
        LOG.info('%s: %s, by a signal', self, result)
        if ignored := entry['ignored']:
            result += f'; ignored: {bounds.listed(ignored)}'
        # Heat puts a word before it.
        return bounds.shortened(
            result, heat_values.EVENT_LIMIT - len('Signal: ')
        )

    def _run(self, body: object, entry: dict[str, Any]) -> None:
        """Start an execution, and tell the log's entry of it."""
        record = self._record()
        props = self.properties
        run = workflow_requests.asked(
            body,
            workflow_requests.WorkflowOffer(
                workflows=self._workflows(props),
                names=record.names,
                inputs=props[self.INPUT] or {},
                params=props[self.PARAMS] or {},
                body_is_input=bool(props[self.USE_REQUEST_BODY_AS_INPUT]),
                default=props[workflow_schema.DEFAULT_WORKFLOW],
            ),
        )
        entry['workflow'] = run.workflow
        entry['ignored'] = list(run.ignored)
        # It begins with the mark, so the resource recognises its executions
        # without a list of them: several engines may handle signals at the
        # same time. Two digits are those of the UUID's version and variant.
        rest = f'{time.time_ns():016x}{secrets.token_hex(1)}'
        execution_id = str(
            uuid.UUID(hex=f'{record.mark}8{rest[:3]}8{rest[3:]}')
        )
        # mistralclient sends no ID. With it, a repeated request starts nothing
        # twice.
        request = {
            'id': execution_id,
            'workflow_name': run.workflow,
            'workflow_namespace': self._namespace,
            'input': json.dumps(run.input),
            'params': json.dumps(run.params),
            'description': run.description,
        }
        retrying.insist(
            mistral_api.ask,
            self.client().executions.begin,
            request,
            seconds=self.RETRY_SECONDS,
            wait=0.25,
            most=4,
        )
        entry['execution_id'] = execution_id

    def _remember(self, entry: abc.Mapping[str, Any]) -> None:
        """Keep what a signal has started, among its last ones."""
        try:
            self.data_set(*workflow_requests.write_log(entry))
        except exception.NotFound:
            LOG.info(
                '%s has been deleted; a signal to it is not recorded', self
            )
            return
        for key in workflow_requests.surplus_log(self.data()):
            self.data_delete(key)

    # Attributes -----------------------------------------------------------

    def get_reference_id(self) -> object:
        """Return the name of the only workflow, or the prefix of all names."""
        if workflow_schema.DEFINITION in self.properties.data:
            return self.resource_id or self.physical_resource_name()
        # Heat asks before it validates the name.
        with contextlib.suppress(ValueError):
            return super().get_reference_id()
        return self.physical_resource_name()

    def _resolve_attribute(self, name: str) -> object:
        """Return an attribute of the workflows, or Heat's own."""
        if name == workflow_schema.AVAILABLE_WORKFLOWS:
            return dict(self._record().names)
        if name == workflow_schema.SIGNALS:
            return workflow_requests.read_log(self.data())
        if name == self.EXECUTIONS:
            return self._newest_executions()
        # A user who has the URL runs the workflows.
        if name == self.ALARM_URL and callers.may_not_update(self.stack):
            return None
        return super()._resolve_attribute(name)

    def _show_resource(self) -> object:
        """Return the `show` attribute: the workflows as Mistral has them."""
        names = self._record().names
        if len(names) <= 1 and not self._namespace:
            return super()._show_resource()
        rows = self._existing(calling.RetryBudget(0), names.values())
        return {'workflows': {name: row.id for name, row in rows.items()}}

    def _newest_executions(self) -> list[dict[str, Any]]:
        """Return the last executions of its workflows."""
        rows = [
            row.to_dict()
            for names_filter in _any_of(self._record().all_names)
            for row in mistral_api.ask(
                self.client().executions.list,
                workflow_name=names_filter,
                nulls='task_execution_id',
                include_output=True,
                sort_keys='created_at,id',
                sort_dirs='desc,desc',
                limit=_SHOWN,
            )
            if (row.workflow_namespace or '') == self._namespace
        ]
        rows.sort(key=lambda row: (row['created_at'], row['id']), reverse=True)
        shown: list[dict[str, Any]] = []
        size = 0
        for row in rows[:_SHOWN]:
            values = {key: row.get(key) for key in _EXECUTION_KEYS}
            size += sum(len(str(value)) for value in values.values())
            if shown and size > _SHOWN_SIZE:
                break
            for key in (self.INPUT, self.OUTPUT):
                values[key] = outcome.mapping(values[key])
            shown.append(values)
        return shown


def _any_of(names: abc.Collection[str]) -> abc.Iterator[str]:
    """Return Mistral's filters for some names."""
    simple = sorted(name for name in names if ',' not in name)
    for start in range(0, len(simple), _NAMES):
        yield f'in:{",".join(simple[start : start + _NAMES])}'
    for name in names:
        if ',' in name:
            yield f'eq:{name}'
