# SPDX-License-Identifier: Apache-2.0
"""What a template may say of a deployment, and ask of it."""

from collections import abc
import copy
from typing import Any

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import properties
from heat.engine.resources.openstack.heat import software_deployment as base
from oslo_config import cfg

from heat_plugins import config
from heat_plugins.deployments import signallers
from heat_plugins.engine import heat_types
from heat_plugins.objectstore import tempurl
from heat_plugins.signals import transport_names

config.register_opts(cfg.CONF)

TIMEOUT, SIGNAL_URL_LIFETIME = 'timeout', 'signal_url_lifetime'
DELIVERY_TIMEOUT = 'delivery_timeout'
SIGNAL_TRANSPORT = base.SoftwareDeployment.SIGNAL_TRANSPORT
TRANSPORT_ATTR = 'signal_transport'
RUNS_ATTR = 'runs'
#: A property that asks for it, and an attribute.
TRIGGER_URL = 'trigger_url'
TRIGGER_BY_SERVERS = signallers.BY_SERVERS
#: A property that says how a group has its members, and an attribute.
MEMBERS = 'members'
SINGLE, NESTED = 'single', 'nested'
MAX_FAILURES = 'max_failures'
#: What a group has, and its members have not.
OF_GROUP = (MEMBERS, MAX_FAILURES)
#: The properties with which a template lets others than users of the project
#: start actions.
CONSENTS = (TRIGGER_URL, TRIGGER_BY_SERVERS)


def permits_servers(deployment: heat_types.Resource) -> bool:
    """Say whether a template lets servers start actions."""
    return any(deployment.properties[name] for name in CONSENTS)


