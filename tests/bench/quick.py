# SPDX-License-Identifier: Apache-2.0
"""What quick servers ask of the object store while nothing changes."""

import hashlib
import hmac
import os
import pathlib
import secrets
import statistics
import sys
import tempfile
import threading
import time
from unittest import mock
from urllib import parse

from tests.bench import live

_COUNTS = (10, 100)
_SECONDS = 20
_CONTAINER, _OBJECT = 'bench-quick', 'metadata'

_TITLES = (
    *('quick servers', 'requests/s', 'answer, median, ms'),
    *('Swift, cores', 'CPU of Swift for a request, ms'),
)


def measure(lab, say):
    """Let servers ask for some time; return a table of what that takes."""
    lab.start()
    table = [[*_TITLES]]
    with tempfile.TemporaryDirectory(prefix='bench-') as folder:
        file = pathlib.Path(folder, 'os-collect-config.conf')
        file.write_text(f'[request]\nmetadata_url = {_url(lab)}\n')
        env = {
            'HEAT_CONFIG_QUICK': 'always',
            'HEAT_CONFIG_COLLECT_CONF': str(file),
        }
        with mock.patch.dict(os.environ, env):
            for count in _COUNTS:
                table.append(_row(lab, count))
                say(f'{table[-1]}')
    return table


def _row(lab, count):
    """Let real watchers ask, each in a thread."""
    sys.path.insert(0, str(live.AGENT))
    from heat_config_supervisor import watch

    answers = []
    ended = threading.Event()

    class Watcher(watch.Watcher):
        def _ask(self, url):
            begun = time.monotonic()
            super()._ask(url)
            answers.append(time.monotonic() - begun)

    def sleep(seconds):
        if ended.wait(seconds):
            raise SystemExit

    try:
        for _ in range(count):
            threading.Thread(target=Watcher(sleep).run).start()
            # They were not switched on in the same moment.
            time.sleep(1 / count)
        # Until each has its connection.
        time.sleep(10 + count / 50)
        begun = time.time()
        answers.clear()
        cpu = lab.cloud.usage('swift')['cpu_seconds']
        time.sleep(_SECONDS)
        cpu = lab.cloud.usage('swift')['cpu_seconds'] - cpu
        seconds = time.time() - begun
    finally:
        ended.set()
    asked = len(lab.cloud.swift_requests(begun, path=f'.*/{_OBJECT}'))
    return [
        f'{count}',
        f'{asked / seconds:.0f}',
        f'{1000 * statistics.median(answers):.0f}',
        f'{cpu / seconds:.2f}',
        f'{1000 * cpu / asked:.1f}',
    ]


def _url(lab):
    """Return a URL for GETs, as Heat makes one for a server's metadata."""
    session = lab.cloud.session()
    key = secrets.token_hex()
    headers = {'X-Container-Meta-Temp-URL-Key': key}
    container = f'/{_CONTAINER}'
    session.put('object-store', container, headers=headers)
    session.put('object-store', f'{container}/{_OBJECT}', {'configs': []})
    url = f'{session.endpoint("object-store")}/{_CONTAINER}/{_OBJECT}'
    expires = int(time.time()) + 3600
    text = f'GET\n{expires}\n{parse.urlsplit(url).path}'
    signature = hmac.new(key.encode(), text.encode(), hashlib.sha256)
    return (
        f'{url}?temp_url_sig={signature.hexdigest()}'
        f'&temp_url_expires={expires}'
    )
