# SPDX-License-Identifier: Apache-2.0
"""Build hook: pbr reads everything from setup.cfg.

Whatever builds this, the same commit gives the same bytes: what a build stamps
with the time has the commit's, unless SOURCE_DATE_EPOCH names another.
"""

import gzip
import io
import os
import pathlib
import shutil
import subprocess
import tarfile

import setuptools

TOP = pathlib.Path(__file__).resolve().parent


def epoch() -> int:
    """Return the time of what is built, in seconds since 1970.

    That is the last commit's. A source distribution has it in its files.
    """
    if named := os.environ.get('SOURCE_DATE_EPOCH'):
        return int(named)
    git = shutil.which('git')
    if git and (TOP / '.git').exists():
        command = [git, '-C', TOP, 'log', '-1', '--format=%ct']
        done = subprocess.run(
            command, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return int(done.stdout)
    return int(pathlib.Path(__file__).stat().st_mtime)


def normalized(archive: tarfile.TarFile, time: int) -> bytes:
    """Return the archive in an order, with owners and times, of no build."""
    plain = io.BytesIO()
    with tarfile.open(
        fileobj=plain, mode='w', format=tarfile.PAX_FORMAT
    ) as out:
        for member in sorted(archive, key=lambda each: each.name):
            member.mtime = time
            member.uid = member.gid = 0
            member.uname = member.gname = 'root'
            member.pax_headers = {}
            executable = member.isdir() or member.mode & 0o100
            member.mode = 0o755 if executable else 0o644
            out.addfile(member, archive.extractfile(member))
    return gzip.compress(plain.getvalue(), mtime=time)


def main() -> None:
    time = epoch()
    # A wheel takes its times from there.
    os.environ['SOURCE_DATE_EPOCH'] = str(time)
    built = setuptools.setup(setup_requires=['pbr>=6.1.1'], pbr=True)
    for command, _, path in built.dist_files:
        if command == 'sdist':
            with tarfile.open(path) as archive:
                content = normalized(archive, time)
            pathlib.Path(path).write_bytes(content)


if __name__ == '__main__':
    main()
