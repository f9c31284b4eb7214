# SPDX-License-Identifier: Apache-2.0
"""The configuration files of the services, written at every start."""

from collections.abc import Mapping
import hashlib
import importlib
import pathlib

from minicloud_lib import catalog
from minicloud_lib import dashboard
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib import ports
from minicloud_lib.settings import REGION
from minicloud_lib.settings import Settings

Sections = Mapping[str, Mapping[str, object]]

#: What a machine of Ironic's may do without.
_OPTIONAL = ('bios', 'console', 'firmware', 'raid', 'rescue', 'vendor')

#: Roles that make a user of a project a user of Swift.
SWIFT_ROLES = 'admin, member, swiftoperator'


def write(instance: layout.Instance, settings: Settings) -> None:
    files.make_folder(instance.path)
    # A user who may enter can read passwords and use the cloud.
    instance.path.chmod(0o700)
    for folder in (instance.conf, instance.data, instance.logs, instance.run):
        files.make_folder(folder)
    rendered: dict[str, Sections] = {
        'keystone.conf': _keystone(instance),
        'mistral.conf': _mistral(instance, settings),
        'heat.conf': _heat(instance, settings),
    }
    if settings.profile == 'rgw':
        rgw = importlib.import_module('minicloud_lib.rgw.configuration')
        rendered |= rgw.files(instance, settings)
    else:
        rendered |= _swift(instance, settings)
    texts: Mapping[str, str] = {}
    if settings.profile == 'production':
        # It is made of what is here.
        production = importlib.import_module(
            'minicloud_lib.production.configuration'
        )
        rendered = production.adapt(rendered, instance, settings)
        texts = production.texts(instance, settings)
    else:
        compute = importlib.import_module(
            'minicloud_lib.compute.configuration'
        )
        compute.make_folders(instance)
        rendered |= compute.render(instance, settings)
        rendered['ironic.conf'] = _ironic(instance, settings)
        texts = {'dashboard.json': dashboard.render(instance, settings)}
    for name, text in texts.items():
        files.write(instance.conf / name, text)
    for name, sections in rendered.items():
        text = _ini(sections)
        if name in ('heat.conf', 'mistral.conf'):
            # A comment, but with another one the service is restarted.
            text += f'\n# plugin {settings.plugin_version or "none"}\n'
        if name == 'heat.conf':
            # As an operator would paste it.
            line = f'[DEFAULT]\n{settings.plugin_dirs}'
            text = text.replace('[DEFAULT]', line, 1)
        files.write(instance.conf / name, text)


def version(instance: layout.Instance, service: catalog.Service) -> str:
    """Changes when a service would read something else at a new start."""
    digest = hashlib.sha256()
    for file in files_of(instance, service):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def files_of(
    instance: layout.Instance, service: catalog.Service
) -> list[pathlib.Path]:
    """The configuration files of a service, in the order it reads them."""
    found = [instance.conf / name for name in service.conf]
    if 'heat.conf' in service.conf:
        found += sorted(instance.conf.glob('heat-extra-*.conf'))
    return found


def _keystone(instance: layout.Instance) -> Sections:
    return {
        'database': database(instance, 'keystone'),
        'fernet_tokens': {
            'key_repository': instance.data / 'keystone/fernet-keys'
        },
        'fernet_receipts': {
            'key_repository': instance.data / 'keystone/fernet-keys'
        },
        'credential': {
            'key_repository': instance.data / 'keystone/credential-keys'
        },
        # Its own answers need no check: a twentieth of its work.
        'api': {'response_validation': 'ignore'},
        'token': {'provider': 'fernet', 'expiration': 86400},
        'cache': {'enabled': True, 'backend': 'dogpile.cache.memory'},
        # Passwords are random and the database is private: no need to pay
        # for a slow hash at each of thousands of log-ins.
        'identity': {'password_hash_rounds': 4, 'max_password_length': 72},
    }


def _mistral(instance: layout.Instance, settings: Settings) -> Sections:
    return {
        'DEFAULT': {'transport_url': 'fake://'},
        'api': {
            'host': ports.ADDRESS,
            'port': settings.ports['mistral'],
        },
        'database': database(instance, 'mistral'),
        'keystone_authtoken': authtoken(settings, 'mistral'),
        'pecan': {'auth_enable': True},
        'cron_trigger': {
            'enabled': True,
            'execution_interval': 1,
            'run_in_api': False,
        },
        'openstack_actions': {'default_region': REGION},
        # A user of a mini cloud is at home on this machine.
        'heat_plugins': {'run_validations': True},
        # After a crash, whose jobs would another engine wait for here? And
        # no action that has died before its first heartbeat should be waited
        # for longer than one that dies after it.
        'scheduler': {'pickup_job_after': 5},
        'action_heartbeat': {'first_heartbeat_timeout': 300},
        'oslo_policy': {
            'enforce_new_defaults': False,
            'enforce_scope': False,
        },
    }


