# SPDX-License-Identifier: Apache-2.0
"""Validations, run by Ansible, with a real Swift, Mistral and Heat."""

import copy
import json
import pathlib
import uuid

import pytest

from tests import sample_plan
from tests.functional import base
from tests.functional import planning

# Each playbook takes seconds before its first task, more on a busy machine.
pytestmark = pytest.mark.timeout(300)


def playbook(*tasks, groups=(), hosts='all'):
    return [
        {
            'hosts': hosts,
            'gather_facts': False,
            'vars': {'metadata': {'name': 'A test', 'groups': [*groups]}},
            'tasks': [*tasks],
        }
    ]


def plan_files(validations, required=()):
    found = planning.files(planning.empty())
    found['plan-environment.yaml']['required_validations'] = [*required]
    for name, content in validations.items():
        found[f'validations/{name}.yaml'] = content
    return found


class Sleepers:
    """Playbooks that do not end, and the processes that are theirs.

    Of these processes one stays in the task, and one does all that it can
    to be forgotten.
    """

    def __init__(self):
        # Nobody else on this machine sleeps for that long.
        self.seconds = str(10_000_000 + uuid.uuid4().int % 1_000_000)

    def playbook(self):
        forgotten = f"setsid env -i sh -c 'sleep {self.seconds} &'"
        return playbook(
            {
                'name': 'sleep',
                'ansible.builtin.shell': f'{forgotten}; sleep {self.seconds}',
            },
            groups=('slow',),
        )

    def found(self):
        """Return the command lines that tell of them."""
        lines = []
        for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
            try:
                line = path.read_bytes().replace(b'\0', b' ').decode()
            except (OSError, UnicodeDecodeError):
                continue
            if line.startswith('sleep ') and self.seconds in line:
                lines.append(line)
        return lines

    def begun(self):
        base.until(lambda: len(self.found()) == 2, 120)

    def gone(self):
        base.until(lambda: not self.found(), 120)


@pytest.fixture(autouse=True)
def results(cloud):
    """No result before a test, and none after."""
    planning.forget_validations(cloud.session())
    yield
    planning.forget_validations(cloud.session())


@pytest.fixture
def plan(cloud, tmp_path):
    found = planning.Plan(cloud, tmp_path, f'checked-{uuid.uuid4().hex[:6]}')
    yield found
    found.purge()


def outcomes(found):
    return {one['Validation']: one['State'] for one in found}


def runs(plan):
    return plan('validation result list')


def about(plan, name):
    """Return the same commands, with something else for the plan's name."""
    found = copy.copy(plan)
    found.name = name
    return found


def tasks(plan, run, validation):
    """Return the tasks of a validation in a run."""
    return about(plan, run)('validation result show', validation)


@pytest.mark.long
@pytest.mark.quick
def test_those_of_a_plan_are_run_by_mistral_and_kept(cloud, plan):
    secret = f'secret-{uuid.uuid4().hex}'
    show = {'ansible.builtin.debug': {'msg': 'with {{ password }}'}}
    plan.make(
        plan_files(
            {
                'good': playbook(show, groups=('prep',)),
                'bad': playbook(
                    {
                        'name': 'count',
                        'ansible.builtin.command': 'echo {{ password }}',
                    },
                    {
                        'name': 'judge',
                        'ansible.builtin.fail': {'msg': 'bad {{ password }}'},
                    },
                    groups=('prep', 'after'),
                ),
                'lonely': playbook(show, groups=('prep',), hosts='nobody'),
                'other': playbook(show),
                'garbled': 'a: [',
            }
        )
    )
    listed = plan('validation list', '--group', 'prep')
    assert [one['Validation'] for one in listed] == ['bad', 'good', 'lonely']

    code, output, said = plan.run(
        'validation run',
        *('--group', 'prep', '--secrets', '-', '--localhost'),
        said=f'password: {secret}',
    )
    assert code == 3, said
    found = json.loads(output)
    assert outcomes(found) == {
        'bad': 'FAILED',
        'good': 'PASSED',
        'lonely': 'FAILED',
    }
    assert found[0]['Reason'] == 'localhost: judge: bad ******'
    assert 'nobody' in found[2]['Reason']
    assert 'good: PASSED' in said

    [kept] = runs(plan)
    assert (kept['State'], kept['Summary']) == (
        'FAILED',
        {'FAILED': 2, 'PASSED': 1},
    )
    done = tasks(plan, kept['Run'], 'bad')
    assert [(one['Task'], one['State']) for one in done] == [
        ('count', 'changed'),
        ('judge', 'failed'),
    ]
    # In the group that it names, this machine is checked.
    code, output, said = plan.run(
        'validation run',
        *('--validation', 'lonely', '--secrets', '-', '--localhost'),
        *('--host-group', 'nobody'),
        said=f'password: {secret}',
    )
    assert (code, outcomes(json.loads(output))) == (0, {'lonely': 'PASSED'})
    # Nothing secret has come out, and nothing has stayed behind.
    session = cloud.session()
    rows = [
        session.get('workflowv2', path).body.decode()
        for path in (
            '/executions?include_output=true',
            '/tasks?include_result=true',
            '/action_executions?include_output=true',
        )
    ]
    log = cloud.log('mistral').read_text(errors='replace')
    for text in (*rows, plan.said, log):
        assert secret not in text
    prefix = 'heat-plugins-uploads'
    found = session.get('object-store', f'?format=json&prefix={prefix}')
    [uploads] = [one['name'] for one in found.json()]
    assert not session.get('object-store', f'/{uploads}').body


