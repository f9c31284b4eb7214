# SPDX-License-Identifier: Apache-2.0
"""The output of configs: kept on disk, and sent while they run.

It goes to Heat's object store in slots, below a prefix that a signed URL is
for. Slot N holds the bytes from N times `SLOT` on; when all are full, the
later half of them is written over, so the beginning and the end of a long
output are kept. The file on disk is the same slots. See the page on the
supervisor for what an object holds.
"""

from __future__ import annotations

from collections.abc import Callable
import logging
import os
import threading
import time
from typing import Any
from urllib import parse

import requests

from heat_config_supervisor import config as configs
from heat_config_supervisor import places
from heat_config_supervisor import results
from heat_config_supervisor import sending

LOG = logging.getLogger(__name__)

SLOT = 64 * 1024

# Seconds between two objects, unless there is a slot full to send.
PACE = 2.0

# Seconds before what failed is sent again, and to which that doubles.
FIRST, MOST = 2.0, 8.0

# Seconds for which the rest is sent again at once, and between two attempts: a
# result waits for all of it, so a few failures must not add up.
INSIST, PAUSE = 10.0, 0.5

# How often what is refused is sent: see `delivery.REFUSALS`.
REFUSALS = 6

_TYPE = {'Content-Type': 'application/octet-stream'}

#: The object that says how long the output is.
END = 'end'


