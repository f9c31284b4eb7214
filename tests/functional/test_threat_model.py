# SPDX-License-Identifier: Apache-2.0
"""What doc/source/threat-model.rst says that one can do with a URL."""

import re
import shlex
import subprocess

from tests.functional import base
from tests.functional import servers

PAGE = base.ROOT / 'doc/source/threat-model.rst'


def commands():
    """Return the page's curl commands, and the statuses that it promises."""
    found = re.findall(r'^    (curl .*?) +# (.*)$', PAGE.read_text(), re.M)
    return [
        (command, [int(each) for each in re.findall(r'\d{3}', comment)])
        for command, comment in found
    ]


def curl(command, url, folder, env):
    words = [word.replace('$URL', url) for word in shlex.split(command)]
    quiet = [
        '--silent',
        '--output',
        '/dev/null',
        '--write-out',
        '%{http_code}',
    ]
    done = subprocess.run(
        [words[0], *quiet, *words[1:]],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_curl_with_a_url_is_answered_as_the_page_says(cloud, stacks, tmp_path):
    env = base.curl_environment(cloud)
    (tmp_path / 'result.json').write_bytes(servers.body())
    stack = stacks(base.software())
    url = stack.waiting().signal_url
    page = commands()
    assert len(page) == 4
    for command, statuses in page:
        assert curl(command, url, tmp_path, env) in statuses, command
    name, _, query = url.partition('?')
    later = re.sub('(expires=)([0-9])', r'\g<1>9\2', query)
    for other in (f'{name}0?{query}', f'{name}?{later}'):
        for command, _ in page:
            assert curl(command, other, tmp_path, env) == 401, command
    stack.wait('CREATE_COMPLETE')
