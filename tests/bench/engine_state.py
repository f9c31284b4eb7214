# SPDX-License-Identifier: Apache-2.0
"""How far Heat is, read from its database behind its back."""

import datetime
import json
import sqlite3
import time

from tests.functional import base

#: Seconds between two looks; what is measured by them is as exact.
INTERVAL = 0.05


class TooLongError(Exception):
    """Something has not come about within its time."""


class EngineState:
    """What Heat's database says; reading holds no writer up.

    :param file: the SQLite database.
    """

    def __init__(self, file):
        self._database = sqlite3.connect(
            f'file:{file}?mode=ro', uri=True, isolation_level=None, timeout=60
        )

    def close(self):
        self._database.close()

    def deployments(self, roots, action):
        """Return the deployments below root stacks: two lists of IDs.

        The servers of the first have been given the config of an action; the
        others are complete. Those of a group without nested stack have the
        group's state.
        """
        columns = (
            'SELECT d.id, r.action, r.status, d.action, d.status'
            ' FROM resource r JOIN software_deployment d ON '
        )
        rows = self._select(
            f'{columns} d.id = r.nova_instance WHERE r.root_stack_id IN', roots
        ) + self._select(
            f"{columns} d.id LIKE substr(r.nova_instance, 1, 24) || '%'"
            " WHERE r.nova_instance LIKE '%-000000000000'"
            ' AND r.root_stack_id IN',
            roots,
        )
        waits = (action, 'IN_PROGRESS') * 2
        return (
            [row[0] for row in rows if row[1:] == waits],
            [row[0] for row in rows if row[1:3] == (action, 'COMPLETE')],
        )

    def deliveries(self, ids):
        """Return how many servers deployments are for, and the last write."""
        ((count, written),) = self._select(
            'SELECT COUNT(DISTINCT server_id),'
            ' MAX(COALESCE(updated_at, created_at))'
            ' FROM software_deployment WHERE id IN',
            ids,
        )
        if written is None:
            return 0, 0.0
        at = datetime.datetime.fromisoformat(written)
        return count, at.replace(tzinfo=datetime.UTC).timestamp()

    def signal_urls(self, ids):
        """Return where the servers of deployments signal to, by their ID."""
        return {
            deployment: base.signal_url(config)
            for deployment, config in self.configs(ids).items()
        }

    def triggered(self, action, more=''):
        """Return the IDs of the rows of runs of an action in progress."""
        rows = self._database.execute(
            f'SELECT d.id FROM software_deployment d {more} WHERE d.action = ?'
            " AND d.status = 'IN_PROGRESS'"
            " AND d.status_reason LIKE 'heat-plugins run %'",
            (action,),
        )
        return list(dict.fromkeys(row[0] for row in rows))

    def told(self, action):
        """Return those whose servers' metadata have the config."""
        return self.triggered(
            action,
            'JOIN resource r ON r.nova_instance = d.server_id'
            ' AND instr(r.rsrc_metadata, d.config_id)',
        )

    def has_runs(self):
        """Say whether a run is in progress."""
        found = self._database.execute(
            'SELECT 1 FROM heat_plugins_run WHERE ended_at IS NULL'
        )
        return found.fetchone() is not None

    def configs(self, ids):
        """Return what the servers of deployments were given, by their ID."""
        rows = self._select(
            'SELECT d.id, c.id, c.config FROM software_deployment d'
            ' JOIN software_config c ON c.id = d.config_id WHERE d.id IN',
            ids,
        )
        return {row[0]: {'id': row[1], **json.loads(row[2])} for row in rows}

    def server_ids(self, root):
        rows = self._database.execute(
            'SELECT nova_instance FROM resource WHERE root_stack_id = ?'
            " AND name LIKE 'server%' ORDER BY id",
            (root,),
        )
        return [row[0] for row in rows]

    def stacks(self, ids):
        """Return the states that stacks are in, such as CREATE_COMPLETE.

        A stack that was deleted is there still, as DELETE_COMPLETE.
        """
        rows = self._select(
            'SELECT action, status FROM stack WHERE id IN', ids
        )
        return {f'{action}_{status}' for action, status in rows}

    def _select(self, query, values):
        marks = ', '.join('?' * len(values))
        return self._database.execute(f'{query} ({marks})', values).fetchall()


def until(true, seconds, what):
    """Wait until a function returns something true; return that.

    :raises TooLongError: it has not done so within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = true()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TooLongError(f'{what}: not within {seconds:.0f} s')
        time.sleep(INTERVAL)
