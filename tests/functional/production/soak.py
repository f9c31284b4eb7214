# SPDX-License-Identifier: Apache-2.0
"""Many deployments, and a fault every few seconds; then what is left.

Not a test, since it takes a quarter of an hour: ``make soak``. It ends with 0
if each stack has come to an end, each failure has a reason, each signal was
either taken or sent for what was repeated since, and nothing is left in Heat's
tables, Swift, Mistral and Keystone.
"""

import argparse
import collections
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
import contextlib
import dataclasses
import json
import random
import re
import sys
import tempfile
import time
from typing import Any

import pymysql

from tests.functional import base
from tests.functional.production import waits

CONF = """\
[DEFAULT]
periodic_interval = 15

[heat_plugins]
rescue_interval = 15
swift_error_budget = 120
"""

#: Seconds after the faults in which the last stack has to come to its end.
PATIENCE = 900


def faults(
    cloud: base.minicloud_client.Cloud,
) -> dict[str, Callable[[], None]]:
    """Return what may go wrong, by its name; each mends itself."""

    def again(service: str, end: Callable[[str], None]) -> None:
        end(service)
        time.sleep(random.uniform(0, 5))
        cloud.start(service)

    def swift(**rule: object) -> None:
        until = time.time() + random.uniform(3, 15)
        cloud.set_faults(
            [{'user_agent': 'keystoneauth', **rule, 'until': until}]
        )

    return {
        'engine 1 killed': lambda: again('heat-engine-1', cloud.kill),
        'engine 2 killed': lambda: again('heat-engine-2', cloud.kill),
        'engine 1 restarted': lambda: again('heat-engine-1', cloud.stop),
        'broker restarted': lambda: again('rabbitmq', cloud.stop),
        'database away': lambda: again('mariadb', cloud.stop),
        'Swift answers 503': lambda: swift(status=503),
        'Swift answers 401': lambda: swift(status=401, probability=0.5),
        'Swift is slow': lambda: swift(delay=5),
        'listings lag behind': lambda: swift(hide_from_listing='^signals/'),
    }


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

#: Errors of Python, which say nothing to people.
PYTHONS = re.compile(
    r'\b(Attribute|Key|Index|Type|Value|Recursion|Unicode\w*|Assertion)Error\b'
)


@dataclasses.dataclass(frozen=True)
class Left:
    """What there is, by where it is."""

    project: base.Leftovers
    rows: dict[str, int]
    mistral: dict[str, int]
    trusts: int

    @classmethod
    def of(cls, cloud: base.minicloud_client.Cloud) -> 'Left':
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
class Waiting:
    """A deployment that waits for its server.

    :ivar resource: the name of its resource.
    """

    stack: str
    resource: str
    config_id: str
    url: str


class Tables:
    """Heat's tables.

    Servers ask twice a minute; whoever wants to know of hundreds of them at
    once, every second, must not ask Heat.
    """

    def __init__(self, cloud: base.minicloud_client.Cloud) -> None:
        self._socket = str(cloud.path / 'run/mariadb.sock')

    def counts(self) -> dict[str, int]:
        """Return how many rows each of `TABLES` has."""
        found = self._read(
            ' UNION ALL '.join(
                f"SELECT '{table}', COUNT(*) FROM {table} WHERE {which}"
                for table, which in TABLES.items()
            )
        )
        return {str(table): int(count) for table, count in found}

    def waiting(self) -> list[Waiting]:
        found = self._read(
            'SELECT s.name, r.name, c.id, c.config FROM software_deployment d'
            ' JOIN software_config c ON c.id = d.config_id'
            ' JOIN resource r ON r.nova_instance = d.id'
            ' JOIN stack s ON s.id = r.stack_id'
            " WHERE d.status = 'IN_PROGRESS'"
        )
        return [
            Waiting(
                stack=stack,
                resource=resource,
                config_id=config_id,
                url=next(
                    each['value']
                    for each in json.loads(config)['inputs']
                    if each['name'] == 'deploy_signal_id'
                ),
            )
            for stack, resource, config_id, config in found
        ]

    def in_progress(self) -> int:
        """Return how many stacks have not come to an end."""
        ((count,),) = self._read(
            "SELECT COUNT(*) FROM stack WHERE status = 'IN_PROGRESS'"
        )
        return int(count)

    def _read(self, query: str) -> Sequence[tuple[Any, ...]]:
        connection = pymysql.connect(
            unix_socket=self._socket, user='root', database='heat'
        )
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetchall()


