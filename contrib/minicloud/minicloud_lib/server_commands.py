# SPDX-License-Identifier: Apache-2.0
"""minicloud server build|start|stop|kill|plug|unplug|run|list|logs."""

import argparse
import pathlib
import sys

from minicloud_lib import agent_commands
from minicloud_lib import commands
from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import output
from minicloud_lib.virtual import image as images
from minicloud_lib.virtual import machine
from minicloud_lib.virtual import qemu
from minicloud_lib.virtual import seed
from minicloud_lib.virtual import snapshot

_START = """\
Boot a virtual machine as a server of a stack: Debian, cloud-init and the
agents, with the user data that Heat makes for an OS::Nova::Server.

In the stack the server is an OS::Heat::DeployedServer. The first machine
becomes a snapshot once it has booted; all others start from it, each with
its own seed. Without KVM, machines are emulated, ten times slower.
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
        found = subparsers.add_parser(
            name,
            help=summary,
            description=description or summary[0].upper() + summary[1:] + '.',
            parents=[common],
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        found.set_defaults(run=globals()[name.replace('list', 'list_')])
        return found

    command(
        'build',
        "install Debian's packages if needed, and build the image (root)",
    )
    one = command('start', 'start a server', _START)
    _add_name(one)
    agent_commands.add_resource(one)
    one.add_argument(
        '--user-data',
        metavar='FILE',
        type=pathlib.Path,
        help='a file with the user_data of the server in the template',
    )
    one.add_argument(
        '--boot',
        action='store_true',
        help='boot it completely, not from the snapshot',
    )
    one = command('stop', 'shut a server down properly')
    _add_name(one)
    one.add_argument(
        '--remove', action='store_true', help='cut its power, and delete it'
    )
    _add_name(command('kill', "cut a server's power"))
    _add_name(command('plug', "connect a server's network"))
    _add_name(command('unplug', "disconnect a server's network"))
    one = command('run', 'run a command as root on a server')
    _add_name(one)
    one.add_argument(
        'shell', metavar='COMMAND', help='a command line for its shell'
    )
    one.add_argument(
        '--seconds',
        type=float,
        default=60,
        help='maximum seconds (default: 60)',
    )
    one = command('list', 'list the servers')
    one.add_argument('--format', choices=['table', 'json'], default='table')
    one = command('logs', 'show what a server prints to its console')
    _add_name(one)
    one.add_argument('-f', '--follow', action='store_true')
    one.add_argument('-n', '--lines', type=int, default=50)


def build(options: argparse.Namespace) -> None:
    home = options.instance.home
    image = images.ensure(home)
    accelerator = qemu.accelerator(image)
    snapshot.ensure(home, image, accelerator)
    output.say(
        f'The image of servers is in {image.path}; QEMU uses {accelerator}.'
    )


def start(options: argparse.Namespace) -> None:
    instance = options.instance
    server = machine.Server(instance, options.server)
    if server.process:
        raise errors.MinicloudError(
            f'server {server.name} is running already',
            f'minicloud server stop {server.name}',
        )
    image = images.ensure(instance.home)
    accelerator = qemu.accelerator(image)
    booted = None
    if options.stack or options.resource or not server.path.is_dir():
        if not options.boot:
            booted = snapshot.ensure(instance.home, image, accelerator)
        user_data = seed.user_data(
            instance.home,
            agent_commands.bootstrap(options),
            _read(options.user_data),
        )
        server.create(
            seed.no_cloud(
                server.name, user_data, supervised=options.supervised
            ),
            stack=options.stack,
            resource=options.resource,
        )
    with files.lock(instance.lock):
        server.start(image, accelerator, booted)
    output.say(
        f'server {server.name} is running ({accelerator}); its console is '
        f'{server.console}'
    )


def _read(path: pathlib.Path | None) -> str:
    if path is None:
        return ''
    try:
        return path.read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as error:
        raise errors.UsageError(f'--user-data: {error}') from error


def stop(options: argparse.Namespace) -> None:
    server = _find(options)
    if options.remove:
        server.kill()
        server.remove()
    elif not server.stop():
        output.say(
            f'{server.name} has not shut down in {machine.STOP_SECONDS} s: '
            'its power was cut'
        )


def kill(options: argparse.Namespace) -> None:
    _find(options).kill()


def plug(options: argparse.Namespace) -> None:
    _find(options).plug(True)


def unplug(options: argparse.Namespace) -> None:
    _find(options).plug(False)


def run(options: argparse.Namespace) -> int:
    result = _find(options).inside.run(options.shell, options.seconds)
    print(result.stdout, end='')
    print(result.stderr, end='', file=sys.stderr)
    return result.code


def list_(options: argparse.Namespace) -> None:
    found = [server.about() for server in machine.known(options.instance)]
    commands.show(found, options.format)


def logs(options: argparse.Namespace) -> None:
    commands.follow(_find(options).console, options.lines, options.follow)


def _find(options: argparse.Namespace) -> machine.Server:
    return machine.find(options.instance, options.server)


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('server', metavar='NAME', help='a name of your choice')