def test_stopped_in_the_middle_it_leaves_no_process(plan):
    sleepers = Sleepers()
    plan.make(plan_files({'slow': sleepers.playbook()}))
    code, _, said = plan.run('validation run', '--no-wait')
    assert code == 6, said
    sleepers.begun()
    [run] = runs(plan)
    assert run['State'] == 'RUNNING'
    found = about(plan, run['Run'])('validation stop')
    assert outcomes(found) == {'slow': 'STOPPED'}
    assert sleepers.found() == []


def test_a_workflow_that_is_cancelled_leaves_no_process(cloud, plan):
    sleepers = Sleepers()
    plan.make(plan_files({'slow': sleepers.playbook()}))
    session = cloud.session()
    answer = session.post(
        'workflowv2',
        '/executions',
        {
            'workflow_name': 'validations.run_group',
            'input': {'plan': plan.name, 'group': 'slow'},
        },
    )
    assert answer.ok, answer
    path = f'/executions/{answer.json()["id"]}'
    sleepers.begun()
    answer = session.put('workflowv2', path, {'state': 'CANCELLED'})
    assert answer.ok, answer
    sleepers.gone()
    base.until(lambda: runs(plan)[0]['State'] == 'STOPPED')
    assert session.get('workflowv2', path).json()['state'] == 'CANCELLED'


@pytest.mark.long
def test_a_deployment_needs_what_the_plan_requires(plan):
    judge = {
        'name': 'judge',
        'ansible.builtin.assert': {'that': '{{ enough }}'},
    }
    good = playbook(judge, groups=('prep',))
    good[0]['vars']['enough'] = False
    plan.make(plan_files({'enough': good}, required=('prep',)))
    code, said = plan.fails('deploy')
    assert (code, 'enough: localhost: judge' in said) == (1, True), said
    assert plan('status')['status'] == 'NOT_DEPLOYED'

    good[0]['vars']['enough'] = True
    hosts = {
        'one': {'address': '127.0.0.1', 'groups': ['web']},
        'two': '127.0.0.2',
    }
    template = planning.root()
    template['outputs']['validation_hosts'] = {'value': hosts}
    where = playbook(
        {'ansible.builtin.debug': {'msg': 'at {{ ansible_host }}'}}
    )
    plan.write(
        {
            'validations/enough.yaml': good,
            'validations/where.yaml': where,
            'shop.yaml': template,
        }
    )
    plan('set', '--from', str(plan.folder))
    assert plan('deploy')['status'] == 'CREATE_COMPLETE'

    # The servers are those that the stack names.
    found = plan(
        'validation run', '--connection', 'local', '--validation', 'where'
    )
    assert found[0]['Hosts'] == {'one': '1 ok', 'two': '1 ok'}
    done = tasks(plan, runs(plan)[0]['Run'], 'where')
    assert {(one['Host'], one['Message']) for one in done} == {
        ('one', 'at 127.0.0.1'),
        ('two', 'at 127.0.0.2'),
    }


@pytest.mark.long
def test_a_published_set_is_listed_and_run(plan, tmp_path):
    folder = tmp_path / 'published'
    for path, content in sample_plan.validations().items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    here = about(plan, '--local')
    where = ('--from', str(folder))
    listed = here('validation list', *where)
    assert len(listed) == 15
    assert {one['Name'] for one in listed} >= {
        'Verify DNS',
        'Verify the server fits the RAM requirements',
    }
    ram = ('--validation', 'check-ram', '--variable')
    found = here(
        'validation run',
        *(*where, *ram, 'minimal_ram_gb=1', '--validation', 'no-op'),
    )
    assert outcomes(found) == {'check-ram': 'PASSED', 'no-op': 'PASSED'}
    code, output, said = here.run(
        'validation run', *where, *ram, 'minimal_ram_gb=9999'
    )
    assert (code, outcomes(json.loads(output))) == (
        3,
        {'check-ram': 'FAILED'},
    ), said
