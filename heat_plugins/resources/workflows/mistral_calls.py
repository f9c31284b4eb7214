# SPDX-License-Identifier: Apache-2.0
"""Calls to Mistral from resources, with retries after temporary failures."""

from collections.abc import Callable, Mapping
import datetime
from typing import Any, NoReturn

from heat.common import exception
from heat.common.i18n import _
from heat.engine import function
from heat.engine import properties
from heat.engine import resource
from heat.engine import support
from keystoneauth1 import exceptions
from oslo_config import cfg

from heat_plugins import absences
from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.clients import heat_mistral
from heat_plugins.clients import mistral_api
from heat_plugins.engine import heat_types
from heat_plugins.engine import transports
from heat_plugins.mistral import calling
from heat_plugins.mistral.triggers import schedule
from heat_plugins.resources import eventful

LOG = foreign.logger(__name__)

# Should the deletion of a probe's trust fail, it expires soon.
_LIFETIME = datetime.timedelta(minutes=2)

config.register_opts(cfg.CONF)

#: Of the types that Heat has no class of its own for.
NOT_HEATS = support.SupportStatus(
    status=support.UNSUPPORTED,
    message=_('Provided by heat-plugins, not by Heat.'),
)


def retry_budget() -> calling.RetryBudget:
    """Return how long an action retries while Mistral fails."""
    return calling.RetryBudget(cfg.CONF.heat_plugins.mistral_error_budget)


class NeedsMistral(resource.Resource):
    """Mixin for a resource type, which says why there is no Mistral."""

    @classmethod
    def is_service_available(
        cls, context: heat_types.Context
    ) -> tuple[bool, str | None]:
        """Say it as Heat does, but why it is not as everything here."""
        available, reason = super().is_service_available(context)
        if not available:
            reason = absences.service(mistral_api.SERVICE_TYPE)
        return available, reason


class MistralCalls(eventful.Eventful, NeedsMistral):
    """Mixin for a resource type, in front of Heat's class."""

    default_client_name = heat_mistral.CLIENT_NAME

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
        template: dict[str, Any] = super(
            MistralCalls, shown
        ).resource_to_template(resource_type, template_type)
        return template

    @property
    def project_id(self) -> str:
        """The project that it belongs to."""
        return str(self.context.project_id)

    def retry_budget(self) -> calling.RetryBudget:
        """Return how long an action retries."""
        return retry_budget()

    def pause(self, seconds: int) -> NoReturn:
        """End this step; Heat calls the next one after some seconds."""
        raise resource.PollDelay(seconds)

    def tell(self, text: str) -> None:
        """Write an event."""
        self._add_event(self.action, self.status, text)

    def is_cancelled(self, since: float) -> bool:
        """See `calling.Caller.is_cancelled`."""
        hub = transports.hub_for(self)
        return hub.cancellation.of(self.stack, since)

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
            answer = call(*arguments, **named)
        except Exception as exc:
            judged = mistral_api.judge(exc)
            if judged is None:
                raise
            delay = budget.delay(judged, what)
            if delay is None:
                raise self.failure(what, exc, judged) from exc
            LOG.warning(
                '%(resource)s: %(what)s: %(text)s; retrying in %(delay)s s',
                {
                    'resource': self,
                    'what': what,
                    'text': judged,
                    'delay': delay,
                },
            )
            raise resource.PollDelay(delay) from exc
        budget.reset(what)
        return answer

    def failure(
        self, what: str, error: Exception, judged: errors.ServiceError
    ) -> errors.ServiceError:
        """Return the exception for a permanent failure."""
        return type(judged)(f'{what}: {judged}', judged.status)

    def pending(self, *names: str) -> bool:
        """Say whether properties depend on resources that do not exist yet."""
        return any(
            needed.action == resource.Resource.INIT
            for name in names
            for needed in function.dependencies(self.properties.data.get(name))
        )

    def invalid(
        self, prop: str, message: object
    ) -> exception.StackValidationFailed:
        """Return the exception for an invalid property."""
        return heat_types.invalid(self, message, prop)

    def validate_workflow(
        self, prop: str, name: str, namespace: str = ''
    ) -> None:
        """Refuse a workflow that does not exist; ignore failures of Mistral.

        :raises StackValidationFailed: Mistral does not have it.
        """
        if self.pending(prop) or not name:
            return
        try:
            self.client().workflows.get(name, namespace)
        except Exception as exc:
            judged = mistral_api.judge(exc)
            if isinstance(judged, errors.NotFound):
                raise self.invalid(
                    prop, f'there is no workflow "{name}".'
                ) from exc
            LOG.warning(
                '%(resource)s: cannot check that workflow "%(name)s" exists: '
                '%(error)s',
                {'resource': self, 'name': name, 'error': judged or exc},
            )

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
            budget.reset(what)
            return None


