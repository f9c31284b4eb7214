# SPDX-License-Identifier: Apache-2.0
"""The content of a plan from a git repository, here or elsewhere."""

from collections import abc
import os
import pathlib
import subprocess
import tempfile
from typing import IO
from urllib import parse

from heat_plugins import errors
from heat_plugins.content import sources
from heat_plugins.content import tarballs

# git runs programs for some others, such as "ext::".
_PROTOCOLS = 'https:ssh'

_CLONE_SECONDS = 600
_ARCHIVE_SECONDS = 120


def read(where: str, revision: str = 'HEAD') -> sources.Content:
    """Read what is committed at a revision.

    :param where: the path of a checkout or a repository, or the URL of one
        (https or ssh).
    :param revision: a branch, a tag or a commit.
    :raises errors.Invalid: no git, or no such revision; or see
        `tarballs.read`.
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
        return tarballs.read(tarball, keep_top=True)


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
        # What it says may hold the URL, and that a password.
        raise errors.Invalid(
            f'{failed}: git exited with code {exc.returncode}. Run it by '
            'hand to see why'
        ) from exc


def _public(url: str) -> str:
    """Return a URL without the password that may be in it."""
    parts = parse.urlsplit(url)
    host = parts.netloc.rpartition('@')[2]
    return parse.urlunsplit((parts.scheme, host, parts.path, '', ''))
