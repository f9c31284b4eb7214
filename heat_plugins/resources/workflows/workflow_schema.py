# SPDX-License-Identifier: Apache-2.0
"""Properties, attributes and checks of OS::Mistral::Workflow."""

from collections import abc
from collections.abc import Iterable, Mapping
import dataclasses
from typing import Any

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import function
from heat.engine import properties
from heat.engine import resource
from heat.engine.resources.openstack.mistral import workflow

from heat_plugins import bounds
from heat_plugins import foreign
from heat_plugins.engine import heat_types
from heat_plugins.mistral.definitions import definition_checking
from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import definition_records
from heat_plugins.mistral.definitions import structured
from heat_plugins.mistral.executions import ending
from heat_plugins.resources import schemas

DEFINITION = 'definition'
NAMESPACE = 'namespace'
DEFAULT_WORKFLOW = 'default_workflow'
EXECUTIONS_ON_DELETE = 'executions_on_delete'
OUTPUT_ON_ERROR = 'output_on_error'
VARS = 'vars'

AVAILABLE_WORKFLOWS = 'available_workflows'
SIGNALS = 'signals'

_Schema = properties.Schema
_HEATS = workflow.Workflow

#: What says in properties what a definition says in a text.
STRUCTURE = (
    _HEATS.TYPE,
    _HEATS.TASKS,
    _HEATS.DESCRIPTION,
    _HEATS.TAGS,
    _HEATS.OUTPUT,
    OUTPUT_ON_ERROR,
    VARS,
    _HEATS.TASK_DEFAULTS,
)


def _with(
    schema: heat_types.Schema, /, **changes: object
) -> heat_types.Schema:
    """Return one of Heat's schemas with some of its arguments changed."""
    arguments: dict[str, Any] = {
        'description': schema.description,
        'default': schema.default,
        'schema': schema.schema,
        'required': schema.required,
        'constraints': list(schema.constraints),
        'update_allowed': schema.update_allowed,
        'support_status': schema.support_status,
        **changes,
    }
    return _Schema(arguments.pop('data_type', schema.type), **arguments)


def _any(schema: heat_types.Schema, /, addition: str) -> heat_types.Schema:
    """Allow other forms of a value as well as the one that Heat knows."""
    # The check of the definition covers its constraints.
    return _with(
        schema,
        data_type=_Schema.ANY,
        description=f'{schema.description} {addition}',
        schema=None,
        constraints=[],
    )


_CLAUSE = _(
    'A task, a list of tasks and conditions, or a map with "publish" and '
    '"next".'
)
_EXPRESSION = _('It may be an expression.')

#: What both a task and task_defaults know.
_POLICIES = {
    'on_skip': _Schema(
        _Schema.ANY,
        _('Tasks that run after the task has been skipped.'),
    ),
    'fail_on': _Schema(
        _Schema.ANY,
        _('An expression; if it is true, the task fails.'),
    ),
    'safe_rerun': _Schema(
        _Schema.ANY,
        _(
            'Whether Mistral may repeat the action if its executor dies '
            'during it.'
        ),
    ),
}

#: What Heat's class knows, and Mistral in more forms.
_WIDER = {
    'on_success': _CLAUSE,
    'on_error': _CLAUSE,
    'on_complete': _CLAUSE,
    'wait_before': _EXPRESSION,
    'wait_after': _EXPRESSION,
    'pause_before': _EXPRESSION,
    'timeout': _EXPRESSION,
    'concurrency': _EXPRESSION,
    'keep_result': _EXPRESSION,
    'with_items': _('Several are given as a list.'),
    'join': _('The word "all" or "one", or a number.'),
    'input': _EXPRESSION,
    'retry': _(
        'A map with "count", "delay", "break_on" and "continue_on", or '
        'these in one line.'
    ),
}


def _widened(
    schemas: abc.Mapping[str, heat_types.Schema],
) -> dict[str, heat_types.Schema]:
    return {
        name: _any(schema, _WIDER[name]) if name in _WIDER else schema
        for name, schema in schemas.items()
    }


def _task_schema() -> dict[str, heat_types.Schema]:
    heats = _HEATS.properties_schema[_HEATS.TASKS].schema[0].schema
    known = _widened(heats)
    # Heat holds the name of the workflow to be called against Mistral's
    # list, and so knows no arguments after it; this is checked elsewhere.
    known['workflow'] = _with(heats['workflow'], constraints=[])
    return {
        **known,
        **_POLICIES,
        'publish_on_error': _Schema(
            _Schema.MAP,
            _('Variables to publish when the task has failed.'),
        ),
        'publish_on_skip': _Schema(
            _Schema.MAP,
            _('Variables to publish when the task has been skipped.'),
        ),
        'tags': _Schema(_Schema.LIST, _('Tags of the task.')),
    }


