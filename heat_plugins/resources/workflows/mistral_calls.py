# SPDX-License-Identifier: Apache-2.0
"""Bases of the resource types that keep something in Mistral."""

from collections.abc import Callable, Mapping
from typing import Any

from heat.common.i18n import _
from heat.engine import function
from heat.engine import properties
from heat.engine import resource
from heat.engine import support
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import wording
from heat_plugins.clients import heat_mistral
from heat_plugins.clients import mistral_api
from heat_plugins.engine import heat_types
from heat_plugins.mistral import calling
from heat_plugins.mistral import triggers
from heat_plugins.resources import bases

LOG = foreign.logger(__name__)

#: Of the types that Heat has no class of its own for.
NOT_HEATS = support.SupportStatus(
    status=support.UNSUPPORTED,
    message=_('Provided by heat-plugins, not by Heat.'),
)

#: A retry budget, and the properties after the update.
Update = tuple[calling.RetryBudget, heat_types.Properties]


class MistralCalls(bases.Eventful, resource.Resource):
    """Mixin for a resource type, in front of Heat's class.

    Each ``check_*_complete`` may be repeated while Mistral fails. An update
    recreates what is missing or has failed: a replacement would need the name
    that the failed object still has.
    """

    default_client_name = heat_mistral.CLIENT_NAME

    always_replace_on_check_failed = False

    # The state that an update finds, which becomes its own later on.
    _state_before = None, None

    @classmethod
    def is_service_available(
        cls, context: heat_types.Context
    ) -> tuple[bool, str | None]:
        """Say it as Heat does, but why it is not as everything here."""
        available, reason = super().is_service_available(context)
        absent = wording.no_service(mistral_api.SERVICE_TYPE)
        return available, reason if available else absent

    @classmethod
    def resource_to_template(
        cls, resource_type: str, template_type: str = 'cfn'
    ) -> dict[str, object]:
        """Do as Heat does, but also for properties of any type."""
        schema = {
            name: properties.Schema(
                properties.Schema.MAP,
                declared.description,
                required=declared.required,
            )
            if declared.type == properties.Schema.ANY
            else declared
            for name, declared in cls.properties_schema.items()
        }
        kind: Any = type(cls)
        shown = kind(cls.__name__, (cls,), {'properties_schema': schema})
        return dict(
            super(MistralCalls, shown).resource_to_template(
                resource_type, template_type
            )
        )

    def needs_replace_failed(self) -> bool:
        return False

    def _needs_update(self, *args: object, **kwargs: object) -> bool:
        self._state_before = self.state
        return bool(
            super()._needs_update(*args, **kwargs)
            or self.status == self.FAILED
        )

    def retry_budget(self) -> calling.RetryBudget:
        """Return how long an action retries while Mistral fails."""
        return calling.RetryBudget(cfg.CONF.heat_plugins.mistral_error_budget)

    def handle_create(self) -> Any:
        return self.retry_budget()

    handle_check = handle_delete = handle_create

    def handle_update(
        self,
        json_snippet: heat_types.Definition,
        tmpl_diff: heat_types.Definition,
        prop_diff: Mapping[str, object],
    ) -> Any:
        """Prepare the update: time for retries, and the new properties."""
        after = json_snippet.properties(self.properties_schema, self.context)
        return self.retry_budget(), after

    def ask(
        self,
        budget: calling.RetryBudget,
        what: str,
        call: Callable[..., Any],
        *arguments: object,
        **named: object,
    ) -> Any:
        """Call Mistral, from one of Heat's ``check_*_complete`` methods.

        :param what: the purpose, with which the reason of a failure begins.
        :raises PollDelay: the failure is temporary; Heat repeats the step.
        :raises errors.ServiceError: any other failure.
        """
        try:
            answer = mistral_api.ask(call, *arguments, **named)
        except errors.ServiceError as exc:
            delay = budget.delay(exc, what)
            if delay is None:
                raise type(exc)(f'{what}: {exc}', exc.status) from exc
            LOG.warning(
                '%(resource)s: %(what)s: %(text)s; retrying in %(delay)s s',
                {'resource': self, 'what': what, 'text': exc, 'delay': delay},
            )
            raise resource.PollDelay(delay) from exc
        budget.reset(what)
        return answer

    def find(
        self,
        budget: calling.RetryBudget,
        what: str,
        call: Callable[..., Any],
        *arguments: object,
        **named: object,
    ) -> Any:
        """Call Mistral like `ask`; None if Mistral has no such object."""
        try:
            return self.ask(budget, what, call, *arguments, **named)
        except errors.NotFound:
            return None

    def pending(self, *names: str) -> bool:
        """Say whether properties depend on resources that do not exist yet."""
        return not self.stack.strict_validate or any(
            needed.action == resource.Resource.INIT
            for name in names
            for needed in function.dependencies(self.properties.data.get(name))
        )

    def validate_by(self, call: Callable[..., Any], *arguments: object) -> Any:
        """Ask Mistral while the stack is validated; None if it fails.

        :raises errors.NotFound: Mistral has no such object.
        """
        try:
            return mistral_api.ask(call, *arguments)
        except errors.NotFound:
            raise
        except errors.ServiceError as exc:
            LOG.warning('%s: Mistral cannot validate it now: %s', self, exc)
            return None

    def validate_workflow(
        self, prop: str, name: str, namespace: str = ''
    ) -> None:
        """Refuse a workflow that does not exist; ignore failures of Mistral.

        :raises StackValidationFailed: Mistral does not have it.
        """
        if self.pending(prop) or not name:
            return
        try:
            self.validate_by(self.client().workflows.get, name, namespace)
        except errors.NotFound as exc:
            raise heat_types.invalid(
                self, f'there is no workflow "{name}".', prop
            ) from exc

    def validate_called(self, prop: str) -> None:
        """Refuse a trigger's workflow that is invalid or does not exist.

        Mistral checks its input: this very update may change what the
        workflow takes.

        :raises StackValidationFailed: it does not.
        """
        if not self.pending(prop):
            try:
                name, _, _ = triggers.called(self.properties[prop])
            except triggers.InvalidCall as exc:
                raise heat_types.invalid(self, exc, prop) from exc
            self.validate_workflow(prop, name)


