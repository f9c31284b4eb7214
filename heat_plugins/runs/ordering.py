# SPDX-License-Identifier: Apache-2.0
"""Orders and queries of users for the door of heat-engine.

The door is Heat's API for software deployments, with `SERVER` as the server;
see `heat_plugins.engine.runs.door`. An order is the ``input_values`` of a
POST; a query stands behind `SERVER` in a GET. `heat_plugins.clients.runs`
makes both, and the door reads them here, strictly.
"""

from collections import abc
import dataclasses
import json
import re
from typing import Any, Final, TypeVar
from urllib import parse
import uuid

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import stored
from heat_plugins.runs import deciding
from heat_plugins.runs import overview
from heat_plugins.runs import run_records
from heat_plugins.signals import body

#: The server of such deployments; Heat gives no server that ID.
SERVER: Final = 'heat-plugins'

#: What an order may say in `DO`; the others are requests of a run.
DO, START, DELETE = 'do', 'start', 'delete'
#: The status of an answer that shows what would start.
DRY_RUN: Final = 'dry-run'
REQUESTS = (
    deciding.PAUSE,
    deciding.RESUME,
    deciding.CANCEL,
    deciding.RETRY,
)

#: The most bytes of an order in JSON; heat-api takes as much by default.
LONGEST: Final = 2**20

# The fields of a query that are numbers, and those that are 1 or 0.
_NUMBERS = ('first', 'newer_than', 'attempt', 'since', 'until', 'limit')
_FLAGS = ('outputs', 'targets')

# The most stacks, tags, resources or metadata of an order.
_SELECTORS: Final = 1000

_NUL = re.compile(r'(?<!\\)(\\\\)*\\u0000')

# The keys of signals that order a run.
TRIGGER, RUN, INPUT_VALUES = 'trigger', 'run', 'input_values'

_ID, _ACTION = 'id', 'action'
_ORDERED = (_ID, _ACTION, INPUT_VALUES, *run_records.LIMIT_NAMES)

_NO_UUID = '{} must be a UUID in lower case, with hyphens'

