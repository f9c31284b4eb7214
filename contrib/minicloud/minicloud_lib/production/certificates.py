# SPDX-License-Identifier: Apache-2.0
"""A private certificate authority, and the certificate of the public side."""

import pathlib
import subprocess

from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib import ports

_DAYS = '3650'


def ensure(instance: layout.Instance) -> None:
    """Make both, once for each instance."""
    folder = files.make_folder(instance.data / 'tls')
    bundle = folder / 'server.pem'
    if bundle.exists():
        return
    _openssl(
        folder,
        *('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', _DAYS),
        *('-keyout', 'ca.key', '-out', 'ca.pem'),
        *('-subj', f'/CN=Mini cloud {instance.name}'),
        *('-addext', 'basicConstraints=critical,CA:TRUE'),
        *('-addext', 'keyUsage=critical,keyCertSign,cRLSign'),
    )
    _openssl(
        folder,
        *('req', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=minicloud'),
        *('-keyout', 'server.key', '-out', 'server.csr'),
    )
    files.write(
        folder / 'server.ext',
        f'subjectAltName = IP:{ports.ADDRESS}, DNS:localhost\n'
        'extendedKeyUsage = serverAuth\n',
    )
    _openssl(
        folder,
        *('x509', '-req', '-in', 'server.csr', '-out', 'server.crt'),
        *('-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'),
        *('-days', _DAYS, '-extfile', 'server.ext'),
    )
    # As HAProxy wants to have it. Written last: it tells that all is done.
    parts = [
        (folder / name).read_text() for name in ('server.crt', 'server.key')
    ]
    files.write(bundle, ''.join(parts))


def authority(instance: layout.Instance) -> pathlib.Path:
    """The authority that clients of the public side must trust."""
    return instance.data / 'tls/ca.pem'


def _openssl(folder: pathlib.Path, *arguments: str) -> None:
    result = subprocess.run(  # nosec B607
        # The user's PATH says which openssl.
        ['openssl', *arguments],  # noqa: S607
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise errors.MinicloudError(
            f'openssl {arguments[0]} failed:\n{result.stderr}'
        )