def properties_schema(heats: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of one of Heat's deployment classes with ours.

    :param heats: the `properties_schema` of the class.
    """
    transport = copy.copy(heats[SIGNAL_TRANSPORT])
    transport.description = _(
        'How the server sends back the result. TEMP_URL_POLL: it PUTs it to '
        'a Swift TempURL, without credentials, and the engine looks for it '
        'there; TEMP_URL_SIGNAL means the same. CFN_SIGNAL: it POSTs it to '
        'a URL of heat-api-cfn, signed with a key pair. HEAT_SIGNAL: it '
        'signals the resource through heat-api, with Keystone credentials. '
        'ZAQAR_SIGNAL: it sends it to a Zaqar queue, with Keystone '
        'credentials. NO_SIGNAL: the resource is complete without one. '
        'AUTO: the first of TEMP_URL_POLL, ZAQAR_SIGNAL, CFN_SIGNAL and '
        'HEAT_SIGNAL that can really be used, chosen for each action.'
    )
    transport.default = config.default_signal_transport(cfg.CONF)
    transport.constraints = [constraints.AllowedValues(transport_names.NAMES)]
    transport.update_allowed = True
    schema = dict(heats)
    schema[SIGNAL_TRANSPORT] = transport
    schema[TIMEOUT] = properties.Schema(
        properties.Schema.INTEGER,
        _(
            'The most seconds that one action may take, from when it is '
            "handed to the server until its signal. The stack's own timeout "
            'counts as well.'
        ),
        constraints=[constraints.Range(min=1)],
        update_allowed=True,
    )
    schema[DELIVERY_TIMEOUT] = properties.Schema(
        properties.Schema.INTEGER,
        _(
            'The most seconds from when an action is handed to the server '
            'until that reports that it has begun. Only for servers whose '
            'image has heat-config-supervisor: others never report. Nothing '
            'is reported by ZAQAR_SIGNAL, where this does not count.'
        ),
        constraints=[constraints.Range(min=1)],
        update_allowed=True,
    )
    schema[SIGNAL_URL_LIFETIME] = properties.Schema(
        properties.Schema.INTEGER,
        _(
            'For how many seconds the TempURL of an action stays valid, if '
            'longer than the action may take. A server may use it for as '
            'long, though no result counts after the action has ended.'
        ),
        constraints=[constraints.Range(min=60, max=tempurl.MAX_EXPIRES)],
        update_allowed=True,
    )
    schema[TRIGGER_URL] = properties.Schema(
        properties.Schema.BOOLEAN,
        _(
            'Whether to make a URL that starts an action of the config, such '
            'as BACKUP, on the server: the attribute of the same name. '
            'Whoever has it needs no other credentials.'
        ),
        default=False,
        update_allowed=True,
    )
    schema[TRIGGER_BY_SERVERS] = properties.Schema(
        properties.Schema.BOOLEAN,
        _(
            'Whether a signal that was sent with credentials of the stack, '
            'which its servers hold, may start an action. Users of the '
            'project may in any case; "trigger_url" implies it.'
        ),
        default=False,
        update_allowed=True,
    )
    return schema


def group_properties_schema(heats: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of one of Heat's groups with ours.

    :param heats: the `properties_schema` of the class.
    """
    schema = properties_schema(heats)
    schema[MEMBERS] = properties.Schema(
        properties.Schema.STRING,
        _(
            'What the members are. single: this one resource delivers to all '
            'servers, where the signal transport is TEMP_URL_POLL or '
            'NO_SIGNAL, or AUTO chooses the former. nested: each member is a '
            'resource of a nested stack. By default, what the operator has '
            'set as group_members. A change replaces the group.'
        ),
        constraints=[constraints.AllowedValues([SINGLE, NESTED])],
    )
    schema[MAX_FAILURES] = properties.Schema(
        properties.Schema.STRING,
        _(
            'How many members may fail before the group does: a number, or '
            'a percentage such as 10%. Not for groups with a nested stack.'
        ),
        default='0',
        constraints=[constraints.AllowedPattern('[0-9]{1,6}%?')],
        update_allowed=True,
    )
    return schema


def allowed_failures(text: str, number: int) -> int:
    """Return how many of some members may fail.

    :param text: the property `MAX_FAILURES`.
    """
    if text.endswith('%'):
        return number * int(text[:-1]) // 100
    return int(text)


def attributes_schema(heats: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of one of Heat's deployment classes with ours.

    :param heats: the `attributes_schema` of the class.
    """
    schema = dict(heats)
    schema[TRANSPORT_ATTR] = attributes.Schema(
        _('How the last action was to be signalled: what AUTO chose.'),
        type=attributes.Schema.STRING,
    )
    schema[RUNS_ATTR] = attributes.Schema(
        _(
            'What has become of the last runs of actions that were started '
            'by hand, by a signal or by a workflow, the newest first; null '
            'if the object store does not tell.'
        ),
        cache_mode=attributes.Schema.CACHE_NONE,
        type=attributes.Schema.LIST,
    )
    schema[TRIGGER_URL] = attributes.Schema(
        _(
            'A URL to start an action at: POST {"trigger": "BACKUP", '
            '"input_values": {...}} to it as application/json. Null unless '
            'the property of the same name asks for it.'
        ),
        cache_mode=attributes.Schema.CACHE_NONE,
        type=attributes.Schema.STRING,
    )
    return schema


def group_attributes_schema(heats: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of one of Heat's groups with ours.

    :param heats: the `attributes_schema` of the class.
    """
    ours = attributes_schema({})
    return {
        **heats,
        MEMBERS: attributes.Schema(
            _(
                'A map, by member: its server, the id of its deployment, its '
                'last action with its status, the reason of that, and when '
                'it was delivered and ended.'
            ),
            cache_mode=attributes.Schema.CACHE_NONE,
            type=attributes.Schema.MAP,
        ),
        **{
            name: attributes.Schema(
                _('A map, by member: %s') % schema.description,
                cache_mode=attributes.Schema.CACHE_NONE,
                type=attributes.Schema.MAP,
            )
            for name, schema in ours.items()
        },
    }
