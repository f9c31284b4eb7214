# SPDX-License-Identifier: Apache-2.0
"""Mask the secrets in a config's output as it arrives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
import re
from typing import Any

from heat_config_supervisor import masking

# Where heat-engine has marked parts of inputs; see its `hidden_inputs`.
_OPTION = 'heat_plugins_hidden'
_ALWAYS = 'deploy_password'

_MASK = masking.MASK.encode()

# What stands before the signature of a URL, and what may be the start of it.
_MARKS = (b'?', b'&', b'&amp;', b'\\u0026', b'%26', b'%3f')
_NAMES = (b'signature', b'x-amz-signature')
_STARTS = [
    start + end
    for start in (
        b'temp_url_sig',
        *(mark + name for mark in _MARKS for name in _NAMES),
    )
    for end in (b'=', b'%3d')
]
_SIGNATURE = re.compile(
    rb'(?:temp_url_sig|(?:[?&]|&amp;|\\u0026|%26|%3F)(?:X-Amz-)?Signature)'
    rb'(?:=|%3D)',
    re.IGNORECASE,
)
_LONGEST_START = max(map(len, _STARTS))
_END = re.compile(rb'[&\s"\'\\<>]')


def mask(inputs: Iterable[Mapping[str, Any]], options: Any) -> masking.Mask:
    """Return the mask of the hidden parts of a config's inputs."""
    marks = options.get(_OPTION) if isinstance(options, Mapping) else None
    if not isinstance(marks, Mapping):
        marks = {}
    secrets: set[str] = set()
    for declared in inputs:
        name, value = declared.get('name'), declared.get('value')
        if name == _ALWAYS:
            secrets.update(masking.texts(value))
        elif name in marks:
            secrets.update(_parts(value, marks[name]))
    return masking.Mask(
        secret for secret in secrets if len(secret) >= masking.SHORTEST
    )


def _parts(value: Any, places: Any) -> Iterator[str]:
    leaves = list(masking.leaves(value))
    try:
        for number, start, end in places:
            yield leaves[number][start:end]
    except (IndexError, TypeError, ValueError):
        # It is unknown which part is meant: all of it is hidden.
        yield from leaves


class Stream:
    """Masks bytes that come in pieces, wherever those are cut.

    What may be the beginning of a secret is held until more has come.
    """

    def __init__(self, mask: masking.Mask) -> None:
        self._forms = [
            form.encode('utf-8', 'surrogatepass') for form in mask.forms
        ]
        self._everything = mask.everything
        self._buffer = b''
        # How many bytes at its beginning are masked already.
        self._covered = 0
        # Whether a signature continues there.
        self._is_open = False
        self._began = False

    def feed(self, content: bytes) -> bytes:
        """Return the masked bytes that no longer need to be held."""
        if self._everything:
            shown = b'' if self._began or not content else _MASK
            self._began = self._began or bool(content)
            return shown
        self._buffer += content
        return self._cut(len(self._buffer) - self._held())

    def close(self) -> bytes:
        """Return the rest of the bytes."""
        return self._cut(len(self._buffer))

    def _cut(self, safe: int) -> bytes:
        """Take `safe` bytes from the buffer, and mask them."""
        content, shown = self._buffer, []
        done = 0
        for start, end, is_new in self._covers():
            if start > safe:
                break
            if start >= done:
                shown.append(content[done:start])
                if is_new:
                    shown.append(_MASK)
            done = max(done, end)
        shown.append(content[done:safe])
        self._buffer = content[safe:]
        self._covered = max(0, done - safe)
        return b''.join(shown)

    def _covers(self) -> list[tuple[int, int, bool]]:
        """Return the masked spans: start, end, and whether that is new."""
        content, covers = self._buffer, []
        if self._is_open:
            self._covered = self._end(0)
        if self._covered:
            covers.append((0, self._covered, False))
        for match in _SIGNATURE.finditer(content):
            covers.append((match.end(), self._end(match.end()), True))
        for form in self._forms:
            start = content.find(form)
            while start >= 0:
                covers.append((start, start + len(form), True))
                # They may overlap, each other and themselves.
                start = content.find(form, start + 1)
        return sorted(
            covers, key=lambda cover: (cover[0], cover[2], -cover[1])
        )

    def _end(self, start: int) -> int:
        """Return where a signature ends; it may go on after the buffer."""
        match = _END.search(self._buffer, start)
        self._is_open = match is None
        return len(self._buffer) if match is None else match.start()

    def _held(self) -> int:
        """Return how many bytes may be the beginning of a secret."""
        tail = self._buffer[-_LONGEST_START:].lower()
        return max(
            max(
                (_held(self._buffer, form) for form in self._forms), default=0
            ),
            max(_held(tail, start) for start in _STARTS),
        )


def _held(content: bytes, form: bytes) -> int:
    """Return how many bytes at the end may be the beginning of a form."""
    start = max(0, len(content) - len(form) + 1)
    start = content.find(form[:1], start)
    while start >= 0 and not form.startswith(content[start:]):
        start = content.find(form[:1], start + 1)
    return len(content) - start if start >= 0 else 0
