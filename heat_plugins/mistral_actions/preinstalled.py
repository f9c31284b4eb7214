# SPDX-License-Identifier: Apache-2.0
"""The workflows that ``mistral-db-manage populate`` installs."""

import pathlib


def paths() -> list[str]:
    """Return the paths of their definitions, as Mistral asks for them."""
    folder = pathlib.Path(__file__).with_name('workflows')
    return sorted(str(path) for path in folder.glob('*.yaml'))
