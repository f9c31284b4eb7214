# SPDX-License-Identifier: Apache-2.0
"""The command ``heat-plugins-status``: what works here, and what is wrong.

``upgrade check`` begins with a table of what works on this cloud; the checks
follow. ``feature list`` prints that table alone, or as JSON. ``leftover list``
names the containers in which Heat has left the metadata of deleted servers,
and ``leftover remove`` removes those that certainly are. ``--version`` prints
the release.

``upgrade check`` follows the convention of OpenStack's status commands: exit
code 0 if all is well, 1 with a warning, 2 with a failure, 255 if it could not
be run. The others exit with 0 or 255, and ``leftover remove`` with 1 if what
it has named remains.
"""

import argparse
from collections import abc
import dataclasses
import enum
import functools
from importlib import metadata
import itertools
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

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import wording

if typing.TYPE_CHECKING:
    from keystoneauth1 import session as ks_session

    from heat_plugins.checks import features
    from heat_plugins.checks import leftovers

_Listed = typing.TypeVar('_Listed', 'features.Feature', 'leftovers.Leftover')

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


class _Asks(enum.Enum):
    """Whether a check asks the cloud."""

    #: Its function takes nothing.
    NOTHING = enum.auto()
    #: It takes a session, or None.
    PERHAPS = enum.auto()
    #: It takes a session, and is skipped without.
    CLOUD = enum.auto()


class Checks(upgradecheck.UpgradeCommands):
    """The checks, by what they are called in the output."""

    display_title = 'heat-plugins: what is right and wrong with this cloud'

    def run(
        self, name: str, asks: _Asks = _Asks.NOTHING
    ) -> upgradecheck.Result:
        """Run a check; an invalid option makes it fail, and is named.

        :param name: module of `heat_plugins.checks` and function.
        """
        check: abc.Callable[..., upgradecheck.Result]
        try:
            # Heat is imported late: where it is missing, one line says so.
            check = pkgutil.resolve_name(f'heat_plugins.checks.{name}')
            if asks is _Asks.NOTHING:
                return check()
            return self._ask(check, is_needed=asks is _Asks.CLOUD)
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
        ('Hosts of webhooks', (run, {'name': 'engine:webhooks_permitted'})),
        (
            'Transports of agents',
            (run, {'name': 'agents:transports', 'asks': _Asks.PERHAPS}),
        ),
        (
            'TempURLs',
            (run, {'name': 'object_store:check', 'asks': _Asks.CLOUD}),
        ),
        (
            'Metadata of deleted servers',
            (run, {'name': 'leftovers:check', 'asks': _Asks.CLOUD}),
        ),
        ('Mistral', (run, {'name': 'mistral:service', 'asks': _Asks.CLOUD})),
        ('Redelegation of trusts', (run, {'name': 'mistral:redelegation'})),
    )

    def check(self) -> upgradecheck.Code:
        """Print what works here, unless JSON is asked for, and the checks."""
        if not cfg.CONF.command.json:
            print(_table_of_features(self.features()))
        return super().check()

    def list_features(self) -> int:
        """Print what works here; the exit code."""
        return _print(self.features(), _table_of_features)

    def list_leftovers(self) -> int:
        """Print what Heat has left in the object store; the exit code."""
        from heat_plugins.checks import leftovers

        found = leftovers.find(self._needed_session())
        return _print(found, _table_of_leftovers)

    def remove_leftovers(self) -> int:
        """Remove what Heat has certainly left; the exit code."""
        from heat_plugins.checks import leftovers

        session = self._needed_session()
        found = [each for each in leftovers.find(session) if not each.doubt]
        if not found:
            print('Nothing is left that is certainly of a deleted server.')
            return 0
        print(_table_of_leftovers(found))
        if cfg.CONF.command.yes:
            certain = found
        elif _is_confirmed(len(found)):
            # The answer may have taken long.
            certain = _unchanged(found, leftovers.find(session))
        else:
            return 1
        removed = [each for each in certain if _is_removed(session, each)]
        return 0 if removed == found else 1

    def _needed_session(self) -> 'ks_session.Session':
        """Return the session of a command that does nothing without.

        :raises errors.Error: there is none.
        """
        session = self._session
        if isinstance(session, Exception):
            raise errors.Error(foreign.line(session))
        if session is None:
            raise errors.Error('This command needs --os-cloud or OS_*')
        return session

    def features(self) -> 'list[features.Feature]':
        """Return what works here, and what does not."""
        from heat_plugins.checks import features

        session = self._session
        if isinstance(session, Exception):
            return features.features(None, foreign.line(session))
        return features.features(session)

    def _ask(
        self,
        check: abc.Callable[..., upgradecheck.Result],
        *,
        is_needed: bool = True,
    ) -> upgradecheck.Result:
        """Run a check that asks the cloud.

        :param is_needed: whether the check is skipped without a cloud.
        """
        session = self._session
        if isinstance(session, Exception):
            code = upgradecheck.Code.FAILURE
            return upgradecheck.Result(code, foreign.line(session))
        if session is None and is_needed:
            return upgradecheck.Result(upgradecheck.Code.SUCCESS, _SKIPPED)
        return check(session)

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
    from heat_plugins import registry

    config.register_opts(cfg.CONF)
    cfg.CONF.register_cli_opts(OPTS)
    try:
        registry.require_heat()
        code = _run(_globals_first(given))
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


