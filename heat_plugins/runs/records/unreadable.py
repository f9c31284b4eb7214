# SPDX-License-Identifier: Apache-2.0
"""Runs whose records are unreadable: only their names tell of them.

A process that reads several runs skips it and says so. The run may
still run, so nothing takes it for ended: as long as it is announced, its
action is refused on that deployment, until a user deletes it.
"""

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records

LOG = foreign.logger(__name__)


def pass_over(exc: errors.UnreadableRun) -> None:
    """Say that a run is left out, and what can be done about it."""
    LOG.warning('%s', exc)


def forget(found: records.Records, key: record_names.Key) -> None:
    """Delete what is known of a run that was taken from its server.

    The record goes last, so that a failure before that can be retried.
    """
    found.close(key)
    found.remove(key)
    LOG.warning(
        'Withdrew run %(run)s of %(action)s, whose record was unreadable, '
        'from its server, and deleted the record. If the server has started '
        'the script, it runs to its end',
        {'run': key.run_id, 'action': key.action},
    )
