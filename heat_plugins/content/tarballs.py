# SPDX-License-Identifier: Apache-2.0
"""Plans as tarballs, none of which is unpacked onto a disk, and from git."""

import bz2
from collections import abc
import contextlib
import gzip
import io
import lzma
import os
import posixpath
import subprocess
import tarfile
import tempfile
from typing import IO, Any, BinaryIO, Self
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

# The most links in a chain of links, as in Linux.
_LINKS = 40

# Bytes of the headers of one entry, with its long names, and the most values
# of global headers. Python's tarfile takes the square of their number.
_HEADERS = 8 * 1024
_GLOBAL = 64

# Bytes to read at a time.
_CHUNK = 1024 * 1024

# Bytes of a packed plan.
_UPLOAD_LIMIT = 256 * 1024 * 1024

# git runs programs for some others, such as "ext::".
_PROTOCOLS = 'https:ssh'

_GIT_SECONDS = 600


class _Unpacked:
    """The unpacked bytes of a tarball, for `tarfile`.

    :ivar left: the number of bytes that may still be read.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.left = _HEADERS

    def read(self, size: int) -> bytes:
        self.left -= size
        if self.left < 0:
            raise errors.Invalid(
                'The extended headers of the tarball are too large; pack it '
                'with --format=gnu, and without --sparse'
            )
        return self._file.read(size)


class _Entry(tarfile.TarInfo):
    """An entry; tarfile takes an invalid header for the end of the tarball."""

    @classmethod
    def frombuf(
        cls, buf: bytes | bytearray, encoding: str, errors: str
    ) -> Self:
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as exc:
            if any(buf):
                raise tarfile.ReadError('invalid header') from exc
            raise


def read(
    file: BinaryIO,
    limits: sources.SourceLimits | None = None,
    *,
    folders: abc.Container[str] = (),
) -> sources.Content:
    """Read a tarball, which may be compressed by gzip, bzip2 or xz.

    :param file: must be seekable.
    :param folders: at the top of the plan that the tarball changes. A single
        folder at the top of the tarball is left out, as of shop-1.0/root.yaml,
        unless it is one of these.
    :raises errors.Invalid: it is not a tarball; an entry is neither a file nor
        a folder nor a link to a file in it; or see `sources.Gathering`.
    """
    start = file.tell()
    magic = file.read(6)
    file.seek(start)
    openers = [
        opener
        for sign, opener in _COMPRESSED.items()
        if magic.startswith(sign)
    ]
    try:
        unpacked = openers[0](file) if openers else file
        files = _read(unpacked, limits or sources.SourceLimits())
    except (
        tarfile.TarError,
        RecursionError,
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
    tops = {path.partition('/')[0] for path in files}
    is_in_one = len(tops) == 1 and all('/' in path for path in files)
    if is_in_one and tops.pop() not in folders:
        return {path.partition('/')[2]: files[path] for path in files}
    return files


def from_object(
    store: stores.ObjectStore,
    container: str,
    name: str,
    folders: abc.Container[str] = (),
) -> sources.Content:
    """Read a tarball from the object store; see `read`."""
    packed = store.get_object(container, name, _UPLOAD_LIMIT)
    return read(io.BytesIO(packed), folders=folders)


def _read(
    file: IO[bytes], limits: sources.SourceLimits
) -> abc.Mapping[str, bytes]:
    """Read the files of a tarball, up to limits."""
    gathered = sources.Gathering(limits)
    links: dict[str, str] = {}
    unpacked = _Unpacked(file)
    # tarfile calls only `read` of a stream.
    stream: Any = unpacked
    with tarfile.open(
        fileobj=stream,
        mode='r|',
        bufsize=tarfile.BLOCKSIZE,
        tarinfo=_Entry,
        encoding='utf-8',
    ) as tarball:
        for count, member in enumerate(tarball, 1):
            if count > 2 * limits.files or len(tarball.pax_headers) > _GLOBAL:
                raise errors.Invalid(
                    f'The tarball has more than {2 * limits.files} entries, '
                    f'directories included, or {_GLOBAL} values in global '
                    'headers'
                )
            if not member.isdir():
                _take(tarball, member, unpacked, gathered, links)
            unpacked.left = _HEADERS
    # The checksum of a compressed file comes last.
    unpacked.left = _UPLOAD_LIMIT
    while unpacked.read(_CHUNK):
        pass
    for name in links:
        gathered.add(
            name, gathered.files[_target(name, links, gathered.files)]
        )
    return gathered.files


def _take(
    tarball: tarfile.TarFile,
    member: tarfile.TarInfo,
    unpacked: _Unpacked,
    gathered: sources.Gathering,
    links: dict[str, str],
) -> None:
    """Take an entry other than a directory."""
    name = texts.path(member.name, 'name of a file in the tarball')
    if member.issym() or member.islnk():
        folder = posixpath.dirname(name) if member.issym() else ''
        links[name] = posixpath.join(folder, member.linkname)
        return
    file = None if member.issparse() else tarball.extractfile(member)
    if file is None:
        raise errors.Invalid(f'{name} in the tarball is not an ordinary file')
    gathered.check_size(name, member.size)
    unpacked.left += member.size
    gathered.add(name, file.read())


def _target(
    name: str, links: abc.Mapping[str, str], files: abc.Mapping[str, bytes]
) -> str:
    """Return the file that a link, or a chain of them, leads to."""
    path = name
    for _ in range(_LINKS):
        if path in links:
            path = texts.path(
                links[path], f'target of link {name} in the tarball'
            )
    if path not in files:
        raise errors.Invalid(
            f'{name} in the tarball links to {path}, which is not a file in it'
        )
    return path


@contextlib.contextmanager
def writer(
    file: BinaryIO,
) -> abc.Iterator[abc.Callable[[str, bytes], None]]:
    """Write a tarball (gzip) that is the same for the same files.

    :return: a function that adds a file by its path and content.
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

    A clone has a configuration of its own, and so runs no filters.

    :param where: the path of a checkout or a repository, or a URL (https or
        ssh).
    :param revision: a branch, a tag or a commit.
    :raises errors.Invalid: git or the revision is missing; or see
        `sources.from_directory`.
    """
    if revision.startswith('-'):
        raise errors.Invalid(f'{revision} is not a revision')
    environment = os.environ | {
        'GIT_ALLOW_PROTOCOL': _PROTOCOLS if '://' in where else 'file',
        # A clone with promised objects names programs that fetch them.
        'GIT_NO_LAZY_FETCH': '1',
        'GIT_TERMINAL_PROMPT': '0',
    }
    with tempfile.TemporaryDirectory(prefix='plan-') as folder:
        clone = ['clone', '--quiet', '--no-checkout', '--template=']
        checkout = ['-C', folder, 'checkout', '--quiet']
        try:
            for arguments in (
                [*clone, '--', where, folder],
                [*checkout, revision, '--'],
            ):
                subprocess.run(  # nosec B607
                    # The operator's PATH says which git.
                    ['git', *arguments],  # noqa: S607
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=_GIT_SECONDS,
                    check=True,
                )
        except (OSError, subprocess.SubprocessError) as exc:
            # Its message may quote the URL, with a password.
            raise errors.Invalid(
                f'Cannot read revision {revision} of the git repository: '
                f'{type(exc).__name__}. Run git clone and git checkout by '
                'hand to see why'
            ) from None
        return sources.from_directory(folder)
