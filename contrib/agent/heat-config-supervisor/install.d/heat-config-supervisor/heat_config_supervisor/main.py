# SPDX-License-Identifier: Apache-2.0
"""The commands that 55-heat-config and the services around it call."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import shlex
import subprocess
import sys
import time

from heat_config_supervisor import config as configs
from heat_config_supervisor import control
from heat_config_supervisor import delivery
from heat_config_supervisor import hook
from heat_config_supervisor import live
from heat_config_supervisor import logs
from heat_config_supervisor import outputs
from heat_config_supervisor import places
from heat_config_supervisor import reporting
from heat_config_supervisor import results
from heat_config_supervisor import sending
from heat_config_supervisor import watch

LOG = logging.getLogger(__name__)

USAGE = """\
usage: heat-config-supervisor prepare        before 55-heat-config
       heat-config-supervisor hook PROGRAM   in place of a hook
       heat-config-supervisor notify FILE    in place of heat-config-notify
       heat-config-supervisor deliver        until no result is pending
       heat-config-supervisor watch          for new configs, for ever
"""


def main(arguments: list[str]) -> int:
    logging.basicConfig(
        format='[%(asctime)s] (heat-config-supervisor) [%(levelname)s] '
        '%(message)s',
        level=logging.INFO,
    )
    commands = {
        ('prepare', 0): prepare,
        ('hook', 1): run_hook,
        ('notify', 1): notify,
        ('deliver', 0): deliver,
        ('watch', 0): watch.Watcher().run,
    }
    name, *rest = arguments or ['']
    command = commands.get((name, len(rest)))
    if command is None:
        sys.stderr.write(USAGE)
        return 2
    return command(*rest) or 0


def prepare() -> int:
    """Wrap each hook, and deal with the leftovers of a crash.

    Whatever fails here, the configs must run.
    """
    try:
        _wrap_hooks()
        for config_id in results.note_interrupted():
            LOG.warning('Config %s was interrupted, and failed', config_id)
        logs.drop_others()
        if list(results.pending()):
            delivery.go_on()
    except OSError:
        LOG.exception(
            'Cannot supervise every hook, or send every earlier result; '
            'running the configs nevertheless'
        )
    return 0


def _wrap_hooks() -> None:
    folder = places.wrappers()
    places.make_private(folder)
    programs: dict[str, pathlib.Path] = {}
    for hooks in places.hooks():
        for path in hooks.glob('*') if hooks.is_dir() else ():
            programs.setdefault(path.name, path)
    for name, path in programs.items():
        command = shlex.join(places.command('hook', str(path)))
        text = f'#!/bin/sh\nexec {command}\n'
        wrapper = folder / name
        if not wrapper.exists() or wrapper.read_text() != text:
            wrapper.write_text(text)
            wrapper.chmod(0o700)
    for wrapper in folder.iterdir():
        if wrapper.name not in programs:
            wrapper.unlink()


def run_hook(program: str) -> int:
    """Run a hook; the config is on stdin, and its result goes to stdout."""
    content = sys.stdin.buffer.read()
    try:
        config = configs.read(content)
    except ValueError as exc:
        LOG.warning('Cannot supervise the config for %s: %s', program, exc)
        return subprocess.run([program], input=content).returncode
    if config.is_signalled:
        _note_running(config)
    output = live.Output(config, program)
    stop_control = control.Control(config)
    helpers = (
        reporting.Report(config),
        stop_control,
        outputs.Watch(config, output.note),
        output,
    )
    end = hook.run(
        hook.Order(
            output.command,
            content,
            limit=config.time_limit(time.time()),
            stop=stop_control.requested,
            inherited=output.inherited,
        ),
        lambda: [helper.begin() for helper in helpers],
    )
    for helper in helpers:
        helper.end()
    sys.stdout.buffer.write(end.result())
    sys.stderr.buffer.write(sending.redact(end.stderr))
    if end.stopped is None:
        return end.status
    LOG.error(
        'Config %s, %s of %s in stack %s, was %s',
        config.id,
        config.inputs.get('deploy_action'),
        config.inputs.get('deploy_resource_name'),
        config.inputs.get('deploy_stack_id'),
        end.stopped.reason,
    )
    return 0


def _note_running(config: configs.Config) -> None:
    deployed = places.deployed(config.id)
    try:
        # It says where the result goes. 55-heat-config does not sync it, so
        # a loss of power would leave it empty.
        results.sync(deployed)
        results.sync(deployed.parent)
        results.running().put(config.id, {})
    except OSError:
        LOG.exception(
            'Cannot record that config %s runs; if it is interrupted, no '
            'result is sent for it',
            config.id,
        )


def notify(path: str) -> int:
    """Send the result on stdin for the config in a file."""
    content = sys.stdin.buffer.read()
    try:
        details = json.loads(content)
    except ValueError:
        details = {}
    try:
        config = configs.read(pathlib.Path(path).read_bytes())
        if config.is_signalled:
            results.pending().put(
                config.id, details if isinstance(details, dict) else {}
            )
            results.running().drop(config.id)
            delivery.deliver_now(config.id)
        return 0
    except (OSError, ValueError):
        LOG.exception(
            'Cannot keep the result of the config in %s; heat-agents send it '
            'once, without retries',
            path,
        )
    return subprocess.run([places.notifier(), path], input=content).returncode


def deliver() -> int:
    """Send the pending results until none is left."""
    os.umask(0o077)
    delivery.deliver_all()
    return 0
