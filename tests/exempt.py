# SPDX-License-Identifier: Apache-2.0
"""Say how many of a package's lines mypy is told to ignore.

``exempt.py PYPROJECT`` prints the figure for the packages that mypy checks,
and fails if it is above ``[tool.heat-plugins] mypy-exempt-percent``.
"""

from collections.abc import Collection, Mapping
import pathlib
import re
import sys
import tomllib
from typing import Any

#: A comment that exempts the whole file, or the line that it stands in.
_FILE = re.compile(r'^# mypy: .*ignore[-_]errors', re.MULTILINE)
_LINE = re.compile(r'# type: ignore')


def patterns(mypy: Mapping[str, Any]) -> list[str]:
    """Return the modules of mypy's options whose errors are ignored."""
    found: list[str] = []
    for override in mypy.get('overrides', ()):
        modules = override['module']
        if override.get('ignore_errors'):
            found += [modules] if isinstance(modules, str) else modules
    return found


def is_exempt(module: str, exempt: Collection[str]) -> bool:
    """Say whether mypy would match a module by one of some patterns."""
    return any(
        f'{module}.'.startswith(pattern.removesuffix('*'))
        if pattern.endswith('.*')
        else module == pattern
        for pattern in exempt
    )


def count(
    root: pathlib.Path, packages: Collection[str], exempt: Collection[str]
) -> tuple[int, int]:
    """Return how many lines are exempt, and how many there are."""
    ignored = total = 0
    for package in packages:
        for file in sorted((root / package).rglob('*.py')):
            parts = file.relative_to(root).with_suffix('').parts
            module = '.'.join(parts).removesuffix('.__init__')
            lines = file.read_text().splitlines()
            total += len(lines)
            if is_exempt(module, exempt) or _FILE.search('\n'.join(lines)):
                ignored += len(lines)
            else:
                ignored += sum(bool(_LINE.search(line)) for line in lines)
    return ignored, total


def main(pyproject: pathlib.Path) -> int:
    """Print the figure; return the exit code."""
    tool = tomllib.loads(pyproject.read_text())['tool']
    ceiling = tool['heat-plugins']['mypy-exempt-percent']
    ignored, total = count(
        pyproject.parent, tool['mypy']['files'], patterns(tool['mypy'])
    )
    percent = 100 * ignored / total
    print(
        f'mypy: {ignored} of {total} lines exempt ({percent:.1f} %; '
        f'at most {ceiling} %)'
    )
    if percent > ceiling:
        print(
            'Annotate the module, or a neighbour: mypy-exempt-percent in '
            f'{pyproject.name} only falls.',
            file=sys.stderr,
        )
    return int(percent > ceiling)


if __name__ == '__main__':
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