def _defaults_schema() -> dict[str, heat_types.Schema]:
    heats = _HEATS.properties_schema[_HEATS.TASK_DEFAULTS].schema
    return {**_widened(heats), **_POLICIES}


PROPERTIES = {
    **_HEATS.properties_schema,
    _HEATS.TYPE: _with(_HEATS.properties_schema[_HEATS.TYPE], required=False),
    _HEATS.TASKS: _with(
        _HEATS.properties_schema[_HEATS.TASKS],
        required=False,
        schema=_Schema(_Schema.MAP, schema=_task_schema()),
    ),
    _HEATS.TASK_DEFAULTS: _with(
        _HEATS.properties_schema[_HEATS.TASK_DEFAULTS],
        schema=_defaults_schema(),
    ),
    DEFINITION: schemas.text(
        _(
            'One or several workflows, or a workbook, in version 2 of '
            "Mistral's language. It replaces %s."
        )
        % ', '.join(STRUCTURE)
    ),
    NAMESPACE: _Schema(
        _Schema.STRING,
        _('The namespace in Mistral to put the workflows into.'),
        constraints=[constraints.Length(max=255)],
    ),
    DEFAULT_WORKFLOW: schemas.text(
        _(
            'The workflow of the definition that a signal runs if it names '
            'none.'
        )
    ),
    EXECUTIONS_ON_DELETE: schemas.text(
        _(
            'What a delete does with running executions: "cancel" cancels '
            'those that signals or cron triggers have started, "cancel_all" '
            'all of its workflows, and "leave" none. A delete always removes '
            'ended executions that signals or cron triggers have started.'
        ),
        default=ending.OnDelete.CANCEL.value,
        constraints=[
            constraints.AllowedValues(
                [choice.value for choice in ending.OnDelete]
            )
        ],
    ),
    OUTPUT_ON_ERROR: schemas.mapping(
        _('The output of a workflow that has failed.')
    ),
    VARS: schemas.mapping(
        _('Variables with which an execution of the workflow starts.')
    ),
}

_OURS = {
    _HEATS.EXECUTIONS: schemas.live(
        attributes.Schema.LIST,
        _(
            'The executions of the workflows, by any user, the newest first: '
            'maps of id, workflow_name, state, state_info, input, output, '
            'created_at and updated_at. At most 20, and fewer if they are '
            'large.'
        ),
    ),
    AVAILABLE_WORKFLOWS: attributes.Schema(
        _(
            'A map from the name of each workflow in the definition to its '
            'name in Mistral.'
        ),
        type=attributes.Schema.MAP,
    ),
    SIGNALS: schemas.live(
        attributes.Schema.LIST,
        _(
            'The results of the last 10 signals, the newest first: maps of '
            'time, workflow, execution_id, error and ignored (the ignored '
            'keys of the body).'
        ),
    ),
}

ATTRIBUTES = schemas.AttributesSchema(_HEATS.attributes_schema, _OURS)


LOG = foreign.logger(__name__)


