# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment run …``, but for ``start``."""

import argparse
from collections import abc
import dataclasses
import functools
import itertools
import json
import pathlib
import time
from typing import Any, Final

from osc_lib import exceptions

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.clients import runs as run_client
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc import private_files
from heat_plugins.osc.runs import following
from heat_plugins.osc.runs import run_columns
from heat_plugins.runs import overview
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs.targets import stack_tree
from heat_plugins.signals import body

# Seconds for a server to stop what it has started: it asks every 2 s, a
# script that ignores SIGTERM has 5 s, and heat-engine polls for the result.
_REACTION, _POLL = 30, 1.0

_PHASES = [phase.value for phase in run_records.Phase]
_ENDED = [phase.value for phase in run_records.Phase if phase.ended]

#: The target that a command is about.
TARGET: Final = command_line.value(
    '--target',
    '<target>',
    'Only this target: its number, its resource, or the name or ID of its '
    'server',
    action=command_line.Once,
)
#: Which attempts a command shows.
ATTEMPT: Final = command_line.number(
    '--attempt',
    '<number>',
    'Show the attempt of this number on each target that had one (default: '
    'the last)',
)
_WAIT: Final = command_line.flag(
    '--wait',
    f'Wait until servers have stopped the script, for at most {_REACTION} s',
)


def _run(**more: Any) -> command_line.Argument:
    """Return the run, or the runs, that a command is about."""
    text = 'ID of the run, or its beginning or end'
    return command_line.value('run', '<run>', text, **more)


class RunCommand(common.Report):
    """A command about runs of the project."""

    arguments: command_line.Arguments = (_run(),)

    @functools.cached_property
    def runs(self) -> run_client.Runs:
        return common.runs(self.app.client_manager)

    def targets(
        self,
        run_id: str,
        name: str | None = None,
        stack: str | None = None,
        attempt: int | None = None,
        **more: Any,
    ) -> list[run_client.Target]:
        """Return the targets of a run, or the one that a user has named.

        :param stack: the name or ID of the stack that they are in.
        :param more: as `run_client.Runs.targets` takes it.
        :raises exceptions.CommandError: there are none of that name, or none
            had such an attempt.
        """
        listed = list(self.runs.targets(run_id, attempt=attempt, **more))
        if attempt and not (
            listed or any(self.runs.targets(run_id, attempt=attempt))
        ):
            raise exceptions.CommandError(
                f'No target of run {run_id} has had an attempt {attempt}'
            )
        if stack is not None:
            known = {text for e in listed for text in (e.stack, e.stack_id)}
            listed = [e for e in listed if stack in (e.stack, e.stack_id)]
            if not listed:
                raise exceptions.CommandError(
                    f'Run {run_id} has no target in stack '
                    + bounds.shortened(stack)
                    + bounds.did_you_mean(stack, known)
                )
        return listed if name is None else [named(run_id, listed, name)]


def named(
    run_id: str, known: abc.Sequence[run_client.Target], name: str
) -> run_client.Target:
    """Return the target that a user has named.

    :raises exceptions.CommandError: none has that name, or several have.
    """
    matching = [
        each
        for each in known
        if name in (str(each.number), each.resource)
        or name in (each.server, each.server_name)
    ]
    # The number of one may be the name of another.
    numbered = [each for each in matching if name == str(each.number)]
    matching = numbered or matching
    if not matching:
        names = {
            text
            for each in known
            for text in (each.resource, each.server, each.server_name or '')
        }
        raise exceptions.CommandError(
            f'Run {run_id} has no target {bounds.shortened(name)}'
            + bounds.did_you_mean(name, names - {''})
        )
    if len(matching) > 1:
        places = bounds.listed(
            f'{each.number} ({each.stack} {each.resource}, server ID '
            f'{each.server})'
            for each in matching
        )
        raise exceptions.CommandError(
            f'Run {run_id} has several targets {bounds.shortened(name)}: '
            f'{places}. Give the number of one'
        )
    return matching[0]


