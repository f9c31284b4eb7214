# SPDX-License-Identifier: Apache-2.0
"""A command that needs a service which the cloud lacks names it, and a way."""

import io
import itertools
import json
import time
import types
from urllib import parse

from keystoneauth1 import access
from keystoneauth1 import fixture
from keystoneauth1 import session as ks_session
from keystoneauth1.identity import access as access_plugin
from osc_lib import exceptions
import pytest
import requests

from heat_plugins import wording
from heat_plugins.osc import common
from heat_plugins.osc.runs import following
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
RUN_ID = '5bd80000-0000-0000-0000-000000000000'

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

#: The arguments of commands; ``{folder}`` has files.
OTHERS = {
    'capability set': 'shop --enable a.yaml',
    'plan create': 'shop --from {folder}',
    'plan export': 'shop {folder}/out',
    'node introspect': 'n',
    'node list': '',
    'node provide': 'n',
    'node register': '{folder}/nodes.json',
    'parameter set': 'shop a=b',
    'parameter unset': 'shop a',
    'plan list': '',
    'plan set': 'shop --from {folder}',
    'result list': '',
    'result show': RUN,
    'validation stop': RUN,
    'feature list': '',
    'group nest': '--stack shop',
    'run list': '',
    'run start': 'BACKUP --stack shop',
    'schedule backfill': 'shop nightly --stop',
    'schedule list': 'shop',
    'schedule preview': '--cron @daily',
}
USUAL = {'deployment run': RUN_ID, 'deployment schedule': 'shop nightly'}


def arguments(name):
    """Return what a command is given."""
    kind, words = name.rpartition(' ')[0], ' '.join(name.split()[-2:])
    return OTHERS.get(words, USUAL.get(kind.partition(' ')[2], 'shop'))


ARGUMENTS = {
    name: arguments(name)
    for name in (each.replace('_', ' ') for each in base.commands())
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
    SWIFT: (
        'no object store (service type "object-store")',
        'Clouds that lack',
    ),
    MISTRAL: ('no Mistral (service type "workflowv2")', 'Clouds that lack'),
    IRONIC: ('no Ironic (service type "baremetal")', '--os-region-name'),
}

LOCAL = tuple(
    name
    for name in ARGUMENTS
    if name.endswith(('validation list', 'validation run'))
)

NODES = tuple(name for name in ARGUMENTS if ' node ' in name)

#: The commands that ask no service.
OFFLINE = ('software deployment schedule preview',)

#: The command whose output, not an error, says what is missing.
FEATURES = 'software deployment feature list'

#: The commands that cannot do without a service, past Mistral if they can.
#: Others have a word of another service first, or no need.
NEED = {
    HEAT: {
        name
        for name in ARGUMENTS
        if name.startswith('software ') and name not in (*OFFLINE, FEATURES)
    },
    SWIFT: {
        f'deployment plan {name}'
        for name in (
            *('capability list', 'deploy', 'diff', 'export', 'role list'),
            *('parameter list', 'set', 'show', 'status', 'validation list'),
            *('validation result list', 'validation result show'),
            *('validation run', 'validation stop'),
        )
    },
    MISTRAL: set(),
    IRONIC: set(NODES),
}

#: The commands that ask another service before they turn to Mistral.
FIRST = {'deployment plan validation list': 'There is no plan shop'}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Let the time for which a command waits pass at once."""
    seconds = itertools.count()
    clock = types.SimpleNamespace(
        time=time.time,
        monotonic=lambda: next(seconds),
        sleep=lambda pause: None,
    )
    for module in (common, following):
        monkeypatch.setattr(module, 'time', clock)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / 'plan-environment.yaml').write_text('template: a.yaml\n')
    (tmp_path / 'a.yaml').write_text('heat_template_version: 2018-08-31\n')
    (tmp_path / 'nodes.json').write_text(
        '{"nodes": [{"name": "n", "pm_type": "ipmi", "pm_addr": "192.0.2.1",'
        ' "pm_user": "a", "pm_password": "b", "mac": ["52:54:00:00:00:01"]}]}'
    )
    return tmp_path


def outcome(name, lacking, folder, *more, stdout=None):
    """Run a command; return what its error says, '' if there is none."""
    manager = types.SimpleNamespace(
        session=session(lacking),
        interface='public',
        region_name=None,
        auth_ref=None,
    )
    app = types.SimpleNamespace(
        client_manager=manager, stdout=stdout or io.StringIO()
    )
    made = base.command(name.replace(' ', '_'))(app, None)
    words = [*ARGUMENTS[name].format(folder=folder).split(), *more]
    parsed = made.get_parser('openstack').parse_args(words)
    try:
        made.run(parsed)
    except exceptions.CommandError as exc:
        return str(exc)
    return ''


@pytest.mark.parametrize('name', ARGUMENTS)
@pytest.mark.parametrize('lacking', SAID)
def test_past_mistral_an_error_names_what_is_missing(name, lacking, folder):
    more = ['--local'] if name in LOCAL else []
    said = outcome(name, lacking, folder, *more)
    wanted = SAID[lacking] if name in NEED[lacking] else ()
    assert all(words in said for words in wanted), said
    others = ('catalogue', 'This region')
    assert wanted or not any(words in said for words in others), said


@pytest.mark.parametrize('name', LOCAL)
def test_without_mistral_an_error_names_the_way_past_it(name, folder):
    said = outcome(name, MISTRAL, folder)
    wanted = (FIRST[name],) if name in FIRST else SAID[MISTRAL]
    assert all(words in said for words in wanted), said


@pytest.mark.parametrize('lacking', [SWIFT, MISTRAL, HEAT, None])
def test_any_user_can_list_what_the_cloud_has_services_for(lacking, folder):
    stdout = io.StringIO()
    assert (
        outcome(FEATURES, lacking, folder, '-f', 'json', stdout=stdout) == ''
    )
    rows = {row.pop('Feature'): row for row in json.loads(stdout.getvalue())}
    plans = {'Has services': 'yes', 'Reason': ''}
    if lacking == SWIFT:
        plans = {'Has services': 'no', 'Reason': wording.no_service(SWIFT)}
    assert rows['Plans'] == plans
    assert rows['Workflows']['Has services'] == (
        'no' if lacking in (MISTRAL, HEAT) else 'yes'
    )
    # This cloud has no heat-api-cfn.
    assert rows['Deployments by CFN_SIGNAL']['Has services'] == 'no'
