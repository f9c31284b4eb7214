# SPDX-License-Identifier: Apache-2.0
"""What has a name in Mistral that no other may have, and can be changed."""

from collections import abc
from typing import Any

from heat.common.i18n import _
from heat.engine import constraints
from heat.engine import properties
from heat.engine import resource

from heat_plugins import errors
from heat_plugins.mistral import calling
from heat_plugins.resources.workflows import mistral_calls

# The name that Mistral was asked for, before it has answered.
_BEGUN = 'begun'
_ID = 'id'


class Taken(Exception):
    """Somebody else has the name already."""


def shared_properties(*name_constraints: Any) -> dict[str, Any]:
    """Return the properties that such types have in common.

    :param name_constraints: of the name, beside that it is a text.
    """
    return {
        MistralNamed.NAME: properties.Schema(
            properties.Schema.STRING,
            _(
                'Its name, which nothing else of its kind in the project '
                'may have. Without it, it gets a name of its own.'
            ),
            constraints=list(name_constraints),
            update_allowed=True,
        ),
        MistralNamed.DESCRIPTION: properties.Schema(
            properties.Schema.STRING,
            _('What it is for.'),
            update_allowed=True,
        ),
        MistralNamed.SCOPE: properties.Schema(
            properties.Schema.STRING,
            _('Who may use it: this project alone, or every project.'),
            default='private',
            constraints=[constraints.AllowedValues(['private', 'public'])],
            update_allowed=True,
        ),
    }


class MistralNamed(mistral_calls.MistralCalls, resource.Resource):
    """Base of such types; nothing that others have made is touched.

    A subclass has ``KIND``, for people, and ``see``, ``make``, ``change``,
    ``remove`` and ``matches``.
    """

    support_status = mistral_calls.NOT_HEATS

    KIND: str

    NAME, DESCRIPTION, SCOPE = 'name', 'description', 'scope'

    always_replace_on_check_failed = False

    def needs_replace_failed(self) -> bool:
        return False

    def _needs_update(self, *args: Any, **kwargs: Any) -> Any:
        # What has failed half-way is done again.
        return super()._needs_update(*args, **kwargs) or (
            self.status == self.FAILED
        )

    def needs_replace_with_prop_diff(
        self,
        changed_properties_set: abc.Collection[str],
        after_props: abc.Mapping[str, Any],
        before_props: abc.Mapping[str, Any],
    ) -> bool:
        # Under another name it is another one; the old one goes later,
        # when nothing refers to it any more.
        return self.NAME in changed_properties_set and bool(
            after_props[self.NAME] or before_props[self.NAME]
        )

    def wanted_name(self, found: abc.Mapping[str, Any]) -> str:
        """Return the name that properties ask for."""
        name: str = found[self.NAME] or self.physical_resource_name()
        return name

    # What subclasses know ---------------------------------------------------

    def see(self, patience: calling.Patience, name: str) -> Any:
        """Return the one of that name, or None."""
        raise NotImplementedError

    def make(
        self,
        patience: calling.Patience,
        name: str,
        found: abc.Mapping[str, Any],
    ) -> Any:
        """Make it, and return it."""
        raise NotImplementedError

    def change(
        self,
        patience: calling.Patience,
        name: str,
        found: abc.Mapping[str, Any],
    ) -> None:
        """Change it."""
        raise NotImplementedError

    def remove(self, patience: calling.Patience, name: str) -> None:
        """Take it away."""
        raise NotImplementedError

    def matches(self, row: Any, found: abc.Mapping[str, Any]) -> bool:
        """Say whether it can be what was asked for."""
        raise NotImplementedError

    def precheck(
        self, patience: calling.Patience, found: abc.Mapping[str, Any]
    ) -> None:
        """Check what can be before anything changes."""

    # What is done -----------------------------------------------------------

    def handle_create(self) -> calling.Patience:
        return self.patience()

    def check_create_complete(self, patience: calling.Patience) -> bool:
        return self._create(patience, self.properties)

    def _create(
        self, patience: calling.Patience, found: abc.Mapping[str, Any]
    ) -> bool:
        name = self.wanted_name(found)
        self.precheck(patience, found)
        row = self.see(patience, name)
        if row is not None:
            # Ours, if it was made and the answer got lost.
            begun = self.data().get(_BEGUN) == name
            if not begun or not self.matches(row, found):
                raise Taken(
                    f'there is {self.KIND} "{name}" already; give this one '
                    f'another name, or none.'
                )
        else:
            self.data_set(_BEGUN, name)
            try:
                row = self.make(patience, name, found)
            except errors.ServiceError as exc:
                if not isinstance(exc, errors.Unavailable):
                    self.data_delete(_BEGUN)
                raise
        self.data_set(_ID, row.id)
        self.resource_id_set(name)
        self.data_delete(_BEGUN)
        return True

    def handle_update(
        self,
        json_snippet: Any,
        tmpl_diff: Any,
        prop_diff: abc.Mapping[str, Any],
    ) -> tuple[calling.Patience, Any]:
        after = json_snippet.properties(self.properties_schema, self.context)
        return self.patience(), after

    def check_update_complete(
        self, begun: tuple[calling.Patience, Any]
    ) -> bool:
        patience, after = begun
        if self._ours(patience) is None:
            return self._create(patience, after)
        self.precheck(patience, after)
        self.change(patience, self.resource_id, after)
        return True

    def handle_delete(self) -> calling.Patience:
        return self.patience()

    def check_delete_complete(self, patience: calling.Patience | None) -> bool:
        if patience is None:
            return True
        name = self.data().get(_BEGUN)
        if name and self.resource_id is None:
            row = self.see(patience, name)
            if row is not None and self.matches(row, self.properties):
                self.remove(patience, name)
        elif self._ours(patience) is not None:
            self.remove(patience, self.resource_id)
        return True

    def _ours(self, patience: calling.Patience) -> Any:
        """Return it, if it is there and is the one that was made here."""
        if self.resource_id is None:
            return None
        row = self.see(patience, self.resource_id)
        if row is None or row.id != self.data().get(_ID, row.id):
            return None
        return row

    def handle_check(self) -> calling.Patience:
        return self.patience()

    def check_check_complete(self, patience: calling.Patience) -> bool:
        if self._ours(patience) is None:
            raise errors.ServiceError(
                f'{self.KIND} "{self.resource_id}" is not in Mistral any '
                f'more; an update of the stack makes it again.'
            )
        return True

    def glance(self) -> Any:
        """Return it for an attribute; None if it cannot be seen."""
        if self.resource_id is None:
            return None
        try:
            return self._ours(calling.Patience(0))
        except errors.ServiceError as exc:
            mistral_calls.LOG.warning('%s: %s', self, exc)
            return None
