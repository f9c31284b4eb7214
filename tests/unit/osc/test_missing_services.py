# SPDX-License-Identifier: Apache-2.0
"""A command that needs a service which the cloud lacks names it, and a way."""

import io
import types
from urllib import parse

from keystoneauth1 import access
from keystoneauth1 import fixture
from keystoneauth1 import session as ks_session
from keystoneauth1.identity import access as access_plugin
from osc_lib import exceptions
import pytest
import requests

from tests.unit import web_service
from tests.unit.osc import base

HEAT, SWIFT, MISTRAL, IRONIC = (
    'orchestration',
    'object-store',
    'workflowv2',
    'baremetal',
)

PROJECT = 'p' * 32

RUN = '20270115T080000Z-00000000'

STACK = {
    'id': 'id-1',
    'stack_name': 'shop',
    'stack_status': 'CREATE_COMPLETE',
    'stack_status_reason': '',
    'parent': None,
    'tags': None,
    'creation_time': '2027-01-15T08:00:00Z',
    'updated_time': None,
    'outputs': [],
    'parameters': {},
    'deletion_time': None,
}

#: The arguments of each command; ``{file}`` is a file that is there.
ARGUMENTS = {
    'deployment plan capability list': 'shop',
    'deployment plan capability set': 'shop --enable a.yaml',
    'deployment plan create': 'shop --from {folder}',
    'deployment plan delete': 'shop',
    'deployment plan deploy': 'shop',
    'deployment plan diff': 'shop',
    'deployment plan export': 'shop {folder}/out',
    'deployment plan list': '',
    'deployment plan node introspect': 'n',
    'deployment plan node list': '',
    'deployment plan node provide': 'n',
    'deployment plan node register': '{folder}/nodes.json',
    'deployment plan parameter list': 'shop',
    'deployment plan parameter set': 'shop a=b',
    'deployment plan parameter unset': 'shop a',
    'deployment plan role list': 'shop',
    'deployment plan set': 'shop --from {folder}',
    'deployment plan show': 'shop',
    'deployment plan status': 'shop',
    'deployment plan validation list': 'shop',
    'deployment plan validation result list': '',
    'deployment plan validation result show': RUN,
    'deployment plan validation run': 'shop',
    'deployment plan validation stop': RUN,
    'software deployment action list': 'shop',
    'software deployment apply': 'shop db --config c',
    'software deployment group nest': '--stack shop',
    'software deployment operation cancel': RUN,
    'software deployment operation delete': RUN,
    'software deployment operation list': '',
    'software deployment operation output': RUN,
    'software deployment operation pause': RUN,
    'software deployment operation resume': RUN,
    'software deployment operation retry': RUN,
    'software deployment operation run': 'BACKUP --stack shop',
    'software deployment operation show': RUN,
    'software deployment operation share': RUN,
    'software deployment operation wait': RUN,
    'software deployment run cancel': f'shop {RUN}',
    'software deployment run delete': f'shop {RUN}',
    'software deployment run list': 'shop',
    'software deployment run logs': f'shop {RUN}',
    'software deployment run output': f'shop {RUN}',
    'software deployment run rerun': f'shop {RUN}',
    'software deployment run show': f'shop {RUN}',
    'software deployment run start': 'BACKUP --stack shop',
    'software deployment run wait': f'shop {RUN}',
    'software deployment schedule backfill': 'shop nightly --stop',
    'software deployment schedule list': 'shop',
    'software deployment schedule pause': 'shop nightly',
    'software deployment schedule preview': '--cron @daily',
    'software deployment schedule resume': 'shop nightly',
    'software deployment schedule run': 'shop nightly',
    'software deployment schedule show': 'shop nightly',
    'software deployment timeline': 'shop',
    'software deployment trigger': 'shop db BACKUP',
}


class Wire(web_service.Service):
    """Services that have one stack, empty containers, and nothing else."""

    def answer(self, request):
        where = parse.urlsplit(request.url)
        kind, path = where.hostname.split('.')[0], where.path
        if kind == HEAT:
            if path.startswith('/stacks/') and path.count('/') < 4:
                return 200, {'stack': STACK}
            if path.endswith(('/resources', '/events')):
                return 200, {path.rpartition('/')[2]: []}
            return (404,)
        if kind == SWIFT:
            if (request.method, path) == ('GET', '/'):
                return 200, []
            written = {'PUT': 201, 'POST': 204, 'DELETE': 204}
            return (written.get(request.method, 404),)
        return (403,)


