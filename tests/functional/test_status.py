# SPDX-License-Identifier: Apache-2.0
"""``heat-plugins-status upgrade check``, for right and wrong settings."""

import json
import pathlib
import subprocess
import sys

import pytest

from tests.functional import base
from tests.functional import conftest

TYPES = 'Resource types'
SECRET = 'TempURL secret'
THREADS = 'Threads of heat-engine'
GROUPS = 'Groups without nested stack'
WAITING = 'Waiting deployments'
SCHEDULES = 'Schedules'
TABLES = 'Tables of runs'
FORMER = 'Runs of a former release'
WAYS = 'Transports of agents'
TEMP_URLS = 'TempURLs'
MISTRAL = 'Mistral'
REDELEGATION = 'Redelegation of trusts'

SUCCESS, WARNING, FAILURE = range(3)

COMMAND = pathlib.Path(sys.executable).with_name('heat-plugins-status')


@pytest.fixture
def check(cloud, tmp_path):
    """Run the command with the cloud's heat.conf, and more."""

    def run(conf='', *args, user='demo', more_env=None):
        more = tmp_path / 'more.conf'
        # The mini cloud has the rules of former years, by which readers may
        # update stacks.
        more.write_text(f'{conf}\n[oslo_policy]\nenforce_new_defaults = true')
        env = cloud.env(user or 'demo')
        if user is None:
            for name in [name for name in env if name.startswith('OS_')]:
                del env[name]
        env |= more_env or {}
        done = subprocess.run(
            [
                *(COMMAND, '--config-file', cloud.path / 'conf/heat.conf'),
                *('--config-file', more, 'upgrade', 'check', '--json', *args),
            ],
            env=env,
            capture_output=True,
            text=True,
        )
        assert done.stderr == ''
        found = {
            one['check']: (one['result'], one['details'])
            for one in json.loads(done.stdout)['checks']
        }
        # The exit code is that of the worst.
        assert done.returncode == max(code for code, _ in found.values())
        return found

    return run


#: Ceph's gateway copies objects for the holder of a URL.
USUAL = {TEMP_URLS: WARNING} if conftest.STORE == 'rgw' else {}


def wrong(found):
    """Return the checks that do not say what they say of such a store."""
    return {
        name: code
        for name, (code, _) in found.items()
        if code != USUAL.get(name, SUCCESS)
    }


def said(found, name):
    return found[name][1]


@pytest.mark.quick
def test_right_settings_succeed_and_leave_nothing_behind(cloud, check):
    before = base.Leftovers.of(cloud)
    found = check()
    assert wrong(found) == {}, found
    assert 'heat-plugins serves 16 resource types' in said(found, TYPES)
    assert 'temp_url_secret' in said(found, SECRET)
    assert 'cloudformation answers at http' in said(found, WAYS)
    keeper = conftest.KEY_HEADER.split('-')[1].lower()
    signed = f'signed with {conftest.DIGEST} and the key of the {keeper}'
    assert signed in said(found, TEMP_URLS)
    assert 'Keystone gives trusts' in said(found, MISTRAL)
    assert base.Leftovers.of(cloud) == before


def features(cloud, user='demo'):
    """What works here, as the command tells a program."""
    done = subprocess.run(
        [
            *(COMMAND, '--config-file', cloud.path / 'conf/heat.conf'),
            *('feature', 'list', '-f', 'json'),
        ],
        env=cloud.env(user),
        capture_output=True,
        text=True,
        check=True,
    )
    return {row['name']: row for row in json.loads(done.stdout)}


def test_it_tells_what_works_here(cloud):
    before = base.Leftovers.of(cloud)
    rows = features(cloud)
    assert not rows['Deployments by ZAQAR_SIGNAL'].pop('works')
    assert 'has no Zaqar' in rows.pop('Deployments by ZAQAR_SIGNAL')['reason']
    # Whether triggers fire can be told of those that there are.
    assert rows.pop('Cron triggers')['works'] is not False
    assert {row['works'] for row in rows.values()} == {True}, rows
    assert base.Leftovers.of(cloud) == before


def test_without_credentials_what_needs_the_cloud_is_skipped(check):
    found = check(user=None)
    assert wrong(found) == {}, found
    for name in (TEMP_URLS, MISTRAL, WAYS):
        assert 'Skipped' in said(found, name)
        assert '--os-cloud' in said(found, name)
    assert 'heat-plugins serves' in said(found, TYPES)


def test_a_cloud_of_clouds_yaml_serves_as_well(cloud, check, tmp_path):
    variables = {
        name.removeprefix('OS_').lower(): value
        for name, value in cloud.env().items()
        if name.startswith('OS_')
    }
    where = {
        name: variables.pop(name)
        for name in ('region_name', 'cacert')
        if name in variables
    }
    for name in ('auth_type', 'identity_api_version', 'interface'):
        variables.pop(name)
    clouds = tmp_path / 'clouds.yaml'
    clouds.write_text(
        json.dumps({'clouds': {'x': {'auth': variables, **where}}})
    )
    found = check(
        '',
        *('--os-cloud', 'x'),
        user=None,
        more_env={'OS_CLIENT_CONFIG_FILE': str(clouds)},
    )
    assert wrong(found) == {}, found
    assert 'A TempURL works' in said(found, TEMP_URLS)


def test_a_wrong_password_fails_each_check_that_asks_the_cloud(check):
    found = check(more_env={'OS_PASSWORD': 'wrong'})
    asking = (WAYS, TEMP_URLS, MISTRAL, REDELEGATION)
    assert wrong(found) == dict.fromkeys(asking, FAILURE)
    assert 'Cannot get a token' in said(found, MISTRAL)


