# SPDX-License-Identifier: Apache-2.0
"""A service behind a Keystone session, which a test answers for."""

import io
import json

from keystoneauth1 import session as ks_session
from keystoneauth1 import token_endpoint
import requests
from requests import adapters
import urllib3

from heat_plugins.clients import rest


class Service(adapters.BaseAdapter):
    """A service; a subclass has `answer`."""

    def answer(self, request):
        """Return a status, a body and perhaps headers; or raise."""
        raise NotImplementedError

    def send(self, request, **options):
        self.options = options
        return respond(request, *self.answer(request))

    def close(self):
        pass


def respond(request, status, body=None, headers=()):
    """Return the answer to a request.

    :param body: bytes, or what JSON can say; None for an empty one.
    """
    if not isinstance(body, bytes):
        body = b'' if body is None else json.dumps(body).encode()
    found = requests.Response()
    found.status_code = status
    found.headers.update(headers)
    found._content = body
    found.raw = urllib3.HTTPResponse(io.BytesIO(body), preload_content=False)
    found.url, found.request = request.url, request
    return found


def session(service, url, *, auth=token_endpoint.Token, **options):
    """Return a session in whose catalogue all services have one URL."""
    web = requests.Session()
    for scheme in ('http://', 'https://'):
        web.mount(scheme, service)
    return ks_session.Session(auth=auth(url, 'token'), session=web, **options)


def cloud(service, url, **options):
    """Return a cloud with such a session."""
    return rest.Cloud(session(service, url, **options))
