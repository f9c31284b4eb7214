# SPDX-License-Identifier: Apache-2.0
"""The network API of a cloud without networks.

Nova asks for the ports even of servers that have none.
"""

from collections.abc import Callable, Iterable
import json
from typing import Any


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Answer to each GET of a list that it is empty, and else with 404."""
    version, _, name = environ['PATH_INFO'].strip('/').partition('/')
    kind = name.removesuffix('.json').replace('-', '_')
    status, body = '200 OK', {kind: []}
    if not version:
        body = {'versions': [{'id': 'v2.0', 'status': 'CURRENT', 'links': []}]}
    elif environ['REQUEST_METHOD'] != 'GET' or not kind or '/' in kind:
        status = '404 Not Found'
        message = 'This cloud has no networks'
        body = {
            'NeutronError': {
                'message': message,
                'type': 'NotFound',
                'detail': '',
            }
        }
    start_response(status, [('Content-Type', 'application/json')])
    return [json.dumps(body).encode()]
