# SPDX-License-Identifier: Apache-2.0
"""The stacks of one project, read from Heat's database to select targets.

It reads what Heat's API shows, some statements for each root stack, and loads
a stack only for the attributes that resources compute.
"""

from collections import abc
import contextlib
import json
from typing import Any

from heat.common import exception
from heat.engine import stack as parser
from heat.objects import software_config as config_objects
from heat.objects import stack as stack_objects
from oslo_db import exception as db_exception
import oslo_messaging

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.runs.targets import stack_tree


class OwnHeat:
    """Heat, as an engine uses it.

    :param context: with credentials for the project.
    """

    def __init__(self, context: heat_types.Context) -> None:
        self._context = context

    def stack(self, name_or_id: str) -> heat_values.Stack:
        with translated(f'read stack {name_or_id}'):
            stack = stack_objects.Stack.get_by_id(self._context, name_or_id)
        if stack is None:
            raise errors.NotFound(f'Heat has no stack {name_or_id}')
        return heat_values.Stack(
            id=stack.id,
            name=stack.name,
            status=f'{stack.action}_{stack.status}',
            parent=stack.owner_id,
        )

    def config(self, config_id: str) -> heat_values.Config:
        with translated(f'read config {config_id}'):
            return rows.stored_config(
                config_objects.SoftwareConfig.get_by_id(
                    self._context, config_id
                )
            )


@contextlib.contextmanager
def translated(what: str) -> abc.Iterator[None]:
    """Translate failures of Heat into errors of runs.

    :param what: Heat is asked to do.
    """
    try:
        yield
    except exception.NotFound as exc:
        raise errors.NotFound(str(exc)) from exc
    except (db_exception.DBError, oslo_messaging.MessagingException) as exc:
        # Their messages may quote the values to store.
        raise errors.Unavailable(
            f'Heat cannot {what} now: {type(exc).__name__}'
        ) from exc
    except exception.RequestLimitExceeded as exc:
        # That is ours, and says what to do.
        raise errors.ServiceError(str(exc)) from exc
    except exception.HeatException as exc:
        raise errors.ServiceError(
            f'Heat cannot {what}: {type(exc).__name__}'
        ) from exc


