# SPDX-License-Identifier: Apache-2.0
"""Base of types whose name in Mistral is unique, and that change in place."""

from collections import abc

from heat.common.i18n import _
from heat.engine import constraints

from heat_plugins.engine import heat_types
from heat_plugins.mistral import calling
from heat_plugins.resources import bases
from heat_plugins.resources.workflows import mistral_calls


def shared_properties(
    *name_constraints: constraints.Constraint,
) -> dict[str, heat_types.Schema]:
    """Return the properties that such types share.

    :param name_constraints: further constraints of the name.
    """
    return {
        MistralNamed.NAME: bases.text(
            _(
                'Name in Mistral, unique in the project. Default: a '
                'generated name.'
            ),
            constraints=list(name_constraints),
        ),
        MistralNamed.DESCRIPTION: bases.text(_('What it is for.')),
        MistralNamed.SCOPE: bases.text(
            _(
                'Who may use it: this project (private), or every project '
                '(public).'
            ),
            default='private',
            constraints=[constraints.AllowedValues(['private', 'public'])],
        ),
    }


class MistralNamed(mistral_calls.MistralObject):
    """Base of such types. A subclass also has ``body``."""

    support_status = mistral_calls.NOT_HEATS

    NAME, DESCRIPTION, SCOPE = 'name', 'description', 'scope'

    def needs_replace_with_prop_diff(
        self,
        changed_properties_set: abc.Collection[str],
        after_props: heat_types.Properties,
        before_props: heat_types.Properties,
    ) -> bool:
        """Say whether an update changes the name."""
        # Under another name it is another one; the old one goes later,
        # when nothing refers to it.
        return self.NAME in changed_properties_set and bool(
            after_props[self.NAME] or before_props[self.NAME]
        )

    def body(
        self, name: str, props: heat_types.Properties
    ) -> dict[str, object]:
        """Return the arguments of Mistral's client to create or change it."""
        raise NotImplementedError

    def check_create_complete(self, budget: calling.RetryBudget) -> bool:
        return self._create(budget, self.properties)

    def _create(
        self, budget: calling.RetryBudget, props: heat_types.Properties
    ) -> bool:
        """Create the object, under a name of the stack's if it has none."""
        name = props[self.NAME] or self.physical_resource_name()
        self.make(budget, name, **self.body(name, props))
        return True

    def check_update_complete(self, update: mistral_calls.Update) -> bool:
        """Change the object in Mistral, or make it if it is gone."""
        budget, after = update
        if self.row(budget, self.resource_id) is None:
            return self._create(budget, after)
        self.ask(
            budget,
            f'cannot change the {self.KIND}',
            self.calls.update,
            **self.body(self.resource_id, after),
        )
        return True
