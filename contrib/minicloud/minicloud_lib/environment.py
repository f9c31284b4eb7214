# SPDX-License-Identifier: Apache-2.0
"""The environment variables that processes of the cloud are given."""

import pathlib

from minicloud_lib import layout


def clean(
    home: layout.Home, folder: pathlib.Path | None = None
) -> dict[str, str]:
    """Nothing of the user's: no proxy, no token, no folder of theirs."""
    own = folder or home.cache
    return {
        'PATH': f'{home.venv}/bin:/usr/local/bin:/usr/bin:/bin',
        'HOME': str(own),
        'TMPDIR': str(_made(own / 'tmp')),
        'XDG_CACHE_HOME': str(home.cache),
        'XDG_CONFIG_HOME': str(own),
        'LANG': 'C.UTF-8',
        'TZ': 'UTC',
        'VIRTUAL_ENV': str(home.venv),
        'PYTHONDONTWRITEBYTECODE': '1',
        'PYTHONUNBUFFERED': '1',
        'PYTHONUTF8': '1',
        # The folder a process starts in holds no code of ours.
        'PYTHONSAFEPATH': '1',
    }


def _made(path: pathlib.Path) -> pathlib.Path:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path