class Log:
    """The output of a config.

    :ivar total: its bytes until now.
    :ivar sent: how many of those were sent, or are not kept.
    """

    def __init__(self, config_id: str, limit: int) -> None:
        slots = max(2, limit // SLOT)
        self._id = config_id
        self._head = slots // 2
        self._ring = slots - self._head
        self.total = 0
        self.sent = 0
        self._changed = threading.Condition()
        self._path = results.logs().path(config_id)
        places.make_private(self._path.parent)
        flags = os.O_RDWR | os.O_CREAT
        self._file = os.open(self._path, flags, 0o600)

    @classmethod
    def load(cls, config_id: str) -> Log | None:
        """Return one from before; None if there is none to be sent."""
        try:
            stored = results.logs().get(config_id)
            log = cls(config_id, int(stored['limit']))
            log.total = max(int(stored['total']), log._size())
            log.sent = int(stored['sent'])
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return log

    def _size(self) -> int:
        """Return how long it is by its file; 0 if that may have wrapped.

        The supervisor may have been killed before it noted that.
        """
        size = os.fstat(self._file).st_size
        return size if size < self._capacity else 0

    @property
    def _capacity(self) -> int:
        return (self._head + self._ring) * SLOT

    def save(self) -> None:
        """Note how far it is."""
        details: dict[str, Any] = {
            'limit': self._capacity,
            'total': self.total,
            'sent': self.sent,
        }
        results.logs().put(self._id, details)

    def drop(self) -> None:
        os.close(self._file)
        drop(self._id)

    def append(self, content: bytes) -> None:
        """Add to it.

        :raises OSError: the disk is full.
        """
        with self._changed:
            was_idle = self.sent >= self.total
            while content:
                room = SLOT - self.total % SLOT
                piece, content = content[:room], content[room:]
                place = self._slot(self.total) * SLOT + self.total % SLOT
                while piece:
                    count = os.pwrite(self._file, piece, place)
                    piece, place = piece[count:], place + count
                    self.total += count
            if was_idle or self.is_full:
                self._changed.notify_all()

    def wait(self, ready: Callable[[], bool], seconds: float | None) -> None:
        """Wait until it is ready, at most so long; asks as it grows."""
        with self._changed:
            self._changed.wait_for(ready, seconds)

    def wake(self) -> None:
        """End a `wait`."""
        with self._changed:
            self._changed.notify_all()

    @property
    def is_full(self) -> bool:
        """Whether there is a slot full to send."""
        return self.total - self.sent + self.sent % SLOT >= SLOT

    def part(self) -> tuple[str, bytes, int]:
        """Return the name, the body and the end of the next piece."""
        with self._changed:
            start = self.sent - self.sent % SLOT
            # The oldest that was not written over.
            last = (self.total - 1) // SLOT
            if start // SLOT >= self._head:
                start = max(start, (last - self._ring + 1) * SLOT)
            end = min(self.total, start + SLOT)
            slot = self._slot(start)
            content = os.pread(self._file, end - start, slot * SLOT)
        header = f'1 {start} {self._head} {self._ring}\n'
        return f'{slot:06d}', header.encode() + content, start + len(content)

    def _slot(self, offset: int) -> int:
        number = offset // SLOT
        if number < self._head:
            return number
        return self._head + (number - self._head) % self._ring


def drop(config_id: str) -> None:
    """Delete the stored output of a config."""
    results.logs().drop(config_id)
    results.logs().path(config_id).unlink(missing_ok=True)


def drop_others() -> None:
    """Delete the stored output of configs that will have no result."""
    wanted = {*results.running(), *results.pending()}
    for config_id in list(results.logs()):
        if config_id not in wanted:
            drop(config_id)


def _put(
    session: requests.Session, url: str, name: str, body: bytes
) -> sending.Answer:
    parts = parse.urlsplit(url)
    target = parts._replace(path=parts.path + name).geturl()
    return sending.send('PUT', target, body, _TYPE, session)


def _send_part(
    log: Log, session: requests.Session, url: str
) -> sending.Answer:
    name, body, end = log.part()
    answer = _put(session, url, name, body)
    if answer.fate is sending.Fate.ACCEPTED:
        log.sent = end
    return answer


def _send_rest(
    log: Log, session: requests.Session, url: str
) -> sending.Answer:
    """Send the rest of an output and its length, until that fails."""
    while log.sent < log.total:
        before = log.sent
        answer = _send_part(log, session, url)
        if answer.fate is not sending.Fate.ACCEPTED:
            return answer
        if log.sent == before:
            # The power failed before all of it was on the disk.
            log.total = before
    return _put(session, url, END, str(log.total).encode())


def finish(config: configs.Config) -> sending.Answer:
    """Send the rest of a config's output, before its result."""
    url = config.log_url
    log = Log.load(config.id) if url else None
    if log is None or url is None:
        return sending.Answer(sending.Fate.ACCEPTED, 'there is none')
    patience = time.monotonic() + INSIST
    with requests.Session() as session:
        answer = _send_rest(log, session, url)
        refusals = 0
        while (
            answer.fate is not sending.Fate.ACCEPTED
            and time.monotonic() < patience
        ):
            refusals += answer.fate is sending.Fate.REFUSED
            if refusals >= REFUSALS:
                break
            time.sleep(PAUSE)
            answer = _send_rest(log, session, url)
    if answer.fate is sending.Fate.LATER:
        log.save()
    else:
        log.drop()
    return answer


class Sender:
    """Sends the output of a config while that runs."""

    def __init__(self, log: Log, url: str) -> None:
        self._log = log
        self._url = url
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        self._log.save()
        self.thread.start()

    def end(self) -> None:
        """Leave to `finish` the output that the store does not take now."""
        self._ended.set()
        self._log.wake()
        self.thread.join()
        self._log.save()

    def _run(self) -> None:
        refusals, pause = 0, FIRST
        with requests.Session() as session:
            # An empty first object says that there will be output.
            while True:
                answer = _send_part(self._log, session, self._url)
                accepted = answer.fate is sending.Fate.ACCEPTED
                if accepted:
                    refusals, pause = 0, FIRST
                    self._rest_until(lambda: self._log.is_full, PACE)
                    self._await_more(session)
                else:
                    refusals += answer.fate is sending.Fate.REFUSED
                    if refusals >= REFUSALS:
                        LOG.warning(
                            'Cannot send the output while the config runs: %s',
                            answer.reason,
                        )
                        return
                    self._rest_until(lambda: False, pause)
                    pause = min(pause * 2, MOST)
                if self._ended.is_set():
                    if accepted:
                        self._send_last(session)
                    return

    def _send_last(self, session: requests.Session) -> None:
        """Send the last of it, as far as the store takes it at once.

        The result follows from another process, which takes a while to start.
        """
        before = -1
        while before < self._log.sent < self._log.total:
            before = self._log.sent
            _send_part(self._log, session, self._url)

    def _await_more(self, session: requests.Session) -> None:
        if self._log.sent >= self._log.total:
            # It may be long, and what lies between forgets connections.
            session.close()
            self._rest_until(lambda: self._log.sent < self._log.total)

    def _rest_until(
        self, ready: Callable[[], bool], seconds: float | None = None
    ) -> None:
        self._log.wait(lambda: self._ended.is_set() or ready(), seconds)
