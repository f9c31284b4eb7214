# SPDX-License-Identifier: Apache-2.0
"""Which stacks have groups that Heat's own classes do not know."""

import itertools

from heat.common import context as heat_context
from oslo_upgradecheck import upgradecheck

from heat_plugins import bounds
from heat_plugins.checks import report
from heat_plugins.engine.database import resources

#: The most stacks to read, and the most projects to name.
READ, NAMED = 1000, 20

_REMEDY = (
    "Before you return to Heat's own classes or to a release before 0.2, run "
    '"openstack software deployment group nest" in each of these projects.'
)


def single_groups() -> upgradecheck.Result:
    """Name the stacks with groups without nested stack, by project."""
    found = report.Report()
    try:
        context = heat_context.get_admin_context()
        stacks = resources.with_groups(context, READ + 1)
    except Exception as exc:
        # What a database says may hold its password.
        found.warn(
            'Cannot read which groups have no nested stack, because the '
            f'database ([database] connection) fails with '
            f'{type(exc).__name__}.'
        )
        return found.result()
    if not stacks:
        found.good('No stack has a group without nested stack.')
        return found.result()
    number = f'{len(stacks)} stacks'
    if len(stacks) > READ:
        number = f'More than {READ} stacks'
    found.good(f'{number} have groups without nested stack. {_REMEDY}')
    projects = [
        (project, bounds.listed(name for _, name in rows))
        for project, rows in itertools.groupby(
            stacks[:READ], lambda row: row[0]
        )
    ]
    for project, names in projects[:NAMED]:
        found.good(f'Project {project}: {names}.')
    if len(projects) > NAMED:
        found.good(f'And {len(projects) - NAMED} more projects.')
    return found.result()
