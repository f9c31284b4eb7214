# SPDX-License-Identifier: Apache-2.0
"""``python -m heat_plugins``: the line of heat.conf that loads the plugins.

It names the directories that are in plugin_dirs already, so that putting it
into heat.conf takes none of the operator's other plugins away.

``python -m heat_plugins example`` lists templates that come with the package,
and ``example hello`` prints one: the first stack needs no clone.

``python -m heat_plugins tables`` makes the tables of runs in Heat's database.
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

from heat_plugins import foreign

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
to begin with; "python -m heat_plugins tables" makes the tables of runs.
"""

TABLES = """
Make the tables of runs in Heat's database, or add what they lack. heat-engine
does so after its start, if its database user may. For another user, write a
file with a [database] section and the line "connection = ...", and name it
last: --config-file /etc/heat/heat.conf --config-file owner.conf
"""


def plugin_dirs(configured: abc.Iterable[str]) -> list[str]:
    """Return the configured directories, ours among them just once."""
    ours = os.path.realpath(PLUGIN_DIR)
    directories = list(configured)
    if not any(os.path.realpath(path) == ours for path in directories):
        directories.append(PLUGIN_DIR)
    return directories


def print_example(args: abc.Sequence[str]) -> None:
    """Print a template of the package, or list all with their purposes.

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
        for name, path in paths.items():
            described: str = yaml.safe_load(path.read_text())['description']
            print(
                textwrap.fill(
                    described.partition('\n')[0],
                    _WIDTH,
                    initial_indent=f'{name:17}',
                    subsequent_indent=' ' * 17,
                )
            )


def main(args: abc.Sequence[str] | None = None) -> None:
    """Print the line; exits with a message if heat.conf cannot be read.

    :param args: the arguments of the command, by default those of the
        process.
    """
    given = sys.argv[1:] if args is None else args
    if given[:1] == ['example']:
        print_example(given[1:])
    elif given[:1] == ['tables']:
        make_tables(given[1:])
    else:
        print_plugin_dirs(given)


def make_tables(args: abc.Sequence[str]) -> None:
    """Make the tables of runs; exits with a message if that fails."""
    try:
        from heat.db import api as db_api

        from heat_plugins.engine.database import run_tables
    except ImportError as exc:
        sys.exit(f'This needs the Python environment of heat-engine: {exc}')
    try:
        _read_configuration(
            args, 'python -m heat_plugins tables [options]', TABLES
        )
        run_tables.upgrade(db_api.get_engine())
    except cfg.Error as exc:
        sys.exit(f'Cannot read heat.conf: {exc}')
    except Exception as exc:
        sys.exit(f'Cannot make the tables of runs: {foreign.brief(exc)}')
    print("The tables of runs are in Heat's database.")


def print_plugin_dirs(args: abc.Sequence[str]) -> None:
    """Print the line for heat.conf; exits with a message if that fails."""
    conf = cfg.CONF
    try:
        conf.import_opt('plugin_dirs', 'heat.common.config')
    except ImportError:
        # Without Heat its default directories are unknown.
        conf.register_opt(cfg.ListOpt('plugin_dirs', default=[]))
    try:
        _read_configuration(
            args,
            'python -m heat_plugins [options] | example [name] | tables',
            DESCRIPTION,
        )
        configured = conf.plugin_dirs
    except cfg.Error as exc:
        sys.exit(f'Cannot read heat.conf: {exc}')
    print('plugin_dirs = ' + ','.join(plugin_dirs(configured)))


def _read_configuration(
    args: abc.Sequence[str], usage: str, description: str
) -> None:
    """Read the options of heat-engine's configuration files."""
    cfg.CONF(
        args,
        project='heat',
        prog='heat-engine',  # whose configuration files are meant
        usage=usage,
        description=description,
        version=metadata.version('heat-plugins'),
    )


if __name__ == '__main__':
    main()
