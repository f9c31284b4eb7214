# SPDX-License-Identifier: Apache-2.0
"""Follow an operation that another process leads, with few requests.

A leader that records progress lives. So one poll lists what it has recorded,
and reads what has changed. If nothing has for a while its lease is read, and
what holds for all targets: a listing may lag behind, or other objects hide it.
"""

from typing import Any

from heat_plugins.objectstore import lease
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet.records import layout

# Seconds without progress after which the leader's lease is read: it may have
# released that, or have died.
_SILENCE = lease.EXPIRY / 3


class Follower(advancing.Advancer):
    """Advances an operation; while another process leads, it follows that."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        # The epoch of the process that leads, None if none may, and when that
        # has last shown that it lives.
        self._followed: int | None = None
        self._proved_at = 0.0
        # The digests of what it has recorded, by name.
        self._seen: dict[str, str] = {}

    def hand_over(self) -> bool:
        is_handed_over = super().hand_over()
        if is_handed_over:
            # That of a command was the first.
            self._follow_epoch(2)
        return is_handed_over

    def _lead(self) -> bool:
        if self._is_led():
            self._is_listed = self._op.ended and self._shows_end()
            if not (self._is_listed and self._is_asked()):
                return False
        return super()._lead()

    def _acquire(self, epoch: int | None = None) -> bool:
        is_leading = super()._acquire(epoch)
        self._follow_epoch(None if is_leading else epoch)
        return is_leading

    def _follow_epoch(self, epoch: int | None) -> None:
        self._followed, self._seen = epoch, {}
        self._proved_at = self._tools.monotonic()

    def _is_led(self) -> bool:
        """Read what has changed; say whether a process certainly leads."""
        if self._followed is None:
            return False
        now = self._tools.monotonic()
        before = self._op
        self._read_news(self._followed)
        # Anybody may write objects there, and none that is read as a change.
        is_led = self._op != before
        if not is_led and now - self._proved_at > _SILENCE:
            if not self._lease.is_held(self._followed):
                return False
            self._read_unlisted(self._followed)
            is_led = True
        if is_led:
            self._proved_at = now
        return True

    def _read_unlisted(self, epoch: int) -> None:
        """Read what has changed if what holds for all has."""
        control, _ = self._records.control(self._order, epoch, self._seal)
        if control != self._op.control:
            self._read(epoch)

    def _read(self, epoch: int) -> None:
        """Read all that the leader has recorded."""
        self._op, _ = self._records.operation(self._order, epoch, self._seal)

    def _read_news(self, epoch: int) -> None:
        """Read what has changed of what the leader has recorded."""
        listed = self._records.states(self._order, epoch)
        changed = {
            name
            for name, digest in listed.items()
            if not digest or self._seen.get(name) != digest
        }
        if layout.control(self._order.id, epoch) in changed:
            # The attempts must be no older than what holds for all.
            self._read(epoch)
        elif changed and self._op.attempts:
            self._op = self._records.reread(
                self._op, epoch, self._seal, changed
            )
        # A listing may lag behind, and leave some out.
        self._seen |= listed
