# SPDX-License-Identifier: Apache-2.0
"""TempURLs: signing.

The rules are those of Swift's tempurl middleware ("TempURL" in the Swift
documentation). What is signed is the decoded path of the storage URL, its
prefix included; Ceph's gateway accepts that form under every prefix.
"""

import hashlib
import hmac
from urllib import parse

# The largest expiry that a 32-bit time_t holds: January 2038.
MAX_EXPIRES = 2**31 - 1

_DIGESTS = {
    'sha1': hashlib.sha1,
    'sha256': hashlib.sha256,
    'sha512': hashlib.sha512,
}


def sign(method: str, path: str, expires: int, key: str, digest: str) -> str:
    """Return the hex signature of a request.

    :param path: the decoded path of the object, from the host on.
    :param expires: seconds since the epoch.
    :param digest: ``sha1``, ``sha256`` or ``sha512``.
    """
    text = f'{method}\n{expires}\n{path}'
    return hmac.new(key.encode(), text.encode(), _DIGESTS[digest]).hexdigest()


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

    :param is_prefix: whether it is for all objects whose names begin with
        `name`; whoever uses it puts the rest of the name at the path's end.
    :raises ValueError: without both a container and an object; a signed
        request for a bare container crashes some of Ceph's gateways.
    """
    if not container or not name.strip('/'):
        raise ValueError('A TempURL needs a container and an object')
    parts = parse.urlsplit(storage_url.rstrip('/'))
    path = f'{parse.unquote(parts.path)}/{container}/{name}'
    signed = f'prefix:{path}' if is_prefix else path
    query: dict[str, str | int] = {
        'temp_url_sig': sign(method, signed, expires, key, digest),
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
