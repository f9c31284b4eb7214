# SPDX-License-Identifier: Apache-2.0
"""Clouds without Mistral or an object store: what works, and what says no."""

from collections.abc import Iterator
import json
import subprocess
from typing import Any

import pytest

from heat_plugins import absences
from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

pytestmark = pytest.mark.skipif(
    conftest.PROFILE != 'small' or conftest.STORE != 'swift',
    reason='leaves services out of the profile small',
)

#: What needs the object store, and what needs Mistral.
OF_SWIFT = {
    'Deployments by TEMP_URL_POLL',
    'Runs and operations',
    'Schedules',
    'Actions by webhook',
    'Plans',
    'Plans by workflow',
}
OF_MISTRAL = {'Workflows', 'Cron triggers', 'Plans by workflow'}

#: The mini cloud has no Zaqar.
NEVER = {'Deployments by ZAQAR_SIGNAL'}

WORKFLOW = """
heat_template_version: 2021-04-16
resources:
  workflow:
    type: OS::Mistral::Workflow
    properties: {type: direct, tasks: [{name: a, action: std.noop}]}
"""


@pytest.fixture(scope='module', params=['mistral', 'swift'])
def lacking(
    request: pytest.FixtureRequest,
) -> Iterator[tuple[str, base.minicloud_client.Cloud]]:
    """A cloud, and the service that it lacks."""
    for found in conftest.clouds(
        request, 'poor', plugin=base.ROOT, omitted=[request.param]
    ):
        yield request.param, found


def run(
    cloud: base.minicloud_client.Cloud, command: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command.split(), env=cloud.env(), capture_output=True, text=True
    )


def features(cloud: base.minicloud_client.Cloud) -> dict[str, str]:
    """Return why features do not work, by their names."""
    done = run(cloud, 'heat-plugins-status feature list -f json')
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return {row['name']: row['reason'] for row in rows if not row['works']}


def test_the_status_names_what_does_not_work_and_the_rest_does(
    lacking: tuple[str, base.minicloud_client.Cloud],
) -> None:
    service, cloud = lacking
    absent = features(cloud)
    # Whether triggers fire is not known where there are none.
    absent.pop('Cron triggers', None)
    wanted = OF_SWIFT if service == 'swift' else OF_MISTRAL
    assert set(absent) == (wanted | NEVER) - {'Cron triggers'}
    text = 'object-store' if service == 'swift' else 'workflowv2'
    assert absent['Plans by workflow'] == f'{absences.service(text)}.'


def test_deployments_by_heats_own_transports_work(
    lacking: tuple[str, base.minicloud_client.Cloud],
) -> None:
    service, cloud = lacking
    stack = base.Stack(cloud.session(), base.software(signal_transport='AUTO'))
    with servers.agent(cloud, stack):
        stack.wait('CREATE_COMPLETE')
    shown = stack.resource('deployment', 'signal_transport')['attributes']
    assert shown['signal_transport'] == (
        'CFN_SIGNAL' if service == 'swift' else 'TEMP_URL_POLL'
    )
    assert stack.outputs['deployment_greeting'] == 'hello world'
    stack.delete()
    stack.wait('DELETE_COMPLETE')


def test_the_nightly_backup_of_the_tutorial_needs_no_mistral(
    lacking: tuple[str, base.minicloud_client.Cloud],
) -> None:
    service, cloud = lacking
    if service == 'swift':
        pytest.skip('operations need the object store')
    text = (base.ROOT / 'contrib/examples/software.yaml').read_text()
    stack = base.Stack(cloud.session(), text, name='web')
    command = 'openstack software deployment'
    with servers.agent(cloud, stack, 'web_server') as agent:
        stack.wait('CREATE_COMPLETE')
        run(cloud, f'{command} schedule run web nightly').check_returncode()
        base.until(lambda: stack.outputs['night'] == 'complete')
        assert list((agent.path / 'tmp').glob('web-*/index.html'))
        listed = run(cloud, f'{command} operation list -f value -c ID')
        stack.delete()
        stack.wait('DELETE_COMPLETE')
    run(cloud, f'{command} operation delete {listed.stdout}')


def test_what_cannot_work_is_refused_with_the_reason_of_the_table(
    lacking: tuple[str, base.minicloud_client.Cloud],
) -> None:
    service, cloud = lacking
    template: base.Template | str = WORKFLOW
    commands = ['openstack deployment plan deploy shop']
    reason = absences.service('workflowv2')
    if service == 'swift':
        template = base.software(signal_transport='TEMP_URL_POLL')
        commands = [
            'openstack software deployment operation list',
            'openstack deployment plan show shop --local',
        ]
        reason = absences.service('object-store')
    body = {'stack_name': 'poor', 'template': template}
    answer = cloud.session().post('orchestration', '/stacks', body)
    assert answer.status == 400
    assert reason in answer.json()['error']['message']
    for command in commands:
        done = run(cloud, command)
        assert done.returncode == 1
        assert done.stderr.splitlines() == [reason]
    feature = 'Workflows' if service == 'mistral' else 'Runs and operations'
    assert features(cloud)[feature] == f'{reason}.'


def test_a_run_is_refused_with_the_reason_of_the_table(
    lacking: tuple[str, base.minicloud_client.Cloud],
) -> None:
    service, cloud = lacking
    if service != 'swift':
        pytest.skip('runs need no Mistral')
    stack = base.Stack(cloud.session(), base.software(signal_transport='AUTO'))
    with servers.agent(cloud, stack):
        stack.wait('CREATE_COMPLETE')
    start = 'openstack software deployment run start --wait --stack'
    done = run(cloud, f'{start} {stack.name} -- true')
    assert done.returncode == 1
    assert absences.service('object-store') in done.stderr
    stack.purge()