class WorkflowChecks(workflow.Workflow):
    """Heat's class with other checks; the base of ours."""

    def validate(self) -> None:
        """Validate as Heat does, then the definition, with Mistral's help.

        :raises StackValidationFailed: it names the workflow, task and line.
        """
        given = self.properties.data
        text = DEFINITION in given
        if text and any(name in given for name in STRUCTURE):
            both = [name for name in STRUCTURE if name in given]
            raise heat_types.invalid(
                self,
                '"definition" describes the workflows completely; '
                f'remove {", ".join(both)}',
            )
        if not text and not {self.TYPE, self.TASKS} <= given.keys():
            raise heat_types.invalid(
                self,
                'set "definition", or both "type" and "tasks"',
            )
        if text:
            # Heat's own check needs the tasks, of which there are none.
            super(workflow.Workflow, self).validate()
        else:
            super().validate()
        if any(self._unknown(given.get(name)) for name in self._READ):
            return
        try:
            self._check(self.properties)
        except definition_reading.DefinitionError as error:
            raise heat_types.invalid(self, error) from error

    #: The properties that the checks read.
    _READ = (
        *STRUCTURE,
        DEFINITION,
        workflow.Workflow.INPUT,
    )

    def _check(self, props: heat_types.Properties) -> None:
        """Check a definition, and the properties that use it.

        :raises DefinitionError: it is invalid.
        """
        form = props[DEFINITION]
        if form is None:
            if twice := structured.doubles(props):
                raise _problem(
                    f'several tasks are named {bounds.listed(twice)}'
                )
        elif not form.strip():
            raise _problem('"definition" is empty')
        definition = self._definition(props)
        problems = definition_checking.check(definition)
        if not problems:
            problems = self._ask_mistral(definition)
        if problems:
            if form is None:
                # The lines are those of a generated text.
                problems = [
                    dataclasses.replace(problem, workflow=None, line=None)
                    for problem in problems
                ]
            # The search stopped early, so the number of problems is unknown.
            raise definition_reading.DefinitionError(iter(problems))
        self._check_use(definition, props)
        if form is not None:
            return
        for task in props[self.TASKS]:
            self._check_call(task)

    def _check_use(
        self,
        definition: definition_reading.Definition,
        props: heat_types.Properties,
    ) -> None:
        names = list(definition.workflows)
        default = props[DEFAULT_WORKFLOW]
        if default is not None and default not in names:
            raise _problem(
                f'"default_workflow" is "{default}", but the definition has '
                f'only {bounds.listed(names)}'
            )
        if len(names) > 1:
            if props[self.USE_REQUEST_BODY_AS_INPUT] and default is None:
                raise _problem(
                    '"default_workflow" must name the workflow to run, '
                    'because use_request_body_as_input is set and the '
                    'definition has several'
                )
            if self._is_referred_to():
                raise _problem(
                    'get_resource is ambiguous, because the definition has '
                    'several workflows; use {get_attr: '
                    f'[{self.name}, available_workflows, {names[0]}]}}'
                )
        declared = {
            name
            for declaring in definition.workflows.values()
            for name in declaring.inputs
        }
        if unknown := (props[self.INPUT] or {}).keys() - declared:
            raise _problem(
                f'"input" has {bounds.listed(sorted(unknown))}, which no '
                'workflow of the definition declares'
            )
        written = self._wanted(props)
        longest = max(written.names.values(), key=len)
        if len(longest) > definition_records.NAME_LIMIT:
            raise _problem(
                f'the name "{longest:.40}…" would have {len(longest)} '
                'characters in Mistral, which allows '
                f'{definition_records.NAME_LIMIT}; shorten "name", or the '
                'name of the workflow'
            )
        size = sum(
            len(short) + len(full) for short, full in written.names.items()
        )
        if 3 * size > definition_records.BYTES:
            raise _problem(
                f'{len(names)} workflows with names of this length are too '
                'many for one resource; use several resources'
            )

    def _check_call(self, task: heat_types.Properties) -> None:
        """Check that a called workflow exists in Mistral."""
        name = definition_reading.called(task.get(self.WORKFLOW))
        if name is None or self._unknown(task.get(self.WORKFLOW)):
            return
        try:
            if name in self._service().find([name]):
                return
        except Exception as error:
            LOG.debug(
                '%(resource)s: cannot check that workflow "%(name)s" exists: '
                '%(error)s',
                {'resource': self, 'name': name, 'error': error},
            )
            return
        raise _problem(
            f'task "{task[self.TASK_NAME]}": there is no workflow "{name}" '
            'in Mistral'
        )

    def _ask_mistral(
        self, definition: definition_reading.Definition
    ) -> list[definition_reading.DefinitionProblem]:
        try:
            return definition_checking.locate(
                definition, self._service().refusal
            )
        except Exception as error:
            # It will be asked again when the stack is created.
            LOG.warning(
                '%(resource)s: Mistral cannot validate its definition now: '
                '%(error)s',
                {'resource': self, 'error': error},
            )
            return []

    def _unknown(self, value: object) -> bool:
        """Say whether a value depends on a pending resource."""
        if isinstance(value, function.Function):
            return not self.stack.strict_validate or any(
                needed.action == resource.Resource.INIT
                for needed in function.dependencies(value)
            )
        if isinstance(value, Mapping):
            return any(self._unknown(item) for item in value.values())
        if isinstance(value, Iterable) and not isinstance(value, str):
            return any(self._unknown(item) for item in value)
        return False

    def _is_referred_to(self) -> bool:
        """Say whether the template has a get_resource of this resource."""
        template = self.stack.t
        references = [{'get_resource': self.name}, {'Ref': self.name}]

        def within(value: object) -> bool:
            if value in references:
                return True
            if isinstance(value, Mapping):
                return any(within(item) for item in value.values())
            if isinstance(value, list):
                return any(within(item) for item in value)
            return False

        return any(
            within(template.t.get(section))
            for section in (template.RESOURCES, template.OUTPUTS)
        )


def _problem(message: str) -> definition_reading.DefinitionError:
    return definition_reading.DefinitionError(
        [definition_reading.DefinitionProblem(message=message)]
    )