class ProjectStacks(OwnHeat):
    """Implements `stack_tree.Selecting` for one request.

    It remembers all that it has read.

    :param context: of the user who asks, and no administrator: it reads the
        stacks of that user's project alone.
    """

    def __init__(self, context: heat_types.Context) -> None:
        super().__init__(context)
        self._templates: dict[str, abc.Mapping[str, Any]] = {}
        self._stacks: dict[str, heat_values.Stack] = {}
        self._resources: dict[str, list[heat_values.Resource]] = {}
        self._given: dict[str, heat_values.DeploymentRow] = {}
        self._configs: dict[str, heat_values.Config] = {}
        self._loaded: dict[str, parser.Stack] = {}
        # The types of resources by name, for each template.
        self._types: dict[int, dict[str, str]] = {}

    def stack(self, name_or_id: str) -> heat_values.Stack:
        if name_or_id not in self._stacks:
            with translated(f'read stack {name_or_id}'):
                self._read_stacks([name_or_id], name=name_or_id)
        if name_or_id in self._stacks:
            return self._stacks[name_or_id]
        for stack in self._stacks.values():
            # Databases compare names in ways of their own.
            if stack.name == name_or_id:
                return stack
        raise errors.NotFound(
            f'Heat has no stack {bounds.shortened(name_or_id)} in this project'
        )

    def stack_names(self) -> list[str]:
        with translated('list stacks'):
            return resources.stack_names(self._context, bounds.CANDIDATES)

    def stack_ids(self, tag: str | None = None) -> list[str]:
        with translated('list stacks'):
            stacks = stack_objects.Stack.get_all(
                self._context, tags=None if tag is None else [tag]
            )
            return [each.id for each in stacks]

    def template(self, stack: heat_values.Stack) -> abc.Mapping[str, Any]:
        return self._templates[stack.id]

    def resources(
        self, stack: heat_values.Stack
    ) -> list[heat_values.Resource]:
        if stack.id in self._resources:
            return self._resources[stack.id]
        with translated(f'list the resources of {stack.name}'):
            listed = {
                (row.stack_id, row.name): row
                for row in resources.below(self._context, stack.id)
            }
            physical_ids = {
                row.physical_resource_id
                for row in listed.values()
                if row.physical_resource_id
            }
            stack_ids = {row.stack_id for row in listed.values()}
            self._read_stacks(stack_ids | physical_ids)
            # Those of resources that are not those of stacks.
            numbers = {row.current_template_id for row in listed.values()}
            missing = numbers - self._types.keys() - {None}
            for row in resources.templates(self._context, missing):
                self._types[row.id] = _types_of(row.template or {})
            self._given |= rows.visible(self._context, physical_ids)
        self._resources[stack.id] = [
            heat_values.Resource(
                name=row.name,
                type=kind,
                physical_id=row.physical_resource_id or '',
                status=f'{row.action}_{row.status}',
                stack_id=row.stack_id,
                nested_id=row.physical_resource_id
                if row.physical_resource_id in self._stacks
                else None,
            )
            for row in listed.values()
            if row.stack_id in self._stacks
            and (kind := self._type(row)) is not None
        ]
        return self._resources[stack.id]

    def attribute(self, resource: heat_values.Resource, name: str) -> Any:
        with translated(f'read resource {resource.name}'):
            if name == stack_tree.MEMBERS:
                states = deployment_rows.states(
                    self._context, resource.physical_id
                )
                self._given |= {each.row.id: each.row for each in states}
                return {each.member.key: each.shown() for each in states}
            if resource.stack_id not in self._loaded:
                self._loaded[resource.stack_id] = parser.Stack.load(
                    self._context, stack_id=resource.stack_id
                )
            stack = self._loaded[resource.stack_id]
            loaded = stack.resource_get(resource.name)
            try:
                return loaded.attributes._resolver(name)
            except db_exception.DBError:
                raise
            except Exception:
                # As Heat's API shows it.
                return None

    def deployment(self, deployment_id: str) -> heat_values.DeploymentRow:
        if deployment_id not in self._given:
            raise errors.NotFound(f'Heat has no deployment {deployment_id}')
        return self._given[deployment_id]

    def config(self, config_id: str) -> heat_values.Config:
        if config_id not in self._configs:
            self._configs[config_id] = super().config(config_id)
        return self._configs[config_id]

    def _read_stacks(
        self, ids: abc.Collection[str], name: str | None = None
    ) -> None:
        """Read stacks and their templates, which are kept."""
        for row in resources.stacks_with_templates(self._context, ids, name):
            template = row.template or {}
            self._templates[row.id] = template
            self._types[row.raw_template_id] = _types_of(template)
            self._stacks[row.id] = heat_values.Stack(
                id=row.id,
                name=row.name,
                status=f'{row.action}_{row.status}',
                parent=row.owner_id,
                parameters=_parameters(template, row.environment or {}),
            )

    def _type(self, row: Any) -> str | None:
        """Return the type of a resource; None if its template lacks it."""
        types = self._types.get(row.current_template_id)
        if types is None:
            types = _types_of(self._templates[row.stack_id])
        return types.get(row.name)


def _types_of(template: abc.Mapping[str, Any]) -> dict[str, str]:
    """Return the types of a template's resources, by name."""
    parts = template.get('resources') or template.get('Resources') or {}
    return {
        name: str(part.get('type') or part.get('Type'))
        for name, part in parts.items()
        if isinstance(part, dict)
    }


def _parameters(
    template: abc.Mapping[str, Any], environment: abc.Mapping[str, Any]
) -> dict[str, str]:
    """Return the values of parameters as texts, without hidden ones."""
    declared = template.get('parameters') or template.get('Parameters') or {}
    values = {
        **(environment.get('parameter_defaults') or {}),
        **(environment.get('parameters') or {}),
    }
    encrypted = environment.get('encrypted_param_names') or ()
    given = {}
    for name, part in declared.items():
        value = values.get(name, part.get('default', part.get('Default')))
        if name in encrypted or value is None:
            continue
        given[name] = value if isinstance(value, str) else json.dumps(value)
    return given
