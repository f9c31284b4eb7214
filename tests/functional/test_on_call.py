# SPDX-License-Identifier: Apache-2.0
"""The page for the person on call says what the commands print."""

from collections.abc import Callable, Iterator
import re
import shlex
import subprocess
import textwrap

import pytest

from tests.functional import base
from tests.functional import executions
from tests.functional import servers

PAGE = base.ROOT / 'doc/source/on-call.rst'
EXAMPLE = base.ROOT / 'contrib/examples/software.yaml'

_PARTS = re.compile(
    r'^\.\. (server off|the clock|it runs)$'
    r'|^\.\. code-block:: console\n\n((?:(?: {3}.*)?\n)+)',
    re.MULTILINE,
)
_RUN = re.compile(r'\d{8}T\d{6}Z-[0-9a-f]{8}')
_UUID = r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'

# What differs each time, and the width of a table that comes of it.
_SAME = (
    (_RUN.pattern, 'RUN'),
    (_UUID, 'UUID'),
    (r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ', 'TIME'),
    (r'/\S+/web-\d{8}T\d{6}', 'PATH'),
    (r'\b\d+ (bytes|s\b)', r'N \1'),
    (r'\| +\d+ ', '| N '),
    (r'-+', '-'),
    (r' +', ' '),
)


def same(text: str) -> list[str]:
    """Return the lines of an output without what differs each time."""
    for pattern, instead in _SAME:
        text = re.sub(pattern, instead, text)
    return text.split('\n')


def parts(page: str) -> Iterator[tuple[str, str]]:
    """Return what a page says, in its order.

    That is what happens, and commands with their outputs.
    """
    for event, block in _PARTS.findall(page):
        if event:
            yield event, ''
        for typed in re.split(r'^\$ ', textwrap.dedent(block), flags=re.M)[1:]:
            command, _, output = typed.strip('\n').partition('\n')
            yield command, output


class Typist:
    """Types the commands of the page.

    :ivar runs: the ids of runs on the page, and the real ones.
    """

    def __init__(self, env: dict[str, str]) -> None:
        self._env = env
        self._code = 0
        self.runs: dict[str, str] = {}

    def type(self, command: str, expected: str) -> None:
        """Type a command, and hold that it prints what the page says."""
        if command == 'echo $?':
            assert str(self._code) == expected
            return
        for shown, real in self.runs.items():
            command = command.replace(shown, real)
        done = subprocess.run(
            shlex.split(command),
            env=self._env,
            capture_output=True,
            text=True,
            timeout=100,
        )
        self._code = done.returncode
        printed = (done.stderr + done.stdout).strip('\n')
        assert same(printed) == same(expected), command
        ids = zip(_RUN.findall(expected), _RUN.findall(printed), strict=True)
        self.runs.update(ids)


@pytest.mark.timeout(300)
def test_the_commands_of_the_page_print_what_it_says(
    cloud: base.minicloud_client.Cloud,
    stacks: Callable[..., base.Stack],
) -> None:
    stack = stacks(EXAMPLE.read_text(), name='web')
    mistral = executions.Mistral(cloud.session())
    typist = Typist(cloud.env())
    with servers.agent(cloud, stack, 'web_server') as agent:
        stack.wait('CREATE_COMPLETE')
        events = {
            'the clock': lambda: mistral.run('web.nightly.backup'),
            'server off': agent.stop,
        }
        typed = 0
        for command, expected in parts(PAGE.read_text()):
            if command in events:
                events.pop(command)()
            else:
                typist.type(command, expected)
                typed += 1
        assert not events
        assert typed == PAGE.read_text().count('\n   $ ')
        agent.start()
        stack.delete()
        stack.wait('DELETE_COMPLETE')
