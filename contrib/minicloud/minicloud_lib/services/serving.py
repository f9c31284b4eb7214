# SPDX-License-Identifier: Apache-2.0
"""Serve WSGI applications from threads until the process is told to stop."""

from collections.abc import Callable
import os
import signal
import sys
import threading
import traceback
from typing import Any, NoReturn
import urllib.parse

from cheroot import wsgi

#: A service that does not end in this time is ended.
PATIENCE = 5.0


class Api:
    """One WSGI application, on the host and port of a URL."""

    def __init__(self, application: Any, url: str, threads: int = 16) -> None:
        address = urllib.parse.urlsplit(url)
        self._server = wsgi.Server(
            (address.hostname, address.port),
            application,
            numthreads=threads,
            request_queue_size=512,
            timeout=60,
        )

    def start(self) -> None:
        self._server.prepare()
        threading.Thread(target=self._server.serve, daemon=True).start()

    def stop(self) -> None:
        self._server.stop()


def run(main: Callable[..., None], *arguments: str) -> NoReturn:
    """Run a service; whatever ends it ends the process.

    The threads that it has started already would keep the process there,
    and callers of the service would go on waiting.
    """
    try:
        main(*arguments)
    except SystemExit as ending:
        print(f'ended: {ending.code}', file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def until_stopped(*stops: Callable[[], None]) -> None:
    """Wait for SIGTERM or SIGINT, call these in turn, and end."""
    asked = threading.Event()

    def ask(number: int, frame: object) -> None:
        asked.set()

    signal.signal(signal.SIGTERM, ask)
    signal.signal(signal.SIGINT, ask)
    asked.wait()
    print('stopping', file=sys.stderr, flush=True)
    # Work that is under way may go on for hours, which is too long.
    ender = threading.Thread(target=_each, args=(stops,), daemon=True)
    ender.start()
    ender.join(PATIENCE)
    if ender.is_alive():
        print('still busy, ending anyway', file=sys.stderr, flush=True)
    # Threads of the services' libraries would hold a plain exit up.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _each(stops: tuple[Callable[[], None], ...]) -> None:
    for stop in stops:
        stop()