def _heat(instance: layout.Instance, settings: Settings) -> Sections:
    etc = instance.home.venv / 'etc/heat'
    service_user = password(settings, 'heat')
    return {
        'DEFAULT': {
            'transport_url': 'fake://',
            'host': 'localhost',
            'convergence_engine': True,
            'auth_encryption_key': settings.secrets['auth_encryption_key'],
            'environment_dir': etc / 'environment.d',
            'template_dir': etc / 'templates',
            'region_name_for_services': REGION,
            'heat_metadata_server_url': settings.public_url('heat_cfn'),
            'heat_waitcondition_server_url': (
                settings.public_url('heat_cfn') + '/v1/waitcondition'
            ),
            'stack_user_domain_name': 'heat',
            'stack_domain_admin': 'heat_domain_admin',
            'stack_domain_admin_password': (
                settings.secrets['heat_domain_admin']
            ),
            'trusts_delegated_roles': '',
            'executor_thread_pool_size': settings.executor_threads,
            'max_stacks_per_tenant': 10000,
            'max_resources_per_stack': -1,
            'max_software_configs_per_tenant': -1,
            'max_software_deployments_per_tenant': -1,
        },
        'paste_deploy': {'api_paste_config': etc / 'api-paste.ini'},
        'database': database(instance, 'heat'),
        'clients': {'endpoint_type': 'publicURL'},
        'clients_keystone': {'auth_uri': settings.public_url('keystone')},
        'keystone_authtoken': authtoken(settings, 'heat'),
        'trustee': _user_only(service_user),
        'ec2authtoken': {
            **service_user,
            'endpoint_override': settings.url('keystone'),
        },
        'heat_plugins': {
            'temp_url_secret': settings.secrets['temp_url_secret']
        },
        # With the new defaults the CFN API turns stack users away.
        'oslo_policy': {
            'enforce_new_defaults': False,
            'enforce_scope': False,
        },
    }


def _ironic(instance: layout.Instance, settings: Settings) -> Sections:
    own = settings.url('ironic')
    return {
        'DEFAULT': {
            'host': 'localhost',
            'rpc_transport': 'none',
            'enabled_hardware_types': 'fake-hardware,redfish',
            **{
                f'enabled_{kind}_interfaces': f'fake,no-{kind}'
                for kind in _OPTIONAL
            },
            'enabled_deploy_interfaces': 'fake,ramdisk',
            'enabled_boot_interfaces': 'fake,redfish-virtual-media',
            'enabled_management_interfaces': 'fake,redfish',
            'enabled_power_interfaces': 'fake,redfish',
            # There is nothing to switch on: the program that plays the
            # ramdisk says what it has found.
            'enabled_inspect_interfaces': 'fake,agent',
            'default_inspect_interface': 'agent',
            'enabled_network_interfaces': 'noop',
            'my_ip': ports.ADDRESS,
        },
        'api': {
            'host_ip': ports.ADDRESS,
            'port': settings.ports['ironic'],
            'public_endpoint': own,
        },
        'conductor': {
            'automated_clean': False,
            'sync_power_state_interval': 0,
        },
        'database': database(instance, 'ironic'),
        'dhcp': {'dhcp_provider': 'none'},
        'inspector': {'require_managed_boot': False},
        'inventory': {'data_backend': 'database'},
        'keystone_authtoken': authtoken(settings, 'ironic'),
        'redfish': {'connection_attempts': 1, 'connection_retry_interval': 1},
        'service_catalog': {
            **password(settings, 'ironic'),
            'endpoint_override': own,
        },
        'oslo_policy': {
            'enforce_new_defaults': False,
            'enforce_scope': False,
        },
    }


def _swift(
    instance: layout.Instance, settings: Settings
) -> dict[str, Sections]:
    suffix = settings.secrets['swift_hash']
    return {
        'swift.conf': {
            'swift-hash': {'swift_hash_path_suffix': suffix},
            'storage-policy:0': {'name': 'Policy-0', 'default': 'yes'},
        },
        'proxy.conf': _swift_proxy(instance, settings),
        **{
            f'{server}.conf': {
                'DEFAULT': {
                    **_swift_defaults(instance, settings, f'swift_{server}'),
                    'devices': instance.data / 'swift',
                    'mount_check': 'false',
                    'disable_fallocate': 'true',
                },
                'pipeline:main': {'pipeline': f'{server}-server'},
                f'app:{server}-server': {'use': f'egg:swift#{server}'},
            }
            for server in ('account', 'container', 'object')
        },
    }


