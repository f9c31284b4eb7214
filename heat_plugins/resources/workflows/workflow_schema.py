# SPDX-License-Identifier: Apache-2.0
"""The properties and attributes of OS::Mistral::Workflow."""

from collections import abc
from typing import Any

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import properties
from heat.engine.resources.openstack.mistral import workflow

from heat_plugins.mistral.executions import ending

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


def _with(schema: Any, /, **changes: object) -> Any:
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


def _any(schema: Any, /, addition: str) -> Any:
    """Let a value have other forms as well as the one that Heat knows."""
    # Its constraints are looked after by the check of the definition.
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
        _('What follows when the task has been skipped.'),
    ),
    'fail_on': _Schema(
        _Schema.ANY,
        _('An expression; where it is true, the task fails.'),
    ),
    'safe_rerun': _Schema(
        _Schema.ANY,
        _(
            'Whether the action may be run once more when its executor was '
            'lost in the middle of it.'
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


def _widened(schemas: abc.Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _any(schema, _WIDER[name]) if name in _WIDER else schema
        for name, schema in schemas.items()
    }


def _task_schema() -> dict[str, Any]:
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


def _defaults_schema() -> dict[str, Any]:
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
    DEFINITION: _Schema(
        _Schema.STRING,
        _(
            'One or several workflows, or a workbook, in version 2 of '
            "Mistral's language. It takes the place of %s."
        )
        % ', '.join(STRUCTURE),
        update_allowed=True,
    ),
    NAMESPACE: _Schema(
        _Schema.STRING,
        _('The namespace in Mistral to put the workflows into.'),
        constraints=[constraints.Length(max=255)],
    ),
    DEFAULT_WORKFLOW: _Schema(
        _Schema.STRING,
        _(
            'The workflow of the definition that is run by a signal which '
            'names none.'
        ),
        update_allowed=True,
    ),
    EXECUTIONS_ON_DELETE: _Schema(
        _Schema.STRING,
        _(
            'What becomes of running executions when the resource is '
            'deleted: "cancel" ends those that signals to it or cron '
            'triggers have begun, "cancel_all" those of its workflows that '
            'anybody has begun, and "leave" lets them run. Executions that '
            'have ended, and that signals or cron triggers began, are '
            'removed in any case.'
        ),
        default=ending.Way.CANCEL.value,
        constraints=[
            constraints.AllowedValues([way.value for way in ending.Way])
        ],
        update_allowed=True,
    ),
    OUTPUT_ON_ERROR: _Schema(
        _Schema.MAP,
        _('The output of a workflow that has failed.'),
        update_allowed=True,
    ),
    VARS: _Schema(
        _Schema.MAP,
        _('Variables that a run of the workflow begins with.'),
        update_allowed=True,
    ),
}

ATTRIBUTES = {
    **_HEATS.attributes_schema,
    _HEATS.EXECUTIONS: attributes.Schema(
        _(
            'The executions of the workflows, whoever began them, the '
            'newest first: maps of id, workflow_name, state, state_info, '
            'input, output, created_at and updated_at. There are 20 at '
            'most, and fewer where they are large.'
        ),
        type=attributes.Schema.LIST,
        cache_mode=attributes.Schema.CACHE_NONE,
    ),
    AVAILABLE_WORKFLOWS: attributes.Schema(
        _(
            'The name in Mistral for each workflow, by its name in the '
            'definition.'
        ),
        type=attributes.Schema.MAP,
    ),
    SIGNALS: attributes.Schema(
        _(
            'What became of the last 10 signals, the newest first: maps '
            'of time, workflow, execution_id, error and ignored, which '
            'lists what a body had besides.'
        ),
        type=attributes.Schema.LIST,
        cache_mode=attributes.Schema.CACHE_NONE,
    ),
}
