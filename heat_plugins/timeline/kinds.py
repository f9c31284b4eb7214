# SPDX-License-Identifier: Apache-2.0
"""The kinds of events, for programs.

Heat's events have no field for it, so the reason begins with the kind's name,
as in ``Not triggered: there is no action BACKPU``. Writers and readers of
such events use this module; the rest of the reason is for people alone.
"""

import enum
import re

from heat_plugins import bounds

#: The most characters of an event's reason that Heat's database holds.
LIMIT = 255

# What Heat writes before the reason of a signal.
_SIGNAL = 'Signal: '

# Events of the first release that had no kind.
_FORMERLY_STARTED = re.compile(r'server \S+ has begun \w+', re.IGNORECASE)


class EventKind(enum.Enum):
    """A kind of event, by the name that its reason begins with."""

    #: A server has reported that it runs what it was given.
    STARTED = 'Started'
    #: How far the members of a group are.
    PROGRESS = 'Progress'
    #: A signal to a deployment, or to a schedule, had no effect.
    NOT_TRIGGERED = 'Not triggered'
    #: A webhook did not take what a schedule had to tell.
    NOT_TOLD = 'Not told'
    #: The sender of a result lacks the permission.
    RESULT_REFUSED = 'Result refused'
    #: A result of an action that no engine waits for: a server has sent
    #: it twice, or has run the action again.
    RESULT_IGNORED = 'Result ignored'
    #: A signal to a workflow had no effect.
    SIGNAL_FAILED = 'Signal failed'
    #: heat-agents have no hook for what a server was given.
    UNKNOWN_HOOK = 'Unknown hook'


def reason(kind: EventKind, text: str) -> str:
    """Return the reason of an event; a long one ends in …."""
    return bounds.shortened(f'{kind.value}: {text}', LIMIT)


def of(event_reason: str) -> EventKind | None:
    """Return the kind of an event; None for those that Heat writes itself."""
    reason = event_reason.removeprefix(_SIGNAL)
    for kind in EventKind:
        if reason.startswith(f'{kind.value}: '):
            return kind
    return EventKind.STARTED if _FORMERLY_STARTED.fullmatch(reason) else None
