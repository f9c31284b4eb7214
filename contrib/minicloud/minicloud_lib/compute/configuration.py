# SPDX-License-Identifier: Apache-2.0
"""The configuration files of Nova, Placement and Glance."""

from minicloud_lib import configuration
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib import ports
from minicloud_lib.settings import REGION
from minicloud_lib.settings import Settings

_Sections = configuration.Sections

#: Who may do what, by the roles that users of this cloud have.
_POLICY = {'enforce_new_defaults': False, 'enforce_scope': False}


def render(
    instance: layout.Instance, settings: Settings
) -> dict[str, _Sections]:
    return {
        'glance-api.conf': _glance(instance, settings),
        'nova.conf': _nova(instance, settings),
        'placement.conf': _placement(instance, settings),
    }


def make_folders(instance: layout.Instance) -> None:
    """Make what Nova and Glance want to have at their start."""
    for name in ('nova/locks', 'glance/images', 'glance/staging'):
        files.make_folder(instance.data / name)


def _nova(instance: layout.Instance, settings: Settings) -> _Sections:
    state = instance.data / 'nova'
    user = {**configuration.password(settings, 'nova'), 'region_name': REGION}
    return {
        'DEFAULT': {
            'transport_url': 'fake://',
            'host': 'localhost',
            'my_ip': ports.ADDRESS,
            'state_path': state,
            'compute_driver': 'minicloud.Driver',
            'force_config_drive': True,
            'allow_resize_to_same_host': True,
            # What `down` has stopped starts again.
            'resume_guests_state_on_host_boot': True,
            # A machine that is busy is not dead.
            'service_down_time': 300,
        },
        'api_database': configuration.database(instance, 'nova_api'),
        'database': configuration.database(instance, 'nova'),
        'oslo_concurrency': {'lock_path': state / 'locks'},
        'oslo_messaging_notifications': {'driver': 'noop'},
        'keystone_authtoken': configuration.authtoken(settings, 'nova'),
        'keystone': user,
        'service_user': {'send_service_user_token': True, **user},
        'placement': {
            **user,
            'endpoint_override': settings.url('placement'),
        },
        'glance': {'endpoint_override': settings.url('glance')},
        'neutron': {
            **user,
            'endpoint_override': settings.url('placement') + '/network',
        },
        # Deployments of a thousand servers are a test's own affair.
        'quota': {'instances': -1, 'cores': -1, 'ram': -1},
        'oslo_policy': _POLICY,
    }


def _placement(instance: layout.Instance, settings: Settings) -> _Sections:
    return {
        'placement_database': {
            **configuration.database(instance, 'placement'),
            'sync_on_startup': True,
        },
        'keystone_authtoken': configuration.authtoken(settings, 'nova'),
        'oslo_policy': _POLICY,
    }


def _glance(instance: layout.Instance, settings: Settings) -> _Sections:
    data = instance.data / 'glance'
    staging = {'filesystem_store_datadir': data / 'staging'}
    return {
        'DEFAULT': {
            'transport_url': 'fake://',
            'enabled_backends': 'disk:file',
            'enabled_import_methods': '[]',
            'worker_self_reference_url': settings.url('glance'),
        },
        'database': configuration.database(instance, 'glance'),
        'glance_store': {'default_backend': 'disk'},
        'disk': {'filesystem_store_datadir': data / 'images'},
        'os_glance_staging_store': staging,
        'os_glance_tasks_store': staging,
        'keystone_authtoken': configuration.authtoken(settings, 'glance'),
        'oslo_messaging_notifications': {'driver': 'noop'},
        'paste_deploy': {
            'flavor': 'keystone',
            'config_file': (
                instance.home.venv / 'etc/glance/glance-api-paste.ini'
            ),
        },
        'oslo_policy': _POLICY,
    }
