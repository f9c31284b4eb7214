# SPDX-License-Identifier: Apache-2.0
"""What the tables and pages of both panels share."""

import sys

from django import shortcuts
from django.utils.translation import gettext_lazy as _
from horizon import exceptions
from horizon import messages
from horizon import tables

from heat_plugins import errors
from heat_plugins import foreign

#: Of columns that small screens have no room for.
WIDE = ('hidden-xs',)


class ErrorsOnIndex:
    """A page that shows an error on the list of its panel.

    :cvar index: the address of that.
    """

    index = None

    def dispatch(self, request, *args, **kwargs):
        try:
            return super().dispatch(request, *args, **kwargs)
        except errors.Error as exc:
            messages.error(request, foreign.line(exc))
            return shortcuts.redirect(self.index)


class Request(tables.BatchAction):
    """A button that asks for something.

    :cvar present: its label.
    :cvar past: what stands before the object once it is done.
    """

    present = past = ''
    help_text = _('heat-engine follows at once.')

    def action_present(self, count):
        return self.present

    def action_past(self, count):
        return self.past

    def action(self, request, obj_id):
        try:
            self.ask(request, obj_id)
        except errors.Error as exc:
            messages.error(request, foreign.line(exc))
            # Horizon would add that it was unable to.
            raise exceptions.HandledException(sys.exc_info()) from exc

    def ask(self, request, obj_id):
        """Ask for it."""
        raise NotImplementedError
