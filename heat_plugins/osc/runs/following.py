# SPDX-License-Identifier: Apache-2.0
"""Following runs from a command, until they have ended."""

import argparse
import codecs
from collections import abc
import dataclasses
import functools
import itertools
import math
import pathlib
import time
from typing import Any, Final, TextIO

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins import retrying
from heat_plugins.clients import runs as run_client
from heat_plugins.objectstore import stores
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc import private_files
from heat_plugins.osc import progress
from heat_plugins.osc.runs import run_columns
from heat_plugins.runs import logs
from heat_plugins.runs import overview
from heat_plugins.runs import run_objects
from heat_plugins.runs import run_records
from heat_plugins.signals import live
from heat_plugins.timeline import run_page

# Bytes of outputs that all readers together have in memory, twice: parts that
# wait for earlier ones, and parts to show. Each may have one part.
_ROOM = 32 * 1024 * 1024

# The most characters of what stands before each line.
_NAME = 200

# Lines that are printed at once.
_LINES = 1000

# Seconds between two requests for a run, at first and at most; and between
# two for all that may have changed: an answer of a server makes no version.
_LEAST, _MOST, _GROWTH = 1.0, 5.0, 1.2
_REFRESH = 10.0

# Seconds between two pages.
_PAGE = 5.0

# The counts of a run with one target whose server has reported its start.
_RUNNING = {run_records.State.RUNNING.value: 1}

_HELD = (run_records.Phase.PAUSED.value, run_records.Phase.APPROVAL.value)

#: Targets whose servers have been given nothing.
NOT_BEGUN = (
    overview.PENDING,
    overview.NOT_STARTED,
    run_records.State.SKIPPED.value,
)

#: The page of a run.
PAGE: Final = command_line.value(
    '--output',
    '<file>',
    'Write a page (.html) with all targets and their outputs; it refreshes '
    'itself while the command waits',
    type=command_line.file_of('.html'),
)


class Raw:
    """Writes output as bytes; for a terminal it escapes control characters."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder('utf-8')('replace')

    def show(self, content: bytes, *, is_last: bool = False) -> None:
        """Print a part of a log as it is, but safe for a terminal."""
        if self._stream.isatty():
            text = self._decoder.decode(content, is_last)
            self._stream.write(foreign.block(text))
        else:
            self._stream.buffer.write(content)
        self._stream.flush()

    def end(self) -> None:
        """Print what is left at the end of a log."""
        self.show(b'', is_last=True)


class Lines:
    """Prints output line by line; long lines are wrapped.

    :param say: prints lines.
    :param name: what stands before each line, with a colon.
    """

    def __init__(self, say: abc.Callable[..., object], name: str = '') -> None:
        self._print = say
        self._before = f'{foreign.line(name, _NAME)}: ' if name else ''
        self._width = foreign.LINE - len(self._before)
        self._decoder = codecs.getincrementaldecoder('utf-8')('replace')
        self._rest = ''

    def show(self, content: bytes) -> None:
        """Print the lines of a log that are complete."""
        *lines, rest = (self._rest + self._decoder.decode(content)).split('\n')
        # Not all of it: its end may be the next that comes.
        length = max(0, len(rest) - 1) // self._width * self._width
        self._rest = rest[length:]
        self._say([*lines, rest[:length]] if length else lines)

    def end(self) -> None:
        """Print a last line that has no end."""
        self._rest += self._decoder.decode(b'', True)
        if self._rest:
            self._say([self._rest])
            self._rest = ''

    def _say(self, lines: abc.Iterable[str]) -> None:
        """Print lines of a server's log, each behind its name."""
        shown = (
            self._before + piece
            for line in lines
            for part in self._pieces(line)
            # Escapes make it longer.
            for piece in self._pieces(foreign.line(part, None))
        )
        while some := list(itertools.islice(shown, _LINES)):
            self._print(*some)

    def _pieces(self, text: str) -> list[str]:
        """Divide a text into pieces that fit into a line."""
        starts = range(0, max(1, len(text)), self._width)
        return [text[start : start + self._width] for start in starts]


