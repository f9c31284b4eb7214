# SPDX-License-Identifier: Apache-2.0
"""The notices that a webhook gets of runs, and their retries.

A notice is recorded before it is sent, so that the successor of an engine that
dies sends it: at least once, with an ID by which the receiver drops what it
has. Notices are sent in their order. The first one is retried, less often each
time, for an hour; then it is given up.

A notice consists of states, names and fixed sentences: nothing that a server
has sent is in it, no input and no output. All here is pure; times are in
seconds since the epoch.
"""

from collections import abc
import dataclasses
import enum
import hashlib
import hmac
import json
import math
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import stored

#: Bytes of a notice, and servers that it names, at most.
MOST_BYTES: Final = 64 * 1024
MOST_SERVERS: Final = 100

# Seconds until the second attempt, which double, and of the longest pause.
_PAUSE, _LONGEST = 30, 600

#: Seconds for which a notice is tried.
HOUR: Final = 3600

# Characters of a secret.
_LEAST_SECRET, _MOST_SECRET = 16, 1000

# Notices that are shown once they were sent.
_SENT: Final = 10

#: The headers of a notice.
TIME_HEADER: Final = 'Heat-Plugins-Timestamp'
SIGNATURE_HEADER: Final = 'Heat-Plugins-Signature'


class NoticeEvent(enum.StrEnum):
    """The event that a notice is about."""

    FAILURE = 'failure'
    TIMEOUT = 'timeout'
    MISSED = 'missed'
    WAITING = 'waiting'
    RECOVERY = 'recovery'


_WHY: abc.Mapping[NoticeEvent, str] = {
    NoticeEvent.FAILURE: 'The run has failed.',
    NoticeEvent.TIMEOUT: 'The run has timed out.',
    NoticeEvent.MISSED: 'The run could not be started in time.',
    NoticeEvent.WAITING: 'The run has not ended in time.',
    NoticeEvent.RECOVERY: 'The run is complete, after trouble.',
}

#: What concerns servers.
OF_SERVERS: Final = (
    NoticeEvent.FAILURE,
    NoticeEvent.TIMEOUT,
    NoticeEvent.WAITING,
)

# What the end of a run is, by its phase. What a user cancels is not told.
_ENDS = {
    'failed': NoticeEvent.FAILURE,
    'timed-out': NoticeEvent.TIMEOUT,
    'complete': NoticeEvent.RECOVERY,
}

