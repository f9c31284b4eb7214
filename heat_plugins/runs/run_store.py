# SPDX-License-Identifier: Apache-2.0
"""The store of runs: transactional, with versions.

A run is an order, its targets, and what has become of each. The real store is
`heat_plugins.engine.database.run_rows`, two tables in Heat's database; the
strict fake is in ``tests/unit/runs/fake_run_store.py``.

A run is led by one engine, which alone decides what comes next: it reads a
run, decides, and stores the decision by `RunStore.step` unless another engine
has changed the run since. What its servers are given is written in the same
transaction; only then are they told. A user's request is such a step, too, by
whichever engine gets it. An answer changes its target alone, and no version.
"""

from collections import abc
import dataclasses
import hashlib
from typing import Protocol

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.deployments import deliveries
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.signals import presigned

#: The most runs of a page of a list.
PAGE = 100

#: Seconds for which the engine that leads a run is the only one to tell its
#: webhook.
NOTICE_LEAD = 20


class Stale(errors.Error):
    """Another process has changed the run; read it and decide again."""


class KeysTaken(errors.Error):
    """The action runs already on targets that a step would start it on.

    :ivar runs: the ID of the run that is in progress, by number of the target.
    """

    def __init__(self, runs: abc.Mapping[int, str]) -> None:
        super().__init__(f'The action already runs on {len(runs)} targets')
        self.runs = runs


def live_key(project_id: str, deployment_id: str, action: str) -> str:
    """Return the unique key of an action that a server has, as hex.

    It is a digest, as databases compare texts in ways of their own.
    """
    text = '\0'.join((project_id, deployment_id, action))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run as it was read.

    :ivar version: one more with each step, and with each new leader.
    :ivar engine_id: of the engine that leads it.
    :ivar revisions: of its targets: one more with each change.
    :ivar unreadable: why the order cannot be read, such as after a change of
        auth_encryption_key; empty if it can. Its inputs, script and limits
        are missing then, so it can only end.
    """

    project_id: str
    run: run_records.RunRecord
    version: int
    engine_id: str
    revisions: tuple[int, ...] = ()
    unreadable: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tick:
    """A time of a schedule, whose run is stored with the schedule's record.

    :ivar schedule: its ID; with `due_at` there is one run for both.
    :ivar resource: the number of its resource, which keeps the record.
    :ivar before: the record as it was read.
    :ivar after: the record that says that the run is there.
    """

    schedule: str
    due_at: int
    resource: int
    before: str = dataclasses.field(repr=False)
    after: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TargetKey:
    """An attempt on a target of a run."""

    run_id: str
    number: int
    attempt: int


def key_of(run: run_records.RunRecord, number: int) -> TargetKey:
    """Return the key of the last attempt on a target."""
    return TargetKey(
        run_id=run.id, number=number, attempt=run.attempts[number].number
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Awaiting:
    """A target whose server has a signed URL for its answer.

    :ivar run: the run with this target alone.
    :ivar number: of the target in its run.
    """

    project_id: str
    run: run_records.RunRecord
    number: int

    @property
    def key(self) -> TargetKey:
        """The attempt that the URL is for."""
        return TargetKey(
            run_id=self.run.id,
            number=self.number,
            attempt=self.run.attempts[0].number,
        )


def signature_of(delivery: deliveries.Delivery) -> str | None:
    """Return the signature of a server's URL, as it is kept, if it has any."""
    signature = presigned.signature(delivery.signalling.url)
    return None if signature is None else signature_kept(signature)


def signature_kept(signature: str) -> str:
    """Return the digest of a signature, which no reader can answer with."""
    return hashlib.sha256(signature.encode()).hexdigest()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Surplus:
    """A run to remove, with its objects.

    :ivar stack_ids: the root stacks in whose containers they lie.
    """

    project_id: str
    run_id: str
    stack_ids: abc.Sequence[str]


def by(who: str, what: str) -> str:
    """Return the user of a run, with the program that started it for them."""
    return f'{who}, by {bounds.shortened(what, bounds.PART)}' if what else who


def user_of(order: run_records.RunOrder) -> str:
    """Return the user of a run; see `by`."""
    return order.created_by.partition(', by ')[0]


def is_same_order(
    first: run_records.RunOrder, second: run_records.RunOrder
) -> bool:
    """Say whether two orders ask for the same.

    An engine that gets an order again selects its targets again.
    """
    return first == dataclasses.replace(
        second, members=first.members, created_at=first.created_at
    )


def answered(
    attempt: run_records.Attempt, outcome: run_records.Attempt, limit: int
) -> run_records.Attempt | None:
    """Return an attempt with the answer of its server.

    An attempt that has ended takes a late result alone, once.

    :param limit: the bytes of outputs to keep.
    :returns: the same one if it says so already; None if it had ended.
    """
    outputs, cut = run_records.limited(outcome.outputs, outcome.cut, limit)
    late = outcome.late
    if late:
        kept, _cut = run_records.limited(late.outputs, {}, limit)
        late = dataclasses.replace(late, outputs=kept)
    after = dataclasses.replace(
        attempt,
        state=outcome.state,
        reason=outcome.reason,
        reported_at=outcome.reported_at or attempt.reported_at,
        ended_at=outcome.ended_at,
        outputs=outputs,
        cut=cut,
        late=late,
    )
    is_known = after == attempt
    if is_known or (attempt.state is after.state is run_records.State.RUNNING):
        return attempt
    if attempt.is_live:
        return after
    if attempt.state and late and not attempt.late:
        # It may say how the server was stopped.
        return dataclasses.replace(attempt, late=late, reason=outcome.reason)
    return None


