# SPDX-License-Identifier: Apache-2.0
"""The user's cloud behind a request, and texts from it made safe.

Django escapes HTML, and Horizon's part of that the braces that AngularJS
would evaluate; control characters and bidirectional overrides are ours.
"""

import base64
import contextlib
import datetime
import html as escaping

from django.conf import settings
from django.utils import dateparse
from django.utils import html
from django.utils import safestring
from django.utils import timezone
from horizon import exceptions
from horizon import messages
from horizon.utils import memoized
from keystoneauth1 import plugin
from keystoneauth1 import session
from openstack_dashboard import policy
from openstack_dashboard.api import base

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import pools
from heat_plugins.clients import heat as heat_client
from heat_plugins.clients import rest
from heat_plugins.clients import runs as run_client
from heat_plugins.clients import swift
from heat_plugins.runs.schedules import schedule_signals
from heat_plugins.timeline import svg

#: Rules of Heat's policy: to change runs, and to change schedules, which
#: heat-engine checks as for runs.
CHANGE_RUNS = (
    ('orchestration', 'software_deployments:create'),
    ('orchestration', 'stacks:update'),
)
CHANGE_SCHEDULES = (('orchestration', 'stacks:update'),)


class _RequestToken(plugin.BaseAuthPlugin):
    """The token of a request, and the catalogue that came with it."""

    def __init__(self, request):
        super().__init__()
        self._user = request.user
        self._request = request

    def get_token(self, session, **kwargs):
        return self._user.token.id

    def get_project_id(self, session, **kwargs):
        return self._user.project_id

    def get_endpoint(self, session, service_type=None, **kwargs):
        try:
            return base.url_for(self._request, service_type)
        except exceptions.ServiceCatalogException:
            return None


@memoized.memoized
def cloud(request):
    """Return the user's services, as Horizon knows them."""
    verify = getattr(settings, 'OPENSTACK_SSL_CACERT', None) or True
    if getattr(settings, 'OPENSTACK_SSL_NO_VERIFY', False):
        verify = False
    return rest.Cloud(
        session.Session(auth=_RequestToken(request), verify=verify)
    )


def runs(request):
    """Return the client of runs."""
    return run_client.Runs(cloud(request))


def heat(request):
    """Return the client of Heat."""
    return heat_client.Heat(cloud(request))


def schedules(request):
    """Return the client of schedules."""
    return schedule_signals.Schedules(heat(request), pools.Pool())


def store(request):
    """Return the client of the object store."""
    return swift.connect(cloud(request))


def may(request, rules):
    """Say whether Heat's policy, as far as Horizon knows it, lets the user."""
    return policy.check(rules, request)


def require(request, rules):
    """Refuse a request that Heat's policy forbids.

    :raises exceptions.NotAuthorized: it does.
    """
    if not may(request, rules):
        raise exceptions.NotAuthorized


@contextlib.contextmanager
def told(request):
    """Show the user an error in place of an exception."""
    try:
        yield
    except errors.Error as exc:
        messages.error(request, foreign.line(exc))


def verbatim(text):
    """Return foreign text as HTML for an element that is ``ng-non-bindable``.

    Elsewhere Horizon writes ``{%`` for the ``{$`` that AngularJS evaluates,
    which would change a program of awk.
    """
    return safestring.SafeString(escaping.escape(text))  # nosec


def local(time):
    """Return a time of an API in the zone that the user has chosen."""
    moment = dateparse.parse_datetime(time) if time else None
    if moment is None:
        return ''
    return f'{timezone.localtime(moment):%Y-%m-%d %H:%M:%S}'


def since(age):
    """Return the time that was some hours ago, in seconds."""
    ago = datetime.timedelta(hours=int(age))
    return (timezone.now() - ago).timestamp()


def picture(drawn):
    """Return a chart as an element with a document of its own.

    Its style does not reach the page, and nothing in it the session.
    """
    data = base64.b64encode(svg.draw(drawn).encode()).decode()
    return html.format_html(
        '<div style="overflow-x: auto"><object type="image/svg+xml" '
        'style="min-width: 640px; max-width: 100%" '
        'data="data:image/svg+xml;base64,{}">{}</object></div>',
        data,
        foreign.line(f'{drawn.stack}: {len(drawn.rows)} rows'),
    )
