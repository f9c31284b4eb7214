# SPDX-License-Identifier: Apache-2.0
"""A filter in Swift's proxy that writes a line of JSON for each request.

It is the first in the pipeline: what it sees is what a client sees, and the
requests that Swift's own middleware makes are not among them.
"""

from collections.abc import Callable, Iterable, Iterator
import json
import re
import threading
import time
from typing import Any

_SIGNATURE = re.compile(r'(?i)(temp_url_sig|signature)=[^&]*')
_lock = threading.Lock()


def filter_factory(
    global_conf: dict[str, str], file: str, **local_conf: str
) -> Callable[[Any], Any]:
    return lambda app: RequestLog(app, file)


class RequestLog:
    def __init__(self, app: Any, file: str) -> None:
        self._app = app
        self._file = file

    def __call__(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        entry = {
            'time': time.time(),
            'method': environ['REQUEST_METHOD'],
            'path': environ.get('PATH_INFO', ''),
            'query': redact(environ.get('QUERY_STRING', '')),
            'agent': environ.get('HTTP_USER_AGENT', ''),
            'token': 'HTTP_X_AUTH_TOKEN' in environ,
            'received': int(environ.get('CONTENT_LENGTH') or 0),
            'status': 0,
        }
        start = time.monotonic()

        def note(
            status: str, headers: list[tuple[str, str]], *rest: Any
        ) -> Any:
            entry['status'] = int(status.split(None, 1)[0])
            return start_response(status, headers, *rest)

        try:
            answer = self._app(environ, note)
        except BaseException:
            self._write(entry, start, 0)
            raise
        return self._counted(answer, entry, start)

    def _counted(
        self, answer: Iterable[bytes], entry: dict[str, Any], start: float
    ) -> Iterator[bytes]:
        sent = 0
        try:
            for chunk in answer:
                sent += len(chunk)
                yield chunk
        finally:
            close = getattr(answer, 'close', None)
            if close is not None:
                close()
            self._write(entry, start, sent)

    def _write(self, entry: dict[str, Any], start: float, sent: int) -> None:
        entry['seconds'] = round(time.monotonic() - start, 6)
        entry['sent'] = sent
        with _lock, open(self._file, 'a', encoding='utf-8') as stream:
            stream.write(json.dumps(entry) + '\n')


def redact(query: str) -> str:
    """A query without what would let its reader use it."""
    return _SIGNATURE.sub(r'\1=***', query)