def _swift_proxy(instance: layout.Instance, settings: Settings) -> Sections:
    plain = [
        'catch_errors',
        'gatekeeper',
        'healthcheck',
        'proxy-logging',
        'listing_formats',
        'bulk',
        'tempurl',
        'authtoken',
        'keystoneauth',
        'copy',
        'slo',
        'dlo',
        'versioned_writes',
    ]
    eggs = {name: name.replace('-', '_') for name in plain}
    eggs['authtoken'] = ''
    return {
        'DEFAULT': _swift_defaults(instance, settings, 'swift'),
        'pipeline:main': {
            'pipeline': ' '.join(
                ['request-log', 'faults', 'cache', *plain, 'proxy-server']
            )
        },
        'app:proxy-server': {
            'use': 'egg:swift#proxy',
            'account_autocreate': 'true',
            'allow_account_management': 'true',
        },
        **filters(instance),
        **{
            f'filter:{name}': {'use': f'egg:swift#{egg}'}
            for name, egg in eggs.items()
            if egg
        },
        'filter:cache': {
            'paste.filter_factory': (
                'minicloud_lib.services.swift_cache:filter_factory'
            ),
        },
        'filter:authtoken': {
            'paste.filter_factory': (
                'keystonemiddleware.auth_token:filter_factory'
            ),
            **authtoken(settings, 'swift'),
            'delay_auth_decision': 'true',
        },
        'filter:keystoneauth': {
            'use': 'egg:swift#keystoneauth',
            'operator_roles': SWIFT_ROLES,
        },
        'filter:versioned_writes': {
            'use': 'egg:swift#versioned_writes',
            'allow_versioned_writes': 'true',
        },
    }


def filters(instance: layout.Instance) -> Sections:
    """Those that watch and disturb an object store."""
    ours = 'minicloud_lib.services'
    return {
        'filter:request-log': {
            'paste.filter_factory': f'{ours}.swift_log:filter_factory',
            'file': instance.swift_requests,
        },
        'filter:faults': {
            'paste.filter_factory': f'{ours}.swift_faults:filter_factory',
            'file': instance.faults,
        },
    }


def _swift_defaults(
    instance: layout.Instance, settings: Settings, port: str
) -> dict[str, object]:
    return {
        'bind_ip': ports.ADDRESS,
        'bind_port': settings.ports[port],
        'swift_dir': instance.conf,
        'workers': 0,
        # Heat leaves its connections open until they are collected.
        'max_clients': 4096,
        'log_level': 'INFO',
        # No syslog here: a socket that is not there, and a handler of ours.
        'log_address': instance.run / 'no-syslog',
        'log_custom_handlers': (
            'minicloud_lib.services.swift_stderr.add_handler'
        ),
    }


def database(instance: layout.Instance, service: str) -> dict[str, object]:
    return {
        'connection': f'sqlite:///{instance.database(service)}?timeout=60',
        'sqlite_synchronous': False,
    }


def password(settings: Settings, user: str) -> dict[str, object]:
    return {
        'auth_type': 'password',
        'auth_url': settings.auth_url,
        'username': user,
        'password': settings.secrets[user],
        'user_domain_id': 'default',
        'project_name': 'service',
        'project_domain_id': 'default',
    }


def _user_only(credentials: Mapping[str, object]) -> dict[str, object]:
    """Without a project: a trust brings its own."""
    return {
        name: value
        for name, value in credentials.items()
        if not name.startswith('project_')
    }


def authtoken(settings: Settings, user: str) -> dict[str, object]:
    return {
        **password(settings, user),
        'www_authenticate_uri': settings.public_url('keystone') + '/v3',
        'interface': 'internal',
        'region_name': REGION,
        'service_token_roles': 'service',
        'service_token_roles_required': True,
    }


def _ini(sections: Sections) -> str:
    lines = ['# Written by minicloud at each start; use --conf to add to it.']
    for section, options in sections.items():
        lines += ['', f'[{section}]']
        lines += [
            f'{name} = {value}'.rstrip() for name, value in options.items()
        ]
    return '\n'.join(lines) + '\n'
