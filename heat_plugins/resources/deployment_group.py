# SPDX-License-Identifier: Apache-2.0
"""What our deployment groups do that Heat's do not."""

from heat.common import exception
from heat.common.i18n import _

from heat_plugins.resources import signal_events
from heat_plugins.runs import errors
from heat_plugins.runs import triggers


class GroupMixin:
    """Goes before one of Heat's deployment groups."""

    def get_resource_def(self, include_all=False):
        """Return the properties of a member; those that are set.

        Heat hands on all of them, and in a template a number that is null
        is 0: no time at all, in the case of ``timeout``.
        """
        found = super().get_resource_def(include_all)
        return {k: v for k, v in found.items() if v is not None}

    def handle_signal(self, details):
        """Start a run on each member; each says what became of its own."""
        wanted = triggers.read(details)
        if wanted is None:
            raise signal_events.not_triggered(
                self,
                errors.Refused(
                    _('a group takes no other signals than triggers')
                ),
            )
        nested = self.nested()
        members = [] if nested is None else list(nested.values())
        failed = [one.name for one in members if not _triggered(one, details)]
        begun = _('%(action)s has begun on %(number)d of %(all)d members') % {
            'action': wanted.action,
            'number': len(members) - len(failed),
            'all': len(members),
        }
        if not failed:
            return begun
        raise signal_events.not_triggered(
            self,
            errors.Refused(
                _('%(begun)s; see the events of %(failed)s')
                % {'begun': begun, 'failed': ', '.join(sorted(failed))}
            ),
        )


def _triggered(member, details):
    try:
        member.signal(details)
    except exception.ResourceFailure:
        # It has written an event.
        return False
    except Exception as exc:
        # Heat lets no signal to it while it goes, for one.
        signal_events.not_triggered(member, exc)
        return False
    return True
