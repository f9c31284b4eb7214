# SPDX-License-Identifier: Apache-2.0
"""Where heat-engine's time goes, function by function.

py-spy looks at the running process from outside. What it sees are the stacks
of the threads that hold Python's lock: the work, not the waiting. A function
counts with all that it calls; those of the libraries go to whoever has
called them, in Heat or in heat-plugins.
"""

import collections
from collections.abc import Callable, Iterable
import dataclasses
import pathlib
import re
import signal
import subprocess
import sysconfig

#: Looks a second; few enough not to hold a busy process up.
RATE = 50

_FRAME = re.compile(r'(?P<function>.+) \((?P<file>.+?)(:\d+)?\)$')
_OURS = '/heat_plugins/'
_HEAT = '/site-packages/heat/'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Function:
    """A function's part in a phase.

    :ivar share: of all that was done, with what it calls; 0 to 1.
    :ivar own: the same without other functions of Heat or heat-plugins.
    """

    name: str
    ours: bool
    share: float
    own: float


class Profiler:
    """Writes down what heat-engine does in each phase of a round.

    :param folder: where to; a file for each phase.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self.files: dict[str, pathlib.Path] = {}

    def __call__(self, pid: int, phase: str) -> Callable[[], None]:
        file = self._folder / f'{phase}.folded'
        program = pathlib.Path(sysconfig.get_path('scripts'), 'py-spy')
        process = subprocess.Popen(
            [
                *(program, 'record', '--pid', str(pid), '--gil'),
                *('--rate', str(RATE), '--format', 'raw', '--function'),
                *('--full-filenames', '--threads', '--output', file),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

        def end() -> None:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
            if not file.exists():
                raise RuntimeError(f'py-spy: {errors}')
            self.files[phase] = file

        return end


def functions(lines: Iterable[str], most: int = 25) -> list[Function]:
    """Say which functions of Heat and heat-plugins had the largest parts.

    :param lines: stacks as py-spy writes them, each with a count.
    """
    total = 0
    shares: collections.Counter[tuple[str, bool]] = collections.Counter()
    own: collections.Counter[tuple[str, bool]] = collections.Counter()
    for line in lines:
        stack, _, count = line.rpartition(' ')
        total += int(count)
        known = [
            found
            for found in map(_known, stack.split(';'))
            if found is not None
        ]
        for each in set(known):
            shares[each] += int(count)
        if known:
            own[known[-1]] += int(count)
    return [
        Function(
            name=name,
            ours=ours,
            share=count / total,
            own=own[name, ours] / total,
        )
        for (name, ours), count in shares.most_common(most)
    ]


def _known(frame: str) -> tuple[str, bool] | None:
    """Name a frame that belongs to Heat or to heat-plugins."""
    found = _FRAME.match(frame)
    if found is None:
        return None
    for marker in (_OURS, _HEAT):
        _, seen, module = found['file'].partition(marker)
        if seen:
            package = marker.strip('/').rpartition('/')[2]
            path = f'{package}/{module}'.removesuffix('.py')
            name = f'{path.replace("/", ".")}.{found["function"]}'
            return name, marker == _OURS
    return None
