# SPDX-License-Identifier: Apache-2.0
"""Runs whose records cannot be read: only their names tell of them.

Whoever looks at several passes such a one over and says so. It may go on, so
nothing takes it for ended: as long as it is announced its action is refused
on that deployment, until somebody has it forgotten.
"""

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records

LOG = foreign.logger(__name__)


def pass_over(exc: errors.Unreadable) -> None:
    """Say that a run is left out, and what can be done about it."""
    LOG.warning('%s', exc)


def forget(found: records.Records, key: record_names.Key) -> None:
    """Delete what is known of a run that was taken from its server.

    The record goes last: what fails before can be tried again.
    """
    found.close(key)
    found.remove(key)
    LOG.warning(
        'Run %(run)s of %(action)s, whose record could not be read, was taken '
        'from its server and is forgotten. A script that the server has begun '
        'runs to its end',
        {'run': key.run_id, 'action': key.action},
    )
