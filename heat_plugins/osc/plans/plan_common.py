# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the commands for plans."""

import argparse
from collections import abc
import pathlib
from typing import Any, Final

from heat_plugins import foreign
from heat_plugins.clients import heat_plans
from heat_plugins.clients import mistral_api
from heat_plugins.clients import mistral_plans
from heat_plugins.clients import swift
from heat_plugins.content import sources
from heat_plugins.content import tarballs
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.plans import plan_claims
from heat_plugins.plans import plan_operations
from heat_plugins.plans import plan_service

LOG = foreign.logger(__name__)

# Scripts may still give it: these commands always work in this process.
NO_LONGER_NEEDED: Final = command_line.flag('--local', argparse.SUPPRESS)


def operations(manager: Any) -> plan_operations.PlanOperations:
    """Return the operations on plans, with the session of a command."""
    cloud = common.cloud(manager)
    store = swift.connect(cloud)
    registry: plan_claims.Registry
    if mistral_api.is_there(cloud):
        registry = mistral_plans.MistralRegistry(cloud)
    else:
        LOG.info(
            'The catalogue has no Mistral; keeping names and locks of plans '
            'in the object store'
        )
        registry = plan_claims.Names(store)
    return plan_operations.PlanOperations(
        plan_service.Plans(store, registry, heat_plans.PlanStacks(cloud))
    )


class PlanCommand(common.Report):
    """A command for plans; one without a plan has other `shared`."""

    shared: command_line.Arguments = (
        command_line.value('plan', '<plan>', 'The plan'),
        NO_LONGER_NEEDED,
    )

    def plans(self) -> plan_operations.PlanOperations:
        """Return the operations on plans."""
        return operations(self.app.client_manager)

    def warn(self, warnings: abc.Iterable[str]) -> None:
        """Print warnings about a plan."""
        for warning in warnings:
            self.log.warning('%s', warning)


_FILES = (
    command_line.value(
        '--from', '<path>', 'A directory, or a tarball', dest='source'
    ),
    command_line.value(
        '--git',
        '<repository>',
        'A git repository: a path, or a URL (https or ssh)',
    ),
)
_REVISION = command_line.value(
    '--revision',
    '<revision>',
    'With --git: a branch, a tag or a commit (default: HEAD)',
    default='HEAD',
)


def source(
    *others: command_line.Argument, required: bool = False
) -> command_line.Argument:
    """Return the options for the source of a plan's files.

    :param others: alternative options; last in the help.
    """

    def add(parser: Any) -> None:
        group = parser.add_mutually_exclusive_group(required=required)
        command_line.add(group, _FILES)
        _REVISION(parser)
        command_line.add(group, others)

    return add


def content(
    parsed_args: argparse.Namespace, folders: abc.Container[str] = ()
) -> sources.Content | None:
    """Return the files of the source; None without a source."""
    if parsed_args.git:
        return tarballs.from_git(parsed_args.git, parsed_args.revision)
    if not parsed_args.source:
        return None
    path = pathlib.Path(parsed_args.source)
    if path.is_dir():
        return sources.from_directory(path)
    with common.access('read', path), path.open('rb') as file:
        return tarballs.read(file, folders=folders)
