# SPDX-License-Identifier: Apache-2.0
"""The command ``heat-plugins-status``: features that work here, and faults.

``upgrade check`` begins with a table of what works on this cloud; the checks
follow. ``feature list`` prints that table alone, or as JSON. ``--version``
prints the release.

``upgrade check`` follows the convention of OpenStack's status commands: exit
code 0 if all is well, 1 with a warning, 2 with a failure, 255 if it could not
be run. ``feature list`` exits with 0 or 255.
"""

import argparse
from collections import abc
import dataclasses
import functools
from importlib import metadata
import json
import logging
import os
import pkgutil
import sys
import typing
import warnings

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
import prettytable

from heat_plugins import foreign

if typing.TYPE_CHECKING:
    from keystoneauth1 import session as ks_session

    from heat_plugins.checks import features

CANNOT_RUN = 255

OPTS = [
    cfg.StrOpt(
        'os-cloud',
        metavar='<name>',
        help='A cloud in clouds.yaml, with a user who may own stacks '
        '(default: OS_CLOUD and the other OS_* variables). Without any '
        'of these, checks that need the cloud are skipped.',
    ),
]

# Options of the whole command, all of them with a value.
_GLOBALS = ('--os-cloud', '--config-file', '--config-dir')

#: What features are said to do, by whether they work.
_WORKS = {True: 'yes', False: 'no', None: 'unknown'}

#: Columns of the text on a feature: the table fits a terminal of 100.
_REASON_WIDTH = 56

_SKIPPED = 'Skipped: this check needs --os-cloud or OS_*.'


class Checks(upgradecheck.UpgradeCommands):
    """The checks of ``upgrade check``, by their names in the output."""

    display_title = 'heat-plugins: what is right and wrong with this cloud'

    def run(
        self,
        name: str,
        asks: typing.Literal['nothing', 'perhaps', 'cloud'] = 'nothing',
    ) -> upgradecheck.Result:
        """Run a check; an invalid option makes it fail, and is named.

        :param name: module of `heat_plugins.checks` and function.
        :param asks: whether it asks the cloud: its function takes nothing; or
            a session or None; or a session, and is skipped without.
        """
        check: abc.Callable[..., upgradecheck.Result]
        try:
            # Heat is imported late: where it is missing, one line says so.
            check = pkgutil.resolve_name(f'heat_plugins.checks.{name}')
            if asks == 'nothing':
                return check()
            session, why_not = self._cloud
            if why_not:
                return upgradecheck.Result(upgradecheck.Code.FAILURE, why_not)
            if session is None and asks == 'cloud':
                return upgradecheck.Result(upgradecheck.Code.SUCCESS, _SKIPPED)
            return check(session)
        except cfg.Error as exc:
            code = upgradecheck.Code.FAILURE
            return upgradecheck.Result(code, f'heat.conf is wrong: {exc}')

    _upgrade_checks = (
        ('Resource types', (run, {'name': 'engine:resource_types'})),
        ('Replaced parts of Heat', (run, {'name': 'engine:replaced'})),
        ('TempURL secret', (run, {'name': 'engine:secret'})),
        ('Policy of Heat', (run, {'name': 'engine:policy'})),
        ('Python of heat-engine', (run, {'name': 'engine:python'})),
        ('Threads of heat-engine', (run, {'name': 'engine:threads'})),
        (
            'Groups without nested stack',
            (run, {'name': 'engine:single_groups'}),
        ),
        ('Waiting deployments', (run, {'name': 'engine:waiting'})),
        ('Schedules', (run, {'name': 'engine:schedules'})),
        ('Tables of runs', (run, {'name': 'engine:tables'})),
        (
            'Runs of a former release',
            (run, {'name': 'engine:runs_of_former_release'}),
        ),
        ('Hosts of webhooks', (run, {'name': 'engine:webhooks_permitted'})),
        (
            'Transports of agents',
            (run, {'name': 'agents:transports', 'asks': 'perhaps'}),
        ),
        (
            'TempURLs',
            (run, {'name': 'object_store:check', 'asks': 'cloud'}),
        ),
        ('Mistral', (run, {'name': 'mistral:service', 'asks': 'cloud'})),
        (
            'Redelegation of trusts',
            (run, {'name': 'mistral:redelegation', 'asks': 'perhaps'}),
        ),
    )

    def check(self) -> upgradecheck.Code:
        """Print the features that work here (not as JSON), and the checks."""
        if not cfg.CONF.command.json:
            print(_table_of_features(self.features()))
        return super().check()

    def list_features(self) -> int:
        """Print the features that work here; return the exit code."""
        listed = self.features()
        if cfg.CONF.command.format == 'json':
            print(json.dumps([dataclasses.asdict(each) for each in listed]))
        else:
            print(_table_of_features(listed))
        return 0

    def features(self) -> 'list[features.Feature]':
        """Return all features, each with whether it works here."""
        from heat_plugins.checks import features

        return features.features(*self._cloud)

    @functools.cached_property
    def _cloud(self) -> 'tuple[ks_session.Session | None, str]':
        """Return a session, if a cloud was named, or why there is none."""
        from heat_plugins.checks import cloud

        try:
            return cloud.session(cfg.CONF.os_cloud, os.environ), ''
        except cloud.NoCloudError as exc:
            return None, foreign.line(exc)


