# SPDX-License-Identifier: Apache-2.0
"""Runs of a project: start, list, show, wait, cancel and more.

This is the public Python API. It uses Heat's API, with a Keystone session::

    from heat_plugins.clients import rest
    from heat_plugins.clients import runs

    client = runs.Runs(rest.Cloud(session))
    run = client.start('BACKUP', stacks=['shop'], limits={'canary': 1})
    run = client.wait(run.id)
    print(run.state, run.counts)
    for target in client.targets(run.id, outputs=True):
        print(target.server_name, target.state, target.outputs)

heat-engine leads the run, which continues without this program.
"""

from collections import abc
import dataclasses
import itertools
import time
from typing import Any, TypeVar
from urllib import parse
import uuid

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import retrying
from heat_plugins import stored
from heat_plugins import wording
from heat_plugins.clients import rest
from heat_plugins.runs import deciding
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records

#: Seconds for which `Runs.wait` bears that a run does not show yet, or that
#: Heat does not answer, and between two questions.
GRACE, PATIENCE, POLL = 10.0, 60.0, 2.0

# How often engines are asked before all of them seem to lack the door, and
# the first release that has it.
_ENGINES, _RELEASE = 8, '0.2'

# Seconds for an order, which may select thousands of targets.
_LONG = 600.0

# The most runs among which the beginning or the end of an ID is found.
_RECENT = 1000

# How Heat's answer begins if there is no such run.
_NO_RUN = 'The Run ('

_PATH, _KEY = '/software_deployments', 'software_deployment'

_Kind = TypeVar('_Kind')


class Unconfirmed(errors.Refused):
    """More targets than may start without `ordering.Start.expected`.

    :ivar selection: those; nothing was started.
    """

    def __init__(self, selection: 'Selection') -> None:
        super().__init__(
            f'Nothing was started: {selection.targets} targets need the '
            'number that was confirmed'
        )
        self.selection = selection


