# SPDX-License-Identifier: Apache-2.0
"""Signals by pre-signed URLs of Heat's CFN API, as CFN_SIGNAL has them.

The URL of each action has a signature of its own. The API has checked it when
heat-engine gets the signal, and passes it on; so whatever a result holds, it
shows which action it answers.
"""

import json
from typing import Any
import urllib.parse


class Presigned(dict[str, Any]):
    """What was sent to a URL, with the signature of the URL."""

    def __init__(self, details: dict[str, Any], signature: str) -> None:
        super().__init__(details)
        self.signature = signature


def noted(details: object, credentials: object) -> object:
    """Return the details of a signal with the signature of its URL.

    :param credentials: what the API has checked, as JSON; None if the signal
        came by another API.
    """
    if not isinstance(details, dict) or not isinstance(credentials, str):
        return details
    try:
        signature = json.loads(credentials)['ec2Credentials']['signature']
    except (ValueError, LookupError, TypeError):
        return details
    return Presigned(details, str(signature))


def came_by(details: object, url: object) -> bool | None:
    """Say whether a signal came by a URL; None: that cannot be told.

    It can if both have a signature.
    """
    if not isinstance(details, Presigned):
        return None
    query = urllib.parse.urlsplit(str(url)).query
    wanted = urllib.parse.parse_qs(query).get('Signature')
    return None if wanted is None else wanted == [details.signature]
