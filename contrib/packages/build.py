#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""build.py FOLDER: make what a release consists of, from what is committed.

The source distribution, the wheel, a package for Debian and its relatives, and
the agent's add-on as both; SHA256SUMS lists them. The same commit gives the
same bytes, built twice or on two machines with the same tools: what a build
stamps with the time has the commit's.
"""

import datetime
from email import utils
import gzip
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

GIT = shutil.which('git') or 'git'

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]

#: Debian's names of what requirements.txt names.
DEPENDS = (
    'python3:any (>= 3.11~)',
    'python3-croniter',
    'python3-heatclient',
    'python3-jinja2',
    'python3-keystoneauth1',
    'python3-mistralclient',
    'python3-openstacksdk',
    'python3-osc-lib',
    'python3-oslo.config',
    'python3-oslo.log',
    'python3-oslo.upgradecheck',
    'python3-oslo.utils',
    'python3-pbr',
    'python3-prettytable',
    'python3-rich',
    'python3-swiftclient',
    'python3-tenacity',
    'python3-yaml',
)

#: Who builds packages for Debian, by the variables that its tools read.
MAINTAINER = (
    f'{os.environ.get("DEBFULLNAME", "heat-plugins contributors")} '
    f'<{os.environ.get("DEBEMAIL", "root@localhost")}>'
)

CONTROL = """\
Package: heat-plugins
Version: {version}
Architecture: all
Section: python
Priority: optional
Installed-Size: {kilobytes}
Maintainer: {maintainer}
Depends: {depends}
Recommends: python3-openstackclient
Suggests: heat-engine
Description: software deployments and workflows in OpenStack Heat stacks
 Resource types that replace Heat's own software deployments and Mistral
 workflows, and commands for the openstack client: run actions on servers
 while a stack is created and afterwards, on one server or on a thousand.
 .
 Where heat-engine is installed, it loads the resource types at its next
 start. Nothing is restarted by this package.
"""

POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ] && command -v py3compile >/dev/null 2>&1; then
    py3compile -p heat-plugins
fi
"""

PRERM = """\
#!/bin/sh
set -e
if command -v py3clean >/dev/null 2>&1; then
    py3clean -p heat-plugins
fi
"""

CHANGELOG = """\
heat-plugins ({version}) unstable; urgency=medium

  * See the release notes: /usr/share/doc/heat-plugins/RELEASENOTES.rst.gz

 -- {maintainer}  {date}
"""

STATUS = """\
#!/usr/bin/python3
import sys
from heat_plugins import status
sys.exit(status.main())
"""


def main(folder: str) -> None:
    target = pathlib.Path(folder).resolve()
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        source = clone(work / 'source')
        epoch = int(git(source, 'log', '-1', '--format=%ct'))
        os.environ['SOURCE_DATE_EPOCH'] = str(epoch)
        # Modes are part of the bytes.
        os.umask(0o022)
        sdist = build_sdist(source, work, target)
        wheel = build_wheel(sdist, target)
        built = [sdist, wheel]
        built += build_agent(source, target)
        built.append(build_dashboard(source, target))
        if shutil.which('dpkg-deb'):
            built.append(build_deb(wheel, sdist, work, target, epoch))
        else:
            print('There is no dpkg-deb here, so no package for Debian.')
    sums = ''.join(
        f'{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n'
        for path in sorted(built)
    )
    (target / 'SHA256SUMS').write_text(sums)
    print(sums, end='')


def run(*command: object, **options: object) -> None:
    subprocess.run([str(part) for part in command], check=True, **options)


