# SPDX-License-Identifier: Apache-2.0
"""From the context of an action to a Keystone session.

What a user starts has the user's token, and its catalogue. What a trigger
starts has a token of Mistral's trust; that one is not used, but the trust
itself, so that what takes longer than a token lives can renew it.

A user's token cannot be renewed. When it has expired, Mistral vouches for it
with a token of its own, as a service does for what has started in time: for
Keystone's ``[token] allow_expired_window``, two days, it is still accepted.
"""

import contextlib
from typing import Any

from keystoneauth1 import access
from keystoneauth1 import loading
from keystoneauth1 import service_token
from keystoneauth1 import session as ks_session
from keystoneauth1.identity import access as access_plugin
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins.clients import rest

CONF = cfg.CONF

# Seconds; a token that expires sooner does not last for an action.
_SOON = 120

# Mistral's own credentials.
_AUTH = 'keystone_authtoken'

# The options of Mistral's OpenStack actions. mistral-extra, which has those,
# registers them when Mistral starts; without it they are unregistered.
_GROUP = 'openstack_actions'
_OPTS = [
    cfg.StrOpt(
        'os_actions_endpoint_type',
        default='public',
        choices=['public', 'admin', 'internal'],
    ),
    cfg.StrOpt('default_region'),
]


def cloud(security: Any) -> rest.Cloud:
    """Return the client for the services of an action's project.

    :param security: the security context of the action.
    :raises errors.Denied: there is no token and no trust.
    """
    with contextlib.suppress(cfg.DuplicateOptError):
        CONF.register_opts(_OPTS, group=_GROUP)
    options = CONF[_GROUP]
    return rest.Cloud(
        ks_session.Session(auth=_auth(security), verify=_verify(security)),
        options.os_actions_endpoint_type,
        security.region_name or options.default_region,
    )


def _auth(security: Any) -> Any:
    """Return how to get tokens as the user of the workflow."""
    if security.trust_id:
        # Mistral's own credentials, with the trust for their scope.
        return loading.load_auth_from_conf_options(
            CONF,
            _AUTH,
            trust_id=security.trust_id,
            domain_id=None,
            domain_name=None,
            project_id=None,
            project_name=None,
            project_domain_id=None,
            project_domain_name=None,
        )
    if not security.auth_token or not security.service_catalog:
        raise errors.Denied(
            'Mistral has no token to act with, or no catalogue: [pecan] '
            'auth_enable in mistral.conf is off, or the request was for '
            'another cloud'
        )
    # The user's own token: another one that is issued for it would expire at
    # the same time, and Keystone may refuse to issue one.
    token_access = access.create(
        body={'token': security.service_catalog},
        auth_token=security.auth_token,
    )
    plugin = access_plugin.AccessInfoPlugin(token_access)
    # Mistral sends no credentials of its own to another cloud.
    if security.is_target or not token_access.will_expire_soon(_SOON):
        return plugin
    own = loading.load_auth_from_conf_options(CONF, _AUTH)
    if own is None:
        return plugin
    return service_token.ServiceTokenAuthWrapper(plugin, own)


def _verify(security: Any) -> bool | str:
    """Return how to check the certificates of services."""
    if security.insecure:
        return False
    if security.auth_cacert:
        return str(security.auth_cacert)
    # The context of a cron trigger has neither.
    return False if CONF[_AUTH].insecure else CONF[_AUTH].cafile or True
