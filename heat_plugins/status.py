# SPDX-License-Identifier: Apache-2.0
"""The command ``heat-plugins-status``: what works here, and what is wrong.

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
import itertools
import json
import logging
import os
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


def _name_bad_options(
    check: abc.Callable[['Checks'], upgradecheck.Result],
) -> abc.Callable[['Checks'], upgradecheck.Result]:
    """Make a check fail on an invalid option, and name it."""

    @functools.wraps(check)
    def run(self: 'Checks') -> upgradecheck.Result:
        try:
            return check(self)
        except cfg.Error as exc:
            code = upgradecheck.Code.FAILURE
            return upgradecheck.Result(code, f'heat.conf is wrong: {exc}')

    return run


class Checks(upgradecheck.UpgradeCommands):
    """The checks, by what they are called in the output."""

    display_title = 'heat-plugins: what is right and wrong with this cloud'

    # Heat is imported late: where it is missing, one line says so.

    @_name_bad_options
    def resource_types(self) -> upgradecheck.Result:
        from heat_plugins.checks import engine

        return engine.resource_types()

    @_name_bad_options
    def replaced(self) -> upgradecheck.Result:
        from heat_plugins.checks import engine

        return engine.replaced()

    @_name_bad_options
    def secret(self) -> upgradecheck.Result:
        from heat_plugins.checks import engine

        return engine.secret()

    @_name_bad_options
    def policy(self) -> upgradecheck.Result:
        from heat_plugins.checks import engine

        return engine.policy()

    @_name_bad_options
    def python(self) -> upgradecheck.Result:
        from heat_plugins.checks import engine

        return engine.python()

    @_name_bad_options
    def threads(self) -> upgradecheck.Result:
        from heat_plugins.checks import engine

        return engine.threads()

    @_name_bad_options
    def single_groups(self) -> upgradecheck.Result:
        from heat_plugins.checks import engine

        return engine.single_groups()

    @_name_bad_options
    def transports(self) -> upgradecheck.Result:
        from heat_plugins.checks import agents

        return self._ask(
            agents.transports, without=lambda: agents.transports(None)
        )

    @_name_bad_options
    def temp_urls(self) -> upgradecheck.Result:
        from heat_plugins.checks import object_store

        return self._ask(
            lambda session: object_store.temp_urls(
                object_store.connect(session)
            )
        )

    @_name_bad_options
    def mistral(self) -> upgradecheck.Result:
        from heat_plugins.checks import mistral

        return self._ask(mistral.service)

    @_name_bad_options
    def redelegation(self) -> upgradecheck.Result:
        from heat_plugins.checks import mistral

        return mistral.redelegation()

    _upgrade_checks = (
        ('Resource types', resource_types),
        ('Replaced parts of Heat', replaced),
        ('TempURL secret', secret),
        ('Policy of Heat', policy),
        ('Python of heat-engine', python),
        ('Threads of heat-engine', threads),
        ('Groups without nested stack', single_groups),
        ('Transports of agents', transports),
        ('TempURLs', temp_urls),
        ('Mistral', mistral),
        ('Redelegation of trusts', redelegation),
    )

    def check(self) -> upgradecheck.Code:
        """Print what works here, unless JSON is asked for, and the checks."""
        if not cfg.CONF.command.json:
            print(_table(self.features()))
        return super().check()

    def list_features(self) -> int:
        """Print what works here; the exit code."""
        rows = self.features()
        if cfg.CONF.command.format == 'json':
            print(json.dumps([dataclasses.asdict(row) for row in rows]))
        else:
            print(_table(rows))
        return 0

    def features(self) -> 'list[features.Feature]':
        """Return what works here, and what does not."""
        from heat_plugins.checks import features

        session = self._session
        if isinstance(session, Exception):
            return features.features(None, foreign.line(session))
        return features.features(session)

    def _ask(
        self,
        check: abc.Callable[['ks_session.Session'], upgradecheck.Result],
        without: abc.Callable[[], upgradecheck.Result] | None = None,
    ) -> upgradecheck.Result:
        """Run a check that asks the cloud."""
        session = self._session
        if isinstance(session, Exception):
            code = upgradecheck.Code.FAILURE
            return upgradecheck.Result(code, foreign.line(session))
        if session is not None:
            return check(session)
        if without is not None:
            return without()
        return upgradecheck.Result(upgradecheck.Code.SUCCESS, _SKIPPED)

    @functools.cached_property
    def _session(self) -> 'ks_session.Session | Exception | None':
        from heat_plugins.checks import cloud

        try:
            return cloud.session(cfg.CONF.os_cloud, os.environ)
        except cloud.NoCloudError as exc:
            return exc


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

    config.register_opts(cfg.CONF)
    cfg.CONF.register_cli_opts(OPTS)
    try:
        return _run(_globals_first(given))
    except cfg.Error as exc:
        print(f'Cannot read heat.conf: {exc}', file=sys.stderr)
        return CANNOT_RUN


def _run(args: abc.Sequence[str]) -> int:
    # Those that heat-engine reads.
    files = cfg.find_config_files(project='heat', prog='heat-engine')
    if _command(args) != 'feature':
        return upgradecheck.main(
            cfg.CONF,
            project='heat',
            upgrade_command=Checks(),
            argv=list(args),
            default_config_files=files,
        )
    cfg.CONF.register_cli_opt(
        cfg.SubCommandOpt('command', handler=_add_feature)
    )
    cfg.CONF(args=args, project='heat', default_config_files=files)
    return Checks().list_features()


def _command(args: abc.Sequence[str]) -> str:
    """Return the subcommand, which follows the options of the whole one."""
    remaining = iter(args)
    for each in remaining:
        if each in _GLOBALS:
            next(remaining, None)
        elif not each.startswith('-'):
            return each
    return ''


def _add_feature(
    parsers: 'argparse._SubParsersAction[argparse.ArgumentParser]',
) -> None:
    parser = parsers.add_parser('feature', help='what works on this cloud')
    parser.add_argument('action', choices=['list'])
    parser.add_argument(
        '-f',
        '--format',
        choices=['table', 'json'],
        default='table',
        help='default: table',
    )


def _table(rows: 'abc.Iterable[features.Feature]') -> prettytable.PrettyTable:
    table = prettytable.PrettyTable(['Feature', 'Works here', 'Reason'])
    table.align = 'l'
    table.max_width['Reason'] = _REASON_WIDTH
    for row in rows:
        table.add_row([row.name, _WORKS[row.works], row.reason])
    return table


def _globals_first(args: abc.Sequence[str]) -> list[str]:
    """Let options of the whole command stand after the subcommand, too."""
    first: list[str] = []
    others: list[str] = []
    remaining = iter(args)
    for each in remaining:
        name, separator, _ = each.partition('=')
        if name not in _GLOBALS:
            others.append(each)
            continue
        first.append(each)
        if not separator:
            first += itertools.islice(remaining, 1)
    return [*first, *others]


if __name__ == '__main__':
    sys.exit(main())