class Soak:
    """Stacks that wait, servers that answer, and what goes wrong."""

    def __init__(
        self, cloud: base.minicloud_client.Cloud, stacks: int
    ) -> None:
        self._cloud = cloud
        self._tables = Tables(cloud)
        self._count = stacks
        self._signals: collections.Counter[str] = collections.Counter()
        # Texts by the id of the config, by stack.
        self._sent: dict[str, dict[str, str]] = collections.defaultdict(dict)

    def run(self, seconds: float) -> list[str]:
        """Return what is not as it should be."""
        before = Left.of(self._cloud)
        session = self._cloud.session()
        stacks = [
            base.Stack(session, waits.template(), timeout_mins=60)
            for _ in range(self._count)
        ]
        with futures.ThreadPoolExecutor(1) as pool:
            breaking = pool.submit(self._break, seconds)
            self._answer(seconds)
            breaking.result()
        wrong = [found for stack in stacks for found in self._judge(stack)]
        print(f'signals: {dict(self._signals)}', flush=True)
        for stack in stacks:
            stack.purge()
        # Heat gives a stack's trust back after it has told of the end.
        with contextlib.suppress(AssertionError):
            base.until(lambda: Left.of(self._cloud) == before)
        after = Left.of(self._cloud)
        if after != before:
            wrong.append(f'left behind: {after}; before: {before}')
        return wrong

    def _break(self, seconds: float) -> None:
        known = faults(self._cloud)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            name = random.choice(list(known))
            print(f'{time.strftime("%X")} {name}', flush=True)
            known[name]()
            time.sleep(random.uniform(1, 8))
        self._cloud.clear_faults()

    def _answer(self, seconds: float) -> None:
        """Answer in the place of all servers, until no stack waits.

        :param seconds: in which the answers come, each at a time of its own.
        """
        due: dict[str, float] = {}
        answered: set[str] = set()
        last = time.monotonic() + seconds
        while time.monotonic() < last + PATIENCE:
            time.sleep(1)
            try:
                waiting = self._tables.waiting()
                if not waiting and not self._tables.in_progress():
                    return
            except pymysql.MySQLError:
                # That is away, too.
                continue
            now = time.monotonic()
            for one in waiting:
                when = due.setdefault(
                    one.config_id, random.uniform(now, max(now, last))
                )
                if when <= now and one.config_id not in answered:
                    # A PUT may arrive, and the answer to it not.
                    text = f'{one.resource} {one.config_id}'
                    self._sent[one.stack][one.config_id] = text
                    with contextlib.suppress(OSError):
                        if base.put(one.url, waits.body(text)) == 201:
                            answered.add(one.config_id)

    def _judge(self, stack: base.Stack) -> list[str]:
        """Say what is wrong with the end of a stack."""
        found = stack.show()
        status = found['stack_status']
        reason = found['stack_status_reason']
        print(f'{stack.name}: {status}: {reason}', flush=True)
        wrong = []
        if status.endswith('IN_PROGRESS'):
            wrong.append(f'{stack.name} has not come to an end')
        if status != 'CREATE_COMPLETE' and not reason:
            wrong.append(f'{stack.name} has failed without a reason')
        if PYTHONS.search(reason):
            wrong.append(f'{stack.name} has failed of Python: {reason}')
        return [*wrong, *self._account(stack, status)]

    def _account(self, stack: base.Stack, status: str) -> Iterator[str]:
        """Say which signals are missing, and which count for others."""
        sent = self._sent[stack.name]
        left = dict(sent)
        for name in waits.NAMES:
            row = waits.current(stack, name)
            if row is None:
                if status == 'CREATE_COMPLETE':
                    yield f'{stack.name}: {name} is complete, and not there'
                continue
            greeting = left.pop(row.config['id'], None)
            if row.status == 'COMPLETE':
                self._signals['taken'] += 1
                if greeting is None or row.outputs.get('greeting') != greeting:
                    yield f'{stack.name}: {name} took what it was not sent'
            elif greeting is not None and status == 'CREATE_COMPLETE':
                yield f'{stack.name}: the signal of {name} is lost'
            elif greeting is not None:
                self._signals['of those that have failed'] += 1
        # What was sent for a config that nobody has any more.
        self._signals['of those that were repeated'] += len(left)
        self._signals['sent'] += len(sent)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--stacks', type=int, default=50)
    parser.add_argument('--seconds', type=float, default=600)
    parser.add_argument('--seed', type=int, default=time.time_ns())
    parser.add_argument('--name', default='soak', help='of the cloud')
    options = parser.parse_args()
    print(f'--seed {options.seed}', flush=True)
    random.seed(options.seed)
    cloud = base.minicloud_client.Cloud(options.name)
    cloud.down(purge=True)
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as conf:
        conf.write(CONF)
        conf.flush()
        cloud.up(profile='production', plugin=base.ROOT, conf=[conf.name])
    wrong = Soak(cloud, options.stacks).run(options.seconds)
    for one in wrong:
        print(one, file=sys.stderr)
    cloud.down(purge=not wrong)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
