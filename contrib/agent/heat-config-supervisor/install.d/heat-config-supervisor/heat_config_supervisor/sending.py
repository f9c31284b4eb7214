# SPDX-License-Identifier: Apache-2.0
"""Send to Heat, and return the outcome.

Nothing here tells the query of a URL, which is what signs it.
"""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import enum
import json
import re
import subprocess
from typing import Any
from urllib import parse

import requests

from heat_config_supervisor import config as configs
from heat_config_supervisor import places

#: The most bytes of a result: Heat's APIs take a little more.
LIMIT = 950_000

#: Seconds to connect, and between two pieces of the answer.
TIMEOUT = (5.0, 30.0)

# The most bytes to read of an answer that has nothing to say.
_KEPT = 4096

# Seconds for heat-agents' own program, which retries by itself.
_PROGRAM_TIMEOUT = 120

# Of a result, the bytes for what it says of outputs that are left out.
_ROOM = 16_384

_STREAMS = ('deploy_stdout', 'deploy_stderr')
_STATUS = 'deploy_status_code'

_PASSING = (408, 425, 429, 498)

_SIGNED = re.compile(rb'((?:temp_url_sig|Signature)=)[^&\s\'"]+')
_QUERY = re.compile(r'\?\S+')


class Fate(enum.Enum):
    """The fate of a request."""

    ACCEPTED = 'accepted'
    LATER = 'may be accepted later'
    REFUSED = 'refused'


@dataclasses.dataclass(frozen=True)
class Answer:
    """The fate of a request, and the reason."""

    fate: Fate
    reason: str


def send(
    verb: str,
    url: str,
    content: bytes,
    headers: Mapping[str, str] | None = None,
    session: requests.Session | None = None,
) -> Answer:
    """Send to a URL, once.

    :param session: keeps the connection for the next request.
    """
    try:
        answer = (session or requests).request(
            verb,
            url,
            data=content,
            headers={'Content-Type': 'application/json', **(headers or {})},
            timeout=TIMEOUT,
            allow_redirects=False,
        )
    except requests.RequestException as exc:
        # What it says holds the URL.
        return Answer(Fate.LATER, type(exc).__name__)
    reason = f'HTTP status {answer.status_code}'
    if 200 <= answer.status_code < 300:
        return Answer(Fate.ACCEPTED, reason)
    if answer.status_code >= 500 or answer.status_code in _PASSING:
        return Answer(Fate.LATER, reason)
    return Answer(Fate.REFUSED, reason)


def ask(
    url: str,
    session: requests.Session,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, str | None]:
    """GET the status and the ETag of an object, without its content.

    :raises requests.RequestException: there is no answer.
    """
    with session.get(
        url,
        headers=headers,
        timeout=TIMEOUT,
        allow_redirects=False,
        stream=True,
    ) as answer:
        if answer.status_code >= 300:
            # A connection is kept only if nothing is left to read from it.
            next(answer.iter_content(_KEPT), None)
        return answer.status_code, answer.headers.get('ETag')


def signal(config: configs.Config, details: Mapping[str, Any]) -> Answer:
    """Send a signal the way that a config asks for."""
    if config.has_object:
        return send('PUT', config.signal_url or '', body(details))
    # So that it cannot pass for a signal of another one.
    content = body({**details, 'deploy_config_id': config.id})
    if config.needs_notifier:
        return _notify(config, content)
    return send(config.signal_verb, config.signal_url or '', content)


def _notify(config: configs.Config, content: bytes) -> Answer:
    """Let heat-agents' own program send; it knows Keystone and Zaqar."""
    program = places.notifier()
    try:
        process = subprocess.run(
            [program, str(places.deployed(config.id))],
            input=content,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_PROGRAM_TIMEOUT,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return Answer(Fate.LATER, f'{program}: {type(exc).__name__}')
    if process.returncode == 0:
        return Answer(Fate.ACCEPTED, f'{program} has sent it')
    lines = process.stderr.decode(errors='replace').splitlines()
    reason = _QUERY.sub('?...', lines[-1]) if lines else ''
    return Answer(Fate.LATER, f'{program}: {reason[:200]}')


def body(details: Mapping[str, Any]) -> bytes:
    """Return the body of a result; of a long output only its end."""
    details = _without_the_largest(details)
    for name in _STREAMS:
        surplus = len(json.dumps(details)) - LIMIT
        text = details.get(name)
        if surplus > 0 and isinstance(text, str):
            # A character may take up to twelve bytes.
            while text and surplus > 0:
                cut = max(1, surplus // 12)
                surplus -= len(json.dumps(text[:cut])) - 2
                text = text[cut:]
            details[name] = text
    return json.dumps(details).encode()


def too_large(size: int) -> str:
    """Return the sentence about outputs; heat-engine shows 120 characters."""
    return (
        f'heat-config-supervisor: the outputs have {size} bytes, and the '
        f'limit is {LIMIT}; let the config write less to them'
    )


def _without_the_largest(details: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out outputs, the largest first, until a result has room.

    A result that lacks some is a failure, which names them.
    """
    kept = dict(details)
    sizes = {
        name: len(json.dumps({name: value}))
        for name, value in kept.items()
        if not (name in _STREAMS and isinstance(value, str))
    }
    size = total = sum(sizes.values())
    left_out = ''
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        if size <= LIMIT - _ROOM:
            break
        size -= sizes[name]
        del kept[name]
        if len(left_out) < _ROOM // 4:
            left_out += f'output {name[:100]!r} is left out\n'
    if left_out:
        before = str(kept.get(_STREAMS[1]) or '')
        kept[_STREAMS[1]] = (
            f'{before}\n{left_out}{too_large(total)}\n'.lstrip()
        )
        kept[_STATUS] = kept.get(_STATUS) or 1
    return kept


def place(url: str | None) -> str:
    """Return the part of a URL that may be told."""
    parts = parse.urlsplit(url or '')
    return f'{parts.scheme}://{parts.hostname}{parts.path}'


def redact(content: bytes) -> bytes:
    """Take the signatures of URLs out of the output of a hook."""
    return _SIGNED.sub(rb'\1***', content)
