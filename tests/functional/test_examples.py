# SPDX-License-Identifier: Apache-2.0
"""Each template in contrib/examples does what it says, on real agents."""

import contextlib
import os

import pytest
import yaml

from tests import pages
from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

EXAMPLES = base.ROOT / 'contrib/examples'


def _group(outputs):
    assert outputs['kernels'].keys() == {'first', 'second'}
    assert all(one.startswith('Linux ') for one in outputs['kernels'].values())


def _software(outputs):
    assert outputs['path'].endswith('/web/index.html')
    assert len(outputs['checksum']) == 64
    assert outputs['said'] == "CREATE: the page says 'Hello, world'\n"
    assert 'REINDEX' in outputs['actions']


#: By name: some outputs of the example, or what holds for them.
CHECKS = {
    'ansible': {'size': '15'},
    'component': {'backups': []},
    'databases': {'actions': ['CREATE', 'BACKUP', 'RESTART', 'DELETE']},
    'group': _group,
    'hello': {'greeting': f'Hello, world, from {os.uname().nodename}'},
    'nightly-backup': {'last': '', 'missed': [0, '']},
    'peers': {'left_knows': 'right', 'right_knows': 'left'},
    'rolling': {},
    'schedules': {'paused': 'until the release'},
    'software': _software,
    'stages': {'said': 'listening on 8080\n'},
    'structured': {'status': 0},
    'workflow': {'executions': [], 'sent': []},
}


@pytest.mark.parametrize('name', CHECKS)
def test_example(name, cloud, stacks):
    text = (EXAMPLES / f'{name}.yaml').read_text()
    stack = stacks(text, name=f'example-{name}')
    with contextlib.ExitStack() as running:
        for resource, one in yaml.safe_load(text)['resources'].items():
            if one['type'] == 'OS::Heat::DeployedServer':
                agent = servers.agent(cloud, stack, resource)
                running.enter_context(agent)
        stack.wait('CREATE_COMPLETE')
        check, outputs = CHECKS[name], stack.outputs
        if callable(check):
            check(outputs)
        else:
            assert check.items() <= outputs.items(), outputs
        # While its servers are there: some have software for DELETE.
        stack.remove()


@pytest.mark.quick
def test_every_example_is_here_and_those_of_workflows_are_valid(cloud):
    found = {path.stem for path in EXAMPLES.glob('*.yaml')}
    # That has a test of its own.
    assert found == {*CHECKS, 'existing-server'}
    folder = EXAMPLES / 'workflows'
    files = {path.name: path.read_text() for path in folder.glob('*.mistral')}
    # There is no Aodh here.
    alarm = 'OS::Aodh::GnocchiAggregationByResourcesAlarm'
    registry = {'resource_registry': {alarm: 'OS::Heat::None'}}
    # By the tests of the types they are created.
    for path in folder.glob('*.yaml'):
        preview = {
            'stack_name': 'previewed',
            'template': path.read_text(),
            'files': files,
            'environment': registry,
        }
        demo = cloud.session()
        answer = demo.post('orchestration', '/stacks/preview', preview)
        assert answer.ok, (path, answer)


@pytest.fixture
def folder(cloud):
    """A container for servers' metadata; Heat would leave its own."""
    demo = cloud.session()
    assert demo.put('object-store', '/servers').ok
    yield {'container': 'servers', 'object': 'metadata'}
    assert demo.delete('object-store', '/servers/metadata').ok
    assert demo.delete('object-store', '/servers').ok


@conftest.signed_by_heat
def test_a_machine_joins_a_stack_by_the_commands_of_the_page(
    cloud, stacks, folder, tmp_path
):
    page = pages.read('existing-servers', 'Join a machine that runs')
    commands, result = pages.blocks(page)
    create, copy, join = commands.splitlines()
    assert create.endswith('existing-server.yaml machines')
    template = yaml.safe_load((EXAMPLES / 'existing-server.yaml').read_text())
    # PyYAML takes it for a date.
    template['heat_template_version'] = '2021-04-16'
    server = template['resources']['server']['properties']
    server['deployment_swift_data'] = folder
    stack = stacks(template)
    base.until(
        lambda: (
            stack.resource('server')['resource_status'] == 'CREATE_COMPLETE'
        )
    )
    machine = servers.machine(cloud, f'{stack.name}-machine')
    typed = f'{copy}\n{join}\n'.replace('/opt/heat-plugins', str(tmp_path))
    typed = typed.replace(' machines ', f' {stack.name} ')
    said = servers.type_script(typed, base.ROOT, cloud.env(), machine.path)
    conf = machine.path / 'etc/os-collect-config.conf'
    assert 'temp_url_sig' in conf.read_text()
    assert conf.stat().st_mode & 0o777 == 0o600
    assert 'temp_url_sig' not in said
    with machine:
        stack.wait('CREATE_COMPLETE')
    name = result.split()[-1]
    assert stack.outputs[name] == os.uname().nodename
    user_data = pages.blocks(pages.read('existing-servers'))[3]
    assert user_data.startswith('#cloud-config')
    for parameter, value in (
        ('metadata_url', stack.outputs['metadata_url']),
        ('sources', 'https://files.example.com/heat-plugins.tar.gz'),
    ):
        user_data = user_data.replace(f'${parameter}', value)
    assert stack.outputs['user_data'] == user_data
