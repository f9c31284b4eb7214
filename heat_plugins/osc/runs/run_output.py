# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment run output`` and ``run logs``."""

import argparse
from collections import abc
import dataclasses
import json
import pathlib
from typing import Any

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
from heat_plugins.osc.runs import run_commands
from heat_plugins.signals import body

_LISTED = ('stack', 'resource', 'server', 'state', 'outputs')

# Files that could not be written and are named, each with the reason.
_NAMED = 10


class ShowOutput(run_commands.RunCommand):
    """Show the outputs of a run: what each server printed and returned."""

    example = '5bd8 --output-dir backup-logs'

    arguments = (
        *run_commands.RunCommand.arguments,
        command_line.value(
            'output', '<output>', 'Only this output (default: all)', nargs='?'
        ),
        run_commands.TARGET,
        command_line.value(
            '--stack', '<stack>', 'Only targets in a stack (name or ID)'
        ),
        command_line.flag('--failed', 'Only targets that failed or timed out'),
        run_commands.ATTEMPT,
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
        found = self.targets(
            run_id,
            parsed_args.target,
            stack=parsed_args.stack,
            attempt=parsed_args.attempt,
            outputs=True,
        )
        is_one = len(found) == 1
        if parsed_args.failed:
            found = [e for e in found if e.state in run_columns.FAILED]
        if parsed_args.output_dir:
            return self._save(parsed_args.output_dir, run_id, found)
        wanted, whole = parsed_args.output, parsed_args.whole
        shown = [self._outputs(run_id, each, whole) for each in found]
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
        if not (is_one and found):
            return run_columns.targets(
                (
                    dataclasses.replace(each, outputs=outputs)
                    for each, outputs in zip(found, shown, strict=True)
                ),
                _LISTED,
                outputs=lambda value: run_columns.Said(
                    value, _without_success
                ),
            )
        for name, length in found[0].cut.items():
            if name in shown[0] and not whole:
                self.log.warning(
                    'The last %(tail)d of %(all)d characters of %(name)s; '
                    '--whole shows all',
                    {
                        'tail': len(str(shown[0][name])),
                        'all': length,
                        'name': name,
                    },
                )
        return tuple(shown[0]), common.One(shown[0].values())

    def _outputs(
        self, run_id: str, target: run_client.Target, whole: bool
    ) -> abc.Mapping[str, Any]:
        """Return the outputs of a target.

        :raises errors.Error: long ones cannot be read.
        """
        if not (whole and target.cut):
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
        with common.access('write', folder):
            path = private_files.folder(pathlib.Path(folder))
        files, refused = 0, []
        for target in targets:
            place = target.stack, target.resource
            try:
                outputs = self._outputs(run_id, target, whole=True)
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
        return ('folder', 'targets', 'files', 'not_written'), common.One(
            (folder, len(targets), files, len(refused))
        )


def _without_success(outputs: abc.Mapping[str, Any] | None) -> str:
    """Return outputs in words, without the usual exit status."""
    shown = dict(outputs or {})
    if str(shown.get(body.STATUS_CODE)) == '0':
        del shown[body.STATUS_CODE]
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
        *run_commands.RunCommand.arguments,
        run_commands.TARGET,
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
            wanted = [run_commands.named(run.id, wanted, name)]
            number = wanted[0].number
        numbers = {each.number for each in wanted}
        output = following.Output(
            client,
            common.live_store(manager),
            self.progress,
            lambda run, target: (
                following.Raw(self.app.stdout)
                if len(numbers) == 1
                else following.Lines(self._print, target.fault.name)
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

    def _print(self, *lines: str) -> None:
        self.app.stdout.write(''.join(f'{line}\n' for line in lines))
        self.app.stdout.flush()
