# SPDX-License-Identifier: Apache-2.0
"""``python -m heat_plugins``: the line of heat.conf that loads the plugins.

It names the directories that are in plugin_dirs already, so that putting it
into heat.conf takes none of the operator's other plugins away.
"""

from collections import abc
from importlib import metadata
import os
import sys

from oslo_config import cfg

PLUGIN_DIR = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), 'plugin_dir'
)

DESCRIPTION = """
Print the plugin_dirs line for the [DEFAULT] section of heat.conf. It keeps
the directories that heat-engine searches already, as the configuration files
name them or by Heat's default, and adds the one of heat-plugins. Restart
heat-engine after the change.
"""


def plugin_dirs(configured: abc.Iterable[str]) -> list[str]:
    """Return the configured directories, ours among them just once."""
    ours = os.path.realpath(PLUGIN_DIR)
    directories = list(configured)
    if not any(os.path.realpath(path) == ours for path in directories):
        directories.append(PLUGIN_DIR)
    return directories


def main(args: abc.Sequence[str] | None = None) -> None:
    """Print the line; exits with a message if heat.conf cannot be read.

    :param args: the arguments of the command, by default those of the
        process.
    """
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
            usage='python -m heat_plugins [options]',
            description=DESCRIPTION,
            version=metadata.version('heat-plugins'),
        )
        configured = conf.plugin_dirs
    except cfg.Error as exc:
        sys.exit(f'Cannot read heat.conf: {exc}')
    print('plugin_dirs = ' + ','.join(plugin_dirs(configured)))


if __name__ == '__main__':
    main()