def git(source: pathlib.Path, *command: str) -> str:
    done = subprocess.run(
        [GIT, '-C', source, *command],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def clone(source: pathlib.Path) -> pathlib.Path:
    """Take what is committed; say so if there is more."""
    if git(CHECKOUT, 'status', '--porcelain'):
        print('What is not committed is left out.', file=sys.stderr)
    run(GIT, 'clone', '--quiet', '--no-hardlinks', CHECKOUT, source)
    return source


def build_sdist(
    source: pathlib.Path, work: pathlib.Path, target: pathlib.Path
) -> pathlib.Path:
    script = f'import pbr.build; pbr.build.build_sdist({str(work)!r})'
    run(sys.executable, '-c', script, cwd=source, stdout=subprocess.DEVNULL)
    (path,) = work.glob('*.tar.gz')
    return pathlib.Path(shutil.copy(path, target))


def build_wheel(sdist: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Build it from the source distribution, as pip would at its users'."""
    run(
        *(sys.executable, '-m', 'pip', 'wheel', '--quiet', '--no-deps'),
        *('--disable-pip-version-check', '--no-build-isolation', '--no-index'),
        *('--wheel-dir', target, sdist),
    )
    (path,) = target.glob(sdist.name.removesuffix('.tar.gz') + '-*.whl')
    return path


def build_dashboard(
    source: pathlib.Path, target: pathlib.Path
) -> pathlib.Path:
    run(
        *(sys.executable, '-m', 'pip', 'wheel', '--quiet', '--no-deps'),
        *('--disable-pip-version-check', '--no-build-isolation', '--no-index'),
        *('--wheel-dir', target, source / 'contrib/dashboard'),
    )
    (path,) = target.glob('heat_plugins_dashboard-*.whl')
    return path


def build_agent(
    source: pathlib.Path, target: pathlib.Path
) -> list[pathlib.Path]:
    before = set(target.iterdir())
    run(source / 'contrib/agent/packages', target, sys.executable)
    made = set(target.iterdir()) - before
    return list(made or target.glob('heat*config*supervisor*'))


def build_deb(
    wheel: pathlib.Path,
    sdist: pathlib.Path,
    work: pathlib.Path,
    target: pathlib.Path,
    epoch: int,
) -> pathlib.Path:
    """Lay the wheel's files out as Debian does, and pack them.

    Heat looks into /usr/lib/heat by itself, so nothing is configured.
    """
    release = wheel.name.split('-')[1]
    # Before the release, by dpkg's order as by pip's.
    version = release.replace('.dev', '~dev')
    tree = work / 'tree'
    packages = tree / 'usr/lib/python3/dist-packages'
    shutil.unpack_archive(wheel, packages, 'zip')
    (data,) = packages.glob('*.data')
    shutil.copytree(data / 'data/lib', tree / 'usr/lib', dirs_exist_ok=True)
    shutil.rmtree(data)
    (information,) = packages.glob('*.dist-info')
    # What pip keeps to uninstall; dpkg has its own.
    (information / 'RECORD').unlink()
    (information / 'INSTALLER').write_text('dpkg\n')
    shutil.rmtree(information / 'licenses', ignore_errors=True)
    write(tree / 'usr/bin/heat-plugins-status', STATUS, 0o755)
    write_documents(tree, sdist, version, epoch)
    kilobytes = sum(-(-path.stat().st_size // 1024) for path in files_of(tree))
    control = CONTROL.format(
        version=version,
        maintainer=MAINTAINER,
        depends=', '.join(DEPENDS),
        kilobytes=kilobytes,
    )
    write(tree / 'DEBIAN/control', control)
    write(tree / 'DEBIAN/postinst', POSTINST, 0o755)
    write(tree / 'DEBIAN/prerm', PRERM, 0o755)
    sums = ''.join(
        f'{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}'
        f'  {path.relative_to(tree)}\n'
        for path in files_of(tree / 'usr')
    )
    write(tree / 'DEBIAN/md5sums', sums)
    for path in [tree, *tree.rglob('*')]:
        os.utime(path, (epoch, epoch))
    path = target / f'heat-plugins_{version}_all.deb'
    run(
        *('dpkg-deb', '--root-owner-group', '-Zxz', '--build', tree, path),
        stdout=subprocess.DEVNULL,
    )
    return path


def write_documents(
    tree: pathlib.Path, sdist: pathlib.Path, version: str, epoch: int
) -> None:
    documents = tree / 'usr/share/doc/heat-plugins'
    top = sdist.name.removesuffix('.tar.gz')
    with tarfile.open(sdist) as archive:

        def read(name: str) -> bytes:
            member = archive.extractfile(f'{top}/{name}')
            return member.read() if member else b''

        notes = read('RELEASENOTES.rst')
        readme = read('README.rst')
    manual = pathlib.Path(__file__).with_name('heat-plugins-status.1')
    write(
        tree / f'usr/share/man/man1/{manual.name}.gz',
        gzip.compress(manual.read_bytes(), 9, mtime=0),
    )
    date = datetime.datetime.fromtimestamp(epoch, datetime.UTC)
    changes = CHANGELOG.format(
        version=version,
        maintainer=MAINTAINER,
        date=utils.format_datetime(date),
    ).encode()
    for name, content in (
        ('RELEASENOTES.rst.gz', notes),
        ('README.rst.gz', readme),
        ('changelog.gz', changes),
    ):
        write(documents / name, gzip.compress(content, 9, mtime=0))
    write(
        documents / 'copyright',
        'Format: https://www.debian.org/doc/packaging-manuals/'
        'copyright-format/1.0/\n'
        'Upstream-Name: heat-plugins\n\n'
        f'Files: *\nCopyright: {date.year} heat-plugins contributors\n'
        'License: Apache-2.0\n On Debian systems, the text of this licence '
        'is in\n /usr/share/common-licenses/Apache-2.0.\n',
    )


def write(path: pathlib.Path, content: str | bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        content if isinstance(content, bytes) else content.encode()
    )
    path.chmod(mode)


def files_of(tree: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in tree.rglob('*') if path.is_file())


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