def session(lacking):
    token = fixture.V3Token(project_id=PROJECT, user_name='bob')
    for kind in (HEAT, SWIFT, MISTRAL, IRONIC):
        if kind != lacking:
            token.add_service(kind).add_standard_endpoints(
                public=f'http://{kind}.example.com/', region='here'
            )
    web = requests.Session()
    web.mount('http://', Wire())
    auth = access_plugin.AccessInfoPlugin(
        access.create(body=token, auth_token='t')
    )
    return ks_session.Session(auth=auth, session=web)


#: What an error says of a service that is not there.
SAID = {
    HEAT: ('no Heat (service type "orchestration")', '--os-region-name'),
    SWIFT: ('no object store (service type "object-store")', 'Ceph RGW'),
    MISTRAL: ('no Mistral (service type "workflowv2")', 'Add --local'),
    IRONIC: ('no Ironic (service type "baremetal")', '--os-region-name'),
}

LOCAL = tuple(
    name
    for name in ARGUMENTS
    if name.startswith('deployment plan ')
    and 'validation result' not in name
    and 'validation stop' not in name
)

NODES = tuple(name for name in LOCAL if ' node ' in name)

#: The commands that ask no service.
OFFLINE = ('software deployment schedule preview',)

#: The commands that cannot do without a service, past Mistral if they can.
#: Others have a word of another service first, or no need.
NEED = {
    HEAT: {
        name
        for name in ARGUMENTS
        if name.startswith('software ')
        # An operation is found in the object store.
        and (' operation ' not in name or name.endswith(' run'))
        and name not in OFFLINE
    },
    SWIFT: {
        name
        for name in ARGUMENTS
        if {'run', 'operation'} & {*name.split()}
        and name.startswith('software ')
        # These look for targets in Heat before they store anything.
        and not name.endswith(('operation run', 'run start'))
        # heat-engine stores what a schedule runs.
        and ' schedule ' not in name
    }
    | {
        'deployment plan capability list',
        'deployment plan deploy',
        'deployment plan diff',
        'deployment plan export',
        'deployment plan parameter list',
        'deployment plan role list',
        'deployment plan set',
        'deployment plan show',
        'deployment plan status',
        'deployment plan validation list',
        'deployment plan validation result list',
        'deployment plan validation result show',
        'deployment plan validation run',
        'deployment plan validation stop',
    },
    MISTRAL: set(),
    IRONIC: set(NODES),
}

#: The commands that ask another service before they turn to Mistral.
FIRST = {
    'deployment plan export': 'There is no plan shop',
    'deployment plan node introspect': 'Ironic answered 403',
    'deployment plan set': 'There is no plan shop',
    'deployment plan validation list': 'There is no plan shop',
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / 'plan-environment.yaml').write_text('template: a.yaml\n')
    (tmp_path / 'a.yaml').write_text('heat_template_version: 2018-08-31\n')
    (tmp_path / 'nodes.json').write_text(
        '{"nodes": [{"name": "n", "pm_type": "ipmi", "pm_addr": "192.0.2.1",'
        ' "pm_user": "a", "pm_password": "b", "mac": ["52:54:00:00:00:01"]}]}'
    )
    return tmp_path


def outcome(name, lacking, folder, *more):
    """Run a command; return what its error says, '' if there is none."""
    manager = types.SimpleNamespace(
        session=session(lacking),
        interface='public',
        region_name=None,
        auth_ref=None,
    )
    app = types.SimpleNamespace(client_manager=manager, stdout=io.StringIO())
    made = base.command(name.replace(' ', '_'))(app, None)
    words = [*ARGUMENTS[name].format(folder=folder).split(), *more]
    parsed = made.get_parser('openstack').parse_args(words)
    try:
        made.run(parsed)
    except exceptions.CommandError as exc:
        return str(exc)
    return ''


def test_all_commands_are_here():
    there = {name.replace('_', ' ') for name in base.commands()}
    assert there == ARGUMENTS.keys()


@pytest.mark.parametrize('name', ARGUMENTS)
@pytest.mark.parametrize('lacking', SAID)
def test_past_mistral_an_error_names_what_is_missing(name, lacking, folder):
    more = ['--local'] if name in LOCAL else []
    said = outcome(name, lacking, folder, *more)
    wanted = SAID[lacking] if name in NEED[lacking] else ()
    assert all(words in said for words in wanted), said
    assert wanted or 'catalogue' not in said, said


@pytest.mark.parametrize('name', LOCAL)
def test_without_mistral_an_error_names_the_way_past_it(name, folder):
    said = outcome(name, MISTRAL, folder)
    wanted = (FIRST[name],) if name in FIRST else SAID[MISTRAL]
    assert all(words in said for words in wanted), said