# What the number of a notice counts.
_NUMBERS = {NoticeEvent.MISSED: 'missed'}


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoticeRules:
    """The notices that a user wants.

    :ivar to: scheme and host of the receiver; its URL is a secret.
    :ivar after: failures in a row from which on they are told.
    :ivar waits: seconds after its start after which a run that has not ended
        is told; 0 for never.
    """

    to: str
    events: tuple[NoticeEvent, ...] = tuple(NoticeEvent)
    after: int = 1
    waits: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Notice:
    """Something to tell.

    :ivar tick: the time of the schedule, or when the run ended, or began if it
        has not ended.
    :ivar number: of failures in a row, or of all times that were missed.
    :ivar since: the first attempt; 0 before that.
    :ivar next_try: the next one.
    """

    event: NoticeEvent
    tick: int
    number: int = 0
    since: int = 0
    tries: int = 0
    next_try: int = 0

    def tried(self, now: int) -> 'Notice':
        """Return it before an attempt: the engine that records it sends."""
        pause = min(_PAUSE * 2 ** min(self.tries, 10), _LONGEST)
        return dataclasses.replace(
            self,
            since=self.since or now,
            tries=self.tries + 1,
            next_try=now + pause,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentNotice:
    """A notice that was delivered, or given up.

    :ivar at: when that was.
    :ivar why: it was given up; empty if it was delivered.
    """

    event: NoticeEvent
    at: int
    tries: int
    why: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoticeBook:
    """The record of the notices of one sender.

    :ivar notices: those that must be sent, in this order.
    :ivar is_troubled: whether a notice since the last success told of trouble.
    :ivar waited: the tick of the last notice that something waits.
    :ivar error: why the last notice was given up; empty if it was sent.
    :ivar ended: the end of a run that is in the book, as a retry begins
        again; None for none.
    :ivar sent: the last notices that were delivered, or given up.
    """

    notices: tuple[Notice, ...] = ()
    is_troubled: bool = False
    waited: int | None = None
    error: str = ''
    ended: int | None = None
    sent: tuple[SentNotice, ...] = ()

    def with_end(
        self,
        rules: NoticeRules,
        phase: str,
        tick: int,
        number: int,
        *,
        is_past: bool = False,
    ) -> 'NoticeBook':
        """Return it after a run has ended.

        :param phase: how it ended.
        :param number: how many failed in a row.
        :param is_past: whether it was for a time of the past: what that shows
            of others is unknown.
        """
        event = _ENDS.get(phase)
        is_told = is_past or number >= rules.after
        if event is NoticeEvent.RECOVERY:
            is_told = not is_past
        if event is None or not is_told:
            return self
        return self.with_notice(
            rules, Notice(event=event, tick=tick, number=number)
        )

    def with_wait(
        self, rules: NoticeRules, tick: int, began: float, now: float
    ) -> 'NoticeBook':
        """Return it after a check whether a run takes too long."""
        if now < self.waits_until(rules, tick, began):
            return self
        notice = Notice(event=NoticeEvent.WAITING, tick=tick)
        book = self.with_notice(rules, notice)
        return dataclasses.replace(book, waited=tick)

    def waits_until(
        self, rules: NoticeRules, tick: int, began: float
    ) -> float:
        """Return when a run takes too long; infinite for never, or not again.

        :param tick: what it is called in the book.
        """
        if not rules.waits or self.waited == tick:
            return math.inf
        return began + rules.waits

    def with_notice(self, rules: NoticeRules, notice: Notice) -> 'NoticeBook':
        """Return it with one more notice, if its user wants that.

        It takes the place of one of its kind that was not tried.
        """
        event = notice.event
        is_end = event is NoticeEvent.RECOVERY
        book, is_wanted = self, event in rules.events
        if is_end:
            is_wanted &= self.is_troubled
            book = dataclasses.replace(book, is_troubled=False)
        if not is_wanted:
            return book
        # At most one was tried, so at most one of each kind waits.
        kept = (n for n in self.notices if n.tries or n.event is not event)
        return dataclasses.replace(
            book, notices=(*kept, notice), is_troubled=not is_end
        )

    def redirected(self, rules: NoticeRules | None) -> 'NoticeBook':
        """Return it after its user has changed where notices go.

        What was not delivered goes there, with an hour of its own.
        """
        wanted = rules.events if rules else ()
        fresh = (
            Notice(event=n.event, tick=n.tick, number=n.number)
            for n in self.notices
            if n.event in wanted
        )
        return dataclasses.replace(self, notices=tuple(fresh), error='')

    def due(self, now: float) -> Notice | None:
        """Return the notice to send now; None if there is none."""
        # The clock of another engine may have been wrong.
        is_early = now < self.next_try <= now + _LONGEST
        return None if is_early or not self.notices else self.notices[0]

    @property
    def next_try(self) -> float:
        """The time of the next attempt; infinite if there is no notice."""
        return self.notices[0].next_try if self.notices else math.inf

    def told(self, notice: Notice, why: str, now: float) -> 'NoticeBook':
        """Return it after an attempt to send a notice.

        :param why: it has failed; empty if it has not. Then the notice stays
            as it is until its hour is over, and so does one that another
            engine has tried, or delivered, since.
        """
        is_last = now >= notice.since + HOUR and notice in self.notices
        if why and not is_last:
            return self
        book = self.replaced(notice)
        if book == self:
            return self
        sent = SentNotice(
            event=notice.event, at=int(now), tries=notice.tries, why=why
        )
        return dataclasses.replace(
            book, error=why, sent=(*self.sent, sent)[-_SENT:]
        )

    def replaced(self, notice: Notice, *instead: Notice) -> 'NoticeBook':
        """Return it with another notice, or none, in the place of one."""
        kept = (
            n
            for each in self.notices
            for n in (
                instead
                if (each.event, each.tick) == (notice.event, notice.tick)
                else (each,)
            )
        )
        return dataclasses.replace(self, notices=tuple(kept))


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoticeOrder(NoticeRules):
    """The webhook of a run, and the notices that it gets."""

    url: str = dataclasses.field(repr=False)
    secret: str = dataclasses.field(repr=False)

    @classmethod
    def asked(cls, values: abc.Mapping[str, Any], to: str) -> 'NoticeOrder':
        """Read the webhook of an order.

        :raises errors.Refused: it is invalid; the message quotes no value.
        """
        known = ('url', 'secret', 'events', 'waits')
        for name in values:
            if name not in known:
                raise errors.Refused(
                    f'"notify" has no key {bounds.shortened(name)}'
                    + bounds.did_you_mean(name, known)
                )
        try:
            wanted = stored.read(cls, {**values, 'to': to})
        except ValueError as exc:
            raise errors.Refused(
                '"notify" needs the texts "url" and "secret"; "events" is a '
                f'list of {", ".join(NoticeEvent)}, and "waits" a number of '
                'seconds'
            ) from exc
        check_secret(wanted.secret)
        return wanted


def check_secret(secret: str) -> None:
    """Refuse a secret that is too short or too long.

    :raises errors.Invalid: it is.
    """
    if not _LEAST_SECRET <= len(secret) <= _MOST_SECRET:
        raise errors.Invalid(
            f'The secret of a webhook must have {_LEAST_SECRET} to '
            f'{_MOST_SECRET} characters'
        )


def body(
    notice: Notice,
    where: abc.Mapping[str, Any],
    servers: abc.Sequence[abc.Mapping[str, str]] | None,
) -> bytes:
    """Return the body of a notice: JSON of at most `MOST_BYTES`.

    :param where: its ID, and what is told of project, stack, schedule and
        run; each value is a name, a time, an ID or a map of such.
    :param servers: those that it is about; None if they are not known.
    """
    shown = (
        None if servers is None else [_safe(s) for s in servers[:MOST_SERVERS]]
    )
    while True:
        content = {
            'version': 1,
            'event': notice.event.value,
            'why': _WHY[notice.event],
            **_safe(where),
            _NUMBERS.get(notice.event, 'failures'): notice.number,
            'servers': shown,
            'more_servers': len(servers or ()) - len(shown or ()),
        }
        packed = json.dumps(content).encode()
        if len(packed) <= MOST_BYTES or not shown:
            return packed
        shown = shown[: len(shown) // 2]


def headers(packed: bytes, secret: str, now: float) -> dict[str, str]:
    """Return the headers of a notice, with its signature.

    That is the HMAC-SHA256 of the time, a dot and the body.
    """
    moment = str(int(now))
    signed = f'{moment}.'.encode() + packed
    mac = hmac.new(secret.encode(), signed, hashlib.sha256)
    return {
        'Content-Type': 'application/json',
        TIME_HEADER: moment,
        SIGNATURE_HEADER: f'sha256={mac.hexdigest()}',
    }


def _safe(value: Any) -> Any:
    """Return what a webhook is told, made safe for a terminal."""
    if isinstance(value, abc.Mapping):
        return {name: _safe(each) for name, each in value.items()}
    return foreign.line(value, bounds.NAME) if value is not None else None
