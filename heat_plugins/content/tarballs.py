# SPDX-License-Identifier: Apache-2.0
"""Plans as tarballs, also those that git makes of a repository.

No tarball is unpacked onto a disk.
"""

import bz2
from collections import abc
import contextlib
import gzip
import io
import lzma
import os
import pathlib
import posixpath
import subprocess
import tarfile
import tempfile
from typing import IO, Any, BinaryIO
from urllib import parse
import zlib

from heat_plugins import errors
from heat_plugins.content import sources
from heat_plugins.content import texts
from heat_plugins.objectstore import stores

_COMPRESSED: abc.Mapping[bytes, abc.Callable[[Any], Any]] = {
    b'\x1f\x8b': gzip.open,
    b'BZh': bz2.open,
    b'\xfd7zXZ\x00': lzma.open,
}

# Links to links that lead to one file, as Linux has it.
_LINKS = 40

# The most bytes of headers in a tarball whose files are within the limits.
_HEADERS = 16 * 1024 * 1024

# Bytes to read at a time.
_CHUNK = 1024 * 1024

# More than a plan may hold, packed.
_UPLOAD_LIMIT = 256 * 1024 * 1024

# The most digits of the length of a record, and a blank.
_DIGITS = 9

# Entries that say more of the next one than has room in its own header: GNU's
# by the name of the same record of pax.
_LONG = {
    tarfile.GNUTYPE_LONGNAME: 'path',
    tarfile.GNUTYPE_LONGLINK: 'linkpath',
}
_FILES = {tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE}
_EXTENDED = {
    *_LONG,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
}

# git runs programs for some others, such as "ext::".
_PROTOCOLS = 'https:ssh'

_CLONE_SECONDS = 600
_ARCHIVE_SECONDS = 120


class _Limited(io.RawIOBase):
    """Limits what a compressed file expands to."""

    def __init__(self, file: IO[bytes], limits: sources.SourceLimits) -> None:
        self._file = file
        self._limits = limits
        self._left = limits.bytes + _HEADERS + limits.files * 2048

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)
        self._left -= len(content)
        if self._left < 0:
            raise errors.Invalid(
                'The tarball exceeds the limit of a plan, '
                f'{self._limits.bytes} bytes; pack only the files of the plan'
            )
        return content


def read(
    file: BinaryIO,
    limits: sources.SourceLimits | None = None,
    *,
    folders: abc.Container[str] = (),
    keep_top: bool = False,
) -> sources.Content:
    """Read a tarball, which may be compressed by gzip, bzip2 or xz.

    :param file: must be seekable.
    :param folders: at the top of the plan that the tarball changes. A single
        one of these at its top is part of the paths.
    :param keep_top: whether a single folder at its top that holds everything
        else, as forges and packages make one, is part of the plan.
    :raises errors.Invalid: it is not a tarball; an entry is neither a file nor
        a folder nor a link to a file in it; or see `sources.Gathering`.
    """
    limits = limits or sources.SourceLimits()
    try:
        files = _read(_open(file, limits), limits)
    except (
        tarfile.TarError,
        EOFError,
        OSError,
        ValueError,
        lzma.LZMAError,
        zlib.error,
    ) as exc:
        raise errors.Invalid(
            f'Cannot read the tarball: {type(exc).__name__}. It must be '
            'complete, and uncompressed or compressed by gzip, bzip2 or xz'
        ) from exc
    return files if keep_top else _without_top(files, folders)


def from_object(
    store: stores.ObjectStore,
    container: str,
    name: str,
    folders: abc.Container[str] = (),
) -> sources.Content:
    """Read a tarball from the object store; see `read`."""
    packed = store.get_object(container, name, _UPLOAD_LIMIT)
    return read(io.BytesIO(packed), folders=folders)


def _open(file: BinaryIO, limits: sources.SourceLimits) -> _Limited:
    start = file.tell()
    magic = file.read(6)
    file.seek(start)
    plain: IO[bytes] = file
    for sign, opener in _COMPRESSED.items():
        if magic.startswith(sign):
            plain = opener(file)
    return _Limited(plain, limits)


