# SPDX-License-Identifier: Apache-2.0
"""A strict store of runs, in memory, for what leads and shows them.

See `run_store.RunStore`; what only heat-engine's services ask, it lacks.
On request it loses any compare-and-swap, cuts off any transaction, keeps the
answer of a commit to itself, and shows commits late, as a cluster may.
"""

import contextlib
import copy
import dataclasses
import threading

from heat_plugins import errors
from heat_plugins.runs import overview
from heat_plugins.runs import run_store
from heat_plugins.runs import telling


@dataclasses.dataclass
class Kept:
    """A run, and what else its rows say."""

    stored: run_store.StoredRun
    last_step: str | None = None
    keys: dict[int, str] = dataclasses.field(default_factory=dict)


class FakeRunStore:
    """The runs of all projects.

    :ivar now: the time.
    :ivar aborts: how many of the next writing transactions are cut off.
    :ivar silent: how many of the next commits have no answer.
    :ivar losing: before how many of the next steps another one is stored.
    :ivar is_late: whether reading shows nothing that is committed from now on.
    :ivar given: the deliveries whose rows are there, by deployment.
    :ivar settled: how attempts ended that their rows say, by deployment.
    """

    def __init__(self):
        self.now = 1_800_000_000.0
        self.aborts = self.silent = self.losing = 0
        self.given, self.settled = {}, {}
        self._lock = threading.RLock()
        self._runs, self._shown = {}, None

    @property
    def is_late(self):
        return self._shown is not None

    @is_late.setter
    def is_late(self, value):
        self._shown = copy.deepcopy(self._runs) if value else None

    # What `run_store.RunStore` says

    def create(self, project_id, run, engine_id, *, tick=None):
        assert tick is None
        with self._transaction():
            if found := self._runs.get(run.id):
                kept = found.stored
                if kept.project_id == project_id and run_store.is_same_order(
                    kept.run.order, run.order
                ):
                    return kept
                raise errors.Exists(run.id)
            kept = run_store.StoredRun(
                project_id=project_id,
                run=run,
                version=0,
                engine_id=engine_id,
                revisions=(0,) * len(run.attempts),
            )
            self._runs[run.id] = Kept(kept)
            return kept

    def load(self, run_id, project_id=None):
        found = self._visible().get(run_id)
        if found is None or project_id not in (None, found.stored.project_id):
            raise errors.NotFound(run_id)
        return found.stored

    def heads(self, project_id, wanted):
        kept = [
            each.stored
            for each in self._visible().values()
            if each.stored.project_id == project_id
            and _is_wanted(each.stored, wanted)
        ]
        kept.sort(key=_order, reverse=True)
        if wanted.after is not None:
            last = _order(self.load(wanted.after, project_id))
            kept = [each for each in kept if _order(each) < last]
        most = min(wanted.limit, run_store.PAGE)
        return [overview.head(each.run) for each in kept[:most]]

    def on_server(self, project_id, server_id):
        found = []
        for kept in self._visible().values():
            run = kept.stored.run
            if kept.stored.project_id != project_id:
                continue
            for number, member in enumerate(run.order.members):
                one = run.attempts[number]
                is_busy = one.is_live or one.is_unanswered
                if is_busy and member.server_id == server_id:
                    order = dataclasses.replace(run.order, members=[member])
                    its = {'order': order, 'attempts': (one,)}
                    found.append(dataclasses.replace(run, **its))
        return found

    def led_by(self, engine_id):
        return {
            each.stored.run.id: each.stored.version
            for each in self._live(self._visible())
            if each.stored.engine_id == engine_id
        }

    def leaders(self):
        return {each.stored.engine_id for each in self._live(self._visible())}

    def take_over(self, dead, engine_id, most):
        with self._transaction():
            theirs = [
                each for each in self._live() if each.stored.engine_id == dead
            ]
            for each in theirs[:most]:
                each.stored = dataclasses.replace(
                    each.stored,
                    engine_id=engine_id,
                    version=each.stored.version + 1,
                )
            return [each.stored.run.id for each in theirs[:most]]

    def with_notices(self, engine_id, now, most):
        due = {}
        for run_id, each in self._visible().items():
            at, kept = telling.due_at(each.stored.run), each.stored
            lead = 0 if kept.engine_id == engine_id else run_store.NOTICE_LEAD
            if at is not None and at <= now - lead:
                due[run_id] = at, kept.project_id
        ordered = sorted(due.items(), key=lambda item: item[1])
        return {run_id: each[1] for run_id, each in ordered[:most]}

    def step(
        self, before, after, step_id, *, given=None, taken=(), engine_id=None
    ):
        given = given or {}
        if self.losing:
            self.losing -= 1
            with self._transaction():
                other = self._there(after.id)
                other.last_step = 'of another process'
                other.stored = dataclasses.replace(
                    other.stored, version=other.stored.version + 1
                )
        with self._transaction():
            kept = self._there(after.id)
            if kept.stored.version != before.version:
                if kept.last_step == step_id:
                    return kept.stored
                raise run_store.Stale(after.id)
            leader = engine_id or before.engine_id
            before = dataclasses.replace(before, engine_id=leader)
            stepped = self._change_targets(kept, before, after, given)
            for delivery in given.values():
                self.given[delivery.deployment_id] = delivery
                self.settled.pop(delivery.deployment_id, None)
            for row_id in taken:
                self.given.pop(row_id, None)
                self.settled.pop(row_id, None)
            kept.last_step = step_id
            return stepped

    def _change_targets(self, kept, before, after, given):
        """Write the targets that a step changes; return the run then."""
        now = kept.stored
        attempts, revisions = list(now.run.attempts), list(before.revisions)
        for number, attempt in enumerate(after.attempts):
            if number not in given and attempt == before.run.attempts[number]:
                continue
            if now.revisions[number] != revisions[number]:
                raise run_store.Stale(after.id)
            attempts[number] = attempt
            revisions[number] += 1
            if number in given and after.order.config is None:
                kept.keys[number] = run_store.live_key(
                    before.project_id,
                    after.order.members[number].deployment_id,
                    after.order.action,
                )
            if not attempt.is_live:
                kept.keys.pop(number, None)
        if taken := self._taken(kept, given):
            raise run_store.KeysTaken(taken)
        stepped = dataclasses.replace(
            before,
            run=after,
            version=before.version + 1,
            revisions=tuple(revisions),
        )
        # What has been answered since stays.
        kept.stored = dataclasses.replace(
            stepped,
            run=dataclasses.replace(after, attempts=tuple(attempts)),
            revisions=tuple(map(max, revisions, now.revisions)),
        )
        return stepped

    def _taken(self, kept, given):
        holders = {
            key: each.stored.run.id
            for each in self._runs.values()
            if each is not kept
            for key in each.keys.values()
        }
        return {
            number: holders[kept.keys[number]]
            for number in given
            if kept.keys.get(number) in holders
        }

    def answer(self, outcomes):
        with self._transaction():
            return {
                key: self._runs[key.run_id].stored.run.attempts[key.number]
                for key, outcome in outcomes.items()
                if self._answer(key, outcome)
            }

    def _answer(self, key, outcome):
        kept = self._runs.get(key.run_id)
        if kept is None or key.number >= len(kept.stored.revisions):
            return False
        before = kept.stored.run.attempts[key.number]
        if before.number != key.attempt:
            return False
        after = run_store.answered(before, outcome, 64 * 1024)
        if after is None or after is before:
            return after is before
        revisions = [*kept.stored.revisions]
        revisions[key.number] += 1
        kept.stored = dataclasses.replace(
            kept.stored,
            run=kept.stored.run.attempted({key.number: vars(after)}),
            revisions=tuple(revisions),
        )
        if not after.is_live:
            kept.keys.pop(key.number, None)
            if before.is_live and after.row_id in self.given:
                self.settled[after.row_id] = after
        return True

    def delete(self, project_id, run_id):
        with self._transaction():
            found = self._runs.get(run_id)
            if found is None or found.stored.project_id != project_id:
                raise errors.NotFound(run_id)
            if not found.stored.run.ended:
                raise errors.Refused(
                    f'{run_id} has not ended; cancel it first'
                )
            del self._runs[run_id]

    # What tests say

    @contextlib.contextmanager
    def _transaction(self):
        """Change all or nothing; fail as it is told."""
        with self._lock:
            before = self._runs, self.given, self.settled
            self._runs = {
                run_id: dataclasses.replace(each, keys=dict(each.keys))
                for run_id, each in self._runs.items()
            }
            self.given, self.settled = dict(self.given), dict(self.settled)
            try:
                yield
                if self.aborts:
                    self.aborts -= 1
                    raise errors.Unavailable('cut off before its commit')
            except BaseException:
                self._runs, self.given, self.settled = before
                raise
            if self.silent:
                self.silent -= 1
                raise errors.Unavailable('its commit has no answer')

    def _visible(self):
        return self._runs if self._shown is None else self._shown

    def _live(self, kept=None):
        return [
            each
            for each in (self._runs if kept is None else kept).values()
            if not each.stored.run.ended
        ]

    def _there(self, run_id):
        if run_id not in self._runs:
            raise errors.NotFound(run_id)
        return self._runs[run_id]


def _order(kept):
    return kept.run.order.created_at, kept.run.id


def _is_wanted(kept, wanted):
    order, control = kept.run.order, kept.run.control
    stacks, servers = set(), set()
    for member in order.members:
        stacks |= {member.stack_id, member.stack_name}
        servers |= {member.server_id, member.server_name}
    return all(
        (
            wanted.run in (None, order.id),
            wanted.stack is None or wanted.stack in stacks,
            wanted.server is None or wanted.server in servers,
            wanted.action in (None, order.action),
            not wanted.state or control.phase.value in wanted.state,
            wanted.who in (None, run_store.user_of(order)),
            wanted.schedule is None,
            wanted.since is None or order.created_at >= wanted.since,
            wanted.until is None or order.created_at <= wanted.until,
            wanted.newer_than is None or kept.version > wanted.newer_than,
        )
    )