def _run(args: abc.Sequence[str]) -> int:
    # Those that heat-engine reads.
    files = cfg.find_config_files(project='heat', prog='heat-engine')
    if _command(args) == 'upgrade':
        return upgradecheck.main(
            cfg.CONF,
            project='heat',
            upgrade_command=Checks(),
            argv=list(args),
            default_config_files=files,
        )
    cfg.CONF.register_cli_opt(
        cfg.SubCommandOpt('command', handler=_add_commands)
    )
    cfg.CONF(args=args, project='heat', default_config_files=files)
    try:
        return _COMMANDS[cfg.CONF.command.name][cfg.CONF.command.action](
            Checks()
        )
    except errors.Error as exc:
        print(f'{str(exc).rstrip(".")}.', file=sys.stderr)
        return CANNOT_RUN


def _command(args: abc.Sequence[str]) -> str:
    """Return the subcommand, which follows the options of the whole one."""
    remaining = iter(args)
    for each in remaining:
        if each in _GLOBALS:
            next(remaining, None)
        elif not each.startswith('-'):
            return each
    return ''


#: What to run, by the first and the second word of a command.
_COMMANDS: abc.Mapping[str, abc.Mapping[str, abc.Callable[[Checks], int]]] = {
    'feature': {'list': Checks.list_features},
    'leftover': {
        'list': Checks.list_leftovers,
        'remove': Checks.remove_leftovers,
    },
}


def _add_commands(
    parsers: 'argparse._SubParsersAction[argparse.ArgumentParser]',
) -> None:
    # For the help alone: oslo.upgradecheck reads its arguments.
    parsers.add_parser('upgrade', help='"upgrade check": what is wrong')
    feature = parsers.add_parser(
        'feature', help='what works on this cloud'
    ).add_subparsers(dest='action', required=True)
    leftover = parsers.add_parser(
        'leftover',
        help='metadata of deleted servers that Heat has left in the object '
        "store, in the user's project",
    ).add_subparsers(dest='action', required=True)
    for parser in (
        feature.add_parser('list', help='print what works'),
        leftover.add_parser('list', help='print the containers'),
    ):
        parser.add_argument(
            '-f',
            '--format',
            choices=['table', 'json'],
            default='table',
            help='of the list (default: table)',
        )
    leftover.add_parser(
        'remove', help='remove those that are certainly left'
    ).add_argument(
        '-y', '--yes', action='store_true', help='remove without a question'
    )


def _is_confirmed(number: int) -> bool:
    """Ask whether to remove containers."""
    containers = wording.counted(number, 'container')
    try:
        answer = input(f'Remove {containers}? [y/N] ')
    except EOFError:
        print('No answer: name --yes to remove them without a question.')
        return False
    return answer.strip().lower() in ('y', 'yes')


def _is_removed(
    session: 'ks_session.Session', leftover: 'leftovers.Leftover'
) -> bool:
    """Remove a container; say in words, too, whether it is gone."""
    from heat_plugins.checks import leftovers

    try:
        leftovers.remove(session, leftover)
    except errors.ServiceError as exc:
        print(f'Container {_shown(leftover)} remains: {foreign.line(exc)}.')
        return False
    print(f'Removed container {_shown(leftover)}.')
    return True


def _unchanged(
    named: 'abc.Sequence[leftovers.Leftover]',
    found: 'abc.Iterable[leftovers.Leftover]',
) -> 'list[leftovers.Leftover]':
    """Return which containers are as they were; tell which are not.

    :param named: those that the user has confirmed.
    :param found: those that are there now.
    """
    now = frozenset(found)
    for each in named:
        if each not in now:
            print(
                f'Container {_shown(each)} remains: it has changed since it '
                'was listed. See "heat-plugins-status leftover list".'
            )
    return [each for each in named if each in now]


def _shown(leftover: 'leftovers.Leftover') -> str:
    """Return the name of a container, which users choose, for a terminal."""
    return foreign.line(leftover.container)


def _print(
    found: 'abc.Sequence[_Listed]',
    table: 'abc.Callable[[abc.Sequence[_Listed]], prettytable.PrettyTable]',
) -> int:
    """Print what a subcommand lists, in the format of it; the exit code."""
    if cfg.CONF.command.format == 'json':
        print(json.dumps([dataclasses.asdict(each) for each in found]))
    else:
        print(table(found))
    return 0


def _table_of_leftovers(
    found: 'abc.Iterable[leftovers.Leftover]',
) -> prettytable.PrettyTable:
    rows = (
        (_shown(each), _WORKS[not each.doubt], foreign.line(each.doubt))
        for each in found
    )
    return _table(('Container', 'Certain', 'Reason'), rows)


def _table_of_features(
    found: 'abc.Iterable[features.Feature]',
) -> prettytable.PrettyTable:
    rows = ((each.name, _WORKS[each.works], each.reason) for each in found)
    return _table(('Feature', 'Works here', 'Reason'), rows)


def _table(
    names: abc.Sequence[str], rows: abc.Iterable[abc.Iterable[str]]
) -> prettytable.PrettyTable:
    table = prettytable.PrettyTable(names)
    table.align = 'l'
    table.max_width['Reason'] = _REASON_WIDTH
    table.add_rows([list(row) for row in rows])
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