class MistralObject(MistralCalls):
    """Mixin for a type that is one object of Mistral's API.

    A subclass has ``KIND``, for people, and ``entity``, its name in Mistral's
    client.
    """

    KIND: str

    @property
    def calls(self) -> mistral_api.Manager:
        """Mistral's calls for objects of this kind."""
        return getattr(self.client(), self.entity)

    def row(
        self, budget: calling.RetryBudget, identifier: str | None
    ) -> mistral_api.Row | None:
        """Return the object, or None."""
        if identifier is None:
            return None
        return self.find(
            budget, f'cannot read the {self.KIND}', self.calls.get, identifier
        )

    def make(
        self,
        budget: calling.RetryBudget,
        name: str,
        /,
        **values: object,
    ) -> None:
        """Create the object, once, under a name that is free.

        The resource has the name before Mistral is asked: after a lost answer
        or a crash, the object is found by it.

        :raises errors.Conflict: another object has the name.
        """
        there = self.row(budget, name)
        if name == self.resource_id and there is not None:
            return
        if there is not None:
            raise errors.Conflict(
                f'there is another {self.KIND} "{name}" already; choose '
                'another name, or leave "name" out.'
            )
        self.resource_id_set(name)
        try:
            self.ask(
                budget,
                f'cannot create the {self.KIND}',
                self.calls.create,
                **values,
            )
        except errors.Unavailable:
            raise
        except errors.ServiceError:
            self.resource_id_set(None)
            raise

    def check_check_complete(self, budget: calling.RetryBudget) -> bool:
        """Check that the object still is in Mistral."""
        if self.row(budget, self.resource_id) is None:
            raise errors.NotFound(
                f'the {self.KIND} is no longer in Mistral; an update of the '
                'stack creates it again.'
            )
        return True

    def check_delete_complete(
        self, budget: calling.RetryBudget | None
    ) -> bool:
        """Delete the object in Mistral; one that is gone is deleted."""
        if budget is not None and self.resource_id is not None:
            self.find(
                budget,
                f'cannot delete the {self.KIND}',
                self.calls.delete,
                self.resource_id,
            )
        return True

    def attribute(self, name: str, row: mistral_api.Row | None) -> object:
        """Return an attribute of the object; None where it is missing."""
        raise NotImplementedError

    def _resolve_attribute(self, name: str) -> object:
        if self.resource_id is None:
            return None
        try:
            return self.attribute(
                name, self.row(calling.RetryBudget(0), self.resource_id)
            )
        except errors.ServiceError as exc:
            LOG.warning('%s: %s', self, exc)
            return None
