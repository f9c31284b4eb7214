# SPDX-License-Identifier: Apache-2.0
"""A filter in Swift's proxy that goes wrong as a test tells it to.

The rules are a JSON list in a file, read again whenever it has changed. The
first rule that matches a request applies. Keys of a rule, all optional:

method, path        regular expressions, both matched in full
user_agent, query   regular expressions, found anywhere
status              answer this and do not pass the request on
body                the text of that answer
delay               seconds to wait first
after               with true, pass the request on, then answer ``status``:
                    it worked, but the client does not know
hide_from_listing   regular expression: listings leave matching names out
probability         from 0 to 1
count               how often to apply; then never again
until               stop applying at this time (seconds since the epoch)
"""

from collections.abc import Callable, Iterable
import json
import os
import random
import re
import time
from typing import Any

from swift.common import swob

Rule = dict[str, Any]


def filter_factory(
    global_conf: dict[str, str], file: str, **local_conf: str
) -> Callable[[Any], Any]:
    return lambda app: Faults(app, file)


class Faults:
    def __init__(self, app: Any, file: str) -> None:
        self._app = app
        self._file = file
        self._version: tuple[int, int] | None = None
        self._rules: list[Rule] = []
        self._left: dict[int, int] = {}

    def __call__(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        rule = self._find(environ)
        if rule is None:
            answer: Iterable[bytes] = self._app(environ, start_response)
            return answer
        if rule.get('delay'):
            # Swift runs on eventlet, so this holds up no other request.
            import eventlet

            eventlet.sleep(rule['delay'])
        request = swob.Request(environ)
        if 'status' in rule:
            if rule.get('after'):
                request.get_response(self._app)
            response = swob.Response(
                request=request,
                status=rule['status'],
                body=rule.get('body', 'A fault that a test asked for.\n'),
                content_type='text/plain',
            )
            result: Iterable[bytes] = response(environ, start_response)
            return result
        if 'hide_from_listing' in rule and request.method == 'GET':
            response = request.get_response(self._app)
            if response.status_int == 200:
                response.body = hide(response.body, rule['hide_from_listing'])
            result = response(environ, start_response)
            return result
        answer = self._app(environ, start_response)
        return answer

    def _find(self, environ: dict[str, Any]) -> Rule | None:
        for number, rule in enumerate(self._load()):
            if not applies(rule, environ, time.time()):
                continue
            # Not a secret.
            drawn = random.random()  # noqa: S311 # nosec B311
            if drawn >= rule.get('probability', 1):
                continue
            if 'count' in rule:
                left = self._left.setdefault(number, rule['count'])
                if left <= 0:
                    continue
                self._left[number] = left - 1
            return rule
        return None

    def _load(self) -> list[Rule]:
        try:
            status = os.stat(self._file)
        except FileNotFoundError:
            self._version, self._rules = None, []
            return self._rules
        version = (status.st_mtime_ns, status.st_ino)
        if version != self._version:
            with open(self._file, encoding='utf-8') as stream:
                self._rules = json.load(stream)
            self._version = version
            self._left = {}
        return self._rules


def applies(rule: Rule, environ: dict[str, Any], now: float) -> bool:
    """Whether a rule is for such a request at such a time."""
    if now >= rule.get('until', float('inf')):
        return False
    return bool(
        re.fullmatch(rule.get('method', '.*'), environ['REQUEST_METHOD'])
        and re.fullmatch(rule.get('path', '.*'), environ['PATH_INFO'])
        and re.search(
            rule.get('user_agent', ''), environ.get('HTTP_USER_AGENT', '')
        )
        and re.search(rule.get('query', ''), environ.get('QUERY_STRING', ''))
    )


def hide(body: bytes, pattern: str) -> bytes:
    """A container's listing, JSON or plain text, without some names."""
    try:
        listing = json.loads(body)
    except ValueError:
        lines = body.decode('utf-8', 'surrogateescape').splitlines(True)
        kept = [line for line in lines if not re.search(pattern, line.strip())]
        return ''.join(kept).encode('utf-8', 'surrogateescape')
    return json.dumps(
        [
            entry
            for entry in listing
            if not re.search(pattern, entry.get('name', ''))
        ]
    ).encode()
