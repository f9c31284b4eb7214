# SPDX-License-Identifier: Apache-2.0
"""The command line."""

import argparse
from collections.abc import Sequence
import os
import sys

from minicloud_lib import agent_commands
from minicloud_lib import catalog
from minicloud_lib import commands
from minicloud_lib import errors
from minicloud_lib import layout
from minicloud_lib import server_commands
from minicloud_lib import settings

_DESCRIPTION = """\
Run a real Keystone, Swift, Mistral and Heat on this machine.

No root, no containers: four processes, which stay until "minicloud down".
Everything that it installs, stores and logs is in one folder.
"""

_EPILOG = """\
first steps:
  minicloud up                     install if needed, and start
  eval "$(minicloud env)"          be the user demo in this shell
  openstack stack create -t my-template.yaml my-stack
  minicloud agent start web --stack my-stack --resource web_server
  openstack stack list
  minicloud down                   stop; "up" restores everything
  minicloud down --purge           stop and delete

Exit codes: 0 done, 1 failed, 2 invalid arguments, 3 not running,
4 "install" or "server" lacks root, apt-get or packages of Debian.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        home = layout.Home.find(options.home)
        options.instance = home.instance(options.name)
        return _run(options)
    except errors.MinicloudError as error:
        print(explained(error), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print('minicloud: interrupted', file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Python flushes once more at exit, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def run(instance: layout.Instance, arguments: Sequence[str]) -> int:
    """Run a command for an instance in this process; its exit code.

    :raises errors.MinicloudError: it did not work.
    """
    options = _parser().parse_args(arguments)
    options.instance = instance
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    result: int | None = options.run(options)
    return result or 0


def explained(error: errors.MinicloudError) -> str:
    """Return the lines that the command prints about an error."""
    lines = [str(error), *([error.remedy] if error.remedy else [])]
    return '\n'.join(f'minicloud: {line}' for line in lines)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    _add_common(common, argparse.SUPPRESS)
    parser = argparse.ArgumentParser(
        prog='minicloud',
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    # Before or after the command, as one likes.
    _add_common(parser, None)
    subparsers = parser.add_subparsers(
        title='commands', metavar='COMMAND', required=True
    )

    def add(name: str, summary: str) -> argparse.ArgumentParser:
        return subparsers.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + '.',
            parents=[common],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    command = add('install', 'only install what "up" would install')
    _add_profile(command)
    command.add_argument(
        '--browser',
        action='store_true',
        help="also install Debian's chromium, as root, for the tests of "
        "Horizon's pages",
    )
    command.set_defaults(run=commands.install)
    _add_up(add('up', 'start the cloud, after installing it if needed'))
    _add_down(add('down', 'stop the cloud and its agents'))
    command = add(
        'status', 'show what runs, at which URLs, and its memory and CPU time'
    )
    _add_format(command, 'table')
    command.set_defaults(run=commands.status)
    _add_env(
        add('env', 'print environment variables for the openstack command')
    )
    _add_logs(add('logs', 'show the log of a service'))
    for name, summary in (
        ('start', 'start one service'),
        ('stop', 'stop one service'),
        ('restart', 'stop and start one service'),
        ('kill', 'end one service at once, as a crash would'),
    ):
        command = add(name, summary)
        command.add_argument(
            'service', help='a service that "minicloud status" lists'
        )
        command.set_defaults(run=getattr(commands, name))
    agent = subparsers.add_parser(
        'agent',
        help='run real agents as servers',
        description='Run real, unmodified Heat agents, each in a folder.',
    )
    agent_commands.add(agent, common)
    server = subparsers.add_parser(
        'server',
        help='run servers that are virtual machines',
        description='Run virtual machines: Debian, cloud-init and agents.',
    )
    server_commands.add(server, common)
    return parser


def _add_common(parser: argparse.ArgumentParser, default: object) -> None:
    parser.add_argument(
        '--home',
        metavar='DIR',
        default=default,
        help='the folder for all files (default: $MINICLOUD_HOME, else '
        '.minicloud in the source tree)',
    )
    parser.add_argument(
        '--name',
        default=default or os.environ.get('MINICLOUD_NAME', 'default'),
        help='the instance; several run side by side '
        '(default: $MINICLOUD_NAME, else default)',
    )


def _add_format(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        '--format',
        choices=[default, 'json'],
        default=default,
        help=f'default: {default}',
    )


def _add_profile(parser: argparse.ArgumentParser) -> None:
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        '--profile',
        choices=catalog.PROFILES,
        help='small: one process each for Keystone, Swift, Mistral and Heat, '
        "as any user (the default); rgw: the same with Ceph's RADOS Gateway "
        'in place of Swift; production: several of Heat and Mistral, a '
        'message broker, a database server and TLS. "install" installs the '
        'packages of Debian that the last two need, as root',
    )
    either.add_argument(
        '--store',
        choices=catalog.STORES,
        help='the object store: swift is the profile small, rgw that profile',
    )
    parser.add_argument(
        '--with',
        dest='extras',
        choices=catalog.EXTRAS,
        action='append',
        default=[],
        help='add something to the profiles small and rgw, permanently: '
        + '; '.join(
            f'{name} is {extra.about}'
            for name, extra in catalog.EXTRAS.items()
        ),
    )


def _add_up(parser: argparse.ArgumentParser) -> None:
    _add_profile(parser)
    parser.add_argument(
        '--without',
        dest='omitted',
        choices=catalog.OMITTABLE,
        action='append',
        default=[],
        help='leave a service out of a new cloud of the profile small, as '
        'many clouds do',
    )
    parser.add_argument(
        '--plugin',
        metavar='PATH',
        help='load heat-plugins from this source tree; "none" for Heat\'s '
        'own classes (default: the tree that this program is in)',
    )
    parser.add_argument(
        '--conf',
        metavar='FILE',
        nargs='+',
        action='extend',
        default=[],
        help='ini files that Heat reads after heat.conf',
    )
    parser.add_argument(
        '--executor-threads',
        metavar='N',
        type=int,
        help="Heat's executor_thread_pool_size: how many resources one "
        'engine process works on or waits for at a time (default: 256)',
    )
    parser.add_argument(
        '--rgw-url',
        choices=settings.RGW_URLS,
        help="the form of RGW's URL, from now on: account is "
        '/swift/v1/AUTH_PROJECT, which TempURLs need with implicit tenants '
        "(the first up chooses it); default is Ceph's own, /swift/v1",
    )
    parser.add_argument(
        '--rgw-implicit-tenants',
        action=argparse.BooleanOptionalAction,
        help='whether RGW gives each project containers of its own, from now '
        'on ("rgw keystone implicit tenants"; the first up chooses not to)',
    )
    parser.epilog = (
        'On a running cloud it restarts the services that the given options '
        'change.'
    )
    parser.set_defaults(run=commands.up)


def _add_down(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--purge',
        action='store_true',
        help='also delete databases, objects, agents and logs',
    )
    parser.set_defaults(run=commands.down)


def _add_env(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--as',
        dest='user',
        metavar='USER',
        default='demo',
        help='demo, other, reader (may not use Swift) or admin '
        '(default: demo)',
    )
    _add_format(parser, 'shell')
    parser.epilog = 'Usage: eval "$(minicloud env)"'
    parser.set_defaults(run=commands.env)


def _add_logs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'service',
        nargs='?',
        help='default: list the files',
    )
    parser.add_argument(
        '-f', '--follow', action='store_true', help='follow it'
    )
    parser.add_argument(
        '-n',
        '--lines',
        type=int,
        default=50,
        help='number of lines (default: 50)',
    )
    parser.set_defaults(run=commands.logs)
