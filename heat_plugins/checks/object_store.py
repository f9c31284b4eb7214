# SPDX-License-Identifier: Apache-2.0
"""Check that TempURLs work, by creating and using one.

It does what heat-engine does for a deployment, with the same options of
heat.conf, but with the operator's credentials in place of a stack's.
"""

from collections import abc
import contextlib
import datetime
from email import utils
import uuid

from heat.common import config as heat_config
from keystoneauth1 import session as ks_session
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import wording
from heat_plugins.checks import cloud
from heat_plugins.clients import swift
from heat_plugins.engine import signing
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores
from heat_plugins.objectstore import wire
from heat_plugins.signals import signal_names

#: Seconds that clocks may differ; what is measured has a resolution of one.
CLOCK_TOLERANCE = 10

_LIFETIME = 300
_BODY = b'{"from": "heat-plugins-status"}'


def connect(session: ks_session.Session) -> swift.KeystoneTransport:
    """Connect to the object store as heat-engine does."""
    return swift.KeystoneTransport(
        cloud.reach(session, 'swift'),
        tls=heat_config.get_ssl_options('swift'),
    )


@cloud.reported
def check(report: cloud.CheckReport, session: ks_session.Session) -> None:
    """Check the TempURLs of a cloud that may do without an object store."""
    check_temp_urls(report, connect(session), absent=report.absent)


def check_temp_urls(
    report: cloud.CheckReport,
    transport: wire.Transport,
    absent: abc.Callable[[str], None],
) -> None:
    """Make a container, send a body to a TempURL of it, and read it back.

    :param absent: takes the type of a service that the cloud does not have.
    """
    store = stores.ObjectStore(transport)
    container = signal_names.container(f'check-{uuid.uuid4().hex}')
    try:
        report.good(f'The object store is at {store.url}.')
        if not store.names_account:
            # Whatever works now.
            report.warn(f'{wording.no_account(store.url)}.')
        _check_clock(report, transport, store)
        try:
            _use(report, transport, store, container)
        finally:
            try:
                with contextlib.suppress(errors.NoObject):
                    for entry in store.list_objects(container, ''):
                        store.delete_object(container, entry.name)
                    store.delete_container(container)
            except errors.ServiceError as exc:
                report.warn(
                    f'Cannot delete container {container} of this check; you '
                    f'can delete it: {exc}.'
                )
    except errors.NoObjectStore:
        absent(swift.SERVICE_TYPE)
    except errors.ServiceError as exc:
        report.fail(
            f'{str(exc).rstrip(".")}. See "TEMP_URL_POLL" in the page on '
            'transports for what it needs, and [clients_swift] in heat.conf '
            'for its interface and certificates.'
        )


def _check_clock(
    report: cloud.CheckReport,
    transport: wire.Transport,
    store: stores.ObjectStore,
) -> None:
    """Compare our clock with the store's: URLs expire by the latter."""
    answer = transport.send(
        wire.Request(
            method='GET', url=f'{store.cluster_url}/info', authenticated=False
        )
    )
    try:
        there = utils.parsedate_to_datetime(answer.headers.get('date', ''))
    except ValueError:
        report.warn(
            'Cannot compare clocks, because the object store sends no Date: '
            'check that both hosts use NTP.'
        )
        return
    ahead = round(
        (there - datetime.datetime.now(datetime.UTC)).total_seconds()
    )
    margin = cfg.CONF.heat_plugins.temp_url_margin
    remedy = 'synchronize both hosts with NTP.'
    if ahead > max(margin, CLOCK_TOLERANCE):
        report.fail(
            f'The clock of the object store is {ahead} s ahead, more than '
            'temp_url_margin: URLs expire before their actions do; ' + remedy
        )
    elif abs(ahead) > CLOCK_TOLERANCE:
        report.warn(
            f'The clock of the object store differs by {ahead} s; {remedy}'
        )
    else:
        report.good(f'Its clock differs by {ahead} s.')


def _use(
    report: cloud.CheckReport,
    transport: wire.Transport,
    store: stores.ObjectStore,
    container: str,
) -> None:
    """PUT, read and delete an object by signed URLs, as servers do."""
    keeper = keys.KeyKeeper(
        store,
        secret=signing.temp_url_secret(),
        digests=cfg.CONF.heat_plugins.temp_url_digests,
        overlap=None,
    )
    signer = keeper.ensure(container)
    name = signal_names.signal('check', uuid.uuid4().hex)
    answer = transport.send(
        wire.Request(
            method='PUT',
            url=signer.url(name, int(signer.now()) + _LIFETIME),
            authenticated=False,
            body=_BODY,
        )
    )
    if answer.status >= 300:
        report.fail(
            f'The object store answered {answer.status} to a PUT to a '
            'TempURL: check the tempurl middleware, its place in the '
            'pipeline (before authtoken) and its methods.'
        )
        return
    if store.get_object(container, name, len(_BODY)) != _BODY:
        report.fail(
            'An object that was PUT to a TempURL reads back changed: check '
            'proxies and caches in front of the object store.'
        )
        return
    if name not in store.first_names(container, name, 1):
        report.warn(
            'The listing of a container lags behind its objects; heat-engine '
            'then finds signals later, by signal_direct_look_interval.'
        )
    report.good(
        f'A TempURL works, signed with {signer.digest} and the key of the '
        f'{signer.kind}.'
    )
    # Ceph's gateway lets the holder of a TempURL copy all objects of the
    # account there, as did Swift before it refused the header.
    answer = transport.send(
        wire.Request(
            method='PUT',
            url=signer.url(f'{name}-copy', int(signer.now()) + _LIFETIME),
            headers={'X-Copy-From': f'/{signer.container}/{name}'},
            authenticated=False,
            body=b'',
        )
    )
    if answer.status < 300:
        report.warn(
            'A server can copy other objects of its project into the place '
            'of its result, as the object store accepts the header '
            'X-Copy-From with a TempURL. Let a proxy in front of it refuse '
            'such requests; see "Ceph RGW" in the page on the threat model.'
        )