class ListRuns(RunCommand):
    """List the runs of the project, the newest first.

    An empty list is no error; a stack that does not exist is one.
    """

    example = '--stack shop --failed --since 12h'

    arguments = (
        command_line.value(
            '--stack',
            '<stack>',
            'Only runs with targets in a stack (name, or ID); it may be '
            'deleted',
        ),
        command_line.value(
            '--server',
            '<server>',
            'Only runs with a target on a server: path of its resource, or '
            'its ID',
        ),
        command_line.value('--action', '<action>', 'Only runs of an action'),
        command_line.either(
            command_line.choice('--state', _PHASES, 'Only runs in a state'),
            command_line.flag(
                '--failed', 'Only runs that failed or timed out'
            ),
        ),
        command_line.value(
            '--who', '<user>', 'Only runs that this user has started'
        ),
        command_line.value(
            '--schedule',
            '<schedule>',
            'Only runs that a schedule has started (its ID)',
        ),
        command_line.value(
            '--since',
            '<time>',
            'Only runs that started at a time or later: a day (today, '
            'yesterday, 2026-11-20), a time (2026-11-20T22:00), in UTC '
            'without --local-time, or an age (30min, 12h, 7d)',
            type=command_line.Since,
        ),
        command_line.value(
            '--until',
            '<time>',
            'Only runs that started at a time or before',
            type=command_line.Since,
        ),
        command_line.number(
            '--limit',
            '<number>',
            'Maximum number of runs to list (default: %(default)s)',
            default=run_store.PAGE,
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        stack = parsed_args.stack
        listed = self.runs.list(
            stack=stack,
            server=parsed_args.server,
            action=parsed_args.action,
            state=_states(parsed_args),
            who=parsed_args.who,
            schedule=parsed_args.schedule,
            since=parsed_args.since,
            until=parsed_args.until,
            limit=min(parsed_args.limit, run_store.PAGE),
        )
        runs = list(itertools.islice(listed, parsed_args.limit))
        if stack and not runs and not any(self.runs.list(stack=stack)):
            # Refuses a stack that does not exist.
            heat = common.orchestration(self.app.client_manager)
            stack_tree.stack(heat, stack)
        schedule = parsed_args.schedule
        if schedule and not any(self.runs.list(schedule=schedule, limit=1)):
            self.log.warning(
                'No schedule with the ID %s has started a run; "openstack '
                'software deployment schedule list -f json" has the IDs',
                schedule,
            )
        return run_columns.many(runs)


def _states(parsed_args: argparse.Namespace) -> list[str]:
    """Return the states that are asked for; none for all."""
    if parsed_args.failed:
        return list(run_columns.FAILED)
    return [parsed_args.state] if parsed_args.state else []


class ShowRun(RunCommand):
    """Show a run, its targets, or one of them."""

    example = '5bd8 --watch'

    arguments = (
        *RunCommand.arguments,
        command_line.flag('--targets', 'List its targets'),
        command_line.either(
            command_line.flag(
                '--failed', 'List the targets that failed or timed out'
            ),
            command_line.choice(
                '--state', overview.COUNTED, 'List the targets in a state'
            ),
            TARGET,
        ),
        ATTEMPT,
        command_line.flag('--watch', 'Follow the run until it has ended'),
        following.PAGE,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        watch = parsed_args.watch
        run = common.read_first(
            self.progress,
            lambda: self.runs.show(self.runs.run_id(parsed_args.run)),
            None if watch else 0,
        )
        if watch:
            follower = following.Follower(
                self, self.runs, page=parsed_args.output
            )
            (run,) = follower.wait([run.id]) or [run]
            if self.exit_code != common.INTERRUPTED:
                # The question was what it does, not whether it succeeds.
                self.exit_code = 0
        elif parsed_args.output:
            following.write_run_page(parsed_args.output, self.runs, run)
        states, number = _states(parsed_args), parsed_args.attempt
        if parsed_args.target:
            (target,) = self.targets(
                run.id, parsed_args.target, attempt=number, outputs=True
            )
            return run_columns.target(target)
        if parsed_args.targets or states or number:
            return run_columns.targets(
                self.targets(
                    run.id, state=states, attempt=number, outputs=True
                )
            )
        return following.shown(self.runs, run)


class WaitRun(RunCommand):
    """Wait until runs, or one target of a run, have ended.

    Exit codes: 0 success, 3 failed, 4 timed out, 5 cancelled, 6 not ended
    when --timeout had passed, 130 interrupted; of several runs the largest.
    """

    example = '5bd8 --timeout 600'

    arguments = (
        _run(nargs='*'),
        command_line.value(
            '--stack',
            '<stack>',
            'Wait for all runs in progress with targets in a stack (name or '
            'ID)',
        ),
        TARGET,
        command_line.number(
            '--timeout',
            '<seconds>',
            'Stop waiting after this many seconds; the runs continue',
        ),
        following.PAGE,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        names, stack = parsed_args.run, parsed_args.stack
        if bool(names) == bool(stack):
            raise exceptions.CommandError('Name a run, or give --stack')
        name = parsed_args.target
        if (parsed_args.output or name) and len(names) != 1:
            raise exceptions.CommandError('--output and --target need one run')

        def read() -> list[str]:
            if names:
                return list(dict.fromkeys(map(self.runs.run_id, names)))
            going_on = [each for each in _PHASES if each not in _ENDED]
            listed = self.runs.list(stack=stack, state=going_on)
            return [run.id for run in listed]

        limit = parsed_args.timeout
        run_ids = common.read_first(self.progress, read, limit)
        number = None
        if name:
            (target,) = self.targets(run_ids[0], name)
            number = target.number
        follower = following.Follower(
            self,
            self.runs,
            limit=limit,
            page=parsed_args.output,
            target=number,
        )
        ended = follower.wait(run_ids)
        if len(names) == len(ended) == 1:
            return following.shown(self.runs, ended[0])
        return run_columns.many(ended)


class PauseRun(RunCommand):
    """Start nothing further of a run; what is in progress continues."""

    example = '5bd8'
    do = run_client.Runs.pause

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        run_id = self.runs.run_id(parsed_args.run)
        return following.shown(self.runs, type(self).do(self.runs, run_id))


class ResumeRun(PauseRun):
    """Resume a run that is paused or waits for approval."""

    do = run_client.Runs.resume


class RetryRun(RunCommand):
    """Run again where a run failed, timed out or did not start.

    Exit codes with --wait are those of "run wait".
    """

    example = '5bd8 --wait'

    arguments = (
        *RunCommand.arguments,
        command_line.value(
            '--only',
            '<state or name>',
            'Retry only targets in a state (failed, timed-out, not-started, '
            'cancelled, skipped), or those of a server or resource',
        ),
        command_line.flag('--wait', 'Wait until the run has ended'),
        command_line.flag(
            '--follow',
            "Wait, and print the servers' output on standard error",
        ),
        following.PAGE,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        if parsed_args.follow:
            # Before anything starts.
            common.live_store(self.app.client_manager)
        run_id = self.runs.run_id(parsed_args.run)
        run = self.runs.retry(run_id, parsed_args.only)
        return following.shown(
            self.runs, following.follow(self, parsed_args, self.runs, run)
        )


class CancelRun(RunCommand):
    """Cancel runs, or one target of a run, and withdraw it from its server.

    A server that has not fetched the script never runs it. A server that has
    started it stops it if it has heat-config-supervisor; any other runs it to
    its end, and nothing else until then. A later result is kept as
    late_result.

    Exit codes with --wait: 0 stopped or ended, 6 a server has not reacted.
    """

    example = '5bd8 --wait'

    arguments = (_run(nargs='+'), TARGET, _WAIT)

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        name = parsed_args.target
        if name and len(parsed_args.run) > 1:
            raise exceptions.CommandError('--target needs one run')

        def cancel(run: str) -> tuple[run_client.Run, int | None]:
            run_id, number = self.runs.run_id(run), None
            if name:
                (target,) = self.targets(run_id, name)
                number = target.number
            return self.runs.cancel(run_id, number), number

        cancelled = self.each(cancel, parsed_args.run)
        if not parsed_args.wait:
            self.log.warning(
                'A server with heat-config-supervisor stops a started '
                'script, and --wait waits for that. Any other server runs '
                'the script to its end, and nothing else until then'
            )
        else:
            end = time.monotonic() + _REACTION
            for run, number in cancelled:
                self._await_stop(run.id, number, end)
            cancelled = [(self.runs.show(run.id), n) for run, n in cancelled]
        if len(parsed_args.run) == len(cancelled) == 1:
            return following.shown(self.runs, cancelled[0][0])
        return run_columns.many(run for run, _ in cancelled)

    def _await_stop(self, run_id: str, number: int | None, end: float) -> None:
        """Wait until servers have stopped a cancelled run.

        The exit code says whether all have reacted.
        """
        while True:
            targets = [
                each
                for each in self.runs.targets(run_id)
                if number in (None, each.number)
            ]
            # Of many, those are waited for that have reported their start.
            working = [
                each
                for each in targets
                if each.started_at is not None
                and (
                    each.state not in run_columns.ENDED
                    or (
                        each.state == run_records.State.CANCELLED.value
                        and each.late_result is None
                        and (len(targets) == 1 or each.reported_at is not None)
                    )
                )
            ]
            if not working or time.monotonic() >= end:
                break
            time.sleep(_POLL)
        for each in targets:
            if each.late_result is not None:
                self.progress.say(f'{each.fault.name}: {each.reason}')
        for each in working:
            self.exit_code = common.STILL_RUNNING
            self.progress.say(
                f'{each.fault.name}: the server has not reacted. It is '
                'unreachable, or has no heat-config-supervisor. If the '
                'script has started, it continues, and the server runs '
                'nothing else until it ends'
            )


class DeleteRun(RunCommand):
    """Delete runs that have ended, with the outputs of their targets."""

    example = '5bd8'

    arguments = (
        _run(nargs='*'),
        command_line.flag('--all', 'Delete all ended runs'),
        command_line.value(
            '--stack',
            '<stack>',
            'With --all: only runs with targets in a stack (name, or ID)',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        names, stack = parsed_args.run, parsed_args.stack
        if bool(names) == parsed_args.all or (names and stack):
            raise exceptions.CommandError('Name a run, or give --all')
        if parsed_args.all:
            listed = self.runs.list(stack=stack, state=_ENDED)
            names = [run.id for run in listed]

        def delete(name: str) -> dict[str, str]:
            run_id = self.runs.run_id(name)
            self.runs.delete(run_id)
            return {'id': run_id}

        return ('id',), common.Many(self.each(delete, names), ('id',))


_LISTED = ('stack', 'resource', 'server', 'state', 'outputs')

# Files that could not be written and are named, each with the reason.
_NAMED = 10


class ShowOutput(RunCommand):
    """Show the outputs of a run: what each server printed and returned."""

    example = '5bd8 --output-dir backup-logs'

    arguments = (
        *RunCommand.arguments,
        command_line.value(
            'output', '<output>', 'Only this output (default: all)', nargs='?'
        ),
        TARGET,
        command_line.value(
            '--stack', '<stack>', 'Only targets in a stack (name or ID)'
        ),
        command_line.flag('--failed', 'Only targets that failed or timed out'),
        ATTEMPT,
        command_line.flag(
            '--whole', 'Show long outputs completely, not only their ends'
        ),
        command_line.value(
            '--output-dir',
            '<folder>',
            'Write each complete output to a file '
            '<folder>/<stack>/<resource>/<output> that only you can read, '
            'and show how many were written',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        run_id = self.runs.run_id(parsed_args.run)
        targets = self.targets(
            run_id,
            parsed_args.target,
            stack=parsed_args.stack,
            attempt=parsed_args.attempt,
            outputs=True,
        )
        is_one = len(targets) == 1
        if parsed_args.failed:
            targets = [e for e in targets if e.state in run_columns.FAILED]
        if parsed_args.output_dir:
            return self._save(parsed_args.output_dir, run_id, targets)
        wanted, is_whole = parsed_args.output, parsed_args.whole
        shown = [self._outputs(run_id, each, is_whole) for each in targets]
        known = {name for each in shown for name in each}
        if wanted is not None and wanted not in known:
            raise exceptions.CommandError(
                f'Run {run_id} has no output {bounds.shortened(wanted)}; '
                f'there are: {bounds.listed(sorted(known)) or "none"}'
            )
        if wanted is not None:
            shown = [
                {name: value for name, value in each.items() if name == wanted}
                for each in shown
            ]
        if not (is_one and targets):
            return run_columns.targets(
                (
                    dataclasses.replace(each, outputs=outputs)
                    for each, outputs in zip(targets, shown, strict=True)
                ),
                _LISTED,
                outputs=lambda value: columns.Said(value, _without_success),
            )
        for name, length in targets[0].cut.items():
            if name in shown[0] and not is_whole:
                self.log.warning(
                    'The last %(tail)d of %(all)d characters of %(name)s; '
                    '--whole shows all',
                    {
                        'tail': len(str(shown[0][name])),
                        'all': length,
                        'name': name,
                    },
                )
        return common.one(shown[0])

    def _outputs(
        self, run_id: str, target: run_client.Target, is_whole: bool
    ) -> abc.Mapping[str, Any]:
        """Return the outputs of a target.

        :raises errors.Error: long ones cannot be read.
        """
        if not (is_whole and target.cut):
            return target.outputs or {}
        store = common.store(self.app.client_manager)
        try:
            return following.whole_outputs(store, run_id, target)
        except errors.NoObjectStore as exc:
            raise errors.NoObjectStore(
                'Without an object store, heat-engine keeps only the ends of '
                f'outputs over its limit (run_output_limit). {exc}'
            ) from exc

    def _save(
        self,
        folder: str,
        run_id: str,
        targets: abc.Sequence[run_client.Target],
    ) -> common.Shown:
        """Write the outputs of a run's targets into a folder, a file each."""
        with common.access('write', folder):
            path = private_files.folder(pathlib.Path(folder))
        files, refused = 0, []
        for target in targets:
            place = target.stack, target.resource
            try:
                outputs = self._outputs(run_id, target, is_whole=True)
            except errors.Error as exc:
                refused.append(f'{"/".join(place)}: {exc}')
                continue
            for name, value in outputs.items():
                if value in (None, ''):
                    continue
                text = value if isinstance(value, str) else json.dumps(value)
                named = '/'.join((*place, name))
                if target.cut.get(name, 0) > len(text):
                    self.log.warning('Only the end of %s is kept', named)
                try:
                    inner = private_files.folder(path, *place)
                    file = private_files.file_name(name)
                    private_files.write(inner / file, text)
                    files += 1
                except OSError as exc:
                    # It does not stop the rest.
                    refused.append(f'{named}: {exc.strerror}')
        for each in refused[:_NAMED]:
            self.exit_code = 1
            self.log.error('Cannot write %s', each)
        if len(refused) > _NAMED:
            self.log.error('Cannot write %d more', len(refused) - _NAMED)
        return common.one(
            {
                'folder': folder,
                'targets': len(targets),
                'files': files,
                'not_written': len(refused),
            }
        )


def _without_success(outputs: abc.Mapping[str, Any] | None) -> str:
    """Return outputs in words, without the usual exit status."""
    shown = {
        name: value
        for name, value in (outputs or {}).items()
        if (name, str(value)) != (body.STATUS_CODE, '0')
    }
    return columns.Outputs(shown).human_readable()


class ShowLogs(common.Command):
    """Show what the servers of a run have printed until now.

    Of one target it is shown byte for byte: standard output and standard error
    are mixed in the order of the server. Of several, each line begins with the
    name of its server. A server without heat-config-supervisor sends its
    output when it has ended.
    """

    example = '5bd8 --follow'

    arguments = (
        *RunCommand.arguments,
        TARGET,
        command_line.flag(
            '--follow',
            'Continue until the run, or the target, has ended; the exit code '
            'is that of "software deployment run wait"',
            '-f',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        manager, follow = self.app.client_manager, parsed_args.follow
        client = common.runs(manager)
        run = common.read_first(
            self.progress,
            lambda: client.show(client.run_id(parsed_args.run)),
            None if follow else 0,
        )
        wanted, number = list(client.targets(run.id)), None
        if name := parsed_args.target:
            wanted = [named(run.id, wanted, name)]
            number = wanted[0].number
        numbers = {each.number for each in wanted}

        def say(*lines: str) -> None:
            self.app.stdout.write(''.join(f'{line}\n' for line in lines))
            self.app.stdout.flush()

        output = following.Output(
            client,
            common.live_store(manager),
            self.progress,
            lambda run, target: (
                following.Raw(self.app.stdout)
                if len(numbers) == 1
                else following.Lines(say, target.fault.name)
            ),
            lambda target: target.number in numbers,
        )
        # It would be in the way of the output.
        self.progress.stop()
        if follow:
            follower = following.Follower(
                self, client, output=output, target=number
            )
            follower.wait([run.id])
        else:
            output.update(run)
            output.drain()
