# SPDX-License-Identifier: Apache-2.0
"""Checks of a workflow before its creation or update."""

from collections.abc import Iterable, Mapping
import dataclasses

from heat.engine import function
from heat.engine import resource
from heat.engine.resources.openstack.mistral import workflow

from heat_plugins import bounds
from heat_plugins import foreign
from heat_plugins.engine import heat_types
from heat_plugins.mistral.definitions import definition_checking
from heat_plugins.mistral.definitions import definition_problems
from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import definition_records
from heat_plugins.mistral.definitions import locating
from heat_plugins.mistral.definitions import structured
from heat_plugins.resources.workflows import workflow_schema

LOG = foreign.logger(__name__)


class WorkflowChecks(workflow.Workflow):
    """Heat's class with other checks; the base of ours."""

    def validate(self) -> None:
        """Validate as Heat does, then the definition, with Mistral's help.

        :raises StackValidationFailed: it names the workflow, task and line.
        """
        given = self.properties.data
        text = workflow_schema.DEFINITION in given
        if text and any(name in given for name in workflow_schema.STRUCTURE):
            both = [
                name for name in workflow_schema.STRUCTURE if name in given
            ]
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
        except definition_problems.DefinitionError as error:
            raise heat_types.invalid(self, error) from error

    #: The properties that the checks read.
    _READ = (
        *workflow_schema.STRUCTURE,
        workflow_schema.DEFINITION,
        workflow.Workflow.INPUT,
    )

    def _check(self, props: heat_types.Properties) -> None:
        """Check a definition, and the properties that use it.

        :raises DefinitionError: it is invalid.
        """
        form = props[workflow_schema.DEFINITION]
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
            raise definition_problems.DefinitionError(iter(problems))
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
        default = props[workflow_schema.DEFAULT_WORKFLOW]
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
    ) -> list[definition_problems.DefinitionProblem]:
        try:
            return locating.locate(definition, self._service().refusal)
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


def _problem(message: str) -> definition_problems.DefinitionError:
    return definition_problems.DefinitionError(
        [definition_problems.DefinitionProblem(message=message)]
    )
