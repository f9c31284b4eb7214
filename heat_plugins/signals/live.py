# SPDX-License-Identifier: Apache-2.0
"""Live runs: output of a server and control by Heat while an action runs.

A server with heat-config-supervisor sends what the action prints, and reads
whether it must stop. Both go by TempURLs of the run, in inputs of its config;
other agents ignore those.

The output lies in slots of `SLOT` bytes, one object each, below the prefix
that the server may PUT to. Slot N holds the bytes from N times `SLOT` on. The
last ones are written over when all are full, so that the beginning and the
end of a long output are kept. Each object begins with a line that says where
in the output it belongs, and how many slots there are::

    1 <offset> <slots at the beginning> <slots that are reused>

An object `END` says, after all others, how long the output is.
"""

import dataclasses
import re

#: The input with the URL of the prefix to PUT output below.
LOG_INPUT = 'deploy_log_url'

#: The input with the bytes of output to keep.
LIMIT_INPUT = 'deploy_log_limit'

#: The input with the URL of the object that tells the server to stop.
CONTROL_INPUT = 'deploy_control_url'

INPUTS = frozenset({LOG_INPUT, LIMIT_INPUT, CONTROL_INPUT})

#: What a server adds to its result if it was told to stop.
STOPPED = 'deploy_stopped'

#: By what it says there, what became of the action.
WAYS = {'when told': 'stopped', 'by force': 'stopped by force'}

#: Bytes of output in an object; those that make an object are a little more.
SLOT = 64 * 1024
LONGEST = SLOT + 100

#: Bytes of output that are kept of a run, unless it is said otherwise.
LIMIT = 10_000_000

#: The most objects that are read of a run.
MOST = 2048

END = 'end'

_CONTROL = '.control'
_HEADER = re.compile(rb'1 ([0-9]{1,15}) ([0-9]{1,6}) ([0-9]{1,6})\n')
_NAME = re.compile('[0-9]{6}')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of an output.

    :ivar name: of its slot; a reader puts that of its object here.
    :ivar offset: of its first byte.
    :ivar end: the offset after its last byte.
    :ivar head: how many slots are never written over.
    :ivar ring: how many slots are reused after those.
    """

    name: str
    offset: int
    end: int
    head: int
    ring: int
    content: bytes = dataclasses.field(repr=False)


def control_name(signal: str) -> str:
    """Return the name of the object that tells a server to stop.

    :param signal: that of the object that is the result.
    """
    return signal + _CONTROL


def is_slot(name: str) -> bool:
    """Say whether an object has the name of a part of an output."""
    return _NAME.fullmatch(name) is not None


def slot_name(offset: int, head: int, ring: int) -> str:
    """Return the name of the object for a byte of an output."""
    number = offset // SLOT
    if number >= head:
        number = head + (number - head) % ring
    return f'{number:06d}'


def parse(name: str, body: bytes) -> Piece:
    """Read a part of an output.

    :raises ValueError: it is invalid, or has the name of another part.
    """
    header = _HEADER.match(body)
    if header is None:
        raise ValueError('it does not say its position')
    offset, head, ring = (int(number) for number in header.groups())
    content = body[header.end() :]
    if (
        not ring
        or offset % SLOT
        or len(content) > SLOT
        or slot_name(offset, head, ring) != name
    ):
        raise ValueError('it belongs to another position')
    return Piece(
        name=name,
        offset=offset,
        end=offset + len(content),
        head=head,
        ring=ring,
        content=content,
    )


def parse_end(body: bytes) -> int:
    """Read the length of an output, in bytes.

    :raises ValueError: it does not say.
    """
    return int(body.decode('ascii'))