class NoDoor(errors.ServiceError):
    """The engines that answer have no heat-plugins that takes orders."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A run, without its targets. Times are texts in UTC.

    :ivar state: a value of `run_records.Phase`.
    :ivar targets: how many targets it has.
    :ivar counts: how many of them are in which state.
    :ivar version: changes with each step of its leader; None in a list.
    :ivar target_list: in a list that was asked for targets, these.
    """

    id: str
    action: str
    state: str
    reason: str = ''
    stacks: abc.Sequence[str] = ()
    stack_ids: abc.Sequence[str] = ()
    targets: int = 0
    counts: abc.Mapping[str, int] = dataclasses.field(default_factory=dict)
    percent: int = 0
    failed: int = 0
    created_at: str
    created_by: str = ''
    ended_at: str | None = None
    duration: int | None = None
    script: str = ''
    round: int | None = None
    estimated_end: str | None = None
    targets_from: str = ''
    limits: abc.Mapping[str, Any] = dataclasses.field(default_factory=dict)
    inputs: abc.Sequence[str] = ()
    requests: abc.Sequence[abc.Mapping[str, Any]] = ()
    notify: str = ''
    notices: abc.Sequence[abc.Mapping[str, Any]] = ()
    version: int | None = None
    target_list: abc.Sequence['Target'] = ()

    @property
    def ended(self) -> bool:
        return self.state in [
            each.value for each in run_records.Phase if each.ended
        ]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A target of a run, and its last attempt.

    :ivar stack_id: of its root stack.
    :ivar reported_at: when its server was first seen to have started.
    :ivar timeout: seconds that it may take.
    :ivar progress: percent, if its server has reported any, and it is shown
        with few others.
    :ivar message: what its server has reported with that.
    :ivar outputs: None if they were not asked for.
    :ivar cut: how long outputs are of which the end is shown.
    :ivar late_result: what its server has sent after the end.
    """

    number: int
    stack: str
    stack_id: str = ''
    resource: str
    server: str
    server_name: str | None = None
    state: str
    reason: str = ''
    attempt: int = 0
    started_at: str | None = None
    reported_at: str | None = None
    ended_at: str | None = None
    duration: int | None = None
    timeout: int | None = None
    progress: float | None = None
    message: str | None = None
    cancelled_by: str | None = None
    outputs: abc.Mapping[str, Any] | None = None
    cut: abc.Mapping[str, int] = dataclasses.field(default_factory=dict)
    late_result: abc.Mapping[str, Any] | None = None
    attempts: abc.Sequence[abc.Mapping[str, Any]] = ()

    @property
    def fault(self) -> wording.Fault:
        """The target's name and state, for people."""
        return wording.Fault(
            name=f'{self.stack} {self.server_name or self.resource}',
            also=tuple(filter(None, (self.server_name, self.resource))),
            reason=f'{self.state}: {self.reason}',
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Selection:
    """The result of a dry run.

    :ivar targets: how many targets there are.
    :ivar left_out: how many deployments are none.
    :ivar unmet: resources that were named and have no target.
    :ivar rows: targets, then what is left out: ``stack``, ``resource``,
        ``server``, ``is_target``, ``variant`` and ``reason``.
    :ivar more: how many rows did not fit in the answer.
    """

    targets: int
    left_out: int
    unmet: abc.Sequence[str]
    rows: abc.Sequence[abc.Mapping[str, Any]]
    more: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Offer:
    """The actions that a deployment of a stack offers.

    :ivar actions: by name, the hooks that run them.
    :ivar inputs: ``name``, ``type``, ``default`` and ``description`` of each.
    """

    resource: str
    server: str
    server_name: str | None = None
    actions: abc.Mapping[str, str | None]
    inputs: abc.Sequence[abc.Mapping[str, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Door:
    """The release and the time of the engine that has answered."""

    release: str
    revision: str
    time: str


class Runs:
    """The runs of a project.

    Each method may raise `errors.ServiceError`: `NoDoor`, `errors.Denied`,
    `errors.NotFound` if there is no such run, `errors.Unavailable`; or
    `errors.Refused` if the order makes no sense. A call that ends with
    `errors.Unavailable` may be repeated with the same ID: it does nothing
    twice.
    """

    def __init__(
        self,
        cloud: rest.Cloud,
        monotonic: abc.Callable[[], float] = time.monotonic,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._rest = rest.Rest(rest.HEAT, cloud)
        self._monotonic = monotonic
        self._sleep = sleep

    def door(self) -> Door:
        """Return the release and the time of an engine."""
        return _read(Door, self._get(ordering.Query(limit=1))[0])

    def start(
        self, action: str = '', *, run_id: str | None = None, **order: Any
    ) -> Run:
        """Start a run.

        :param run_id: its ID, a UUID; None for a new one.
        :param order: the other fields of `ordering.Start`.
        :raises Unconfirmed: see `ordering.Start.confirm_above`.
        """
        start = ordering.Start(
            run=run_id or str(uuid.uuid4()), action=action, **order
        )
        answer = self._post(start.run, ordering.START, start)
        if answer.get('status') == ordering.DRY_RUN:
            raise Unconfirmed(_read(Selection, answer))
        return _read(Run, answer)

    def select(self, action: str = '', **order: Any) -> Selection:
        """Return the targets of an order, and start nothing."""
        start = ordering.Start(
            run=str(uuid.uuid4()), action=action, dry_run=True, **order
        )
        return _read(Selection, self._post(start.run, ordering.START, start))

    def actions(
        self, stack: str, resource: str | None = None
    ) -> abc.Iterator[Offer]:
        """Yield the actions that the deployments of a stack offer.

        :param resource: one of them, or a resource that contains some.
        """
        query = ordering.Query(actions_of=stack, resource=resource)
        return self._pages(query, 'first', Offer)

    def list(self, **wanted: Any) -> abc.Iterator[Run]:
        """Yield runs, the newest first.

        :param wanted: fields of `ordering.Query`; ``limit`` is that of a page.
        """
        return self._pages(ordering.Query(**wanted), 'after', Run)

    def run_id(self, name: str) -> str:
        """Return the ID of a run, of which the beginning or the end does.

        Of a whole ID, nothing is asked.

        :raises errors.NotFound: none of the latest runs has such an ID.
        :raises errors.Refused: several have.
        """
        name = name.lower()
        if ordering.is_uuid(name):
            return name
        known = [
            run.id
            for run in itertools.islice(self.list(), _RECENT)
            if name and (run.id.startswith(name) or run.id.endswith(name))
        ]
        if len(known) > 1:
            raise errors.Refused(
                f'{bounds.shortened(name)} is a part of the IDs of several '
                f'runs: {bounds.listed(known)}'
            )
        if not known:
            raise errors.NotFound(
                f'No ID of the latest {_RECENT} runs of this project begins '
                f'or ends with {bounds.shortened(name)}'
            )
        return known[0]

    def show(self, run_id: str) -> Run:
        """Return a run."""
        return _read(Run, self._get(ordering.Query(run=run_id, limit=0))[1])

    def newer(self, run_id: str, version: int | None) -> Run | None:
        """Return a run if it has a later version; else None.

        It costs little. An answer of a server alone makes no version.

        :param version: that of the caller; None for any.
        """
        query = ordering.Query(run=run_id, limit=0, newer_than=version)
        _door, *runs = self._get(query)
        return _read(Run, runs[0]) if runs else None

    def targets(
        self,
        run_id: str,
        *,
        state: abc.Sequence[str] = (),
        outputs: bool = False,
        attempt: int | None = None,
        first: int = 0,
        limit: int = run_records.MOST,
    ) -> abc.Iterator[Target]:
        """Yield the targets of a run.

        :param state: only those in one of these states.
        :param first: the number from which on.
        :param limit: the most targets of one answer of Heat.
        :param attempt: only those that had an attempt of this number, as they
            were then; None for the last attempt of each.
        """
        query = ordering.Query(
            run=run_id,
            state=state,
            outputs=outputs,
            attempt=attempt,
            first=first,
            limit=limit,
        )
        # The run comes before its targets.
        return self._pages(query, 'first', Target, before=1)

    def target(
        self, run_id: str, number: int, *, outputs: bool = False
    ) -> Target:
        """Return a target of a run.

        :param number: its number.
        :raises errors.NotFound: there is none.
        """
        query = ordering.Query(
            run=run_id, first=number, limit=1, outputs=outputs
        )
        _door, _run, *answers = self._get(query)
        if not answers:
            raise errors.NotFound(f'Run {run_id} has no target {number}', 404)
        return _read(Target, answers[0])

    def wait(self, run_id: str, seconds: float | None = None) -> Run:
        """Return a run once it has ended, or as it is after some seconds."""
        begun = answered = self._monotonic()
        run = None
        while True:
            now = self._monotonic()
            try:
                run = self.newer(run_id, run.version if run else None) or run
                answered = now
            except errors.NotFound:
                # A node of the database may lag.
                if run is not None or now - begun >= GRACE:
                    raise
            except (errors.Unavailable, NoDoor):
                if now - answered >= PATIENCE:
                    raise
            if run is not None and (
                run.ended or (seconds is not None and now - begun >= seconds)
            ):
                return run
            self._sleep(POLL)

    def pause(self, run_id: str, request: str | None = None) -> Run:
        """Let nothing else start.

        :param request: a UUID of the request, as for the others; None for a
            new one.
        """
        return self._ask(run_id, deciding.PAUSE, request)

    def resume(self, run_id: str, request: str | None = None) -> Run:
        """Let a run continue that is paused, or waits for approval."""
        return self._ask(run_id, deciding.RESUME, request)

    def cancel(
        self,
        run_id: str,
        target: int | None = None,
        request: str | None = None,
    ) -> Run:
        """Cancel a run, or a target of it.

        :param target: its number.
        """
        return self._ask(run_id, deciding.CANCEL, request, target=target)

    def retry(
        self,
        run_id: str,
        only: str | None = None,
        request: str | None = None,
    ) -> Run:
        """Run again where it has not succeeded.

        :param only: a state, or the name of a server or resource.
        """
        return self._ask(run_id, deciding.RETRY, request, only=only)

    def delete(self, run_id: str) -> None:
        """Forget a run that has ended.

        :raises errors.NotFound: there is none.
        """
        repeated: list[str] = []
        try:
            self._post(
                run_id,
                ordering.DELETE,
                ordering.Delete(run=run_id),
                repeated.append,
            )
        except errors.NotFound:
            # The first request may have had no answer, and deleted it.
            if not repeated:
                raise

    def _ask(
        self, run_id: str, do: str, request: str | None, **more: Any
    ) -> Run:
        """Ask heat-engine to do something with a run; return the run."""
        ask = ordering.Ask(
            run=run_id, do=do, request=request or str(uuid.uuid4()), **more
        )
        return _read(Run, self._post(run_id, do, ask))

    def _post(
        self,
        run_id: str,
        do: str,
        order: Any,
        note: abc.Callable[[str], object] = lambda sentence: None,
    ) -> Any:
        """Send an order; one without an answer is repeated with its IDs.

        :param note: called before that.
        """
        body = {
            'server_id': ordering.SERVER,
            'input_values': {**stored.dump(order), ordering.DO: do},
        }
        return retrying.insist(
            self._post_once,
            run_id,
            f'order to {do} run {run_id}',
            body,
            sleep=self._sleep,
            clock=self._monotonic,
            note=note,
        )

    def _post_once(
        self, run_id: str, what: str, body: abc.Mapping[str, Any]
    ) -> Any:
        """POST an order; ask other engines if one knows no runs."""
        for _engine in range(_ENGINES):
            try:
                return self._call(
                    'POST', _PATH, what, timeout=_LONG, json=body
                )[_KEY]
            except errors.NotFound as exc:
                if _NO_RUN in str(exc):
                    raise _no_run(run_id) from exc
            except errors.Conflict as exc:
                raise errors.Exists(
                    f'Another order has the ID {run_id}; nothing was started'
                ) from exc
        raise _no_door()

    def _get(self, query: ordering.Query) -> abc.Sequence[Any]:
        """Return the answer of an engine: the door first."""
        path = f'{_PATH}?{parse.urlencode({"server_id": query.server_id})}'
        for _engine in range(_ENGINES):
            try:
                answer = self._call('GET', path, 'runs')[f'{_KEY}s']
            except errors.NotFound as exc:
                raise _no_run(str(query.run)) from exc
            if answer and answer[0].get('id') == ordering.SERVER:
                return tuple(answer)
        raise _no_door()

    def _call(self, method: str, path: str, what: str, **more: Any) -> Any:
        """Send a request.

        :raises errors.Refused: heat-engine says why it makes no sense.
        """
        try:
            return self._rest.call(method, path, what, **more)
        except errors.ServiceError as exc:
            if exc.status != 400:
                raise
            _, _, reason = str(exc).partition(f'{what}: ')
            raise errors.Refused(reason or str(exc)) from exc

    def _pages(
        self,
        query: ordering.Query,
        mark: str,
        kind: type[_Kind],
        before: int = 0,
    ) -> abc.Iterator[_Kind]:
        """Yield the values of each page, without the door.

        :param mark: the field of the query that names the next page.
        :param before: how many answers of another kind come before them.
        """
        while True:
            door, *answers = self._get(query)
            for answer in answers[before:]:
                yield _read(kind, answer)
            following = door['output_values'].get('next')
            if following is None:
                return
            query = dataclasses.replace(query, **{mark: following})


def _read(kind: type[_Kind], answer: abc.Mapping[str, Any]) -> _Kind:
    """Read a value of the door, without fields of later releases.

    :raises errors.ServiceError: it is something else.
    """
    try:
        return stored.read(kind, answer['output_values'])
    except (KeyError, ValueError) as exc:
        raise errors.ServiceError(
            f'heat-engine has answered with an invalid {kind.__name__}: {exc}'
        ) from exc


def _no_run(run_id: str) -> errors.NotFound:
    """Return the error for a run that this project does not have."""
    return errors.NotFound(f'Heat has no run {run_id} in this project', 404)


def _no_door() -> NoDoor:
    """Return the error for engines that take no orders of runs."""
    return NoDoor(
        'heat-engine takes no orders of runs: on the engines that have '
        f'answered, heat-plugins is missing, or older than {_RELEASE}. Ask '
        'the operator to upgrade it on every heat-engine'
    )
