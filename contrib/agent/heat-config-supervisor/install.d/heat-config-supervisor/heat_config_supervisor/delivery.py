# SPDX-License-Identifier: Apache-2.0
"""Delivers results until they have been accepted.

One process at a time does so, without regard to the agent; who has a new
result and finds that one at it leaves the result to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import fcntl
import logging
import os
import subprocess
import time

from heat_config_supervisor import config as configs
from heat_config_supervisor import logs
from heat_config_supervisor import places
from heat_config_supervisor import results
from heat_config_supervisor import sending

LOG = logging.getLogger(__name__)

# Seconds before a second attempt, and to which that doubles.
FIRST, MOST = 2.0, 300.0

#: How often to send what is refused: an object store takes about a minute to
#: know a new key everywhere.
REFUSALS = 6

#: The seconds after which no engine waits for a result.
_OLD = 7 * 24 * 3600.0

# The seconds for which a result waits for what was printed before it.
_PATIENCE = 600.0

# Seconds between two looks for new results.
_LOOK = 2.0


def deliver(config_id: str) -> sending.Answer:
    """Send a result, once, and delete it if no engine wants it."""
    try:
        details = results.pending().get(config_id)
        config = configs.read(places.deployed(config_id).read_bytes())
        reason = _unwanted(config)
    except (OSError, ValueError) as exc:
        reason = f'cannot read it: {type(exc).__name__}'
    if reason:
        answer = sending.Answer(sending.Fate.REFUSED, reason)
        _drop(config_id, answer)
        return answer
    answer = logs.finish(config)
    is_late = results.pending().age(config_id, time.time()) > _PATIENCE
    # The reader of the result then finds all that was printed.
    if answer.fate is not sending.Fate.LATER or is_late:
        answer = sending.signal(config, details)
    if answer.fate is sending.Fate.ACCEPTED:
        results.pending().drop(config_id)
        LOG.info('The result of config %s was accepted', config_id)
    else:
        LOG.warning(
            'The result of config %s was refused by %s: %s',
            config_id,
            sending.place(config.signal_url)
            if config.signal_url
            else 'Heat or Zaqar',
            answer.reason,
        )
    return answer


def _unwanted(config: configs.Config) -> str | None:
    """Say why no engine can want a result; None if one may."""
    now = time.time()
    if results.pending().age(config.id, now) > _OLD:
        return 'it is too old'
    if config.has_object:
        expired = config.expires is not None and config.expires < now
        return 'the URL has expired' if expired else None
    given = configs.given()
    if given is not None and config.id not in given:
        return 'the server no longer has the config'
    return None


def _drop(config_id: str, answer: sending.Answer) -> None:
    results.pending().drop(config_id)
    logs.drop(config_id)
    LOG.error(
        'The result of config %s is no longer sent: %s',
        config_id,
        answer.reason,
    )


@contextlib.contextmanager
def _turn() -> Iterator[bool]:
    """Be the one process that delivers; False if there is another."""
    places.make_private(places.state())
    lock = places.state() / 'delivery.lock'
    if lock.exists() and lock.stat().st_mode & 0o077:
        # Another user may hold it.
        lock.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT
    with os.fdopen(os.open(lock, flags, 0o600), 'w') as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def deliver_now(config_id: str) -> None:
    """Send a new result; if that does not do, have it sent again later."""
    with _turn() as is_ours:
        if is_ours:
            deliver(config_id)
    if is_ours and list(results.pending()):
        go_on()


def go_on() -> None:
    """Start a process that sends pending results until they are accepted."""
    places.make_private(places.state())
    log = places.state() / 'deliver.log'
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    with os.fdopen(os.open(log, flags, 0o600), 'w') as stream:
        subprocess.Popen(
            places.command('deliver'),
            cwd='/',
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            # It lives on when the agent has done its part.
            preexec_fn=os.setpgrp,
        )


def deliver_all(sleep: Callable[[float], None] = time.sleep) -> None:
    """Send all that is pending, unless another process does so."""
    while list(results.pending()):
        with _turn() as is_ours:
            if not is_ours:
                return
            _Round(sleep).run()


class _Round:
    """Sends pending results, each again after a pause of its own."""

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep
        # When to send it next, after which pause, and how often it was
        # refused.
        self._next: dict[str, float] = {}
        self._pause: dict[str, float] = {}
        self._refusals: dict[str, int] = {}

    def run(self) -> None:
        while waiting := list(results.pending()):
            for config_id in waiting:
                if time.monotonic() >= self._next.get(config_id, 0.0):
                    self._attempt(config_id)
            self._sleep(_LOOK)

    def _attempt(self, config_id: str) -> None:
        answer = deliver(config_id)
        if answer.fate is sending.Fate.REFUSED:
            refusals = self._refusals.get(config_id, 0) + 1
            self._refusals[config_id] = refusals
            if refusals >= REFUSALS:
                _drop(config_id, answer)
        pause = self._pause.get(config_id, FIRST)
        self._pause[config_id] = min(pause * 2, MOST)
        self._next[config_id] = time.monotonic() + pause