class Mended(resource.Resource):
    """Mixin for types whose update recreates what is missing or has failed.

    A replacement would need the name that the failed object still has.
    """

    always_replace_on_check_failed = False

    # The state that an update finds, which becomes its own later on.
    _state_before = None, None

    def needs_replace_failed(self) -> bool:
        return False

    def _needs_update(self, *args: object, **kwargs: object) -> bool:
        self._state_before = self.state
        needed = super()._needs_update(*args, **kwargs)
        return bool(needed) or self.status == self.FAILED


class TrustingCalls(MistralCalls):
    """Mixin for types for which Mistral gets a trust from Keystone."""

    def trust_refusal(self) -> str | None:
        """Return why Keystone gives no trust; None if it does."""
        return trust_refusal(self)

    def failure(
        self, what: str, error: Exception, judged: errors.ServiceError
    ) -> errors.ServiceError:
        """Add Keystone's explanation to a failure of Mistral."""
        refused = mistral_api.trust_refused(error, self.context.trust_id)
        if refused is None:
            return super().failure(what, error, judged)
        return type(judged)(f'{what}: {refused}', judged.status)


class Stepwise(MistralCalls, Mended):
    """Mixin for types that call Mistral in each step of an action."""

    def handle_create(self) -> calling.RetryBudget:
        return self.retry_budget()

    def handle_update(
        self,
        json_snippet: heat_types.Definition,
        tmpl_diff: heat_types.Definition,
        prop_diff: Mapping[str, object],
    ) -> tuple[calling.RetryBudget, heat_types.Properties]:
        after = json_snippet.properties(self.properties_schema, self.context)
        return self.retry_budget(), after

    def handle_check(self) -> calling.RetryBudget:
        return self.retry_budget()

    def handle_delete(self) -> calling.RetryBudget:
        return self.retry_budget()


def trust_refusal(resource: heat_types.Resource) -> str | None:
    """Return why Keystone gives no trust for a cron trigger; None if it does.

    Mistral asks Keystone for the trust only when it creates the trigger; in an
    update, that is after the deletion of the old one. So this creates such a
    trust and deletes it at once. If Keystone does not answer, the trust counts
    as given: the creation of the trigger will tell.
    """
    try:
        _probe_trust(resource)
    except exceptions.HttpError as exc:
        if exc.http_status not in (400, 401, 403, 404):
            _warn_unprobed(resource, exc)
            return None
        return mistral_api.explain_trust(
            str(exc.http_status), str(exc), resource.context.trust_id
        )
    except Exception as exc:
        _warn_unprobed(resource, exc)
    return None


def _warn_unprobed(resource: heat_types.Resource, error: Exception) -> None:
    LOG.warning(
        '%(resource)s: cannot check that Keystone gives a trust for it: '
        '%(error)s',
        {'resource': resource, 'error': error},
    )


def _probe_trust(resource: heat_types.Resource) -> None:
    context = resource.context
    session = context.keystone_session
    access = context.auth_plugin.get_access(session)
    trusts = _trusts(resource)
    trust = trusts.create(
        trustor_user=access.user_id,
        # Whom it is for makes no difference to Keystone.
        trustee_user=access.user_id,
        project=access.project_id,
        role_names=access.role_names,
        impersonation=True,
        expires_at=schedule.now() + _LIFETIME,
    )
    trusts.delete(trust.id)


def _trusts(resource: heat_types.Resource) -> Any:
    return resource.client('keystone').client.trusts
