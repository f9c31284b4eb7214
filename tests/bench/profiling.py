# SPDX-License-Identifier: Apache-2.0
"""Where heat-engine's time goes, function by function.

py-spy looks at the running process from outside. What it sees are the stacks
of the threads that hold Python's lock: the work, not the waiting. The time of
libraries goes to their callers, in Heat or in heat-plugins.
"""

import collections
from collections.abc import Callable, Iterable, Mapping
import dataclasses
import itertools
import pathlib
import re
import signal
import subprocess
import sysconfig

#: What is worth a profile.
PHASES = ('create', 'waiting', 'signals')

#: Looks a second.
RATE = 100

_FRAME = re.compile(r'(?P<function>.+) \((?P<file>.+?)(:\d+)?\)$')

# A function that gives that much of its work to one other has no line.
_PASSED_ON = 0.9


@dataclasses.dataclass(frozen=True, kw_only=True)
class Function:
    """A function's part in a phase.

    :ivar share: of all that was done, with what it calls; 0 to 1.
    :ivar own: the same without other functions of Heat or heat-plugins.
    :ivar passed_on: what one other of these does of its share, 0 to 1: the
        one that does most of it.
    """

    name: str
    share: float
    own: float
    passed_on: float

    def is_notable(self, least: float) -> bool:
        """Say whether it is worth a line.

        :param least: the smallest share that is.
        """
        return self.share >= least and self.passed_on < _PASSED_ON


@dataclasses.dataclass(frozen=True, kw_only=True)
class Profile:
    """A phase.

    :ivar samples: how often a thread was seen at work.
    :ivar ours: the part of heat-plugins' own functions, 0 to 1.
    :ivar heats: the part of Heat's.
    :ivar functions: by their names, the largest first.
    """

    samples: int
    ours: float
    heats: float
    functions: dict[str, Function]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Profiled:
    """A round that was profiled.

    :ivar n: deployments.
    :ivar cpu: seconds of heat-engine's CPU, by phase.
    :ivar profiles: by phase.
    """

    n: int
    cpu: Mapping[str, float]
    profiles: Mapping[str, Profile]

    def samples(self, phase: str) -> int:
        """Return how much was seen of a phase; 0 if nothing was."""
        return self.profiles[phase].samples if phase in self.cpu else 0

    def each(self, phase: str) -> float:
        """Return the milliseconds of CPU for each deployment."""
        return self.cpu[phase] * 1000 / self.n


class Profiler:
    """Writes down what heat-engine does in some phases of a round.

    :param folder: where to; a file for each phase.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._files: dict[str, pathlib.Path] = {}

    def __call__(self, pid: int, phase: str) -> Callable[[], None]:
        if phase not in PHASES:
            return lambda: None
        file = self._folder / f'{phase}.folded'
        program = pathlib.Path(sysconfig.get_path('scripts'), 'py-spy')
        process = subprocess.Popen(
            [
                *(program, 'record', '--pid', str(pid), '--gil'),
                *('--rate', str(RATE), '--format', 'raw', '--function'),
                *('--full-filenames', '--output', file),
                # With hundreds of threads it would stand still most of the
                # time.
                '--nonblocking',
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
            self._files[phase] = file

        return end

    def read(self) -> dict[str, 'Profile']:
        """Return what was seen, by phase."""
        found = {}
        for phase, file in self._files.items():
            with file.open(encoding='utf-8') as lines:
                found[phase] = read(lines)
        return found


def read(lines: Iterable[str]) -> Profile:
    """Sum up what py-spy has written.

    :param lines: stacks, each with a count.
    """
    total = 0
    shares: collections.Counter[str] = collections.Counter()
    own: collections.Counter[str] = collections.Counter()
    calls: dict[str, collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    for line in lines:
        stack, _, number = line.rpartition(' ')
        count = int(number)
        total += count
        names = [
            name for name in map(_known, stack.split(';')) if name is not None
        ]
        for name in set(names):
            shares[name] += count
        for caller, called in set(itertools.pairwise(names)):
            calls[caller][called] += count
        if names:
            own[names[-1]] += count
    ours = sum(own[name] for name in own if name.startswith('heat_plugins.'))
    return Profile(
        samples=total,
        ours=ours / (total or 1),
        heats=(sum(own.values()) - ours) / (total or 1),
        functions={
            name: Function(
                name=name,
                share=count / total,
                own=own[name] / total,
                passed_on=max(calls[name].values(), default=0) / count,
            )
            for name, count in shares.most_common()
        },
    )


def _known(frame: str) -> str | None:
    """Name a frame that belongs to Heat or to heat-plugins."""
    found = _FRAME.match(frame)
    if found is None:
        return None
    for marker in ('/heat_plugins/', '/site-packages/heat/'):
        _, seen, module = found['file'].partition(marker)
        if seen:
            package = marker.strip('/').rpartition('/')[2]
            path = f'{package}/{module}'.removesuffix('.py')
            return f'{path.replace("/", ".")}.{found["function"]}'
    return None
