# SPDX-License-Identifier: Apache-2.0
import pathlib

import pytest

from tests import exempt

OPTIONS = """
[tool.heat-plugins]
mypy-exempt-percent = {ceiling}

[tool.mypy]
files = ["package"]

[[tool.mypy.overrides]]
module = ["package.room.*", "package.one"]
ignore_errors = true

[[tool.mypy.overrides]]
module = "package.checked"
disallow_subclassing_any = false
"""


@pytest.fixture
def pyproject(tmp_path: pathlib.Path) -> pathlib.Path:
    room = tmp_path / 'package' / 'room'
    room.mkdir(parents=True)
    for folder, name, lines in (
        (room, '__init__', 1),
        (room, 'deep', 2),
        (room.parent, 'one', 3),
        (room.parent, 'one_more', 4),
        (room.parent, 'roomy', 4),
        (room.parent, 'checked', 6),
    ):
        (folder / f'{name}.py').write_text('x = 1\n' * lines)
    return tmp_path / 'pyproject.toml'


def test_prints_the_share_of_exempt_lines(pyproject, capsys):
    pyproject.write_text(OPTIONS.format(ceiling=30))
    assert exempt.main(pyproject) == 0
    assert '6 of 20 lines exempt (30.0 %; at most 30 %)' in (
        capsys.readouterr().out
    )


def test_fails_above_the_ceiling(pyproject, capsys):
    pyproject.write_text(OPTIONS.format(ceiling=29))
    assert exempt.main(pyproject) == 1
    assert 'mypy-exempt-percent' in capsys.readouterr().err
