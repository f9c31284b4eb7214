# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan validation list|run|stop|result …``."""

import argparse
from collections import abc
import contextlib
import io
import json
import time
from typing import Any

from osc_lib import exceptions

from heat_plugins import errors
from heat_plugins import retrying
from heat_plugins.clients import mistral_plans
from heat_plugins.clients import swift
from heat_plugins.content import tarballs
from heat_plugins.objectstore import parcels
from heat_plugins.objectstore import stores
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc import progress
from heat_plugins.osc.plans import plan_common
from heat_plugins.validations import catalogue
from heat_plugins.validations import playbooks
from heat_plugins.validations import validation_ledger
from heat_plugins.validations import validation_operations

# Seconds to wait for the end of a run that was stopped.
_TIMEOUT = 90
_INTERVAL = 1.0

# A folder that no plan has at its top.
_TOP = '.heat-plugins-upload'

_CODES = {
    validation_ledger.ValidationState.PASSED: 0,
    validation_ledger.ValidationState.STOPPED: common.CANCELLED,
    validation_ledger.ValidationState.RUNNING: common.STILL_RUNNING,
}


def operations(manager: Any) -> validation_operations.ValidationOperations:
    """Return the operations on validations, with the session of a command."""
    return validation_operations.ValidationOperations(
        plan_common.operations(manager).plans
    )


def services(
    manager: Any,
) -> tuple[stores.ObjectStore, mistral_plans.WorkflowExecutions]:
    """Return the object store, and Mistral, for a run by an executor."""
    cloud = common.cloud(manager)
    return swift.connect(cloud), mistral_plans.WorkflowExecutions(cloud)


def outcomes(run: dict[str, Any]) -> common.Shown:
    """Return a table with the outcome of each validation of a run."""

    def counts(hosts: abc.Mapping[str, Any]) -> columns.Said:
        return columns.Outputs(
            {
                host: ', '.join(f'{n} {state}' for state, n in states.items())
                for host, states in hosts.items()
            }
        )

    return common.table(
        run['outcomes'],
        {
            'Validation': 'validation',
            'Name': columns.of(columns.Value, 'name'),
            'State': columns.of(str, 'state'),
            'Duration': columns.of(columns.Seconds, 'seconds'),
            'Hosts': columns.of(counts, 'hosts'),
            'Reason': columns.of(columns.Value, 'reason'),
        },
    )


class _RunCommand(common.Report):
    """A command whose exit code says how a run has ended."""

    def report(self, run: dict[str, Any]) -> common.Shown:
        """Show a run, and set the exit code for its state."""
        if run['reason']:
            self.log.warning('%s', run['reason'])
        self.exit_code = _CODES.get(run['state'], common.FAILED)
        return outcomes(run)


def _host_group(text: str) -> tuple[str, list[str]]:
    """Read a value of --host-group: a group and its hosts."""
    group, _, hosts = text.partition('=')
    return group, [host for host in hosts.split(',') if host]


_SOURCE = (
    command_line.value(
        'plan',
        '<plan>',
        'A plan with validations in its folder "validations"',
        nargs='?',
    ),
    plan_common.source(
        command_line.value(
            '--package',
            '<package>',
            'A Python package on the machine that runs the playbooks, '
            'such as validations-common',
        )
    ),
    command_line.several(
        '--group',
        '<group>',
        'Validations of a group (repeat option for several)',
        dest='groups',
    ),
)


class _SourceCommand(common.Report):
    """A command about the validations of a plan, of files or of a package."""

    def source(
        self, parsed_args: argparse.Namespace
    ) -> tuple[dict[str, str], catalogue.PlaybookSource | None]:
        """Return the arguments that name a source, and the given files."""
        content = plan_common.content(parsed_args)
        given = {
            name: getattr(parsed_args, name)
            for name in ('plan', 'package')
            if getattr(parsed_args, name)
        }
        if len(given) + (content is not None) != 1:
            raise exceptions.CommandError(
                'Give exactly one of: a plan, --from, --git, --package'
            )
        files = None
        if content is not None:
            files = catalogue.PlaybookSource(name='files', content=content)
        return given, files


class ListValidations(_SourceCommand):
    """List validations: Ansible playbooks that describe what they check.

    A package is that of this machine.
    """

    example = 'shop --group before'
    shared = (plan_common.NO_LONGER_NEEDED, *_SOURCE)

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        core = operations(self.app.client_manager)
        given, files = self.source(parsed_args)
        listed = core.list(**given, groups=parsed_args.groups, source=files)
        for warning in listed['warnings']:
            self.log.warning('%s', warning)
        return common.table(
            listed['validations'],
            {
                'Validation': 'id',
                'Name': columns.of(columns.Value, 'name'),
                'Groups': columns.of(columns.NamesCell, 'groups'),
                'Hosts': columns.of(columns.NamesCell, 'hosts'),
                'Description': columns.of(columns.Value, 'description'),
            },
        )


