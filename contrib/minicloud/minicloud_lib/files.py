# SPDX-License-Identifier: Apache-2.0
"""Small file helpers: private, atomic, and locked between processes."""

from collections.abc import Iterator
import contextlib
import fcntl
import json
import os
import pathlib
import tempfile
from typing import Any


def make_folder(path: pathlib.Path) -> pathlib.Path:
    """Make a folder that only its owner can enter."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def write(path: pathlib.Path, text: str, mode: int = 0o600) -> None:
    """Write a file so that a reader sees the old or the new one, whole."""
    make_folder(path.parent)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix='.new-')
    try:
        with os.fdopen(handle, 'w', encoding='utf-8') as stream:
            stream.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def write_json(path: pathlib.Path, value: Any) -> None:
    write(path, json.dumps(value, indent=2, sort_keys=True) + '\n')


def read_json(path: pathlib.Path, default: Any = None) -> Any:
    """Read a JSON file; the default when it is missing or half a file."""
    try:
        return json.loads(path.read_text(encoding='utf-8'))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return default


@contextlib.contextmanager
def lock(path: pathlib.Path) -> Iterator[None]:
    """Hold a lock that other processes respect; it dies with the process."""
    make_folder(path.parent)
    with path.open('a') as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def tail(path: pathlib.Path, lines: int) -> str:
    """The last lines of a log that may be large, or not there yet."""
    try:
        with path.open('rb') as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - 400 * lines))
            text = stream.read().decode('utf-8', 'replace')
    except FileNotFoundError:
        return ''
    return '\n'.join(text.splitlines()[-lines:])
