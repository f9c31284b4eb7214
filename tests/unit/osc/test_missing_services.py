# SPDX-License-Identifier: Apache-2.0
"""What every command takes, and says of itself and of a missing service."""

import contextlib
import io
import json
import shlex
import types

from keystoneauth1 import access
from keystoneauth1 import fixture
from keystoneauth1 import session as ks_session
from keystoneauth1.identity import access as access_plugin
from osc_lib import exceptions
import pytest

from heat_plugins import wording
from tests.unit.osc import base

HEAT, SWIFT = 'orchestration', 'object-store'
MISTRAL, IRONIC = 'workflowv2', 'baremetal'

#: Commands whose example reads a file; ``{folder}`` has some.
FILES = {
    'deployment plan create': 'shop --from {folder}',
    'deployment plan set': 'shop --from {folder}',
    'deployment plan node register': '{folder}/nodes.json',
}

COMMANDS = [name.replace('_', ' ') for name in base.commands()]


def session(*lacking):
    token = fixture.V3Token(project_id='p' * 32, user_name='bob')
    for kind in SAID:
        if kind not in lacking:
            token.add_service(kind).add_standard_endpoints(
                public=f'http://{kind}.example.com/', region='here'
            )
    auth = access_plugin.AccessInfoPlugin(
        access.create(body=token, auth_token='t')
    )
    return ks_session.Session(auth=auth)


#: What an error says of a service that is not there.
SAID = {
    HEAT: ('no Heat (service type "orchestration', '--os-region-name'),
    SWIFT: ('no object store (service type "object', 'Clouds that lack'),
    MISTRAL: ('no Mistral (service type "workflowv2', 'Clouds that lack'),
    IRONIC: ('no Ironic (service type "baremetal', '--os-region-name'),
}

FEATURES = 'software deployment feature list'

#: The commands that ask no service.
OFFLINE = (FEATURES, 'software deployment schedule preview')


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
        session=session(*lacking),
        interface='public',
        region_name=None,
        auth_ref=None,
    )
    app = types.SimpleNamespace(
        client_manager=manager, stdout=stdout or io.StringIO()
    )
    made = base.command(name.replace(' ', '_'))(app, None)
    words = FILES.get(name, made.example).format(folder=folder)
    words = [*shlex.split(words), *more]
    parsed = made.get_parser('openstack').parse_args(words)
    try:
        made.run(parsed)
    except exceptions.CommandError as exc:
        return str(exc)
    return ''


@pytest.mark.parametrize('name', COMMANDS)
def test_an_error_names_what_is_missing_and_a_way(name, folder):
    said = outcome(name, SAID, folder)
    named = [all(words in said for words in each) for each in SAID.values()]
    assert sum(named) == (name not in OFFLINE), said


@pytest.mark.parametrize('lacking', [SWIFT, MISTRAL, HEAT, None])
def test_any_user_can_list_what_the_cloud_has_services_for(lacking):
    stdout = io.StringIO()
    said = outcome(FEATURES, [lacking], '', '-f', 'json', stdout=stdout)
    assert said == ''
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


@pytest.mark.parametrize('name', base.commands())
def test_the_help_has_an_example_that_can_be_typed_and_is_ascii(name):
    parser = base.command(name)(None, None).get_parser('openstack')
    lead, _, example = parser.epilog.partition(' openstack ')
    assert lead == 'Example:'
    assert example
    assert '\nExample: openstack ' in parser.format_help()
    assert parser.format_help().isascii()
    parser.parse_args(shlex.split(example))


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        ('--canary two', 'must be a number, at least 0'),
        ('--max-errors few', 'such as 10, or a percentage'),
        ('--server-metadata role', 'expected <name>=<value>'),
        ('--timeout 0', 'must be a number, at least 1'),
        ('--no-such-option', 'unrecognized arguments: --no-such-option'),
    ],
)
def test_a_value_that_cannot_be_is_an_error_that_says_why(given, said):
    command, words = base.typed(f'run start BACKUP {given}')
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr), pytest.raises(SystemExit):
        command(None, None).get_parser('openstack').parse_args(words)
    assert said in stderr.getvalue()
