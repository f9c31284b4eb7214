# SPDX-License-Identifier: Apache-2.0
"""Sign TempURLs with python-swiftclient.

What is signed is the decoded path of the storage URL, its prefix included;
Ceph's gateway accepts that form under every prefix.
"""

from urllib import parse

# The largest expiry that a 32-bit time_t holds: January 2038.
MAX_EXPIRES = 2**31 - 1


def make(
    storage_url: str,
    container: str,
    name: str,
    *,
    method: str,
    expires: int,
    key: str,
    digest: str,
    is_prefix: bool = False,
) -> str:
    """Return a URL with which anybody may do `method` until `expires`.

    :param expires: seconds since the epoch.
    :param digest: ``sha1``, ``sha256`` or ``sha512``.
    :param is_prefix: whether it is for all objects whose names begin with
        `name`; a caller puts the rest of the name at the end of the path.
    :raises ValueError: for another digest, or without both a container and an
        object; a signed request for a bare container crashes some of Ceph's
        gateways.
    """
    # It takes 0.1 s and 7 MB, which commands that sign nothing need not pay.
    from swiftclient import utils

    if not container or not name.strip('/'):
        raise ValueError('A TempURL needs a container and an object')
    parts = parse.urlsplit(storage_url.rstrip('/'))
    path = f'{parse.unquote(parts.path)}/{container}/{name}'
    signed = utils.generate_temp_url(
        path,
        expires,
        key,
        method,
        absolute=True,
        prefix=is_prefix,
        digest=digest,
    )
    # It quotes nothing, and for the prefix it takes the third segment of a
    # path for the container, which is none of Ceph's paths.
    parameters = parse.parse_qs(signed[len(path) + 1 :])
    query: dict[str, str | int] = {
        'temp_url_sig': parameters['temp_url_sig'][0],
        'temp_url_expires': expires,
    }
    if is_prefix:
        query['temp_url_prefix'] = name
    return parse.urlunsplit(
        (
            parts.scheme,
            parts.netloc,
            parse.quote(path),
            parse.urlencode(query),
            '',
        )
    )
