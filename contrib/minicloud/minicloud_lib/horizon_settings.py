# SPDX-License-Identifier: Apache-2.0
"""Horizon's settings in the mini cloud.

`minicloud_lib.dashboard` writes the file that MINICLOUD_DASHBOARD names; what
is made once for all instances needs none.
"""

import json
import os
import pathlib
import sys

import heat_dashboard
from openstack_dashboard.settings import *  # noqa: F403
from openstack_dashboard.settings import DEFAULT_POLICY_FILES
from openstack_dashboard.settings import HORIZON_CONFIG
from openstack_dashboard.settings import POLICY_FILES

_FILE = os.environ.get('MINICLOUD_DASHBOARD')
_OWN = json.loads(pathlib.Path(_FILE).read_text()) if _FILE else {}
_POLICY = pathlib.Path(heat_dashboard.__file__).parent / 'conf'

DEBUG = False
SECRET_KEY = _OWN.get('secret_key', 'for the installation alone')
ALLOWED_HOSTS = ['127.0.0.1', 'localhost']
OPENSTACK_KEYSTONE_URL = _OWN.get('auth_url', '')
OPENSTACK_SSL_CACERT = _OWN.get('ca_file')

# As heat-dashboard's own snippet has it.
POLICY_FILES['orchestration'] = str(_POLICY / 'heat_policy.yaml')
DEFAULT_POLICY_FILES['orchestration'] = str(
    _POLICY / 'default_policies/heat.yaml'
)

# Users stay logged in over a restart.
SESSION_ENGINE = 'django.contrib.sessions.backends.file'
SESSION_FILE_PATH = _OWN.get('sessions')
CACHES = {
    'default': {'BACKEND': 'django.core.cache.backends.locmem.LocMemCache'}
}

# Without Nova, Horizon's own first page is none.
HORIZON_CONFIG['user_home'] = '/project/stacks/'

STATIC_ROOT = str(pathlib.Path(sys.prefix) / 'static')
COMPRESS_OFFLINE = True

# Who did what, without the secrets of the forms.
OPERATION_LOG_ENABLED = True

LOGGING = {
    'version': 1,
    'disable_existing_loggers': False,
    'handlers': {'console': {'class': 'logging.StreamHandler'}},
    'root': {'handlers': ['console'], 'level': 'WARNING'},
    'loggers': {'horizon.operation_log': {'level': 'INFO'}},
}
