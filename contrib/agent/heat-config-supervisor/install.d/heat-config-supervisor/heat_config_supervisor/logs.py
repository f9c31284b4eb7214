# SPDX-License-Identifier: Apache-2.0
"""What configs print: kept on disk, and sent while they run.

It goes to Heat's object store in slots, below a prefix that a signed URL is
for. Slot N holds the bytes from N times `SLOT` on; when all are full, the
later half of them is written over, so the beginning and the end of a long
output are kept. The file on disk is the same slots. See the page on the
supervisor for what an object holds.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any
from urllib import parse

from heat_config_supervisor import config as configs
from heat_config_supervisor import results
from heat_config_supervisor import sending

LOG = logging.getLogger(__name__)

SLOT = 64 * 1024

# Seconds between two objects, unless there is a slot full to send.
_PACE = 2.0

# Seconds before what failed is sent again, and to which that doubles.
_FIRST, _MOST = 2.0, 15.0

# How often what is refused is sent: see `delivery.REFUSALS`.
_REFUSALS = 6

_TYPE = {'Content-Type': 'application/octet-stream'}

#: The object that says how long the output is.
END = 'end'


class Log:
    """The output of a config.

    :ivar total: its bytes so far.
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
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT
        self._file = os.open(self._path, flags, 0o600)

    @classmethod
    def load(cls, config_id: str) -> Log | None:
        """Return one from before; None if there is none to be sent."""
        try:
            found = results.logs().get(config_id)
            log = cls(config_id, int(found['limit']))
            log.total = int(found['total'])
            log.sent = int(found['sent'])
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return log

    def save(self) -> None:
        """Note how far it is."""
        details: dict[str, Any] = {
            'limit': (self._head + self._ring) * SLOT,
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
            while content:
                room = SLOT - self.total % SLOT
                piece, content = content[:room], content[room:]
                place = self._slot(self.total) * SLOT + self.total % SLOT
                while piece:
                    count = os.pwrite(self._file, piece, place)
                    piece, place = piece[count:], place + count
                    self.total += count
            self._changed.notify_all()

    def wait(self, seconds: float | None) -> None:
        """Wait until there is more, at most so long."""
        with self._changed:
            if self.sent >= self.total:
                self._changed.wait(seconds)

    def wake(self) -> None:
        """End a `wait`."""
        with self._changed:
            self._changed.notify_all()

    @property
    def is_full(self) -> bool:
        """Whether there is a slot full to send."""
        return self.total - self.sent + self.sent % SLOT >= SLOT

    def part(self) -> tuple[str, bytes, int]:
        """Return the name and body of what comes next, and where it ends."""
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
    """Delete what is kept of an output."""
    results.logs().drop(config_id)
    results.logs().path(config_id).unlink(missing_ok=True)


def drop_others() -> None:
    """Delete what is kept of configs that no result is to come for."""
    wanted = {*results.running(), *results.pending()}
    for config_id in list(results.logs()):
        if config_id not in wanted:
            drop(config_id)


def _put(url: str, name: str, body: bytes) -> sending.Answer:
    parts = parse.urlsplit(url)
    target = parts._replace(path=parts.path + name).geturl()
    return sending.send('PUT', target, body, _TYPE)


def _send_part(log: Log, url: str) -> sending.Answer:
    name, body, end = log.part()
    answer = _put(url, name, body)
    if answer.fate is sending.Fate.ACCEPTED:
        log.sent = end
    return answer


def finish(config: configs.Config) -> sending.Answer:
    """Send the rest of what a config has printed, before its result."""
    url = config.log_url
    log = Log.load(config.id) if url else None
    if log is None or url is None:
        return sending.Answer(sending.Fate.ACCEPTED, 'there is none')
    answer = sending.Answer(sending.Fate.ACCEPTED, '')
    while log.sent < log.total and answer.fate is sending.Fate.ACCEPTED:
        before = log.sent
        answer = _send_part(log, url)
        if answer.fate is sending.Fate.ACCEPTED and log.sent == before:
            # The power failed before all of it was on the disk.
            log.total = before
    if answer.fate is sending.Fate.ACCEPTED:
        answer = _put(url, END, str(log.total).encode())
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
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        self._log.save()
        self._thread.start()

    def end(self) -> None:
        """Leave the rest to `finish`."""
        self._ended.set()
        self._log.wake()
        self._thread.join()
        self._log.save()

    def _run(self) -> None:
        refusals, pause = 0, _FIRST
        # An empty first object says that there will be output.
        while True:
            answer = _send_part(self._log, self._url)
            rest = _PACE
            if answer.fate is sending.Fate.ACCEPTED:
                refusals, pause = 0, _FIRST
                if self._log.is_full:
                    rest = 0.0
            else:
                rest, pause = pause, min(pause * 2, _MOST)
                if answer.fate is sending.Fate.REFUSED:
                    refusals += 1
                if refusals >= _REFUSALS:
                    LOG.warning(
                        'What the config prints is not sent while it runs: %s',
                        answer.reason,
                    )
                    return
            is_accepted = answer.fate is sending.Fate.ACCEPTED
            self._rest(rest, is_accepted)
            while is_accepted and self._log.sent >= self._log.total:
                if self._ended.is_set():
                    return
                self._log.wait(None)
            if self._ended.is_set():
                return

    def _rest(self, seconds: float, is_accepted: bool) -> None:
        """Keep the pace; a full slot does not wait for it."""
        end = time.monotonic() + seconds
        while not self._ended.is_set():
            left = end - time.monotonic()
            if left <= 0 or (is_accepted and self._log.is_full):
                return
            self._ended.wait(min(left, 0.2))
