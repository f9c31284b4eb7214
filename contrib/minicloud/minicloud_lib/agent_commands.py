# SPDX-License-Identifier: Apache-2.0
"""minicloud agent start|once|stop|list|logs."""

import argparse
from typing import Any

from minicloud_lib import agents
from minicloud_lib import catalog
from minicloud_lib import commands
from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import output
from minicloud_lib import servers
from minicloud_lib import settings

_START = """\
Play a server: poll Heat for the software of the stack's deployments, run
it, and signal the results. The server is an OS::Heat::DeployedServer (or
any server resource with the attribute os_collect_config). The command waits
until Heat has created it.
"""


def add(
    parser: argparse.ArgumentParser, common: argparse.ArgumentParser
) -> None:
    subparsers = parser.add_subparsers(
        title='commands', metavar='COMMAND', required=True
    )

    def command(
        name: str, summary: str, description: str | None = None
    ) -> argparse.ArgumentParser:
        return subparsers.add_parser(
            name,
            help=summary,
            description=description or summary[0].upper() + summary[1:] + '.',
            parents=[common],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    one = command('start', 'start an agent in the background', _START)
    _add_server(one)
    one.set_defaults(run=start)
    one = command('once', 'poll once, run new software, and return', _START)
    _add_server(one)
    one.set_defaults(run=once)
    one = command('stop', 'stop an agent and the hooks it is running')
    _add_name(one)
    one.add_argument(
        '--remove', action='store_true', help="delete the server's disk"
    )
    one.set_defaults(run=stop)
    one = command('list', 'list the agents')
    one.add_argument('--format', choices=['table', 'json'], default='table')
    one.set_defaults(run=list_)
    one = command('logs', 'show the log of an agent')
    _add_name(one)
    one.add_argument('-f', '--follow', action='store_true')
    one.add_argument('-n', '--lines', type=int, default=50)
    one.set_defaults(run=logs)


def start(options: argparse.Namespace) -> None:
    agent = _prepare(options)
    with files.lock(options.instance.lock):
        agent.start(agent.about()['interval'])
    output.say(f'agent {agent.name} is running; its log is {agent.log}')


def once(options: argparse.Namespace) -> int:
    agent = _prepare(options)
    return agent.once()


def stop(options: argparse.Namespace) -> None:
    agent = agents.find(options.instance, options.agent)
    with files.lock(options.instance.lock):
        agent.stop()
        if options.remove:
            agent.remove()


def list_(options: argparse.Namespace) -> None:
    found = [agent.about() for agent in agents.known(options.instance)]
    commands.show(found, options.format)


def logs(options: argparse.Namespace) -> None:
    agent = agents.find(options.instance, options.agent)
    commands.follow(agent.log, options.lines, options.follow)


def _prepare(options: argparse.Namespace) -> agents.Agent:
    """The agent's folder: as it was left, or new for the given server."""
    instance = options.instance
    settings.require(instance)
    agent = agents.Agent(instance, options.agent)
    if agent.process:
        raise errors.MinicloudError(
            f'agent {agent.name} is running already',
            f'minicloud agent stop {agent.name}',
        )
    if not options.stack and not options.resource and agent.path.is_dir():
        # A server that is switched on again.
        return agent
    agent.set_up(
        bootstrap(options),
        {
            'stack': options.stack,
            'resource': options.resource,
            'supervised': options.supervised,
        },
        options.interval,
    )
    return agent


def bootstrap(options: argparse.Namespace) -> dict[str, Any]:
    """Return the bootstrap of a server, as soon as Heat has it."""
    instance = options.instance
    found = settings.require(instance)
    if not options.stack or not options.resource:
        raise errors.UsageError(
            'a new agent needs --stack and --resource',
            'They name the server that it is.',
        )
    heat = catalog.find(found.profile, 'heat')
    if not any(service.process(instance) for service in heat):
        raise errors.NotRunningError('heat is not running', 'minicloud up')
    # Checks the name of the user, too.
    found.user_env(options.user)
    return servers.bootstrap(
        found, options.user, options.stack, options.resource, options.wait
    )


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('agent', metavar='NAME', help='a name of your choice')


def _add_server(parser: argparse.ArgumentParser) -> None:
    _add_name(parser)
    add_resource(parser)
    parser.add_argument(
        '--interval',
        metavar='SECONDS',
        type=float,
        default=2.0,
        help='maximum seconds between two polls; the interval grows to it '
        'from one second while nothing changes (default: %(default)g)',
    )


def add_resource(parser: argparse.ArgumentParser) -> None:
    """Add what says which server of which stack it is."""
    parser.add_argument(
        '--stack',
        help='the stack, by name or id; not needed for an agent that was '
        'started before',
    )
    parser.add_argument('--resource', help="the server's name in the stack")
    parser.add_argument(
        '--supervised',
        action='store_true',
        help='install heat-config-supervisor, of contrib/agent',
    )
    parser.add_argument(
        '--wait',
        metavar='SECONDS',
        type=float,
        default=60.0,
        help='seconds to wait for the resource (default: 60)',
    )
    parser.add_argument(
        '--as',
        dest='user',
        metavar='USER',
        default='demo',
        help='a user who may read the stack (default: demo)',
    )