class RunValidations(_RunCommand, _SourceCommand):
    """Run validations, against the servers of a stack or on this machine.

    Exit codes: 0 all passed, 3 some failed, 5 the run was stopped, 1 it did
    not start, 6 it is in progress (--no-wait), 130 interrupted.
    """

    example = 'shop --group before'

    shared = (
        command_line.flag(
            '--local',
            'Run the playbooks in this command, on this machine, rather than '
            "by one of Mistral's executors",
        ),
        *_SOURCE,
    )
    arguments = (
        command_line.several(
            '--validation',
            '<validation>',
            'Name of a validation (repeat option for several). Without '
            '--validation and --group, all validations run',
            dest='validations',
        ),
        command_line.either(
            command_line.value(
                '--stack',
                '<stack>',
                "The stack with the servers (default: the plan's stack, if "
                'there is one)',
            ),
            command_line.flag(
                '--localhost',
                'Check only the machine that runs the playbooks',
                dest='stack',
                action='store_const',
                const='',
            ),
        ),
        command_line.several(
            '--host-group',
            '<group>[=<host>,...]',
            'Put hosts into a group that playbooks use: servers of the '
            'stack, or localhost; without hosts, all of them (repeat option '
            'for several). Example: --host-group first=web-0,web-1',
            dest='host_groups',
            type=_host_group,
        ),
        command_line.choice(
            '--connection',
            ['ssh', 'local'],
            'How to connect to the servers; "local" runs their tasks on the '
            'machine that runs the playbooks',
            default='ssh',
        ),
        command_line.value(
            '--user', '<user>', 'The user to log in as', default=''
        ),
        command_line.value(
            '--ssh-key',
            '<file>',
            'A private key to log in with, without a passphrase',
        ),
        command_line.several(
            '--variable',
            '<name>=<value>',
            'A variable of the playbooks (repeat option for several); '
            'give secrets with --secrets',
            dest='variables',
            type=command_line.Input,
        ),
        command_line.value(
            '--secrets',
            '<file>',
            'Read secret variables from a map in YAML or JSON; - for '
            'standard input. They are never recorded, and are masked in '
            'results',
        ),
        command_line.number(
            '--at-once',
            '<number>',
            'Maximum number of playbooks at the same time; up to '
            f'{playbooks.MOST_AT_ONCE} (default: 4)',
            default=4,
        ),
        command_line.number(
            '--timeout',
            '<seconds>',
            'Maximum number of seconds for each playbook (default: 1800)',
            default=1800,
        ),
        command_line.flag(
            '--no-wait', 'Return when the run has started; not with --local'
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        if parsed_args.no_wait and parsed_args.local:
            raise exceptions.CommandError(
                '--no-wait cannot be used with --local: local playbooks end '
                'with the command'
            )
        given, files = self.source(parsed_args)
        names = ('validations', 'groups', 'stack', 'connection', 'user')
        options: dict[str, Any] = {
            **given,
            **{name: getattr(parsed_args, name) for name in names},
            'at_once': parsed_args.at_once,
            'timeout': parsed_args.timeout,
            'host_groups': dict(parsed_args.host_groups),
            'variables': {
                variable.name: variable.value
                for variable in parsed_args.variables
            },
        }
        secrets: dict[str, Any] = {}
        if parsed_args.secrets:
            secrets['variables'] = common.read_map(parsed_args.secrets)
        if parsed_args.ssh_key:
            secrets['ssh_key'] = common.read_text(parsed_args.ssh_key)
        show = progress.Validations(self.progress)
        core = operations(self.app.client_manager)
        try:
            if parsed_args.local:
                run = core.run(
                    **options,
                    source=files,
                    secrets=secrets,
                    tell=lambda run: show.changed(
                        validation_operations.report(run)
                    ),
                )
            else:
                run = _run_by_mistral(
                    core,
                    *services(self.app.client_manager),
                    files,
                    show,
                    secrets,
                    options,
                    wait=not parsed_args.no_wait,
                )
        except KeyboardInterrupt:
            self.exit_code = common.INTERRUPTED
            if parsed_args.local:
                self.progress.say('Interrupted; the playbooks were stopped')
                return (), []
            command = 'openstack deployment plan validation'
            self.progress.say(
                'Stopped waiting; the run continues. Check or stop it:',
                f'  {command} result show {show.run_id}',
                f'  {command} stop {show.run_id}',
            )
            return (), []
        return self.report(run)


def _run_by_mistral(
    core: validation_operations.ValidationOperations,
    store: stores.ObjectStore,
    executions: mistral_plans.WorkflowExecutions,
    files: catalogue.PlaybookSource | None,
    show: progress.Validations,
    secrets: dict[str, Any],
    options: dict[str, Any],
    *,
    wait: bool,
) -> dict[str, Any]:
    """Let the workflow validations.run run validations; return the run."""
    at = time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())
    run_id = validation_ledger.new_id(at)
    # Mistral keeps and shows its input, so it gets references.
    given = {**options, 'run_id': run_id, 'secrets': None}
    with contextlib.ExitStack() as uploads:
        if files is not None:
            file = io.BytesIO()
            with tarballs.writer(file) as add:
                # A single folder at the top is left out at reading, unless
                # the plan has one of that name.
                for path in sorted(files.content):
                    add(f'{_TOP}/{path}', files.content[path])
            place = parcels.send(store, file.getvalue())
            uploads.callback(parcels.forget, store, place)
            given |= {key: place[key] for key in ('container', 'object')}
        if secrets:
            place = parcels.send(store, json.dumps(secrets).encode())
            uploads.callback(parcels.forget, store, place)
            given['secrets'] = place
        execution_id = executions.start_workflow(
            'validations.run', given, f'validations {run_id}'
        )
        # The run needs them, even if this command is interrupted.
        kept = uploads.pop_all()
    show.begun(run_id)

    def tell() -> bool:
        """Show the run as it is now; say whether to stop following it."""
        with contextlib.suppress(errors.Unavailable, errors.NotFound):
            show.changed(core.result(run_id))
            return not wait
        return False

    execution = retrying.follow(
        lambda: executions.execution(execution_id),
        lambda execution: tell() or execution.ended,
        interval=_INTERVAL,
        sleep=time.sleep,
    )
    if execution.ended:
        kept.close()
    with contextlib.suppress(errors.NotFound):
        run = core.result(run_id)
        # An executor that died has not written the end of the run.
        if run['success'] is not None or not execution.ended:
            return run
    raise execution.error()


class StopValidations(common.Report):
    """Stop a run with all its processes, wherever it runs."""

    example = '20261121T034228Z-00f2c40a'

    arguments = (command_line.value('run', '<run>', 'The run'),)

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        core = operations(self.app.client_manager)
        run = core.stop(parsed_args.run)
        until = time.monotonic() + _TIMEOUT
        while run['success'] is None and time.monotonic() < until:
            time.sleep(_INTERVAL)
            run = core.result(parsed_args.run)
        if run['success'] is None:
            raise exceptions.CommandError(
                f'Run {parsed_args.run} was asked to stop, but has not '
                f'stopped within {_TIMEOUT} s. If its process is dead, the '
                'run becomes LOST'
            )
        return outcomes(run)


class ListResults(common.Report):
    """List the runs of validations, the latest first."""

    example = 'shop'

    arguments = (
        command_line.value('plan', '<plan>', 'Only runs of a plan', nargs='?'),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        core = operations(self.app.client_manager)
        runs = core.results(parsed_args.plan)
        if not runs:
            self.log.warning('There are no recorded runs of validations')
        return common.table(
            runs,
            {
                'Run': 'id',
                'Source': 'source',
                'Stack': 'stack',
                'State': columns.of(str, 'state'),
                'Started': 'started_at',
                'Duration': columns.of(columns.Seconds, 'seconds'),
                'Summary': columns.of(columns.Outputs, 'summary'),
            },
        )


class ShowResult(_RunCommand):
    """Show the outcome of a run, or of a validation in it.

    Exit codes: 0 passed, 3 failed, 5 stopped, 6 in progress; with a validation
    always 0.
    """

    example = '20261121T034228Z-00f2c40a check-ram'

    arguments = (
        command_line.value('run', '<run>', 'The run'),
        command_line.value(
            'validation',
            '<validation>',
            'Show a validation of the run: each task on each host',
            nargs='?',
        ),
        command_line.flag(
            '--stdout', 'With a validation: show the output of Ansible'
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        core = operations(self.app.client_manager)
        if parsed_args.validation is None:
            return self.report(core.result(parsed_args.run))
        detail = core.result(parsed_args.run, parsed_args.validation)
        if detail['cut']:
            self.log.warning('The output was longer; only a part is kept')
        if parsed_args.stdout:
            return common.one({'stdout': detail['stdout'].rstrip()})
        shown = {
            name.capitalize(): columns.of(columns.Value, name)
            for name in ('host', 'play', 'task', 'state')
        }
        shown['Duration'] = columns.of(columns.Seconds, 'seconds')
        shown['Message'] = columns.of(columns.Value, 'message')
        return common.table(detail['tasks'], shown)
