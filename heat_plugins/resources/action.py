# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Action."""

from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints

from heat_plugins import foreign
from heat_plugins.clients import mistral_api
from heat_plugins.engine import heat_types
from heat_plugins.mistral import definitions
from heat_plugins.resources import bases
from heat_plugins.resources.workflows import mistral_named


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
        DEFINITION: bases.text(
            _("Definition of one ad-hoc action in Mistral's language, v2.")
        ),
        BASE: bases.text(
            _('The action that this one extends, such as std.http.')
        ),
        BASE_INPUT: bases.mapping(
            _(
                'The input of the base: values, or expressions on the input '
                'of this action, such as "<% $.url %>".'
            )
        ),
        INPUT: bases.several(
            _(
                'The inputs of this action: names, or maps from a name to a '
                'default.'
            )
        ),
        OUTPUT: bases.anything(
            _(
                'The result of this action: an expression on the result of '
                'the base, which is "$".'
            )
        ),
        TAGS: bases.several(_('Tags of the action.')),
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
        given = self.properties.data
        prop = self.DEFINITION if self.DEFINITION in given else self.BASE
        if prop not in given:
            raise exception.PropertyUnspecifiedError(
                self.DEFINITION, self.BASE
            )
        if prop == self.DEFINITION:
            # A description of the resource is one of the action as well.
            for name in self._PARTS:
                if name in given:
                    raise exception.ResourcePropertyConflict(prop, name)
        if self.pending(self.DEFINITION, *self._PARTS):
            return
        try:
            text = self._text('action', self.properties)
        except definitions.InvalidDefinition as exc:
            raise heat_types.invalid(self, exc, prop) from exc
        answer = self.validate_by(self.client().actions.validate, text)
        if answer is not None and not answer.get('valid', True):
            raise heat_types.invalid(self, foreign.line(answer['error']), prop)

    def _text(self, name: str, props: heat_types.Properties) -> str:
        """Return the definition for Mistral.

        :raises InvalidDefinition: it is not one of a single action.
        """
        if not props[self.DEFINITION]:
            parts = {
                part.replace('_', '-'): props[part]
                for part in self._PARTS
                if props[part] not in (None, '')
            }
            return definitions.dump({name: parts})
        actions = definitions.read(props[self.DEFINITION])
        if len(actions) > 1:
            raise definitions.InvalidDefinition(
                f'the definition has {len(actions)} actions; a resource can '
                'hold only one'
            )
        (action,) = actions.values()
        return definitions.dump({name: action})

    def body(
        self, name: str, props: heat_types.Properties
    ) -> dict[str, object]:
        return {
            'definition': self._text(name, props),
            'scope': props[self.SCOPE],
        }

    def attribute(self, name: str, row: mistral_api.Row | None) -> str | None:
        return None if row is None else row.input
