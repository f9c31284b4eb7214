# SPDX-License-Identifier: Apache-2.0
"""URLs of heat-api-cfn by which servers send the results of runs.

They serve where there is no object store. The user that Heat has made for a
server signs its URLs: Keystone holds the key pair for as long as the server is
in its stack, so it lives as long as an answer may come, and no server can
answer for another. Heat gives a key pair to each server with POLL_SERVER_CFN.
Others with a user get one when it is first needed; it is kept with their
resource, and goes with their user.

A URL has no Timestamp, which Keystone would refuse after 15 minutes. Its
parameters name the run, the target and the attempt, so that no two have the
same signature.
"""

from collections import abc
import json
from typing import Any

from heat.common import identifier
from keystoneauth1 import exceptions as ks_exceptions
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.engine import transports
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import stack_reading
from heat_plugins.runs import run_objects
from heat_plugins.runs import run_store
from heat_plugins.signals import body

#: The resource that URLs name, of which stacks have none: heat-engine finds
#: the target by the signature.
RESOURCE = 'heat-plugins-run'

# What Heat keeps with a server, and we.
_ACCESS, _SECRET, _USER = 'access_key', 'secret_key', 'user_id'
_OURS = 'heat_plugins_run_keys'


def inputs(
    stack: Any, key: run_store.TargetKey, server: heat_values.Server
) -> dict[str, str]:
    """Return the inputs by which the server of an attempt answers.

    :param stack: the root stack, with its stored credentials.
    :raises errors.Refused: it cannot answer so.
    :raises errors.Unavailable: Keystone or the database does not answer.
    """
    if lacking := transports.lacks(stack.clients, heat_values.CFN_SIGNAL):
        raise errors.Refused(lacking)
    with stack_reading.translated('read the key pair of a server'):
        access, secret = _key_pair(stack, server)
    # Heat makes its own of the same.
    base = cfg.CONF.heat_waitcondition_server_url or (
        stack.clients.client_plugin('heat').get_heat_cfn_url()
        + '/waitcondition'
    )
    named = identifier.ResourceIdentifier(
        resource_name=RESOURCE, **stack.identifier()
    )
    query = {
        'SignatureMethod': 'HmacSHA256',
        'SignatureVersion': '2',
        'AWSAccessKeyId': access,
        'run': key.run_id,
        'target': str(key.number),
        'attempt': str(key.attempt),
    }
    url = base.replace('/waitcondition', '/signal') + named.arn_url_path()
    return {
        heat_values.TRANSPORT_INPUT: heat_values.CFN_SIGNAL,
        run_objects.SIGNAL_ID: transports.signed(url, query, secret),
        'deploy_signal_verb': 'POST',
        body.REPORTS_INPUT: 'true',
    }


def _key_pair(stack: Any, server: heat_values.Server) -> abc.Sequence[str]:
    """Return the access key and the secret key of the user of a server."""
    for each in server.resources:
        kept = resources.secrets(stack.context, each.number)
        if _ACCESS in kept and _SECRET in kept:
            return kept[_ACCESS], kept[_SECRET]
        if _OURS in kept:
            pair: list[str] = json.loads(kept[_OURS])
            return pair
        if _USER in kept:
            return _new_pair(stack, each.number, kept[_USER])
    raise errors.Refused(
        f'Server {server.id} cannot send the results of runs without an '
        'object store, as Heat has made no user for it: set its '
        'software_config_transport to POLL_SERVER_CFN'
    )


def _new_pair(stack: Any, number: int, user_id: str) -> abc.Sequence[str]:
    """Make a key pair for the user of a server.

    If two engines do so at once, both pairs work, and one of them is kept.
    """
    keystone = stack.clients.client('keystone')
    try:
        made = keystone.create_stack_domain_user_keypair(
            user_id=user_id, project_id=stack.stack_user_project_id
        )
    except (ks_exceptions.ConnectionError, ks_exceptions.HttpServerError) as e:
        raise errors.Unavailable(
            f'Keystone does not answer: {type(e).__name__}'
        ) from e
    except ks_exceptions.ClientException as exc:
        raise errors.Refused(
            f'Keystone makes no key pair for a server: {type(exc).__name__}'
        ) from exc
    pair = made.access, made.secret
    resources.keep_secret(stack.context, number, _OURS, json.dumps(pair))
    return pair