class Output:
    """The live output of targets of runs.

    :param show: returns what shows the output of a target.
    :param wanted: says of which targets.
    """

    def __init__(
        self,
        client: run_client.Runs,
        store: stores.ObjectStore,
        display: progress.Display,
        show: abc.Callable[[run_client.Run, run_client.Target], Raw | Lines],
        wanted: abc.Callable[[run_client.Target], bool] = lambda target: True,
    ) -> None:
        self._client = client
        self._store = store
        self._display = display
        self._show = show
        self._wanted = wanted
        # By run and root stack.
        self._sources: dict[tuple[str, str], logs.RunLogs] = {}
        # None for an attempt that has nothing more to show.
        self._tails: dict[
            tuple[str, int, int], tuple[logs.Tail, Raw | Lines] | None
        ] = {}

    def update(self, run: run_client.Run) -> None:
        """Show new output of started targets, and the rest of ended ones."""
        begun = [
            each
            for each in self._client.targets(run.id)
            if each.state not in NOT_BEGUN and self._wanted(each)
        ]
        for target in begun:
            key = run.id, target.number, target.attempt
            if key not in self._tails:
                self._tails[key] = self._tail(run, target)
            shown = self._tails[key]
            if shown and (run.ended or target.state in run_columns.ENDED):
                tail, sink = shown
                # What a server has not reported must not hold up the others.
                if target.state in run_records.REPORTED or len(begun) == 1:
                    tail.finish(target.state)
                else:
                    tail.drain()
                sink.end()
                # Not before: the caller may retry what has failed.
                self._tails[key] = None

    def drain(self) -> None:
        """Show the output that has arrived until now."""
        for shown in self._tails.values():
            if shown:
                shown[0].drain()
                shown[1].end()

    def _tail(
        self, run: run_client.Run, target: run_client.Target
    ) -> tuple[logs.Tail, Raw | Lines]:
        """Return where a target's log comes from, and what prints it."""
        run_id = run.id
        place = run_id, target.stack_id
        objects = run_objects.RunObjects(
            self._store, target.stack_id, run_id, target.number, target.attempt
        )
        if place not in self._sources:
            # Other runs have folders of their own.
            folder = objects.log[: objects.log.index(run_id) + len(run_id)]
            self._sources[place] = logs.RunLogs(
                self._store, objects.container, f'{folder}/', time.monotonic
            )
        sink = self._show(run, target)
        tail = logs.Tail(
            logs.Reader(self._sources[place], objects.log),
            lambda: whole_outputs(
                self._store,
                run_id,
                self._client.target(run_id, target.number, outputs=True),
            ),
            show=sink.show,
            # Of many servers that would be much.
            note=self._display.say if run.targets == 1 else lambda note: None,
            clock=time.monotonic,
            sleep=lambda seconds: time.sleep(seconds),
        )
        return tail, sink

    def poll(self) -> None:
        """Show the output that has arrived since the last poll."""
        tails = [shown[0] for shown in self._tails.values() if shown]
        room = max(live.SLOT, _ROOM // max(1, len(tails)))
        pools.Pool().each(lambda tail: tail.fetch(room), tails)
        for tail in tails:
            tail.flush()


def whole_outputs(
    store: stores.ObjectStore, run_id: str, target: run_client.Target
) -> abc.Mapping[str, Any]:
    """Return the outputs of a target, long ones whole if they are kept."""
    objects = run_objects.RunObjects(
        store, target.stack_id, run_id, target.number, target.attempt
    )
    return objects.outputs(target.outputs or {}, target.cut)


@dataclasses.dataclass(kw_only=True)
class _Followed:
    """A run that is followed.

    :ivar is_shown: whether all is shown that has changed.
    :ivar due: when to read all of it again, by the monotonic clock.
    :ivar report: what the server of a single target says.
    :ivar target: the one that is waited for; None for all.
    """

    run: run_client.Run
    shown: run_columns.RunProgress
    is_shown: bool = False
    target: run_client.Target | None = None
    due: float = 0.0
    report: str = ''

    @property
    def ended(self) -> bool:
        """Whether nothing more comes of this run."""
        target = self.target
        return self.run.ended or bool(
            target and target.state in run_columns.ENDED
        )

    @property
    def code(self) -> int:
        """The exit code for how it has ended."""
        if self.target is not None:
            return common.code_of(run_records.State(self.target.state))
        return common.code_of(run_records.Phase(self.run.state))


class Follower:
    """Follows runs from a command until they have ended.

    :param limit: seconds after which to stop waiting; None for no limit.
    :param output: shows what the targets print; None if that is not wanted.
    :param page: the file of a page of the run; None for none.
    :param target: the number of the target to wait for; None for all.
    """

    def __init__(
        self,
        command: common.Command,
        client: run_client.Runs,
        *,
        limit: float | None = None,
        output: Output | None = None,
        page: pathlib.Path | None = None,
        target: int | None = None,
    ) -> None:
        self._target = target
        self._command = command
        self._client = client
        self._limit = limit
        self._output = output
        self._page = page
        self._next_page = 0.0
        self._followed: list[_Followed] = []

    def wait(self, run_ids: abc.Iterable[str]) -> list[run_client.Run]:
        """Wait for runs; return them as they are then.

        The exit code of the command is that of the worst state.

        :raises errors.ServiceError: Heat does not answer for too long.
        """
        until = time.monotonic() + (
            math.inf if self._limit is None else self._limit
        )
        code = None
        try:
            for run_id in run_ids:
                failures = functools.partial(
                    self._client.targets, run_id, state=run_columns.FAILED
                )
                show = functools.partial(
                    retrying.insist,
                    self._client.show,
                    run_id,
                    on=(errors.NotFound,),
                    seconds=run_client.GRACE,
                    most=run_client.POLL,
                    sleep=time.sleep,
                    clock=time.monotonic,
                )
                self._followed.append(
                    _Followed(
                        run=common.read_first(
                            self._command.progress, show, self._limit
                        ),
                        shown=run_columns.RunProgress(
                            self._command.progress, failures
                        ),
                    )
                )
            if not self._follow(until):
                code = common.STILL_RUNNING
        except KeyboardInterrupt:
            code = common.INTERRUPTED
        pending = [each.run for each in self._followed if not each.ended]
        if pending:
            noun = 'run continues' if len(pending) == 1 else 'runs continue'
            lines = [f'Stopped waiting; the {noun}.']
            for run in pending:
                if run.state in _HELD:
                    # The reason may end in a command.
                    lines += [f'Run {run.id} is {run.state}.', run.reason]
            ids = ' '.join(run.id for run in pending)
            prefix = 'openstack software deployment run'
            self._command.progress.say(
                *lines,
                'Wait again, or cancel:',
                f'  {prefix} wait {ids}',
                f'  {prefix} cancel {ids}',
            )
        elif self._followed or code is None:
            code = max((each.code for each in self._followed), default=0)
        self._command.exit_code = code or 0
        return [each.run for each in self._followed]

    def _follow(self, until: float) -> bool:
        """Follow the runs; say whether they have ended in time."""
        outage = retrying.OutageBudget(
            self._command.progress.say, clock=time.monotonic
        )
        pause, due = _LEAST, 0.0
        while True:
            now = time.monotonic()
            if now >= due:
                for each in self._followed:
                    if not (each.ended and each.is_shown):
                        with outage.ridden_out():
                            self._poll(each)
                due = now + pause
                pause = min(_MOST, pause * _GROWTH)
            pending = [each for each in self._followed if not each.ended]
            total = len(self._followed)
            if total > 1:
                self._command.progress.show(
                    'runs have ended', total - len(pending), total
                )
            elif pending:
                (each,) = pending
                run, counted = each.run, run_columns.counted(each.run.counts)
                self._command.progress.show(
                    f'{run.action}: {counted} {each.report}'.rstrip(),
                    run_columns.done(run),
                    run.targets,
                    since=heat_values.moment(run.created_at),
                )
            if all(e.ended and e.is_shown for e in self._followed):
                return True
            now = time.monotonic()
            if now >= until:
                return False
            wake = min(due, until, now + _LEAST if self._output else due)
            time.sleep(max(0.1, wake - now))
            if self._output:
                self._output.poll()

    def _poll(self, each: _Followed) -> None:
        """Read a run if it has changed, and show it then."""
        if each.is_shown:
            self._read(each)
        if each.is_shown:
            return
        run = each.run
        if self._output:
            # What it has printed comes before what became of it.
            self._output.update(run)
        if self._target is not None:
            each.target = self._client.target(run.id, self._target)
        each.shown.changed(run)
        now = time.monotonic()
        if self._page and (run.ended or now >= self._next_page):
            self._next_page = now + _PAGE
            write_run_page(self._page, self._client, run)
        each.is_shown = True

    def _read(self, each: _Followed) -> None:
        """Ask how a run goes, if it is time."""
        now = time.monotonic()
        is_known = now < each.due and self._target is None
        version = each.run.version if is_known else None
        try:
            run = self._client.newer(each.run.id, version)
        except run_client.NoDoor as exc:
            # As long as engines are being upgraded.
            raise errors.Unavailable(str(exc)) from exc
        if version is None:
            each.due = now + (_MOST if self._output else _REFRESH)
        if run is None:
            return
        each.is_shown = run == each.run
        each.run = run
        if version is None and run.counts == _RUNNING:
            # What the server of a single target reports.
            target = self._client.target(run.id, 0)
            percent = target.progress
            parts = ['' if percent is None else f'{percent:.0f}%']
            text = ' '.join(filter(None, [*parts, target.message]))
            display = self._command.progress
            if text != each.report and not display.live:
                display.say(f'Run {run.id}: running {text}')
            each.report = text


def follow(
    command: common.Command,
    parsed_args: argparse.Namespace,
    client: run_client.Runs,
    run: run_client.Run,
) -> run_client.Run:
    """Wait for a run, and show its output, as far as that is asked for.

    :param parsed_args: with ``wait``, ``follow`` and ``output``.
    """
    page = parsed_args.output
    if parsed_args.wait or parsed_args.follow:
        output = None
        if parsed_args.follow:
            output = Output(
                client,
                common.live_store(command.app.client_manager),
                command.progress,
                lambda run, target: Lines(
                    command.progress.say,
                    target.fault.name if run.targets > 1 else '',
                ),
            )
        follower = Follower(command, client, output=output, page=page)
        return (*follower.wait([run.id]), run)[0]
    if page:
        write_run_page(page, client, run)
    return run


def write_run_page(
    path: pathlib.Path, client: run_client.Runs, run: run_client.Run
) -> None:
    """Write the page of a run."""
    targets = list(client.targets(run.id, outputs=True))
    with common.access('write', path):
        private_files.write(path, run_page.draw(run, targets, time.time()))


def shown(client: run_client.Runs, run: run_client.Run) -> common.Shown:
    """Return columns and values of a run; reads the targets that it shows."""
    states = () if run.targets == 1 else run_columns.FAILED
    if run.targets > 1 and not run.failed:
        return run_columns.one(run)
    targets = client.targets(run.id, state=states, outputs=True)
    return run_columns.one(run, list(targets))
