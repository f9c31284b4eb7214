# SPDX-License-Identifier: Apache-2.0
"""What there is of stacks, as Heat's tables and the other services have it.

Servers ask twice a minute; whoever wants to know of hundreds of them at once,
every second, must not ask Heat.
"""

import contextlib
import dataclasses
import json

import pymysql

from tests.functional import base

#: Rows of Heat's that have to go with their stacks. It keeps those of stacks
#: that are deleted, to be purged, and so their templates.
TABLES = {
    'stack': 'deleted_at IS NULL',
    'stack_lock': 'TRUE',
    'sync_point': 'TRUE',
    'resource': 'TRUE',
    'resource_data': 'TRUE',
    'software_config': 'TRUE',
    'software_deployment': 'TRUE',
}

# The inputs of a derived config.
_NAME, _URL = 'deploy_resource_name', 'deploy_signal_id'


@dataclasses.dataclass(frozen=True)
class Left:
    """What there is, by where it is."""

    project: base.Leftovers
    rows: dict[str, int]
    mistral: dict[str, int]
    trusts: int

    @classmethod
    def of(cls, cloud):
        session = cloud.session()
        trusts = session.get(
            'identity', f'/OS-TRUST/trusts?trustor_user_id={session.user_id}'
        )
        return cls(
            project=base.Leftovers.of(cloud),
            rows=Tables(cloud).counts(),
            mistral={
                kind: len(session.get('workflowv2', f'/{kind}').json()[kind])
                for kind in ('executions', 'cron_triggers', 'event_triggers')
            },
            trusts=len(trusts.json()['trusts']),
        )


@dataclasses.dataclass(frozen=True)
class Row:
    """A deployment in Heat's tables.

    :ivar resource_status: of its resource, or group; such as CREATE_FAILED.
    :ivar name: of its resource, or of what it is in a group.
    :ivar text: what it was answered.
    """

    stack: str
    resource_status: str
    status: str
    config_id: str
    name: str
    url: str
    text: str | None


class Tables:
    """Heat's tables, in the database of a cloud."""

    def __init__(self, cloud):
        self._socket = str(cloud.path / 'run/mariadb.sock')

    def counts(self):
        """Return how many rows each of `TABLES` has."""
        found = self._read(
            ' UNION ALL '.join(
                f"SELECT '{table}', COUNT(*) FROM {table} WHERE {which}"
                for table, which in TABLES.items()
            )
        )
        return {str(table): int(count) for table, count in found}

    def look(self):
        """Return the stacks' statuses and reasons, and all deployments."""
        # First, so that those of a stack that has ended are its last.
        stacks = self._read(
            "SELECT name, CONCAT(action, '_', status), status_reason"
            ' FROM stack WHERE deleted_at IS NULL'
        )
        rows = self._read(
            "SELECT s.name, CONCAT(r.action, '_', r.status),"
            ' d.status, c.id, c.config, d.output_values'
            ' FROM software_deployment d'
            ' JOIN software_config c ON c.id = d.config_id'
            ' JOIN resource r ON r.nova_instance = d.id'
            " OR r.nova_instance LIKE '%-000000000000'"
            " AND d.id LIKE CONCAT(LEFT(r.nova_instance, 24), '%')"
            ' JOIN stack s ON s.id = r.stack_id'
        )
        return (
            {name: (status, reason or '') for name, status, reason in stacks},
            [
                Row(
                    *others,
                    name=base.value(json.loads(config), _NAME),
                    url=base.value(json.loads(config), _URL),
                    text=(json.loads(outputs or 'null') or {}).get('greeting'),
                )
                for *others, config, outputs in rows
            ],
        )

    def _read(self, query):
        connection = pymysql.connect(
            unix_socket=self._socket, user='root', database='heat'
        )
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()