_Kind = TypeVar('_Kind')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wanted:
    """The targets that a user wants.

    :ivar stacks: names or ids; without one, and without a tag, all stacks of
        the project.
    :ivar tags: stacks that bear any of them.
    :ivar resources: paths, or patterns of such: ``*``, ``?`` and ``[…]``; a
        resource that holds others stands for those.
    :ivar metadata: what a server's metadata must have, all of it.
    """

    stacks: abc.Sequence[str] = ()
    tags: abc.Sequence[str] = ()
    resources: abc.Sequence[str] = ()
    metadata: abc.Mapping[str, str] = dataclasses.field(default_factory=dict)

    def shown(self) -> str:
        """Return it for people."""
        parts = [f'stack {each}' for each in self.stacks]
        parts += [f'stack tag {each}' for each in self.tags]
        parts += [f'resource {each}' for each in self.resources]
        parts += [
            f'server metadata {name}={value}'
            for name, value in self.metadata.items()
        ]
        return ', '.join(parts)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start(Wanted):
    """A run to start.

    :ivar run: its ID, a UUID that the caller has made up; with the same one
        nothing starts twice.
    :ivar action: what to run; of a script of one's own, its name in records.
    :ivar inputs: see `run_records.RunOrder`; they may be secrets.
    :ivar config: a script of one's own: ``config``, ``group``, ``inputs``,
        ``outputs`` and ``options``, as Heat has them.
    :ivar config_id: of a config in Heat, in place of `config`.
    :ivar limits: what `run_records.RunLimits` reads.
    :ivar log_limit: see `run_records.RunOrder`.
    :ivar notify: a webhook that is told of its end: ``url``, ``secret``, and
        perhaps ``events`` and ``waits``.
    :ivar expected: how many targets a person has confirmed; None for any
        number.
    :ivar confirm_above: the most targets that start without that; for more,
        the answer is that of a dry run. None for any number.
    :ivar dry_run: whether to return the targets, and start nothing.
    :ivar by: what has ordered it for the user, for people, such as ``workflow
        execution 5d1f``; empty for nothing else.
    """

    run: str
    action: str = ''
    inputs: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
    config: abc.Mapping[str, Any] | None = dataclasses.field(
        default=None, repr=False
    )
    config_id: str | None = None
    limits: abc.Mapping[str, Any] = dataclasses.field(default_factory=dict)
    log_limit: int | None = None
    notify: abc.Mapping[str, Any] | None = dataclasses.field(
        default=None, repr=False
    )
    expected: int | None = None
    confirm_above: int | None = None
    dry_run: bool = False
    by: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ask:
    """A request of a user to a run.

    :ivar do: one of `REQUESTS`.
    :ivar request: a UUID that the caller has made up, as of `Start.run`.
    :ivar target: the number of the target to cancel; None for all.
    :ivar only: which targets to retry; see `run_records.Request`.
    """

    run: str
    do: str
    request: str
    target: int | None = None
    only: str | None = None

    def of(self, run: run_records.RunRecord, who: str) -> run_records.Request:
        """Return it as a request of a user.

        :raises errors.Refused: it makes no sense, or not now.
        """
        do, only = self.do, self.only
        if self.target is not None:
            if do != deciding.CANCEL or self.target >= len(run.attempts):
                raise errors.Invalid(
                    '"target" is not the number of one to cancel'
                )
            if not run.attempts[self.target].is_live:
                raise errors.Refused(
                    f'Cannot cancel target {self.target} of run {run.id}: it '
                    f'is {overview.state(run, self.target)}'
                )
            do, only = deciding.CANCEL_RUN, run.run_id(self.target)
        elif only is not None and do != deciding.RETRY:
            raise errors.Invalid('"only" is of a retry alone')
        return run_records.Request(
            do=do, who=who, only=only, request=self.request
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Delete:
    """A run to forget."""

    run: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Query:
    """A query for runs, for targets of one run, or for actions.

    None is any. Times are seconds since the epoch. A `run_store` knows what
    says which runs: `run`, `newer_than`, and `state` and all below it.

    :ivar run: that one; None to list runs.
    :ivar actions_of: a stack; the answer says what can run on its
        deployments. None for runs.
    :ivar resource: of that stack, see `Wanted`.
    :ivar first: the number of the first target of a page.
    :ivar state: of runs, `run_records.Phase`, or of targets, as
        `overview.COUNTED` has them.
    :ivar outputs: whether targets are shown with their outputs.
    :ivar targets: whether each run of a list is shown with its targets, of
        `stack` alone if that is given.
    :ivar attempt: the number of the attempts to show in place of the last.
    :ivar newer_than: the version of the run that the caller has; if there is
        no later one, nothing is returned.
    :ivar stack: name or ID of a root stack that a target is in.
    :ivar server: ID or name of a server of a target.
    :ivar who: the user who has started it.
    :ivar schedule: the ID of the schedule that has started it.
    :ivar after: the last run of the page before.
    """

    run: str | None = None
    actions_of: str | None = None
    resource: str | None = None
    first: int = 0
    outputs: bool = False
    targets: bool = False
    attempt: int | None = None
    newer_than: int | None = None
    state: abc.Sequence[str] = ()
    stack: str | None = None
    server: str | None = None
    action: str | None = None
    who: str | None = None
    schedule: str | None = None
    since: float | None = None
    until: float | None = None
    after: str | None = None
    limit: int = 100

    @property
    def server_id(self) -> str:
        """The server to ask Heat for; `read_query` reads its end."""
        values = stored.dump(self)
        values |= {
            n: int(values[n]) for n in ('since', 'until') if n in values
        }
        values |= {name: 1 for name in _FLAGS if name in values}
        query = parse.urlencode(values, doseq=True)
        return f'{SERVER}?{query}' if query else SERVER


def read(order: object) -> Start | Ask | Delete:
    """Read an order.

    :raises errors.Invalid: it is none; the message quotes no value.
    """
    if not isinstance(order, dict):
        raise errors.Invalid('An order is a map in "input_values"')
    _check(order)
    values = {name: value for name, value in order.items() if name != DO}
    do = order.get(DO)
    if do == START:
        start = _read(Start, values, 'run')
        check_id(start.run, '"run"')
        for name in ('stacks', 'tags', 'resources', 'metadata'):
            number = len(getattr(start, name))
            if number > _SELECTORS:
                raise errors.Invalid(
                    f'"{name}" has {number} entries; {_SELECTORS} are '
                    'permitted. Name tags, or resources that contain others'
                )
        for name in start.limits:
            if name not in run_records.LIMIT_NAMES:
                raise _unknown(name, run_records.LIMIT_NAMES)
        return start
    if do == DELETE:
        return _read(Delete, values, 'run')
    if do in REQUESTS:
        return _read(Ask, {**values, DO: do}, 'run', 'request')
    known = (START, *REQUESTS, DELETE)
    raise errors.Invalid(f'"do" of an order must be one of {", ".join(known)}')


def read_query(text: str) -> Query:
    """Read a query: the text behind the server in a GET.

    :raises errors.Invalid: it is no query.
    """
    try:
        pairs = parse.parse_qsl(text, strict_parsing=True, max_num_fields=50)
    except ValueError as exc:
        if text:
            raise errors.Invalid('The query is not urlencoded') from exc
        pairs = []
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in _FLAGS:
            values[name] = bool(_number(name, value))
        elif name == 'state':
            values.setdefault(name, []).append(value)
        else:
            values[name] = _number(name, value) if name in _NUMBERS else value
    _check(values)
    return _read(Query, values, *(['run'] if 'run' in values else []))


def _number(name: str, text: str) -> int:
    """Read a number of a query."""
    if not text.isascii() or not text.isdecimal() or len(text) > 10:
        raise errors.Invalid(f'"{name}" of the query must be a number')
    return int(text)


def _check(values: abc.Mapping[str, Any]) -> None:
    """Refuse values that no database could keep, or that are too long."""
    try:
        bounds.check_depth(values)
        text = json.dumps(values, allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except bounds.TooDeep as exc:
        raise errors.Invalid(f'The order is invalid: {exc}') from exc
    except UnicodeEncodeError:
        raise errors.Invalid(
            'The order has a text with half a surrogate pair'
        ) from None
    except (TypeError, ValueError):
        raise errors.Invalid(
            'The order has a value that JSON does not have'
        ) from None
    if size > LONGEST:
        raise errors.Invalid(
            f'The order has {size} bytes; {LONGEST} are permitted'
        )
    if _NUL.search(text):
        raise errors.Invalid('The order has a text with a NUL character')


def _read(
    kind: type[_Kind], values: abc.Mapping[str, Any], *uuids: str
) -> _Kind:
    """Read a dataclass that has no other keys.

    :param uuids: the fields that must be UUIDs.
    """
    known = [each.name for each in dataclasses.fields(kind)]  # type: ignore
    for name in values:
        if name not in known:
            raise _unknown(name, known)
    for name in uuids:
        if not is_uuid(values.get(name)):
            raise errors.Invalid(_NO_UUID.format(f'"{name}"'))
    try:
        return stored.read(kind, values)
    except ValueError as exc:
        raise errors.Invalid(f'The order is invalid: {exc}') from exc


def _unknown(name: str, known: abc.Iterable[str]) -> errors.Invalid:
    """Return the error for a key that an order cannot have."""
    return errors.Invalid(
        f'An order has no key {bounds.shortened(name)}'
        + bounds.did_you_mean(name, known)
    )


def is_uuid(value: object) -> bool:
    """Say whether a value is a UUID as callers make one up."""
    try:
        return isinstance(value, str) and str(uuid.UUID(value)) == value
    except ValueError:
        return False


def check_id(run_id: object, what: str) -> None:
    """Check the ID of a run that a caller has made up.

    With that which a schedule gives to a later time, that time would never
    start.

    :param what: what a message calls it.
    :raises errors.Refused: it is none.
    """
    if not is_uuid(run_id):
        raise errors.Invalid(_NO_UUID.format(what))
    if uuid.UUID(str(run_id)).version == 5:
        raise errors.Invalid(
            f'{what} must be another UUID: version 5 is that of schedules'
        )


def read_signal(
    details: object,
    declared: abc.Iterable[abc.Mapping[str, Any]] = (),
) -> Start | None:
    """Return the run that a signal orders; None if it is a server's result.

    It asks for a run if it is exactly ``{"trigger": "BACKUP",
    "input_values": {…}}``, of which the second may be left out, or exactly
    ``{"run": {"action": "BACKUP", …}}``, which may have limits and the ID of
    the run. An agent sends an exit status with its outputs, and so never that.
    Another program may signal for a server; so where the config has an output
    called ``trigger`` or ``run``, that is one.

    :param declared: the outputs of the config, maps with ``name``.
    :raises errors.Refused: it asks for a run that cannot be.
    """
    if not isinstance(details, dict) or not _asked(details, declared):
        return None
    if details.keys() == {RUN} and isinstance(details[RUN], dict):
        ordered = details[RUN]
        for name in ordered:
            if name not in _ORDERED:
                raise errors.Refused(
                    f'a run has no key {bounds.shortened(str(name))}'
                    + bounds.did_you_mean(str(name), _ORDERED)
                )
        action, inputs = ordered.get(_ACTION), ordered.get(INPUT_VALUES) or {}
        if not isinstance(action, str) or not isinstance(inputs, dict):
            raise errors.Refused(
                'a run needs "action", a text; "input_values" must be a map'
            )
        run_id = ordered.get(_ID)
        if run_id is None:
            run_id = str(uuid.uuid4())
        check_id(run_id, f'"{_ID}" of a run')
        limits = {
            name: value
            for name, value in ordered.items()
            if name in run_records.LIMIT_NAMES
        }
        run_records.RunLimits.asked(limits)
        return Start(run=run_id, action=action, inputs=inputs, limits=limits)
    action, inputs = details.get(TRIGGER), details.get(INPUT_VALUES, {})
    is_known = not details.keys() - {TRIGGER, INPUT_VALUES}
    if is_known and isinstance(action, str) and isinstance(inputs, dict):
        run_id = str(uuid.uuid4())
        return Start(run=run_id, action=action, inputs=inputs)
    return None


def looks_like_one(details: object) -> bool:
    """Say whether a signal may be meant to start a run."""
    return isinstance(details, dict) and bool(_asked(details, ()))


def cannot_be_result(
    details: object, declared: abc.Iterable[abc.Mapping[str, Any]]
) -> bool:
    """Say whether a signal can only be meant to start a run.

    Such as one with a misspelt key: it must not end what a server does.

    :param declared: the outputs of the config, maps with ``name``.
    """
    return (
        isinstance(details, dict)
        and body.STATUS_CODE not in details
        and bool(_asked(details, declared))
    )


def _asked(
    details: abc.Mapping[str, Any],
    declared: abc.Iterable[abc.Mapping[str, Any]],
) -> set[str]:
    """Return the keys by which a signal may order a run."""
    outputs = {output['name'] for output in declared}
    return {TRIGGER, RUN} & details.keys() - outputs
