# SPDX-License-Identifier: Apache-2.0
import pathlib
import subprocess

import pytest

from tests import words

LIST = """
files = ["room/*.py", "*.rst"]

[[phrase]]
find = "any more"
write = "no longer"

[[phrase]]
find = "odd"
write = "invalid"
"""


@pytest.fixture
def place(tmp_path: pathlib.Path) -> pathlib.Path:
    """A repository with one file; the list goes into a folder of it."""
    (tmp_path / 'room').mkdir()
    (tmp_path / 'ci').mkdir()
    (tmp_path / 'room' / 'one.py').write_text('x = 1\n')
    for command in (['init', '--quiet'], ['add', 'room']):
        subprocess.run(['git', '-C', str(tmp_path), *command], check=True)
    return tmp_path


def check(place: pathlib.Path, text: str, listed: str = LIST) -> int:
    (place / 'room' / 'one.py').write_text(text)
    (place / 'ci' / 'words.toml').write_text(listed)
    return words.main(place / 'ci' / 'words.toml')


@pytest.mark.parametrize(
    'text',
    [
        '# It does not run any more.\n',
        '# It does not run any\n# more.\n',
        '"""It does not run any\n    more.\n',
        "x = (\n    'It does not run any '\n    'more.'\n)\n",
        "x = (\n    f'It does not run {any}, any '\n    f'More.'\n)\n",
    ],
)
def test_finds_a_phrase_over_the_end_of_a_line(place, capsys, text):
    assert check(place, text) == 1
    shown = capsys.readouterr().out
    assert 'room/one.py:' in shown
    assert 'write: no longer' in shown
