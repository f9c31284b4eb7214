# SPDX-License-Identifier: Apache-2.0
"""The axis of time, on which long idle times are short.

A stack is created within minutes and then runs a backup a night: to scale, all
bars would be dots.
"""

import bisect
from collections import abc
import dataclasses
import datetime
import itertools
import math

# A pause is cut where it is longer than this share of all that is not.
_LONG = 0.5

# The share of the axis for a cut, and for all of them at most.
_CUT, _CUTS = 0.05, 0.4

# What is left free around what happens, as a share of it.
_MARGIN = 0.03

# The characters of a time and of the space after it.
_CLOCK = 10

_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 6, 12)),
    *(86400 * days for days in (1, 2, 7, 14, 28, 91, 365)),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stretch:
    """A part of the axis, from left to right (0 to 1).

    :ivar cut: whether it is an idle time, and is drawn short.
    """

    start: float
    end: float
    left: float
    right: float
    cut: bool = False

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclasses.dataclass(frozen=True, kw_only=True)
class Label:
    """A time on the axis, and its position."""

    position: float
    text: str


class Scale:
    """The axis for some spans of time.

    :param spans: the busy times: start and end, in seconds.
    """

    def __init__(self, spans: abc.Iterable[tuple[float, float]]) -> None:
        busy = _joined(spans)
        cuts = max(len(busy) - 1, 0)
        cut = min(_CUT, _CUTS / cuts) if cuts else 0.0
        total = sum(end - start for start, end in busy)
        unit = (1 - cuts * cut) / total
        stretches: list[Stretch] = []
        left = 0.0
        for start, end in busy:
            if stretches:
                before = stretches[-1].end
                stretches.append(
                    Stretch(
                        start=before,
                        end=start,
                        left=left,
                        right=left + cut,
                        cut=True,
                    )
                )
                left += cut
            right = left + (end - start) * unit
            stretches.append(
                Stretch(start=start, end=end, left=left, right=right)
            )
            left = right
        self.stretches = tuple(stretches)

    @property
    def cuts(self) -> list[Stretch]:
        return [stretch for stretch in self.stretches if stretch.cut]

    def position(self, time: float) -> float:
        """Return the position of a time, from 0 to 1."""
        place = bisect.bisect_left(
            self.stretches, time, key=lambda stretch: stretch.end
        )
        if place == len(self.stretches):
            return 1.0
        stretch = self.stretches[place]
        share = (time - stretch.start) / stretch.seconds
        return stretch.left + max(share, 0) * (stretch.right - stretch.left)

    def labels(
        self,
        characters: int,
        zone: datetime.tzinfo | None = datetime.UTC,
    ) -> list[Label]:
        """Return the times that an axis of a number of characters can show.

        The day stands with the first time of it.

        :param zone: of the times; None for that of this machine.
        """
        labels: list[Label] = []
        free, day = 0.0, ''
        for stretch in self.stretches:
            if stretch.cut:
                continue
            room = (stretch.right - stretch.left) * characters
            least = stretch.seconds * _CLOCK / room
            step = next((each for each in _STEPS if each >= least), _STEPS[-1])
            first = math.ceil(stretch.start / step) * step
            times = range(first, math.floor(stretch.end) + 1, step)
            for time in times or (round((stretch.start + stretch.end) / 2),):
                when = datetime.datetime.fromtimestamp(time, zone)
                text = f'{when:%H:%M}' if step >= 60 else f'{when:%H:%M:%S}'
                if f'{when:%Y-%m-%d}' != day:
                    text = f'{when:%m-%d} {text}'
                if not labels:
                    text = f'{when:%Y}-{text}'
                position = self.position(time)
                column = position * characters
                if free <= column and column + len(text) <= characters:
                    labels.append(Label(position=position, text=text))
                    free = column + len(text) + 1
                    day = f'{when:%Y-%m-%d}'
        return labels


def _joined(
    spans: abc.Iterable[tuple[float, float]],
) -> list[tuple[float, float]]:
    """Return the busy times, with short idle times between them."""
    joined: list[list[float]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    if not joined:
        return [(0.0, 1.0)]
    # What takes no time must be visible as well.
    total = max(sum(end - start for start, end in joined), 1.0)
    margin = max(total * _MARGIN, 0.5)
    # From the shortest pause on: each that stays makes the next one relatively
    # shorter.
    pauses = sorted(
        after[0] - before[1] for before, after in itertools.pairwise(joined)
    )
    limit = 0.0
    for pause in pauses:
        if pause > max(total * _LONG, 4 * margin):
            break
        total += pause
        limit = pause
    busy = [joined[0]]
    for start, end in joined[1:]:
        if start - busy[-1][1] <= limit:
            busy[-1][1] = end
        else:
            busy.append([start, end])
    return [(start - margin, end + margin) for start, end in busy]