def wrong_settings(*cases):
    """Return one heat.conf of several, and what they are told by check."""
    return pytest.param(
        '\n'.join(conf for conf, *_ in cases),
        {name: (code, text) for _, name, code, text in cases},
        id=', '.join(name for _, name, *_ in cases),
    )


@pytest.mark.parametrize(
    ('conf', 'told'),
    [
        wrong_settings(
            (
                '[DEFAULT]\nplugin_dirs = /nowhere',
                TYPES,
                FAILURE,
                'python -m heat_plugins',
            ),
            (
                '[DEFAULT]\n'
                'auth_encryption_key = notgood but just long enough i t\n'
                '[heat_plugins]\ntemp_url_secret =',
                SECRET,
                FAILURE,
                'set [heat_plugins] temp_url_secret',
            ),
            (
                '[database]\nconnection = sqlite:////nowhere/heat.sqlite',
                THREADS,
                WARNING,
                'the database ([database] connection) fails',
            ),
            # By the same setting.
            ('', GROUPS, WARNING, 'database'),
            ('', WAITING, WARNING, 'database'),
            ('', SCHEDULES, WARNING, 'database'),
            ('', TABLES, WARNING, 'database'),
            ('', FORMER, WARNING, 'database'),
            (
                '[DEFAULT]\nstack_domain_admin =',
                WAYS,
                FAILURE,
                'set stack_domain_admin in [DEFAULT]',
            ),
            (
                '[heat_plugins]\ntemp_url_digests = md5',
                TEMP_URLS,
                FAILURE,
                'heat.conf',
            ),
            (
                '[DEFAULT]\nreauthentication_auth_method = trusts',
                REDELEGATION,
                WARNING,
                'allow_trusts_redelegation = true',
            ),
        ),
        wrong_settings(
            (
                '[heat_plugins]\n'
                'disabled_resource_types = OS::Heat::SoftwareConfig',
                TYPES,
                WARNING,
                'OS::Heat::SoftwareConfig: left to Heat',
            ),
            (
                '[heat_plugins]\ntemp_url_secret = short',
                SECRET,
                WARNING,
                'only 5 characters',
            ),
            (
                '[heat_plugins]\n'
                'default_deployment_signal_transport = ZAQAR_SIGNAL',
                WAYS,
                FAILURE,
                'This region has no Zaqar',
            ),
            (
                '[DEFAULT]\nallow_trusts_redelegation = true',
                REDELEGATION,
                WARNING,
                'has no effect',
            ),
        ),
        wrong_settings(
            (
                '[DEFAULT]\nregion_name_for_services = Nowhere',
                WAYS,
                FAILURE,
                'This region has no heat-api-cfn',
            ),
        ),
        wrong_settings(
            (
                '[DEFAULT]\nallow_trusts_redelegation = true\n'
                'reauthentication_auth_method = trusts\n'
                'trusts_delegated_roles = member',
                REDELEGATION,
                WARNING,
                'only member',
            ),
        ),
    ],
)
def test_wrong_settings_are_told_with_their_remedies(check, conf, told):
    found = check(conf)
    assert wrong(found) == {name: code for name, (code, _) in told.items()}
    for name, (_, text) in told.items():
        assert text in said(found, name)


def test_redelegation_that_is_allowed_in_full_is_right(check):
    found = check(
        '[DEFAULT]\nallow_trusts_redelegation = true\n'
        'reauthentication_auth_method = trusts',
        user=None,
    )
    assert found[REDELEGATION] == (
        SUCCESS,
        "Mistral may create trusts from Heat's.",
    )


def test_a_user_without_an_operator_role_is_told_of_the_role(check):
    found = check(user='reader')
    assert wrong(found) == {TEMP_URLS: FAILURE}
    assert 'operator role' in said(found, TEMP_URLS)


def test_a_refused_temp_url_and_a_container_left_behind_are_told(cloud, check):
    check_of_ours = '.*/heat-plugins-check-.*'
    with cloud.faults(
        [
            {'method': 'PUT', 'path': f'{check_of_ours}/.*', 'status': 401},
            {'method': 'DELETE', 'path': check_of_ours, 'status': 503},
        ]
    ):
        found = check()
    assert wrong(found) == {TEMP_URLS: FAILURE}
    assert 'The object store answered 401' in said(found, TEMP_URLS)
    left = said(found, TEMP_URLS).partition('delete container ')[2].split()[0]
    answer = cloud.session().delete('object-store', f'/{left}')
    assert answer.status == 204


def test_mistral_that_is_away_is_told(cloud, check):
    cloud.stop('mistral')
    try:
        found = check()
    finally:
        cloud.start('mistral')
    assert wrong(found) == {MISTRAL: FAILURE}
    assert '[clients_mistral]' in said(found, MISTRAL)


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='there it takes more to wait in all'
)
def test_threads_that_all_wait_are_a_failure(check, stacks):
    stack = stacks(base.software())
    deployment = stack.waiting()
    found = check('[DEFAULT]\nexecutor_thread_pool_size = 1', user=None)
    assert wrong(found) == {THREADS: FAILURE}
    assert 'raise executor_thread_pool_size' in said(found, THREADS)
    assert deployment.put(b'{}') == 201
    stack.wait('CREATE_COMPLETE')
    found = check('[DEFAULT]\nexecutor_thread_pool_size = 1', user=None)
    assert wrong(found) == {}, found