def main(args: abc.Sequence[str] | None = None) -> int:
    """Run the command; its exit code.

    :param args: its arguments, by default those of the process.
    """
    given = sys.argv[1:] if args is None else args
    if '--version' in given:
        print(f'heat-plugins {metadata.version("heat-plugins")}')
        return 0
    # Heat says a lot about what it loads; what matters is checked.
    logging.getLogger().addHandler(logging.NullHandler())
    warnings.simplefilter('ignore')
    try:
        # What heat-engine begins with: it decides about threads.
        import heat.cmd.engine  # noqa: F401
    except ImportError:
        print(
            'heat-plugins-status needs the Python environment of '
            'heat-engine; this one has no Heat.',
            file=sys.stderr,
        )
        return CANNOT_RUN
    from heat_plugins import config
    from heat_plugins import registry

    config.register_opts(cfg.CONF)
    cfg.CONF.register_cli_opts(OPTS)
    try:
        registry.require_heat()
        code = _run(*_globals_and_others(given))
        sys.stdout.flush()
    except cfg.Error as exc:
        print(f'Cannot read heat.conf: {exc}', file=sys.stderr)
        return CANNOT_RUN
    except registry.LoadError as exc:
        print(f'{exc}.', file=sys.stderr)
        return CANNOT_RUN
    except BrokenPipeError:
        # Who reads it has seen enough, such as "head"; the exit says no more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CANNOT_RUN
    return code


def _run(first: list[str], others: list[str]) -> int:
    """Run the status check, or list the features."""
    # Those that heat-engine reads.
    files = cfg.find_config_files(project='heat', prog='heat-engine')
    if 'upgrade' in others:
        return upgradecheck.main(
            cfg.CONF,
            project='heat',
            upgrade_command=Checks(),
            argv=first + others,
            default_config_files=files,
        )
    cfg.CONF.register_cli_opt(
        cfg.SubCommandOpt('command', handler=_add_commands)
    )
    cfg.CONF(args=first + others, project='heat', default_config_files=files)
    return Checks().list_features()


def _add_commands(
    parsers: 'argparse._SubParsersAction[argparse.ArgumentParser]',
) -> None:
    """Declare the commands, for the help."""
    # For the help alone: oslo.upgradecheck reads its arguments.
    parsers.add_parser('upgrade', help='"upgrade check": what is wrong')
    feature = parsers.add_parser('feature', help='what works on this cloud')
    actions = feature.add_subparsers(dest='action', required=True)
    actions.add_parser('list', help='print what works').add_argument(
        '-f',
        '--format',
        choices=['table', 'json'],
        default='table',
        help='of the list (default: table)',
    )


def _table_of_features(
    found: 'abc.Iterable[features.Feature]',
) -> prettytable.PrettyTable:
    """Return a table of what works on this cloud."""
    table = prettytable.PrettyTable(('Feature', 'Works here', 'Reason'))
    table.align = 'l'
    table.max_width['Reason'] = _REASON_WIDTH
    for each in found:
        table.add_row([each.name, _WORKS[each.works], each.reason])
    return table


def _globals_and_others(
    args: abc.Sequence[str],
) -> tuple[list[str], list[str]]:
    """Let options of the whole command stand after the subcommand, too."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in _GLOBALS:
        parser.add_argument(name, dest=name, action='append', default=[])
    found, others = parser.parse_known_args(args)
    return [
        f'{name}={value}'
        for name, values in vars(found).items()
        for value in values
    ], others


if __name__ == '__main__':
    sys.exit(main())
