# SPDX-License-Identifier: Apache-2.0
"""What the commands for plans share."""

import argparse
from collections import abc
import functools
import pathlib
from typing import Any

from heat_plugins.content import sources
from heat_plugins.content import tarballs
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc import drivers


class PlanCommand(common.Report):
    """A command about plans."""

    #: Whether it is about one plan.
    named = True

    def add_shared(self, add: command_line.Adder) -> None:
        if self.named:
            add.value('plan', '<plan>', 'The plan')
        add.flag(
            '--local',
            'Do the work in this command, without Mistral; the result is the '
            'same',
        )

    def driver(self, parsed_args: argparse.Namespace) -> drivers.Driver:
        return drivers.driver(self.app.client_manager, parsed_args.local)

    def files(self, what: str) -> drivers.Files:
        """Return what is told how many files are done, and of how many."""
        return functools.partial(self.progress.show, what)

    def warn(self, warnings: abc.Iterable[str]) -> None:
        for warning in warnings:
            self.log.warning('%s', warning)


def add_source_options(add: command_line.Adder, *, required: bool) -> Any:
    """Add options for where the files of a plan come from."""
    group = add.either(required=required)
    group.value('--from', '<path>', 'A directory, or a tarball', dest='source')
    group.value(
        '--git',
        '<repository>',
        'A git repository: a path, or a URL (https or ssh)',
    )
    add.value(
        '--revision',
        '<revision>',
        'With --git: a branch, a tag or a commit (default: HEAD)',
        default='HEAD',
    )
    return group


def content(
    parsed_args: argparse.Namespace, folders: abc.Container[str] = ()
) -> sources.Content | None:
    """Return the files that were given; None if none were."""
    if parsed_args.git:
        return tarballs.from_git(parsed_args.git, parsed_args.revision)
    if not parsed_args.source:
        return None
    path = pathlib.Path(parsed_args.source)
    if path.is_dir():
        return sources.from_directory(path)
    with common.access('read', path), path.open('rb') as file:
        return tarballs.read(file, folders=folders)


def one(values: drivers.Report, *names: str) -> common.Shown:
    """Return columns and values of a map, or of some of its entries."""
    names = names or tuple(values)
    return names, common.One(values[name] for name in names)
