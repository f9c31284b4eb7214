# SPDX-License-Identifier: Apache-2.0
"""Signals by pre-signed URLs of Heat's CFN API, as CFN_SIGNAL has them.

The URL of each action has a signature of its own. The API has checked it when
heat-engine gets the signal, and passes it on; so whatever a result holds, it
shows which action it answers.
"""

import hashlib
import json
from typing import Any
import urllib.parse

from heat_plugins.signals import signal_names


class Presigned(dict[str, Any]):
    """A body sent to a signed URL, with the URL's signature."""

    def __init__(self, details: dict[str, Any], signature: str) -> None:
        super().__init__(details)
        self.signature = signature


def noted(details: object, credentials: object) -> object:
    """Return the details of a signal with the signature of its URL.

    :param credentials: what the API has checked, as JSON; None if the signal
        came by another API.
    """
    found = checked(credentials)
    if not isinstance(details, dict) or found is None:
        return details
    return Presigned(details, found)


def checked(credentials: object) -> str | None:
    """Return the signature that the API has checked; see `noted`."""
    if not isinstance(credentials, str):
        return None
    try:
        return str(json.loads(credentials)['ec2Credentials']['signature'])
    except (ValueError, LookupError, TypeError):
        return None


def came_by(details: object, url: object) -> bool | None:
    """Say whether a signal came by a URL; None: that cannot be told.

    It can if both have a signature.
    """
    wanted = signature(url)
    if not isinstance(details, Presigned) or wanted is None:
        return None
    return wanted == details.signature


def signature(url: object) -> str | None:
    """Return the signature of a URL, if it has one."""
    query = urllib.parse.urlsplit(str(url)).query
    return urllib.parse.parse_qs(query).get('Signature', [None])[0]


def config_id(group_id: str, found: str) -> str:
    """Return the ID of the config that a signature belongs to.

    So an engine finds the member of a group by the signature alone.

    :param group_id: of the group, or of one of its members.
    """
    digest = hashlib.sha256(found.encode()).hexdigest()
    return signal_names.id_in_group(group_id, digest)
