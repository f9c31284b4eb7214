# SPDX-License-Identifier: Apache-2.0
"""What quick servers ask of the object store while nothing changes.

Run as a program it is such servers: each a real watcher, in a thread.
"""

import hashlib
import hmac
import json
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from urllib import parse

from tests.bench import lab as labs
from tests.bench import live_servers
from tests.functional import base

_COUNTS = (10, 100)
_SECONDS = 20
_PROCESSES = 2
_CONTAINER, _OBJECT = 'bench-quick', 'metadata'


def measure(lab, say):
    """Let servers ask for some time; return a table of what that takes."""
    lab.start(labs.SIDES['ours'])
    url = _url(lab)
    table = [
        [
            'quick servers',
            'requests/s',
            'answer, median, ms',
            'Swift, cores',
            'CPU of Swift for a request, ms',
        ]
    ]
    for count in _COUNTS:
        with tempfile.TemporaryDirectory(prefix='bench-') as folder:
            file = pathlib.Path(folder, 'os-collect-config.conf')
            file.write_text(f'[request]\nmetadata_url = {url}\n')
            table.append(_row(lab, file, count))
        say(f'{table[-1]}')
    return table


def _row(lab, file, count):
    env = {
        **os.environ,
        'HEAT_CONFIG_QUICK': 'always',
        'HEAT_CONFIG_COLLECT_CONF': str(file),
    }
    watching = [
        subprocess.Popen(
            [sys.executable, '-m', 'tests.bench.quick', f'{each}'],
            cwd=base.ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for each in (count // _PROCESSES,) * _PROCESSES
    ]
    try:
        # Until each has its connection.
        time.sleep(10 + count / 50)
        begun = time.time()
        cpu = lab.cloud.usage('swift')['cpu_seconds']
        time.sleep(_SECONDS)
        cpu = lab.cloud.usage('swift')['cpu_seconds'] - cpu
        seconds = time.time() - begun
        asked = lab.cloud.swift_requests(begun, path=f'.*/{_OBJECT}')
        asked = [one for one in asked if one['time'] < begun + seconds]
        said = [one.communicate('\n', 60)[0] for one in watching]
    finally:
        for one in watching:
            one.kill()
            one.wait()
    answers = sorted(each for one in said for each in json.loads(one))
    return [
        f'{count}',
        f'{len(asked) / seconds:.0f}',
        f'{1000 * answers[len(answers) // 2]:.0f}',
        f'{cpu / seconds:.2f}',
        f'{1000 * cpu / len(asked):.1f}',
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


def _watch(count):
    """Be quick servers until standard input says so; how long answers took."""
    sys.path.insert(0, str(live_servers.AGENT))
    from heat_config_supervisor import watch

    answers = []

    class Watcher(watch.Watcher):
        def _ask(self, url):
            begun = time.monotonic()
            super()._ask(url)
            answers.append(time.monotonic() - begun)

    for _ in range(count):
        thread = threading.Thread(target=Watcher().run, daemon=True)
        thread.start()
        # They were not switched on in the same moment.
        time.sleep(1 / count)
    sys.stdin.readline()
    return answers[-count * _SECONDS :]


if __name__ == '__main__':
    print(json.dumps(_watch(int(sys.argv[1]))), flush=True)
    os._exit(0)
