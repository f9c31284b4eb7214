# SPDX-License-Identifier: Apache-2.0
"""The properties and attributes of deployments and their groups."""

from collections import abc
import copy
from typing import Any, TypeVar

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine.resources.openstack.heat import software_deployment as base
from oslo_config import cfg

from heat_plugins import config
from heat_plugins.deployments import signallers
from heat_plugins.engine import heat_types
from heat_plugins.objectstore import keys
from heat_plugins.resources import schemas
from heat_plugins.signals import transport_names

config.register_opts(cfg.CONF)

_Kind = TypeVar('_Kind')

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
#: The key in the data of a group that gets a nested stack: its id before that.
#: In the environment of the nested stack it is a hint.
FORMER_GROUP = 'heat_plugins_former_group'
#: What a group has, and its members have not.
OF_GROUP = frozenset({MEMBERS, MAX_FAILURES})
#: The properties with which a template lets others than users of the project
#: start actions.
CONSENTS = (TRIGGER_URL, TRIGGER_BY_SERVERS)
#: The properties of a deployment that Heat's own classes lack.
OURS = frozenset({TIMEOUT, DELIVERY_TIMEOUT, SIGNAL_URL_LIFETIME, *CONSENTS})


def permits_servers(deployment: heat_types.Resource) -> bool:
    """Say whether a template lets servers start actions."""
    return any(deployment.properties[name] for name in CONSENTS)


def properties_schema(heats: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of one of Heat's deployment classes with ours.

    :param heats: the `properties_schema` of the class.
    """
    transport = copy.copy(heats[SIGNAL_TRANSPORT])
    transport.description = _(
        'How the server sends the result. TEMP_URL_POLL: the server PUTs it '
        'to a TempURL of the object store, without credentials, and '
        'heat-engine polls for it; TEMP_URL_SIGNAL means the same. '
        'CFN_SIGNAL: the server POSTs it to a URL of heat-api-cfn, signed '
        'with a key pair. HEAT_SIGNAL: the server signals the resource over '
        'heat-api, with Keystone credentials. ZAQAR_SIGNAL: the server sends '
        'it to a Zaqar queue, with Keystone credentials. NO_SIGNAL: the '
        'resource is complete without a result. AUTO: for each action the '
        'first usable one of TEMP_URL_POLL, ZAQAR_SIGNAL, CFN_SIGNAL and '
        'HEAT_SIGNAL.'
    )
    transport.default = config.default_signal_transport(cfg.CONF)
    transport.constraints = [constraints.AllowedValues(transport_names.NAMES)]
    transport.update_allowed = True
    schema = dict(heats)
    schema[SIGNAL_TRANSPORT] = transport
    schema[TIMEOUT] = schemas.number(
        _(
            'Seconds that one action may take at most, from its delivery to '
            "the server until its result. The stack's own timeout applies, "
            'too.'
        ),
        constraints=[constraints.Range(min=1)],
    )
    schema[DELIVERY_TIMEOUT] = schemas.number(
        _(
            'Seconds from the delivery of an action until the server must '
            'report its start. Only for servers with heat-config-supervisor: '
            'others never report a start. Not for ZAQAR_SIGNAL, which has no '
            'start reports.'
        ),
        constraints=[constraints.Range(min=1)],
    )
    schema[SIGNAL_URL_LIFETIME] = schemas.number(
        _(
            'Seconds for which the TempURL of an action is valid, if longer '
            'than the action may take. A result after the end of the action '
            'never counts.'
        ),
        constraints=[constraints.Range(min=60, max=keys.MAX_EXPIRES)],
    )
    schema[TRIGGER_URL] = schemas.flag(
        _(
            'Whether to create a URL that starts an action of the config, '
            'such as BACKUP, on the server. The attribute of the same name '
            'has the URL; its holder needs no other credentials.'
        )
    )
    schema[TRIGGER_BY_SERVERS] = schemas.flag(
        _(
            'Whether signals of servers, which hold credentials of the '
            'stack, may start an action. Users of the project always may; '
            '"trigger_url" implies this property.'
        )
    )
    return schema


def group_properties_schema(heats: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of one of Heat's groups with ours.

    :param heats: the `properties_schema` of the class.
    """
    schema = properties_schema(heats)
    schema[MEMBERS] = schemas.text(
        _(
            'The kind of the group. single: this resource delivers to all '
            'servers, if the signal transport is TEMP_URL_POLL or NO_SIGNAL, '
            'or AUTO chooses TEMP_URL_POLL. nested: each member is a '
            'resource of a nested stack. The default is the option '
            'group_members in heat.conf. A change to single replaces the '
            'group.'
        ),
        constraints=[constraints.AllowedValues([SINGLE, NESTED])],
    )
    schema[MAX_FAILURES] = schemas.text(
        _(
            'Members that may fail before the group fails: a number, or a '
            'percentage such as 10%. Groups with a nested stack ignore it.'
        ),
        default='0',
        constraints=[constraints.AllowedPattern('[0-9]{1,6}%?')],
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
    schema = {}
    schema[TRANSPORT_ATTR] = attributes.Schema(
        _('The transport of the last action, which AUTO has chosen.'),
        type=attributes.Schema.STRING,
    )
    schema[RUNS_ATTR] = schemas.live(
        attributes.Schema.LIST,
        _(
            'The latest runs of actions, started by hand, by a signal or by '
            'a workflow, the newest first; null if the object store is '
            'unavailable.'
        ),
    )
    schema[TRIGGER_URL] = schemas.live(
        attributes.Schema.STRING,
        _(
            'A URL that starts an action: POST {"trigger": "BACKUP", '
            '"input_values": {...}} to it as application/json. Null unless '
            'the property of the same name is true.'
        ),
    )
    return schemas.AttributesSchema(heats, schema)


def group_attributes_schema(heats: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of one of Heat's groups with ours.

    :param heats: the `attributes_schema` of the class.
    """
    ours = {
        MEMBERS: schemas.live(
            attributes.Schema.MAP,
            _(
                'A map by member, with the server, the ID of the deployment, '
                'the last action with status and reason, and the times of '
                'its delivery and end.'
            ),
        ),
        **{
            name: schemas.live(
                attributes.Schema.MAP,
                _('A map, by member: %s') % schema.description,
            )
            for name, schema in attributes_schema({}).items()
        },
    }
    return schemas.AttributesSchema(heats, ours)


def of_deployment(ours: type[_Kind]) -> type[_Kind]:
    """Add our properties and attributes to those of a deployment of Heat."""
    kind: Any = ours
    kind.properties_schema = properties_schema(kind.properties_schema)
    kind.attributes_schema = attributes_schema(kind.attributes_schema)
    return ours


def of_group(ours: type[_Kind]) -> type[_Kind]:
    """Add our properties and attributes to those of a group of Heat."""
    kind: Any = ours
    kind.properties_schema = group_properties_schema(kind.properties_schema)
    kind.attributes_schema = group_attributes_schema(kind.attributes_schema)
    return ours
