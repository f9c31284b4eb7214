# SPDX-License-Identifier: Apache-2.0
"""The ``[heat_plugins]`` options of heat.conf and mistral.conf."""

from oslo_config import cfg
from oslo_config import types

from heat_plugins.configs import hooks
from heat_plugins.signals import live
from heat_plugins.signals import pace

GROUP = 'heat_plugins'

OPTS = [
    cfg.StrOpt(
        'default_deployment_signal_transport',
        choices=[
            (
                'AUTO',
                'The first of TEMP_URL_POLL, ZAQAR_SIGNAL, CFN_SIGNAL and '
                'HEAT_SIGNAL that this cloud can really serve, chosen for '
                'each action',
            ),
            (
                'TEMP_URL_POLL',
                'The server PUTs its result to a Swift TempURL, and the '
                'engine looks for it there',
            ),
            ('TEMP_URL_SIGNAL', 'Another name for TEMP_URL_POLL'),
            (
                'CFN_SIGNAL',
                'The server POSTs its result to heat-api-cfn, at a URL '
                'signed with an EC2 key pair',
            ),
            (
                'HEAT_SIGNAL',
                'The server signals the resource through heat-api, with '
                'Keystone credentials of its own',
            ),
            (
                'ZAQAR_SIGNAL',
                'The server puts its result into a Zaqar queue, with '
                'Keystone credentials of its own',
            ),
            (
                'NO_SIGNAL',
                'The server does not answer; a deployment is complete as '
                'soon as it has been handed out',
            ),
        ],
        help='How servers send back the result of a deployment whose '
        'template does not say. If unset, the option of the same name in '
        '[DEFAULT] decides; that one does not know AUTO, TEMP_URL_POLL '
        'and NO_SIGNAL.',
    ),
    cfg.StrOpt(
        'temp_url_secret',
        secret=True,
        help='Secret from which the TempURL keys of the Swift containers '
        'are derived. It must be the same on every heat-engine. If unset, '
        '[DEFAULT] auth_encryption_key takes its place. After a change '
        'each old key stays valid until its URLs have expired.',
    ),
    cfg.ListOpt(
        'temp_url_digests',
        item_type=types.String(choices=['sha1', 'sha256', 'sha512']),
        default=['sha256', 'sha512', 'sha1'],
        help='Digests for signing TempURLs, the most wanted first. The '
        'first one that the object store allows is used; a store that '
        'does not say what it allows gets sha1.',
    ),
    cfg.IntOpt(
        'temp_url_margin',
        default=3600,
        min=0,
        help='Seconds by which a TempURL outlives the time limit of the '
        'action that it was made for, so that a difference between clocks '
        'does not cut it short.',
    ),
    cfg.IntOpt(
        'temp_url_lifetime_max',
        min=60,
        help="The most seconds for which a template may keep an action's "
        'TempURL valid. It shortens no URL below the time limit of its '
        'action plus temp_url_margin. If unset, there is no limit.',
    ),
    cfg.FloatOpt(
        'signal_poll_interval_fast',
        default=pace.LEAST,
        min=pace.LEAST,
        max=3600,
        help='Seconds between two polls for signals while one is likely: '
        'after a delivery, unless the servers of the stack took long the '
        'last times, and after an arrival. A value above '
        'signal_poll_interval disables these fast polls.',
    ),
    cfg.FloatOpt(
        'signal_poll_interval',
        default=1.0,
        min=0.1,
        max=3600,
        help='Seconds between two polls otherwise; values below '
        f'{pace.LEAST} count as that. All deployments that wait for one root '
        'stack in one engine process share a poll.',
    ),
    cfg.FloatOpt(
        'signal_poll_interval_max',
        default=5.0,
        min=0.1,
        max=3600,
        help='Seconds to which that interval grows while no signal '
        'arrives. A value below signal_poll_interval keeps the interval '
        'as it is.',
    ),
    cfg.FloatOpt(
        'signal_direct_look_interval',
        default=60.0,
        min=1,
        max=3600,
        help='Seconds between two direct looks for a signal that the '
        'container listing does not show. The listing of a busy object '
        'store may lag behind its objects.',
    ),
    cfg.IntOpt(
        'signal_body_limit',
        default=1000000,
        min=1024,
        max=100000000,
        help='The most bytes that a signal may have; a larger one fails its '
        'deployment without being read. The agents on the servers send '
        'none above 950000.',
    ),
    cfg.ListOpt(
        'known_hooks',
        default=sorted(hooks.HOOKS),
        help='The hooks that servers have, by default those of heat-agents; '
        'add those of your own images. A deployment with another hook, such '
        'as a misspelt one, gets a warning in the log and an event: no '
        'server would run it, or answer.',
    ),
    cfg.IntOpt(
        'swift_error_budget',
        default=300,
        min=0,
        help='Seconds for which the object store may fail without a break '
        'before the deployments that wait for it fail too.',
    ),
    cfg.StrOpt(
        'group_members',
        default='nested',
        choices=[
            (
                'single',
                'A group is one resource, which delivers to all servers, '
                'where its signal transport is TEMP_URL_POLL or NO_SIGNAL, '
                'or AUTO chooses TEMP_URL_POLL',
            ),
            ('nested', 'Each member is a resource of a nested stack'),
        ],
        help='What the members of new deployment groups are whose templates '
        'do not say. Existing groups stay as they are.',
    ),
    cfg.IntOpt(
        'runs_kept',
        default=20,
        min=1,
        help='Finished runs of an action to keep for each deployment; '
        'older ones are forgotten when the next one starts. Who starts one '
        'otherwise than by a signal, such as by a command, has a setting of '
        'their own.',
    ),
    cfg.IntOpt(
        'runs_kept_days',
        default=90,
        min=1,
        help='Days to keep a finished run.',
    ),
    cfg.IntOpt(
        'run_log_limit',
        default=live.LIMIT,
        min=2 * live.SLOT,
        max=(live.MOST - 1) * live.SLOT,
        help='Bytes to keep of what a run prints while it goes on, on a '
        'server with heat-config-supervisor. Of a longer output the '
        'beginning and the end are kept. Whoever starts a run otherwise than '
        'by a signal, such as by a command, has a setting of their own.',
    ),
    cfg.IntOpt(
        'mistral_error_budget',
        default=300,
        min=0,
        help='Seconds for which Mistral may fail without a break before the '
        'resources that wait for it fail too.',
    ),
    cfg.FloatOpt(
        'rescue_interval',
        default=30.0,
        min=0,
        help='Seconds between scans, in each process of heat-engine, for '
        'deployments of dead engines, which are then resumed. An engine '
        'counts as dead when it has not reported to the database for twice '
        'its periodic_interval and does not answer. 0 disables the scans; '
        'their stacks stay in progress until they are updated or deleted.',
    ),
    cfg.BoolOpt(
        'run_validations',
        default=False,
        help="Whether Mistral's executors on this host run the validations "
        'that users start by a workflow; for mistral.conf. They are '
        'Ansible playbooks that any user of Mistral may bring along, and run '
        "as the executor's own user: turn it on only where all of them may "
        'do on this host what that user may.',
    ),
    cfg.IntOpt(
        'plan_render_seconds',
        default=60,
        min=1,
        help='Seconds of processor time that the rendering of a deployment '
        "plan's Jinja templates may take; for mistral.conf, as the next two. "
        'It is done in a process of its own, on the host of the executor.',
    ),
    cfg.IntOpt(
        'plan_render_memory',
        default=512,
        min=128,
        help='Mebibytes of address space that this process may have.',
    ),
    cfg.IntOpt(
        'plan_render_output',
        default=64,
        min=1,
        help='Mebibytes that it may make of all templates together.',
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
