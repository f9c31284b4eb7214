# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Action."""

from typing import Any

from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.clients import mistral_api
from heat_plugins.engine import heat_types
from heat_plugins.mistral import calling
from heat_plugins.mistral.definitions import structured
from heat_plugins.resources import schemas
from heat_plugins.resources.workflows import mistral_named

LOG = foreign.logger(__name__)


class Action(mistral_named.MistralNamed):
    """An ad-hoc action: another action with a part of its input filled in.

    Workflows use it by its name, which ``get_resource`` returns. Define it
    either by ``base`` and its properties, or by a ``definition`` in Mistral's
    language, whose own name for the action is ignored.
    """

    entity = 'actions'

    KIND = 'action'

    DEFINITION = 'definition'
    BASE, BASE_INPUT, INPUT, OUTPUT, TAGS = (
        'base',
        'base_input',
        'input',
        'output',
        'tags',
    )

    # Properties that need a base.
    _PARTS = (
        BASE,
        BASE_INPUT,
        INPUT,
        OUTPUT,
        mistral_named.MistralNamed.DESCRIPTION,
        TAGS,
    )

    properties_schema = {
        **mistral_named.shared_properties(
            constraints.AllowedPattern(r'([A-Za-z_][\w.-]*)?')
        ),
        DEFINITION: schemas.text(
            _("Definition of one ad-hoc action in Mistral's language, v2.")
        ),
        BASE: schemas.text(
            _('The action that this one extends, such as std.http.')
        ),
        BASE_INPUT: schemas.mapping(
            _(
                'The input of the base: values, or expressions on the input '
                'of this action, such as "<% $.url %>".'
            )
        ),
        INPUT: schemas.several(
            _(
                'The inputs of this action: names, or maps from a name to a '
                'default.'
            )
        ),
        OUTPUT: schemas.anything(
            _(
                'The result of this action: an expression on the result of '
                'the base, which is "$".'
            )
        ),
        TAGS: schemas.several(_('Tags of the action.')),
    }

    attributes_schema = {
        INPUT: attributes.Schema(
            _('The inputs of the action, as Mistral writes them.'),
            type=attributes.Schema.STRING,
        ),
    }

    def validate(self) -> None:
        """Validate as Heat does, then let Mistral validate the definition.

        :raises StackValidationFailed: it defines no action.
        """
        super().validate()
        definition = self.properties[self.DEFINITION]
        waits = self.pending(self.DEFINITION, *self._PARTS)
        if self.DEFINITION in self.properties.data:
            # A description of the resource is one of the action as well.
            for name in self._PARTS:
                if name in self.properties.data:
                    raise exception.ResourcePropertyConflict(
                        self.DEFINITION, name
                    )
        elif self.BASE not in self.properties.data:
            raise exception.PropertyUnspecifiedError(
                self.DEFINITION, self.BASE
            )
        if waits:
            return
        try:
            text = structured.write_action(
                'action', self._spec(self.properties)
            )
        except structured.AdhocError as exc:
            raise self.invalid(self.DEFINITION, exc) from exc
        self._ask_mistral(text, self.DEFINITION if definition else self.BASE)

    def _ask_mistral(self, text: str, prop: str) -> None:
        try:
            answer = self.client().actions.validate(text)
        except Exception as exc:
            judged = mistral_api.judge(exc)
            if judged is None:
                raise
            LOG.warning(
                '%(resource)s: Mistral cannot validate its definition now: '
                '%(error)s',
                {'resource': self, 'error': judged},
            )
            return
        if not answer.get('valid', True):
            raise self.invalid(prop, ' '.join(str(answer['error']).split()))

    def _spec(self, props: heat_types.Properties) -> Any:
        if props[self.DEFINITION]:
            return structured.read_action(props[self.DEFINITION])
        return {name.replace('_', '-'): props[name] for name in self._PARTS}

    # What is done ---------------------------------------------------------

    def precheck(
        self, budget: calling.RetryBudget, props: heat_types.Properties
    ) -> None:
        """Check that the base exists: Mistral tells only when it runs."""
        base = structured.base_name(self._spec(props))
        if self.see(budget, base) is None:
            raise errors.ServiceError(
                f'its base, the action "{base}", is not in Mistral.'
            )

    def body(
        self, name: str, props: heat_types.Properties
    ) -> dict[str, object]:
        return {
            'definition': structured.write_action(name, self._spec(props)),
            'scope': props[self.SCOPE],
        }

    def matches(
        self, row: mistral_api.Row, props: heat_types.Properties
    ) -> bool:
        written = structured.write_action(row.name, self._spec(props))
        return bool(row.definition == written)

    def _resolve_attribute(self, name: str) -> object:
        row = self.glance()
        return None if row is None else row.input
