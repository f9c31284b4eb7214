# SPDX-License-Identifier: Apache-2.0
"""Clouds without Mistral, and without an object store, too.

What works there, as the page "A cloud without an object store" has it, and
what says no.
"""

from collections.abc import Iterator
import json
import pathlib
import re
import subprocess
from typing import Any
from urllib import parse
import uuid

import pytest

from heat_plugins import wording
from heat_plugins.engine import transports
from tests import pages
from tests.functional import base
from tests.functional import conftest
from tests.functional import planning
from tests.functional import servers
from tests.functional import test_groups

pytestmark = pytest.mark.skipif(
    conftest.PROFILE != 'small' or conftest.STORE != 'swift',
    reason='leaves services out of the profile small',
)

#: What needs the object store, and what needs Mistral.
OF_SWIFT = {
    'Deployments by TEMP_URL_POLL',
    'Live output and stopping of runs',
    'Machines that join',
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
    """A cloud, and a service that it lacks; it never has Mistral."""
    omitted = sorted({'mistral', request.param})
    for found in conftest.clouds(
        request, 'poor', plugin=base.ROOT, omitted=omitted
    ):
        yield request.param, found


@pytest.fixture
def bare(
    lacking: tuple[str, base.minicloud_client.Cloud],
) -> base.minicloud_client.Cloud:
    """A cloud without Mistral and an object store."""
    service, cloud = lacking
    if service != 'swift':
        pytest.skip('this cloud has an object store')
    return cloud


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
    wanted = OF_MISTRAL | (OF_SWIFT if service == 'swift' else set())
    assert set(absent) == (wanted | NEVER) - {'Cron triggers'}
    text = 'object-store' if service == 'swift' else 'workflowv2'
    assert absent['Plans by workflow'] == f'{wording.no_service(text)}.'


def test_any_user_learns_it_from_the_catalogue(
    lacking: tuple[str, base.minicloud_client.Cloud],
) -> None:
    service, cloud = lacking
    done = run(cloud, 'openstack software deployment feature list -f json')
    rows = json.loads(done.stdout)
    wanted = OF_MISTRAL | (OF_SWIFT if service == 'swift' else set())
    absent = {row['Feature'] for row in rows if row['Has services'] == 'no'}
    assert absent == wanted | NEVER


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


@pytest.mark.quick
def test_runs_and_schedules_work_without_both(
    lacking: tuple[str, base.minicloud_client.Cloud],
) -> None:
    service, cloud = lacking
    text = (base.ROOT / 'contrib/examples/software.yaml').read_text()
    stack = base.Stack(cloud.session(), text, name='web')
    agent = servers.agent(cloud, stack, 'web_server')
    with agent:
        stack.wait('CREATE_COMPLETE')
        copies = agent.path / 'tmp'
        where = '--stack web --resource page_deployment'
        assert software(cloud, f'run start BACKUP {where} --dry-run')
        started = software(cloud, f'run start BACKUP {where} --wait')
        assert started['state'] == 'complete'
        outputs = software(cloud, f'run output {started["id"]}')
        assert outputs['deploy_stdout'].startswith('BACKUP: ')
        assert pathlib.Path(outputs['path'], 'index.html').exists()
        assert len(list(copies.glob('web-*/index.html'))) == 1
        script = software(cloud, 'run start --wait --stack web -- uptime')
        assert script['state'] == 'complete'
        run(
            cloud, 'openstack software deployment schedule run web nightly'
        ).check_returncode()
        base.until(
            lambda: (
                [each['state'] for each in software(cloud, 'run list')]
                == ['complete'] * 3
            )
        )
        assert len(list(copies.glob('web-*/index.html'))) == 2
        schedule_id = stack.resource('nightly')['physical_resource_id']
        (night,) = software(cloud, f'run list --schedule {schedule_id}')
        assert night['created_by'].startswith('schedule nightly')
    # The agent is off: this one waits until it is cancelled.
    started = software(cloud, f'run start BACKUP {where}')
    base.until(
        lambda: (
            software(cloud, f'run show {started["id"]}')['state'] == 'waiting'
        )
    )
    run(
        cloud, f'openstack software deployment run cancel {started["id"]}'
    ).check_returncode()
    base.until(
        lambda: (
            software(cloud, f'run show {started["id"]}')['state']
            == 'cancelled'
        )
    )
    shown = software(cloud, f'run show {started["id"]} --target 0')
    wanted = 'cannot stop a script that has started'
    assert (wanted in shown['reason']) == (service == 'swift')
    with agent:
        stack.delete()
        stack.wait('DELETE_COMPLETE')
    for each in software(cloud, 'run list'):
        software(cloud, f'run delete {each["id"]}', shown=False)


#: What shows each row of "What works" among the commands of the page.
SHOWN = {
    'Deployments': 'openstack stack create',
    ':doc:`groups`, with ``max_failures`` and ``rolling_update``': 'rolling',
    '``run start``, also of a script of your own, on one server or many': (
        '--canary 1'
    ),
    'Outputs': 'seq 20000',
    ':doc:`schedules`': 'schedule run web nightly',
    '``trigger_url``, and signals that start runs': '"$url"',
}


@pytest.mark.timeout(400)
def test_each_row_of_the_page_works_as_it_is_typed(
    bare: base.minicloud_client.Cloud,
) -> None:
    section = pages.read('without-object-store', 'What works')
    typed = '\n'.join(pages.blocks(section))
    assert re.findall(r'^   \* - (.+)$', section, re.M)[1:] == [*SHOWN]
    for command in SHOWN.values():
        assert command in typed
    text = (base.ROOT / 'contrib/examples/software.yaml').read_text()
    stack = base.Stack(bare.session(), text, name='web')
    with servers.agent(bare, stack, 'web_server'):
        stack.wait('CREATE_COMPLETE')
        done = subprocess.run(
            ['bash', '-ec', typed],
            cwd=base.ROOT,
            env=bare.env(),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done
        # Those of web, that of the group, and that by the URL.
        base.until(
            lambda: (
                [each['state'] for each in software(bare, 'run list')]
                == ['complete'] * 5
            )
        )
        command = 'openstack stack resource show rolling deployments'
        shown = run(bare, f'{command} --with-attr members -f json').stdout
        earlier, later = sorted(
            json.loads(shown)['attributes']['members'].values(),
            key=lambda one: str(one['delivered_at']),
        )
        assert earlier['action'] == later['action'] == 'UPDATE'
        assert earlier['ended_at'] <= later['delivered_at']
        (printed,) = [
            each['id']
            for each in software(bare, 'run list --stack web')
            if each['action'] == 'APPLY'
        ]
        outputs = software(bare, f'run output {printed}')
        assert outputs['deploy_stdout'].endswith('\n20000\n')
        command = 'openstack stack delete --yes --wait'
        run(bare, f'{command} web rolling notes').check_returncode()
    for name in ('first', 'second', 'notes'):
        bare.agent(name).stop(remove=True)
    for each in software(bare, 'run list'):
        software(bare, f'run delete {each["id"]}', shown=False)


def test_a_plan_needs_no_mistral(
    lacking: tuple[str, base.minicloud_client.Cloud], tmp_path: pathlib.Path
) -> None:
    service, cloud = lacking
    if service == 'swift':
        pytest.skip('plans need the object store')
    plan = planning.Plan(cloud, tmp_path, 'shop')
    plan.make(planning.files(planning.empty()))
    assert plan('parameter set', 'who=you')
    assert plan('deploy')['status'] == 'CREATE_COMPLETE'
    assert plan('diff') == []
    plan.purge()


def test_what_cannot_work_is_refused_with_the_reason_of_the_table(
    lacking: tuple[str, base.minicloud_client.Cloud],
) -> None:
    service, cloud = lacking
    template: base.Template | str = WORKFLOW
    commands = ['openstack deployment plan validation run shop']
    reason = wording.no_service('workflowv2')
    if service == 'swift':
        template = base.software(signal_transport='TEMP_URL_POLL')
        commands = ['openstack deployment plan show shop']
        reason = wording.no_service('object-store')
    body = {'stack_name': 'poor', 'template': template}
    answer = cloud.session().post('orchestration', '/stacks', body)
    assert answer.status == 400
    assert reason in answer.json()['error']['message']
    for command in commands:
        done = run(cloud, command)
        assert done.returncode == 1
        assert done.stderr.splitlines() == [reason]
    feature = 'Workflows' if service == 'mistral' else 'Plans'
    assert features(cloud)[feature] == f'{reason}.'


def test_what_of_a_run_needs_the_object_store_says_so(
    bare: base.minicloud_client.Cloud,
) -> None:
    stack = base.Stack(bare.session(), base.software(signal_transport='AUTO'))
    with servers.agent(bare, stack):
        stack.wait('CREATE_COMPLETE')
        command = 'openstack software deployment run'
        started = software(
            bare, f'run start --wait --stack {stack.name} -- seq 20000'
        )
        limited = f'{command} start --stack {stack.name} --log-limit 1000000'
        for each in (
            f'{limited} -- true',
            f'{command} start --stack {stack.name} --follow -- true',
            f'{command} logs {started["id"]}',
            f'{command} output {started["id"]} --whole',
        ):
            done = run(bare, each)
            assert done.returncode == 1, each
            assert wording.no_service('object-store') in done.stderr, each
    stack.purge()


@pytest.mark.timeout(300)
def test_a_group_is_one_resource_without_an_object_store(
    bare: base.minicloud_client.Cloud,
) -> None:
    whole = test_groups.template(
        signal_transport='AUTO',
        max_failures='1',
        actions=['CREATE', 'UPDATE', 'DELETE'],
    )
    stack = base.Stack(bare.session(), whole)
    fleet = test_groups.Servers(stack)
    before = fleet.waiting('CREATE', 3)
    with test_groups.agents(bare, stack):
        stack.wait('CREATE_COMPLETE')
    assert not stack.members('group')
    assert stack.outputs['greeting'] == dict.fromkeys(
        test_groups.NAMES, 'hello world'
    )
    stack.update(whole, who='moon')
    fleet.waiting('UPDATE', 3)
    # Late results are of nobody's action.
    for config in before.values():
        late = servers.body(greeting='late')
        assert base.post(base.signal_url(config), late) == 200
    states = stack.outputs['members'].values()
    assert {each['status'] for each in states} == {'IN_PROGRESS'}
    for name, config in fleet.waiting('UPDATE', 3).items():
        code = int(name == 'two')
        body = servers.body(greeting=f'hello {name}', deploy_status_code=code)
        assert base.post(base.signal_url(config), body) == 200
    stack.wait('UPDATE_COMPLETE')
    states = stack.outputs['members']
    assert [each['status'] for each in states.values()].count('FAILED') == 1
    assert states['two']['status'] == 'FAILED'
    assert stack.outputs['greeting']['one'] == 'hello one'
    stack.delete()
    with test_groups.agents(bare, stack):
        stack.wait('DELETE_COMPLETE')


def test_what_answers_no_run_changes_nothing(
    bare: base.minicloud_client.Cloud,
) -> None:
    stack = base.Stack(bare.session(), base.software(signal_transport='AUTO'))
    with servers.agent(bare, stack):
        stack.wait('CREATE_COMPLETE')
    started = software(bare, f'run start --stack {stack.name} -- true')
    config: dict[str, Any] = {}

    def is_given() -> bool:
        for each in stack.metadata():
            given = {e['name']: e.get('value') for e in each['inputs']}
            if given.get('deploy_action') == 'APPLY':
                config.update(given)
        return bool(config)

    base.until(is_given)
    url = config['deploy_signal_id']
    assert base.post(url.replace('attempt=1', 'attempt=2'), b'{}') == 403
    # A server can sign other parameters with its own key pair.
    shown = stack.resource('server', 'os_collect_config')['attributes']
    secret = shown['os_collect_config']['cfn']['secret_access_key']
    path, _, given = url.partition('?')
    query = {**dict(parse.parse_qsl(given)), 'run': f'{uuid.uuid4()}'}
    del query['Signature']
    forged = transports.signed(path, query, secret)
    assert base.post(forged, b'{}') == 400
    assert base.post(url, b'no JSON') == 400
    assert base.post(url, b'[]') == 400
    assert base.post(url, b'"' + b'x' * 2**20 + b'"') == 400
    assert software(bare, f'run show {started["id"]}')['state'] == 'waiting'
    assert base.post(url, b'{"deploy_stdout": "first"}') == 200
    assert base.post(url, b'{"deploy_stdout": "second"}') == 200
    base.until(
        lambda: (
            software(bare, f'run show {started["id"]}')['state'] == 'complete'
        )
    )
    outputs = software(bare, f'run output {started["id"]}')
    assert outputs['deploy_stdout'] == 'first'
    stack.purge()


def software(
    cloud: base.minicloud_client.Cloud, command: str, *, shown: bool = True
) -> Any:
    """Return what a command of ours prints."""
    words, _, script = command.partition(' -- ')
    words = f'openstack software deployment {words}'
    words += ' -f json' * shown + (f' -- {script}' if script else '')
    done = run(cloud, words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if shown else None
