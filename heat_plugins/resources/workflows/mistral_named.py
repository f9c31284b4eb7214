# SPDX-License-Identifier: Apache-2.0
"""Base of types whose name in Mistral is unique, and that change in place."""

from collections import abc

from heat.common.i18n import _
from heat.engine import constraints
from heat.engine import resource

from heat_plugins import errors
from heat_plugins.clients import mistral_api
from heat_plugins.engine import heat_types
from heat_plugins.mistral import calling
from heat_plugins.resources import schemas
from heat_plugins.resources.workflows import mistral_calls

# The name that Mistral was asked for, before it has answered.
_BEGUN = 'begun'
_ID = 'id'


class Taken(Exception):
    """Another resource or user has the name."""


def shared_properties(
    *name_constraints: constraints.Constraint,
) -> dict[str, heat_types.Schema]:
    """Return the properties that such types share.

    :param name_constraints: further constraints of the name.
    """
    return {
        MistralNamed.NAME: schemas.text(
            _(
                'Name in Mistral, unique in the project. Default: a '
                'generated name.'
            ),
            constraints=list(name_constraints),
        ),
        MistralNamed.DESCRIPTION: schemas.text(_('What it is for.')),
        MistralNamed.SCOPE: schemas.text(
            _(
                'Who may use it: this project (private), or every project '
                '(public).'
            ),
            default='private',
            constraints=[constraints.AllowedValues(['private', 'public'])],
        ),
    }


class MistralNamed(mistral_calls.Stepwise, resource.Resource):
    """Base of such types; it changes only objects that it has created.

    A subclass has ``KIND``, for people, ``entity``, its name in Mistral's
    client, ``body`` and ``matches``.
    """

    support_status = mistral_calls.NOT_HEATS

    KIND: str

    NAME, DESCRIPTION, SCOPE = 'name', 'description', 'scope'

    def needs_replace_with_prop_diff(
        self,
        changed_properties_set: abc.Collection[str],
        after_props: heat_types.Properties,
        before_props: heat_types.Properties,
    ) -> bool:
        # Under another name it is another one; the old one goes later,
        # when nothing refers to it.
        return self.NAME in changed_properties_set and bool(
            after_props[self.NAME] or before_props[self.NAME]
        )

    def wanted_name(self, props: heat_types.Properties) -> str:
        """Return the name that properties request."""
        name: str = props[self.NAME] or self.physical_resource_name()
        return name

    # What subclasses know ---------------------------------------------------

    def body(
        self, name: str, props: heat_types.Properties
    ) -> dict[str, object]:
        """Return the arguments of Mistral's client to create or change it."""
        raise NotImplementedError

    def matches(
        self, row: mistral_api.Row, props: heat_types.Properties
    ) -> bool:
        """Say whether a row can be the result of properties."""
        raise NotImplementedError

    def precheck(
        self, budget: calling.RetryBudget, props: heat_types.Properties
    ) -> None:
        """Check all that is possible before any change."""

    # What is done -----------------------------------------------------------

    def see(self, budget: calling.RetryBudget, name: str) -> mistral_api.Row:
        """Return the row of a name, or None."""
        return self.find(
            budget, f'cannot read the {self.KIND}', self._calls.get, name
        )

    def _remove(self, budget: calling.RetryBudget, name: str) -> None:
        self.find(
            budget,
            f'cannot delete the {self.KIND}',
            self._calls.delete,
            name,
        )

    @property
    def _calls(self) -> mistral_api.Manager:
        return getattr(self.client(), self.entity)

    def check_create_complete(self, budget: calling.RetryBudget) -> bool:
        return self._create(budget, self.properties)

    def _create(
        self, budget: calling.RetryBudget, props: heat_types.Properties
    ) -> bool:
        name = self.wanted_name(props)
        self.precheck(budget, props)
        row = self.see(budget, name)
        if row is not None:
            # Ours, if it was made and the answer got lost.
            begun = self.data().get(_BEGUN) == name
            if not begun or not self.matches(row, props):
                raise Taken(
                    f'an {self.KIND} "{name}" exists already; choose another '
                    'name, or leave "name" out.'
                )
        else:
            self.data_set(_BEGUN, name)
            try:
                row = self.ask(
                    budget,
                    f'cannot create the {self.KIND}',
                    self._calls.create,
                    **self.body(name, props),
                )
            except errors.ServiceError as exc:
                if not isinstance(exc, errors.Unavailable):
                    self.data_delete(_BEGUN)
                raise
        if isinstance(row, list):
            # One text may define several actions; ours defines one.
            (row,) = row
        self.data_set(_ID, row.id)
        self.resource_id_set(name)
        self.data_delete(_BEGUN)
        return True

    def check_update_complete(
        self, begun: tuple[calling.RetryBudget, heat_types.Properties]
    ) -> bool:
        budget, after = begun
        if self._ours(budget) is None:
            return self._create(budget, after)
        self.precheck(budget, after)
        self.ask(
            budget,
            f'cannot change the {self.KIND}',
            self._calls.update,
            **self.body(self.resource_id, after),
        )
        return True

    def check_delete_complete(
        self, budget: calling.RetryBudget | None
    ) -> bool:
        if budget is None:
            return True
        name = self.data().get(_BEGUN)
        if name and self.resource_id is None:
            row = self.see(budget, name)
            if row is not None and self.matches(row, self.properties):
                self._remove(budget, name)
        elif self._ours(budget) is not None:
            self._remove(budget, self.resource_id)
        return True

    def _ours(self, budget: calling.RetryBudget) -> mistral_api.Row | None:
        """Return the row, if this resource has created it."""
        if self.resource_id is None:
            return None
        row = self.see(budget, self.resource_id)
        if row is None or row.id != self.data().get(_ID, row.id):
            return None
        return row

    def check_check_complete(self, budget: calling.RetryBudget) -> bool:
        if self._ours(budget) is None:
            raise errors.ServiceError(
                f'an {self.KIND} "{self.resource_id}" is no longer in '
                f'Mistral; an update of the stack creates it again.'
            )
        return True

    def glance(self) -> mistral_api.Row | None:
        """Return the row for an attribute; None if it cannot be read."""
        if self.resource_id is None:
            return None
        try:
            return self._ours(calling.RetryBudget(0))
        except errors.ServiceError as exc:
            mistral_calls.LOG.warning('%s: %s', self, exc)
            return None
