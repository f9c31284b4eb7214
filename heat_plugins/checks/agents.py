# SPDX-License-Identifier: Apache-2.0
"""How agents get their configs, and send results, by default.

A template may choose other transports; most rely on these defaults.
"""

from collections import abc
import dataclasses

from heat.api.aws import ec2token  # noqa: F401 (its options)
from heat.common import config as heat_config
from keystoneauth1 import exceptions
from keystoneauth1 import session as ks_session
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import heat_values
from heat_plugins import wording
from heat_plugins.checks import cloud

config.register_opts(cfg.CONF)
cfg.CONF.import_opt('default_software_config_transport', 'heat.common.config')
cfg.CONF.import_opt(
    'default_deployment_signal_transport', 'heat.common.config'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dependency:
    """The service that a transport needs.

    :ivar service: its type in the catalogue.
    :ivar client: whose options of heat.conf name the interface.
    :ivar users: whether Heat makes a user for each server.
    """

    service: str
    client: str
    users: bool = True


_CFN = Dependency(service='cloudformation', client='heat')
_HEAT = Dependency(service='orchestration', client='heat')
_SWIFT = Dependency(service='object-store', client='swift', users=False)
_ZAQAR = Dependency(service='messaging', client='zaqar')

_SERVICES = {
    'POLL_SERVER_CFN': _CFN,
    'POLL_SERVER_HEAT': _HEAT,
    'POLL_TEMP_URL': _SWIFT,
    'ZAQAR_MESSAGE': _ZAQAR,
    'CFN_SIGNAL': _CFN,
    'HEAT_SIGNAL': _HEAT,
    heat_values.TEMP_URL_POLL: _SWIFT,
    'ZAQAR_SIGNAL': _ZAQAR,
}

_OF_SIGNED_URLS = 'CFN_SIGNAL, POLL_SERVER_CFN and trigger_url'

#: Keystone's answers to who must log in.
_REFUSALS = (401, 403)

#: What also helps where servers need a service by default.
_OTHERWISE = (
    ' Another default_software_config_transport or '
    'default_deployment_signal_transport helps, too.'
)


@cloud.reported
def transports(
    report: cloud.CheckReport, session: ks_session.Session | None
) -> None:
    """Check the default transports, to the servers and from them.

    :param session: of a user of the cloud; None checks only heat.conf.
    """
    out = cfg.CONF.default_software_config_transport
    back = heat_values.canonical(config.default_signal_transport(cfg.CONF))
    report.good(
        f'By default, servers get their configs by {out} and send results by '
        f'{back}.'
    )
    dependencies = [
        _SERVICES[name] for name in (out, back) if name in _SERVICES
    ]
    if any(needed.users for needed in dependencies):
        _check_domain(report)
    _check_signed_urls(report, session, _CFN in dependencies)
    if session is None:
        report.unsure(
            'Skipped: whether the services for that exist (needs --os-cloud '
            'or OS_*).'
        )
        return
    for needed in dict.fromkeys(dependencies):
        _check_service(report, session, needed, _OTHERWISE)


def check_transport(
    report: cloud.CheckReport,
    session: ks_session.Session | None,
    name: str,
) -> None:
    """Check heat.conf and the cloud for the needs of one transport.

    :param session: of a user of the cloud; None checks only heat.conf.
    :param name: the transport; TEMP_URL_POLL has a check of its own, which
        uses a URL.
    """
    needed = _SERVICES[name]
    if needed.users:
        _check_domain(report)
    if needed is _CFN:
        _check_signed_urls(report, session, needed=True)
    if session is not None:
        _check_service(report, session, needed)


def _check_domain(report: cloud.CheckReport) -> None:
    """Check that Heat can create users for servers."""
    missing = [
        name
        for name in ('stack_domain_admin', 'stack_domain_admin_password')
        if not getattr(cfg.CONF, name)
    ]
    if not (cfg.CONF.stack_user_domain_id or cfg.CONF.stack_user_domain_name):
        missing.insert(0, 'stack_user_domain_name')
    if missing:
        report.fail(
            'Heat cannot create users for servers: set '
            f'{", ".join(missing)} in [DEFAULT] of heat.conf; '
            '"heat-keystone-setup-domain" prepares the domain in Keystone.'
        )


def _check_signed_urls(
    report: cloud.CheckReport,
    session: ks_session.Session | None,
    needed: bool,
) -> None:
    """Check how heat-api-cfn authenticates the URLs that Heat signs.

    Since 2025 Keystone checks no signature for who has no token. Later Heats
    log in for that, with what any service has in its configuration.

    :param needed: whether agents get their configs, or answer, by default by
        such URLs.
    """
    options = cfg.CONF.ec2authtoken
    if options.multi_cloud:
        return
    # Such a Heat cannot log in.
    is_older = 'auth_type' not in options
    if is_older:
        remedy = "auth_uri, Keystone's URL"
        is_set = cfg.CONF.clients_keystone.auth_uri or options.auth_uri
    else:
        remedy = 'auth_type, auth_url and the service user for that'
        is_set = options.auth_type or options.auth_section
    say = report.fail if needed else report.warn
    if not is_set:
        say(
            'heat-api-cfn cannot ask Keystone about signed URLs, so that '
            f'{_OF_SIGNED_URLS} come to nothing: set {remedy}, in '
            '[ec2authtoken] of its heat.conf.'
        )
    elif is_older and session is not None:
        _check_without_token(report, session, say)


def _check_without_token(
    report: cloud.CheckReport,
    session: ks_session.Session,
    say: abc.Callable[[str], None],
) -> None:
    """Ask Keystone as such a heat-api-cfn does, about no signature."""
    url = cloud.reach(session, 'keystone').filter('identity')
    try:
        endpoint = session.get_endpoint(**url) or ''
        answer = session.post(
            f'{endpoint.rstrip("/").removesuffix("/v3")}/v3/ec2tokens',
            json={},
            authenticated=False,
            raise_exc=False,
            **heat_config.get_ssl_options('keystone'),
        )
    except exceptions.ClientException as exc:
        report.unsure(
            'Not checked: whether Keystone lets heat-api-cfn ask about signed '
            f'URLs; it does not answer from here ({type(exc).__name__}).'
        )
    else:
        if answer.status_code in _REFUSALS:
            say(
                'heat-api-cfn of this Heat asks Keystone about signed URLs '
                'without a token, and this Keystone refuses that, so that '
                f'{_OF_SIGNED_URLS} do not work: upgrade Heat (24.1.2 sends '
                'one), or set default_software_config_transport to '
                'POLL_TEMP_URL or POLL_SERVER_HEAT.'
            )


def _check_service(
    report: cloud.CheckReport,
    session: ks_session.Session,
    needed: Dependency,
    otherwise: str = '',
) -> None:
    """Check that a service that servers need answers."""
    name = needed.service
    endpoint = cloud.reach(session, needed.client)
    try:
        answer = session.get(
            '',
            endpoint_filter=endpoint.filter(name),
            authenticated=False,
            raise_exc=False,
            redirect=False,
            **heat_config.get_ssl_options(needed.client),
        )
    except exceptions.EndpointNotFound:
        report.fail(
            f'{wording.no_service(name)}. heat-engine looks for its '
            f'{endpoint.interface} endpoint.{otherwise}'
        )
    except exceptions.ClientException as exc:
        report.fail(
            f'{name} does not answer from here ({type(exc).__name__}); '
            f'servers need it: check {endpoint.interface} in the catalogue, '
            'and ca_file in heat.conf.'
        )
    else:
        if answer.status_code >= 500:
            report.fail(
                f'{name} answers {answer.status_code} at {answer.url}; '
                'its log says why.'
            )
        else:
            report.good(f'{name} answers at {answer.url}.')
