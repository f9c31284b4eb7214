# SPDX-License-Identifier: Apache-2.0
"""The content of a plan: files by their paths.

All input is checked here: no file outside of the given source is read, no path
leads out of a plan, and the size is limited.
"""

from collections import abc
import dataclasses
import os
import pathlib
import stat

from heat_plugins import errors
from heat_plugins.content import storage
from heat_plugins.content import texts

Content = abc.Mapping[str, bytes]

# Folders in which version control keeps its own files.
_SKIPPED = frozenset({'.git', '.hg', '.svn', '.bzr'})


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceLimits:
    """The limits of a plan's size.

    :ivar files: the most files.
    :ivar file_bytes: the most bytes of a file.
    :ivar bytes: of all files together.
    """

    files: int = 50_000
    file_bytes: int = storage.FILE_LIMIT
    bytes: int = 256 * 1024 * 1024


_LIMITS = SourceLimits()


class Gathering:
    """A collection of files, up to the limits."""

    def __init__(self, limits: SourceLimits = _LIMITS) -> None:
        self._limits = limits
        self._bytes = 0
        self.files: dict[str, bytes] = {}

    def add(self, path: str, content: bytes) -> None:
        """Add a file.

        :raises errors.Invalid: it is too large, or exceeds the number of
            files; or its name cannot be a path in a plan.
        """
        plain = texts.path(path, 'name of a file')
        if plain.startswith(storage.OWN):
            raise errors.Invalid(
                f'{plain} cannot be in a plan: {storage.OWN} is reserved for '
                'records about plans'
            )
        self.check_size(path, len(content))
        self._bytes += len(content)
        self.files[plain] = content

    def check_size(self, path: str, size: int) -> None:
        """Check the size of the next file before it is read.

        :raises errors.Invalid: it is too large.
        """
        if size > self._limits.file_bytes:
            raise errors.Invalid(
                f'{path} is larger than {self._limits.file_bytes} bytes'
            )
        self.check_total(len(self.files) + 1, self._bytes + size)

    def check_total(self, files: int, size: int) -> None:
        """Check the number of files, and their bytes.

        :raises errors.Invalid: they are too large, or too many.
        """
        if files > self._limits.files or size > self._limits.bytes:
            raise errors.Invalid(
                f'There are more than {self._limits.files} files or '
                f'{self._limits.bytes} bytes; name a folder with only the '
                "plan's files"
            )


def from_directory(
    root: str | os.PathLike[str], limits: SourceLimits = _LIMITS
) -> Content:
    """Read a directory, without the folders of version control.

    :raises errors.Invalid: it is not a directory; an entry is neither a file
        nor a directory, or a link that leads out of it; or see `Gathering`.
    """
    base = pathlib.Path(root).resolve()
    if not base.is_dir():
        raise errors.Invalid(f'{root} is not a directory')
    gathered = Gathering(limits)
    try:
        for folder, folders, files in os.walk(base, onerror=_raise):
            folders[:] = sorted(set(folders) - _SKIPPED)
            for name in sorted({*files, *folders} - _SKIPPED):
                file = pathlib.Path(folder, name)
                # No link to a directory is followed.
                if file.is_dir() and not file.is_symlink():
                    continue
                target = file.resolve()
                if not target.is_relative_to(base):
                    raise errors.Invalid(
                        f'{file} is a link to a file outside {base}'
                    )
                # Opening a pipe would block.
                about = target.stat()
                if not stat.S_ISREG(about.st_mode):
                    raise errors.Invalid(f'{file} is not an ordinary file')
                gathered.check_size(str(file), about.st_size)
                gathered.add(
                    file.relative_to(base).as_posix(), target.read_bytes()
                )
    except OSError as exc:
        raise errors.Invalid(
            f'Cannot read {exc.filename or root}: {exc.strerror}'
        ) from exc
    return gathered.files


def _raise(exc: OSError) -> None:
    raise exc


def from_container(
    container: storage.Container, limits: SourceLimits = _LIMITS
) -> Content:
    """Read a container of the object store.

    :raises errors.NotFound: there is none.
    """
    gathered = Gathering(limits)
    entries = container.entries()
    size = sum(entry.size for entry in entries.values())
    gathered.check_total(len(entries), size)
    for path, content in container.fetch(list(entries)).items():
        gathered.add(path, content)
    return gathered.files