class RunStore(Protocol):
    """Runs of all projects. It is safe for threads.

    Each method is one transaction, and may raise `errors.Unavailable`: the
    database has not answered, and may have stored the change all the same.
    A caller that repeats the call with the same `StoredRun` and the same step
    ID gets what was stored.
    """

    def create(
        self,
        project_id: str,
        run: run_records.RunRecord,
        engine_id: str,
        *,
        tick: Tick | None = None,
    ) -> StoredRun:
        """Store an order with its targets, and the record of its schedule.

        A run of that ID, project and order which is there already is returned
        as it stands now; with a tick, if the same call has stored it.

        :param tick: the time of a schedule that starts it.
        :raises Stale: another process has changed the record of the schedule.
        :raises errors.Exists: another order has that ID; with a tick: that
            time of the schedule has a run.
        :raises errors.Refused: the project keeps as many as it may; with a
            tick: another run has that ID.
        """

    def load(self, run_id: str, project_id: str | None = None) -> StoredRun:
        """Read a run with its targets.

        :param project_id: whose it must be; None for engines.
        :raises errors.NotFound: there is none.
        """

    def heads(
        self, project_id: str, wanted: ordering.Query
    ) -> list[run_records.Head]:
        """Return the runs of a list, the newest first."""

    def latest(
        self, project_id: str, deployment_ids: abc.Collection[str], most: int
    ) -> abc.Mapping[str, list[run_records.RunRecord]]:
        """Return the last runs of deployments, by ID, the newest first.

        Each has this one target alone, and an order without what it encrypts.

        :param most: the most of each deployment.
        """

    def on_server(
        self, project_id: str, server_id: str
    ) -> list[run_records.RunRecord]:
        """Return runs that a server may be busy with, as `latest` does."""

    def held_in(self, stack_id: str) -> abc.Mapping[str, abc.Set[str]]:
        """Return the deployments of a root stack that have something, by run.

        Their servers were given it, and it was not deleted yet.
        """

    def heads_of(
        self, projects: abc.Mapping[str, str]
    ) -> abc.Mapping[str, run_records.Head]:
        """Return the rows of the runs that exist, by ID.

        :param projects: whose each must be, by ID.

        How many of their targets are in which state may be out of date.
        """

    def led_by(self, engine_id: str) -> abc.Mapping[str, int]:
        """Return the versions of the runs in progress that an engine leads."""

    def leaders(self) -> abc.Set[str]:
        """Return the engines that lead runs in progress."""

    def take_over(self, dead: str, engine_id: str, most: int) -> list[str]:
        """Lead runs of a dead engine; return their IDs."""

    def with_notices(
        self, engine_id: str, now: float, most: int
    ) -> abc.Mapping[str, str]:
        """Return the runs that have a notice to send.

        :param engine_id: of the engine that asks; see `NOTICE_LEAD`.
        :returns: their projects, by ID.
        """

    def step(
        self,
        before: StoredRun,
        after: run_records.RunRecord,
        step_id: str,
        *,
        given: abc.Mapping[int, deliveries.Delivery] | None = None,
        taken: abc.Collection[str] = (),
        engine_id: str | None = None,
    ) -> StoredRun:
        """Store a decision, unless the run has changed since.

        A target that has got an answer since is a change, too, if the step
        changes it.

        :param given: what servers are given, by number of the target; their
            rows are written, and their live keys taken.
        :param taken: the deployments of runs that have ended, which are
            deleted with their configs. Their keys are freed, as those of all
            targets that `after` says to have ended. A script of the user's
            own takes no key.
        :param engine_id: who leads it then; None: as before.
        :raises Stale: it has changed.
        :raises KeysTaken: a key is not free; nothing is stored.
        :raises errors.NotFound: the run was deleted.
        """

    def answer(
        self, outcomes: abc.Mapping[TargetKey, run_records.Attempt]
    ) -> abc.Mapping[TargetKey, run_records.Attempt]:
        """Store the states of attempts, as their servers report them.

        The row in Heat that an attempt names is settled with it, and its live
        key is freed. An attempt that has ended takes a late result alone.

        :returns: as they are stored, those that counted, or are stored as
            given already.
        """

    def awaiting(self, signature: str) -> Awaiting | None:
        """Return the target of a URL with a signature; None if there is none.

        The last attempt on it has the URL, and may have ended.
        """

    def delete(self, project_id: str, run_id: str) -> None:
        """Forget a run that has ended.

        No user sees it again. Its targets stay until `remove`, as they say
        where its objects lie.

        :raises errors.Refused: it has not.
        :raises errors.NotFound: there is none.
        """

    def surplus(self) -> list[Surplus]:
        """Return runs to remove: deleted, too old, too many, or too long.

        There are more if these are `PAGE` or more.
        """

    def remove(self, surplus: Surplus) -> None:
        """Delete the rows of a run that has ended; there may be none."""
