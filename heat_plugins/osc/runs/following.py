# SPDX-License-Identifier: Apache-2.0
"""Following runs and operations from a command, until they have ended."""

import argparse
import codecs
from collections import abc
from concurrent import futures
import itertools
import math
import pathlib
import shlex
import time
from typing import Any, TextIO

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import pools
from heat_plugins import retrying
from heat_plugins.osc import common
from heat_plugins.osc import private_files
from heat_plugins.osc import progress
from heat_plugins.osc.runs import operation_columns
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import deciding
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.follow import logs
from heat_plugins.runs.follow import settling
from heat_plugins.signals import live
from heat_plugins.timeline import operation_page

# Bytes of outputs that all readers together have in memory, twice: parts that
# wait for earlier ones, and parts to show. Each may have one part.
_ROOM = 32 * 1024 * 1024

# The most characters of what stands before each line.
_NAME = 200

# Lines that are printed at once.
_LINES = 1000


class Output:
    """Shows what runs print.

    :param show: returns what shows the output of a run.
    :param silent: whether to say nothing of servers that report at the end
        only.
    """

    def __init__(
        self,
        service: run_service.Runs,
        display: progress.Display,
        show: abc.Callable[[runs.Run], 'Raw | Lines'],
        *,
        silent: bool = False,
    ) -> None:
        self._service = service
        self._display = display
        self._show = show
        self._silent = silent
        # None for a run that has nothing more to show.
        self._tails: dict[str, tuple[logs.Tail, Raw | Lines] | None] = {}

    def add(self, run: runs.Run) -> None:
        """Show that of a run, too."""
        if run.id in self._tails:
            return
        sink = self._show(run)
        tail = self._service.tail(
            run,
            show=sink.show,
            note=lambda line: self._note(run, line),
        )
        self._tails[run.id] = tail, sink

    def _note(self, run: runs.Run, line: str) -> None:
        if not self._silent:
            self._display.say(f'Run {run.id}: {line}')

    def poll(self) -> None:
        """Show what has come since."""
        tails = [shown[0] for shown in self._tails.values() if shown]
        room = max(live.SLOT, _ROOM // max(1, len(tails)))
        pools.Pool().each(lambda tail: tail.fetch(room), tails)
        for tail in tails:
            tail.flush()

    def finish(self, run: runs.Run, *, waits: bool = True) -> None:
        """Show the rest of that of a run, and then no more.

        :param waits: whether the run has ended, and its server may send more;
            else only what has arrived is shown.
        """
        if shown := self._tails.get(run.id):
            tail, sink = shown
            if waits:
                tail.finish(run)
            else:
                tail.drain()
            sink.end()
            # Not before: the caller may retry what has failed.
            self._tails[run.id] = None


class Raw:
    """Writes output as it is; what a terminal would obey is escaped there."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder('utf-8')('replace')

    def show(self, content: bytes) -> None:
        if self._stream.isatty():
            self._stream.write(foreign.block(self._decoder.decode(content)))
        else:
            self._stream.buffer.write(content)
        self._stream.flush()

    def end(self) -> None:
        if self._stream.isatty():
            self._stream.write(foreign.block(self._decoder.decode(b'', True)))
            self._stream.flush()


class Lines:
    """Says output line by line; it wraps those that are too long.

    :param name: what stands before each line, with a colon.
    """

    def __init__(self, display: progress.Display, name: str = '') -> None:
        self._display = display
        self._before = f'{foreign.line(name, _NAME)}: ' if name else ''
        self._width = foreign.LINE - len(self._before)
        self._decoder = codecs.getincrementaldecoder('utf-8')('replace')
        self._rest = ''

    def show(self, content: bytes) -> None:
        *lines, rest = (self._rest + self._decoder.decode(content)).split('\n')
        # Not all of it: its end may be the next that comes.
        length = max(0, len(rest) - 1) // self._width * self._width
        self._rest = rest[length:]
        self._say([*lines, rest[:length]] if length else lines)

    def end(self) -> None:
        self._rest += self._decoder.decode(b'', True)
        if self._rest:
            self._say([self._rest])
            self._rest = ''

    def _say(self, lines: abc.Iterable[str]) -> None:
        shown = (
            self._before + piece
            for line in lines
            for part in self._pieces(line)
            # Escapes make it longer.
            for piece in self._pieces(foreign.line(part, None))
        )
        while some := list(itertools.islice(shown, _LINES)):
            self._display.say(*some)

    def _pieces(self, text: str) -> list[str]:
        """Divide a text into pieces that fit into a line."""
        starts = range(0, max(1, len(text)), self._width)
        return [text[start : start + self._width] for start in starts]


# The follower of an output also waits for the end of the run.
_QUICK = settling.Pace(most=2.0)

# Seconds between two pages.
_PAGE = 5.0

# Seconds for which a command that does not wait for the end of an operation
# waits until heat-engine has started its first runs.
_FIRST = 60.0


_COMMAND = 'openstack software deployment operation'


#: Says whether a member of an operation is wanted.
Wanted = abc.Callable[[operations.Operation, int], bool]


class _TooLong(Exception):
    """A command has waited for as long as it was told to."""


class _Follower:
    """Waits in a command for what runs, and sets its exit code.

    :param limit: seconds after which to stop waiting; None for no limit.
    :param output: shows what the runs print; None if that is not wanted.
    """

    def __init__(
        self,
        command: common.Command,
        *,
        limit: float | None = None,
        output: Output | None = None,
    ) -> None:
        self._command = command
        self._output = output
        self._until = time.monotonic() + (math.inf if limit is None else limit)

    def _await(
        self,
        wait: abc.Callable[[], None],
        states: abc.Callable[[], list[runs.State | operations.Phase]],
        hint: abc.Callable[[], abc.Sequence[str]],
    ) -> None:
        """Wait; the exit code is that of the worst state then.

        :param states: returns the states of what the command waits for.
        :param hint: returns what to say if it stops before they have ended.
        """
        code = None
        try:
            wait()
        except KeyboardInterrupt:
            code = common.INTERRUPTED
        except _TooLong:
            code = common.STILL_RUNNING
        reached = states()
        if code is not None and not all(state.ended for state in reached):
            self._command.progress.say(*hint())
        if code is None:
            code = max(map(common.code_of, reached), default=0)
        self._command.exit_code = code

    def _check_time(self) -> None:
        if time.monotonic() > self._until:
            raise _TooLong


class OperationFollower(_Follower):
    """Advances an operation in a command.

    :param page: the file of a page to write; None for none.
    :param wanted: says of which members to show the output.
    """

    def __init__(
        self,
        command: common.Report,
        *,
        page: pathlib.Path | None = None,
        wanted: Wanted = lambda operation, member: True,
        **more: Any,
    ) -> None:
        super().__init__(command, **more)
        self._page = page
        self._next_page = 0.0
        self._wanted = wanted
        self._shown = operation_columns.OperationProgress(command.progress)

    def start(self, advancer: advancing.Advancer) -> operations.Operation:
        """Start what may run at first, and leave the rest to others."""
        is_handed_over = False
        try:
            is_handed_over = self._hand_over(advancer)
            self._shown.changed(advancer.step())
            while advancer.is_leading and (
                advancer.is_busy or _is_over(advancer.operation)
            ):
                self._shown.changed(advancer.step())
            if is_handed_over:
                self._await_first(advancer)
        except errors.Unavailable as exc:
            # It is recorded, and continues nevertheless.
            self._command.progress.say(
                f'Cannot start all runs now; retrying: {exc}'
            )
        finally:
            advancer.release()
        operation = advancer.operation
        write_page(self._page, operation)
        if not (operation.ended or is_handed_over):
            self._command.progress.say(
                'If your cloud is set up for that, heat-engine advances it '
                'within a minute. To advance it yourself:',
                f'  {_COMMAND} wait {operation.id}',
            )
        return operation

    def _await_first(self, advancer: advancing.Advancer) -> None:
        """Wait until heat-engine has started all runs that may run now.

        How they continue is not shown: that is for commands that wait.
        """
        until = time.monotonic() + _FIRST
        while (
            not advancer.is_leading
            and _is_starting(advancer.operation)
            and time.monotonic() < until
        ):
            time.sleep(advancing.POLL)
            advancer.step()

    def _hand_over(self, advancer: advancing.Advancer) -> bool:
        """Let an engine advance a new operation; False if none does."""
        is_handed_over = advancer.hand_over()
        if is_handed_over:
            self._shown.changed(advancer.operation)
            self._command.progress.say(
                f'heat-engine advances operation {advancer.operation.id}'
            )
        return is_handed_over

    def follow(self, advancer: advancing.Advancer) -> operations.Operation:
        """Advance an operation to its end, or see another one do so."""
        try:
            self._await(
                lambda: self._follow(advancer),
                lambda: [advancer.operation.control.phase],
                lambda: _come_back(advancer.operation),
            )
        finally:
            advancer.release()
        write_page(self._page, advancer.operation)
        return advancer.operation

    def _follow(self, advancer: advancing.Advancer) -> None:
        outage = retrying.OutageBudget(
            self._command.progress.say, clock=time.monotonic
        )
        with outage.ridden_out():
            self._hand_over(advancer)
        while True:
            operation = advancer.operation
            with outage.ridden_out():
                operation = self._step(advancer)
            self._show_output(operation)
            self._shown.changed(operation)
            self._write(operation)
            if advancer.is_over:
                return
            self._check_time()
            most = math.inf if self._output is None else advancing.POLL
            rest = max(0.1, self._until - time.monotonic())
            time.sleep(min(advancer.pause, most, rest))

    def _step(self, advancer: advancing.Advancer) -> operations.Operation:
        """Advance it; many results take a while, and no output waits."""
        if self._output is None:
            return advancer.step()
        self._output.poll()
        with futures.ThreadPoolExecutor(1) as executor:
            step = executor.submit(advancer.step)
            while not futures.wait([step], advancing.POLL).done:
                self._output.poll()
        return step.result()

    def _show_output(self, operation: operations.Operation) -> None:
        if self._output is None:
            return
        for member, attempt in enumerate(operation.attempts):
            if attempt.state is None or not self._wanted(operation, member):
                continue
            run = overview.run_of(operation, member)
            self._output.add(run)
            if run.ended:
                # What a server has not reported must not hold up the others.
                self._output.finish(run, waits=run.state in runs.REPORTED)

    def _write(self, operation: operations.Operation) -> None:
        now = time.monotonic()
        if now >= self._next_page:
            self._next_page = now + _PAGE
            write_page(self._page, operation)


def _is_over(operation: operations.Operation) -> bool:
    """Say whether nothing is left to do but to record the end."""
    return not (operation.ended or operation.live or operation.pending)


def _is_starting(operation: operations.Operation) -> bool:
    """Say whether runs start now, or their targets are being decided on."""
    return any(
        attempt.state is operations.State.STARTING
        for attempt in operation.attempts
    ) or bool(deciding.advance(operation, time.time()).start)


def _come_back(operation: operations.Operation) -> list[str]:
    """Return lines; a reason may end in a command to copy."""
    control = operation.control
    lines = ['Stopped waiting; the operation continues.']
    if control.phase in (operations.Phase.PAUSED, operations.Phase.APPROVAL):
        lines = [
            f'Stopped waiting; the operation is {control.phase.value}.',
            control.reason,
        ]
    return [
        *lines,
        'Wait again, or cancel it:',
        f'  {_COMMAND} wait {operation.id}',
        f'  {_COMMAND} cancel {operation.id}',
    ]


def output(command: common.Command) -> Output:
    """Return what shows the output of an operation, by server."""
    display = command.progress
    service = common.service(command.app.client_manager)

    def lines(run: runs.Run) -> Lines:
        name = run.server_name or run.resource
        return Lines(display, f'{run.stack_name} {name}')

    return Output(service, display, lines, silent=True)


def follow(
    command: common.Report,
    parsed_args: argparse.Namespace,
    advancer: advancing.Advancer,
    page: pathlib.Path | None = None,
) -> operations.Operation:
    """Start a new operation; wait and show its output as far as asked for.

    :param parsed_args: with ``wait`` and ``follow``.
    """
    follower = OperationFollower(
        command,
        page=page,
        output=output(command) if parsed_args.follow else None,
    )
    if parsed_args.wait or parsed_args.follow:
        return follower.follow(advancer)
    return follower.start(advancer)


def write_page(
    path: pathlib.Path | None, operation: operations.Operation
) -> None:
    """Write the page of an operation."""
    if path is None:
        return
    with common.access('write', path):
        private_files.write(path, operation_page.draw(operation, time.time()))


class RunFollower(_Follower):
    """Waits for runs in a command.

    :param stack: the stack as the user has named it, to name it again.
    """

    def __init__(
        self,
        command: common.Command,
        service: run_service.Runs,
        stack: str,
        **more: Any,
    ) -> None:
        super().__init__(command, **more)
        self._service = service
        self._stack = stack
        self.shown = progress.Runs(command.progress)

    def started(self, run: runs.Run) -> None:
        """Say that a run is on its way, and follow it."""
        self.shown.started(run)
        if self._output:
            self._output.add(run)

    def wait(self, started: abc.Sequence[runs.Run]) -> list[runs.Run]:
        """Wait for runs of one root stack; return them as they end."""
        if not started:
            return []
        waiter = self._service.waiter(
            started[0].stack_id,
            self._changed,
            self._tick,
            _QUICK if self._output else None,
            note=self._command.progress.say,
        )
        for run in started:
            waiter.add(run)
            self.shown.changed(run)
        self._await(
            lambda: self._see_to_the_end(waiter),
            lambda: [run.state for run in waiter.all],
            lambda: self._come_back(waiter.pending),
        )
        return waiter.all

    def _see_to_the_end(self, waiter: settling.Waiter) -> None:
        while waiter.pending:
            waiter.step()
        for run in waiter.all:
            if self._output:
                self._output.finish(run)

    def _changed(self, run: runs.Run) -> None:
        if self._output and run.ended:
            # What it has printed comes before what became of it.
            self._output.finish(run)
        self.shown.changed(run)

    def _tick(self) -> None:
        self.shown.tick()
        if self._output:
            self._output.poll()
        self._check_time()

    def _come_back(self, pending: abc.Sequence[runs.Run]) -> list[str]:
        noun = 'run continues' if len(pending) == 1 else 'runs continue'
        ids = ' '.join(run.id for run in pending)
        stack = shlex.quote(self._stack)
        prefix = 'openstack software deployment run'
        return [
            f'Stopped waiting; the {noun}. Wait again, or cancel:',
            f'  {prefix} wait {stack} {ids}',
            f'  {prefix} cancel {stack} {ids}',
        ]
