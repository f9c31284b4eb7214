# SPDX-License-Identifier: Apache-2.0
"""Many deployments, and a fault every few seconds; then what is left.

Not a test, since it takes a quarter of an hour: ``make soak``. It ends with 0
if each stack has come to an end, each failure has a reason, and nothing is
left in Heat, Swift, Mistral and Keystone.
"""

import argparse
from collections.abc import Callable
from concurrent import futures
import contextlib
import random
import sys
import tempfile
import threading
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


class Soak:
    """Stacks that wait, a server that answers, and what goes wrong."""

    def __init__(
        self, cloud: base.minicloud_client.Cloud, stacks: int
    ) -> None:
        self._cloud = cloud
        self._count = stacks
        self._ended = threading.Event()

    def run(self, seconds: float) -> list[str]:
        """Return what is not as it should be."""
        before = base.Leftovers.of(self._cloud)
        session = self._cloud.session()
        stacks = [
            base.Stack(session, waits.template(), timeout_mins=30)
            for _ in range(self._count)
        ]
        with futures.ThreadPoolExecutor(self._count + 1) as pool:
            breaking = pool.submit(self._break, seconds)
            answering = [pool.submit(self._answer, one) for one in stacks]
            breaking.result()
            wrong = [found for one in answering if (found := one.result())]
        for stack in stacks:
            stack.purge()
        after = base.Leftovers.of(self._cloud)
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

    def _answer(self, stack: base.Stack) -> str | None:
        """Answer for all servers of a stack; what is wrong with its end."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            # Whoever asks while something is away asks again.
            with contextlib.suppress(OSError, AssertionError, KeyError):
                waits.answer(stack, 60)
                found = stack.show()
                break
        else:
            return f'{stack.name} has not come to an end'
        status = found['stack_status']
        reason = found['stack_status_reason']
        print(f'{stack.name}: {status}: {reason}', flush=True)
        if status == 'CREATE_FAILED' and not reason:
            return f'{stack.name} has failed without a reason'
        if status == 'CREATE_COMPLETE':
            expected = dict(zip(waits.NAMES, waits.NAMES, strict=True))
            if waits.answers(stack) != expected:
                return f'{stack.name} took an answer for another'
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--stacks', type=int, default=50)
    parser.add_argument('--seconds', type=float, default=600)
    parser.add_argument('--seed', type=int, default=time.time_ns())
    options = parser.parse_args()
    print(f'--seed {options.seed}', flush=True)
    random.seed(options.seed)
    cloud = base.minicloud_client.Cloud('soak')
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
