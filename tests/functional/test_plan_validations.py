# SPDX-License-Identifier: Apache-2.0
"""Validations, run by Ansible, with a real Swift, Mistral and Heat."""

import copy
import json
import uuid

import pytest
import yaml

from tests import sample_plan
from tests.functional import base
from tests.functional import flows
from tests.functional import planning


def playbook(*tasks, groups=(), hosts='all', **variables):
    metadata = {'name': 'A test', 'groups': [*groups]}
    return [
        {
            'hosts': hosts,
            'gather_facts': False,
            'vars': {'metadata': metadata, **variables},
            'tasks': [*tasks],
        }
    ]


class Commands(planning.Plan):
    """Commands on validations, of a plan or of something else."""

    def make(self, validations, **sections):
        content = planning.files(**sections)
        for name, text in validations.items():
            content[f'validations/{name}.yaml'] = text
        super().make(content)

    def about(self, name):
        """Return the same, with something else for the plan's name."""
        found = copy.copy(self)
        found.name = name
        return found

    def runs(self):
        return self('validation result list')

    def tasks(self, validation):
        """Return the tasks of a validation in the last run."""
        run = self.about(self.runs()[0]['Run'])
        return run('validation result show', validation)


@pytest.fixture
def plan(cloud, tmp_path):
    """A plan; there is no result before a test, and none after."""
    planning.forget_validations(cloud.session())
    found = Commands(cloud, tmp_path, f'checked-{uuid.uuid4().hex[:6]}')
    yield found
    found.purge()
    planning.forget_validations(cloud.session())


def outcomes(found):
    return {one['Validation']: one['State'] for one in found}


@pytest.mark.long
@pytest.mark.quick
def test_those_of_a_plan_are_run_by_mistral_and_kept(cloud, plan):
    secret = f'secret-{uuid.uuid4().hex}'
    show = {'ansible.builtin.debug': {'msg': 'with {{ password }}'}}
    count = {'name': 'count', 'ansible.builtin.command': 'echo {{ password }}'}
    judge = {
        'name': 'judge',
        'ansible.builtin.fail': {'msg': 'bad {{ password }}'},
    }
    plan.make(
        {
            'good': playbook(show, groups=('prep',)),
            'bad': playbook(count, judge, groups=('prep', 'after')),
            'lonely': playbook(show, groups=('prep',), hosts='nobody'),
            'other': playbook(show),
            'garbled': 'a: [',
        }
    )
    listed = plan('validation list', '--group', 'prep')
    assert [one['Validation'] for one in listed] == ['bad', 'good', 'lonely']

    order = ('validation run', '--secrets', '-', '--localhost')
    given = f'password: {secret}'
    code, output, said = plan.run(*order, '--group', 'prep', said=given)
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
    [kept] = plan.runs()
    assert kept['State'] == 'FAILED'
    assert kept['Summary'] == {'FAILED': 2, 'PASSED': 1}
    done = plan.tasks('bad')
    assert [(one['Task'], one['State']) for one in done] == [
        ('count', 'changed'),
        ('judge', 'failed'),
    ]
    # In the group that it names, this machine is checked.
    lonely = ('--validation', 'lonely', '--host-group', 'nobody')
    assert outcomes(plan(*order, *lonely, said=given)) == {'lonely': 'PASSED'}
    # Nothing secret has come out, and nothing has stayed behind.
    session = cloud.session()
    log = cloud.log('mistral').read_text(errors='replace')
    for text in (planning.shown_by_mistral(session), plan.said, log):
        assert secret not in text
    prefix = 'heat-plugins-uploads'
    found = session.get('object-store', f'?format=json&prefix={prefix}')
    [uploads] = [one['name'] for one in found.json()]
    assert not session.get('object-store', f'/{uploads}').body


def test_stopped_or_cancelled_they_leave_no_process(cloud, plan):
    # Nobody else on this machine sleeps for that long.
    seconds = str(10_000_000 + uuid.uuid4().int % 1_000_000)
    # One process stays in the task, and one does all to be forgotten.
    script = f"setsid env -i sh -c 'sleep {seconds} &'; sleep {seconds}"
    task = {'name': 'sleep', 'ansible.builtin.shell': script}

    def sleeping():
        return base.alive(f'sleep {seconds}')

    plan.make({'slow': playbook(task, groups=('slow',))})
    plan.fails(6, 'validation run', '--no-wait')
    base.until(lambda: sleeping() == 2, 120)
    [run] = plan.runs()
    assert run['State'] == 'RUNNING'
    found = plan.about(run['Run'])('validation stop')
    assert outcomes(found) == {'slow': 'STOPPED'}
    assert sleeping() == 0

    mistral = flows.Mistral(cloud.session())
    execution = mistral.start(
        'validations.run_group', plan=plan.name, group='slow'
    )
    base.until(lambda: sleeping() == 2, 120)
    mistral.set_state(execution, 'CANCELLED')
    base.until(lambda: not sleeping(), 120)
    base.until(lambda: plan.runs()[0]['State'] == 'STOPPED')
    assert mistral.show(execution)['state'] == 'CANCELLED'


@pytest.mark.long
def test_a_deployment_needs_what_the_plan_requires(plan):
    judge = {
        'name': 'judge',
        'ansible.builtin.assert': {'that': '{{ enough }}'},
    }
    bad = playbook(judge, groups=('prep',), enough=False)
    plan.make({'enough': bad}, required_validations=['prep'])
    assert 'enough: localhost: judge' in plan.fails(1, 'deploy')
    assert plan('status')['status'] == 'NOT_DEPLOYED'

    # The servers are those that the stack names.
    hosts = {
        'one': {'address': '127.0.0.1', 'groups': ['web']},
        'two': '127.0.0.2',
    }
    template = yaml.safe_load(planning.ROOT)
    template['outputs']['validation_hosts'] = {'value': hosts}
    where = {'ansible.builtin.debug': {'msg': 'at {{ ansible_host }}'}}
    good = playbook(judge, groups=('prep',), enough=True)
    plan.write(
        {
            'validations/enough.yaml': good,
            'validations/where.yaml': playbook(where),
            'shop.yaml': template,
        }
    )
    plan('set', '--from', str(plan.folder))
    assert plan('deploy')['status'] == 'CREATE_COMPLETE'
    found = plan(
        'validation run', '--connection', 'local', '--validation', 'where'
    )
    assert found[0]['Hosts'] == {'one': '1 ok', 'two': '1 ok'}
    messages = {one['Host']: one['Message'] for one in plan.tasks('where')}
    assert messages == {'one': 'at 127.0.0.1', 'two': 'at 127.0.0.2'}


@pytest.mark.long
def test_a_published_set_is_listed_and_run(plan, tmp_path):
    folder = tmp_path / 'published'
    for path, content in sample_plan.validations().items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    here = plan.about('--local')
    where = ('--from', str(folder))
    listed = here('validation list', *where)
    assert len(listed) == 15
    assert 'Verify DNS' in {one['Name'] for one in listed}
    order = ('validation run', *where, '--validation', 'check-ram')
    ram = '--variable', 'minimal_ram_gb=1', '--validation', 'no-op'
    assert outcomes(here(*order, *ram)) == {
        'check-ram': 'PASSED',
        'no-op': 'PASSED',
    }
    said = here.fails(3, *order, '--variable', 'minimal_ram_gb=9999')
    assert 'check-ram: FAILED' in said