def _read(file: _Limited, limits: sources.SourceLimits) -> dict[str, bytes]:
    gathered = sources.Gathering(limits)
    links: dict[str, str] = {}
    for count, member in enumerate(_members(file, limits), 1):
        if count > 2 * limits.files:
            raise errors.Invalid(
                f'The tarball has more than {2 * limits.files} entries, '
                'directories included'
            )
        if member.isdir():
            continue
        name = texts.path(member.name, 'name of a file in the tarball')
        if member.issym():
            folder = posixpath.dirname(name)
            links[name] = posixpath.join(folder, member.linkname)
        elif member.islnk():
            links[name] = member.linkname
        elif member.type in _FILES:
            gathered.check_size(name, member.size)
            gathered.add(name, _content(file, member.size))
        else:
            raise errors.Invalid(
                f'{name} in the tarball is not an ordinary file'
            )
    for name in links:
        gathered.add(
            name, gathered.files[_target(name, links, gathered.files)]
        )
    return gathered.files


def _members(
    file: _Limited, limits: sources.SourceLimits
) -> abc.Iterator[tarfile.TarInfo]:
    """Yield the entries; after a file's, the caller must read its content.

    `tarfile.open` itself searches what precedes an entry in quadratic time,
    copies a global header for each entry, and goes through many of them by
    recursion.
    """
    more: dict[str, str] = {}
    room = _HEADERS + limits.files * 2 * tarfile.BLOCKSIZE
    begun = False
    # What ends it is a block of zeros; some end without one.
    while any(block := _exactly(file, tarfile.BLOCKSIZE, or_none=begun)):
        begun = True
        member = tarfile.TarInfo.frombuf(block, 'utf-8', 'surrogateescape')
        if member.size < 0:
            raise tarfile.ReadError('negative size')
        if member.type not in _EXTENDED:
            member.name = more.get('path', member.name).rstrip('/')
            member.linkname = more.get('linkpath', member.linkname)
            member.size = int(more.get('size', member.size))
            more = {}
            yield member
            continue
        room -= tarfile.BLOCKSIZE + member.size
        if room < 0:
            raise errors.Invalid(
                'The extended headers of the tarball are too large; pack it '
                'with --format=gnu'
            )
        content = _content(file, member.size)
        if member.type in _LONG:
            more[_LONG[member.type]] = _text(content.partition(b'\0')[0])
        elif member.type != tarfile.XGLTYPE:
            more |= _records(content)
    # The checksum of what is compressed comes last.
    while file.read(_CHUNK):
        pass


def _records(content: bytes) -> dict[str, str]:
    """Return the values of a pax header for the next entry.

    Each record is ``LENGTH NAME=VALUE`` and a line feed, all of which the
    length counts.
    """
    records, start = {}, 0
    while start < len(content) and content[start]:
        digits, _, _ = content[start : start + _DIGITS].partition(b' ')
        end = start + int(digits)
        if end <= start:
            raise tarfile.ReadError('invalid pax header')
        name, _, value = content[start + len(digits) + 1 : end - 1].partition(
            b'='
        )
        if name.startswith(b'GNU.sparse.'):
            raise errors.Invalid(
                'The tarball holds a sparse file; pack it without --sparse'
            )
        records[_text(name)] = _text(value)
        start = end
    return records


def _text(encoded: bytes) -> str:
    return encoded.decode('utf-8', 'surrogateescape')


def _content(file: _Limited, size: int) -> bytes:
    """Read the content of an entry, and what fills its last block."""
    content = _exactly(file, size)
    _exactly(file, -size % tarfile.BLOCKSIZE)
    return content


def _exactly(file: _Limited, size: int, *, or_none: bool = False) -> bytes:
    """Read `size` bytes.

    :param or_none: whether the end of the file may come instead.
    :raises tarfile.ReadError: the file ends before that.
    """
    parts = []
    left = size
    while left and (part := file.read(min(left, _CHUNK))):
        parts.append(part)
        left -= len(part)
    if left and not (or_none and left == size):
        raise tarfile.ReadError('unexpected end of data')
    return b''.join(parts)


