# SPDX-License-Identifier: Apache-2.0
"""``python -m heat_plugins``: the line of heat.conf that loads the plugins.

It names the directories that are in plugin_dirs already, so that putting it
into heat.conf takes none of the operator's other plugins away.

``python -m heat_plugins example`` lists templates that come with the package,
and ``example hello`` prints one: the first stack needs no clone.
"""

import argparse
from collections import abc
from importlib import metadata
import os
import pathlib
import sys
import textwrap

from oslo_config import cfg
import yaml

PLUGIN_DIR = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), 'plugin_dir'
)

EXAMPLES = pathlib.Path(__file__).with_name('examples')

#: Columns of a terminal that the list of examples takes.
_WIDTH = 79

DESCRIPTION = """
Print the plugin_dirs line for the [DEFAULT] section of heat.conf. It keeps
the directories that heat-engine searches already, as the configuration files
name them or by Heat's default, and adds the one of heat-plugins. Restart
heat-engine after the change. "python -m heat_plugins example" lists templates
to begin with.
"""


def plugin_dirs(configured: abc.Iterable[str]) -> list[str]:
    """Return the configured directories, ours among them just once."""
    ours = os.path.realpath(PLUGIN_DIR)
    directories = list(configured)
    if not any(os.path.realpath(path) == ours for path in directories):
        directories.append(PLUGIN_DIR)
    return directories


def print_example(args: abc.Sequence[str]) -> None:
    """Print a template of the package, or list all with what each is for.

    :param args: the name of one, or nothing; the command exits with a usage
        message if there is no such template.
    """
    paths = {path.stem: path for path in sorted(EXAMPLES.glob('*.yaml'))}
    parser = argparse.ArgumentParser(
        prog='python -m heat_plugins example',
        description='Print a template for a first stack; without a name, '
        'list them.',
    )
    parser.add_argument('name', nargs='?', choices=list(paths), metavar='name')
    chosen: str | None = parser.parse_args(args).name
    if chosen:
        sys.stdout.write(paths[chosen].read_text())
    else:
        print('\n'.join(_summary(path) for path in paths.values()))


def _summary(path: pathlib.Path) -> str:
    """Return the name of a template, and what its description begins with."""
    described: str = yaml.safe_load(path.read_text())['description']
    return textwrap.fill(
        described.partition('\n')[0],
        _WIDTH,
        initial_indent=f'{path.stem:17}',
        subsequent_indent=' ' * 17,
    )


def main(args: abc.Sequence[str] | None = None) -> None:
    """Print the line; exits with a message if heat.conf cannot be read.

    :param args: the arguments of the command, by default those of the
        process.
    """
    given = sys.argv[1:] if args is None else args
    if given[:1] == ['example']:
        print_example(given[1:])
    else:
        _print_line(given)


def _print_line(args: abc.Sequence[str]) -> None:
    conf = cfg.CONF
    try:
        conf.import_opt('plugin_dirs', 'heat.common.config')
    except ImportError:
        # Without Heat its default directories are unknown.
        conf.register_opt(cfg.ListOpt('plugin_dirs', default=[]))
    try:
        conf(
            args,
            project='heat',
            prog='heat-engine',  # whose configuration files are meant
            usage='python -m heat_plugins [options] | example [name]',
            description=DESCRIPTION,
            version=metadata.version('heat-plugins'),
        )
        configured = conf.plugin_dirs
    except cfg.Error as exc:
        sys.exit(f'Cannot read heat.conf: {exc}')
    print('plugin_dirs = ' + ','.join(plugin_dirs(configured)))


if __name__ == '__main__':
    main()
