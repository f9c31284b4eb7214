# SPDX-License-Identifier: Apache-2.0
"""Begins the demo, ends it, and takes the cloud down whatever happens."""

from collections.abc import Callable
import os
import shlex
import signal
import sys
import time
from types import FrameType
from typing import Any

import minicloud_client

from demo_lib import errors
from demo_lib import screen
from demo_lib import shell
from demo_lib import tour

#: The instance of the mini cloud. Whatever has this name is purged.
_NAME = 'demo'

#: Seconds to take the cloud down.
_DOWN = 60


_TITLE = (
    'heat-plugins: a real Heat deploys software to a server, which answers '
    'over Swift, and runs workflows'
)

_Tour = Callable[[minicloud_client.Cloud, screen.Screen], Any]


def main(of: _Tour = tour.Tour, title: str = _TITLE) -> int:
    """Begin, show all steps, and end; the exit code.

    :param of: what has the steps.
    """
    signal.signal(signal.SIGALRM, _too_slow)
    # As Ctrl-C does, so that nothing is left running.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    cloud = minicloud_client.Cloud(_NAME)
    shown = screen.Screen()
    keep = os.environ.get('KEEP', '') not in ('', '0')
    begun = time.monotonic()
    code = 1
    try:
        shown.title(title)
        timings = _run(of(cloud, shown), shown)
        _sum_up(shown, timings, time.monotonic() - begun)
        code = 0
    except errors.Surprise as exc:
        shown.trouble(f'The demo failed. {exc}')
    except (minicloud_client.CommandError, OSError) as exc:
        shown.trouble(f'The demo failed. {type(exc).__name__}: {exc}')
    except KeyboardInterrupt:
        shown.trouble('Interrupted.')
        code = 130
    finally:
        code = _end(cloud, shown, keep, code)
    return code


def _run(steps: Any, shown: screen.Screen) -> list[tuple[tour.Step, float]]:
    timings = []
    for number, step in enumerate(steps.steps, 1):
        begun = time.monotonic()
        shown.step(f'{number}. {step.title}')
        signal.alarm(step.seconds)
        step.run()
        signal.alarm(0)
        timings.append((step, time.monotonic() - begun))
    return timings


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise errors.TooSlow('This step hangs: its time limit has passed.')


def _end(
    cloud: minicloud_client.Cloud, shown: screen.Screen, keep: bool, code: int
) -> int:
    """Take the cloud down, or say how to use it; the exit code."""
    signal.alarm(0)
    # The programs that we start ignore it, too: all of it comes down.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if code:
        shown.say('')
        _say_logs(cloud, shown)
    if keep:
        _say_usage(cloud, shown)
        return code
    signal.alarm(_DOWN)
    try:
        cloud.down(purge=code == 0)
    except (errors.TooSlow, minicloud_client.CommandError) as exc:
        shown.trouble(f'Cannot stop the cloud. {exc}')
        code = code or 1
    signal.alarm(0)
    return code


def _say_logs(cloud: minicloud_client.Cloud, shown: screen.Screen) -> None:
    logs = [
        *sorted((cloud.path / 'logs').glob('*')),
        *sorted((cloud.path / 'agents').glob('*/agent.log')),
    ]
    if logs:
        shown.say('The logs stay until the next demo:')
        shown.output('\n'.join(str(path) for path in logs))


def _say_usage(cloud: minicloud_client.Cloud, shown: screen.Screen) -> None:
    command = f'contrib/minicloud/minicloud --name {cloud.name}'
    if cloud.path.parent != shell.FOLDER / '.minicloud':
        command += f' --home {shlex.quote(str(cloud.path.parent))}'
    shown.step('The cloud stays up. To use it in this shell:')
    shown.output(
        f'eval "$({command} env)"\n'
        'openstack stack create -t contrib/examples/hello.yaml hello\n'
        'minicloud agent start hello --stack hello --resource server\n'
        'while openstack stack list | grep IN_PROGRESS; do sleep 1; done\n'
        'openstack stack output show hello greeting'
    )
    shown.say('To stop and delete it:')
    shown.output(f'{command} down --purge')


def _sum_up(
    shown: screen.Screen, timings: list[tuple[tour.Step, float]], total: float
) -> None:
    shown.step('Every step succeeded:')
    for step, seconds in timings:
        shown.output(f'{seconds:5.1f} s  {step.title}')
    shown.output(f'{total:5.1f} s  in all')


if __name__ == '__main__':
    sys.exit(main())
