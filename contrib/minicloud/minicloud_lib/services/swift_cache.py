# SPDX-License-Identifier: Apache-2.0
"""A filter that gives Swift's proxy a cache in its own memory.

Without a cache, the proxy reads the account and the container again for each
request to an object, which triples its work. Real clouds run memcached.
"""

from collections.abc import Callable, Iterable
import copy
import time
from typing import Any


def filter_factory(
    global_conf: dict[str, str], **local_conf: str
) -> Callable[[Any], Any]:
    cache = Cache()

    def make(app: Any) -> Any:
        def pass_on(
            environ: dict[str, Any], start_response: Any
        ) -> Iterable[bytes]:
            environ['swift.cache'] = cache
            answer: Iterable[bytes] = app(environ, start_response)
            return answer

        return pass_on

    return make


class Cache:
    """What Swift uses of a memcached client."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, Any]] = {}

    def get(self, key: str, *_: object, **__: object) -> Any:
        until, value = self._kept.get(key, (0.0, None))
        return copy.deepcopy(value) if time.monotonic() < until else None

    def set(
        self, key: str, value: Any, *_: object, time: float = 0, **__: object
    ) -> None:
        self._kept[key] = _until(time), copy.deepcopy(value)

    def delete(self, key: str, *_: object, **__: object) -> None:
        self._kept.pop(key, None)


def _until(seconds: float) -> float:
    return time.monotonic() + seconds if seconds else float('inf')
