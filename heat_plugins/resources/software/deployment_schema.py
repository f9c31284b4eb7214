# SPDX-License-Identifier: Apache-2.0
"""The properties and attributes of deployments and their groups."""

from collections import abc
import copy
from typing import Any, TypeVar

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import support
from heat.engine.resources.openstack.heat import software_deployment as base
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import heat_values
from heat_plugins.engine import callers
from heat_plugins.engine import heat_types
from heat_plugins.engine import transports
from heat_plugins.engine.database import resources
from heat_plugins.objectstore import keys
from heat_plugins.resources import bases

_Kind = TypeVar('_Kind')

TIMEOUT, SIGNAL_URL_LIFETIME = 'timeout', 'signal_url_lifetime'
DELIVERY_TIMEOUT = 'delivery_timeout'
SIGNAL_TRANSPORT = base.SoftwareDeployment.SIGNAL_TRANSPORT
TRANSPORT_ATTR = 'signal_transport'
RUNS_ATTR = 'runs'
#: A property that asks for it, and an attribute.
TRIGGER_URL = 'trigger_url'
TRIGGER_BY_SERVERS = callers.BY_SERVERS
#: A property that says how a group has its members, and an attribute.
MEMBERS = 'members'
SINGLE, NESTED = 'single', 'nested'
MAX_FAILURES = 'max_failures'
#: In the environment of the nested stack it is a hint.
FORMER_GROUP = resources.FORMER_GROUP
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


def check(deployment: heat_types.Resource, servers: str) -> None:
    """Refuse options that this cloud lacks.

    :param servers: the property that names the server, or the servers.
    :raises exception.StackValidationFailed: the template asks for it.
    """
    transports.check(deployment, servers)
    if not deployment.properties[TRIGGER_URL]:
        return
    refusal = transports.refusal_of_runs(deployment)
    if refusal and not resources.exists(deployment):
        raise heat_types.invalid(deployment, refusal, TRIGGER_URL)


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
    transport.constraints = [
        constraints.AllowedValues(
            [
                heat_values.AUTO,
                *transports.TRANSPORTS,
                heat_values.TEMP_URL_SIGNAL,
            ]
        )
    ]
    transport.update_allowed = True
    return {
        **heats,
        SIGNAL_TRANSPORT: transport,
        TIMEOUT: bases.number(
            _(
                'Seconds that one action may take at most, from its delivery '
                "to the server until its result. The stack's own timeout "
                'applies, too.'
            ),
            constraints=[constraints.Range(min=1)],
        ),
        DELIVERY_TIMEOUT: bases.number(
            _(
                'Seconds from the delivery of an action until the server must '
                'report its start. Only for servers with '
                'heat-config-supervisor: others never report a start. Not for '
                'ZAQAR_SIGNAL, which has no start reports.'
            ),
            constraints=[constraints.Range(min=1)],
        ),
        SIGNAL_URL_LIFETIME: bases.number(
            _(
                'Seconds for which the TempURL of an action is valid, if '
                'longer than the action may take. A result after the end of '
                'the action never counts.'
            ),
            constraints=[constraints.Range(min=60, max=keys.MAX_EXPIRES)],
        ),
        TRIGGER_URL: bases.flag(
            _(
                'Whether to create a URL that starts an action of the config, '
                'such as BACKUP, on the server. The attribute of the same '
                'name has the URL; its holder needs no other credentials.'
            )
        ),
        TRIGGER_BY_SERVERS: bases.flag(
            _(
                'Whether signals of servers, which hold credentials of the '
                'stack, may start an action. Users of the project always may; '
                '"trigger_url" implies this property.'
            )
        ),
    }


def attributes_schema(heats: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of one of Heat's deployment classes with ours.

    :param heats: the `attributes_schema` of the class.
    """
    ours = {
        TRANSPORT_ATTR: attributes.Schema(
            _('The transport of the last action, which AUTO has chosen.'),
            type=attributes.Schema.STRING,
        ),
        RUNS_ATTR: bases.live(
            attributes.Schema.LIST,
            _(
                'The latest runs of actions, started by hand, by a signal or '
                'by a workflow, the newest first; null if the database does '
                'not tell.'
            ),
        ),
        TRIGGER_URL: bases.live(
            attributes.Schema.STRING,
            _(
                'A URL that starts an action: POST {"trigger": "BACKUP", '
                '"input_values": {...}} to it as application/json. Null '
                'unless the property of the same name is true, and for users '
                'who may not update the stack.'
            ),
        ),
    }
    return bases.AttributesSchema(heats, ours)


def of_deployment(ours: type[_Kind]) -> type[_Kind]:
    """Add our properties and attributes to those of a deployment of Heat."""
    kind: Any = ours
    kind.properties_schema = properties_schema(kind.properties_schema)
    kind.attributes_schema = attributes_schema(kind.attributes_schema)
    return ours


def of_group(ours: type[_Kind]) -> type[_Kind]:
    """Add our properties and attributes to those of a group of Heat."""
    kind: Any = ours
    kind.properties_schema = {
        **properties_schema(kind.properties_schema),
        MEMBERS: bases.text(
            _(
                'The kind of the group. single: this resource delivers to all '
                'servers, if the signal transport is TEMP_URL_POLL, '
                'CFN_SIGNAL or NO_SIGNAL, or AUTO chooses one of these. '
                'nested: each member is a resource of a nested stack. The '
                'default is the option group_members in heat.conf. A change '
                'of the kind replaces the group.'
            ),
            constraints=[constraints.AllowedValues([SINGLE, NESTED])],
        ),
        MAX_FAILURES: bases.text(
            _(
                'Members that may fail before the group fails: a number, or a '
                'percentage such as 10%. Not for groups with a nested stack.'
            ),
            default='0',
            constraints=[constraints.AllowedPattern('[0-9]{1,6}%?')],
        ),
    }
    attributes_of_group = {
        MEMBERS: bases.live(
            attributes.Schema.MAP,
            _(
                'A map by member, with the server, the ID of the deployment, '
                'the last action with status and reason, and the times of '
                'its delivery and end.'
            ),
        ),
        **{
            name: bases.live(
                attributes.Schema.MAP,
                _('A map, by member: %s') % schema.description,
            )
            for name, schema in attributes_schema({}).items()
        },
    }
    kind.attributes_schema = bases.AttributesSchema(
        kind.attributes_schema, attributes_of_group
    )
    return ours


def renamed(heats: type[Any], ours: type[Any]) -> support.SupportStatus:
    """Return the support status of a type that another type replaces.

    Heat updates them in place if that is the very class named here.

    :param heats: Heat's class of the type.
    :param ours: our class of the other type.
    """
    status = copy.copy(heats.support_status)
    status.substitute_class = ours
    return status
