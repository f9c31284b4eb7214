# SPDX-License-Identifier: Apache-2.0
"""The ``[heat_plugins]`` options of heat.conf and mistral.conf."""

from oslo_config import cfg
from oslo_config import types

from heat_plugins.configs import actions
from heat_plugins.signals import live
from heat_plugins.signals import paces

GROUP = 'heat_plugins'

#: The entry point of `heat.clients` for the object store.
SWIFT_CLIENT = 'heat_plugins_swift'

OPTS = [
    cfg.StrOpt(
        'default_deployment_signal_transport',
        choices=[
            (
                'AUTO',
                'For each action the first usable one of TEMP_URL_POLL, '
                'ZAQAR_SIGNAL, CFN_SIGNAL and HEAT_SIGNAL',
            ),
            (
                'TEMP_URL_POLL',
                'The server PUTs its result to a TempURL of the object '
                'store, and heat-engine polls for it',
            ),
            ('TEMP_URL_SIGNAL', 'Another name for TEMP_URL_POLL'),
            (
                'CFN_SIGNAL',
                'The server POSTs its result to a URL of heat-api-cfn, '
                'signed with an EC2 key pair',
            ),
            (
                'HEAT_SIGNAL',
                'The server signals the resource over heat-api, with '
                'Keystone credentials for this deployment',
            ),
            (
                'ZAQAR_SIGNAL',
                'The server sends its result to a Zaqar queue, with Keystone '
                'credentials for this deployment',
            ),
            (
                'NO_SIGNAL',
                'The server sends no result; a deployment is complete as '
                'soon as it has been delivered',
            ),
        ],
        help='Default of the property signal_transport of deployments: how a '
        'server sends its result. If unset, the option of the same name in '
        '[DEFAULT] applies, which lacks AUTO, TEMP_URL_POLL and NO_SIGNAL.',
    ),
    cfg.StrOpt(
        'temp_url_secret',
        secret=True,
        help='Secret from which heat-engine derives the TempURL keys of '
        'containers. It must be the same on every heat-engine. If unset, '
        '[DEFAULT] auth_encryption_key is used. After a change each former '
        'key stays valid until its URLs have expired.',
    ),
    cfg.ListOpt(
        'temp_url_digests',
        item_type=types.String(choices=['sha1', 'sha256', 'sha512']),
        default=['sha256', 'sha512', 'sha1'],
        help='Digests for signing TempURLs, in order of preference. '
        'heat-engine uses the first one that the object store allows, or '
        'sha1 if the store does not say what it allows.',
    ),
    cfg.IntOpt(
        'temp_url_margin',
        default=3600,
        min=0,
        help='Seconds that a TempURL stays valid after the time limit of its '
        'action, to allow for clocks that differ.',
    ),
    cfg.IntOpt(
        'temp_url_lifetime_max',
        min=60,
        help='Upper limit, in seconds, of the property signal_url_lifetime '
        'of deployments. A URL is always valid for the time limit of its '
        'action plus temp_url_margin. If unset, there is no limit.',
    ),
    cfg.FloatOpt(
        'signal_poll_interval_fast',
        default=paces.LEAST,
        min=paces.LEAST,
        max=3600,
        help='Seconds between two polls for signals while one is likely: '
        'after an arrival, and after a delivery to servers that usually send '
        'results fast. A value above signal_poll_interval disables these '
        'fast polls.',
    ),
    cfg.FloatOpt(
        'signal_poll_interval',
        default=1.0,
        min=0.1,
        max=3600,
        help='Seconds between two polls otherwise; values below '
        f'{paces.LEAST} count as that. All deployments that wait for one root '
        'stack in one engine process share a poll.',
    ),
    cfg.FloatOpt(
        'signal_poll_interval_max',
        default=5.0,
        min=0.1,
        max=3600,
        help='Seconds to which signal_poll_interval grows while no signal '
        'arrives. A value below signal_poll_interval keeps that interval.',
    ),
    cfg.FloatOpt(
        'signal_direct_look_interval',
        default=60.0,
        min=1,
        max=3600,
        help='Seconds until the first direct request for a signal that the '
        "container's listing does not show; the interval doubles each time. "
        'The listing of a busy object store may lag behind its objects.',
    ),
    cfg.IntOpt(
        'signal_body_limit',
        default=1000000,
        min=1024,
        max=100000000,
        help='Bytes that a signal may have at most. A larger one fails its '
        'deployment, and heat-engine does not read it. The agents on servers '
        'send at most 950000.',
    ),
    cfg.ListOpt(
        'known_hooks',
        default=sorted(actions.HOOKS),
        help='The hooks of servers, by default those of heat-agents; add '
        'those of your own images. A deployment with another hook, such as a '
        'misspelt one, gets an event and a warning in the log, as no server '
        'would run it.',
    ),
    cfg.IntOpt(
        'swift_error_budget',
        default=300,
        min=0,
        help='Seconds for which the object store may fail continuously '
        'before the deployments that wait for it fail, too.',
    ),
    cfg.StrOpt(
        'group_members',
        default='single',
        choices=[
            (
                'single',
                'A group is one resource, which delivers to all servers, if '
                'its signal transport is TEMP_URL_POLL, CFN_SIGNAL or '
                'NO_SIGNAL, or AUTO chooses one of these; else it is nested',
            ),
            ('nested', 'Each member is a resource of a nested stack'),
        ],
        help='Default of the property members of deployment groups. An '
        'existing group keeps its kind.',
    ),
    cfg.IntOpt(
        'runs_kept_days',
        default=90,
        min=1,
        help='Days to keep a run after its end; see run_targets_kept.',
    ),
    cfg.IntOpt(
        'run_log_limit',
        min=2 * live.SLOT,
        max=(live.MOST - 1) * live.SLOT,
        help='Bytes to keep of the live output of each target of a run that a '
        'signal starts, on servers with heat-config-supervisor. Of a longer '
        'output the beginning and the end are kept. If unset, 10 MB, and less '
        'of more than 100 servers. For others see `openstack software '
        'deployment run start --log-limit`.',
    ),
    cfg.IntOpt(
        'mistral_error_budget',
        default=300,
        min=0,
        help='Seconds for which Mistral may fail continuously before the '
        'resources that wait for it fail, too.',
    ),
    cfg.FloatOpt(
        'rescue_interval',
        default=30.0,
        min=0,
        help='Seconds between scans, in each process of heat-engine, for '
        'deployments of dead engines and stacks that an engine left between '
        'two resources, which are then resumed; for schedules, too. Runs of '
        'dead engines are scanned for every 10 s. An engine counts as dead '
        'when it has not reported to the database for 20 s, or for twice a '
        'periodic_interval below 10 s, and does not answer. 0 disables these '
        'scans and reports: such stacks stay in progress until they are '
        'updated or deleted, such runs for ever, and no schedule starts '
        'anything.',
    ),
    cfg.BoolOpt(
        'manage_tables',
        default=True,
        help='Whether heat-engine makes and upgrades the tables of runs in '
        "Heat's database, after its start. If false, or if its database user "
        'may not create tables, run `python -m heat_plugins tables` after '
        'each upgrade of heat-plugins, with the [database] connection of a '
        'user who may.',
    ),
    cfg.IntOpt(
        'run_targets_kept',
        default=100000,
        min=1,
        help="Targets of a project's runs to keep, each a row in Heat's "
        'database. Beyond that, heat-engine deletes the runs that ended '
        'first. Runs in progress have no more targets together, either: '
        'heat-engine refuses a run that would exceed this.',
    ),
    cfg.IntOpt(
        'run_outputs_kept',
        default=1024,
        min=1,
        help="Mebibytes of outputs of a project's runs that have ended to "
        "keep in Heat's database. Beyond that, heat-engine deletes the runs "
        'that ended first, but none of the last day.',
    ),
    cfg.IntOpt(
        'run_output_limit',
        default=64 * 1024,
        min=4096,
        help="Bytes to keep, in Heat's database, of the outputs of each "
        'target of a run: the end of each that is longer.',
    ),
    cfg.PortOpt(
        'metrics_port',
        min=1,
        help='Port on which heat-engine serves metrics for Prometheus: one '
        'process of each host for all that have this port and metrics_host. '
        'That needs prometheus_client: pip install heat-plugins[metrics]. If '
        'unset, heat-engine exports no metrics.',
    ),
    cfg.HostAddressOpt(
        'metrics_host',
        default='127.0.0.1',
        help='Address on which heat-engine serves metrics. Clients are not '
        'authenticated; open it only to a network that may see how many '
        'deployments there are, and how they end.',
    ),
    cfg.ListOpt(
        'notify_hosts',
        item_type=types.String(regex=r'^(https?://)?[\w.:*/\[\]-]+$'),
        default=[],
        help='Hosts to which heat-engine may send notices, by the webhooks '
        'that users name: host names, with an asterisk and a dot in front for '
        'all hosts below a domain, addresses and networks. A name permits '
        'HTTPS; with "http://" in front, it permits HTTP, too. The port is '
        'the default one, or the one at the end, as in "example.com:8443". '
        'Addresses that are not public are refused, whatever name they have, '
        'unless that address or its private network is listed here, with its '
        'port. If empty, heat-engine sends nothing.',
    ),
    cfg.BoolOpt(
        'run_validations',
        default=False,
        help="Whether Mistral's executors on this host run validations; for "
        'mistral.conf. Validations are Ansible playbooks, which any user of '
        "Mistral may supply, and run as the executor's user. Enable it only "
        "if you trust all users of Mistral with that user's rights on this "
        'host.',
    ),
    cfg.IntOpt(
        'plan_render_seconds',
        default=60,
        min=1,
        help='Seconds of processor time for rendering the Jinja templates of '
        "a deployment plan, in a process of its own on the executor's host; "
        'for mistral.conf, as are the next two.',
    ),
    cfg.IntOpt(
        'plan_render_memory',
        default=512,
        min=128,
        help='Mebibytes of address space for rendering a deployment plan.',
    ),
    cfg.IntOpt(
        'plan_render_output',
        default=64,
        min=1,
        help='Mebibytes of rendered output of a deployment plan.',
    ),
    cfg.ListOpt(
        'disabled_resource_types',
        default=[],
        help='Resource types to leave to Heat, such as '
        'OS::Heat::SoftwareConfig. The types SoftwareDeployment, '
        'SoftwareDeploymentGroup, SoftwareDeployments, '
        'StructuredDeployment, StructuredDeploymentGroup and '
        'StructuredDeployments work only together: naming one of them '
        'leaves all six to Heat.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options with `conf`; doing so again changes nothing."""
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options by group, for oslo-config-generator."""
    return [(GROUP, OPTS)]


def default_signal_transport(conf: cfg.ConfigOpts) -> str:
    """Return the signal transport of a template that names none.

    :param conf: with the options of ``heat.common.config``, too.
    """
    ours: str | None = conf.heat_plugins.default_deployment_signal_transport
    return ours or str(conf.default_deployment_signal_transport)
