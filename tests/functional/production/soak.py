# SPDX-License-Identifier: Apache-2.0
"""Deployments and groups, and a fault every few seconds; then what is left.

Not a test, since it takes a quarter of an hour: ``make soak``. As long as
there are faults a stack that is complete is updated, so that all deployments
wait again, and one that has failed is updated to the same, as a user would.
It ends with 0 if in the end every stack is complete, each failure on the way
had a reason, each deployment took the signal that it was sent and no other,
what had failed was on no server any more, and nothing is left in Heat's
tables, Swift, Mistral and Keystone.
"""

import argparse
import collections
from concurrent import futures
import contextlib
import random
import re
import sys
import tempfile
import threading
import time

import pymysql

from tests.functional import base
from tests.functional.production import tables
from tests.functional.production import waits

CONF = """\
[DEFAULT]
periodic_interval = 15

[heat_plugins]
rescue_interval = 15
swift_error_budget = 120
"""

#: The members of each stack's group, which is one resource.
MEMBERS = [f'member{number}' for number in range(waits.COUNT)]

#: Seconds after the faults in which the last stack has to be complete.
PATIENCE = 600

#: Seconds within which a server answers, while there are faults and after.
ANSWERS = 200
LAST_ANSWERS = 30

#: Seconds after which a stack that was not seen to begin an update is asked
#: again: an engine may have died of it.
ASKED = 20

#: Seconds after which a stack in progress, in which no server is waited for
#: and nothing changes, is taken for stalled. Heat knows of what it has begun
#: to update in one engine's memory, and tells others what is next by messages
#: that a broker does not keep; only what deployments hold is taken up again.
STALLED = 180

#: Seconds in which is noticed that an engine has died, with `CONF`, and what
#: it did is taken up or back; once more, if the stack fails meanwhile.
RESCUED = 150


def template():
    """Return some deployments, and a group."""
    found = waits.template()
    group = base.group(waits.COUNT, signal_transport='TEMP_URL_POLL')
    found['resources']['group'] = group['resources']['group']
    found['resources']['end']['depends_on'].append('group')
    return found


def faults(cloud):
    """Return what may go wrong, by its name; each mends itself."""

    def again(service, end):
        end(service)
        time.sleep(random.uniform(0, 5))
        cloud.start(service)

    def swift(**rule):
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
        # To tokens; what is signed has none.
        'Swift answers 401': lambda: swift(
            status=401, probability=0.5, query='^(?!.*temp_url_sig)'
        ),
        'Swift is slow': lambda: swift(delay=5),
        'listings lag behind': lambda: swift(hide_from_listing='^signals/'),
    }


#: Errors of Python, which say nothing to people.
PYTHONS = re.compile(
    r'\b(Attribute|Key|Index|Type|Value|Recursion|Unicode\w*|Assertion)Error\b'
)


class Servers:
    """Answers in the place of all servers, each time after a while."""

    def __init__(self):
        #: What was sent, by the id of the config.
        self.sent: dict[str, str] = {}
        self._due: dict[str, float] = {}
        self._answered: set[str] = set()

    def answer(self, rows, within):
        now = time.monotonic()
        for one in rows:
            if one.status != 'IN_PROGRESS' or one.config_id in self._answered:
                continue
            due = self._due.get(one.config_id)
            if due is None:
                due = now + random.uniform(0, within)
            self._due[one.config_id] = due = min(due, now + within)
            if due > now:
                continue
            # A PUT may arrive, and the answer to it not.
            text = f'{one.name} {one.config_id}'
            self.sent[one.config_id] = text
            with contextlib.suppress(OSError):
                if base.put(one.url, waits.body(text)) == 201:
                    self._answered.add(one.config_id)


