# SPDX-License-Identifier: Apache-2.0
"""Write what servers sent to files: for one user alone, whole or not at all.

A file is written under another name and then renamed, so no symbolic link
that another user has put there is followed, and no reader sees half of it.
"""

import contextlib
import hashlib
import os
import pathlib
import secrets
import unicodedata
from urllib import parse

# Of the 255 bytes that a name may have.
_LONGEST = 200


def write(path: pathlib.Path, text: str) -> None:
    """Write a file, over one that is there.

    :raises OSError: it cannot be written; the former one is still there.
    """
    with contextlib.ExitStack() as stack:
        _write(_opened(stack, path.parent), path.name, text)


class Tree:
    """A folder for files in folders, named as servers and templates say.

    No two files that it writes are the same, however similar their names
    are, also where letter case does not count.

    :raises OSError: the folder cannot be created.
    """

    def __init__(self, path: pathlib.Path) -> None:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = path
        # What each name is called, and what is taken as a file system that
        # ignores letter case compares it; all by folder.
        self._folders: dict[tuple[str, str], str] = {}
        self._taken: set[tuple[str, str]] = set()

    def write(self, folders: tuple[str, ...], name: str, text: str) -> None:
        """Write a file, over one of an earlier command.

        :param folders: the names of the folders that it lies in.
        :raises OSError: it cannot be written.
        """
        with contextlib.ExitStack() as stack:
            opened, where = _opened(stack, self._path), ''
            for each in folders:
                folder = self._folders.get((where, each))
                if folder is None:
                    folder = self._new(where, each)
                    self._folders[where, each] = folder
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, 0o700, dir_fd=opened)
                opened = _opened(stack, folder, opened)
                where = f'{where}/{folder}'
            _write(opened, self._new(where, name), text)

    def _new(self, where: str, name: str) -> str:
        """Return a name that no other file or folder there has."""
        first = chosen = file_name(name)
        number = 1
        while (where, _folded(chosen)) in self._taken:
            number += 1
            chosen = f'{first}~{number}'
        self._taken.add((where, _folded(chosen)))
        return chosen


def file_name(name: str) -> str:
    """Return what to call the file of a thing that may have any name."""
    shown = ''.join(
        each
        if each.isalnum() or each in ' ._-'
        else parse.quote(each, safe='', errors='surrogatepass')
        for each in name
    )
    if shown.startswith('.'):
        shown = f'%2E{shown[1:]}'
    if len(shown.encode()) > _LONGEST:
        digest = hashlib.sha256(name.encode(errors='surrogatepass'))
        kept = shown.encode()[: _LONGEST - 20].decode(errors='ignore')
        shown = f'{kept}~{digest.hexdigest()[:16]}'
    return shown or '_'


def _folded(name: str) -> str:
    return unicodedata.normalize('NFKC', name).casefold()


def _opened(
    stack: contextlib.ExitStack,
    path: str | pathlib.Path,
    within: int | None = None,
) -> int:
    """Open a folder; within another one, none that is a symbolic link."""
    flags = os.O_RDONLY | os.O_DIRECTORY
    if within is not None:
        flags |= os.O_NOFOLLOW
    opened = os.open(path, flags, dir_fd=within)
    stack.callback(os.close, opened)
    return opened


def _write(folder: int, name: str, text: str) -> None:
    draft = f'.{secrets.token_hex(8)}.new'
    opened = os.open(
        draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder
    )
    try:
        # Half a surrogate pair cannot be written; its escape can.
        with os.fdopen(
            opened, 'w', encoding='utf-8', errors='backslashreplace'
        ) as file:
            file.write(text)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(draft, dir_fd=folder)
        raise
