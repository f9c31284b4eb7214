# SPDX-License-Identifier: Apache-2.0
"""Write what servers sent to files: for one user alone, whole or not at all.

A file is written under another name and then renamed, so no symbolic link
that another user has put there is followed, and no reader sees half of it.
"""

import errno
import hashlib
import os
import pathlib
import tempfile
from urllib import parse

# Of the 255 bytes that a name may have.
_LONGEST = 200


def write(path: pathlib.Path, text: str) -> None:
    """Write a file, over one that is there.

    :raises OSError: it cannot be written; the former one is still there.
    """
    opened, draft = tempfile.mkstemp('.new', '.', path.parent)
    try:
        # Half a surrogate pair cannot be written; its escape can.
        with os.fdopen(
            opened, 'w', encoding='utf-8', errors='backslashreplace'
        ) as file:
            file.write(text)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def folder(path: pathlib.Path, *names: str) -> pathlib.Path:
    """Make a folder that only its user enters, and others in it.

    :param names: of the folders in it, as servers and templates say.
    :raises OSError: one cannot be made, or is a symbolic link.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in names:
        path /= file_name(name)
        path.mkdir(mode=0o700, exist_ok=True)
        if path.is_symlink():
            raise OSError(errno.ELOOP, 'it is a symbolic link', str(path))
    return path


def file_name(name: str) -> str:
    """Return the name for the file of a thing that may have any name."""
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