class Soak:
    """Stacks that wait, servers that answer, and what goes wrong."""

    def __init__(self, cloud, stacks):
        self._cloud = cloud
        self._tables = tables.Tables(cloud)
        self._servers = Servers()
        self._count = stacks
        self._wrong: dict[str, None] = {}
        self._ends: collections.Counter[str] = collections.Counter()
        self._taken: set[str] = set()
        # What each stack was last asked for, and when.
        self._who: dict[str, str] = {}
        self._asked: dict[str, float] = {}
        # When each was first seen to have ended as it has, with that.
        self._ended: dict[str, tuple[str, float]] = {}
        # What each stack in progress was last seen to do, and since when.
        self._doing: dict[str, tuple[object, float]] = {}
        self._over = threading.Event()

    def run(self, seconds):
        """Return what is not as it should be."""
        before = tables.Left.of(self._cloud)
        session = self._cloud.session()
        stacks = [
            base.Stack(session, template(), timeout_mins=60)
            for _ in range(self._count)
        ]
        with futures.ThreadPoolExecutor() as pool:
            breaking = pool.submit(self._break, seconds)
            try:
                self._go_on({one.name: one for one in stacks}, seconds, pool)
            finally:
                self._over.set()
            breaking.result()
        print(f'ends: {dict(self._ends)}', flush=True)
        print(
            f'signals: {len(self._servers.sent)} sent, {len(self._taken)} '
            'taken; the others of what was repeated since',
            flush=True,
        )
        for stack in stacks:
            stack.purge()
        # Heat gives a stack's trust back after it has told of the end.
        with contextlib.suppress(AssertionError):
            base.until(lambda: tables.Left.of(self._cloud) == before)
        after = tables.Left.of(self._cloud)
        if after != before:
            self._wrong[f'left behind: {after}; before: {before}'] = None
        return list(self._wrong)

    def _break(self, seconds):
        known = faults(self._cloud)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            name = random.choice(list(known))
            print(f'{time.strftime("%X")} {name}', flush=True)
            known[name]()
            if self._over.wait(random.uniform(1, 8)):
                break
        self._cloud.clear_faults()
        print(f'{time.strftime("%X")} no more faults', flush=True)

    def _go_on(self, stacks, seconds, pool):
        """Answer, and update what has ended, until all is complete."""
        last = time.monotonic() + seconds
        found: dict[str, tuple[str, str]] = {}
        done: set[str] = set()
        while time.monotonic() < last + PATIENCE:
            time.sleep(1)
            try:
                found, rows = self._tables.look()
            except pymysql.MySQLError:
                # That is away, too.
                continue
            over = time.monotonic() > last
            self._servers.answer(rows, LAST_ANSWERS if over else ANSWERS)
            by_stack = collections.defaultdict(list)
            for row in rows:
                by_stack[row.stack].append(row)
            for name, (status, reason) in found.items():
                if status.endswith('IN_PROGRESS'):
                    self._ended.pop(name, None)
                    if self._has_stalled(name, status, by_stack[name]):
                        self._ends['stalled in Heat'] += 1
                        self._update(stacks[name], status, pool)
                elif name not in done and self._has_ended(name, status):
                    self._judge(name, status, reason, by_stack[name])
                    if over and status.endswith('COMPLETE'):
                        done.add(name)
                    else:
                        self._update(stacks[name], status, pool)
            if done == stacks.keys():
                return
        for name, (status, reason) in found.items():
            if not status.endswith('COMPLETE'):
                self._wrong[f'{name} has not ended: {status}: {reason}'] = None

    def _has_ended(self, name, status):
        """Say whether what a stack was last asked for has ended.

        One that has failed is given the time in which engines that have died
        are noticed.
        """
        now = time.monotonic()
        before, since = self._ended.setdefault(name, (status, now))
        if before != status:
            self._ended[name] = status, now
            return False
        if status.endswith('FAILED') and now - since < RESCUED:
            return False
        return now - self._asked.get(name, 0) > ASKED

    def _has_stalled(self, name, status, rows):
        now = time.monotonic()
        doing = status, frozenset(rows)
        before, since = self._doing.get(name, (None, now))
        if before != doing:
            since = now
        self._doing[name] = doing, since
        # What has failed waits for its replacement, and that may be lost.
        waits_for_server = any(
            row.status == 'IN_PROGRESS'
            and not row.resource_status.endswith('FAILED')
            for row in rows
        )
        if waits_for_server or now - since < STALLED:
            return False
        del self._doing[name]
        return True

    def _update(self, stack, status, pool):
        """Have something new done, or what has failed once more."""
        if status.endswith('COMPLETE'):
            self._who[stack.name] = f'{random.getrandbits(32):x}'
        who = self._who.get(stack.name, 'world')
        self._asked[stack.name] = time.monotonic()
        self._ended.pop(stack.name, None)

        def update():
            # Heat may be away, and is asked again.
            with contextlib.suppress(AssertionError, OSError):
                stack.update(template(), timeout_mins=60, who=who)

        pool.submit(update)

    def _judge(self, name, status, reason, rows):
        """Note what is wrong with the end of a stack, and the others."""
        self._ends[status] += 1
        if status.endswith('FAILED'):
            print(f'{name}: {status}: {reason}', flush=True)
            if not reason:
                self._wrong[f'{name} has failed without a reason'] = None
        if PYTHONS.search(reason):
            self._wrong[f'{name} has failed of Python: {reason}'] = None
        names = sorted(row.name for row in rows)
        if status.endswith('COMPLETE') and names != [*waits.NAMES, *MEMBERS]:
            self._wrong[f'{name} is {status}, and has {names} alone'] = None
        for row in rows:
            what = f'{name}: {row.name}, {row.resource_status}, '
            sent = self._servers.sent.get(row.config_id)
            if row.status == 'COMPLETE':
                self._taken.add(row.config_id)
                if sent is None or row.text != sent:
                    self._wrong[f'{what} took {row.text}, not {sent}'] = None
            elif status.endswith('COMPLETE'):
                self._wrong[f'{what} is {row.status}'] = None
            elif row.status == 'IN_PROGRESS' and row.resource_status.endswith(
                'FAILED'
            ):
                self._wrong[f'{what} is on its server still'] = None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--stacks', type=int, default=50)
    parser.add_argument('--seconds', type=float, default=600)
    parser.add_argument('--seed', type=int, default=time.time_ns())
    parser.add_argument('--name', default='soak', help='of the cloud')
    options = parser.parse_args()
    print(f'--seed {options.seed}', flush=True)
    random.seed(options.seed)
    cloud = base.Cloud(options.name)
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
