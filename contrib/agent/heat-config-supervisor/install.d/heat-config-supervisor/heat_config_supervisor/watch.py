# SPDX-License-Identifier: Apache-2.0
"""Let a server start a new config at once.

os-collect-config polls for its configs less and less often, down to every 30
seconds. So this polls whether they have changed, by one small conditional
request a second, while that is worth it; and if so, has os-collect-config
collect once more, in addition to its own polls.
"""

from __future__ import annotations

from collections.abc import Callable
import configparser
import dataclasses
import fcntl
import logging
import subprocess
import time

import requests

from heat_config_supervisor import places
from heat_config_supervisor import sending

LOG = logging.getLogger(__name__)

# Seconds between two requests, and to which those double that fail.
PACE, MOST = 1.0, 30.0

# Seconds between two looks whether it is worth it to ask.
_IDLE = 5.0

# Seconds after a config was begun in which another one is likely.
_RECENT = 600.0

# Seconds for one collection, which may run configs.
_COLLECT = 24 * 3600.0


@dataclasses.dataclass
class Watcher:
    """Watches the configs of this server.

    :ivar etag: of the configs as they were seen last.
    :ivar is_due: whether they have changed since os-collect-config was woken.
    """

    sleep: Callable[[float], None] = time.sleep
    etag: str | None = None
    is_due: bool = False
    pause: float = PACE
    session: requests.Session = dataclasses.field(
        default_factory=requests.Session
    )

    def run(self) -> None:
        while True:
            self.step()

    def step(self) -> None:
        """Ask once if it is worth it, wake, and sleep."""
        url = metadata_url()
        if url is None or not is_quick():
            # What changes meanwhile os-collect-config finds by itself.
            self.etag = None
            self.session.close()
            self.sleep(_IDLE)
            return
        self._ask(url)
        if self.is_due and not is_busy():
            self.is_due = not wake()
        self.sleep(self.pause)

    def _ask(self, url: str) -> None:
        headers = {'If-None-Match': self.etag} if self.etag else None
        try:
            status, etag = sending.ask(url, self.session, headers)
        except requests.RequestException as exc:
            status, etag = 0, None
            LOG.warning('Cannot check for new configs: %s', type(exc).__name__)
        if status not in (200, 304):
            self.pause = min(self.pause * 2, MOST)
            return
        self.pause = PACE
        if status == 200 and etag != self.etag:
            self.is_due = self.is_due or self.etag is not None
            self.etag = etag


def metadata_url() -> str | None:
    """Return where the configs of this server are; None without a URL."""
    configuration = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        configuration.read(places.collect_configuration())
        return (
            configuration.get('request', 'metadata_url', fallback=None) or None
        )
    except (OSError, configparser.Error, UnicodeDecodeError):
        return None


def is_quick() -> bool:
    """Say whether it is worth it to ask every second."""
    wanted = places.quick()
    if wanted != 'recent':
        return wanted == 'always'
    try:
        begun = places.deployed('x').parent.stat().st_mtime
    except OSError:
        return False
    return time.time() - begun < _RECENT


def is_busy() -> bool:
    """Say whether os-refresh-config is running configs."""
    try:
        with places.refresh_lock().open('a') as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def wake() -> bool:
    """Let os-collect-config collect once; False if it failed."""
    command = places.collect()
    LOG.info('There are new configs')
    try:
        process = subprocess.run(
            command, stdin=subprocess.DEVNULL, timeout=_COLLECT
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        LOG.error('%s: %s', command[0], type(exc).__name__)
        return True
    # Another one may have started just then.
    return process.returncode == 0
