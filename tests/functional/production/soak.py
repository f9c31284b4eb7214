# SPDX-License-Identifier: Apache-2.0
"""Many deployments, and a fault every few seconds; then what is left.

Not a test, since it takes a quarter of an hour: ``make soak``. It ends with 0
if each stack has come to an end, each failure has a reason, each signal was
either taken or sent for what was repeated since, and nothing is left in Heat's
tables, Swift, Mistral and Keystone.
"""

import argparse
import collections
from collections.abc import Callable, Iterator
from concurrent import futures
import contextlib
import dataclasses
import random
import re
import subprocess
import sys
import tempfile
import time

from tests.functional import base
from tests.functional.production import waits

CONF = """\
[DEFAULT]
periodic_interval = 15

[heat_plugins]
rescue_interval = 15
swift_error_budget = 120
"""

#: Seconds in which the last stack has to come to its end.
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
            rows=_rows(cloud),
            mistral={
                kind: len(session.get('workflowv2', f'/{kind}').json()[kind])
                for kind in ('executions', 'cron_triggers', 'event_triggers')
            },
            trusts=len(trusts.json()['trusts']),
        )


def _rows(cloud: base.minicloud_client.Cloud) -> dict[str, int]:
    """Count the rows in Heat's tables."""
    counts = ' UNION ALL '.join(
        f"SELECT '{table}', COUNT(*) FROM {table} WHERE {which}"
        for table, which in TABLES.items()
    )
    done = subprocess.run(
        [
            *('mariadb', '--no-defaults', '--user=root', '--batch'),
            *('--skip-column-names', '--database=heat'),
            *(f'--socket={cloud.path}/run/mariadb.sock', '-e', counts),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = (line.split('\t') for line in done.stdout.splitlines())
    return {table: int(count) for table, count in lines}


class Soak:
    """Stacks that wait, a server that answers, and what goes wrong."""

    def __init__(
        self, cloud: base.minicloud_client.Cloud, stacks: int
    ) -> None:
        self._cloud = cloud
        self._count = stacks
        self._signals: collections.Counter[str] = collections.Counter()

    def run(self, seconds: float) -> list[str]:
        """Return what is not as it should be."""
        before = Left.of(self._cloud)
        session = self._cloud.session()
        stacks = [
            base.Stack(session, waits.template(), timeout_mins=30)
            for _ in range(self._count)
        ]
        with futures.ThreadPoolExecutor(self._count + 1) as pool:
            breaking = pool.submit(self._break, seconds)
            answering = [pool.submit(self._answer, one) for one in stacks]
            breaking.result()
            wrong = [found for one in answering for found in one.result()]
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

    def _answer(self, stack: base.Stack) -> list[str]:
        """Answer for all servers of a stack; what is wrong with its end."""
        sent: dict[str, str] = {}
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            # Whoever asks while something is away asks again.
            with contextlib.suppress(OSError, AssertionError, KeyError):
                waits.answer(stack, 60, sent)
                found = stack.show()
                rows = {
                    name: waits.current(stack, name) for name in waits.NAMES
                }
                break
        else:
            return [f'{stack.name} has not come to an end']
        status = found['stack_status']
        reason = found['stack_status_reason']
        print(f'{stack.name}: {status}: {reason}', flush=True)
        wrong = []
        if status != 'CREATE_COMPLETE' and not reason:
            wrong.append(f'{stack.name} has failed without a reason')
        if PYTHONS.search(reason):
            wrong.append(f'{stack.name} has failed of Python: {reason}')
        return [*wrong, *self._account(stack, status, rows, sent)]

    def _account(
        self,
        stack: base.Stack,
        status: str,
        rows: dict[str, base.Deployment | None],
        sent: dict[str, str],
    ) -> Iterator[str]:
        """Say which signals are missing, and which count for others."""
        left = dict(sent)
        for name, row in rows.items():
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