def _target(
    name: str, links: abc.Mapping[str, str], files: abc.Mapping[str, bytes]
) -> str:
    """Return the file that a link, or a chain of them, leads to."""
    seen = {name}
    path = name
    while path in links:
        path = texts.path(links[path], f'target of link {name} in the tarball')
        if path in seen:
            break
        seen.add(path)
        if len(seen) > _LINKS:
            raise errors.Invalid(
                f'{name} in the tarball is a link to a link, more than '
                f'{_LINKS} times'
            )
    if path not in files:
        raise errors.Invalid(
            f'{name} in the tarball links to {path}, which is not a file in it'
        )
    return path


def _without_top(
    files: dict[str, bytes], folders: abc.Container[str]
) -> dict[str, bytes]:
    tops = {path.partition('/')[0] for path in files}
    if len(tops) != 1 or not all('/' in path for path in files):
        return files
    if tops.pop() in folders:
        return files
    return {path.partition('/')[2]: files[path] for path in files}


@contextlib.contextmanager
def writer(
    file: BinaryIO,
) -> abc.Iterator[abc.Callable[[str, bytes], None]]:
    """Write a tarball (gzip) that is the same for the same files.

    It gives a function that adds a file by its path and content.
    """
    with (
        gzip.GzipFile('', 'wb', fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode='w') as tarball,
    ):

        def add(path: str, content: bytes) -> None:
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tarball.addfile(member, io.BytesIO(content))

        yield add


def from_git(where: str, revision: str = 'HEAD') -> sources.Content:
    """Read the commit at a revision of a git repository.

    :param where: the path of a checkout or a repository, or a URL (https or
        ssh).
    :param revision: a branch, a tag or a commit.
    :raises errors.Invalid: git or the revision is missing; or see `read`.
    """
    if '://' not in where:
        return _archive(pathlib.Path(where), revision)
    with tempfile.TemporaryDirectory(prefix='plan-') as folder:
        clone = pathlib.Path(folder, 'plan')
        _git(
            ['clone', '--quiet', '--bare', '--', where, str(clone)],
            f'Cannot clone {_public(where)}',
            _CLONE_SECONDS,
        )
        return _archive(clone, revision)


def _archive(where: pathlib.Path, revision: str) -> sources.Content:
    if revision.startswith('-') or not where.is_dir():
        raise errors.Invalid(
            f'{where} has no revision {revision}, or is not a git repository'
        )
    with tempfile.TemporaryFile() as tarball:
        _git(
            # A tree alone has no header that names a commit.
            [
                '-C',
                str(where),
                'archive',
                '--format=tar',
                f'{revision}^{{tree}}',
            ],
            f'Cannot read revision {revision} of {where}',
            _ARCHIVE_SECONDS,
            tarball,
        )
        tarball.seek(0)
        return read(tarball, keep_top=True)


def _git(
    arguments: abc.Sequence[str],
    failed: str,
    seconds: float,
    output: IO[bytes] | None = None,
) -> None:
    environment = os.environ | {
        'GIT_ALLOW_PROTOCOL': _PROTOCOLS,
        'GIT_TERMINAL_PROMPT': '0',
    }
    try:
        subprocess.run(  # nosec B607
            # The operator's PATH says which git.
            ['git', *arguments],  # noqa: S607
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output or subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=True,
        )
    except FileNotFoundError as exc:
        raise errors.Invalid(
            f'{failed}: git is not installed on this machine'
        ) from exc
    except subprocess.TimeoutExpired as exc:
        raise errors.Invalid(f'{failed} within {seconds:.0f} s') from exc
    except subprocess.CalledProcessError as exc:
        # Its message may quote the URL, with a password.
        raise errors.Invalid(
            f'{failed}: git exited with code {exc.returncode}. Run it by '
            'hand to see why'
        ) from exc


def _public(url: str) -> str:
    """Return a URL without its password."""
    parts = parse.urlsplit(url)
    host = parts.netloc.rpartition('@')[2]
    return parse.urlunsplit((parts.scheme, host, parts.path, '', ''))
