# SPDX-License-Identifier: Apache-2.0
"""Advancing an operation from a command, until it has ended."""

import argparse
import pathlib
import time

from osc_lib import exceptions

from heat_plugins import errors
from heat_plugins.osc import common
from heat_plugins.osc import operation_progress
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import operation as operations
from heat_plugins.timeline import operation_page

# Seconds between two steps: how that grows while nothing happens, and while
# another process advances the operation.
_GROWTH, _MOST, _FOLLOWING = 1.5, 5.0, 5.0

# Seconds for which Heat or the object store may be out of order, and between
# two pages.
_BUDGET, _PAGE = 300.0, 5.0

_CODES = {
    operations.Phase.COMPLETE: 0,
    operations.Phase.FAILED: common.FAILED,
    operations.Phase.TIMED_OUT: common.TIMED_OUT,
    operations.Phase.CANCELLED: common.CANCELLED,
}

_COMMAND = 'openstack software deployment operation'


class _TooLong(Exception):
    pass


class Follower:
    """Advances an operation in a command; sets the exit code of that.

    :param limit: seconds after which to stop waiting; None for no limit.
    :param page: the file of a page to write; None for none.
    """

    def __init__(
        self,
        command: common.Report,
        *,
        limit: float | None = None,
        page: pathlib.Path | None = None,
    ) -> None:
        self._command = command
        self._until = None if limit is None else time.monotonic() + limit
        self._page = page
        self._next_page = 0.0
        self._shown = operation_progress.Operation(command.progress)

    def start(self, advancer: advancing.Advancer) -> operations.Operation:
        """Start what may run at first, and leave the rest to others."""
        try:
            self._shown.changed(advancer.step())
            while advancer.is_busy:
                self._shown.changed(advancer.step())
        except errors.Unavailable as exc:
            # It is recorded, and goes on all the same.
            self._command.progress.say(f'Starting is retried later: {exc}')
        finally:
            advancer.release()
        found = advancer.operation
        write_page(self._page, found)
        if not found.ended:
            self._command.progress.say(
                'heat-engine goes on with it within a minute, if its '
                'operator has set that up; or wait, which does the same:',
                f'  {_COMMAND} wait {found.id}',
            )
        return found

    def follow(self, advancer: advancing.Advancer) -> operations.Operation:
        """Advance an operation to its end, or see another one do so."""
        code = None
        try:
            self._follow(advancer)
        except KeyboardInterrupt:
            code = common.INTERRUPTED
        except _TooLong:
            code = common.STILL_RUNNING
        finally:
            advancer.release()
        found = advancer.operation
        write_page(self._page, found)
        if code is not None and not found.ended:
            self._command.progress.say(
                'Stopped waiting; the operation goes on. Wait again, or '
                'cancel it:',
                f'  {_COMMAND} wait {found.id}',
                f'  {_COMMAND} cancel {found.id}',
            )
        self._command.exit_code = (
            _CODES.get(found.control.phase, common.STILL_RUNNING)
            if code is None
            else code
        )
        return found

    def _follow(self, advancer: advancing.Advancer) -> None:
        trouble, pause = None, advancing.POLL
        while True:
            before = advancer.operation
            try:
                found = advancer.step()
                trouble = None
            except errors.Unavailable:
                now = time.monotonic()
                trouble = trouble or now
                if now - trouble > _BUDGET:
                    raise
                found = before
            self._shown.changed(found)
            self._write(found)
            if found.ended and not advancer.is_leading:
                return
            if self._until is not None and time.monotonic() > self._until:
                raise _TooLong
            if advancer.is_busy:
                continue
            is_news = found.attempts != before.attempts
            pause = advancing.POLL if is_news else min(pause * _GROWTH, _MOST)
            rest = pause if advancer.is_leading else _FOLLOWING
            if self._until is not None:
                rest = min(rest, max(0.1, self._until - time.monotonic()))
            time.sleep(rest)

    def _write(self, found: operations.Operation) -> None:
        now = time.monotonic()
        if now >= self._next_page:
            self._next_page = now + _PAGE
            write_page(self._page, found)


def add_page(parser: argparse.ArgumentParser) -> None:
    """Add the option for a page."""
    parser.add_argument(
        '--output',
        metavar='<file>',
        type=_page,
        help='Write a page (.html) with all targets and their outputs; it '
        'refreshes itself while the operation goes on and the command waits',
    )


def _page(name: str) -> pathlib.Path:
    path = pathlib.Path(name)
    if path.suffix != '.html':
        raise argparse.ArgumentTypeError(f'{name} should end in .html')
    return path


def write_page(path: pathlib.Path | None, found: operations.Operation) -> None:
    """Write the page of an operation in one go."""
    if path is None:
        return
    draft = path.with_name(f'.{path.name}.new')
    try:
        draft.write_text(
            operation_page.draw(found, time.time()), encoding='utf-8'
        )
        draft.replace(path)
    except OSError as exc:
        raise exceptions.CommandError(
            f'{path} cannot be written: {exc.strerror}'
        ) from exc
