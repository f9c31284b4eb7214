# SPDX-License-Identifier: Apache-2.0
"""Properties and attributes of OS::Mistral::Workflow."""

from collections import abc
from typing import Any

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import properties
from heat.engine.resources.openstack.mistral import workflow

from heat_plugins.engine import heat_types
from heat_plugins.resources import bases

DEFINITION = 'definition'
NAMESPACE = 'namespace'
DEFAULT_WORKFLOW = 'default_workflow'
EXECUTIONS_ON_DELETE = 'executions_on_delete'
OUTPUT_ON_ERROR = 'output_on_error'
VARS = 'vars'

#: What a delete does with running executions.
CANCEL, CANCEL_ALL, LEAVE = 'cancel', 'cancel_all', 'leave'

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

_TASK_ONLY = {
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

#: What a task has in addition to that of Heat's class.
TASK_ADDITIONS = (*_POLICIES, *_TASK_ONLY)

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
    """Return Heat's schemas, some of which take more forms here."""
    return {
        # The check of the definition covers the constraints of those that
        # have other forms as well as the one that Heat knows.
        name: _with(
            schema,
            data_type=_Schema.ANY,
            description=f'{schema.description} {_WIDER[name]}',
            schema=None,
            constraints=[],
        )
        if name in _WIDER
        else schema
        for name, schema in schemas.items()
    }


_HEATS_TASK = _HEATS.properties_schema[_HEATS.TASKS].schema[0].schema

PROPERTIES = {
    **_HEATS.properties_schema,
    _HEATS.TYPE: _with(_HEATS.properties_schema[_HEATS.TYPE], required=False),
    _HEATS.TASKS: _with(
        _HEATS.properties_schema[_HEATS.TASKS],
        required=False,
        schema=_Schema(
            _Schema.MAP,
            schema={
                **_widened(_HEATS_TASK),
                # Heat holds the name of the workflow to be called against
                # Mistral's list, and so knows no arguments after it.
                'workflow': _with(_HEATS_TASK['workflow'], constraints=[]),
                **_POLICIES,
                **_TASK_ONLY,
            },
        ),
    ),
    _HEATS.TASK_DEFAULTS: _with(
        _HEATS.properties_schema[_HEATS.TASK_DEFAULTS],
        schema={
            **_widened(_HEATS.properties_schema[_HEATS.TASK_DEFAULTS].schema),
            **_POLICIES,
        },
    ),
    DEFINITION: bases.text(
        _(
            "One or several workflows, in version 2 of Mistral's language. It "
            'replaces %s.'
        )
        % ', '.join(STRUCTURE)
    ),
    NAMESPACE: _Schema(
        _Schema.STRING,
        _('The namespace in Mistral to put the workflows into.'),
        constraints=[constraints.Length(max=255)],
    ),
    DEFAULT_WORKFLOW: bases.text(
        _(
            'The workflow of the definition that a signal runs if it names '
            'none.'
        )
    ),
    EXECUTIONS_ON_DELETE: bases.text(
        _(
            'What a delete does with running executions: "cancel" cancels '
            'those that signals or cron triggers have started, "cancel_all" '
            'all of its workflows, and "leave" none. A delete always removes '
            'ended executions that signals or cron triggers have started.'
        ),
        default=CANCEL,
        constraints=[constraints.AllowedValues([CANCEL, CANCEL_ALL, LEAVE])],
    ),
    OUTPUT_ON_ERROR: bases.mapping(
        _('The output of a workflow that has failed.')
    ),
    VARS: bases.mapping(
        _('Variables with which an execution of the workflow starts.')
    ),
}

_OURS = {
    # What one user is shown is not kept for the next.
    _HEATS.ALARM_URL: bases.live(
        attributes.Schema.STRING,
        _(
            'A URL that runs a workflow: POST {"input": {...}} to it as '
            'application/json. Null for users who may not update the stack.'
        ),
    ),
    _HEATS.EXECUTIONS: bases.live(
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
    SIGNALS: bases.live(
        attributes.Schema.LIST,
        _(
            'The results of the last 10 signals, the newest first: maps of '
            'time, workflow, execution_id, error and ignored (the ignored '
            'keys of the body).'
        ),
    ),
}

ATTRIBUTES = bases.AttributesSchema(_HEATS.attributes_schema, _OURS)
